"""FieldCalibratedClassifier against known probabilities and scikit-learn's own calibration."""

import pickle
import threading

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from joblib import parallel_config
from numpy.polynomial.hermite_e import hermegauss
from scipy import sparse
from scipy.special import expit, logit
from scipy.stats import percentileofscore
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import NotFittedError, UnsetMetadataPassedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    ShuffleSplit,
    StratifiedKFold,
    cross_val_predict,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import get_tags
from tests import scikit_learn
from threadpoolctl import threadpool_limits

from betafield import SmoothBetaClassifier
from betafield.calibration import FieldCalibratedClassifier, Ranks

D = 20
SEEDS = range(5)
MODELS = [FieldCalibratedClassifier()]
LONG = [FieldCalibratedClassifier(LinearSVC(random_state=0), cv=3, bandwidth=0.1)]


def linear_trials(t, seed, steepness=1.0):
    """Return X, y and w, for trials whose log-odds are X · w."""
    rng = np.random.default_rng(seed)
    w = rng.normal(size=D)
    w *= steepness / np.linalg.norm(w)
    X = rng.normal(size=(t, D))
    return X, rng.uniform(size=t) < expit(X @ w), w


def success_given_score(X, w, coef):
    """Return P(success | X · coef), averaged by quadrature over X · w, normal given it."""
    nodes, weights = hermegauss(40)
    slope = (w @ coef) / (coef @ coef)
    spread = np.sqrt(max(0.0, w @ w - slope**2 * (coef @ coef)))
    at_nodes = expit(slope * (X @ coef)[:, None] + spread * nodes)
    return at_nodes @ (weights / weights.sum())


def knowing(w):
    """Return a classifier whose score is the true log-odds, whatever it is fitted to."""
    model = LogisticRegression()
    model.coef_, model.intercept_, model.classes_ = w[None], np.zeros(1), np.array([False, True])
    return FrozenEstimator(model)


def three_classes(t, seed=0):
    """Return trials of three classes, from a softmax of 20 features."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(t, D))
    return X, np.argmax(X @ rng.normal(size=(D, 3)) / 2 + rng.gumbel(size=(t, 3)), axis=1)


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    # Fits this small are ten times slower if the solver's threads wait for each other.
    with threadpool_limits(1):
        yield


@pytest.fixture(scope="module")
def trials():
    X, y, _ = linear_trials(400, seed=11, steepness=2.0)
    return X, np.where(y, "yes", "no")


# scikit-learn's checks.


@scikit_learn.checked(*MODELS, long=LONG)
def test_scikit_learn_finds_no_fault(estimator, check):
    scikit_learn.run(estimator, check)


@pytest.mark.long
def test_scikit_learn_finds_no_fault_where_scipy_knows_array_api():
    scikit_learn.run_elsewhere(FieldCalibratedClassifier)


# Accuracy, with the truth known.


def isotonic(**options):
    return CalibratedClassifierCV(LogisticRegression(), method="isotonic", **options)


def measured(models, t, steepness):
    """Return per model the mean over seeds of (log-loss, squared error to P(success | x)).

    The log-loss is its expectation under the true probabilities.
    """
    rows = []
    for seed in SEEDS:
        X, y, w = linear_trials(t, seed, steepness)
        new = np.random.default_rng(seed + 100).normal(size=(4000, D))
        true = expit(new @ w)
        for model in models:
            p = clone(model).fit(X, y).predict_proba(new).clip(1e-15, 1.0)
            loss = -np.mean(true * np.log(p[:, 1]) + (1 - true) * np.log(p[:, 0]))
            rows.append((loss, np.mean((p[:, 1] - true) ** 2)))
    return np.mean(np.reshape(rows, (len(SEEDS), len(models), 2)), axis=0)


@pytest.mark.long
@pytest.mark.parametrize("steepness", [1.0, 2.5])
@pytest.mark.parametrize("t", [2000, 10_000])
def test_better_than_isotonic_calibration_in_twenty_dimensions(t, steepness):
    # scikit-learn's default averages five models. With one model, as here, errors compare too.
    models = (FieldCalibratedClassifier(), isotonic(), isotonic(ensemble=False))
    ours, five, one = measured(models, t, steepness)
    assert ours[0] <= min(five[0], one[0])
    assert ours[1] <= one[1]


@pytest.mark.long
def test_nearer_to_the_probability_given_the_score_than_isotonic_on_the_same_score():
    ours, theirs = [], []
    for seed in SEEDS:
        X, y, w = linear_trials(3000, seed, steepness=2.0)
        new = np.random.default_rng(seed + 100).normal(size=(4000, D))
        model = FieldCalibratedClassifier().fit(X, y)
        peer = isotonic(ensemble=False)
        true = success_given_score(new, w, model.estimator_.coef_[0])
        ours.append(np.mean((model.predict_proba(new)[:, 1] - true) ** 2))
        theirs.append(np.mean((peer.fit(X, y).predict_proba(new)[:, 1] - true) ** 2))
    assert np.mean(ours) <= np.mean(theirs)


def test_an_overconfident_classifier_is_calibrated():
    # Twenty copies of one noisy feature: naive Bayes counts the same evidence twenty times.
    rng = np.random.default_rng(3)
    true = rng.normal(size=6000)
    X = true[:, None] + 0.1 * rng.normal(size=(6000, D))
    y = rng.uniform(size=6000) < expit(true)
    raw = GaussianNB().fit(X[:3000], y[:3000]).predict_proba(X[3000:])[:, 1]
    model = FieldCalibratedClassifier(GaussianNB()).fit(X[:3000], y[:3000])
    calibrated = model.predict_proba(X[3000:])[:, 1]
    assert expected_calibration_error(raw, y[3000:]) > 0.15
    assert expected_calibration_error(calibrated, y[3000:]) < 0.04


def test_a_classifier_that_learned_its_trials_by_heart_is_not_believed():
    # Outcomes independent of X; the tree is never wrong about trials it has seen.
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3000, 3)), rng.uniform(size=3000) < 0.3
    model = FieldCalibratedClassifier(DecisionTreeClassifier(random_state=0)).fit(X, y)
    assert model.estimator_.score(X, y) == 1.0
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], 0.3, atol=0.06)


def expected_calibration_error(p, y):
    """Return the mean over tenths of the points of |mean of p − share of successes|."""
    tenths = np.array_split(np.argsort(p), 10)
    return np.mean([abs(p[rows].mean() - y[rows].mean()) for rows in tenths])


def coverage(bandwidth, knows, t=4000):
    covered = []
    for seed in range(8):
        X, y, w = linear_trials(t, seed)
        new = np.random.default_rng(seed + 100).normal(size=(500, D))
        estimator = knowing(w) if knows else None
        model = FieldCalibratedClassifier(estimator, bandwidth=bandwidth).fit(X, y)
        coef = w if knows else model.estimator_.coef_[0]
        low, high = model.posterior(new).interval(0.95)
        true = success_given_score(new, w, coef)
        covered.append(np.mean((low <= true) & (true <= high)))
    return np.mean(covered)


@pytest.mark.parametrize("knows", [True, False], ids=["true score", "learned score"])
def test_intervals_cover_the_probability_given_the_score(knows):
    # A window so narrow that the probability hardly changes within it.
    assert 0.93 <= coverage(bandwidth=0.02, knows=knows) <= 0.97


@pytest.mark.long
def test_intervals_of_the_chosen_width_cover_most():
    # The width is chosen to minimise error, so the bias of windows shows in the intervals.
    assert 0.85 <= coverage(bandwidth="auto", knows=False) <= 0.99


# The score and its place.


def place(scores):
    """Return (2/π) arcsin √rank of each score among all, with SciPy's definition of rank."""
    ranks = percentileofscore(scores, scores, kind="mean") / 100
    return 2 / np.pi * np.arcsin(np.sqrt(ranks))[:, None]


def assert_equal_fields(one, other):
    grid = np.linspace(0, 1, 101)[:, None]
    one, other = one.posterior(grid), other.posterior(grid)
    np.testing.assert_array_equal(one.alpha, other.alpha)
    np.testing.assert_array_equal(one.beta, other.beta)


@pytest.mark.parametrize("pos_label", ["dead", "alive", None])
def test_the_success_can_be_named(pos_label):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 2))
    y = np.where(rng.random(300) < expit(2.0 * X[:, 0]), "dead", "alive")
    model = FieldCalibratedClassifier(pos_label=pos_label).fit(X, y)
    post, other = model.posterior(X), FieldCalibratedClassifier().fit(X, y).predict_proba(X)
    column = 0 if pos_label == "alive" else 1
    assert model.classes_.tolist() == ["alive", "dead"]
    assert model.pos_label_ == ("dead" if pos_label is None else pos_label)
    np.testing.assert_allclose(post.mean(), model.predict_proba(X)[:, column], rtol=1e-9)
    # Reversed, it is the same field, up to the fit.
    np.testing.assert_allclose(model.predict_proba(X), other, atol=0.02)
    assert (model.predict(X) == y).mean() > 0.7


def test_a_success_that_is_no_class_is_refused():
    X = np.arange(20.0)[:, None]
    for y, told in (([0, 1] * 10, "the classes are"), ([0, 1, 2, 0] * 5, "3 classes")):
        with pytest.raises(ValueError, match=f"pos_label: .*{told}"):
            FieldCalibratedClassifier(pos_label="dead").fit(X, y)
    with pytest.raises(ValueError, match="pos_label"):
        FieldCalibratedClassifier(pos_label=[1]).fit(X, [0, 1] * 10)


def test_fields_that_differ_are_told_apart():
    X, y = np.array([[0.0], [0.5], [1.0]]), [0, 1, 1]
    field = SmoothBetaClassifier(0.1).fit(X, y)
    assert_equal_fields(field, SmoothBetaClassifier(0.1).fit(X[::-1], y[::-1]))
    with pytest.raises(AssertionError):
        assert_equal_fields(field, SmoothBetaClassifier(0.1).fit(X, y[::-1]))


@pytest.mark.parametrize("cv", [None, 3, KFold(4)], ids=["default", "three", "splitter"])
def test_the_field_is_that_of_the_places_of_held_out_scores(trials, cv):
    X, y = trials
    options = {"bandwidth": 0.1, "prior": (2.0, 5.0)}
    model = FieldCalibratedClassifier(LogisticRegression(), cv=cv, **options).fit(X, y)
    scores = cross_val_predict(LogisticRegression(), X, y, cv=cv, method="decision_function")
    field = SmoothBetaClassifier(bounds=[(0, 1)], **options).fit(place(scores), y == "yes")
    assert_equal_fields(model.field_, field)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_without_a_decision_function_the_score_is_the_log_odds(n_classes):
    X, y = three_classes(400)
    y = np.minimum(y, n_classes - 1)
    model = FieldCalibratedClassifier(GaussianNB(), bandwidth=0.1).fit(X, y)
    p = cross_val_predict(GaussianNB(), X, y, method="predict_proba")
    fields = model.field_ if n_classes > 2 else [model.field_]
    assert len(fields) == (3 if n_classes > 2 else 1)
    for label, field in zip(range(n_classes)[-len(fields) :], fields, strict=True):
        by_hand = SmoothBetaClassifier(bandwidth=0.1, bounds=[(0, 1)])
        by_hand.fit(place(logit(p[:, label])), y == label)
        assert_equal_fields(field, by_hand)


def test_a_score_that_tells_nothing_leaves_the_share_of_successes():
    y = np.repeat([False, True], [60, 40])
    model = FieldCalibratedClassifier(DummyClassifier(), bandwidth=0.1, prior=(2.0, 5.0))
    posterior = model.fit(np.zeros((100, 1)), y).posterior([[7.0]])
    assert posterior.alpha.tolist() == [42.0]
    assert posterior.beta.tolist() == [65.0]


halves = st.integers(-6, 6).map(lambda number: number / 2)  # so that many are equal


@given(st.lists(st.tuples(halves, st.integers(0, 3)), min_size=1), st.lists(halves))
def test_the_rank_is_that_of_scipy_with_each_trial_as_often_as_its_weight(rows, new):
    scores, weight = np.array(rows).T
    weight[0] += 1  # at least one is positive
    ranks = np.sin(np.pi / 2 * Ranks(scores, weight).places(new)[:, 0]) ** 2
    repeated = scores.repeat(weight.astype(int))
    expected = [percentileofscore(repeated, score, kind="mean") / 100 for score in new]
    np.testing.assert_allclose(ranks, expected, atol=1e-12)


@pytest.mark.parametrize("transform", [np.cbrt, np.sinh, lambda s: 1e-9 * s - 7])
def test_places_do_not_depend_on_the_units_or_tails_of_scores(transform):
    rng = np.random.default_rng(0)
    scores, new = rng.standard_t(2, size=200), rng.standard_t(2, size=100)
    np.testing.assert_array_equal(
        Ranks(transform(scores), None).places(transform(new)), Ranks(scores, None).places(new)
    )


def test_places_of_infinite_scores_are_the_ends():
    ranks = Ranks([-np.inf, 0.0, 1.0, np.inf], None)
    assert ranks.places([1e30, -1e30]).ravel() == pytest.approx([2 / 3, 1 / 3])
    assert Ranks([0.0, 1.0], None).places([-np.inf, np.inf]).ravel().tolist() == [0.0, 1.0]


def test_beyond_all_scores_the_belief_is_that_at_the_end(trials):
    X, y = trials
    model = FieldCalibratedClassifier(bandwidth=0.1).fit(X, y)
    direction = model.estimator_.coef_[0]
    far = np.array([1e3, 1e9])[:, None] * direction
    last, same = model.posterior(far).mean()
    assert last == same
    assert last > 0.9


@pytest.mark.parametrize("by", ["log-probabilities", "decision function"])
def test_scores_keep_their_order_where_probabilities_are_rounded_to_one(by):
    rng = np.random.default_rng(0)
    true = rng.normal(size=2000)
    X = true[:, None] + 0.05 * rng.normal(size=(2000, 200))
    y = rng.uniform(size=2000) < expit(2 * true)
    estimator = GaussianNB() if by == "log-probabilities" else knowing(np.ones(200))
    assert np.mean(estimator.fit(X, y).predict_proba(X)[:, 1] == 1.0) > 0.2
    model = FieldCalibratedClassifier(estimator).fit(X, y)
    likely, sure = model.predict_proba([[0.5] * 200, [2.0] * 200])[:, 1]
    assert sure - likely > 0.1


def test_equal_points_have_equal_scores_however_they_are_added_up():
    # Sums of products for one point, alone or among others, may differ in the last bits.
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(600, 50)) / 3
    y = rng.uniform(size=600) < X[:, 0] * 2
    model = FieldCalibratedClassifier(knowing(rng.normal(size=50)), bandwidth=0.05).fit(X, y)
    together = model.predict_proba(X)
    alone = np.concatenate([model.predict_proba(X[[row]]) for row in range(len(X))])
    np.testing.assert_array_equal(together, alone)


@pytest.mark.parametrize(
    "estimator",
    [
        RandomForestClassifier(n_estimators=10, random_state=0),
        KNeighborsClassifier(),
        RidgeClassifier(),
        GaussianNB(),
        SVC(),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_any_classifier_has_a_score(estimator, n_classes):
    X, y = three_classes(400)
    y = np.minimum(y, n_classes - 1)
    model = FieldCalibratedClassifier(estimator, bandwidth=0.1).fit(X, y)
    p = model.predict_proba(X)
    assert p.shape == (400, n_classes)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    assert model.score(X, y) > 0.6
    np.testing.assert_array_equal(model.predict(X), model.classes_[np.argmax(p, axis=1)])


# Three classes and more.


def test_three_classes_have_one_posterior_each():
    X, y = three_classes(6000)
    new, outcome = X[3000:], y[3000:]
    model = FieldCalibratedClassifier().fit(X[:3000], np.array(["a", "b", "c"])[y[:3000]])
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert len(model.field_) == 3
    means = np.stack([posterior.mean() for posterior in model.posterior(new)], axis=1)
    p = model.predict_proba(new)
    np.testing.assert_allclose(p, means / means.sum(axis=1, keepdims=True), rtol=1e-12)
    for k in range(3):
        assert expected_calibration_error(p[:, k], outcome == k) < 0.04


def test_three_classes_lose_no_more_than_by_isotonic_calibration():
    X, y = three_classes(4000)
    ours, theirs = (
        log_loss(y[2000:], model.fit(X[:2000], y[:2000]).predict_proba(X[2000:]))
        for model in (FieldCalibratedClassifier(), isotonic())
    )
    assert ours <= theirs


# Weights.


def test_a_weight_is_a_repetition_in_the_same_fold():
    X, y, _ = linear_trials(300, seed=2)
    weight = np.random.default_rng(0).integers(0, 4, size=300)
    fold = np.arange(300) % 3
    repeated = fold.repeat(weight)

    def folds(of):
        return [(np.flatnonzero(of != k), np.flatnonzero(of == k)) for k in range(3)]

    # Solved until only rounding separates the two fits.
    solver = LogisticRegression(solver="newton-cholesky", tol=1e-12)
    weighted = FieldCalibratedClassifier(solver, cv=folds(fold), bandwidth=0.1)
    weighted.fit(X, y, sample_weight=weight)
    plain = FieldCalibratedClassifier(solver, cv=folds(repeated), bandwidth=0.1)
    plain.fit(X.repeat(weight, axis=0), y.repeat(weight))
    np.testing.assert_allclose(weighted.predict_proba(X), plain.predict_proba(X), rtol=1e-12)
    assert weighted.field_.n_trials_ == weight.sum()


def test_weights_of_an_estimator_that_takes_none_go_to_the_field(trials):
    X, y = trials
    weight = np.full(len(y), 2.0)
    with pytest.warns(UserWarning, match=r"sample_weight: fit of KNeighborsClassifier takes none"):
        model = FieldCalibratedClassifier(KNeighborsClassifier(), bandwidth=0.1).fit(X, y, weight)
    assert model.field_.n_trials_ == 2 * len(y)


def test_fit_parameters_reach_the_estimator_divided_into_folds(trials):
    X, y = trials
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    given = {"logisticregression__sample_weight": np.where(np.arange(len(y)) % 2, 9.0, 1.0)}
    model = FieldCalibratedClassifier(pipeline, bandwidth=0.1).fit(X, y, **given)
    scores = cross_val_predict(pipeline, X, y, method="decision_function", params=given)
    field = SmoothBetaClassifier(0.1, bounds=[(0, 1)]).fit(place(scores), y == "yes")
    assert_equal_fields(model.field_, field)
    alone = clone(pipeline).fit(X, y, **given)
    np.testing.assert_array_equal(model.estimator_[-1].coef_, alone[-1].coef_)


# Metadata routing.


def test_weights_and_groups_are_routed(trials):
    X, y = trials
    groups = np.arange(len(y)) % 7
    with config_context(enable_metadata_routing=True):
        base = LogisticRegression().set_fit_request(sample_weight=True)
        model = FieldCalibratedClassifier(base, cv=GroupKFold(7), bandwidth=0.1)
        model.fit(X, y, sample_weight=np.full(len(y), 2), groups=groups)
        default = FieldCalibratedClassifier(bandwidth=0.1).fit(X, y, np.full(len(y), 2))
    assert model.field_.n_trials_ == default.field_.n_trials_ == 2 * len(y)
    by_hand = [(np.flatnonzero(groups != g), np.flatnonzero(groups == g)) for g in range(7)]
    same = FieldCalibratedClassifier(cv=by_hand, bandwidth=0.1).fit(X, y, np.full(len(y), 2))
    np.testing.assert_array_equal(model.predict_proba(X), same.predict_proba(X))


@pytest.mark.parametrize("jobs", [None, 2])
def test_weights_are_routed_through_a_pipeline(trials, jobs):
    X, y = trials
    weight = np.where(np.arange(len(y)) % 2, 9.0, 1.0)
    with config_context(enable_metadata_routing=True), parallel_config("threading"):
        last = LogisticRegression().set_fit_request(sample_weight=True)
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), last)
        routed = FieldCalibratedClassifier(pipeline, bandwidth=0.1, n_jobs=jobs).fit(X, y, weight)
    given = {"logisticregression__sample_weight": weight}
    with pytest.warns(UserWarning, match="only the field is weighted"):
        same = FieldCalibratedClassifier(pipeline, bandwidth=0.1).fit(X, y, weight, **given)
    np.testing.assert_array_equal(routed.predict_proba(X), same.predict_proba(X))


def test_weights_under_another_name_are_those_of_the_estimator_alone(trials):
    X, y = trials
    weight = np.where(np.arange(len(y)) % 2, 9.0, 1.0)
    with config_context(enable_metadata_routing=True):
        base = LogisticRegression().set_fit_request(sample_weight="trust")
        model = FieldCalibratedClassifier(base, bandwidth=0.1).fit(X, y, trust=weight)
    assert model.field_.n_trials_ == len(y)
    alone = LogisticRegression().fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(model.estimator_.coef_, alone.coef_)


def test_weights_that_the_estimator_did_not_ask_for_are_refused_by_routing(trials):
    with (
        config_context(enable_metadata_routing=True),
        pytest.raises(UnsetMetadataPassedError, match="sample_weight"),
    ):
        FieldCalibratedClassifier(LogisticRegression()).fit(*trials, sample_weight=np.ones(400))


# Among scikit-learn's tools.


def test_a_clone_has_the_parameters_and_none_of_the_knowledge(trials):
    model = FieldCalibratedClassifier(
        LogisticRegression(C=0.5), cv=3, bandwidth="loo", prior=(2.0, 3.0)
    )
    copy = clone(model.fit(*trials))
    assert copy.estimator.C == 0.5
    assert copy.prior == (2.0, 3.0)
    assert set(vars(copy)) == set(copy.get_params(deep=False))


def test_a_prior_without_windows_is_refused(trials):
    with pytest.raises(ValueError, match=r"prior: found \(2.0, 3.0\).*give.*a bandwidth"):
        FieldCalibratedClassifier(prior=(2.0, 3.0)).fit(*trials)


def test_a_pickled_model_answers_the_same(trials):
    X, y = trials
    model = FieldCalibratedClassifier().fit(X, y)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict_proba(X), model.predict_proba(X))


def test_a_pipeline_learns_and_predicts(trials):
    X, y = trials
    pipeline = make_pipeline(StandardScaler(), FieldCalibratedClassifier()).fit(X, y)
    assert pipeline.score(X, y) > 0.75
    assert pipeline.predict_proba(X[:3]).shape == (3, 2)


def test_grid_search_reaches_the_parameters_of_the_estimator(trials):
    # One neighbour among 400 in 20 dimensions says little; fifty say more.
    model = FieldCalibratedClassifier(KNeighborsClassifier(), bandwidth=0.2)
    grid = {"estimator__n_neighbors": [1, 50], "cv": [3, 5]}
    search = GridSearchCV(model, grid, cv=3, scoring="neg_log_loss").fit(*trials)
    assert np.all(np.isfinite(search.cv_results_["mean_test_score"]))
    assert search.best_estimator_.estimator_.n_neighbors == 50


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_dataframes_keep_their_names(trials, library):
    X, y = trials
    names = [f"feature {column}" for column in range(D)]
    frame = library.DataFrame(dict(zip(names, X.T, strict=True)))
    model = FieldCalibratedClassifier(bandwidth=0.1).fit(frame, library.Series(y))
    assert model.n_features_in_ == D
    bare = FieldCalibratedClassifier(bandwidth=0.1).fit(X, y)
    assert not hasattr(bare, "feature_names_in_")
    np.testing.assert_array_equal(model.predict_proba(frame), bare.predict_proba(X))
    if library is pd:  # scikit-learn reads polars' names since 1.9
        assert model.feature_names_in_.tolist() == names
        with pytest.raises(ValueError, match="feature names"):
            model.predict(frame.rename(columns={"feature 0": "another"}))


def test_names_are_forgotten_with_the_trials_they_came_with(trials):
    X, y = trials
    model = FieldCalibratedClassifier(bandwidth=0.1).fit(pd.DataFrame(X).add_prefix("f"), y)
    assert not hasattr(model.fit(X, y), "feature_names_in_")


def test_what_the_estimator_takes_is_taken(trials):
    X, y = trials
    gaps = np.where(X > 1.5, np.nan, X)
    boosting = FieldCalibratedClassifier(HistGradientBoostingClassifier(max_iter=10), cv=3)
    assert boosting.fit(gaps, y).score(gaps, y) > 0.75
    assert get_tags(boosting).input_tags.allow_nan
    plain = FieldCalibratedClassifier(bandwidth=0.1)
    few = np.where(abs(X) > 1, X, 0.0)
    packed = sparse.csr_array(few)
    np.testing.assert_allclose(
        clone(plain).fit(packed, y).predict_proba(packed),
        clone(plain).fit(few, y).predict_proba(few),
    )
    assert get_tags(plain).input_tags.sparse
    assert not get_tags(plain).input_tags.allow_nan


def test_rows_may_be_texts(trials):
    _, y = trials
    texts = [f"{word} said {'once' if row % 2 else 'twice'}" for row, word in enumerate(y)]
    pipeline = make_pipeline(CountVectorizer(), LogisticRegression())
    model = FieldCalibratedClassifier(pipeline, bandwidth=0.1).fit(texts, y)
    assert model.predict(["yes", "no"]).tolist() == ["yes", "no"]


def test_a_kernel_computed_before_is_divided_by_rows_and_columns(trials):
    X, y = trials
    kernel = X @ X.T
    given = FieldCalibratedClassifier(SVC(kernel="precomputed"), bandwidth=0.1).fit(kernel, y)
    computed = FieldCalibratedClassifier(SVC(kernel="linear"), bandwidth=0.1).fit(X, y)
    np.testing.assert_array_equal(given.predict(kernel), computed.predict(X))


def test_classifiers_of_the_folds_see_the_labels_as_they_are(trials):
    weighted = LogisticRegression(class_weight={"no": 1.0, "yes": 5.0})
    model = FieldCalibratedClassifier(weighted, bandwidth=0.1).fit(*trials)
    assert model.classes_.tolist() == ["no", "yes"]
    # Calibration undoes the shift caused by class weights.
    assert abs(model.predict_proba(trials[0])[:, 1].mean() - np.mean(trials[1] == "yes")) < 0.05


def test_the_estimator_given_is_left_as_it_was(trials):
    estimator = LogisticRegression()
    FieldCalibratedClassifier(estimator, bandwidth=0.1).fit(*trials)
    assert set(vars(estimator)) == set(estimator.get_params())


def test_a_frozen_classifier_is_not_fitted_again(trials):
    X, y = trials
    frozen = FrozenEstimator(LogisticRegression().fit(X[:200], y[:200]))
    before = frozen.estimator.coef_.copy()
    model = FieldCalibratedClassifier(frozen).fit(X[200:], y[200:])
    np.testing.assert_array_equal(model.estimator_.estimator.coef_, before)


def test_the_result_is_the_same_every_time_and_with_any_number_of_jobs(trials):
    X, y = trials
    first, second = (FieldCalibratedClassifier().fit(X, y).predict_proba(X) for _ in range(2))
    with parallel_config("threading"):
        third = FieldCalibratedClassifier(n_jobs=2).fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(first, third)


class Meeting(LogisticRegression):
    """A classifier whose held-out fits must run in parallel."""

    barrier = threading.Barrier(2, timeout=300)

    def fit(self, X, y):
        if len(X) < 400:
            self.barrier.wait()
        return super().fit(X, y)


def test_folds_are_fitted_at_once_by_as_many_jobs(trials):
    with parallel_config("threading"):
        model = FieldCalibratedClassifier(Meeting(), cv=2, bandwidth=0.1, n_jobs=2).fit(*trials)
    assert model.field_.n_trials_ == 400


def test_fewer_folds_serve_a_rare_class_unless_cv_says_how_many(trials):
    X, y = trials
    rows = np.concatenate([np.flatnonzero(y == "no"), np.flatnonzero(y == "yes")[:3]])
    model = FieldCalibratedClassifier(bandwidth=0.1).fit(X[rows], y[rows])
    three, five = (FieldCalibratedClassifier(cv=cv, bandwidth=0.1) for cv in (3, 5))
    assert_equal_fields(model.field_, three.fit(X[rows], y[rows]).field_)
    with pytest.warns(UserWarning, match="only 3 members"):
        five.fit(X[rows], y[rows])
    assert five.field_.n_trials_ == len(rows)


def test_folds_may_be_masks(trials):
    X, y = trials
    folds = list(StratifiedKFold(3).split(X, y))
    masks = [(~np.isin(np.arange(400), test), np.isin(np.arange(400), test)) for _, test in folds]
    models = (FieldCalibratedClassifier(cv=cv, bandwidth=0.1).fit(X, y) for cv in (folds, masks))
    assert_equal_fields(*(model.field_ for model in models))


# Bad input.


def test_asking_before_fitting_is_refused():
    with pytest.raises(NotFittedError):
        FieldCalibratedClassifier().posterior([[0.0]])


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"estimator": LinearRegression()}, TypeError, "LinearRegression, which has neither"),
        ({"estimator": "logistic"}, TypeError, "found str, which has neither"),
        ({"cv": 300}, ValueError, "cv: n_splits=300 cannot be greater"),
        ({"cv": 1}, ValueError, "cv: found 1; a whole number from 2 to 400 is needed"),
        ({"cv": GroupKFold(3)}, ValueError, "cv: The 'groups' parameter"),
        ({"cv": ShuffleSplit(3, random_state=0)}, ValueError, r"cv: row \d+ is held out \d times"),
        ({"cv": []}, ValueError, "cv: row 0 is held out 0 times; .* held out once"),
        ({"cv": [(range(400), [0, 1, 1])]}, ValueError, "cv: row 1 is held out 2 times"),
        ({"cv": [([0, 400], [1])]}, ValueError, r"cv: found \[\(\[0, 400\].*rows.*from 0 to \d+$"),
        ({"cv": [1, 2]}, ValueError, "cv: "),
        ({"bandwidth": -1.0}, ValueError, "bandwidth"),
        ({"prior": (1.0, -1.0)}, ValueError, "prior"),
        ({"n_jobs": 0}, ValueError, "n_jobs"),
        ({"cv": "five"}, ValueError, "cv: .* Got five"),
    ],
)
def test_bad_options_are_refused(trials, options, error, match):
    with pytest.raises(error, match=match):
        FieldCalibratedClassifier(**options).fit(*trials)


def test_options_are_refused_before_any_classifier_is_fitted(trials):
    class Never(LogisticRegression):
        def fit(self, *trials):
            raise AssertionError(f"fitted on {len(trials)} arrays")

    with pytest.raises(ValueError, match="bandwidth"):
        FieldCalibratedClassifier(Never(), bandwidth="wide").fit(*trials)


@pytest.mark.parametrize(
    ("y", "weight", "match"),
    [
        (["a"] * 8, None, r"y: found 1 class, \['a'\]; two or more"),
        ([0, 1] * 4, [1, 0] * 4, "y: class 1 has 0 trials of weight above 0"),
        (["a", "b"] * 4, [1] + [0, 1] * 3 + [1], "y: class 'b' has 1 trials of weight above 0"),
        ([0, 1, 0], None, "y: found 3 rows where X has 8"),
        ([0, 1] * 4, [1.0, -1.0] * 4, "sample_weight row 1: found -1.0"),
        (np.linspace(0, 1, 8), None, "y: Unknown label type"),
    ],
)
def test_bad_outcomes_are_refused(y, weight, match):
    X = np.arange(16.0).reshape(8, 2)
    with pytest.raises(ValueError, match=match):
        FieldCalibratedClassifier().fit(X, y, sample_weight=weight)


@pytest.mark.parametrize(("X", "found"), [(None, "None"), (5.0, "5.0")])
def test_points_that_are_no_rows_are_refused(X, found):
    with pytest.raises(TypeError, match=f"X: found {found}; an array of rows is needed"):
        FieldCalibratedClassifier().fit(X, [0, 1])


def test_a_fold_that_hides_a_class_is_refused():
    X, y = np.arange(12.0)[:, None], np.repeat([0, 1, 2], [4, 5, 3])
    message = "y: class 0 has 4 trials .*, none of them outside fold 0 of cv; .* see every class"
    with pytest.raises(ValueError, match=message):
        FieldCalibratedClassifier(cv=KFold(3)).fit(X, y)


class Lost(LogisticRegression):
    def decision_function(self, X):
        return np.where(X[:, 0] == 123.0, np.nan, super().decision_function(X))


class Wide(LogisticRegression):
    def decision_function(self, X):
        return np.zeros((len(X), 3))


def test_scores_that_are_no_scores_are_refused(trials):
    X, y = trials
    lost = X.copy()
    lost[[217, 301], 0] = 123.0
    message = "estimator: found NaN as the score of X row {}; a number is needed"
    with pytest.raises(ValueError, match=message.format(217)):
        FieldCalibratedClassifier(Lost(), cv=KFold(5, shuffle=True, random_state=0)).fit(lost, y)
    with pytest.raises(ValueError, match=message.format(17)):
        FieldCalibratedClassifier(Lost()).fit(X, y).posterior(lost[200:])
    with pytest.raises(ValueError, match="of Wide gives 3 columns for 2 classes; 1 are needed"):
        FieldCalibratedClassifier(Wide()).fit(X, y)


def test_a_failed_fit_leaves_the_model_as_it_was(trials):
    X, y = trials
    model = FieldCalibratedClassifier(bandwidth=0.1).fit(X, y)
    before = dict(vars(model))
    with pytest.raises(ValueError, match="found 1 class"):
        model.fit(X[:, :2], np.zeros(len(y)))
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full((len(y), 2), np.nan), y)
    assert vars(model) == before
