"""Processes for rows whose trials are correlated: ρ by evidence.

With ρ = 0, variation between rows makes the length scale too short, and the fit follows each row.
What such a fit says about anything else is not to be trusted: units (`scales`) are compared at the
ρ that is likeliest in the first of them, and every process is fitted at all ρ worth trying.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from betafield.process.fit import Fit, fit
from betafield.process.links import Link
from betafield.process.rows import Rows

# Values of ρ to try. The search stops after one that is this many nats behind the best so far.
CORRELATIONS, HOPELESS = (0.4, 0.25, 0.15, 0.08, 0.04, 0.02, 0.01, 0.003), 10.0


def correlated(first: Fit) -> Iterator[Fit]:
    """Yield a process that was fitted with ρ = 0 at each ρ tried.

    The largest comes first and starts anew. From there on evidence rises up to one ρ and then
    falls; upwards from ρ = 0 it first falls, where length scales cease to be too short.
    """
    rows, link, prior = first.problem
    start, best = None, -math.inf
    for rho in CORRELATIONS:
        apart = rows._replace(correlation=rho)
        found = fit(apart, link, start, prior.smoothness, form=prior.form)
        yield found
        start, best = found.theta, max(best, found.objective)
        if found.objective < best - HOPELESS:
            break


def likeliest(rows: Rows, link: Link) -> float:
    """Return the ρ with the most evidence for these rows, which may be 0."""
    first = fit(rows, link)
    best = max((first, *correlated(first)), key=lambda each: each.objective)
    return best.problem.rows.correlation
