"""The whole model: independence of order to the bit, windows by brute force, hard tables."""

import numpy as np
import pytest
from scipy.special import expit

from betafield.posteriors import LatentNormal
from betafield.process import law, mixtures
from betafield.process.ladder import UNIT, WIDTHS, units, window_sums
from betafield.process.law import Laws
from betafield.process.model import (
    Asked,
    Component,
    Found,
    Smooth,
    Sums,
    Window,
    build,
    find,
    learn,
)
from betafield.process.residuals import corrected, logit_variance, parts, residuals, variance

UNIT_SQUARE = np.array([[0.0, 1.0], [0.0, 1.0]])


def jumping(t, seed, d=2):
    """Return trials of a field with a jump, which windows should find."""
    rng = np.random.default_rng(seed)
    x = rng.random((t, d))
    y = rng.random(t) < np.where(x[:, 0] < 0.4, 0.15, 0.8)
    return Sums(x, np.ones(t, np.int64), y.astype(np.int64))


def same(one: Laws, other: Laws) -> bool:
    return one.links == other.links and all(
        np.array_equal(a, b) for a, b in zip(one[1:], other[1:], strict=True)
    )


def leaves(found):
    """Return all values of a `Found`, in order."""
    if isinstance(found, tuple):
        return [leaf for part in found for leaf in leaves(part)]
    return [found]


def alike(one: Found, other: Found) -> bool:
    pairs = list(zip(leaves(one), leaves(other), strict=True))
    return all(type(a) is type(b) and np.array_equal(a, b) for a, b in pairs)


def split(given: Sums, seed: int) -> Sums:
    """Return the same trials in another order, some places in two parts, some empty."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(given.points))
    trials, successes = given.trials[order], given.successes[order]
    first = trials // 2
    won = np.minimum(successes, first)
    context = None if given.context is None else given.context[np.tile(order, 2)]
    return Sums(
        given.points[np.tile(order, 2)],
        np.concatenate([first, trials - first]),
        np.concatenate([won, successes - won]),
        context,
        given.unit,
    )


TABLES = {
    "places": lambda: jumping(300, 1),
    "cells": lambda: jumping(2_500, 2),
    "line": lambda: jumping(700, 3, 1),
    "space": lambda: jumping(400, 4, 3),
    "contexts": lambda: jumping(300, 5)._replace(context=np.tile([0.25, 0.95], (300, 1))),
}


@pytest.mark.parametrize("name", TABLES)
def test_order_and_splits_cannot_be_seen(name):
    given = TABLES[name]()
    d = given.points.shape[1]
    bounds, other = UNIT_SQUARE[:1].repeat(d, axis=0), split(given, 6)
    found = find(given, bounds)
    assert alike(found, find(other, bounds))
    x = np.random.default_rng(7).random((50, d)) * 1.2 - 0.1
    laws = build(given, bounds, found).laws(x)
    assert same(laws, build(other, bounds, found).laws(x))
    alone = build(given, bounds, found).laws(x[:1])
    np.testing.assert_array_equal(alone.centres[:, 0], laws.centres[:, 0])
    np.testing.assert_array_equal(alone.deviations[:, 0], laws.deviations[:, 0])


def by_level(t=1_500):
    """Trials by day and hour; days differ, so that they have effects of their own."""
    rng = np.random.default_rng(8)
    day, hour, effect = rng.integers(0, 20, t), rng.random(t), 2.0 * rng.normal(size=20)
    won = rng.random(t) < expit(effect[day] + np.sin(6.0 * hour))
    return Sums(np.column_stack([day / 19.0, hour]), np.ones(t, np.int64), won.astype(np.int64))


def skewed(t=400):
    """Trials that lie unevenly, so that units are weighed."""
    x = np.random.default_rng(9).lognormal(0.0, 2.0, (t, 1))
    return Sums(x / x.max(), np.ones(t, np.int64), (x[:, 0] > 1.0).astype(np.int64))


LEARNED = TABLES | {
    "levels": by_level,
    "units": skewed,
    "groups": lambda: jumping(300, 10)._replace(group=np.arange(300.0) // 10),
    "rows apart": lambda: jumping(60, 11, 1)._replace(is_apart=True),
    "few categories": lambda: jumping(200, 12)._replace(codes=np.arange(200.0)[:, None] % 3),
    "many categories": lambda: jumping(400, 13)._replace(codes=np.arange(400.0)[:, None] % 25),
    "rougher": lambda: jumping(3_000, 14, 1),
}


@pytest.mark.parametrize("with_windows", [True, False])
@pytest.mark.parametrize("name", LEARNED)
def test_learning_is_finding_and_building(name, with_windows):
    given = LEARNED[name]()
    d = given.points.shape[1]
    bounds = UNIT_SQUARE[:1].repeat(d, axis=0)
    found, smooth = learn(given, Asked(bounds, with_windows))
    assert alike(found, find(given, bounds, with_windows))
    built = build(given, bounds, found)
    assert [fit.objective for fit in smooth.fits] == [fit.objective for fit in built.fits]
    x = np.random.default_rng(7).random((50, d)) * 1.2 - 0.1
    x = np.vstack([x, given.points[:20]])
    codes = np.zeros((len(x), 0)) if given.codes is None else np.arange(len(x))[:, None] % 4.0
    x = np.column_stack([x, codes])
    assert same(smooth.laws(x), built.laws(x))


def test_found_is_a_tree_of_plain_values():
    found = find(jumping(3_000, 8), UNIT_SQUARE)
    assert found.windows
    for leaf in leaves(found):
        assert leaf is None or type(leaf) in (str, float, int, np.ndarray)


def test_windows_by_tree_are_those_of_brute_force():
    given = jumping(500, 9)
    found = find(given, UNIT_SQUARE)
    ways = (np.ones(2), np.array([1.0, 0.25]), np.array([0.0, 1.0]))
    windows = tuple(
        Window(way, float(width), 0.3, 0.05) for way in ways for width in (0.0, WIDTHS[9], np.inf)
    )
    smooth = build(given, UNIT_SQUARE, found._replace(windows=windows))
    rng = np.random.default_rng(10)
    x = np.concatenate([given.points[:20], rng.random((20, 2))])
    laws = smooth.laws(x)
    rows = smooth.fine
    left = residuals(law.mean(smooth.surfaces, smooth.weights, [rows.x] * len(smooth.fits)), rows)
    held = units(parts(left.score, left.information))
    m = law.mean(smooth.surfaces, smooth.weights, [x] * len(smooth.fits))
    alone = Smooth(smooth.boxes, smooth.fits).laws(x)
    v = logit_variance(alone, m)
    for i, window in enumerate(windows):
        b = int(np.flatnonzero(window.width == WIDTHS)[0])
        up, down, W = window_sums(x, rows.x, held, window.stretch)[:, b].T / UNIT
        own = Laws(
            laws.links[-9:][i : i + 1],
            np.ones(1),
            laws.centres[-9:][i : i + 1],
            laws.deviations[-9:][i : i + 1],
        )
        np.testing.assert_allclose(mixtures.mean(own), corrected(m, up - down, W, 0.3), atol=1e-9)
        is_whole = bool(window.stretch.min() > 0.0)
        np.testing.assert_allclose(own.deviations[0] ** 2, variance(v, W, 0.3, is_whole))
    np.testing.assert_allclose(laws.weights.sum(), 1.0)


def test_what_was_found_is_of_use_with_more_trials():
    """The answer follows a few more trials without new estimates."""
    given = jumping(400, 11)
    found = find(given, UNIT_SQUARE)
    more = Sums(
        np.concatenate([given.points, np.tile([[0.2, 0.5]], (1, 1))]),
        np.append(given.trials, 200),
        np.append(given.successes, 200),
    )
    at = np.array([[0.2, 0.5]])
    before = mixtures.mean(build(given, UNIT_SQUARE, found).laws(at))[0]
    after = mixtures.mean(build(more, UNIT_SQUARE, found).laws(at))[0]
    assert before < 0.35 < 0.5 < after


@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_one_trial(d):
    given = Sums(np.full((1, d), 3.0), np.ones(1, np.int64), np.ones(1, np.int64))
    bounds = np.full((d, 2), 3.0)
    smooth = build(given, bounds, find(given, bounds))
    mean = mixtures.mean(smooth.laws(np.array([[3.0] * d, [4.0] * d])))
    assert (mean > 0.5).all()
    assert (mean < 0.9).all()


@pytest.mark.parametrize("outcome", [0, 1])
def test_all_of_one_class(outcome):
    t = 300
    x = np.random.default_rng(12).random((t, 2))
    given = Sums(x, np.ones(t, np.int64), np.full(t, outcome))
    laws = build(given, UNIT_SQUARE, find(given, UNIT_SQUARE)).laws(x[:10])
    low, high = LatentNormal(laws).interval()
    mean = mixtures.mean(laws)
    assert ((low >= 0.0) & (low < mean) & (mean < high) & (high <= 1.0)).all()
    assert (np.abs(mean - outcome) < 0.05).all()


def test_very_many_trials_at_one_place():
    """1e5 trials at one point, as that many rows: the binomial answer, within its deviation."""
    t, k = 100_000, 30_000
    y = np.zeros(t, np.int64)
    y[:k] = 1
    given = Sums(np.full((t, 2), 0.5), np.ones(t, np.int64), y)
    laws = build(given, UNIT_SQUARE, find(given, UNIT_SQUARE)).laws(np.full((1, 2), 0.5))
    low, high = LatentNormal(laws).interval()
    assert abs(mixtures.mean(laws)[0] - 0.3) < 0.003
    assert 0.002 < high[0] - low[0] < 0.02
    assert low[0] < 0.3 < high[0]


def test_a_constant_feature_changes_nothing_that_matters():
    given = jumping(300, 13, 1)
    more = given._replace(points=np.column_stack([given.points, np.full(300, 7.0)]))
    bounds = np.array([[0.0, 1.0], [7.0, 7.0]])
    x = np.linspace(0.05, 0.95, 19)
    plain = mixtures.mean(build(given, bounds[:1], find(given, bounds[:1])).laws(x[:, None]))
    both = np.column_stack([x, np.full(19, 7.0)])
    with_it = mixtures.mean(build(more, bounds, find(more, bounds)).laws(both))
    assert np.abs(plain - with_it).max() < 0.1


def seen_through(t, seed, coefficients):
    """Return trials of a slope, each under a context with these Bernstein coefficients."""
    rng = np.random.default_rng(seed)
    x = rng.random((t, 1))
    p = expit(6.0 * (x[:, 0] - 0.5))
    m = len(coefficients) - 1
    k = np.arange(m + 1)
    ways = np.array([1.0, 2.0, 1.0]) if m == 2 else np.ones(2)
    q = (np.array(coefficients) * ways * p[:, None] ** k * (1 - p[:, None]) ** (m - k)).sum(axis=1)
    y = rng.random(t) < q
    context = np.tile(coefficients, (t, 1))
    return Sums(x, np.ones(t, np.int64), y.astype(np.int64), context)


@pytest.mark.parametrize("coefficients", [(0.5, 1.0), (0.1, 0.9), (0.05, 0.2, 0.95)])
def test_contexts_are_seen_through(coefficients):
    given = seen_through(4_000, 14, coefficients)
    smooth = build(given, UNIT_SQUARE[:1], find(given, UNIT_SQUARE[:1]))
    x = np.linspace(0.1, 0.9, 9)
    truth = expit(6.0 * (x - 0.5))
    laws = smooth.laws(x[:, None])
    low, high = LatentNormal(laws).interval(0.999)
    assert ((low < truth) & (truth < high)).all()
    assert np.sqrt(np.mean((mixtures.mean(laws) - truth) ** 2)) < 0.05


def test_a_unit_is_what_one_counts_for():
    given = jumping(200, 15)
    eighths = given._replace(trials=given.trials * 8, successes=given.successes * 8, unit=0.125)
    found = find(given, UNIT_SQUARE)
    assert alike(found, find(eighths, UNIT_SQUARE))
    x = given.points[:20]
    laws = build(given, UNIT_SQUARE, found).laws(x)
    assert same(laws, build(eighths, UNIT_SQUARE, found).laws(x))


def dense(points, outcomes, weight, x, lengths):
    """Return mean and variance of f at x (Laplace) for a logit process of σ = 1, by all pairs."""

    def kernel(a, b):
        return 4.0 + np.exp(-0.5 * (((a[:, None] - b) / lengths) ** 2).sum(axis=2))

    K, f = kernel(points, points), np.zeros(len(points))
    for _ in range(20):
        p = expit(f)
        W = weight * p * (1.0 - p)
        f = K @ np.linalg.solve(np.eye(len(f)) + W[:, None] * K, W * f + weight * (outcomes - p))
    k = kernel(x, points)
    shrunk = np.linalg.solve(np.eye(len(f)) + W[:, None] * K, W[:, None] * k.T)
    return k @ (weight * (outcomes - expit(f))), 5.0 - (k * shrunk.T).sum(axis=1)


def width(mean, variance):
    return np.mean(np.diff(expit(mean + np.array([[-1.96], [1.96]]) * np.sqrt(variance)), axis=0))


def test_half_a_trial_says_less_than_one():
    """By as much as for a dense process with the same hyper-parameters.

    Intervals also include the uncertainty of hyper-parameters, which hardly grows with half as many
    trials: they grow by less than 1.2.
    """
    given, lengths = jumping(200, 16), np.array([0.3, 1.0])
    x = np.random.default_rng(17).random((50, 2))
    found = Found((Component("logit", None, np.log([1.0, *lengths])),))
    whole, narrow, exact = [], [], []
    for unit in (1.0, 0.5):
        smooth = build(given._replace(unit=unit), UNIT_SQUARE, found)
        low, high = LatentNormal(smooth.laws(x)).interval()
        whole.append(np.mean(high - low))
        f = law.latent(smooth.surfaces[0], x)
        narrow.append(width(f.mean, f.narrow))
        exact.append(width(*dense(given.points, given.successes, unit, x, lengths)))
    np.testing.assert_allclose(narrow, exact, rtol=0.05)
    assert narrow[1] / narrow[0] == pytest.approx(exact[1] / exact[0], rel=0.01)
    assert narrow[1] > 1.2 * narrow[0]
    assert whole[1] > 1.15 * whole[0]


def test_far_is_two_length_scales_from_every_trial():
    given = jumping(300, 18)
    given = given._replace(points=0.3 * given.points)
    bounds = np.array([[0.0, 2.0], [0.0, 2.0]])
    component = Component("logit", None, np.log([1.0, 0.1, 0.2]))
    smooth = build(given, bounds, Found((component,)))
    x = np.random.default_rng(19).random((400, 2)) * 4.0 - 1.0
    apart = (x[:, None] - given.points) / 2.0 / np.array([0.1, 0.2])
    exact = np.sqrt((apart**2).sum(axis=2)).min(axis=1) > 2.0
    assert 0.1 < exact.mean() < 0.9
    np.testing.assert_array_equal(smooth.far(x), exact)


def test_overdispersion_is_one_for_independent_trials_and_more_for_others():
    rng = np.random.default_rng(20)
    x = np.linspace(0.0, 1.0, 200)[:, None]
    p = 0.5 + 0.3 * np.sin(5 * x[:, 0])
    spread = rng.beta(4.0 * p, 4.0 * (1.0 - p))  # correlation 1/5: 1 + 19/5 at n = 20
    for probability, low, high in ((p, 0.75, 1.3), (spread, 3.0, 7.0)):
        given = Sums(x, np.full(200, 20), rng.binomial(20, probability))
        found = Found((Component("logit", None, np.log([1.0, 0.3])),))
        assert low < build(given, UNIT_SQUARE[:1], found).overdispersion() < high
    alone = jumping(100, 21)
    smooth = build(alone, UNIT_SQUARE, find(alone, UNIT_SQUARE, with_windows=False))
    assert np.isnan(smooth.overdispersion())


def test_a_cap_is_told():
    given = jumping(3_000, 22)
    for lengths, is_capped in (((0.03, 0.03), True), ((1.0, 1.0), False)):
        found = Found((Component("logit", None, np.log([1.0, *lengths])),))
        assert build(given, UNIT_SQUARE, found).is_capped is is_capped


def test_a_rougher_process_is_tried_from_three_thousand_trials_on():
    rng = np.random.default_rng(23)
    x = rng.random((4_000, 1))
    y = rng.random(4_000) < 0.1 + 0.8 * np.abs(2 * ((3 * x[:, 0]) % 1) - 1)
    given = Sums(x, np.ones(4_000, np.int64), y.astype(np.int64))
    kinds = {c.smoothness for c in find(given, UNIT_SQUARE[:1]).components}
    assert 2.5 in kinds
    few = Sums(x[:2_900], given.trials[:2_900], given.successes[:2_900])
    assert {c.smoothness for c in find(few, UNIT_SQUARE[:1]).components} == {None}
