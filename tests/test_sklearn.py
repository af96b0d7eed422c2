"""SmoothBetaClassifier with scikit-learn's own tools."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_html_repr, get_tags
from tests import scikit_learn

from betafield import SmoothBetaClassifier

MODELS = [SmoothBetaClassifier(), SmoothBetaClassifier(bandwidth=0.3)]
LONG = [
    SmoothBetaClassifier(bandwidth="theory"),
    SmoothBetaClassifier(metric="chebyshev"),
    SmoothBetaClassifier(metric="manhattan"),
    SmoothBetaClassifier(scale="std"),
]


@pytest.fixture(scope="module")
def trials():
    """Return 600 trials on the unit square: success is certain right of the middle."""
    rng = np.random.default_rng(7)
    X = rng.uniform(size=(600, 2))
    return X, np.where(X[:, 0] > 0.5, "yes", "no")


@scikit_learn.checked(*MODELS, long=LONG)
def test_scikit_learn_finds_no_fault(estimator, check):
    scikit_learn.run(estimator, check)


@pytest.mark.long
def test_scikit_learn_finds_no_fault_where_scipy_knows_array_api():
    scikit_learn.run_elsewhere(SmoothBetaClassifier)


def test_a_pipeline_learns_and_predicts(trials):
    X, y = trials
    pipeline = make_pipeline(StandardScaler(), SmoothBetaClassifier(bandwidth=0.1)).fit(X, y)
    assert pipeline.predict([[0.1, 0.5], [0.9, 0.5]]).tolist() == ["no", "yes"]
    assert pipeline.score(X, y) > 0.9


def test_cross_validation_scores_a_learnable_field_high(trials):
    scores = cross_val_score(SmoothBetaClassifier(), *trials, cv=4)
    assert len(scores) == 4
    assert scores.min() > 0.85


def test_grid_search_over_widths_refuses_the_one_that_blurs_all(trials):
    search = GridSearchCV(SmoothBetaClassifier(), {"bandwidth": [0.1, 5.0]}, cv=3).fit(*trials)
    assert search.best_params_ == {"bandwidth": 0.1}
    assert search.best_estimator_.bandwidth_ == 0.1


def test_calibration_wraps_the_classifier(trials):
    X, y = trials
    calibrated = CalibratedClassifierCV(SmoothBetaClassifier(bandwidth=0.1), cv=3).fit(X, y)
    low, high = calibrated.predict_proba([[0.1, 0.5], [0.9, 0.5]])[:, 1]
    assert low < 0.2
    assert high > 0.8


def test_a_clone_has_the_parameters_and_none_of_the_knowledge(trials):
    model = SmoothBetaClassifier(bandwidth=0.2, prior=(2.0, 3.0), bounds=[(0, 1)] * 2).fit(*trials)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert set(vars(copy)) == set(model.get_params())


def test_fit_forgets_what_the_model_knew(trials):
    X, y = trials
    model = SmoothBetaClassifier(bandwidth="theory").fit(X * 9, y).fit(X[:50], y[:50])
    fresh = SmoothBetaClassifier(bandwidth="theory").fit(X[:50], y[:50])
    assert model.n_trials_ == 50
    assert model.bandwidth_ == fresh.bandwidth_
    np.testing.assert_array_equal(model.bounds_, fresh.bounds_)
    np.testing.assert_array_equal(model.predict_proba(X), fresh.predict_proba(X))


# Metadata routing.


def test_weights_are_routed_through_a_pipeline(trials):
    X, y = trials
    with config_context(enable_metadata_routing=True):
        model = SmoothBetaClassifier(bandwidth=0.1).set_fit_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, model).fit(X, y, sample_weight=np.full(600, 3))
    assert pipeline[-1].n_trials_ == 1800


def test_weights_are_routed_through_cross_validation(trials):
    X, y = trials
    weight = np.arange(600) % 5
    folds = KFold(3)
    with config_context(enable_metadata_routing=True):
        model = SmoothBetaClassifier(bandwidth=0.1).set_fit_request(sample_weight=True)
        model.set_score_request(sample_weight=True)
        result = cross_validate(
            model, X, y, cv=folds, params={"sample_weight": weight}, return_estimator=True
        )
    learned = [fold.n_trials_ for fold in result["estimator"]]
    assert learned == [weight[train].sum() for train, _ in folds.split(X)]


def test_weights_that_nobody_asked_for_are_refused_by_routing(trials):
    with (
        config_context(enable_metadata_routing=True),
        pytest.raises(UnsetMetadataPassedError, match="sample_weight"),
    ):
        cross_validate(
            SmoothBetaClassifier(),
            *trials,
            params={"sample_weight": np.ones(600)},
            error_score="raise",
        )


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_learning_keeps_what_was_requested_of_routing(trials, method):
    with config_context(enable_metadata_routing=True):
        model = SmoothBetaClassifier(bandwidth=0.1).set_fit_request(sample_weight=True)
        model.set_partial_fit_request(sample_weight=True, classes=True)
        before = repr(model.get_metadata_routing())
        getattr(model, method)(*trials)
        assert repr(model.get_metadata_routing()) == before


def test_partial_fit_can_request_weights_and_classes():
    with config_context(enable_metadata_routing=True):
        model = SmoothBetaClassifier().set_partial_fit_request(sample_weight=True, classes="labels")
        requests = model.get_metadata_routing().partial_fit.requests
    said = {"sample_weight": True, "classes": "labels"}
    assert requests == {**said, "context": None, "groups": None}


# Notebooks and other tools.


def test_the_html_repr_tells_the_class_and_whether_it_is_fitted(trials):
    model = SmoothBetaClassifier(bandwidth=0.125)
    before = estimator_html_repr(model)
    after = estimator_html_repr(model.fit(*trials))
    assert "SmoothBetaClassifier" in before
    assert "0.125" in before
    assert "Not fitted" in before
    assert "Not fitted" not in after


def test_the_text_repr_shows_only_what_was_changed():
    assert repr(SmoothBetaClassifier(bandwidth=0.5)) == "SmoothBetaClassifier(bandwidth=0.5)"


def test_tags_say_a_dense_finite_multiclass_classifier():
    tags = get_tags(SmoothBetaClassifier())
    assert tags.estimator_type == "classifier"
    assert tags.classifier_tags.multi_class
    assert tags.target_tags.required
    assert not tags.input_tags.sparse
    assert not tags.input_tags.allow_nan
    assert not tags.non_deterministic


@pytest.mark.parametrize("ask", ["predict", "predict_proba", "posterior"])
def test_asking_does_not_change_the_model(trials, ask):
    X, y = trials
    model = SmoothBetaClassifier(bandwidth=0.1).fit(X, y)
    before = dict(vars(model))
    getattr(model, ask)(X)
    assert vars(model) == before
