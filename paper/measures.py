"""How wrong a posterior is, how long it took, and what it looks like."""

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
from scipy.special import betainc
from threadpoolctl import threadpool_limits

from betafield.posteriors import Beta
from paper import methods
from paper.problems import PROBLEMS, RESTED, TIRED, Floats, Problem

# Draws at every point from posteriors that have no closed form of the L1 error.
DRAWS = 20
# Points at which posteriors are asked for when time is taken.
TIMED_POINTS = 1_000
# States that pictures show where trials have contexts.
SHOWN = {"rested": RESTED, "tired": TIRED}


def errors(problem: Problem, method: str, t: int, run: int) -> dict[str, float]:
    """Return errors averaged over the domain.

    l2 is E(π̃ − π)² = Var π̃ + (E π̃ − π)², squared its second part, l1 is E|π̃ − π|; risk is that
    of the classifier 1[E π̃ ≥ ½], excess what it has above the smallest possible.
    """
    fitted = methods.fit(method, problem, problem.trials(t, run))
    if not hasattr(fitted.model, "posterior"):
        return _risks(fitted.mean(problem.grid), problem.truth)
    posterior = fitted.posterior(problem.grid)
    mean = posterior.mean()
    squared = float(np.mean((mean - problem.truth) ** 2))
    found = {"l2": float(posterior.var().mean()) + squared, "squared": squared}
    if method != "LGP":
        found["l1"] = float(absolute_error(posterior, problem.truth).mean())
    return found | _risks(mean, problem.truth)


def absolute_error(posterior: Any, truth: Floats) -> Floats:
    """Return E|π̃ − π| of each row.

    For a Beta(α, β) with mean m it is π(2 I(α, β; π) − 1) + m(1 − 2 I(α+1, β; π)), I the
    regularised incomplete beta function; of other posteriors the mean of draws.
    """
    if isinstance(posterior, Beta):
        a, b, m = posterior.alpha, posterior.beta, posterior.mean()
        below, weighted = betainc(a, b, truth), betainc(a + 1, b, truth)
        return np.asarray(truth * (2 * below - 1) + m * (1 - 2 * weighted))
    return np.asarray(np.abs(posterior.sample(DRAWS, random_state=0) - truth).mean(axis=0))


def _risks(mean: Floats, truth: Floats) -> dict[str, float]:
    risk = float(np.where(mean >= 0.5, 1 - truth, truth).mean())
    return {"risk": risk, "excess": risk - float(np.minimum(truth, 1 - truth).mean())}


def means(problem: Problem, method: str, t: int, run: int) -> dict[str, list[float]]:
    """Return posterior means along the domain, under the contexts that pictures show."""
    fitted = methods.fit(method, problem, problem.trials(t, run))
    shown = {"rested": RESTED} if problem.circumstances is None else SHOWN
    return {
        name: fitted.posterior(problem.grid, context).mean().tolist()
        for name, context in shown.items()
    }


def seconds(problem: Problem, method: str, t: int, run: int) -> dict[str, float]:
    """Return how long it takes to fit t trials and to ask 1,000 points for mean and variance.

    In one thread: on a busy machine linear algebra in two waits more than it computes.
    """
    trials, Q = problem.trials(t, run), problem.grid[:: len(problem.grid) // TIMED_POINTS]
    with threadpool_limits(1):
        started = perf_counter()
        posterior = methods.fit(method, problem, trials).posterior(Q)
        posterior.mean(), posterior.var()
        return {"seconds": perf_counter() - started}


MEASURES: dict[str, Callable[[Problem, str, int, int], dict[str, Any]]] = {
    "errors": errors,
    "means": means,
    "seconds": seconds,
}


def measure(what: str, problem: str, method: str, t: int, run: int) -> dict[str, Any]:
    """Return one measurement, all of whose arguments are names and numbers."""
    return MEASURES[what](PROBLEMS[problem], method, t, run)
