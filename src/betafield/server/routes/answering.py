"""What routes share: waiting for a study, and answers as JSON."""

from __future__ import annotations

import asyncio
import json
import math
from typing import Any

import numpy as np
from fastapi import Response

from betafield.server.study import Change, Study


async def changed(study: Study, change: Change, participant: str | None = None) -> Any:
    """Return what a change answers, once it is durable."""
    return await asyncio.wrap_future(study.submit(change, participant))


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


def answered(value: Any, status: int = 200) -> Response:
    """Return an answer as JSON."""
    body = json.dumps(plain(value), ensure_ascii=False, allow_nan=False)
    return Response(body, status, media_type="application/json")
