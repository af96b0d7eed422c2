"""Metrics of a server, in the format of Prometheus."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections import defaultdict

# Upper bounds of the histogram of answer times, in seconds.
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """Requests by route and status, their durations, and the number of open ones.

    Examples
    --------
    >>> metrics = Metrics()
    >>> metrics.answered("GET", "/health", 200, 0.001)
    >>> "betafield_requests_total{" in metrics.text({})
    True
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._requests: dict[tuple[str, str, int], int] = defaultdict(int)
        self._slots: dict[str, list[int]] = defaultdict(lambda: [0] * (len(SECONDS) + 1))
        self._sums: dict[str, float] = defaultdict(float)
        self.started = time.time()
        self.open = 0

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count an answer."""
        with self._guard:
            self._requests[method, route, status] += 1
            self._slots[route][bisect_left(SECONDS, seconds)] += 1
            self._sums[route] += seconds

    def text(self, gauges: dict[str, float]) -> str:
        """Return all metrics, and these gauges, as text."""
        with self._guard:
            lines = [*self._counted(), *self._timed()]
        now = {
            "betafield_requests_open": float(self.open),
            "betafield_started_seconds": self.started,
            **gauges,
        }
        for name, value in now.items():
            lines += [f"# TYPE {name.partition('{')[0]} gauge", f"{name} {value:.15g}"]
        return "\n".join(lines) + "\n"

    def _counted(self) -> list[str]:
        name = "betafield_requests_total"
        lines = [f"# HELP {name} Requests answered.", f"# TYPE {name} counter"]
        for (method, route, status), n in sorted(self._requests.items()):
            labels = f'method="{method}",route="{route}",status="{status}"'
            lines.append(f"{name}{{{labels}}} {n}")
        return lines

    def _timed(self) -> list[str]:
        name = "betafield_request_seconds"
        lines = [f"# HELP {name} Seconds until the answer.", f"# TYPE {name} histogram"]
        for route, slots in sorted(self._slots.items()):
            total = 0
            for limit, n in zip((*map(str, SECONDS), "+Inf"), slots, strict=True):
                total += n
                lines.append(f'{name}_bucket{{route="{route}",le="{limit}"}} {total}')
            lines.append(f'{name}_sum{{route="{route}"}} {self._sums[route]:.9g}')
            lines.append(f'{name}_count{{route="{route}"}} {total}')
        return lines
