"""Rows whose trials are correlated, against every process at every ρ, each fitted alone."""

import numpy as np
import pytest

from betafield.process.basis import ADDITIVE, QUADRATIC
from betafield.process.correlations import CORRELATIONS, correlated, likeliest
from betafield.process.finding import Asked, search
from betafield.process.fit import fit
from betafield.process.links import LINKS, LOGIT
from betafield.process.rows import gather
from betafield.process.scales import boxed
from betafield.process.sums import Sums

BOUNDS = np.array([[0.0, 1.0]])


def rows_that_vary(seed, rho):
    """Return 60 rows of 10 to 300 trials along a Weibull curve."""
    rng = np.random.default_rng(seed)
    x = rng.random((60, 1))
    n = np.rint(np.exp(rng.uniform(np.log(10), np.log(300), 60))).astype(int)
    p = 0.02 + 0.96 * (1.0 - np.exp(-((x[:, 0] / 0.4) ** 3)))
    size = 1.0 / max(rho, 1e-9) - 1.0
    k = rng.binomial(n, rng.beta(p * size, (1.0 - p) * size) if rho else p)
    return Sums(x, n, k, is_apart=True)


def alone(sums, scale, link, rho):
    """Return a process in these units under this link with this ρ, without any other's help."""
    rows = sums.rows(boxed(sums, BOUNDS, (scale,)))
    return fit(rows._replace(correlation=rho), link)


@pytest.mark.parametrize("seed", [[0, 10, 7], [3, 10, 7]], ids=str)
def test_the_heaviest_process_is_the_best_of_all_that_can_be_tried(seed):
    """Uncorrelated, units look better or worse for how well they follow the variation of rows."""
    sums = rows_that_vary(seed, 0.1)
    every = [
        alone(sums, scale, link, rho).objective
        for scale in ("range", "rank")
        for link in LINKS
        for rho in (0.0, *CORRELATIONS)
    ]
    found = search(sums, Asked(BOUNDS)).processes
    assert max(each.fit.objective for each in found) > max(every) - 0.2


@pytest.mark.parametrize("rho", [0.0, 0.1, 0.25])
def test_the_likeliest_correlation_is_that_with_the_most_evidence(rho):
    sums = rows_that_vary([5], rho)
    each = {one: alone(sums, "range", LOGIT, one).objective for one in (0.0, *CORRELATIONS)}
    found = likeliest(sums.rows(boxed(sums, BOUNDS, ("range",))), LOGIT)
    assert each[found] > max(each.values()) - 0.5
    assert abs(found - rho) <= 0.6 * rho


@pytest.mark.parametrize("form", [ADDITIVE, QUADRATIC])
def test_a_process_keeps_its_form_at_every_correlation(form):
    rng = np.random.default_rng(1)
    n = rng.integers(1, 9, 40)
    rows = gather(rng.random((40, 3)), n, rng.integers(0, n + 1))
    first = fit(rows, LOGIT, form=form)
    assert {each.problem.prior.form for each in correlated(first)} == {form}
