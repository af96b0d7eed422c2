"""Distances by name, each of them a norm."""

from __future__ import annotations

import math

# Each distance is a norm of this order.
ORDERS = {"euclidean": 2, "chebyshev": math.inf, "manhattan": 1}
