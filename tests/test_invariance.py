"""Posteriors do not depend on order, batches or merges: every bit is the same."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tests.forests import ANY_LIMITS, empty

from betafield import SmoothBetaClassifier

WEIGHTS = {
    "unweighted": None,
    "whole": st.integers(1, 5).map(float),
    "fractional": st.floats(1e-9, 1e6),
    "huge and tiny": st.sampled_from([2.0**-32, 1 / 3, 1.0, 1e12 + 0.1]),
}


@st.composite
def trials(draw):
    """Draw points, outcomes and weights: up to 4 dimensions, on a coarse grid or anywhere."""
    d, t, n_classes = draw(st.integers(1, 4)), draw(st.integers(1, 60)), draw(st.integers(2, 3))
    coordinate = draw(st.sampled_from([st.integers(0, 4).map(lambda i: i / 4), st.floats(0, 1)]))
    X = draw(hnp.arrays(np.float64, (t, d), elements=coordinate))
    y = draw(hnp.arrays(np.int64, t, elements=st.integers(0, n_classes - 1)))
    of_weight = WEIGHTS[draw(st.sampled_from(sorted(WEIGHTS)))]
    weight = None if of_weight is None else draw(hnp.arrays(np.float64, t, elements=of_weight))
    return X, y, weight, np.arange(n_classes)


def rows(which, X, y, weight):
    return X[which], y[which], None if weight is None else weight[which]


def learn(batches, classes, bandwidth=0.25, limits=None, **options):
    """Return a model that has learned the batches one after the other."""
    bounds = [(0, 1)] * batches[0][0].shape[1]
    model = empty(limits, classes, bandwidth=bandwidth, bounds=bounds, **options)
    for X, y, weight in batches:
        model.partial_fit(X, y, classes, weight)
    return model


def merged(models, draw):
    """Return the models merged pairwise, in any tree."""
    while len(models) > 1:
        one = models.pop(draw(st.integers(0, len(models) - 1)))
        other = models.pop(draw(st.integers(0, len(models) - 1)))
        models.append(one.merge(other))
    return models[0]


def bits(model, X):
    """Return the posterior at X and elsewhere, as bytes."""
    posterior = model.posterior(np.vstack([X, X / 2, np.full((1, X.shape[1]), 9.0)]))
    shapes = [posterior.alpha] if len(model.classes_) > 2 else [posterior.alpha, posterior.beta]
    return [shape.tobytes() for shape in shapes]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_bits_tell_models_apart(n_classes):
    X, y = np.array([[0.0], [0.5], [1.0]]), np.array([0, 1, 1])
    classes = np.arange(n_classes)
    known = bits(learn([(X, y, None)], classes), X)
    assert known == bits(learn([(X[::-1], y[::-1], None)], classes), X)
    assert known != bits(learn([(X, y[::-1], None)], classes), X)
    assert known != bits(learn([(X, y, np.array([1.0, 2.0, 1.0]))], classes), X)


@ANY_LIMITS
@settings(max_examples=60)
@given(trials(), st.data())
def test_any_order_gives_the_same_bits(limits, drawn, data):
    X, y, weight, classes = drawn
    order = np.array(data.draw(st.permutations(range(len(y)))))
    model = learn([(X, y, weight)], classes, limits=limits)
    shuffled = learn([rows(order, X, y, weight)], classes, limits=limits)
    assert bits(shuffled, X) == bits(model, X)
    assert shuffled.n_trials_ == model.n_trials_


@ANY_LIMITS
@pytest.mark.parametrize("bandwidth", [0.25, "theory"])
@settings(max_examples=60)
@given(trials(), st.data())
def test_any_split_into_batches_gives_the_same_bits(limits, bandwidth, drawn, data):
    X, y, weight, classes = drawn
    owner = data.draw(hnp.arrays(np.int64, len(y), elements=st.integers(0, 6)))
    batches = [rows(owner == i, X, y, weight) for i in data.draw(st.permutations(np.unique(owner)))]
    model = learn([(X, y, weight)], classes, bandwidth, limits)
    streamed = learn(batches, classes, bandwidth, limits)
    assert bits(streamed, X) == bits(model, X)
    assert (streamed.n_trials_, streamed.bandwidth_) == (model.n_trials_, model.bandwidth_)


@ANY_LIMITS
@pytest.mark.parametrize("bandwidth", [0.25, "theory"])
@settings(max_examples=60)
@given(trials(), st.data())
def test_any_tree_of_merges_gives_the_same_bits(limits, bandwidth, drawn, data):
    X, y, weight, classes = drawn
    owner = data.draw(hnp.arrays(np.int64, len(y), elements=st.integers(0, 6)))
    parts = [
        learn([rows(owner == i, X, y, weight)], classes, bandwidth, limits)
        for i in np.unique(owner)
    ]
    model = learn([(X, y, weight)], classes, bandwidth, limits)
    union = merged(parts, data.draw)
    assert bits(union, X) == bits(model, X)
    assert (union.n_trials_, union.bandwidth_) == (model.n_trials_, model.bandwidth_)


@ANY_LIMITS
@settings(max_examples=60)
@given(trials(), st.data())
def test_asking_between_batches_changes_no_bit(limits, drawn, data):
    X, y, weight, classes = drawn
    owner = data.draw(hnp.arrays(np.int64, len(y), elements=st.integers(0, 6)))
    batches = [rows(owner == i, X, y, weight) for i in np.unique(owner)]
    asked = learn(batches[:1], classes, limits=limits)
    seen = [bits(asked, X)]
    for points, outcomes, weights in batches[1:]:
        asked.partial_fit(points, outcomes, classes, weights)
        seen.append(bits(asked, X))
    assert seen == [
        bits(learn(batches[: i + 1], classes, limits=limits), X) for i in range(len(batches))
    ]


@ANY_LIMITS
@settings(max_examples=60)
@given(trials(), st.data())
def test_models_that_share_trials_do_not_disturb_each_other(limits, drawn, data):
    X, y, weight, classes = drawn
    start = learn([(X, y, weight)], classes, limits=limits)
    extended, other = copy.copy(start), copy.copy(start)
    extended.partial_fit(X, y, classes, weight)
    models = data.draw(st.permutations([start, extended, other]))
    for model in models:
        bits(model, X)
    once = bits(learn([(X, y, weight)], classes, limits=limits), X)
    twice = bits(learn([(X, y, weight)] * 2, classes, limits=limits), X)
    assert [bits(model, X) for model in (start, extended, other)] == [once, twice, once]


@ANY_LIMITS
@settings(max_examples=60)
@given(trials(), st.data())
def test_batches_may_have_fractions_or_not(limits, drawn, data):
    X, y, _, classes = drawn
    kinds = [None, st.integers(1, 3).map(float), st.sampled_from([0.5, 0.1, 2.75])]
    owner = data.draw(hnp.arrays(np.int64, len(y), elements=st.integers(0, 4)))
    batches, weight = [], np.ones(len(y))
    for i in np.unique(owner):
        mine = owner == i
        kind = data.draw(st.sampled_from(kinds))
        if kind is not None:
            weight[mine] = data.draw(hnp.arrays(np.float64, int(mine.sum()), elements=kind))
        batches.append((X[mine], y[mine], None if kind is None else weight[mine]))
    whole = bits(learn([(X, y, weight)], classes, limits=limits), X)
    assert bits(learn(batches, classes, limits=limits), X) == whole
    assert (
        bits(merged([learn([batch], classes, limits=limits) for batch in batches], data.draw), X)
        == whole
    )


# Several thousand trials: more than fit a leaf, a small index, or a pending batch.


def many_trials(d, n_classes, weights, seed=0, t=6000):
    """Return trials of which a third share their place with others."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(t, d))
    X[: t // 3] = np.round(X[: t // 3] * 8) / 8
    weight = {
        "unweighted": None,
        "whole": rng.integers(1, 4, size=t).astype(float),
        "fractional": rng.exponential(size=t),
    }[weights]
    return X, rng.integers(0, n_classes, size=t), weight, np.arange(n_classes)


def batches_of(order, cuts, X, y, weight):
    return [rows(part, X, y, weight) for part in np.split(order, cuts)]


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("weights", ["unweighted", "whole", "fractional"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("bandwidth", [0.125, "theory"])
def test_thousands_of_trials_give_the_same_bits_however_they_come(d, weights, n_classes, bandwidth):
    X, y, weight, classes = many_trials(d, n_classes, weights)
    rng = np.random.default_rng(1)
    expected = bits(learn([(X, y, weight)], classes, bandwidth), X[::20])
    order = rng.permutation(len(y))
    uneven = batches_of(order, [1, 2, 50, 1100, 1101, 3000, 5900], X, y, weight)
    one = learn(uneven, classes, bandwidth)
    assert bits(one, X[::20]) == expected
    left, right = learn(uneven[::2], classes, bandwidth), learn(uneven[1::2], classes, bandwidth)
    assert bits(right.merge(left), X[::20]) == expected


@pytest.mark.parametrize("metric", ["chebyshev", "manhattan"])
def test_the_other_metrics_give_the_same_bits_too(metric):
    X, y, weight, classes = many_trials(2, 2, "fractional")
    order = np.random.default_rng(2).permutation(len(y))
    batches = batches_of(order, [1200, 2500, 2600], X, y, weight)
    expected = bits(learn([(X, y, weight)], classes, metric=metric), X[::20])
    assert bits(learn(batches, classes, metric=metric), X[::20]) == expected


@pytest.mark.parametrize("d", [1, 2])
def test_a_stream_of_single_trials_gives_the_same_bits(d):
    X, y, weight, classes = many_trials(d, 2, "unweighted", t=1500)
    streamed = learn([(X[i : i + 1], y[i : i + 1], None) for i in range(len(y))], classes)
    assert bits(streamed, X) == bits(learn([(X, y, weight)], classes), X)


def test_batches_too_large_to_wait_give_the_same_bits():
    X, y, weight, classes = many_trials(2, 2, "whole", t=50_000)
    batches = batches_of(np.arange(len(y)), [100, 20_000, 20_100, 45_000], X, y, weight)
    expected = bits(learn([(X, y, weight)], classes, "theory"), X[::100])
    assert bits(learn(batches, classes, "theory"), X[::100]) == expected


@pytest.mark.parametrize("scale", ["range", "std"])
@pytest.mark.parametrize("bandwidth", ["theory", "loo"])
def test_units_and_widths_learned_do_not_depend_on_the_order(scale, bandwidth):
    X, y, weight, _ = many_trials(2, 2, "fractional", t=2000)
    order = np.random.default_rng(3).permutation(len(y))
    a, b = (SmoothBetaClassifier(bandwidth, scale=scale) for _ in range(2))
    a.fit(X, y, sample_weight=weight)
    b.fit(X[order], y[order], sample_weight=weight[order])
    assert a.bandwidth_ == b.bandwidth_
    assert a.scale_.tobytes() == b.scale_.tobytes()
    assert bits(a, X) == bits(b, X)


@pytest.mark.parametrize("n_jobs", [1, 2, 3, -1])
def test_threads_give_the_same_bits(n_jobs):
    X, y, weight, _ = many_trials(2, 2, "fractional")
    model = SmoothBetaClassifier(0.1).fit(X, y, sample_weight=weight)
    expected = bits(model, X)
    assert bits(model.set_params(n_jobs=n_jobs), X) == expected
