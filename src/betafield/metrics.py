"""The metrics, by name."""

from __future__ import annotations

import math

# The order of the norm behind each metric.
ORDERS = {"euclidean": 2, "chebyshev": math.inf, "manhattan": 1}
