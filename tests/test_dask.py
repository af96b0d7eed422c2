"""Dask collections: the answers of one machine to the last bit, whatever the partitions."""

import contextlib
import copy
import functools
import inspect
import io
import itertools
import math
import pickle
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from multiprocessing import get_context

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dask.callbacks import Callback
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from betafield import SmoothBetaClassifier as Local
from betafield import choosing, contexts, guarantees, load
from betafield.dask import SmoothBetaClassifier, tasks
from betafield.posteriors.base import Posterior
from betafield.process.model import Smooth
from betafield.windows import Forest

# Raised by Dask's own calls of pandas 3.
pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword")

T = 240
SIZES = (100, 0, 40, 1, 99)


@pytest.fixture(autouse=True)
def _one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def trials(t=T, d=2, n_classes=2, seed=0):
    """Return trials on eighths of the unit cube: many equal places, many borders, no rounding."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 9, size=(t, d)) / 8
    return X, rng.integers(0, n_classes, size=t)


X, Y = trials()
QUERIES = np.random.default_rng(1).uniform(-0.5, 1.5, size=(37, 2))


def split(values, sizes=SIZES):
    """Return values as a Dask array with partitions of these sizes."""
    values = np.asarray(values)
    return da.from_array(values, chunks=(tuple(sizes), *((n,) for n in values.shape[1:])))


def fitted(options, data, sizes=SIZES):
    """Return the model of one machine, and that of partitions of these sizes."""
    cut = {name: each if np.ndim(each) == 0 else split(each, sizes) for name, each in data.items()}
    method = "fit_counts" if "successes" in data else "fit"
    ours = {name: value for name, value in options.items() if name != "partition"}
    one = getattr(Local(**ours), method)(**data)
    return one, getattr(SmoothBetaClassifier(**options), method)(**cut)


def shapes(posterior):
    """Return all numbers of a posterior, to be compared bit by bit, and its moments."""
    return [posterior.mean(), posterior.var(), *held(posterior)]


def held(value):
    """Return all arrays that are not empty, including those of nested posteriors."""
    if isinstance(value, np.ndarray):
        return [value] if value.size else []
    if isinstance(value, Posterior):
        value = [each for _, each in sorted(vars(value).items())]
    elif not isinstance(value, list | tuple):
        return []
    return [array for each in value for array in held(each)]


LEARNED = ("classes_", "n_trials_", "scale_", "bounds_", "relevance_", "settled_")


def assert_same(one, many, queries=QUERIES):
    """Expect all learned attributes and answers to be equal to the last bit."""
    is_process = one.method != "windows" and one.bandwidth == "auto"
    for name in (*LEARNED, "length_scales_" if is_process else "bandwidth_"):
        np.testing.assert_array_equal(getattr(many, name), getattr(one, name), err_msg=name)
    assert many.weights_.tobytes() == one.weights_.tobytes()
    for theirs in (many.posterior(queries), many.compute().posterior(queries)):
        ours, found = shapes(one.posterior(queries)), shapes(theirs)
        assert len(ours) > 2  # more than the mean and the variance
        for a, b in zip(ours, found, strict=True):
            np.testing.assert_array_equal(b, a)


@pytest.mark.parametrize("bandwidth", ["loo", "auto"])
@pytest.mark.parametrize("context", [None, [0.25, 1.0]], ids=["plain", "distorted"])
def test_models_that_know_different_things_are_told_apart(context, bandwidth):
    options = {"bandwidth": bandwidth, "bounds": [(0, 1)] * 2}
    one, many = fitted(options, {"X": X, "y": Y, "context": np.tile(context or [0.0, 1.0], (T, 1))})
    assert_same(one, many)
    for other in (1 - Y, np.roll(Y, 1)):
        with pytest.raises(AssertionError):
            assert_same(Local(**options).fit(X, other, context=context), many)


def test_models_that_believe_different_things_before_are_told_apart():
    one, many = fitted({"bandwidth": 0.25}, {"X": X, "y": Y})
    one.set_params(prior=(1.0, 1.5))
    with pytest.raises(AssertionError, match="not equal"):
        assert_same(one, many)


# The same as on one machine.


RNG = np.random.default_rng(2)
RATES = RNG.integers(0, 4, size=T) / 8
DATA = {
    "plain": ({}, {"X": X, "y": Y}),
    "line": ({}, {"X": X[:, :1], "y": Y}),
    "three classes": ({"prior": (1.0, 2.0, 0.5)}, {"X": X, "y": trials(n_classes=3)[1]}),
    "weights": ({}, {"X": X, "y": Y, "sample_weight": RNG.integers(0, 3, size=T)}),
    "fractions": ({}, {"X": X, "y": Y, "sample_weight": RNG.exponential(size=T)}),
    "counts": ({}, {"X": X, "successes": Y, "trials": Y + RNG.integers(0, 3, size=T)}),
    "contexts": ({}, {"X": X, "y": Y, "context": contexts.background(RATES)}),
    "mean contexts": (
        {"sharing": "mean"},
        {"X": X, "y": Y, "context": contexts.background(RATES)},
    ),
    "pools": (
        {},
        {"X": X, "y": Y, "context": np.stack([np.zeros(T), 0.5 + RATES, np.ones(T)], axis=1)},
    ),
    "weighted contexts": (
        {},
        {
            "X": X,
            "y": Y,
            "sample_weight": RNG.exponential(size=T),
            "context": contexts.background(RATES),
        },
    ),
    "a prior field": ({"prior": lambda P: (1 + P[:, 0] ** 2, 2.0)}, {"X": X, "y": Y}),
    "chebyshev": ({"metric": "chebyshev"}, {"X": X, "y": Y}),
    "manhattan": ({"metric": "manhattan"}, {"X": X, "y": Y}),
    "bounds": ({"bounds": [(-1, 2), (0, 3)]}, {"X": X, "y": Y}),
    "units": ({"scale": [0.5, 2.0]}, {"X": X, "y": Y}),
    "no units": ({"scale": None}, {"X": X, "y": Y}),
    "deviations": ({"scale": "std"}, {"X": X**1.7 * 3, "y": Y}),
    "weighted deviations": (
        {"scale": "std"},
        {"X": X**1.7 * 3, "y": Y, "sample_weight": RNG.exponential(size=T)},
    ),
    "deviations under contexts": (
        {"scale": "std"},
        {"X": X**1.7 * 3, "y": Y, "context": contexts.background(RATES)},
    ),
    "a constant feature": ({}, {"X": X * [1.0, 0.0] + 3.0, "y": Y}),
    "texts": ({}, {"X": X, "y": np.array(["no", "yes"])[Y]}),
}


@pytest.mark.sampled
@pytest.mark.parametrize("partition", [None, "space"])
@pytest.mark.parametrize("case", DATA)
def test_counts_are_those_of_one_machine(case, partition):
    options, data = DATA[case]
    one, many = fitted({"bandwidth": 0.25, "partition": partition, **options}, data)
    assert_same(one, many, QUERIES[:, : data["X"].shape[1]])


@pytest.mark.sampled
@pytest.mark.parametrize(
    "options", [{"bandwidth": "theory"}, {"bandwidth": "loo"}, {"method": "windows"}]
)
@pytest.mark.parametrize(
    "case", ["plain", "contexts", "weighted contexts", "pools", "three classes", "a prior field"]
)
def test_bandwidths_are_chosen_as_on_one_machine(case, options):
    more, data = DATA[case]
    assert_same(*fitted({**options, **more}, data))


# Only windows have a prior, and mean contexts.
SMOOTH = {case: each for case, each in DATA.items() if not {"prior", "sharing"} & set(each[0])}
SMOOTH["three classes"] = {}, DATA["three classes"][1]


@pytest.mark.sampled
@pytest.mark.parametrize("method", ["auto", "process"])
@pytest.mark.parametrize("case", SMOOTH)
def test_the_default_is_that_of_one_machine(case, method):
    options, data = SMOOTH[case]
    one, many = fitted({"method": method, **options}, data)
    queries = QUERIES[:, : data["X"].shape[1]]
    assert_same(one, many, queries)
    lazy = many.predict_proba(split(queries, (20, 0, 17)))
    np.testing.assert_array_equal(lazy.compute(), one.predict_proba(queries))
    np.testing.assert_array_equal(many.field_.n_near(queries), one.field_.n_near(queries))


@st.composite
def partitioned(draw):
    """Return the sizes of partitions, some of them empty."""
    cuts = sorted(draw(st.lists(st.integers(0, T), max_size=6)))
    return tuple(int(n) for n in np.diff([0, *cuts, T]))


@settings(max_examples=40)
@given(
    sizes=partitioned(),
    case=st.sampled_from(sorted(DATA)),
    partition=st.sampled_from([None, "space"]),
    width=st.sampled_from([0.125, 0.25, 0.5, 4.0]),
)
def test_partitions_never_show(sizes, case, partition, width):
    options, data = DATA[case]
    one, many = fitted({"bandwidth": width, "partition": partition, **options}, data, sizes)
    assert_same(one, many, QUERIES[:, : data["X"].shape[1]])


@settings(max_examples=25)
@given(
    sizes=partitioned(),
    case=st.sampled_from(sorted(SMOOTH)),
    partition=st.sampled_from([None, "space"]),
)
def test_partitions_never_show_in_the_default(sizes, case, partition):
    options, data = SMOOTH[case]
    one, many = fitted({"partition": partition, **options}, data, sizes)
    assert_same(one, many, QUERIES[:, : data["X"].shape[1]])


@pytest.mark.parametrize("bandwidth", [0.25, "loo", "auto"])
def test_partitions_of_one_class_and_of_no_weight(bandwidth):
    weight = np.repeat([1.0, 0.0, 2.0], [80, 80, 80])
    data = {"X": X, "y": np.repeat([0, 1, 1], [80, 80, 80]), "sample_weight": weight}
    assert_same(*fitted({"bandwidth": bandwidth}, data, (80, 80, 80)))
    held = np.repeat([3, 0, 5], [80, 80, 80])
    assert_same(*fitted({"bandwidth": bandwidth}, {"X": X, "successes": 0 * held, "trials": held}))


def test_many_partitions_are_joined_in_a_tree():
    with counted("joined-") as joins:
        one, many = fitted({}, DATA["fractions"][1], (24,) * 10)
    assert len(joins) == 3  # of 8, of 2, and of both
    assert_same(one, many)


@pytest.mark.parametrize("bandwidth", [0.3, "auto"])
@pytest.mark.parametrize("outcome", [0, 1])
def test_a_context_that_teaches_by_one_outcome_alone_widens_the_domain_by_it(outcome, bandwidth):
    # Successes are almost certain here and teach nothing, but a failure does.
    context = np.tile([0.0, 1.0], (6, 1))
    context[-1] = 1.0 - 1e-15, 1.0
    points = np.array([[0.0], [1.0], [0.5], [0.2], [0.4], [9.0]])
    y = np.array([0, 1, 0, 1, 0, outcome])
    data = {"X": points, "y": y, "context": context}
    one, many = fitted({"bandwidth": bandwidth}, data, (3, 2, 1))
    assert one.bounds_[0, 1] == (1.0 if outcome else 9.0)
    assert_same(one, many, points)


@pytest.fixture(scope="module", params=["threads", "processes"])
def pool(request):
    """Return a kind of scheduler, and two threads or processes for it."""
    kinds = {
        "threads": ThreadPoolExecutor,
        "processes": functools.partial(ProcessPoolExecutor, mp_context=get_context("spawn")),
    }
    with kinds[request.param](2) as pool:
        yield request.param, pool


@pytest.fixture
def scheduler(pool):
    """Use threads, or processes, for all of Dask's work."""
    with dask.config.set(scheduler=pool[0], pool=pool[1]):
        yield


@pytest.mark.usefixtures("scheduler")
def test_every_scheduler_answers_the_same():
    one = Local(0.25).fit(X, Y)
    many = SmoothBetaClassifier(0.25).fit(split(X), split(Y))
    assert_same(one, many)
    blocks = many.predict_proba(split(QUERIES, (30, 7))).compute()
    np.testing.assert_array_equal(blocks, one.predict_proba(QUERIES))
    np.testing.assert_array_equal(many.band(QUERIES, 1.0), one.band(QUERIES, 1.0))


@pytest.mark.sampled
@pytest.mark.usefixtures("scheduler")
@pytest.mark.parametrize("case", ["plain", "fractions", "counts", "contexts", "three classes"])
def test_every_scheduler_answers_the_same_by_default(case):
    one, many = fitted(*SMOOTH[case])
    assert_same(one, many)
    far = np.concatenate([QUERIES, 100.0 + QUERIES])
    found = many.posterior(split(far, (30, 0, 44)))
    ours = one.posterior(far)
    for lazy, expected in zip(
        (found.mean(), found.var(), *found.interval()),
        (ours.mean(), ours.var(), *ours.interval()),
        strict=True,
    ):
        np.testing.assert_array_equal(lazy.compute(), expected)


@pytest.mark.parametrize("seed", range(20))
def test_sums_of_partitions_add_up_as_if_rounded_once(seed):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=300) * 10.0 ** rng.integers(-18, 18, size=300)
    some = [tasks.exact_sum(each) for each in np.split(values, [1, 100, 250])]
    assert math.fsum(itertools.chain(*some)) == math.fsum(values)


@pytest.mark.parametrize("bandwidth", [0.25, "loo", "auto"])
def test_partial_fit_goes_on_where_fit_ended(bandwidth):
    data = DATA["contexts"][1]
    options = {"bandwidth": bandwidth, "bounds": [(0, 1)] * 2}
    one = Local(**options).fit(**data)
    many = SmoothBetaClassifier(**options)
    for rows, sizes in ((slice(0, 100), (60, 40)), (slice(100, T), (0, 100, 40))):
        some = {name: split(values[rows], sizes) for name, values in data.items()}
        assert many.partial_fit(**some, classes=[0, 1]) is many
    assert_same(one, many.settle())


def test_a_few_more_trials_are_answered_with_what_was_found_before():
    one, many = Local().fit(X[:230], Y[:230]), SmoothBetaClassifier().fit(X[:230], Y[:230])
    one, many = (
        one.partial_fit(X[230:], Y[230:]),
        many.partial_fit(split(X[230:], (4, 6)), split(Y[230:], (4, 6))),
    )
    assert not many.settled_
    assert_same(one, many)
    assert many.settle().settled_
    assert_same(Local().fit(X, Y), many)


@pytest.mark.parametrize("bandwidth", [0.25, "auto"])
def test_local_batches_and_counts_may_follow_dask_ones(bandwidth):
    options = {"bandwidth": bandwidth, "bounds": [(0, 1)] * 2}
    one = Local(**options).fit(X, Y).partial_fit(X[:7], Y[:7]).partial_fit_counts(X, Y, 3)
    many = SmoothBetaClassifier(**options).fit(split(X), split(Y)).partial_fit(X[:7], Y[:7])
    assert_same(one.settle(), many.partial_fit_counts(split(X), split(Y), 3).settle())


@pytest.mark.sampled
@pytest.mark.parametrize("bandwidth", [0.25, "loo", "auto"])
def test_merge_adds_the_trials_of_both(bandwidth):
    options = {"bandwidth": bandwidth, "bounds": [(0, 1)] * 2}
    pools = DATA["pools"][1]["context"]
    one = Local(**options).fit(np.concatenate([X, X]), np.concatenate([Y, Y]))
    a, b = (SmoothBetaClassifier(**options).fit(split(X), split(Y)) for _ in range(2))
    assert a.merge(b) is a
    assert_same(one, a.settle())
    c = SmoothBetaClassifier(**options).fit(split(X), split(Y), context=split(pools))
    d = SmoothBetaClassifier(**options).fit(split(X), split(Y), context=split(pools[::-1]))
    one = Local(**options).fit(X, Y, context=pools)
    assert_same(one.merge(Local(**options).fit(X, Y, context=pools[::-1])), c.merge(d))


def test_models_that_cannot_be_merged_say_why():
    many = SmoothBetaClassifier(0.25).fit(split(X), split(Y))
    with pytest.raises(TypeError, match=r"other: found SmoothBetaClassifier of betafield\.est"):
        many.merge(Local(0.25).fit(X, Y))
    with pytest.raises(ValueError, match="other: its bounds_"):
        many.merge(SmoothBetaClassifier(0.25).fit(split(2 * X), split(Y)))
    smooth = SmoothBetaClassifier().fit(split(X), split(Y))
    for one, other in ((many, smooth), (smooth, many)):
        with pytest.raises(ValueError, match="both must be of windows, or both of a process"):
            one.merge(other)


def test_a_model_learns_more_of_its_kind_only():
    for kept, asked in (({"bandwidth": 0.25}, {"bandwidth": "auto"}), ({}, {"bandwidth": 0.25})):
        many = SmoothBetaClassifier(**kept).fit(split(X), split(Y)).set_params(**asked)
        with pytest.raises(ValueError, match=r"method: found .*; the trials so far were kept for"):
            many.partial_fit(split(X), split(Y))


@pytest.mark.parametrize(
    ("case", "n", "cost"),
    [
        ("plain", 700, 20.0),
        ("contexts", 700, 20.0),
        pytest.param("plain", choosing.QUERIES + 500, 1.0, marks=pytest.mark.long),
    ],
)
def test_widths_are_scored_at_the_places_of_one_machine(case, n, cost):
    rng = np.random.default_rng(3)
    points = np.repeat(rng.uniform(size=(n, 2)), 2, axis=0)[rng.permutation(2 * n)]
    data = {"X": points, "y": rng.uniform(size=2 * n) < points[:, 0]}
    if case == "contexts":
        data["context"] = contexts.background(rng.integers(0, 4, size=2 * n) / 8)
    for partition in (None, "space"):
        options = {"bandwidth": "loo", "partition": partition}
        one, many = fitted(options, data, (500, 0, n, n - 500))
        ours = choosing.sampled(one.field_.places(), cost)
        theirs = many.windows_.sampled(cost)
        assert theirs.total == ours.total == n
        most = max(choosing.FEWEST, int(choosing.QUERIES / cost))
        assert len(np.unique(theirs.places.axes.T, axis=0)) == most < n
        for a, b in zip(held(ours.places), held(theirs.places), strict=True):
            np.testing.assert_array_equal(b, a)
        assert_same(one, many)


def test_all_widths_are_asked_about_at_once():
    with counted("tell-") as asked:
        _, many = fitted({"bandwidth": "loo"}, DATA["plain"][1])
    assert len(many.field_.scored.widths) > 5
    parts = sum(each.told.size > 0 for each in many.windows_.kept)
    assert len(asked) == 3 * parts  # a sample, hashes, and sums


@pytest.mark.long
def test_large_questions_go_in_several_rounds():
    _, many = fitted({"bandwidth": 0.25}, DATA["contexts"][1])
    before = shapes(many.posterior(QUERIES)), many.band(QUERIES, 1.0)
    few = copy.copy(many.windows_)
    few.numbers = 100
    many = type(many).of(replace(many.field_, windows=few))
    with counted() as asked:
        after = shapes(many.posterior(QUERIES)), many.band(QUERIES, 1.0)
    assert len(asked) > 20
    for a, b in zip((*before[0], *before[1]), (*after[0], *after[1]), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("bandwidth", [0.25, "auto"])
def test_guarantees_ask_all_partitions(bandwidth):
    one, many = fitted({"bandwidth": bandwidth}, DATA["plain"][1])
    for simultaneous in (False, True):
        asked = (QUERIES, 1.0, 0.9, simultaneous)
        np.testing.assert_array_equal(many.band(*asked), one.band(*asked))
    ours, theirs = (guarantees.certificate(m, QUERIES, lipschitz=1.0) for m in (one, many))
    assert theirs.tobytes() == ours.tobytes()


# Collections of points are answered lazily, block by block.


@contextlib.contextmanager
def counted(prefix="tell-"):
    """Collect the keys of the tasks that are run."""
    keys = []

    def note(key, *_):
        if str(key).startswith(prefix):
            keys.append(key)

    with Callback(pretask=note):
        yield keys


def asked_lazily(model, queries):
    posterior = model.posterior(queries)
    return {
        "mean": posterior.mean(),
        "var": posterior.var(),
        "std": posterior.std(),
        "low": posterior.interval(0.9)[0],
        "high": posterior.interval(0.9)[1],
        "pdf": posterior.pdf(0.3),
        "cdf": posterior.cdf(0.3),
        "above": posterior.prob_above(0.3),
        "ppf": posterior.ppf(0.3),
        "under": posterior.under([0.25, 0.75]).mean(),
        "proba": model.predict_proba(queries),
        "class": model.predict(queries),
        "band low": model.band(queries, 1.0)[0],
        "band high": model.band(queries, 1.0, level=0.9, simultaneous=True)[1],
    }


@pytest.mark.sampled
@pytest.mark.parametrize("bandwidth", [0.25, "loo", "auto"])
@pytest.mark.parametrize("case", ["plain", "contexts", "texts"])
def test_a_collection_of_points_is_answered_when_computed(case, bandwidth):
    options, data = DATA[case]
    one, many = fitted({"bandwidth": bandwidth, **options}, data)
    with counted("") as run:
        lazy = asked_lazily(many, split(QUERIES, (20, 0, 17)))
        assert not run
    for name, expected in asked_lazily(one, QUERIES).items():
        assert lazy[name].shape == expected.shape
        assert lazy[name].dtype == expected.dtype
        np.testing.assert_array_equal(lazy[name].compute(), expected, err_msg=name)


@pytest.mark.parametrize("bandwidth", [0.25, "auto"])
def test_three_classes_are_answered_lazily_too(bandwidth):
    one, many = fitted({"bandwidth": bandwidth}, DATA["three classes"][1])
    queries = split(QUERIES, (20, 17))
    for lazy, expected in (
        (many.posterior(queries).mean(), one.posterior(QUERIES).mean()),
        (many.posterior(queries).interval()[1], one.posterior(QUERIES).interval()[1]),
        (many.predict_proba(queries), one.predict_proba(QUERIES)),
        (many.predict(queries), one.predict(QUERIES)),
    ):
        assert lazy.shape == expected.shape
        np.testing.assert_array_equal(lazy.compute(), expected)


def copies(collection, kind=Smooth):
    """Return how many tasks of the computed graph hold an object of this kind."""
    (collection,) = dask.optimize(collection)
    found = 0

    class Finder(pickle.Pickler):
        def persistent_id(self, value):
            nonlocal found
            found += isinstance(value, kind)

    for task in dict(collection.dask).values():
        Finder(io.BytesIO()).dump(task)
    return found


@pytest.mark.parametrize("blocks", [1, 37])
def test_the_process_is_once_in_the_graph_of_all_blocks(blocks):
    _, many = fitted({}, DATA["plain"][1])
    queries = split(QUERIES, (37,) if blocks == 1 else (1,) * 37)
    assert copies(many.posterior(queries).mean()) == 1
    assert copies(many.predict_proba(queries)) == 1
    assert copies(many.band(queries, 1.0)[0], Forest) == 1


@pytest.mark.parametrize("bandwidth", [0.25, "auto"])
def test_points_in_frames_have_unknown_lengths(bandwidth):
    table = pd.DataFrame(X, columns=["a", "b"])
    many = SmoothBetaClassifier(bandwidth)
    many.fit(dd.from_pandas(table, npartitions=3), split(Y, (80,) * 3))
    one = Local(bandwidth).fit(table, Y)
    queries = pd.DataFrame(QUERIES, columns=["a", "b"])
    found = many.predict_proba(dd.from_pandas(queries, npartitions=2))
    assert np.isnan(found.shape[0])
    np.testing.assert_array_equal(found.compute(), one.predict_proba(queries))
    np.testing.assert_array_equal(many.predict_proba(queries), one.predict_proba(queries))


def test_one_number_for_all_rows_is_asked_of_posteriors():
    many = SmoothBetaClassifier(0.25).fit(split(X), split(Y))
    with pytest.raises(ValueError, match=r"ppf: found an array of shape \(2,\); one number"):
        many.posterior(split(X)).ppf([0.1, 0.2])


@pytest.mark.parametrize("bandwidth", [0.25, "auto"])
def test_the_score_is_that_of_one_machine(bandwidth):
    one, many = fitted({"bandwidth": bandwidth}, DATA["plain"][1])
    assert many.score(split(X), split(Y)) == one.score(X, Y) == many.score(X, Y)
    weight = np.arange(T) % 5
    assert many.score(split(X), split(Y), split(weight)) == one.score(X, Y, weight)


# Partitions too far away are not queried.


def test_partitions_out_of_reach_are_not_asked():
    points = np.linspace(0, 1, 1000)[:, None]
    y = np.arange(1000) % 2
    sizes = (100,) * 10
    for metric in ("euclidean", "chebyshev", "manhattan"):
        one, many = fitted({"bandwidth": 0.05, "metric": metric}, {"X": points, "y": y}, sizes)
        for queries, parts in (([[0.55]], 1), ([[0.5]], 2), ([[0.01], [0.99]], 2), ([[7.0]], 0)):
            with counted() as asked:
                found = many.posterior(queries)
            assert len(asked) == parts
            np.testing.assert_array_equal(found.alpha, one.posterior(queries).alpha)


def test_a_trial_on_the_border_of_reach_is_asked_for():
    points = np.arange(8.0)[:, None]
    one, many = fitted(
        {"bandwidth": 1.0, "scale": None}, {"X": points, "y": np.arange(8) % 2}, (4, 4)
    )
    with counted() as asked:
        assert many.posterior([[5.0 - 2.0]]).alpha == one.posterior([[3.0]]).alpha
    assert len(asked) == 2


def test_regions_leave_few_partitions_to_ask():
    rng = np.random.default_rng(0)
    points = rng.uniform(size=(4000, 2))
    y = rng.integers(0, 2, size=4000)
    numbers = {}
    for partition in (None, "space"):
        options = {"bandwidth": 0.02, "partition": partition}
        one, many = fitted(options, {"X": points, "y": y}, (250,) * 16)
        with counted() as asked:
            found = many.posterior([[0.31, 0.42]])
        numbers[partition] = len(asked)
        np.testing.assert_array_equal(found.alpha, one.posterior([[0.31, 0.42]]).alpha)
        assert sum(each.told.size for each in many.windows_.kept) == 4000
        assert max(each.told.size for each in many.windows_.kept) < 500
    assert numbers[None] == 16
    assert 1 <= numbers["space"] <= 4


# Bad input.


def refused(error, call, *said):
    """Expect an error with all of these words."""
    with pytest.raises(error) as caught:
        call()
    for words in said:
        assert words in str(caught.value), str(caught.value)


def test_what_is_not_refused_as_said_is_told_apart():
    def fail():
        raise ValueError("partition 4: found nothing")

    refused(ValueError, fail, "partition 4", "nothing")
    with pytest.raises(AssertionError):
        refused(ValueError, fail, "partition 4", "something")
    with pytest.raises(pytest.fail.Exception):
        refused(ValueError, list)


def fit(X=X, y=Y, sizes=SIZES, options=None, **others):
    cut = {name: split(each, sizes) for name, each in {"X": X, "y": y, **others}.items()}
    return SmoothBetaClassifier(**{"bandwidth": 0.25, **(options or {})}).fit(**cut)


@pytest.fixture(params=[0.25, "auto"], ids=["windows", "process"])
def either(request):
    """Return `fit` with windows, and with the default."""

    def fit_so(*trials, options=None, **others):
        return fit(*trials, options={"bandwidth": request.param, **(options or {})}, **others)

    return fit_so


def with_cell(values, row, value):
    changed = np.array(values, dtype=object if isinstance(value, str) else None)
    changed[row] = value
    return changed


def test_wrong_values_name_the_partition_and_the_row(either):
    # Row 143 is the third row of partition 4.
    bad = with_cell(X, (143, 1), np.nan)
    refused(ValueError, lambda: either(X=bad), "partition 4: X row 2, column 1: found NaN")
    text = with_cell(X, (143, 1), "far")
    refused(ValueError, lambda: either(X=text), "partition 4: X row 2, column 1: found 'far'")
    refused(
        ValueError,
        lambda: either(sample_weight=with_cell(np.ones(T), 143, -1.0)),
        "partition 4: sample_weight row 2: found -1.0",
    )
    bounds = {"bounds": [(0, 1), (0, 1)]}
    for partition in (None, "space"):
        options = {**bounds, "partition": partition}
        refused(
            ValueError,
            lambda options=options: either(X=with_cell(X, (143, 0), 2.0), options=options),
            "partition 4: X row 2, column 0: found 2.0; bounds allow",
        )
    never = np.tile([0.0, 1.0], (T, 1))
    never[143] = 0.0, 0.0
    for partition in (None, "space"):
        refused(
            ValueError,
            lambda partition=partition: either(
                y=with_cell(Y, 143, 1), context=never, options={"partition": partition}
            ),
            "partition 4: context row 2",
            "this cannot happen",
        )


def test_partitions_that_do_not_go_together_are_refused():
    refused(
        ValueError,
        lambda: SmoothBetaClassifier(0.25).fit(split(X), split(Y, (120, 120))),
        "y: found 2 partitions where X has 5",
    )
    refused(
        ValueError,
        lambda: SmoothBetaClassifier(0.25).fit(split(X), split(Y, (100, 0, 39, 2, 99))),
        "partition ",
        "y: found ",
        " rows where X has ",
    )
    refused(
        ValueError,
        lambda: SmoothBetaClassifier(0.25).fit(split(X), split(Y, (99, 1, 40, 1, 99))),
        "partition ",
        "y: found ",
        " rows where X has ",
    )
    context = np.tile([0.0, 1.0], (T, 1))
    refused(
        ValueError,
        lambda: SmoothBetaClassifier(0.25).fit(
            split(X), split(Y), context=split(context, (100, 0, 39, 2, 99))
        ),
        "partition ",
        "context: found ",
        " rows where X has ",
    )
    refused(
        ValueError,
        lambda: SmoothBetaClassifier(0.25).fit(split(X, (0, 240)), split(Y, (3, 237))),
        "partition ",
        ": y: found ",
        " rows where X has ",
    )


def test_chunks_along_columns_are_refused():
    wide = da.from_array(X, chunks=(100, 1))
    refused(
        ValueError,
        lambda: SmoothBetaClassifier(0.25).fit(wide, split(Y)),
        "X: found 2 chunks along its columns",
        ".rechunk({1: -1})",
    )
    model = fit()
    refused(ValueError, lambda: model.posterior(wide), "X: found 2 chunks along its columns")


def test_local_and_lazy_arguments_do_not_mix():
    model = SmoothBetaClassifier(0.25)
    refused(TypeError, lambda: model.fit(split(X), Y), "y: found ndarray, but X is a dask")
    refused(TypeError, lambda: model.fit(X, split(Y)), "y: found a dask collection, but X is none")
    refused(
        TypeError,
        lambda: model.fit(split(X), split(Y), sample_weight=np.ones(T)),
        "sample_weight: found ndarray",
    )
    refused(TypeError, lambda: model.fit(dask.delayed(X), split(Y)), "X: found Delayed")
    refused(ValueError, lambda: model.fit(split(X), None), "requires y to be passed")
    one = Local(0.25).fit(X, Y, context=[0.25, 1.0])
    assert_same(one, model.fit(split(X), split(Y), context=[0.25, 1.0]))
    assert_same(one, model.fit(split(X), split(Y), context=[[0.25, 1.0]]))


def test_nothing_to_learn_from_is_refused(either):
    refused(ValueError, lambda: either(X[:0], Y[:0], (0, 0)), "X: found 0 rows in all partitions")
    refused(ValueError, lambda: either(y=7 + 0 * Y), "y: found only one class, 7")
    refused(ValueError, lambda: either(sample_weight=np.zeros(T)), "all are zero in all partitions")
    same = np.full((T, 2), 0.5)
    for options in ({}, {"bounds": [(0, 1)] * 2}):
        refused(
            ValueError,
            lambda options=options: either(context=same, options=options),
            "every trial has equal coefficients",
        )


def test_wrong_options_are_refused_before_anything_is_read():
    with counted("") as run:
        refused(ValueError, lambda: fit(options={"partition": "time"}), "partition: found 'time'")
        refused(ValueError, lambda: fit(options={"metric": "taxi"}), "metric: found 'taxi'")
        assert not run
    refused(ValueError, lambda: fit(options={"bounds": [(0, 1)]}), "bounds: found shape (1, 2)")
    refused(ValueError, lambda: fit(options={"prior": (0.0, 1.0)}), "prior: found a shape of 0.0")
    refused(ValueError, lambda: fit(options={"scale": [1.0]}), "scale: found shape (1,)")
    smooth = {"bandwidth": "auto"}
    refused(
        ValueError,
        lambda: fit(options={**smooth, "bounds": [(0, 1)]}),
        "bounds: found shape (1, 2)",
    )
    with counted("") as run:
        for wrong in ({"prior": (1.0, 2.0)}, {"sharing": "mean"}):
            refused(ValueError, lambda wrong=wrong: fit(options={**smooth, **wrong}), "windows")
        assert not run
    refused(TypeError, lambda: SmoothBetaClassifier().fit_files("x"), "read_parquet")


def test_classes_and_features_stay_what_they_were(either):
    model = either()
    refused(
        ValueError,
        lambda: model.partial_fit(split(X), split(Y), classes=[0, 1, 2]),
        "classes: found [0, 1, 2]; the first call said [0, 1]",
    )
    refused(
        ValueError,
        lambda: model.partial_fit(split(X), split(Y + 1)),
        "partition ",
        ": found 2; the classes are [0, 1]",
    )
    refused(
        ValueError,
        lambda: model.partial_fit(split(X[:, :1]), split(Y)),
        "partition ",
        ": X has 1 features",
    )
    assert_same(Local(model.bandwidth).fit(X, Y), model)


def test_labels_of_two_kinds_name_the_partition():
    blocks = [split(Y[:100], (100,)), split(np.array(["no", "yes"])[Y[100:]], (140,))]
    parts = [dask.delayed(np.asarray)(block) for block in blocks]
    y = da.concatenate(
        [da.from_delayed(p, (n,), dtype=object) for p, n in zip(parts, (100, 140), strict=True)]
    )
    refused(
        ValueError,
        lambda: SmoothBetaClassifier(0.25).fit(split(X, (100, 140)), y),
        "partition 1: found y such as ['no'], where partition 0 has [0]",
    )


def test_a_failed_partial_fit_or_merge_leaves_the_model_as_it_was(either):
    model = either()
    before = dict(vars(model))
    with pytest.raises(ValueError, match="partition 4: X row 2"):
        model.partial_fit(split(with_cell(X, (143, 1), np.inf)), split(Y))
    with pytest.raises(ValueError, match="other: its classes_"):
        model.merge(either(y=2 * Y))
    assert vars(model) == before


def test_an_unfitted_model_says_so():
    model = SmoothBetaClassifier()
    for call in (
        lambda: model.posterior(X),
        lambda: model.posterior(split(X)),
        lambda: model.predict_proba(split(X)),
        lambda: model.predict(split(X)),
        lambda: model.band(split(X), 1.0),
        lambda: model.score(split(X), split(Y)),
        model.compute,
        lambda: model.merge(model),
    ):
        with pytest.raises(NotFittedError):
            call()


def test_a_band_that_has_no_guarantee_is_refused_before_it_is_computed(either):
    model = either(sample_weight=np.full(T, 0.5))
    for queries in (X, split(X)):
        with pytest.raises(ValueError, match="fractional weights"):
            model.band(queries, 1.0)
    with pytest.raises(ValueError, match="lipschitz: found -1"):
        either().band(split(X), -1)


# Other abilities of estimators.


def test_the_model_is_cloned_printed_and_pickled():
    model = fit(options={"partition": "space", "prior": (1.0, 2.0)})
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert copy.get_params()["partition"] == "space"
    assert set(model.get_params()) == {*Local().get_params(), "partition"}
    assert repr(copy) == "SmoothBetaClassifier(bandwidth=0.25, partition='space', prior=(1.0, 2.0))"
    again = pickle.loads(pickle.dumps(model))
    assert_same(Local(0.25, prior=(1.0, 2.0)).fit(X, Y), again)
    names = list(inspect.signature(Local).parameters)
    assert list(inspect.signature(SmoothBetaClassifier).parameters) == [*names, "partition"]


def test_the_computed_model_needs_no_dask():
    one = fit().compute()
    assert type(one) is Local
    assert one.get_params() == Local(0.25).get_params()
    assert_same_after_more(one)


def test_the_computed_model_of_the_default_is_that_of_one_machine(tmp_path):
    model = fit(options={"bandwidth": "auto", "partition": "space"})
    one = model.compute()
    assert type(one) is Local
    assert one.get_params() == Local().get_params()
    assert one.settled_
    model.save(tmp_path / "model.beta")
    for again in (one, load(tmp_path / "model.beta"), pickle.loads(pickle.dumps(model))):
        assert_same(Local().fit(X, Y), SmoothBetaClassifier.of(again.field_))


def assert_same_after_more(one):
    more = Local(0.25).fit(X, Y).partial_fit(X[:5], Y[:5])
    np.testing.assert_array_equal(
        one.partial_fit(X[:5], Y[:5]).posterior(QUERIES).alpha, more.posterior(QUERIES).alpha
    )


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_without_dask_the_import_says_how_to_get_it():
    found = run("import sys; sys.modules['dask'] = None; import betafield.dask")
    assert found.returncode == 1
    last = found.stderr.strip().splitlines()[-1]
    assert last == "ImportError: dask is needed for this: pip install '.[dask]' in a checkout"


@pytest.mark.long
def test_one_machine_does_not_import_dask():
    code = (
        "import sys; from betafield import SmoothBetaClassifier\n"
        "SmoothBetaClassifier().fit([[0], [1]], [0, 1]).posterior([[0.5]]).mean()\n"
        "assert 'dask' not in sys.modules and 'betafield.dask' not in sys.modules"
    )
    assert run(code).returncode == 0, run(code).stderr


# Files.


@pytest.fixture
def folder(tmp_path):
    """Return a folder of four files of 60 trials each, in row groups of 30."""
    for i in range(4):
        rows = slice(60 * i, 60 * (i + 1))
        write(tmp_path / f"part-{i}.parquet", {"a": X[rows, 0], "b": X[rows, 1], "s": Y[rows]})
    return tmp_path


def write(path, columns):
    pq.write_table(pa.table({**columns, "other": np.zeros(60)}), path, row_group_size=30)


def from_files(folder, bandwidth=0.25, **options):
    table = dd.read_parquet(folder, **options)
    return SmoothBetaClassifier(bandwidth).fit(table[["a", "b"]], table["s"])


def test_files_are_learned_from_by_default(folder):
    one = Local().fit(pd.DataFrame(X, columns=["a", "b"]), Y)
    many = from_files(str(folder), "auto", split_row_groups=True)
    assert_same(one, many, pd.DataFrame(QUERIES, columns=["a", "b"]))


@pytest.mark.parametrize(
    ("options", "number"),
    [({}, 4), ({"split_row_groups": True}, 8), ({"filesystem": "arrow"}, 4)],
)
def test_files_are_learned_from_a_partition_at_a_time(folder, options, number):
    table = pd.DataFrame(X, columns=["a", "b"])
    many = from_files(str(folder), **options)
    assert len(many.windows_.kept) == number
    assert many.feature_names_in_.tolist() == ["a", "b"]
    one = Local(0.25).fit(table, Y)
    assert_same(one, many, pd.DataFrame(QUERIES, columns=["a", "b"]))


@pytest.mark.parametrize(
    ("options", "said"),
    [({}, "partition 2 ({}): could not be computed"), ({"filesystem": "arrow"}, "{}")],
)
def test_a_cut_file_is_named(folder, options, said):
    path = folder / "part-2.parquet"
    table = dd.read_parquet(str(folder), **options)
    path.write_bytes(path.read_bytes()[:500])
    refused(
        (ValueError, OSError),
        lambda: SmoothBetaClassifier(0.25).fit(table[["a", "b"]], table["s"]),
        said.format(path),
    )


def test_a_damaged_row_group_is_named(folder):
    path = folder / "part-2.parquet"
    table = dd.read_parquet(str(folder), split_row_groups=True)
    group = pq.ParquetFile(path).metadata.row_group(1).column(0)
    start = group.dictionary_page_offset or group.data_page_offset
    whole = bytearray(path.read_bytes())
    whole[start : start + 20] = b"\xff" * 20
    path.write_bytes(bytes(whole))
    refused(
        (ValueError, OSError),
        lambda: SmoothBetaClassifier(0.25).fit(table[["a", "b"]], table["s"]),
        f"partition 5 ({path}, row group 1): could not be computed",
    )


def test_a_file_that_is_gone_is_named(folder):
    table = dd.read_parquet(str(folder))
    path = folder / "part-1.parquet"
    path.unlink()
    refused(
        OSError,
        lambda: SmoothBetaClassifier(0.25).fit(table[["a", "b"]], table["s"]),
        f"partition 1 ({path}): could not be computed. FileNotFoundError",
    )


def test_a_file_without_a_column_is_named(folder):
    path = folder / "part-2.parquet"
    write(path, {"a": X[:60, 0], "s": Y[:60]})
    refused(ValueError, lambda: from_files(folder), f"partition 2 ({path})", "['b'] not in index")


def test_a_file_with_texts_for_numbers_is_named(folder):
    path = folder / "part-2.parquet"
    write(path, {"a": X[:60, 0], "b": ["far"] * 60, "s": Y[:60]})
    said = f"partition 2 ({path}): X row 0, column 'b': found 'far'"
    refused(ValueError, lambda: from_files(folder), said)
    write(path, {"a": X[:60, 0], "b": X[:60, 1], "s": ["yes"] * 60})
    said = f"partition 2 ({path}): found y such as ['yes'], where partition 0"
    refused(ValueError, lambda: from_files(folder), said)


def test_whole_numbers_in_one_file_and_fractions_in_another_are_the_same_feature(folder):
    write(folder / "part-2.parquet", {"a": [1] * 60, "b": [0] * 60, "s": Y[:60] > 0})
    points, y = X.copy(), Y.copy()
    points[120:180], y[120:180] = (1, 0), Y[:60]
    one = Local(0.25).fit(pd.DataFrame(points, columns=["a", "b"]), y)
    many = from_files(folder)
    np.testing.assert_array_equal(
        many.predict_proba(pd.DataFrame(QUERIES, columns=["a", "b"])),
        one.predict_proba(pd.DataFrame(QUERIES, columns=["a", "b"])),
    )


def test_a_csv_file_is_named(tmp_path):
    for i, cell in enumerate(["1", "2", "far"]):
        (tmp_path / f"{i}.csv").write_text("a,s\n" + f"{cell},0\n0,1\n" * 3)
    table = dd.read_csv(str(tmp_path / "*.csv"))
    refused(
        ValueError,
        lambda: SmoothBetaClassifier(0.25).fit(table[["a"]], table["s"]),
        f"partition 2 ({tmp_path / '2.csv'}): could not be computed",
        "far",
    )


@pytest.mark.parametrize("bandwidth", ["auto", 0.25])
def test_a_partition_may_have_as_many_rows_as_a_context_for_all_has_coefficients(bandwidth):
    pools = contexts.pooled(2, 0.9, 0.9)
    many = SmoothBetaClassifier(bandwidth, bounds=[(0, 1)] * 2)
    many.fit(split(X, (3, T - 3)), split(Y, (3, T - 3)), context=pools)
    one = Local(bandwidth, bounds=[(0, 1)] * 2).fit(X, Y, context=pools)
    assert one.predict_proba(QUERIES).tobytes() == many.predict_proba(QUERIES).tobytes()
    with pytest.raises(ValueError, match=r"^context: found shape \(39,\); if these are"):
        many.fit(split(X), split(Y), context=np.linspace(0.0, 1.0, 39))


def test_unknown_rates_that_differ_by_row_are_refused():
    rng = np.random.default_rng(0)
    X, y = da.from_array(rng.random((100, 1)), 50), da.from_array(np.arange(100) % 2, 50)
    rates = contexts.guess_lapse(np.full(100, 0.5), contexts.Unknown(1.5, 30))
    with pytest.raises(TypeError, match=r"context: found ContextFamily\(100 rows.*local model"):
        SmoothBetaClassifier().fit(X, y, context=rates)


# Categories --------------------------------------------------------------------------------


def sites(t=T, seed=5):
    """Return a table of trials at sites, some of them in few partitions only."""
    rng = np.random.default_rng(seed)
    site = np.array(["bonn", "kiel", "ulm", "jena"])[np.minimum(rng.geometric(0.5, t) - 1, 3)]
    table = pd.DataFrame({"site": site, "dose": rng.integers(0, 9, t) / 8, "old": site > "j"})
    return table, pd.Series(rng.random(t) < 0.3 + 0.4 * (site == "kiel"), name="died")


@pytest.mark.sampled
@pytest.mark.parametrize("n", [1, 3, 7])
@pytest.mark.parametrize(
    "options", [{}, {"method": "process", "interactions": [("site", "old")], "scale": "range"}]
)
def test_categories_are_learned_as_on_one_machine(options, n):
    table, died = sites()
    asked, _ = sites(20, seed=6)
    asked.loc[0, "site"] = "rome"
    one = Local(**options).fit(table, died)
    cut = dd.from_pandas(table, npartitions=n, sort=False)
    many = SmoothBetaClassifier(**options).fit(cut, dd.from_pandas(died, npartitions=n, sort=False))
    assert many.field_.features.categories == one.field_.features.categories
    assert_same(one, many, asked)
    blocks = many.predict_proba(dd.from_pandas(asked, npartitions=2, sort=False)).compute()
    np.testing.assert_array_equal(blocks, one.predict_proba(asked))


def test_later_partitions_may_bring_levels():
    table, died = sites()
    some = table["site"] != "jena"
    one = Local().fit(table[some], died[some]).partial_fit(table[~some], died[~some]).settle()
    many = SmoothBetaClassifier()
    for rows in (some, ~some):
        X_, y_ = (dd.from_pandas(each[rows], npartitions=2, sort=False) for each in (table, died))
        many.partial_fit(X_, y_, classes=[False, True])
    many.settle()
    assert many.field_.features.categories == one.field_.features.categories
    assert_same(one, many, table[:20])


@pytest.mark.long
def test_missing_categories_are_a_level_over_dask_too():
    table, died = sites()
    table = table.astype({"site": "object"})
    table.loc[::7, "site"] = None
    one = Local(missing="level").fit(table, died)
    cut = [dd.from_pandas(each, npartitions=3, sort=False) for each in (table, died)]
    assert_same(one, SmoothBetaClassifier(missing="level").fit(*cut), table[:20])
    missing = r"partition \d: X row \d+, column 'site': found a missing"
    with pytest.raises(ValueError, match=missing):
        SmoothBetaClassifier().fit(*cut)
    with pytest.raises(ValueError, match="missing: found 'drop', which is for one machine"):
        SmoothBetaClassifier(missing="drop").fit(*cut)


def test_windows_on_workers_have_no_categories():
    table, died = sites()
    cut = [dd.from_pandas(each, npartitions=2, sort=False) for each in (table, died)]
    with pytest.raises(ValueError, match=r"categorical_features: found .* with windows on dask"):
        SmoothBetaClassifier(0.1, categorical_features=["site"]).fit(*cut)
    with pytest.raises(ValueError, match=r"partition \d: X row 0, column .site.: found"):
        SmoothBetaClassifier(0.1).fit(*cut)
