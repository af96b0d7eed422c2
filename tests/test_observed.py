"""The trials that a model reports, against the data that it was given."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from flint import arb, ctx
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import PredefinedSplit, cross_val_predict

from betafield import FieldCalibratedClassifier, SmoothBetaClassifier, contexts
from betafield.observed import (
    _dealt,
    binned,
    feature_names,
    left_out,
    observed,
    share_interval,
    why_not_left_out,
)


def by_place(X, columns):
    """Return distinct rows and the sums of columns there, by pandas."""
    names = [f"f{i}" for i in range(X.shape[1])]
    table = pd.DataFrame(X, columns=names).assign(**columns)
    sums = table.groupby(names, as_index=False).sum()
    return sums[names].to_numpy(), {name: sums[name].to_numpy() for name in columns}


@st.composite
def rows(draw):
    t, d = draw(st.integers(2, 60)), draw(st.integers(1, 3))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, size=(t, d)) * draw(st.sampled_from([1.0, 0.1, 1e6])) - 0.3
    weight = rng.integers(0, 9, t) / draw(st.sampled_from([1, 4])) + 0.25 * (np.arange(t) == 0)
    return X, rng.integers(0, draw(st.integers(2, 3)), t), weight


@settings(max_examples=40)
@given(rows(), st.sampled_from([0.2, "auto"]))
def test_everything_that_was_seen_comes_back(data, bandwidth):
    X, y, weight = data
    model = SmoothBetaClassifier(bandwidth)
    model.partial_fit(X, y, classes=[0, 1, 2], sample_weight=weight)
    seen = observed(model)
    there = weight > 0
    columns = {f"c{k}": (weight * (y == k))[there] for k in range(3)}
    points, sums = by_place(X[there], columns)
    if bandwidth == "auto":
        np.testing.assert_array_equal(seen.points, points)
    np.testing.assert_allclose(seen.points, points, rtol=1e-12, atol=1e-12 * np.abs(X).max())
    np.testing.assert_array_equal(seen.counts, np.stack(list(sums.values()), axis=1))
    np.testing.assert_array_equal(seen.trials, seen.counts.sum(axis=1))
    assert seen.successes is None
    assert seen.trials.sum() == model.n_trials_


def test_places_of_all_indexes_are_joined():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 150, size=(30_000, 2)).astype(float)
    y = rng.integers(0, 2, 30_000)
    model = SmoothBetaClassifier(0.1, bounds=[(0, 150)] * 2)
    for part in (slice(28_000), slice(28_000, 30_000)):
        model.partial_fit(X[part], y[part]).posterior(X[:1])
    assert len(model.windows_.places) > 1
    points, sums = by_place(X, {"t": np.ones(len(y)), "s": y})
    seen = observed(model)
    np.testing.assert_allclose(seen.points, points, atol=1e-12)
    np.testing.assert_array_equal(seen.trials, sums["t"])
    np.testing.assert_array_equal(seen.successes, sums["s"])


def test_features_of_little_relevance_are_in_their_own_units():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(2_000, 2)) * [1.0, 1e3]
    model = SmoothBetaClassifier().fit(X, rng.uniform(size=2_000) < 0.5 + 0.5 * np.sin(9 * X[:, 0]))
    assert model.relevance_.min() < 1
    np.testing.assert_array_equal(observed(model).points, X[np.lexsort(X.T[::-1])])


@pytest.mark.parametrize("bandwidth", [0.5, "auto"])
def test_constant_features_are_where_they_were(bandwidth):
    X = np.array([[1.0, 7.0], [2.0, 7.0]])
    assert observed(SmoothBetaClassifier(bandwidth).fit(X, [0, 1])).points.tolist() == X.tolist()


def test_rounding_takes_no_point_out_of_the_bounds():
    rng = np.random.default_rng(0)
    for _ in range(200):
        low, high = np.sort(rng.normal(size=2)) * 10.0 ** rng.integers(-3, 4)
        X = np.array([[low], [high]])
        model = SmoothBetaClassifier(0.5, bounds=[(low, high)]).fit(X, [0, 1])
        seen = observed(model)
        again = SmoothBetaClassifier(0.5, bounds=[(low, high)])
        again.fit_counts(seen.points, seen.successes, seen.trials)
        assert again.n_trials_ == 2


def test_names_come_from_the_table():
    table = pd.DataFrame({"dose (mg)": [1.0, 2.0], "age": [3.0, 4.0]})
    assert observed(SmoothBetaClassifier(0.5).fit(table, [0, 1])).names == ("dose (mg)", "age")
    assert feature_names(SmoothBetaClassifier(0.5).fit(table.to_numpy(), [0, 1])) == ("x0", "x1")


# Contexts ----------------------------------------------------------------------------------


def distorted(sharing, context, weight=None):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 5, size=(300, 1)).astype(float)
    y = rng.integers(0, 2, 300)
    if context.ndim == 2:
        context = context[rng.integers(0, len(context), 300)]
    return X, y, SmoothBetaClassifier(0.3, sharing=sharing).fit(X, y, weight, context)


AFFINE = np.array([[0.0, 1.0], [0.2, 0.9], [0.5, 1.0], [0.3, 0.3]])


def test_mean_sharing_keeps_outcomes():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 5, size=(300, 1)).astype(float), rng.integers(0, 2, 300)
    context = AFFINE[rng.integers(0, 4, 300)]
    model = SmoothBetaClassifier(0.3, sharing="mean").fit(X, y, context=context)
    teaches = context[:, 0] != context[:, 1]
    points, sums = by_place(X[teaches], {"t": np.ones(teaches.sum()), "s": y[teaches]})
    seen = observed(model)
    np.testing.assert_allclose(seen.points, points)
    np.testing.assert_array_equal(seen.trials, sums["t"])
    np.testing.assert_array_equal(seen.successes, sums["s"])


@pytest.mark.parametrize("fractional", [False, True])
@pytest.mark.parametrize("pooled", [False, True])
def test_exact_sharing_keeps_the_number_of_trials_only(pooled, fractional):
    context = contexts.pooled(np.array([1, 2, 3])) if pooled else AFFINE[:3]
    weight = np.random.default_rng(1).integers(1, 9, 300) / (4 if fractional else 1)
    X, _, model = distorted("exact", context, weight)
    points, sums = by_place(X, {"t": weight})
    seen = observed(model)
    np.testing.assert_allclose(seen.points, points)
    np.testing.assert_allclose(seen.trials, sums["t"], rtol=1e-9)
    assert seen.counts is None
    assert seen.successes is None
    assert "sharing='exact'" in seen.why
    with pytest.raises(ValueError, match=r"no counts.*likelihoods"):
        binned(seen)


def test_outcomes_that_were_turned_round_are_not_taken_for_those_seen():
    # Under (1, 0) a success counts as a failure, and windows keep only Beta counts.
    model = SmoothBetaClassifier(0.3).fit([[0.0], [1.0]], [1, 0], context=[[1.0, 0.0]])
    assert observed(model).successes is None
    # The default model keeps outcomes as observed.
    model = SmoothBetaClassifier().fit([[0.0], [1.0]], [1, 0], context=[[1.0, 0.0]])
    assert observed(model).successes.tolist() == [1.0, 0.0]


@pytest.mark.parametrize("fractional", [False, True])
@pytest.mark.parametrize("pooled", [False, True])
def test_the_default_keeps_outcomes_whatever_the_context(pooled, fractional):
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 5, size=(300, 1)).astype(float), rng.integers(0, 2, 300)
    kinds = contexts.pooled(np.array([1, 2, 3])) if pooled else AFFINE
    context = kinds[rng.integers(0, len(kinds), 300)]
    weight = rng.integers(1, 9, 300) / (4 if fractional else 1)
    seen = observed(SmoothBetaClassifier().fit(X, y, weight, context))
    teaches = np.ptp(context, axis=1) > 0
    points, sums = by_place(X[teaches], {"t": weight[teaches], "s": (weight * y)[teaches]})
    np.testing.assert_array_equal(seen.points, points)
    np.testing.assert_array_equal(seen.trials, sums["t"])
    np.testing.assert_array_equal(seen.successes, sums["s"])


# Bins --------------------------------------------------------------------------------------


@given(rows(), st.integers(1, 12))
def test_bins_are_those_of_numpy(data, n_bins):
    X, y, weight = data
    X = X + np.linspace(0.0, 1.0, len(X))[:, None] * np.ptp(X, axis=0).max()
    if len(np.unique(X[:, 0])) <= n_bins:
        return
    model = SmoothBetaClassifier(0.2)
    model.partial_fit(X, y > 0, classes=[False, True], sample_weight=weight)
    seen = observed(model)
    bins = binned(seen, n_bins=n_bins)
    where, edges = seen.points[:, 0], bins.edges
    np.testing.assert_allclose(bins.trials, np.histogram(where, edges, weights=seen.trials)[0])
    np.testing.assert_allclose(
        bins.successes, np.histogram(where, edges, weights=seen.successes)[0]
    )
    some = bins.trials > 0
    np.testing.assert_array_equal(np.isnan(bins.share), ~some)
    assert (bins.low[some] <= bins.share[some]).all()
    assert (bins.share[some] <= bins.high[some]).all()
    assert (np.diff(bins.centres) > 0).all()


def test_few_values_have_a_bin_each():
    model = SmoothBetaClassifier(0.5).fit_counts([[0.0], [1.0], [10.0]], [1, 2, 3], [4, 4, 4])
    bins = binned(observed(model), n_bins=3)
    assert bins.centres.tolist() == [0.0, 1.0, 10.0]
    assert bins.successes.tolist() == [1.0, 2.0, 3.0]
    assert bins.edges.tolist() == [0.0, 0.5, 5.5, 10.0]


def test_one_value_is_one_bin():
    bins = binned(observed(SmoothBetaClassifier(0.5).fit([[2.0], [2.0]], [0, 1])))
    assert (bins.centres.tolist(), bins.trials.tolist()) == ([2.0], [2.0])


def test_bins_of_a_class_and_of_a_feature_by_name():
    table = pd.DataFrame({"a": [0.0, 1.0, 2.0, 2.0], "b": [5.0, 5.0, 6.0, 6.0]})
    seen = observed(SmoothBetaClassifier(0.5).fit(table, ["x", "y", "z", "y"]))
    assert binned(seen, "b", class_index=2).successes.tolist() == [0.0, 1.0]
    assert binned(seen, -1, class_index=1).successes.tolist() == [1.0, 1.0]


def at_most(k, n, p):
    """Return the probability of at most k successes in n trials, summed term by term in Arb."""
    return sum((math.comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(k + 1)), arb(0))


def solves(k, n, tail, found):
    """Return whether the root in p of P(at most k successes) = tail is within 1e-13 of `found`.

    The probability falls in p, so Arb's bounds at both ends prove it.
    """
    slack = arb("1e-13")
    left, right = (at_most(k, n, arb(float(found)) * (1 + each)) for each in (-slack, slack))
    return left > tail > right


@example(95, 1 / 95, 0.95)  # for which SciPy's binomtest has nine digits
@given(st.integers(1, 500), st.floats(0, 1), st.sampled_from([0.5, 0.95, 0.999]))
def test_intervals_are_those_of_clopper_and_pearson(n, share, level):
    ctx.prec = 256
    k, tail = round(n * share), (1 - arb(level)) / 2
    low, high = share_interval(k, n, level)
    assert solves(k - 1, n, 1 - tail, low) if k else low == 0.0
    assert solves(k, n, tail, high) if k < n else high == 1.0


def test_nothing_tried_is_nothing_known():
    assert [float(end) for end in share_interval(0, 0)] == [0.0, 1.0]


# Held-out predictions ----------------------------------------------------------------------


def steps(n=4_000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 1))
    return X, rng.uniform(size=n) < X[:, 0]


def sorted_steps():
    X, y = steps()
    order = np.argsort(X[:, 0])
    return X[order], y[order]


def left_out_by_scikit_learn(model, X, y):
    """Return predictions of refitted models for the folds of `left_out`, in its order."""
    rng = np.random.default_rng(0)
    rng.permutation(len(X))  # the places asked for, which are all of them
    fold_of = np.argmax([fold.any(axis=0) for fold in _dealt(np.stack([~y, y]) * 1, rng)], axis=0)
    split, by_fold = PredefinedSplit(fold_of), np.argsort(fold_of, kind="stable")
    expected = cross_val_predict(model, X, y, cv=split, method="predict_proba")[:, 1]
    return expected[by_fold], y[by_fold]


@pytest.mark.parametrize("bandwidth", [0.05, "theory", "loo"])
def test_predictions_of_windows_are_those_of_scikit_learn(bandwidth):
    X, y = sorted_steps()
    model = SmoothBetaClassifier(bandwidth, bounds=[(0, 1)]).fit(X, y)
    # The width stays that of all trials.
    alike = clone(model).set_params(bandwidth=model.bandwidth_)
    expected, ended = left_out_by_scikit_learn(alike, X, y)
    predicted, successes, trials = left_out(model)
    np.testing.assert_array_equal(successes, ended)
    np.testing.assert_allclose(predicted, expected, atol=1e-9)
    assert (trials == 1.0).all()


@pytest.mark.long
@pytest.mark.parametrize("bounds", [None, [(0, 1)]])
def test_predictions_of_the_default_are_nearly_those_of_models_fitted_anew(bounds):
    # Estimates from all trials are kept; they differ a little from those of a fold.
    X, y = sorted_steps()
    model = SmoothBetaClassifier(bounds=bounds).fit(X, y)
    expected, ended = left_out_by_scikit_learn(model, X, y)
    predicted, successes, _ = left_out(model)
    np.testing.assert_array_equal(successes, ended)
    np.testing.assert_allclose(predicted, expected, atol=0.02)


def test_folds_have_the_domain_of_all_trials():
    # Length scales are fractions of the domain, and one fold lacks the trial far away.
    X, y = steps(300)
    X[0] = 20.0
    each = [SmoothBetaClassifier(bounds=bounds).fit(X, y) for bounds in (None, [(X.min(), 20.0)])]
    alone, given = (left_out(model).predicted for model in each)
    np.testing.assert_array_equal(alone, given)


def test_every_trial_is_left_out_once():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, size=(2_000, 1)).astype(float)
    y = rng.uniform(size=2_000) < 0.1 + 0.2 * X[:, 0]
    weight = rng.integers(1, 4, 2_000) / 2
    for bandwidth, weights in itertools.product([0.1, "auto"], [None, weight]):
        model = SmoothBetaClassifier(bandwidth).fit(X, y, weights)
        predicted, successes, trials = left_out(model)
        assert trials.sum() == model.n_trials_
        assert successes.sum() == observed(model).successes.sum()
        # Every fold has seen all levels, so no prediction is that of the prior.
        assert set(np.round((predicted - 0.1) / 0.2).astype(int)) == {0, 1, 2, 3}


def test_the_model_stays_as_it_was():
    X, y = steps()
    model = SmoothBetaClassifier().fit(X, y)
    before, attributes = model.predict_proba(X), set(vars(model))
    weights = model.weights_.tobytes()
    left_out(model)
    np.testing.assert_array_equal(model.predict_proba(X), before)
    assert model.weights_.tobytes() == weights
    assert set(vars(model)) == attributes


def test_predictions_do_not_know_the_outcome():
    # Random outcomes, and windows with a single place: a model that saw the trial would show it.
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(3_000, 1)), rng.integers(0, 2, 3_000)
    model = SmoothBetaClassifier(1e-9, bounds=[(0, 1)]).fit(X, y)
    predicted, _, _ = left_out(model)
    assert (predicted == 0.5).all()
    assert set(model.predict_proba(X)[:, 1].round(2)) == {0.33, 0.67}


def test_only_some_places_are_asked_and_the_seed_counts():
    X, y = steps()
    model = SmoothBetaClassifier(0.1).fit(X, y)
    some = left_out(model, n=100)
    assert some.trials.sum() == 100
    np.testing.assert_array_equal(some.predicted, left_out(model, n=100).predicted)
    assert not np.array_equal(some.predicted, left_out(model, n=100, random_state=1).predicted)


def test_a_fold_may_have_all_trials():
    process = SmoothBetaClassifier(method="process")
    for model, seeds in ((SmoothBetaClassifier(0.1, prior=(3.0, 1.0)), 20), (process, 5)):
        model.fit([[0.0], [1.0]], [0, 1], sample_weight=[5.5, 5.5])
        for seed in range(seeds):
            assert left_out(model, random_state=seed).trials.sum() == 11.0


def test_reasons():
    X, y = steps(50)
    three = SmoothBetaClassifier(0.1).fit(X, np.arange(50) % 3)
    guessed = SmoothBetaClassifier(0.1).fit(X, y, context=contexts.guess_lapse(0.5))
    few = SmoothBetaClassifier(0.1).partial_fit(X[:5], y[:5], classes=[False, True])
    for model, reason in [(three, "3 classes"), (guessed, "contexts"), (few, "5 trials")]:
        assert left_out(model) is None
        assert reason in why_not_left_out(model)
    assert why_not_left_out(SmoothBetaClassifier(0.1).fit(X, y)) is None


# Bad input ---------------------------------------------------------------------------------


def test_errors_name_what_was_found():
    X, y = steps(50)
    model = SmoothBetaClassifier(0.1).fit(X, y)
    seen = observed(model)
    with pytest.raises(TypeError, match="found FieldCalibratedClassifier; a SmoothBeta"):
        observed(FieldCalibratedClassifier().fit(X, y))
    with pytest.raises(ValueError, match="not fitted"):
        observed(SmoothBetaClassifier())
    with pytest.raises(ValueError, match="n_bins: found 0"):
        binned(seen, n_bins=0)
    with pytest.raises(ValueError, match="feature: found 'dose'; the features are x0"):
        binned(seen, "dose")
    with pytest.raises(ValueError, match="feature: found 1; a name or a number from 0 to 0"):
        binned(seen, 1)
    with pytest.raises(ValueError, match="class_index: found 2"):
        binned(seen, class_index=2)
    with pytest.raises(ValueError, match=r"level: found 1\.5"):
        binned(seen, level=1.5)
    with pytest.raises(ValueError, match="n: found 0"):
        left_out(model, n=0)


def test_trials_on_workers_are_asked_to_come():
    import dask.array as da

    from betafield.dask import SmoothBetaClassifier as Scattered

    X, y = steps(50)
    model = Scattered(0.1).fit(da.from_array(X, chunks=(25, 1)), da.from_array(y, chunks=25))
    with pytest.raises(TypeError, match="compute"):
        observed(model)
    assert observed(model.compute()).trials.sum() == 50
