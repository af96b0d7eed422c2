"""Answers as JSON, and problems, for all routes."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
from fastapi import Response

from betafield.server.problems import MEDIA_TYPE, Problem


def plain(value: Any) -> Any:
    """Return a value as JSON; null for NaN and infinities.

    Examples
    --------
    >>> plain({"a": (np.float64(0.5), float("nan"))})
    {'a': [0.5, None]}
    """
    if isinstance(value, dict):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(each) for each in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    return None if isinstance(value, float) and not math.isfinite(value) else value


_encoded = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def answered(value: Any, status: int = 200) -> Response:
    """Return an answer as JSON."""
    return Response(_encoded(plain(value)), status, media_type="application/json")


def explained(path: str, problem: Problem) -> Response:
    """Return a problem as an answer."""
    return Response(problem.body(path), problem.status, problem.headers, MEDIA_TYPE)
