"""All baselines: scikit-learn's contract, two classes, and helpful errors."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from tests import scikit_learn

from betafield.baselines import ContinuousCorrelatedBeta, LogisticGP, RadiusNeighbors

MODELS = [
    ContinuousCorrelatedBeta(),
    RadiusNeighbors(),
    RadiusNeighbors(bandwidth=0.5),
    LogisticGP(),
    LogisticGP(length_scale=1.0, amplitude=2.0),
]
KINDS = [ContinuousCorrelatedBeta, RadiusNeighbors, LogisticGP]


def fixed(kind):
    """Return a model of this kind with given hyper-parameters."""
    return LogisticGP(0.3, 2.0) if kind is LogisticGP else kind(0.3)


@pytest.fixture(scope="module")
def trials():
    """Return 200 trials on the unit square: success is certain right of the middle."""
    X = np.random.default_rng(7).uniform(size=(200, 2))
    return X, np.where(X[:, 0] > 0.5, "yes", "no")


# scikit-learn's contract.


@scikit_learn.checked(*MODELS)
def test_scikit_learn_finds_no_fault(estimator, check):
    scikit_learn.run(estimator, check)


@pytest.mark.long
def test_scikit_learn_finds_no_fault_where_scipy_knows_array_api():
    scikit_learn.run_elsewhere(*KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_tags_say_two_classes_only(kind):
    tags = get_tags(kind())
    assert tags.estimator_type == "classifier"
    assert not tags.classifier_tags.multi_class
    assert not tags.non_deterministic


@pytest.mark.parametrize("kind", KINDS)
def test_a_pipeline_learns_and_is_scored(kind, trials):
    pipeline = make_pipeline(StandardScaler(), fixed(kind))
    assert cross_val_score(pipeline, *trials, cv=3).min() > 0.85


@pytest.mark.parametrize(
    ("model", "name", "choices", "best"),
    [
        (ContinuousCorrelatedBeta(), "length_scale", [0.1, 50.0], 0.1),
        (RadiusNeighbors(), "bandwidth", [0.2, 50.0], 0.2),
        (LogisticGP(amplitude=3.0), "length_scale", [0.3, 1e-3], 0.3),
    ],
)
def test_grid_search_finds_the_scale_that_predicts(trials, model, name, choices, best):
    search = GridSearchCV(model, {name: choices}, cv=3).fit(*trials)
    assert search.best_params_ == {name: best}


@pytest.mark.parametrize("kind", KINDS)
def test_a_pickled_model_answers_the_same(kind, trials):
    X, y = trials
    model = fixed(kind).fit(X, y)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict_proba(X), model.predict_proba(X))


# Outcomes.


@pytest.mark.parametrize("kind", KINDS)
def test_success_is_the_second_class_whatever_the_labels(kind, trials):
    X, y = trials
    named, flagged = fixed(kind).fit(X, y), fixed(kind).fit(X, y == "yes")
    assert named.classes_.tolist() == ["no", "yes"]
    np.testing.assert_array_equal(named.predict_proba(X), flagged.predict_proba(X))
    np.testing.assert_array_equal(named.predict(X) == "yes", flagged.predict(X))
    assert named.predict([[0.1, 0.5], [0.9, 0.5]]).tolist() == ["no", "yes"]


@pytest.mark.parametrize("kind", KINDS)
def test_failures_named_successes_mirror_the_probabilities(kind, trials):
    X, y = trials
    new = np.random.default_rng(0).uniform(size=(50, 2))
    p = fixed(kind).fit(X, y == "yes").predict_proba(new)
    mirrored = fixed(kind).fit(X, y == "no").predict_proba(new)
    np.testing.assert_allclose(mirrored, p[:, ::-1], atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_the_order_of_trials_does_not_matter(kind, trials):
    X, y = trials
    order = np.random.default_rng(1).permutation(len(X))
    here, there = fixed(kind).fit(X, y), fixed(kind).fit(X[order], y[order])
    np.testing.assert_allclose(here.predict_proba(X), there.predict_proba(X), atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_equal_probabilities_give_the_first_class(kind):
    X, y = [[0.0], [0.0], [1.0], [1.0]], ["a", "b", "a", "b"]
    model = fixed(kind).fit(X, y)
    np.testing.assert_allclose(model.predict_proba([[0.0]]), [[0.5, 0.5]], rtol=1e-12)
    # Far from all trials they are equal to the last bit, whatever the order of summation.
    assert model.predict_proba([[1e3]]).tolist() == [[0.5, 0.5]]
    assert model.predict([[1e3]]).tolist() == ["a"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("table", [pd.DataFrame, pl.DataFrame])
def test_tables_give_their_names(kind, table, trials):
    X, y = trials
    model = fixed(kind).fit(table({"dose": X[:, 0], "age": X[:, 1]}), y)
    assert model.feature_names_in_.tolist() == ["dose", "age"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(table({"dose": X[:, 0], "weight": X[:, 1]}))


# Learning.


@pytest.mark.parametrize("kind", KINDS)
def test_fit_forgets_and_a_clone_knows_nothing(kind, trials):
    X, y = trials
    model = fixed(kind).fit(X * 9, y).fit(X[:50], y[:50])
    fresh = clone(model)
    assert set(vars(fresh)) == set(model.get_params())
    np.testing.assert_array_equal(
        fresh.fit(X[:50], y[:50]).predict_proba(X), model.predict_proba(X)
    )
    assert model.n_trials_ == 50


@pytest.mark.parametrize("kind", KINDS)
def test_a_failed_fit_leaves_the_model_as_it_was(kind, trials):
    X, y = trials
    model = fixed(kind).fit(X, y)
    before = dict(vars(model))
    with pytest.raises(ValueError, match="only one class"):
        model.fit(X[:, :1], np.ones(len(X)))
    assert vars(model) == before


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_of_users_are_theirs(kind, trials):
    X, y = trials[0].copy(), trials[1]
    model = fixed(kind).fit(X, y)
    X[:] = 0.0  # even before the first query
    np.testing.assert_array_equal(
        model.predict_proba(trials[0]), fixed(kind).fit(*trials).predict_proba(trials[0])
    )
    again = np.asfortranarray(trials[0])
    fixed(kind).fit(again, y).predict_proba(again)
    np.testing.assert_array_equal(again, trials[0])


# Bad input.


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[0.0], [1.0]], [1, 1], r"y: found only one class, \[1\]; two are needed"),
        ([[0.0], [1.0], [2.0]], [0, 1, 2], r"y: found 3 classes, \[0, 1, 2\]; two are needed"),
        ([[0.0], [1.0]], [0, 1, 1], "y: found 3 rows where X has 2"),
        ([[0.0], [np.nan]], [0, 1], "X row 1, column 0: found NaN"),
        ([[0.0], ["high"]], [0, 1], "X row 1, column 0: found 'high'"),
        ([[0.0], [1.0]], [0.25, 0.5], "y: Unknown label type"),
        ([[0.0], [1.0]], [0.0, np.inf], "y row 1: found inf"),
    ],
)
def test_bad_trials_are_named(kind, X, y, message):
    with pytest.raises(ValueError, match=message):
        fixed(kind).fit(X, y)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ask", ["predict", "predict_proba", "posterior"])
def test_an_unfitted_model_says_so(kind, ask):
    # RadiusNeighbors has a mean only, and no posterior.
    error = AttributeError if (kind, ask) == (RadiusNeighbors, "posterior") else NotFittedError
    with pytest.raises(error):
        getattr(kind(), ask)([[0.0]])


@pytest.mark.parametrize("kind", KINDS)
def test_other_features_than_learned_are_refused(kind, trials):
    with pytest.raises(ValueError, match="features"):
        fixed(kind).fit(*trials).predict_proba([[0.0]])


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (ContinuousCorrelatedBeta(length_scale=0.0), "length_scale"),
        (ContinuousCorrelatedBeta(length_scale="wide"), "length_scale"),
        (ContinuousCorrelatedBeta(prior=(1.0, -1.0)), "prior"),
        (ContinuousCorrelatedBeta(prior=(1.0, 1.0, 1.0)), "prior"),
        (RadiusNeighbors(bandwidth=-1.0), "bandwidth"),
        (RadiusNeighbors(bandwidth="auto"), "bandwidth"),
        (RadiusNeighbors(bandwidth=np.nan), "bandwidth"),
        (RadiusNeighbors(lipschitz=0.0), "lipschitz"),
        (LogisticGP(length_scale=-1.0), "length_scale"),
        (LogisticGP(length_scale=[1.0, 2.0, 3.0]), "length_scale"),
        (LogisticGP(length_scale=[1.0, np.inf]), "length_scale"),
        (LogisticGP(length_scale="long"), "length_scale"),
        (LogisticGP(amplitude=0.0), "amplitude"),
        (LogisticGP(amplitude="auto"), "amplitude"),
        (LogisticGP(amplitude=1e5), "amplitude"),
        (LogisticGP(amplitude_bounds=(1.0, 1e5)), "amplitude_bounds"),
        (LogisticGP(length_scale_bounds=(1.0, 0.1)), "length_scale_bounds"),
        (LogisticGP(length_scale_bounds=0.1), "length_scale_bounds"),
        (LogisticGP(amplitude_bounds=(0.0, 1.0)), "amplitude_bounds"),
    ],
)
def test_bad_options_are_named_by_fit(model, name, trials):
    with pytest.raises(
        ValueError, match=f"^{name}( row 1)?: found .*(needed|allowed|must be positive)"
    ):
        model.fit(*trials)
