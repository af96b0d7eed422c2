"""Widths: the formula, the candidates, and leave-one-out against refitting without each trial."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from betafield import SmoothBetaClassifier, bandwidth


def data(t, d=1, n_classes=2, seed=0):
    """Return trials on a grid of eighths whose first class is the likelier the lower x is."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 9, size=(t, d)) / 8
    X[0], X[1] = 0.0, 1.0
    y = np.minimum(rng.integers(0, n_classes, size=t), (8 * X[:, 0]).astype(int))
    y[:n_classes] = np.arange(n_classes)
    return X, y


def refitted_score(X, y, width, prior, **options):
    """Return Σ log P(a trial's outcome | all others), each from a model without that trial."""
    total = 0.0
    for i in range(len(y)):
        rest = np.arange(len(y)) != i
        model = SmoothBetaClassifier(width, bounds=[(0, 1)] * X.shape[1], prior=prior, **options)
        model.partial_fit(X[rest], y[rest], classes=np.unique(y))
        total += np.log(model.predict_proba(X[i : i + 1])[0, y[i]])
    return total


# Theory.


@given(st.integers(1, 10**12), st.integers(1, 8), st.floats(1e-3, 1e3))
def test_the_width_by_theory_balances_bias_and_variance(t, d, lipschitz):
    width = bandwidth.theory(t, d, lipschitz)
    # (L Δ)² = 1 / (t Δᵈ).
    assert lipschitz**2 * width ** (d + 2) * t == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize(
    ("t", "d", "lipschitz", "width"),
    [(1000, 1, 1.0, 0.1), (10_000, 2, 1.0, 0.1), (1000, 1, 8.0, 0.025), (16, 2, 4.0, 0.25)],
)
def test_widths_by_theory_on_paper(t, d, lipschitz, width):
    assert bandwidth.theory(t, d, lipschitz) == pytest.approx(width, rel=1e-14)


# Candidates.


@given(
    hnp.arrays(np.float64, st.integers(1, 6), elements=st.floats(0.01, 10)), st.integers(1, 10**8)
)
def test_candidates_go_from_one_place_a_window_to_all(sides, n_places):
    widest = float(np.linalg.norm(sides))
    grid = bandwidth.candidates(sides, widest, n_places)
    assert grid[-1] == pytest.approx(widest)
    np.testing.assert_allclose(grid[1:] / grid[:-1], 2**0.5, rtol=1e-9)
    # A cube as wide as the narrowest holds one place, give or take a step.
    assert np.prod(sides) / grid[0] ** len(sides) * 1.001 >= n_places
    if len(grid) > 1:
        assert np.prod(sides) / grid[1] ** len(sides) <= n_places * 1.001


def test_a_domain_without_extent_has_one_candidate():
    assert bandwidth.candidates(np.zeros(3), 1.0, 500).tolist() == [1.0]


# Leave-one-out.


@pytest.mark.parametrize("width", [0.125, 0.3, 1.0])
@pytest.mark.parametrize(("d", "n_classes"), [(1, 2), (2, 2), (1, 3), (2, 4)])
@pytest.mark.parametrize("shape", [1.0, 0.25])
def test_the_held_out_score_is_that_of_refitting_without_each_trial(width, d, n_classes, shape):
    X, y = data(40, d, n_classes)
    apart = np.sqrt(((X[:, None] - X) ** 2).sum(axis=2))
    outcomes = np.eye(n_classes)[y]
    sums = (apart <= width) @ outcomes
    found = bandwidth.held_out_score(outcomes, sums, np.full((1, n_classes), shape))
    assert found == pytest.approx(refitted_score(X, y, width, (shape, shape)), rel=1e-12)


def test_the_held_out_score_is_the_same_with_trials_gathered_by_place():
    X, y = data(60)
    outcomes = np.eye(2)[y]
    sums = (np.abs(X - X.T) <= 0.25) @ outcomes
    places, first, owner = np.unique(X[:, 0], return_index=True, return_inverse=True)
    gathered = np.array([outcomes[owner == i].sum(axis=0) for i in range(len(places))])
    shapes = np.ones((1, 2))
    assert bandwidth.held_out_score(gathered, sums[first], shapes) == pytest.approx(
        bandwidth.held_out_score(outcomes, sums, shapes), rel=1e-12
    )


@pytest.mark.parametrize("metric", ["euclidean", "chebyshev", "manhattan"])
@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("seed", [0, 1])
def test_loo_chooses_the_candidate_that_refitting_finds_best(metric, d, seed):
    X, y = data(40, d, seed=seed)
    model = SmoothBetaClassifier("loo", metric=metric).fit(X, y)
    widest = {"euclidean": d**0.5, "chebyshev": 1.0, "manhattan": float(d)}[metric]
    grid = bandwidth.candidates(np.ones(d), widest, len(np.unique(X, axis=0)))
    scores = [refitted_score(X, y, width, (1.0, 1.0), metric=metric) for width in grid]
    # The last of equal ones, which differ by rounding.
    best = grid[np.flatnonzero(np.array(scores) >= max(scores) - 1e-9)[-1]]
    assert model.bandwidth_ == pytest.approx(best)


@given(st.integers(0, 23))
def test_the_search_finds_the_top_of_a_hill(top):
    grid = 2.0 ** -np.arange(24.0)[::-1]
    assert (
        bandwidth.leave_one_out(lambda w, size: (-abs(np.log2(w / grid[top])), size), grid, 1)
        == grid[top]
    )


def test_of_equal_widths_the_widest_is_taken():
    grid = np.array([0.1, 0.2, 0.4])
    assert bandwidth.leave_one_out(lambda width, size: (-5.0, size * width), grid, 10) == 0.4


def test_what_a_small_sample_says_is_checked_on_a_large_one():
    grid = 2.0 ** -np.arange(16.0)[::-1]

    def score(width, size):
        # The small sample is for the narrowest width, the large one for one far from it.
        return (-width if size == bandwidth.FEW else -abs(np.log2(width) + 6)), size

    assert bandwidth.leave_one_out(score, grid, enough=1e9) == 2.0**-6


# The sample.


points = hnp.arrays(
    np.float64,
    st.tuples(st.integers(1, 3), st.integers(1, 50)),
    elements=st.floats(-1e3, 1e3),
)


@given(points, st.floats(0.01, 0.99), st.randoms(use_true_random=False))
def test_a_place_is_chosen_wherever_it_stands(axes, share, random):
    order = list(range(axes.shape[1]))
    random.shuffle(order)
    mask = bandwidth.chosen(axes, share)
    np.testing.assert_array_equal(bandwidth.chosen(axes[:, order].copy(), share), mask[order])
    half = axes.shape[1] // 2
    np.testing.assert_array_equal(bandwidth.chosen(axes[:, half:].copy(), share), mask[half:])


@given(points, st.floats(0.01, 0.99), st.floats(0.01, 1.0))
def test_a_larger_sample_holds_the_smaller(axes, one, other):
    small, large = (bandwidth.chosen(axes, share) for share in sorted([one, other]))
    assert not (small & ~large).any()


def test_minus_zero_is_zero_to_the_sample():
    zeros, minus = np.zeros((3, 1)), -np.zeros((3, 1))
    shares = np.linspace(0.01, 0.99, 99)
    chosen = [bandwidth.chosen(zeros, share)[0] for share in shares]
    assert chosen == [bandwidth.chosen(minus, share)[0] for share in shares]
    assert set(chosen) == {False, True}


@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("grid", [False, True])
@pytest.mark.parametrize("share", [0.01, 0.3])
def test_the_sample_has_about_the_share_asked_for(d, grid, share):
    axes = np.random.default_rng(0).uniform(size=(d, 100_000))
    if grid:
        axes[0] = np.arange(100_000) / 128
    # Five standard deviations of a fair draw.
    assert bandwidth.chosen(axes, share).mean() == pytest.approx(
        share, abs=5 * (share * (1 - share) / 100_000) ** 0.5
    )


def test_a_share_of_one_or_more_is_all():
    axes = np.random.default_rng(1).uniform(size=(2, 1000))
    assert bandwidth.chosen(axes, 1.0).all()
    assert bandwidth.chosen(axes, 7.0).all()


def test_a_sampled_search_finds_about_the_width_of_a_full_one(monkeypatch):
    rng = np.random.default_rng(2)
    X = rng.uniform(size=(20_000, 1))
    y = rng.uniform(size=20_000) < 0.5 + 0.4 * np.sin(12 * X[:, 0])
    sampled = SmoothBetaClassifier("loo").fit(X, y).bandwidth_
    monkeypatch.setattr(bandwidth, "FEW", 20_000)
    monkeypatch.setattr(bandwidth, "MANY", 20_000)
    full = SmoothBetaClassifier("loo").fit(X, y).bandwidth_
    # Two steps of the grid, at the most.
    assert 0.49 < sampled / full < 2.01
