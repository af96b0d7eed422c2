"""Windows weighed by leaving trials out, against NumPy's least squares without each trial.

The same to the last bit are the choice, its scores and the posterior in any order of the trials,
told as labels, weights or counts, in batches or halves by which t doubles, in units a power of two
apart, and in a second fit. Where a stream is held in several indexes, the choice is the same bits
and the posterior the same up to rounding, for its sums are of floats. Under mirrored outcomes and
permuted features all is the same up to rounding, ties aside.
"""

import copy
import dataclasses
import functools
import itertools
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import special, stats
from sklearn.base import clone

from betafield import SmoothBetaClassifier, bandwidth, contexts
from betafield.choosing import candidates, local, scoring, weighing
from betafield.posteriors import Beta, Dirichlet, Mixture
from betafield.windows import Forest, Places

METRICS = ["euclidean", "chebyshev", "manhattan"]


def trials(t, d=1, seed=0, truth=None, grid=None):
    """Return trials on the unit cube; on a grid of so many steps many share a place."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(t, d))
    if grid:
        X = np.round(X * grid) / grid
    X[0], X[-1] = 0.0, 1.0
    chance = wave(X) if truth is None else truth(X)
    y = (rng.uniform(size=t) < chance).astype(np.int64)
    y[:2] = 0, 1
    return X, y


def wave(X):
    """Only the first feature matters."""
    return 0.5 + 0.4 * np.sin(7.0 * X[:, 0])


def make(d=1, bandwidth="auto", **options):
    return SmoothBetaClassifier(bandwidth, **{"bounds": [(0, 1)] * d, **options})


@pytest.fixture
def everything(monkeypatch):
    """Keep every candidate that was tried, in `weights_`."""
    monkeypatch.setattr(weighing, "HEAVY", 2.0)
    monkeypatch.setattr(weighing, "HEAVIEST", 10**6)
    monkeypatch.setattr(weighing, "MARGIN", np.inf)


# By hand -----------------------------------------------------------------------------------


def near(X, q, width, metric="euclidean"):
    apart = np.abs(X - q)
    if metric == "euclidean" and X.shape[1] > 1:
        return (apart**2).sum(axis=1) <= width * width
    return (apart.sum(axis=1) if metric == "manhattan" else apart.max(axis=1)) <= width


def monomials(z, degree):
    d = z.shape[1]
    return np.stack(
        [
            np.prod(z[:, list(factors)], axis=1)
            for size in range(degree + 1)
            for factors in itertools.combinations_with_replacement(range(d), size)
        ],
        axis=1,
    )


def least_squares(X, y, weight, q, width, degree, metric="euclidean"):
    """Return p̂ and h of the window of q, and its trials; None where it holds none.

    Rows of the root of the ridge, 0.1, with outcome 0, pull all coefficients but the constant.
    """
    inside = near(X, q, width, metric) & (weight > 0)
    if not inside.any():
        return None
    root = np.sqrt(weight[inside])
    basis = monomials((X[inside] - q) / width, degree)
    pull = np.sqrt(0.1) * np.eye(basis.shape[1])[1:]
    q, r = np.linalg.qr(np.vstack([root[:, None] * basis, pull]))
    # Both the outcomes' weights in the constant and, squared, their sum: (RᵀR)⁻¹ = R⁻¹R⁻ᵀ.
    first = np.linalg.solve(r.T, np.eye(basis.shape[1])[0])
    return first @ (q[: len(root)].T @ (root * y[inside])), first @ first, weight[inside].sum()


def worth(fit):
    """Return p̂ within [0, 1] and n_eff."""
    if fit is None:
        return 0.5, 0.0
    share, leverage, held = fit
    return min(max(share, 0.0), 1.0), min(1.0 / leverage, held)


def gathered(X, y, weight):
    """Return one row a place and outcome."""
    rows, which = np.unique(np.column_stack([X, y]), axis=0, return_inverse=True)
    return rows[:, :-1], rows[:, -1], np.bincount(which.reshape(-1), weight)


def refitted(X, y, weight, record, prior=(1.0, 1.0), metric="euclidean"):
    """Return score and parameters of a candidate, from fits without each trial and with all."""
    X, y, weight = gathered(X * record["relevance"], y, weight)
    width, degree = float(record["width"]), int(record["degree"])
    score = effective_parameters = 0.0
    for i in range(len(y)):
        others = weight.copy()
        others[i] = max(weight[i] - 1.0, 0.0)
        share, n = worth(least_squares(X, y, others, X[i], width, degree, metric))
        chance = (prior[0] + n * share) / (prior[0] + prior[1] + n)
        score += weight[i] * np.log(chance if y[i] else 1.0 - chance)
        # The diagonal of the smoother's matrix, whose row i maps outcomes to the fit at X[i].
        effective_parameters += weight[i] * min(
            least_squares(X, y, weight, X[i], width, degree, metric)[1], 1
        )
    return score, effective_parameters


def by_hand(X, y, weight, degrees, n_places, prior=(1.0, 1.0), metric="euclidean"):
    """Return all candidates of equal relevance with their scores, as `weights_` has them."""
    d = X.shape[1]
    grid = bandwidth.candidates(np.ones(d), _diameter(d, metric), n_places)
    kept = [
        candidates.Candidate((1.0,) * d, width, degree, 0.0, 0.0, 0.0)
        for width in grid
        for degree in degrees
    ]
    table = candidates.records(kept)
    for record in table:
        record["score"], record["effective_parameters"] = refitted(
            X, y, weight, record, prior, metric
        )
    return table


def _diameter(d, metric):
    return {"euclidean": d**0.5, "chebyshev": 1.0, "manhattan": float(d)}[metric]


def weighed(table, d, price=0.25):
    """Return the weights of candidates by the formula."""
    steps = -np.log(table["relevance"]).sum(axis=1) / np.log(4.0)
    value = table["score"] - price * table["effective_parameters"] - steps / 2.0
    k = table["effective_parameters"][np.argmax(value)]
    weight = np.exp((value - value.max()) / max(1.0, min(d, 3) ** 2 * k / 12.0))
    return weight / weight.sum()


def in_order(table):
    return table[np.lexsort((table["degree"], table["width"], *table["relevance"].T))]


def assert_same_candidates(found, expected, tolerance=1e-7):
    found, expected = in_order(found), in_order(expected)
    assert len(found) == len(expected)
    for name in candidates.Candidate._fields:
        np.testing.assert_allclose(
            found[name], expected[name], rtol=tolerance, atol=tolerance, err_msg=name
        )


def test_candidates_that_differ_are_told_apart():
    X, y = trials(60)
    table = make().fit(X, y).weights_
    assert_same_candidates(table[::-1], table)
    for name in weighing.Candidate._fields:
        other = table.copy()
        other[name] += 1
        with pytest.raises(AssertionError):
            assert_same_candidates(other, table)
    with pytest.raises(AssertionError):
        assert_same_candidates(table[:-1], table)


# Leaving one out ---------------------------------------------------------------------------

WEIGHTS = {
    "single": [1.0],
    "whole": [1.0, 2.0, 5.0],
    "fractional": [0.5, 1.0, 0.3, 2.75],
    "tiny": [1e-3, 1.0],
}


@pytest.mark.usefixtures("everything")
@pytest.mark.parametrize("grid", [None, 6])
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("d", [1, 2, 3])
def test_scores_are_those_of_refitting_without_each_trial(d, weights, grid):
    X, y = trials(28, d, seed=d, grid=grid)
    weight = np.random.default_rng(9).choice(WEIGHTS[weights], size=28)
    prior = (0.5, 2.0)
    model = make(d, scale="range", prior=prior).fit(X, y, weight)
    degrees = range(5 if d == 1 else 3)
    expected = by_hand(X, y, weight, degrees, len(np.unique(X, axis=0)), prior)
    expected["weight"] = weighed(expected, d)
    assert_same_candidates(model.weights_, expected)


@pytest.mark.usefixtures("everything")
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("d", [2, 4])
def test_scores_are_those_of_refitting_in_every_metric(d, metric):
    X, y = trials(40, d, seed=5, grid=16)
    model = make(d, scale="range", metric=metric).fit(X, y)
    expected = by_hand(X, y, np.ones(40), range(3 if d == 2 else 2), 40, metric=metric)
    expected["weight"] = weighed(expected, d)
    assert_same_candidates(model.weights_, expected)


@pytest.mark.usefixtures("everything")
@pytest.mark.parametrize("d", [2, 3])
def test_scores_are_those_of_refitting_at_every_relevance(d):
    X, y = trials(60, d, seed=3)
    model = make(d).fit(X, y)
    tried = np.unique(model.weights_["relevance"], axis=0)
    assert len(tried) > 2 * (d - 1)
    for record in model.weights_[:: 1 + len(model.weights_) // 40]:
        score, effective_parameters = refitted(X, y, np.ones(60), record)
        assert record["score"] == pytest.approx(score, abs=1e-7)
        assert record["effective_parameters"] == pytest.approx(effective_parameters, rel=1e-7)
    np.testing.assert_allclose(model.weights_["weight"], weighed(model.weights_, d), atol=1e-12)


@pytest.mark.parametrize("scale", ["range", "ard"])
def test_scores_see_the_prior_at_each_place(scale):
    X, y = trials(60, 2, seed=1)
    # In the user's units, whatever those of the windows are.
    places = X * [10.0, 4.0] - [0.0, 2.0]
    field = lambda P: (1.0 + 0.3 * P[:, 0], 3.0 - P[:, 1])
    model = SmoothBetaClassifier(scale=scale, bounds=[(0, 10), (-2, 2)], prior=field)
    kept = model.fit(places, y).weights_
    assert (kept["relevance"].min() < 1.0) == (scale == "ard")
    record = kept[np.argmin(kept["relevance"].min(axis=1))]
    X, total = X * record["relevance"], 0.0
    for i in range(60):
        rest = np.arange(60) != i
        width, degree = float(record["width"]), int(record["degree"])
        share, n = worth(least_squares(X[rest], y[rest], np.ones(59), X[i], width, degree))
        a, b = (shape[0] for shape in field(places[i : i + 1]))
        chance = (a + n * share) / (a + b + n)
        total += np.log(chance if y[i] else 1.0 - chance)
    assert record["score"] == pytest.approx(total, abs=1e-7)


def counts_score(X, y, width, shapes):
    """Return Σ log P(class | other trials of the window), counting them."""
    total = 0.0
    for i in range(len(y)):
        inside = near(X, X[i], width)
        inside[i] = False
        counts = np.bincount(y[inside], minlength=len(shapes))
        total += np.log((shapes[y[i]] + counts[y[i]]) / (sum(shapes) + inside.sum()))
    return total


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_classes_are_scored_by_the_others_of_the_window(d, seed):
    rng = np.random.default_rng(seed)
    X, _ = trials(50, d, seed, grid=9)
    y = np.minimum(rng.integers(0, 3, size=50), (4 * X[:, 0]).astype(int))
    y[:3] = 0, 1, 2
    shapes = (0.5, 1.0, 2.0)
    grid = bandwidth.candidates(np.ones(d), d**0.5, len(np.unique(X, axis=0)))
    scores = np.array([counts_score(X, y, width, shapes) for width in grid])
    best = np.flatnonzero(scores > scores.max() - 1e-9)[-1]
    model = make(d, "loo", prior=shapes).fit(X, y)
    assert model.bandwidth_ == pytest.approx(grid[best])
    assert model.weights_["score"] == pytest.approx(scores[best], rel=1e-12)
    # Parameters cost where windows are mixed, and there is no mixture of Dirichlets yet.
    held = np.array([[near(X, x, width).sum() for x in X] for width in grid])
    effective_parameters = (1.0 / held).sum(axis=1)
    value = scores - effective_parameters / 4.0
    auto = make(d, scale="range", prior=shapes).fit(X, y)
    best = np.flatnonzero(value > value.max() - 1e-9)[-1]
    assert auto.bandwidth_ == pytest.approx(grid[best])
    assert auto.weights_["effective_parameters"] == pytest.approx(
        effective_parameters[best], rel=1e-12
    )
    assert isinstance(auto.posterior(X), Dirichlet)


@given(
    hnp.arrays(np.float64, (6, 3), elements=st.integers(0, 4)),
    hnp.arrays(np.float64, (6, 3), elements=st.integers(0, 9)),
    st.floats(0.1, 5.0),
)
def test_held_out_scores_count_on_paper(counts, more, shape):
    sums = counts + more
    found = scoring.held_out_score(counts, sums, np.full(3, shape))
    for i in range(6):
        expected = sum(
            n * np.log((shape + sums[i, c] - 1) / (3 * shape + sums[i].sum() - 1))
            for c, n in enumerate(counts[i])
            if n
        )
        assert found[i] == pytest.approx(expected, rel=1e-12, abs=1e-12)


# Leaving a hole out ------------------------------------------------------------------------


def labelled(counts):
    return counts.sum(axis=0).astype(np.float64), counts[1].astype(np.float64)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("d", [1, 2, 3])
def test_trials_of_a_hole_are_left_out_together(d, metric):
    X, y = trials(300, d, seed=d)
    windows = Forest(d, metric).insert(Places(X.T.copy(), np.array([1 - y, y])))
    asked = Places(X[:9].T.copy(), np.array([1 - y, y])[:, :9])
    radii, hole, degrees = np.array([0.3, 0.7]), 0.1, (0, 1, 2)
    shapes = np.tile([2.0, 0.5], (9, 1))
    found = scoring.LocalScoring(labelled, degrees)(windows, asked, radii, hole, shapes)
    holes = [near(X, X[i], hole, metric) for i in range(9)]
    times = 300 / sum(out.sum() for out in holes)
    np.testing.assert_allclose(found.trials, [times * out.sum() for out in holes], rtol=1e-12)
    for i, w, k in itertools.product(range(9), range(2), degrees):
        out = holes[i]
        fit = least_squares(X, y, (~out).astype(float), X[i], radii[w], k, metric)
        share, n = worth(fit)
        chance = (0.5 + n * share) / (2.5 + n)
        won, lost = y[out].sum(), (1 - y[out]).sum()
        score = won * np.log(chance) + lost * np.log(1.0 - chance)
        assert found.score[i, w, k] == pytest.approx(times * score, rel=1e-8)
        leverage = 1.0 if fit is None else min(fit[1], 1.0)
        assert found.effective_parameters[i, w, k] == pytest.approx(
            times * out.sum() * leverage, rel=1e-8
        )


# Weights -----------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("seed", [0, 1])
def test_weights_are_the_heaviest_of_the_formula(d, seed):
    X, y = trials(50, d, seed)
    table = by_hand(X, y, np.ones(50), range(5 if d == 1 else 3), 50)
    table["weight"] = weighed(table, d)
    order = np.argsort(-table["weight"])
    enough = 1 + np.searchsorted(np.cumsum(table["weight"][order]), weighing.HEAVY)
    kept = table[order[: min(enough, weighing.HEAVIEST)]]
    kept["weight"] /= kept["weight"].sum()
    found = make(d, scale="range").fit(X, y).weights_
    assert found["weight"].sum() == pytest.approx(1.0, abs=1e-12)
    assert (np.diff(found["weight"]) <= 1e-9).all()
    assert_same_candidates(found, kept)


@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_weights_with_relevances_are_proportional_to_the_formula(d):
    X, y = trials(300, d, seed=2)
    kept = make(d).fit(X, y).weights_
    np.testing.assert_allclose(kept["weight"], weighed(kept, d), rtol=1e-9)
    assert len(kept) <= weighing.HEAVIEST
    assert (np.diff(kept["weight"]) <= 1e-9).all()


@pytest.mark.parametrize("degree", ["auto", 0, 1, 2])
@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("metric", METRICS)
def test_loo_is_the_best_candidate_whatever_it_costs(degree, d, metric):
    X, y = trials(40, d, seed=4, grid=12)
    n_places = len(np.unique(X, axis=0))
    table = by_hand(X, y, np.ones(40), [0 if degree == "auto" else degree], n_places, metric=metric)
    best = table[np.flatnonzero(table["score"] > table["score"].max() - 1e-7)[-1]]
    model = make(d, "loo", degree=degree, metric=metric).fit(X, y)
    assert model.bandwidth_ == pytest.approx(best["width"])
    assert model.weights_["score"] == pytest.approx(best["score"], abs=1e-7)
    assert model.weights_["weight"].tolist() == [1.0]
    assert model.weights_["degree"].tolist() == [best["degree"]]
    assert isinstance(model.posterior(X), Beta)


@pytest.mark.parametrize("degree", [0, 1, 2])
def test_auto_keeps_to_a_degree_that_is_given(degree):
    X, y = trials(60, 2)
    model = make(2, degree=degree, scale="range").fit(X, y)
    assert set(model.weights_["degree"]) == {degree}
    assert len(model.weights_) > 1


def test_of_windows_that_hold_the_same_trials_the_widest_is_taken():
    # Four corners: all widths below 1 hold one place, all up to the root of 2 hold three.
    X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=float).repeat(5, axis=0)
    y = np.repeat([0, 1, 1, 0], 5)
    model = make(2, "loo").fit(X, y)
    grid = bandwidth.candidates(np.ones(2), 2**0.5, 4)
    assert model.bandwidth_ == pytest.approx(grid[grid < 1].max())


def test_without_weighing_the_window_is_the_only_candidate():
    X, y = trials(50, 2)
    kept = make(2, 0.3, degree=1).fit(X, y).weights_
    assert kept["width"].tolist() == [0.3]
    assert kept["degree"].tolist() == [1]
    assert kept["weight"].tolist() == [1.0]
    assert kept["relevance"].tolist() == [[1.0, 1.0]]
    assert np.isnan(kept["score"]).all()


# The posterior -----------------------------------------------------------------------------


def assert_is_the_mixture(model, X, y, weight, queries, prior=(1.0, 1.0), metric="euclidean"):
    """Compare with local fits by hand of each candidate, mixed by `weights_`."""
    posterior, kept = model.posterior(queries), model.weights_
    assert isinstance(posterior, Mixture)
    alpha, beta = np.empty((2, len(queries), len(kept)))
    for i, q in enumerate(queries):
        for k, record in enumerate(kept):
            relevance, width = record["relevance"], float(record["width"])
            fit = least_squares(
                X * relevance, y, weight, q * relevance, width, int(record["degree"]), metric
            )
            share, n = worth(fit)
            alpha[i, k], beta[i, k] = prior[0] + n * share, prior[1] + n * (1 - share)
    np.testing.assert_allclose([posterior.alpha, posterior.beta], [alpha, beta], rtol=1e-7)
    assert_methods_are_those_of(posterior, kept["weight"], stats.beta(alpha, beta))


def assert_methods_are_those_of(posterior, weights, component):
    """Compare every method with SciPy's of the components."""
    m = len(posterior)
    mean = (weights * component.mean()).sum(axis=1)
    second = (weights * (component.var() + component.mean() ** 2)).sum(axis=1)
    np.testing.assert_allclose(posterior.mean(), mean, rtol=1e-7)
    np.testing.assert_allclose(posterior.var(), second - mean**2, rtol=1e-5, atol=1e-10)
    np.testing.assert_allclose(posterior.std() ** 2, posterior.var(), rtol=1e-12)
    for p in (0.1, 0.4, 0.75):
        below = (weights * component.cdf(p)).sum(axis=1)
        np.testing.assert_allclose(posterior.cdf(p), below, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(posterior.prob_above(p), 1 - below, rtol=1e-6, atol=1e-9)
        density = (weights * component.pdf(p)).sum(axis=1)
        np.testing.assert_allclose(posterior.pdf(p), density, rtol=1e-5, atol=1e-9)
    below = lambda p: (weights * component.cdf(p[:, None])).sum(axis=1)
    low, high = posterior.interval(0.9)
    np.testing.assert_allclose(below(low), 0.05, atol=1e-6)
    np.testing.assert_allclose(below(high), 0.95, atol=1e-6)
    np.testing.assert_allclose(below(posterior.ppf(0.3)), 0.3, atol=1e-6)
    tired = posterior.under(contexts.attenuated(0.5))
    np.testing.assert_allclose(tired.mean(), 0.5 * mean, rtol=1e-6)
    np.testing.assert_allclose(tired.ppf(0.3), 0.5 * posterior.ppf(0.3), rtol=1e-6)
    np.testing.assert_array_equal(posterior[1:].mean(), posterior.mean()[1:])
    assert posterior[0].mean() == posterior.mean()[0]
    drawn = posterior.sample(4000, random_state=0)
    assert drawn.shape == (4000, m)
    # Five standard errors.
    error = 5 * posterior.std() / 4000**0.5
    assert (np.abs(drawn.mean(axis=0) - posterior.mean()) < error).all()
    assert ((drawn >= 0) & (drawn <= 1)).all()


@pytest.mark.parametrize("other", [(2.0, 3.001), (2.001, 3.0015)], ids=["mean", "spread"])
def test_methods_of_other_distributions_are_told_apart(other):
    weights, law = np.array([1.0]), stats.beta(np.array([[2.0]]), np.array([[3.0]]))
    assert_methods_are_those_of(Beta([2.0], [3.0]), weights, law)
    with pytest.raises(AssertionError):
        assert_methods_are_those_of(Beta([other[0]], [other[1]]), weights, law)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_posterior_is_the_mixture_of_the_candidates(d, metric):
    X, y = trials(150, d, seed=d)
    weight = np.random.default_rng(1).choice([1.0, 2.0, 0.5], size=150)
    model = make(d, prior=(2.0, 0.5), metric=metric).fit(X, y, weight)
    queries = np.vstack(
        [X[:4], np.random.default_rng(2).uniform(size=(4, d)), np.full((1, d), 9.0)]
    )
    assert_is_the_mixture(model, X, y, weight, queries, (2.0, 0.5), metric)
    np.testing.assert_array_equal(
        model.predict_proba(queries)[:, 1], model.posterior(queries).mean()
    )


def test_several_relevances_are_mixed():
    X, y = trials(200, 2, seed=6, truth=lambda X: special.expit(4 * X[:, 0] + X[:, 1] - 2.5))
    model = make(2).fit(X, y)
    assert len(np.unique(model.weights_["relevance"], axis=0)) > 1
    assert_is_the_mixture(model, X, y, np.ones(200), X[:6])


def test_contexts_are_mixed_over_windows():
    X, y = trials(120, 1, seed=7)
    rng = np.random.default_rng(7)
    context = np.stack([rng.uniform(0, 0.2, 120), rng.uniform(0.8, 1.0, 120)], axis=1)
    model = make().fit(X, y, context=context)
    posterior, kept = model.posterior(X[:5]), model.weights_
    assert isinstance(posterior, Mixture)
    assert len(kept) > 1
    fixed = [
        make(1, float(width)).fit(X, y, context=context).posterior(X[:5]) for width in kept["width"]
    ]
    mix = lambda ask: sum(w * ask(p) for w, p in zip(kept["weight"], fixed, strict=True))
    mean = mix(lambda p: p.mean())
    np.testing.assert_allclose(posterior.mean(), mean, rtol=1e-9)
    second = mix(lambda p: p.var() + p.mean() ** 2)
    np.testing.assert_allclose(posterior.var(), second - mean**2, rtol=1e-6)
    np.testing.assert_allclose(posterior.cdf(0.6), mix(lambda p: p.cdf(0.6)), atol=1e-7)
    np.testing.assert_allclose(
        posterior.prob_above(0.6), mix(lambda p: p.prob_above(0.6)), atol=1e-7
    )
    np.testing.assert_allclose(posterior.pdf(0.6), mix(lambda p: p.pdf(0.6)), rtol=1e-6)
    low, high = posterior.interval(0.95)
    np.testing.assert_allclose(mix(lambda p: p.cdf(low)), 0.025, atol=1e-6)
    np.testing.assert_allclose(mix(lambda p: p.cdf(high)), 0.975, atol=1e-6)
    np.testing.assert_allclose(posterior.under((0.25, 0.75)).mean(), 0.25 + mean / 2, rtol=1e-9)
    assert posterior[2].mean() == pytest.approx(mean[2])
    drawn = posterior.sample(2000, random_state=1)
    assert (np.abs(drawn.mean(axis=0) - mean) < 5 * posterior.std() / 2000**0.5).all()
    np.testing.assert_allclose(model.predict_proba(X[:5])[:, 1], mean, rtol=1e-9)


# The same told differently -----------------------------------------------------------------


def assert_same_choice(a, b):
    """Windows, scores and weights are the same bits."""
    assert a.weights_.dtype == b.weights_.dtype
    assert a.weights_.tobytes() == b.weights_.tobytes()
    assert a.relevance_.tobytes() == b.relevance_.tobytes()
    assert (a.bandwidth_, a.n_trials_) == (b.bandwidth_, b.n_trials_)


def assert_same_answers(a, b, X):
    """The choice and the posterior at X and elsewhere are the same bits."""
    assert_same_choice(a, b)
    queries = np.vstack([X[:20], X[:20] / 2, np.full((1, X.shape[1]), 9.0)])
    ours, theirs = a.posterior(queries), b.posterior(queries)
    for ask in ("mean", "std"):
        assert getattr(ours, ask)().tobytes() == getattr(theirs, ask)().tobytes()


def assert_close_posteriors(a, b, X, queries=None, tolerance=1e-9):
    ours, theirs = a.posterior(X), b.posterior(X if queries is None else queries)
    np.testing.assert_allclose(ours.mean(), theirs.mean(), rtol=0, atol=tolerance)
    np.testing.assert_allclose(ours.std(), theirs.std(), rtol=0, atol=tolerance)
    np.testing.assert_allclose(ours.ppf(0.1), theirs.ppf(0.1), rtol=0, atol=1e3 * tolerance)


def test_choices_and_answers_that_differ_are_told_apart():
    X, y = trials(60)
    one, same, other = (make().fit(*data) for data in ((X, y), (X, y), (X, 1 - y)))
    for compare in (assert_same_answers, assert_close_posteriors):
        compare(one, same, X)
        with pytest.raises(AssertionError):
            compare(one, other, X)
    weights = one.weights_.copy()
    weights["weight"][0] += 1e-12
    same = SmoothBetaClassifier.of(dataclasses.replace(one.field_, weights=weights))
    with pytest.raises(AssertionError):
        assert_same_choice(one, same)


several = settings(max_examples=12)
experiments = st.tuples(
    st.integers(5, 250), st.integers(1, 3), st.integers(0, 10**6), st.sampled_from([None, 8, 64])
)


@several
@given(experiments, st.randoms(use_true_random=False))
def test_the_order_of_trials_cannot_be_seen(experiment, random):
    X, y = trials(*experiment[:3], grid=experiment[3])
    order = list(range(len(y)))
    random.shuffle(order)
    one, other = make(X.shape[1]).fit(X, y), make(X.shape[1]).fit(X[order], y[order])
    assert_same_answers(one, other, X)


@several
@given(experiments)
def test_two_fits_are_the_same_to_the_bit(experiment):
    X, y = trials(*experiment[:3], grid=experiment[3])
    one, other = make(X.shape[1]).fit(X, y), make(X.shape[1]).fit(X, y)
    assert_same_answers(one, other, X)
    assert one.posterior(X).ppf(0.2).tobytes() == other.posterior(X).ppf(0.2).tobytes()
    # And of one that knew something else before.
    assert_same_answers(make(X.shape[1]).fit(X**2, 1 - y).fit(X, y), one, X)


@several
@given(experiments, st.integers(0, 3))
def test_batches_that_double_the_trials_choose_as_one_fit(experiment, doublings):
    X, y = trials(*experiment[:3], grid=experiment[3])
    model = make(X.shape[1])
    cuts = [len(y) // 2 ** (doublings - i) for i in range(doublings)]
    for rows in np.split(np.arange(len(y)), cuts):
        if rows.size:
            model.partial_fit(X[rows], y[rows], classes=[0, 1])
    assert_same_answers(model, make(X.shape[1]).fit(X, y), X)


@pytest.mark.parametrize("d", [1, 2])
def test_batches_held_apart_choose_as_one_fit(d):
    X, y = trials(5000, d, seed=1)
    model = make(d, scale="range").fit(X[:1100], y[:1100])
    # An index of its own, larger than the one before.
    model.partial_fit(X[1100:], y[1100:])
    assert len(model.windows_.indexes) == 2
    whole = make(d, scale="range").fit(X, y)
    assert_same_choice(model, whole)
    assert_close_posteriors(model, whole, X[:50], tolerance=1e-11)


@several
@given(experiments, st.sampled_from(["auto", "loo"]))
def test_weights_repeats_and_counts_choose_the_same(experiment, rule):
    X, y = trials(*experiment[:3], grid=experiment[3])
    d, t = X.shape[1], len(y)
    number = np.random.default_rng(t).integers(1, 4, size=t)
    repeated = make(d, rule).fit(np.repeat(X, number, axis=0), np.repeat(y, number))
    weighted = make(d, rule).fit(X, y, sample_weight=number.astype(float))
    counted = make(d, rule).fit_counts(X, y * number, number)
    for other in (weighted, counted):
        assert_same_answers(other, repeated, X)


@several
@given(experiments, st.sampled_from(["auto", "loo"]))
def test_naming_failures_instead_mirrors_the_posterior(experiment, rule):
    X, y = trials(*experiment[:3], grid=experiment[3])
    d = X.shape[1]
    one, other = (make(d, rule, prior=(1.5, 1.5)).fit(X, outcome) for outcome in (y, 1 - y))
    np.testing.assert_allclose(other.posterior(X).mean(), 1 - one.posterior(X).mean(), atol=1e-7)
    np.testing.assert_allclose(other.posterior(X).std(), one.posterior(X).std(), atol=1e-7)
    low, high = one.posterior(X).interval(0.9)
    np.testing.assert_allclose(other.posterior(X).interval(0.9), (1 - high, 1 - low), atol=1e-6)


@several
@given(experiments, st.lists(st.integers(-40, 40), min_size=3, max_size=3), st.integers(-3, 3))
def test_units_a_power_of_two_apart_change_no_bit(experiment, powers, shift):
    t, d, seed, _ = experiment
    X, y = trials(t, d, seed, grid=1024)
    unit = 2.0 ** np.array(powers[:d])
    moved = (X + shift) * unit
    one, other = SmoothBetaClassifier().fit(X, y), SmoothBetaClassifier().fit(moved, y)
    assert_same_choice(one, other)
    queries = X[:20] / 2 + 0.25
    ours, theirs = one.posterior(queries), other.posterior((queries + shift) * unit)
    for ask in ("mean", "std"):
        assert getattr(ours, ask)().tobytes() == getattr(theirs, ask)().tobytes()


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_features_may_come_in_any_order(d, seed):
    truth = lambda X: 0.5 + 0.4 * np.sin(12 * X[:, 0]) * (0.3 + 0.7 * X[:, 1])
    X, y = trials(600, d, seed, truth)
    one, other = make(d).fit(X, y), make(d).fit(X[:, ::-1], y)
    apart = one.posterior(X).mean() - other.posterior(X[:, ::-1]).mean()
    if d == 2:
        np.testing.assert_array_equal(other.relevance_, one.relevance_[::-1])
        assert np.abs(apart).max() < 1e-9
    # Of three features, which is tried first may lead the climb to another top, about as high.
    assert one.relevance_[0] == other.relevance_[-1] == 1.0
    assert (one.relevance_[-1] < 1.0) & (other.relevance_[0] < 1.0)
    assert np.sqrt(np.mean(apart**2)) < 0.5 * error(one, truth, d)


def halves(X, y, **options):
    cut = len(y) // 2
    return [
        make(X.shape[1], **options).partial_fit(X[rows], y[rows], classes=[0, 1])
        for rows in (slice(0, cut), slice(cut, None))
    ]


@several
@given(experiments)
def test_two_halves_merged_choose_as_one_fit(experiment):
    X, y = trials(*experiment[:3], grid=experiment[3])
    one, other = halves(X, y)
    assert_same_answers(one.merge(other), make(X.shape[1]).fit(X, y), X)


def test_halves_that_found_other_features_relevant_merge():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(1000, 2))
    y = rng.uniform(size=1000) < 0.5 + 0.45 * np.sin(9 * X[np.arange(1000), np.arange(1000) // 500])
    one, other = halves(X, y.astype(int))
    assert one.relevance_[1] < one.relevance_[0]
    assert other.relevance_[0] < other.relevance_[1]
    before = other.posterior(X[:9]).mean()
    whole = make(2).fit(X, y.astype(int))
    merged = copy.deepcopy(one).merge(other)
    assert_same_answers(merged, whole, X)
    assert_same_answers(copy.deepcopy(other).merge(one), whole, X)
    # The other stays as it was.
    np.testing.assert_array_equal(other.posterior(X[:9]).mean(), before)


def test_a_model_merged_with_a_smaller_one_keeps_its_windows():
    X, y = trials(500, 2)
    large = make(2).fit(X[:400], y[:400])
    small = make(2).partial_fit(X[400:], y[400:], classes=[0, 1])
    kept = large.weights_
    merged = large.merge(small)
    np.testing.assert_array_equal(merged.weights_["relevance"], kept["relevance"])
    np.testing.assert_array_equal(merged.weights_["weight"], kept["weight"])
    streamed = make(2).fit(X[:400], y[:400]).partial_fit(X[400:], y[400:])
    assert_same_choice(merged, streamed)


# Relevance ---------------------------------------------------------------------------------


def error(model, truth, d, seed=99):
    queries = np.random.default_rng(seed).uniform(0.02, 0.98, size=(400, d))
    found = model.predict_proba(queries)[:, 1]
    return np.sqrt(np.mean((found - truth(queries)) ** 2))


@pytest.fixture(scope="module")
def irrelevant():
    """Return, for some seeds, models without the column that does not matter, with it, and both."""
    models = []
    for seed in range(3):
        X, y = trials(2000, 3, seed)
        short = make(1).fit(X[:, :1], y)
        models.append((short, make(3).fit(X, y), make(3, scale="range").fit(X, y)))
    return models


def test_features_that_do_not_matter_have_little_relevance(irrelevant):
    for _, found, _ in irrelevant:
        assert found.relevance_[0] == 1.0
        assert (found.relevance_[1:] <= 1 / 16).all()


def test_features_that_do_not_matter_cost_little(irrelevant):
    alone, found, blind = (
        np.mean([error(model, wave, model.n_features_in_) for model in models])
        for models in zip(*irrelevant, strict=True)
    )
    assert found < 1.6 * alone
    assert blind > 1.5 * found


def test_by_range_every_feature_is_as_relevant(irrelevant):
    for short, _, blind in irrelevant:
        assert blind.relevance_.tolist() == [1.0] * 3
        assert (blind.weights_["relevance"] == 1.0).all()
        assert short.relevance_.tolist() == [1.0]


@pytest.mark.parametrize(
    "options",
    [{"scale": s} for s in ("range", "std", None, [1.0, 2.0])]
    + [{"bandwidth": b} for b in (0.3, "theory", "loo")],
    ids=repr,
)
def test_features_are_as_relevant_unless_asked(options):
    X, y = trials(300, 2)
    model = make(2, **options).fit(X, y)
    assert model.relevance_.tolist() == [1.0, 1.0]
    assert (model.weights_["relevance"] == 1.0).all()


@pytest.mark.parametrize("rule", [0.1, "theory", "loo", "auto"])
def test_ard_learns_relevances_for_any_width(rule):
    X, y = trials(2000, 2, seed=1)
    model = make(2, rule, scale="ard", lipschitz=2.0).fit(X, y)
    assert model.relevance_[0] == 1.0
    assert model.relevance_[1] <= 1 / 4
    if rule != "auto":
        assert len(model.weights_) == 1
    if rule == 0.1:
        assert model.bandwidth_ == 0.1
    if rule == "theory":
        assert model.bandwidth_ == pytest.approx((4 * 2000) ** (-1 / 4))
    blind = make(2, rule, scale="range", lipschitz=2.0).fit(X, y)
    assert error(model, wave, 2) < error(blind, wave, 2)


def test_by_theory_windows_of_learned_relevance_shrink_with_every_trial():
    X, y = trials(1000, 2, seed=2)
    model = make(2, "theory", scale="ard", lipschitz=4.0).fit(X[:900], y[:900])
    relevance = model.relevance_
    model.partial_fit(X[900:], y[900:])
    assert model.bandwidth_ == pytest.approx((16 * 1000) ** (-1 / 4))
    assert relevance.min() < 1.0
    np.testing.assert_array_equal(model.relevance_, relevance)


def test_windows_of_a_given_width_count_in_relevant_units():
    X, y = trials(500, 2, seed=2)
    model = make(2, 0.25, scale="ard").fit(X, y)
    posterior = model.posterior(X[:20])
    for i in range(20):
        inside = near(X * model.relevance_, X[i] * model.relevance_, 0.25)
        assert posterior.alpha[i] == 1 + y[inside].sum()
        assert posterior.beta[i] == 1 + (1 - y[inside]).sum()


def test_three_classes_have_relevances():
    rng = np.random.default_rng(3)
    X = rng.uniform(size=(1500, 2))
    y = np.minimum(rng.integers(0, 3, size=1500), (6 * X[:, 0]).astype(int) % 3)
    model = make(2).fit(X, y)
    assert model.relevance_[0] == 1.0
    assert model.relevance_[1] <= 1 / 4
    queries, scaled = X[:20] * model.relevance_, X * model.relevance_
    for i, q in enumerate(queries):
        counts = np.bincount(y[near(scaled, q, model.bandwidth_)], minlength=3)
        np.testing.assert_array_equal(model.posterior(X[i : i + 1]).alpha, [1 + counts])


def test_contexts_have_relevances():
    X, y = trials(1200, 2, seed=4)
    rng = np.random.default_rng(4)
    y = y | (rng.uniform(size=1200) < 0.2)
    model = make(2).fit(X, y, context=contexts.guess_lapse(guess=0.2))
    assert model.relevance_[0] == 1.0
    assert model.relevance_[1] <= 1 / 4
    assert error(model, wave, 2) < 0.08


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("seed", [0, 1])
def test_relevances_are_powers_of_four_the_highest_one(d, seed):
    X, y = trials(400, d, seed)
    for relevance in make(d).fit(X, y).weights_["relevance"]:
        powers = np.log2(relevance) / 2
        np.testing.assert_array_equal(powers, np.rint(powers))
        assert relevance.max() == 1.0
        assert relevance.min() >= 4.0**-5


@pytest.mark.usefixtures("everything")
@pytest.mark.parametrize("seed", [0, 1])
def test_no_step_from_the_best_relevance_gains_much(seed):
    X, y = trials(70, 2, seed)
    kept = make(2).fit(X, y).weights_

    def value(relevance):
        mine = kept[(kept["relevance"] == relevance).all(axis=1)]
        return (
            special.logsumexp(mine["score"] - mine["effective_parameters"] / 4)
            if len(mine)
            else None
        )

    def is_top(relevance):
        """Whether all steps from here within the limits were tried, and none gained 1."""
        for axis, factor in itertools.product(range(2), (4.0, 0.25)):
            step = relevance * np.where(np.arange(2) == axis, factor, 1.0)
            step /= step.max()
            if step.min() >= 4.0**-5 and (
                value(step) is None or value(step) > value(relevance) + 1.0
            ):
                return False
        return True

    tried = np.unique(kept["relevance"], axis=0)
    tops = [value(relevance) for relevance in tried if is_top(relevance)]
    assert tops
    assert max(tops) >= max(value(relevance) for relevance in tried) - 1.0


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_constant_feature_has_no_say(seed):
    X, y = trials(200, 2, seed)
    wider = np.insert(X, 1, 0.5, axis=1)
    model = SmoothBetaClassifier().fit(wider, y)
    assert_sane(model, wider)
    plain = SmoothBetaClassifier().fit(X, y)
    np.testing.assert_array_equal(model.relevance_[[0, 2]], plain.relevance_)
    assert_close_posteriors(model, plain, wider, X)
    elsewhere = np.insert(X, 1, 7.5, axis=1)
    np.testing.assert_array_equal(model.predict_proba(elsewhere), model.predict_proba(wider))
    # No windows are weighed twice, in other units.
    kept = model.weights_
    real = kept["relevance"][:, [0, 2]]
    unit = real.max(axis=1)
    windows = np.column_stack([real / unit[:, None], kept["width"] / unit, kept["degree"]])
    assert len(np.unique(windows.round(9), axis=0)) == len(kept)


# Accuracy ----------------------------------------------------------------------------------

FUNCTIONS = {
    "wave": (1, wave),
    "slope": (1, lambda X: 0.1 + 0.8 * X[:, 0]),
    "bump": (1, lambda X: 0.2 + 0.6 * np.exp(-(((X[:, 0] - 0.5) / 0.12) ** 2))),
    "hill": (2, lambda X: special.expit(3 - 12 * ((X - 0.5) ** 2).sum(axis=1))),
    "ridge": (2, lambda X: special.expit(5 * X[:, 0] - 3 * X[:, 1])),
}
SEEDS = range(6)


@pytest.fixture(scope="module")
def runs():
    """Return truths, means, deviations, intervals and loo's means, by function and seed."""
    found = {}
    for name, (d, truth) in FUNCTIONS.items():
        for seed in SEEDS:
            X, y = trials(500, d, 100 + seed, truth)
            queries = np.random.default_rng(seed).uniform(size=(100, d))
            posterior = make(d).fit(X, y).posterior(queries)
            alone = make(d, "loo").fit(X, y).posterior(queries)
            found[name, seed] = truth(queries), posterior, *posterior.interval(0.95), alone.mean()
    return found


def test_intervals_cover_as_often_as_they_say(runs):
    covered = [np.mean((low <= p) & (p <= high)) for p, _, low, high, _ in runs.values()]
    # Errors of one fit hang together: it has about six degrees of freedom, so that 30 fits say
    # as much as 180 independent intervals. Four deviations of their share, below and above.
    noise = 4 * np.sqrt(0.95 * 0.05 / (6 * len(covered)))
    assert 0.95 - noise < np.mean(covered) < min(0.95 + noise, 0.999)


def test_deviations_are_as_large_as_errors(runs):
    errors = np.mean([np.mean((post.mean() - p) ** 2) for p, post, *_ in runs.values()])
    spread = np.mean([np.mean(post.var()) for _, post, *_ in runs.values()])
    assert 0.6 < np.sqrt(errors / spread) < 1.4


@pytest.mark.parametrize("name", FUNCTIONS)
def test_mixtures_have_less_error_than_the_best_width(runs, name):
    of = lambda mean, p: np.sqrt(np.mean((mean - p) ** 2))
    pairs = [
        (of(post.mean(), p), of(alone, p))
        for (function, _), (p, post, _, _, alone) in runs.items()
        if function == name
    ]
    mixed, single = np.mean(pairs, axis=0)
    assert mixed < single


# Samples -----------------------------------------------------------------------------------

points = hnp.arrays(
    np.float64,
    st.tuples(st.integers(1, 3), st.integers(1, 50)),
    elements=st.floats(-1e3, 1e3),
)


def chosen(axes, share):
    return weighing.below(weighing.hashes(axes), share)


@given(points, st.floats(0.01, 0.99), st.randoms(use_true_random=False))
def test_a_place_is_chosen_wherever_it_stands(axes, share, random):
    order = list(range(axes.shape[1]))
    random.shuffle(order)
    mask = chosen(axes, share)
    np.testing.assert_array_equal(chosen(axes[:, order].copy(), share), mask[order])
    half = axes.shape[1] // 2
    np.testing.assert_array_equal(chosen(axes[:, half:].copy(), share), mask[half:])


@given(points, st.floats(0.01, 0.99), st.floats(0.01, 1.0))
def test_a_larger_sample_holds_the_smaller(axes, one, other):
    small, large = (chosen(axes, share) for share in sorted([one, other]))
    assert not (small & ~large).any()


def test_minus_zero_is_zero_to_the_sample():
    zeros, minus = np.zeros((3, 1)), -np.zeros((3, 1))
    shares = np.linspace(0.01, 0.99, 99)
    found = [chosen(zeros, share)[0] for share in shares]
    assert found == [chosen(minus, share)[0] for share in shares]
    assert set(found) == {False, True}


@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("grid", [False, True])
@pytest.mark.parametrize("share", [0.01, 0.3])
def test_the_sample_has_about_the_share_asked_for(d, grid, share):
    axes = np.random.default_rng(0).uniform(size=(d, 100_000))
    if grid:
        axes[0] = np.arange(100_000) / 128
    # Five standard deviations of a fair draw.
    assert chosen(axes, share).mean() == pytest.approx(
        share, abs=5 * (share * (1 - share) / 100_000) ** 0.5
    )


def test_a_share_of_one_or_more_is_all():
    axes = np.random.default_rng(1).uniform(size=(2, 1000))
    assert chosen(axes, 1.0).all()
    assert chosen(axes, 7.0).all()


def sampling(monkeypatch, first, large, queries, most):
    for name, value in (("FIRST", first), ("LARGE", large), ("MOST", most)):
        monkeypatch.setattr(weighing, name, value)
    for name, value in (("QUERIES", queries), ("HOLES", queries)):
        monkeypatch.setattr(scoring, name, value)


STAGES = {
    "two stages": (100, 10_000, 10_000, 10_000),
    "few are asked": (100, 10_000, 300, 10_000),
    "holes": (100, 800, 300, 10_000),
    "a part": (100, 10_000, 300, 1500),
    "holes in a part": (60, 480, 250, 1500),
}


@functools.cache
def sampled_or_not(d, degree, *sizes):
    """Return a model of 3,000 trials, weighed on samples of these sizes."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        sampling(monkeypatch, *sizes)
        return make(d, degree=degree, scale="range").fit(*trials(3000, d, seed=8))


@pytest.mark.parametrize("stages", STAGES)
@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("degree", [0, 1])
def test_samples_find_about_the_width_that_all_trials_do(stages, d, degree):
    full = sampled_or_not(d, degree, *(10_000,) * 4)
    sampled = sampled_or_not(d, degree, *STAGES[stages])
    centre = lambda kept: kept["weight"] @ np.log2(kept["width"])
    assert abs(centre(sampled.weights_) - centre(full.weights_)) < 1.0
    assert error(sampled, wave, d) < 1.5 * error(full, wave, d)


@pytest.mark.parametrize("stages", STAGES)
def test_samples_find_the_features_that_matter(stages, monkeypatch):
    X, y = trials(3000, 2, seed=9)
    sampling(monkeypatch, *STAGES[stages])
    model = make(2).fit(X, y)
    assert model.relevance_[0] == 1.0
    assert model.relevance_[1] <= 1 / 4
    assert error(model, wave, 2) < 0.06


@pytest.mark.parametrize("stages", STAGES)
def test_samples_do_not_depend_on_the_order(stages, monkeypatch):
    X, y = trials(2500, 2, seed=10)
    sampling(monkeypatch, *STAGES[stages])
    order = np.random.default_rng(0).permutation(2500)
    assert_same_choice(make(2).fit(X, y), make(2).fit(X[order], y[order]))


@pytest.mark.parametrize("d", [1, 2])
def test_windows_weighed_on_a_part_shrink_as_theory_has_it(d, monkeypatch):
    X, y = trials(4000, d, seed=12)
    part = chosen(X.T.copy(), 500 / 4000)
    alone = make(d, scale="range").fit(X[part], y[part]).weights_
    sampling(monkeypatch, 500, 10_000, 10_000, 500)
    model = make(d, scale="range").fit(X, y)
    for name in ("degree", "score", "effective_parameters", "weight"):
        np.testing.assert_array_equal(model.weights_[name], alone[name])
    expected = alone["width"] * 8.0 ** (-1 / (2 * alone["degree"] + 2 + d))
    expected = np.where(alone["width"] > 0.999 * d**0.5, alone["width"], expected)
    np.testing.assert_allclose(model.weights_["width"], expected, rtol=1e-12)


def test_classes_and_contexts_are_weighed_on_samples(monkeypatch):
    X, y = trials(2500, 1, seed=11)
    third = np.where(y & (np.arange(2500) % 2), 2, y)
    context = contexts.background(np.random.default_rng(11).uniform(0, 0.3, size=2500))
    fits = (
        lambda: make(1).fit(X, third).bandwidth_,
        lambda: make(1, scale="range").fit(X, y, context=context).bandwidth_,
    )
    for fit in fits:
        sampling(monkeypatch, *(10_000,) * 4)
        full = fit()
        sampling(monkeypatch, *STAGES["a part"])
        assert 0.49 < fit() / full < 2.01


# Edges -------------------------------------------------------------------------------------


def assert_sane(model, queries):
    """Nothing is NaN, nothing leaves [0, 1]; pytest makes errors of warnings."""
    posterior = model.posterior(queries)
    low, high = posterior.interval(0.95)
    assert ((low >= 0.0) & (low <= high) & (high <= 1.0)).all()
    assert ((posterior.mean() >= low) & (posterior.mean() <= high)).all()
    assert (posterior.var() > 0.0).all()
    assert np.isfinite(posterior.pdf(0.5)).all()
    assert np.isfinite(model.weights_["weight"]).all()
    assert model.weights_["weight"].sum() == pytest.approx(1.0)
    assert (model.weights_["width"] > 0.0).all()
    assert np.isfinite(model.relevance_).all()
    proba = model.predict_proba(queries)
    assert ((proba >= 0.0) & (proba <= 1.0)).all()


def line(t):
    return np.linspace(0.0, 1.0, t)[:, None]


EDGES = {
    "one trial": np.zeros((1, 2)),
    "two trials": np.array([[0.0, 1.0], [1.0, 0.0]]),
    "two at one point": np.zeros((2, 2)),
    "three trials": np.array([[0.0], [0.5], [1.0]]),
    "all points equal": np.full((300, 3), 0.1),
    "duplicates only": np.repeat([[0.0, 0.0], [1.0, 0.5], [0.5, 1.0]], 40, axis=0),
    "two places": np.repeat([[0.0], [1.0]], 50, axis=0),
    "collinear features": line(200) * [[1.0, -3.0, 0.5]],
    "one constant feature": np.column_stack([line(200), np.full(200, 7.0)]),
    "one huge feature": np.column_stack([line(100) * 1e300, line(100)[::-1] * 1e-300]),
    "far from zero": line(100) + 1e12,
    "huge": line(100) * 1e300,
    "tiny": line(100) * 1e-300,
    "an outlier": np.append(line(100), [[1e9]], axis=0),
    "a cluster": np.append(line(100) * 1e-12, [[1.0]], axis=0),
    "whole numbers": np.arange(60.0).reshape(30, 2) % 7,
}
RULES = ["auto", "loo"]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("outcomes", ["equal", "alternating", "random"])
@pytest.mark.parametrize("edge", EDGES)
def test_odd_data_give_no_nonsense(edge, outcomes, rule):
    X = EDGES[edge]
    rng = np.random.default_rng(0)
    y = {
        "equal": np.ones(len(X), dtype=int),
        "alternating": np.arange(len(X)) % 2,
        "random": rng.integers(0, 2, size=len(X)),
    }[outcomes]
    model = SmoothBetaClassifier(rule).partial_fit(X, y, classes=[0, 1])
    assert_sane(model, np.vstack([X, X * 0.5, X.mean(axis=0, keepdims=True)]))
    if outcomes == "equal":
        assert (model.posterior(X).mean() > 0.5).all()


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    "edge", ["one trial", "two at one point", "all points equal", "duplicates only"]
)
@pytest.mark.parametrize("kind", ["three classes", "contexts"])
def test_odd_data_of_other_kinds_give_no_nonsense(edge, rule, kind):
    X = EDGES[edge]
    model = SmoothBetaClassifier(rule)
    if kind == "contexts":
        model.partial_fit(X, np.arange(len(X)) % 2, [0, 1], context=(0.2, 0.9))
        assert_sane(model, X[:5])
    else:
        model.partial_fit(X, np.arange(len(X)) % 3, [0, 1, 2])
        assert np.isfinite(model.posterior(X).mean()).all()


@pytest.mark.parametrize("rule", [0.25, *RULES])
@pytest.mark.parametrize("step", [5e-324, 1e-310, 1e-300])
def test_points_next_to_nothing_apart_give_no_nonsense(rule, step):
    X = np.array([[0.0, 0.0], [step, 0.0], [0.0, step]])
    assert_sane(make(2, rule).fit(X, [0, 1, 1]), X)


@pytest.mark.parametrize("scale", ["auto", "range", "ard", "std", None])
def test_one_trial_is_enough_in_any_units(scale):
    model = SmoothBetaClassifier(scale=scale).partial_fit([[3.0, 4.0]], [1], classes=[0, 1])
    assert model.posterior([[3.0, 4.0]]).mean() == pytest.approx(2 / 3)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("weight", [1e-9, 1e-3, 1e6, 1e12])
def test_odd_weights_give_no_nonsense(weight, rule):
    X, y = trials(60, 2, seed=12, grid=8)
    assert_sane(make(2, rule).fit(X, y, np.full(60, weight)), X)
    uneven = np.where(np.arange(60) % 3 == 0, weight, 1.0)
    assert_sane(make(2, rule).fit(X, y, uneven), X)


@pytest.mark.parametrize("d", [4, 6, 7, 12])
def test_many_features_have_lower_degrees(d):
    X, y = trials(150, d, seed=13)
    model = make(d).fit(X, y)
    assert model.weights_["degree"].max() <= (1 if d <= 6 else 0)
    assert_sane(model, X[:20])
    at = np.random.default_rng(13).uniform(size=(20, d))
    assert_sane(model, at)


@pytest.mark.parametrize(("d", "degree", "highest"), [(4, 2, 1), (6, 2, 1), (7, 1, 0), (12, 2, 0)])
@pytest.mark.parametrize("rule", [0.5, "auto", "loo", "theory"])
def test_degrees_beyond_the_dimensions_are_refused(d, degree, highest, rule):
    X, y = trials(30, d)
    message = f"degree: found {degree}; at most {highest} is possible with {d} features, where"
    with pytest.raises(ValueError, match=message):
        make(d, rule, degree=degree).fit(X, y)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_refused(bad):
    X, y = trials(30, 2)
    model = make(2, bounds=None).fit(X, y)
    before = model.weights_.tobytes()
    worse = X.copy()
    worse[3, 1] = bad
    for learn in (model.fit, model.partial_fit):
        with pytest.raises(ValueError, match="X row 3, column 1"):
            learn(worse, y)
    with pytest.raises(ValueError, match="X row 3, column 1"):
        model.posterior(worse)
    assert model.weights_.tobytes() == before


# Streams -----------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("d", [1, 2])
def test_windows_are_weighed_anew_as_trials_double(d, rule):
    X, y = trials(400, d, seed=14)
    model = make(d, rule, scale="range").fit(X[:100], y[:100])
    kept = model.weights_
    widest = kept["width"] >= d**0.5 * (1 - 1e-9)
    for stop in (101, 130, 199):
        model.partial_fit(X[int(model.n_trials_) : stop], y[int(model.n_trials_) : stop])
        now = model.weights_
        for name in ("relevance", "degree", "score", "effective_parameters", "weight"):
            np.testing.assert_array_equal(now[name], kept[name])
        rate = -1.0 / (2 * kept["degree"] + 2 + d)
        # Sixteen steps while trials double: the last that is not beyond them.
        growth = max(step for step in 2.0 ** (np.arange(17) / 16) if step <= stop / 100)
        expected = np.where(widest, kept["width"], kept["width"] * growth**rate)
        np.testing.assert_allclose(now["width"], expected, rtol=1e-12)
        assert model.bandwidth_ == now["width"][0]
    for stop in (200, 400):
        model.partial_fit(X[int(model.n_trials_) : stop], y[int(model.n_trials_) : stop])
        assert_same_choice(model, make(d, rule, scale="range").fit(X[:stop], y[:stop]))


def test_windows_that_hold_everything_stay_so():
    # Nothing to learn from the place: windows that hold all are among the best.
    X, y = trials(100, 2, seed=15, truth=lambda X: np.full(len(X), 0.3))
    model = make(2, degree=0, scale="range").fit(X, y)
    whole = np.isclose(model.weights_["width"], 2**0.5)
    assert whole.any()
    model.partial_fit(X[:60], y[:60])
    np.testing.assert_allclose(model.weights_["width"][whole], 2**0.5)
    assert (model.weights_["width"][~whole] < 2**0.5).all()


def test_the_posterior_of_a_stream_is_that_of_its_windows():
    X, y = trials(180, 2, seed=16)
    model = make(2).fit(X[:100], y[:100]).partial_fit(X[100:], y[100:])
    assert model.n_trials_ == 180
    assert_is_the_mixture(model, X, y, np.ones(180), X[:5])


@pytest.mark.parametrize("forest_size", [None, 16])
def test_a_stream_of_many_batches_asks_all_of_its_trials(forest_size, monkeypatch):
    from betafield.windows import forest

    if forest_size:
        monkeypatch.setattr(forest, "SMALL", forest_size)
        monkeypatch.setattr(forest, "WAITING_SIZE", 8)
    X, y = trials(256, 2, seed=17, grid=16)
    model = make(2)
    for start in range(0, 256, 32):
        model.partial_fit(X[start : start + 32], y[start : start + 32], classes=[0, 1])
    whole = make(2).fit(X, y)
    # Weighed last when t had doubled to 256.
    assert_same_choice(model, whole)
    assert_close_posteriors(model, whole, X[:30], tolerance=1e-10)


def test_places_in_several_indexes_are_one_to_the_choice():
    X, y = trials(1500, 2, seed=18)
    again = np.random.default_rng(18).integers(0, 2, size=1499)
    twice = np.full(1499, 2.0)
    streamed = make(2).fit(X, y).partial_fit(X[:-1], again, sample_weight=twice)
    whole = make(2).fit(
        np.vstack([X, X[:-1]]), np.append(y, again), np.append(np.ones(1500), twice)
    )
    assert_same_choice(streamed, whole)


@pytest.mark.parametrize("rule", RULES)
def test_a_batch_that_fails_leaves_the_model_as_it_was(rule):
    X, y = trials(200, 2, seed=19)
    model = make(2, rule).fit(X[:100], y[:100])
    before = dict(vars(model))
    answers = model.predict_proba(X).tobytes()
    failures = [
        (X[100:] + 5.0, y[100:], {}),
        (X[100:], y[100:] + 7, {}),
        (X[100:], y[100:], {"sample_weight": np.full(100, -1.0)}),
        (X[100:], y[100:], {"context": (0.5, 1.5)}),
    ]
    for points, outcomes, options in failures:
        with pytest.raises(ValueError):  # noqa: PT011 (test_bad_input has the words)
            model.partial_fit(points, outcomes, **options)
        assert {k: id(v) for k, v in vars(model).items()} == {k: id(v) for k, v in before.items()}
        assert model.predict_proba(X).tobytes() == answers


def test_a_prior_that_fails_while_weighing_leaves_the_model_as_it_was():
    X, y = trials(200, 1, seed=20)
    model = make(1, prior=lambda P: (1.0 - (P[:, 0] > 2), 1.0)).fit(X[:100], y[:100])
    before = model.weights_.tobytes()
    model.set_params(prior=lambda P: (0.0 * P[:, 0], 1.0))
    with pytest.raises(ValueError, match="prior row 0"):
        model.partial_fit(X[100:], y[100:])
    assert model.n_trials_ == 100
    assert model.weights_.tobytes() == before


def test_contexts_that_come_later_do_not_blur_what_is_known():
    X, y = trials(1000, 1, seed=21)
    model = make().fit(X, y)
    before = error(model, wave, 1)
    assert before < 0.05
    # Next to undistorted, and one in a thousand: as good as the windows of degree 0 can be.
    model.partial_fit([[0.5]], [1], context=(0.0, 0.999))
    flat = make(1, degree=0).fit(X, y)
    assert error(model, wave, 1) < 1.5 * error(flat, wave, 1)
    # Merging brings contexts too.
    one, other = make().fit(X[:700], y[:700]), make().fit(X[700:], y[700:], context=(0.0, 0.999))
    assert error(one.merge(other), wave, 1) < 1.5 * error(flat, wave, 1)


@pytest.mark.parametrize(
    "asked",
    [{"degree": 1}, {"bandwidth": "loo"}, {"scale": "range"}, {"bandwidth": 0.2, "scale": "ard"}],
    ids=repr,
)
def test_other_options_are_obeyed_in_the_next_batch(asked):
    X, y = trials(300, 2, seed=25)
    model = make(2).fit(X[:250], y[:250])
    model.set_params(**asked).partial_fit(X[250:], y[250:])
    assert_same_answers(model, make(2, **asked).fit(X, y), X)
    # And back.
    model.set_params(**make(2).get_params()).partial_fit(X[:1], y[:1])
    whole = make(2).fit(np.append(X, X[:1], axis=0), np.append(y, y[:1]))
    assert_same_answers(model, whole, X)


@pytest.mark.parametrize("d", [1, 2])
def test_copies_know_the_same_and_go_their_own_way(d):
    X, y = trials(300, d, seed=22)
    model = make(d).fit(X[:140], y[:140])
    queries = X[140:]
    # Asked before, so that windows of other relevances are held too.
    before = model.predict_proba(queries).tobytes()
    for twin in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), copy.copy(model)):
        assert_same_choice(twin, model)
        assert twin.predict_proba(queries).tobytes() == before
        twin.partial_fit(X[140:], y[140:])
        assert model.predict_proba(queries).tobytes() == before
        assert_same_choice(twin, make(d).fit(X, y))
    fresh = clone(model)
    assert set(vars(fresh)) == set(fresh.get_params())
    assert_same_choice(fresh.fit(X[:140], y[:140]), model)


def test_threads_that_ask_at_once_get_the_same_answers():
    X, y = trials(800, 2, seed=23, truth=lambda X: special.expit(4 * X[:, 0] + X[:, 1] - 2.5))
    expected = make(2).fit(X, y).predict_proba(X).tobytes()
    for n_jobs in (None, 2):
        model = make(2, n_jobs=n_jobs).fit(X, y)
        assert len(np.unique(model.weights_["relevance"], axis=0)) > 1
        barrier = threading.Barrier(4)

        def ask(_, model=model, barrier=barrier):
            barrier.wait()
            return model.predict_proba(X).tobytes()

        with ThreadPoolExecutor(4) as pool:
            assert set(pool.map(ask, range(4))) == {expected}


def test_asking_changes_nothing_that_was_learned():
    X, y = trials(300, 2, seed=24)
    model = make(2).fit(X, y)
    before = {name: id(value) for name, value in vars(model).items()}
    held = model.weights_.tobytes()
    model.posterior(X), model.predict(X)
    assert {name: id(value) for name, value in vars(model).items()} == before
    assert model.weights_.tobytes() == held


# Trials gathered in cells ------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 2])
def test_many_trials_are_asked_as_if_in_the_middles_of_cells(d, monkeypatch):
    X, y = trials(6000, d, seed=26)
    model = make(d, scale="range", bandwidth=0.4, degree=1).fit(X, y)
    queries = X[:15] * 0.9 + 0.03
    apart = model.posterior(queries)
    monkeypatch.setattr(local, "GATHERED", 1000)
    model = make(d, scale="range", bandwidth=0.4, degree=1).fit(X, y)
    posterior = model.posterior(queries)
    cell = 0.4 / local.CELLS ** (1 / (d + 1))
    moved = (np.floor(X / cell) + 0.5) * cell
    for i, q in enumerate(queries):
        share, n = worth(least_squares(moved, y, np.ones(len(y)), q, 0.4, 1))
        assert posterior.alpha[i] == pytest.approx(1 + n * share, rel=1e-7)
        assert posterior.beta[i] == pytest.approx(1 + n * (1 - share), rel=1e-7)
    # Which is next to the same: some trials at the border are others.
    assert np.mean(((posterior.mean() - apart.mean()) / apart.std()) ** 2) < 0.4**2
    np.testing.assert_allclose(posterior.std(), apart.std(), rtol=0.1)
    # What is learned later is gathered with the rest.
    model.partial_fit(X[:500], y[:500])
    assert model.posterior(queries).mean().tobytes() != posterior.mean().tobytes()


def test_gathered_trials_give_the_same_bits_in_any_order(monkeypatch):
    monkeypatch.setattr(local, "GATHERED", 500)
    X, y = trials(3000, 2, seed=27)
    order = np.random.default_rng(27).permutation(3000)
    one, other = make(2).fit(X, y), make(2).fit(X[order], y[order])
    assert_same_answers(one, other, X)


def test_one_point_under_many_contexts_is_one_place():
    rates = np.random.default_rng(0).uniform(0.0, 0.5, size=400)
    doses = np.repeat(np.arange(8.0), 50)[:, None]
    died = np.random.default_rng(1).uniform(size=400) < rates + (1 - rates) * doses[:, 0] / 8
    model = SmoothBetaClassifier().fit(doses, died, context=contexts.background(rates))
    assert model.weights_["width"].min() * 8 >= 1.0  # eight doses, each with an eighth to itself
    between = model.posterior(np.arange(0.5, 7.0)[:, None])
    assert (between.std() < 0.2).all()  # the prior's is 0.29
