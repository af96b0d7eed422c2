"""Monotone fields: their guarantees, where they are used, and what is refused."""

import copy
import pickle
import warnings

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.isotonic import isotonic_regression

import betafield.dask
from betafield import SmoothBetaClassifier, load
from betafield.cautions import FieldWarning
from betafield.monotone import SEED, SIZE
from betafield.posteriors import Sampled
from betafield.process.centring import Centred
from betafield.process.draws import Fields


def _data(d=1, t=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(t, d))
    p = 0.1 + 0.8 * X[:, 0] ** 2
    return X, rng.uniform(size=t) < p


@pytest.mark.parametrize("sign", [1, -1])
def test_draws_are_isotonic_regressions_of_centred_ones(sign):
    X, y = _data(t=80)
    model = SmoothBetaClassifier(bounds=[(0, 1)], monotonic_cst=[sign]).fit(X, y == (sign > 0))
    grid = np.linspace(0.0, 1.0, 129)[:, None]
    free = Centred(Fields(model.field_.smooth[0], SIZE, SEED)).at(grid)
    post = model.posterior(grid)
    assert isinstance(post, Sampled)
    for k in range(0, SIZE, 50):
        expected = isotonic_regression(free[k], increasing=sign > 0)
        np.testing.assert_allclose(post.draws[k], expected, atol=1e-9)


def test_where_no_draw_breaks_the_constraint_the_mean_is_as_without_it():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(20_000, 1))
    y = rng.uniform(size=20_000) < 0.1 + 0.8 * X[:, 0]
    free, bound = (SmoothBetaClassifier(monotonic_cst=cst).fit(X, y) for cst in (None, [1]))
    # On the nodes of the grid, because the field is linear between them.
    nodes = bound.field_.answering.grid.grids[0][:, None]
    np.testing.assert_allclose(
        bound.posterior(nodes).mean(), free.posterior(nodes).mean(), rtol=0.0, atol=2e-6
    )


def test_along_one_feature_thresholds_are_those_without_the_constraint():
    X, y = _data()
    free, bound = (
        SmoothBetaClassifier(bounds=[(0, 1)], monotonic_cst=cst).fit(X, y) for cst in (None, [1])
    )
    free, bound = (each.threshold(0.5, random_state=0).draws for each in (free, bound))
    np.testing.assert_allclose(bound, free, rtol=0.0, atol=1e-9)


def test_all_that_is_asked_is_monotone():
    X, y = _data(2)
    model = SmoothBetaClassifier(monotonic_cst=[1, 0]).fit(X, y)
    line = np.column_stack([np.linspace(-0.5, 1.5, 301), np.full(301, 0.3)])
    post = model.posterior(line)
    low, high = post.interval(0.9)
    for curve in (model.predict_proba(line)[:, 1], low, high, *model.draws(line, 20)):
        assert np.all(np.diff(curve) >= -1e-12)
    assert np.all(model.slope(line, "x0", size=50).draws >= -1e-9)


def test_two_features_can_be_monotone_at_once():
    X, y = _data(2)
    model = SmoothBetaClassifier(monotonic_cst=[1, -1]).fit(X, y)
    u = np.linspace(0.0, 1.0, 23)
    points = np.stack(np.meshgrid(u, u, indexing="ij"), axis=-1).reshape(-1, 2)
    table = model.draws(points, 30, random_state=0).reshape(30, 23, 23)
    assert np.all(np.diff(table, axis=1) >= -1e-12)
    assert np.all(np.diff(table, axis=2) <= 1e-12)


def test_many_features_go_along_lines_of_their_own():
    X, y = _data(5, 150)
    model = SmoothBetaClassifier(monotonic_cst=[1, 0, 0, 0, 0]).fit(X, y)
    line = np.tile(X[:1], (20, 1))
    line[:, 0] = np.linspace(0.0, 1.0, 20)
    mean = model.predict_proba(line)[:, 1]
    assert np.all(np.diff(mean) >= -1e-12)
    alone = model.predict_proba(line[7:8])[:, 1]
    assert np.array_equal(alone, mean[7:8])


def test_the_mean_is_that_of_the_posterior():
    X, y = _data(2)
    model = SmoothBetaClassifier(monotonic_cst=[1, 0]).fit(X, y)
    points = np.random.default_rng(1).uniform(size=(50, 2))
    np.testing.assert_allclose(
        model.predict_proba(points)[:, 1], model.posterior(points).mean(), atol=1e-12
    )


def test_what_is_learned_is_a_function_of_trials_and_options(tmp_path):
    X, y = _data()
    model = SmoothBetaClassifier(monotonic_cst={"x0": 1}).fit(X, y)
    expected = model.predict_proba(X)
    model.save(tmp_path / "m.beta")
    stream = SmoothBetaClassifier(monotonic_cst={"x0": 1})
    for rows in np.array_split(np.random.default_rng(0).permutation(300), 3):
        stream.partial_fit(X[rows], y[rows], classes=[False, True])
    halves = [SmoothBetaClassifier(monotonic_cst={"x0": 1}).fit(X[i::2], y[i::2]) for i in (0, 1)]
    chunks = da.from_array(X, chunks=(100, 1)), da.from_array(y, chunks=100)
    spread = betafield.dask.SmoothBetaClassifier(monotonic_cst={"x0": 1}).fit(*chunks)
    for each in (
        load(tmp_path / "m.beta"),
        copy.deepcopy(model),
        pickle.loads(pickle.dumps(model)),
        clone(model).fit(X[::-1], y[::-1]),
        stream.settle(),
        halves[0].merge(halves[1]).settle(),
        spread.compute(),
        spread,
    ):
        assert np.array_equal(each.predict_proba(X), expected)
    assert np.array_equal(spread.predict_proba(chunks[0]).compute(), expected)
    assert load(tmp_path / "m.beta").monotonic_cst == {"x0": 1}


def test_names_of_dataframes_are_those_of_features():
    X, y = _data(2)
    table = pd.DataFrame(X, columns=["dose", "age"])
    named = SmoothBetaClassifier(monotonic_cst={"dose": 1}).fit(table, y)
    numbered = SmoothBetaClassifier(monotonic_cst=np.array([1, 0])).fit(X, y)
    assert np.array_equal(named.predict_proba(table), numbered.predict_proba(X))


def test_nothing_asked_for_changes_nothing():
    X, y = _data()
    free = SmoothBetaClassifier().fit(X, y).posterior(X[:5]).mean()
    zero = SmoothBetaClassifier(monotonic_cst=[0]).fit(X, y).posterior(X[:5])
    assert not isinstance(zero, Sampled)
    assert np.array_equal(zero.mean(), free)


def test_trials_that_speak_against_it_are_told():
    X, y = _data(t=600)
    with pytest.warns(FieldWarning, match=r"monotonic_cst: .* never rises along column 0: .* e\^-"):
        SmoothBetaClassifier(monotonic_cst=[-1]).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SmoothBetaClassifier(monotonic_cst=[1]).fit(X, y)


@pytest.mark.parametrize(
    ("cst", "match"),
    [
        ([1, 0], "monotonic_cst: found .*; one number per feature is needed, 1"),
        ([2], "monotonic_cst, feature 0: found 2"),
        ([0.5], "monotonic_cst, feature 0: found 0.5"),
        (["a"], "monotonic_cst, feature 0: found 'a'"),
        ([True], "monotonic_cst, feature 0: found True"),
        ({"dose": 1}, "monotonic_cst: found 'dose'; the features are x0"),
        ({"x0": 3}, "monotonic_cst, feature 'x0': found 3"),
        ({0: 1}, "monotonic_cst: found 0"),
        ("x0", "monotonic_cst: found 'x0'"),
        (1, "monotonic_cst: found"),
    ],
    ids=str,
)
def test_wrong_ways_are_refused_by_name(cst, match):
    X, y = _data()
    with pytest.raises((ValueError, TypeError), match=match):
        SmoothBetaClassifier(monotonic_cst=cst).fit(X, y)


def test_windows_classes_and_too_many_features_are_refused():
    X, y = _data(5)
    for options in ({"method": "windows"}, {"bandwidth": 0.2}):
        with pytest.raises(ValueError, match=r"monotonic_cst: .* with windows"):
            SmoothBetaClassifier(monotonic_cst=[1] + [0] * 4, **options).fit(X, y)
    with pytest.raises(ValueError, match="monotonic_cst: this model has 3 classes"):
        SmoothBetaClassifier(monotonic_cst=[1] + [0] * 4).fit(X, np.arange(300) % 3)
    with pytest.raises(ValueError, match="monotonic_cst: found 4 monotone features of 5"):
        SmoothBetaClassifier(monotonic_cst=[1] * 4 + [0]).fit(X, y)


def test_a_failure_leaves_the_model_as_it_was():
    X, y = _data()
    model = SmoothBetaClassifier().fit(X, y)
    before = model.predict_proba(X)
    with pytest.raises(ValueError, match="monotonic_cst"):
        model.set_params(monotonic_cst={"dose": 1}).partial_fit(X, y)
    model.set_params(monotonic_cst=None)
    assert np.array_equal(model.predict_proba(X), before)
    assert model.n_trials_ == 300
