"""Bad input: the error says where, what and which rule; the model stays unchanged."""

import functools

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.exceptions import NotFittedError
from tests import refusing
from tests.refusing import T, X, Y, make

from betafield import FieldWarning, Prior, SmoothBetaClassifier

NAN, INF = np.nan, np.inf


def changed(values, row, value):
    """Return the values with one row replaced."""
    values = list(values)
    values[row] = value
    return values


def with_cell(row, column, value):
    table = X.astype(object)
    table[row, column] = value
    return table.tolist()


def knowledge(model):
    """Return the model's contents and its answers, to the bit."""
    asked = SmoothBetaClassifier()
    asked.__dict__.update({**vars(model), "prior": (1.0, 1.0), "n_jobs": None})
    posterior = asked.posterior(X)
    held = {name: id(value) for name, value in vars(model).items()}
    return held, model.n_trials_, posterior.alpha.tobytes(), posterior.beta.tobytes()


refused = functools.partial(refusing.refused, knowledge=knowledge)


def fails(_):
    raise ValueError("trials row 3: found 2; allowed is 1")


def forgets(model):
    model.partial_fit(X, Y)
    fails(model)


@pytest.mark.parametrize(
    ("call", "said"),
    [(fails, ["row 4"]), (fails, ["row 3", "found 3"]), (forgets, ["row 3"]), (id, [])],
    ids=["another row", "another value", "a changed model", "no error"],
)
def test_what_is_not_refused_as_said_is_told_apart(call, said):
    model = make().fit(X, Y)
    with refused(model, ValueError, "row 3", "found 2"):
        fails(model)
    with pytest.raises((AssertionError, pytest.fail.Exception)), refused(model, ValueError, *said):
        call(model)


# Points.

BAD_POINTS = {
    "NaN": (with_cell(3, 1, NAN), ["X row 3, column 1", "NaN", "finite"]),
    "infinity": (with_cell(3, 0, INF), ["X row 3, column 0", "inf", "finite"]),
    "minus infinity": (with_cell(5, 1, -INF), ["X row 5, column 1", "-inf", "finite"]),
    "None": (with_cell(2, 1, None), ["X row 2, column 1", "NaN", "finite"]),
    "the first of several": (
        [[0.0, 0.0], [0.0, INF], [NAN, 0.0], *X[3:].tolist()],
        ["X row 1, column 1", "inf"],
    ),
    "text": (with_cell(4, 0, "many"), ["X row 4, column 0", "found 'many'", "must be a number"]),
    "text in an array": (
        np.array(with_cell(4, 0, "many")),
        ["X row 0, column 0", "found '0.0'", "must be a number"],
    ),
    "one dimension": (X[:, 0], ["X:", "Expected 2D array, got 1D array"]),
    "no dimension": (3.0, ["X:", "Expected 2D array, got scalar array"]),
    "three dimensions": (X[None], ["X:", "dim 3", "dim <= 2"]),
    "no rows": (X[:0], ["X:", "0 sample(s)", "minimum of 1"]),
    "no columns": (X[:, :0], ["X:", "0 feature(s)", "minimum of 1"]),
    "rows of unequal length": ([[0.1, 0.2], [0.3]], ["X:", "different lengths"]),
    "complex numbers": (X + 1j, ["X:", "Complex data not supported"]),
    "nothing": (None, ["X: "]),
}


@pytest.mark.parametrize("case", BAD_POINTS)
@pytest.mark.parametrize(
    "call",
    [
        lambda model, points: model.fit(points, Y),
        lambda model, points: model.partial_fit(points, Y),
        lambda model, points: model.fit_counts(points, Y, 1),
        lambda model, points: model.partial_fit_counts(points, Y, 1),
        lambda model, points: model.posterior(points),
        lambda model, points: model.predict(points),
    ],
    ids=["fit", "partial_fit", "fit_counts", "partial_fit_counts", "posterior", "predict"],
)
def test_points_that_are_no_finite_table_are_refused(case, call):
    points, said = BAD_POINTS[case]
    model = make().fit(X, Y)
    with refused(model, ValueError, *said):
        call(model, points)


@pytest.mark.parametrize("kind", [scipy.sparse.csr_matrix, scipy.sparse.coo_array])
def test_sparse_points_are_refused(kind):
    model = make().fit(X, Y)
    with refused(model, TypeError, "X", "dense"):
        model.fit(kind(X), Y)
    with refused(model, TypeError, "X", "dense"):
        model.posterior(kind(X))


def test_a_matrix_of_numpy_is_refused_as_scikit_learn_does():
    model = make().fit(X, Y)
    with pytest.warns(PendingDeprecationWarning):
        matrix = np.asmatrix(X)
    for call in (lambda: model.fit(matrix, Y), lambda: model.posterior(matrix)):
        with refused(model, TypeError, "X: ", "np.matrix is not supported"):
            call()


@pytest.mark.parametrize("ask", ["partial_fit", "partial_fit_counts", "posterior", "predict"])
def test_a_wrong_number_of_features_is_refused(ask):
    model = make().fit(X, Y)
    wider = np.column_stack([X, X])
    with refused(model, ValueError, "X has 4 features", "expecting 2 features"):
        getattr(model, ask)(wider, *{"partial_fit": [Y], "partial_fit_counts": [Y, Y]}.get(ask, []))


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_points_outside_the_bounds_are_refused(method):
    model = make().fit(X, Y)
    outside = with_cell(6, 1, 1.5)
    with refused(model, ValueError, "X row 6, column 1", "1.5", "bounds", "[0.0, 1.0]"):
        getattr(model, method)(outside, Y)


@pytest.mark.parametrize("method", ["fit_counts", "partial_fit_counts"])
def test_counts_outside_the_bounds_are_refused(method):
    model = make().fit(X, Y)
    with refused(model, ValueError, "X row 0, column 0", "-0.25", "bounds", "[0.0, 1.0]"):
        getattr(model, method)(with_cell(0, 0, -0.25), Y, 1)


@pytest.mark.parametrize("scale", ["range", "std"])
def test_a_range_beyond_floats_is_refused(scale):
    with pytest.raises(ValueError, match=r"X column 1: .*-1e\+308 to 1e\+308.* rescale"):
        make(bounds=None, scale=scale).fit([[0.0, -1e308], [1.0, 1e308]], [0, 1])


def test_queries_may_lie_outside_the_bounds():
    assert make().fit(X, Y).posterior([[5.0, -5.0]]).alpha.tolist() == [1.0]


# Outcomes.

BAD_OUTCOMES = {
    "NaN": (changed(Y, 2, NAN), ["y row 2", "NaN", "finite"]),
    "infinity": (changed(Y, 3, INF), ["y row 3", "inf", "finite"]),
    "None among numbers": (changed(Y, 2, None), ["y row 2", "None", "missing"]),
    "None among text": (changed(["a", "b"] * 4, 2, None), ["y row 2", "None", "missing"]),
    "NaN among text": (
        np.array(changed(["a", "b"] * 4, 2, NAN), dtype=object),
        ["y row 2", "NaN", "missing"],
    ),
    "NA of pandas": (
        pd.Series(changed(["a", "b"] * 4, 5, None), dtype="string"),
        ["y row 5", "missing"],
    ),
    "NA among pandas booleans": (
        pd.Series(changed([True, False] * 4, 5, None), dtype="boolean"),
        ["y row 5", "missing"],
    ),
    "measurements": (X[:, 0], ["y: ", "Unknown label type: continuous"]),
    "text and numbers": (
        np.array(changed(Y, 2, "a"), dtype=object),
        ["y: ", "Unknown label type"],
    ),
    "two columns": (np.column_stack([Y, Y]), ["y should be a 1d array", "(8, 2)"]),
    "rows of unequal length": ([[1], [1, 0]], ["y: ", "different lengths"]),
    "one number": (1, ["y should be a 1d array", "()"]),
    "too few": (Y[:3], ["y: found 3 rows", "X has 8"]),
    "too many": (np.append(Y, 1), ["y: found 9 rows", "X has 8"]),
    "nothing": (None, ["requires y", "None"]),
}


@pytest.mark.parametrize("case", BAD_OUTCOMES)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_outcomes_that_are_no_labels_are_refused(case, method):
    outcomes, said = BAD_OUTCOMES[case]
    model = make().fit(X, Y)
    with refused(model, ValueError, *said):
        getattr(model, method)(X, outcomes)


@pytest.mark.parametrize("label", [1, "yes", True])
def test_one_class_alone_is_refused_with_a_way_out(label):
    model = make().fit(X, Y)
    said = ["y: ", "one class", f"{label!r};", "two or more", "partial_fit(X, y, classes="]
    with refused(model, ValueError, *said):
        model.fit(X, [label] * T)
    with pytest.raises(ValueError, match="one class"):
        make().partial_fit(X, [label] * T)


@pytest.mark.parametrize("label", [2, "yes", "1", -1.0])
def test_one_class_alone_that_is_neither_0_nor_1_is_refused_by_default_too(label):
    with pytest.raises(ValueError, match=f"y: found only one class, {label!r}; two or more"):
        SmoothBetaClassifier().fit(X, [label] * T)


@pytest.mark.parametrize("label", [0, 1, 0.0, True, False])
def test_outcomes_that_all_are_0_or_1_are_the_posterior_of_one_rate(label):
    with pytest.warns(FieldWarning, match=f"y: every outcome is {label}"):
        model = SmoothBetaClassifier().fit(X, [label] * T)
    assert model.classes_.tolist() == [0, 1]
    mean, (low, high) = model.predict_proba(X)[:, 1], model.posterior(X).interval(0.95)
    assert np.all((mean > 0.5) == label)
    assert np.all((low < mean) & (mean < high))
    assert np.ptp(mean) < 0.1


@pytest.mark.parametrize(
    ("later", "said"),
    [
        ([0, 2] * 4, ["y row 1", "found 2", "[0, 1]"]),
        (["no", "yes"] * 4, ["y row 0", "found 'no'", "[0, 1]"]),
    ],
)
def test_a_class_never_named_is_refused_later(later, said):
    model = make().fit(X, Y)
    with refused(model, ValueError, *said):
        model.partial_fit(X, later)


@pytest.mark.parametrize(
    ("classes", "said"),
    [
        ([1], ["classes: ", "one class", "1;", "two or more"]),
        ([], ["classes: ", "two or more"]),
        ([0, 1, NAN], ["classes", "NaN"]),
        ([0, 1, None], ["classes", "None"]),
        ([[0, 1], [2, 3]], ["classes", "(2, 2)"]),
        (3, ["classes", "()"]),
        ([0, 5], ["y row 1", "found 1", "[0, 5]"]),
    ],
    ids=repr,
)
def test_classes_that_cannot_be_are_refused_at_first(classes, said):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (the words are checked below)
        make().partial_fit(X, Y, classes=classes)
    assert all(words in str(caught.value) for words in said), caught.value


def test_classes_other_than_at_first_are_refused():
    model = make().fit(X, Y)
    with refused(model, ValueError, "classes: ", "[0, 1, 2]", "[0, 1]"):
        model.partial_fit(X, Y, classes=[0, 1, 2])


# Weights.

BAD_WEIGHTS = {
    "NaN": (changed(np.ones(T), 2, NAN), ["sample_weight row 2", "NaN", "finite"]),
    "infinity": (changed(np.ones(T), 7, INF), ["sample_weight row 7", "inf", "finite"]),
    "negative": (changed(np.ones(T), 1, -0.5), ["sample_weight row 1", "-0.5", "not be negative"]),
    "all zero": (np.zeros(T), ["sample_weight: ", "zero", "positive"]),
    "all too small to count": (np.full(T, 1e-12), ["sample_weight: ", "1e-12"]),
    "text": (changed(np.ones(T), 4, "heavy"), ["sample_weight row 4", "'heavy'", "number"]),
    "None": (changed(np.ones(T), 4, None), ["sample_weight row 4", "NaN", "finite"]),
    "too few": (np.ones(3), ["sample_weight: found 3 rows", "X has 8"]),
    "two columns": (np.ones((T, 2)), ["sample_weight: ", "(8, 2)", "one value per row"]),
    "rows of unequal length": ([[1.0], [1.0, 2.0]], ["sample_weight: ", "different lengths"]),
    "too heavy": (changed(np.ones(T), 4, 1e19), ["sample_weight: ", "1e+19", "at most"]),
}


@pytest.mark.parametrize("case", BAD_WEIGHTS)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_weights_that_do_not_count_trials_are_refused(case, method):
    weight, said = BAD_WEIGHTS[case]
    model = make().fit(X, Y)
    with refused(model, ValueError, *said):
        getattr(model, method)(X, Y, sample_weight=weight)


# Counts.

FOUR = np.full(T, 4)
BAD_COUNTS = {
    "more successes than trials": (
        changed(Y, 2, 5),
        FOUR,
        ["successes row 2", "5 of 4 trials", "more successes than trials"],
    ),
    "negative successes": (changed(Y, 3, -1), FOUR, ["successes row 3", "-1", "whole numbers"]),
    "negative trials": (Y * 0, changed(FOUR, 3, -1), ["trials row 3", "-1", "whole numbers"]),
    "half a success": (changed(Y, 1, 0.5), FOUR, ["successes row 1", "0.5", "whole numbers"]),
    "half a trial": (Y, changed(FOUR, 1, 3.5), ["trials row 1", "3.5", "whole numbers"]),
    "NaN successes": (changed(Y, 6, NAN), FOUR, ["successes row 6", "NaN", "finite"]),
    "infinite trials": (Y, changed(FOUR, 6, INF), ["trials row 6", "inf", "finite"]),
    "text": (changed(Y, 6, "few"), FOUR, ["successes row 6", "'few'", "number"]),
    "no trials at all": (Y * 0, FOUR * 0, ["trials: ", "zero", "positive"]),
    "too few": (Y[:3], FOUR, ["successes: found 3 rows", "X has 8"]),
    "two columns": (Y, np.ones((T, 2)), ["trials: ", "(8, 2)", "one value per row"]),
    "rows of unequal length": ([[1], [1, 0]], FOUR, ["successes: ", "different lengths"]),
    "one count too large": (Y, changed(FOUR, 6, 1e30), ["trials row 6", "1e+30", "at most"]),
    "too many together": (Y * 0, np.full(T, 2**61), ["trials: ", "at most"]),
    "no trials given": (Y, None, ["trials row 0", "NaN"]),
}


@pytest.mark.parametrize("case", BAD_COUNTS)
@pytest.mark.parametrize("method", ["fit_counts", "partial_fit_counts"])
def test_counts_that_cannot_be_are_refused(case, method):
    successes, trials, said = BAD_COUNTS[case]
    model = make().fit(X, Y)
    with refused(model, ValueError, *said):
        getattr(model, method)(X, successes, trials)


def test_counts_are_refused_by_a_model_of_three_classes():
    model = make().fit(X, [0, 1, 2, 0, 1, 2, 0, 1])
    with pytest.raises(ValueError, match=r"successes: .*3 classes.*two"):
        model.partial_fit_counts(X, Y, 1)
    assert model.n_trials_ == T


def test_more_trials_than_can_be_counted_are_refused_in_a_stream():
    model = make().fit_counts(X, 0, 2**59 - 1)
    with refused(model, ValueError, "trials", "at most"):
        model.partial_fit_counts(X, 0, 2**58)


# Options.

BAD_OPTIONS = [
    *(
        (
            "bandwidth",
            value,
            [repr(value).replace("nan", "NaN"), "positive number", "'theory'", "'loo'", "'auto'"],
        )
        for value in (0, -0.5, NAN, INF, "narrow", None, True, [0.3])
    ),
    *(
        ("lipschitz", value, [repr(value).replace("nan", "NaN"), "positive number"])
        for value in (0, -1.0, NAN, INF, "steep", None, [1.0])
    ),
    *(
        (
            "metric",
            value,
            [repr(value).replace("nan", "NaN"), "euclidean", "chebyshev", "manhattan"],
        )
        for value in ("cosine", "Euclidean", None, 2)
    ),
    *(
        ("method", value, [repr(value), "'auto'", "'process'", "'windows'"])
        for value in (3, "Auto", "gp", None, ["auto"])
    ),
    *(("n_jobs", value, [repr(value), "None", "-1"]) for value in (0, 1.5, "two")),
    *(
        ("scale", value, [repr(value), "'auto'", "'range'", "'std'", "None"])
        for value in ("unit", "ARD", "Range")
    ),
    ("scale", [1.0], ["(1,)", "(2,)"]),
    ("scale", 1.0, ["()", "(2,)"]),
    ("scale", [1.0, 0.0], ["[1.0, 0.0]", "positive"]),
    ("scale", [1.0, -2.0], ["[1.0, -2.0]", "positive"]),
    ("scale", [1.0, NAN], ["[1.0, NaN]", "positive", "finite"]),
    ("scale", [1.0, "wide"], ["'wide'"]),
    ("bounds", [0, 1], ["(2,)", "(2, 2)"]),
    ("bounds", [(0, 1)], ["(1, 2)", "(2, 2)"]),
    ("bounds", [(0, 1), (1, 0)], ["[1.0, 0.0]", "low <= high"]),
    ("bounds", [(0, 1), (0, NAN)], ["NaN", "finite"]),
    ("bounds", [(0, 1), (0, INF)], ["inf", "finite"]),
    ("bounds", [(0, 1), (0, "high")], ["'high'"]),
    ("bounds", "unit", ["'unit'"]),
    ("bounds", [(0, 1), (0,)], ["different lengths"]),
]


@pytest.mark.parametrize(("option", "value", "said"), BAD_OPTIONS, ids=repr)
def test_an_option_that_means_nothing_is_refused(option, value, said):
    model = make().fit(X, Y)
    model.set_params(**{option: value})
    for learn in (lambda: model.fit(X, Y), lambda: model.fit_counts(X, Y, 1)):
        with refused(model, ValueError, option, *said):
            learn()


@pytest.mark.parametrize("option", ["bandwidth", "lipschitz", "metric", "method", "n_jobs"])
def test_a_wrong_option_is_refused_in_a_stream_too(option):
    model = make().fit(X, Y)
    model.set_params(**{option: "wrong"})
    with refused(model, ValueError, f"{option}: ", "'wrong'"):
        model.partial_fit(X, Y)


def test_a_prior_that_python_does_not_write_is_refused_by_the_default():
    with pytest.raises(ValueError, match="prior: found a value of type int with method='auto'"):
        SmoothBetaClassifier(prior=10**5000).fit(X, Y)


# Priors.

BAD_PRIORS = [
    ((0, 1), ValueError, ["0.0", "positive"]),
    ((1, -2.5), ValueError, ["-2.5", "positive"]),
    ((NAN, 1), ValueError, ["nan", "positive"]),
    ((1, INF), ValueError, ["inf", "finite"]),
    ((1,), ValueError, ["(alpha, beta)"]),
    ((1, 1, 1), ValueError, ["(alpha, beta)"]),
    (("a", 1), ValueError, ["'a'", "(alpha, beta)"]),
    ("flat", TypeError, ["'flat'", "(alpha, beta)"]),
    (1.0, TypeError, ["1.0", "(alpha, beta)"]),
    (None, TypeError, ["None", "(alpha, beta)"]),
]


@pytest.mark.parametrize(("prior", "error", "said"), BAD_PRIORS, ids=repr)
@pytest.mark.parametrize("bandwidth", [0.3, "loo"])
def test_a_prior_that_is_no_pair_of_shapes_is_refused_before_learning(
    prior, error, said, bandwidth
):
    model = make(bandwidth=bandwidth).fit(X, Y)
    model.set_params(prior=prior)
    with refused(model, error, "prior: ", *said):
        model.fit(X, Y)


@pytest.mark.parametrize(
    ("prior", "error", "said"),
    [
        (lambda P: (P[:, 0], 1.0), ValueError, ["prior row 0", "0.0", "positive"]),
        (lambda P: (1.0, 0.5 - P[:, 0]), ValueError, ["prior row 4", "-0.07", "positive"]),
        (lambda _: (np.ones(3), 1.0), ValueError, ["prior: ", "(3,)", "8 points"]),
        (lambda P: (np.ones_like(P), 1.0), ValueError, ["prior: ", "(8, 2)", "8 points"]),
        (lambda _: (1.0,), ValueError, ["prior: ", "(alpha, beta)"]),
        (lambda _: 1.0, TypeError, ["prior: ", "1.0", "(alpha, beta)"]),
        (
            Prior.from_mean_variance(lambda P: P[:, 0], 0.01),
            ValueError,
            ["prior row 0", "mean 0 ", "0 < mean < 1"],
        ),
        (
            Prior.from_mean_variance(0.5, 0.25),
            ValueError,
            ["prior row 0", "variance 0.25", "variance < mean (1 - mean)"],
        ),
        (Prior.from_mean_variance(0.5, NAN), ValueError, ["prior row 0", "variance nan"]),
        (Prior.from_mean_variance("half", 0.1), ValueError, ["prior", "mean", "'half'"]),
        (
            Prior.from_mean_variance(lambda _: np.ones(3) / 2, 0.1),
            ValueError,
            ["prior", "mean", "(3,)", "8 points"],
        ),
    ],
)
def test_a_prior_field_is_refused_where_it_is_no_prior(prior, error, said):
    model = make().fit(X, Y).set_params(prior=prior)
    with refused(model, error, *said):
        model.posterior(X)
    model.set_params(bandwidth="loo")
    with refused(model, error, "prior"):
        model.fit(X, Y)


def test_an_unequal_pair_is_no_prior_for_three_classes():
    model = make(prior=(1.0, 2.0))
    with pytest.raises(ValueError, match=r"prior: .*3 values"):
        model.fit(X, [0, 1, 2, 0, 1, 2, 0, 1]).posterior(X)


# Merging.


def shifted(**options):
    return make(bounds=[(-1, 0), (0, 1)], **options).fit(X - [1, 0], Y)


@pytest.mark.parametrize(
    ("other", "error", "said"),
    [
        (lambda: "a model", TypeError, ["other: ", "str", "SmoothBetaClassifier"]),
        (lambda: None, TypeError, ["other: ", "NoneType", "SmoothBetaClassifier"]),
        (make, NotFittedError, ["not fitted"]),
        (lambda: make().fit(X, Y + 1), ValueError, ["other: ", "classes_", "[1, 2]", "[0, 1]"]),
        (
            lambda: make(bounds=None).fit(X[:, :1], Y),
            ValueError,
            ["other: ", "n_features_in_", "1", "2"],
        ),
        (lambda: make(bounds=[(0, 2)] * 2).fit(X, Y), ValueError, ["other: ", "bounds"]),
        (shifted, ValueError, ["other: ", "bounds", "[[-1.0, 0.0], [0.0, 1.0]]"]),
        (
            lambda: shifted(scale=np.ones(2)),
            ValueError,
            ["other: ", "bounds", "[[-1.0, 0.0], [0.0, 1.0]]"],
        ),
        (lambda: make(scale="std").fit(X, Y), ValueError, ["other: ", "scale_"]),
        (
            lambda: make(metric="manhattan").fit(X, Y),
            ValueError,
            ["other: ", "metric", "manhattan", "euclidean"],
        ),
        (
            lambda: make().fit(pd.DataFrame(X, columns=["a", "b"]), Y),
            ValueError,
            ["other: ", "feature_names_in_", "'a'"],
        ),
    ],
    ids=[
        "text",
        "None",
        "unfitted",
        "classes",
        "features",
        "bounds",
        "origin",
        "origin under given units",
        "scale",
        "metric",
        "names",
    ],
)
def test_a_model_of_another_kind_is_not_merged(other, error, said):
    model = make().fit(X, Y)
    with refused(model, error, *said):
        model.merge(other())


@pytest.mark.parametrize("scales", [("range", np.ones(2)), (np.ones(2), "range"), (None, "range")])
def test_models_merge_where_units_are_the_same_by_another_name(scales):
    one, other = (make(scale=scale).fit(X, Y) for scale in scales)
    assert one.merge(other).n_trials_ == 2 * T


def test_models_that_hold_too_much_together_are_not_merged():
    model, other = (make().fit_counts(X, 0, 2**59 - 1) for _ in range(2))
    with refused(model, ValueError, "at most"):
        model.merge(other)


# Before fit.


@pytest.mark.parametrize("ask", ["posterior", "predict", "predict_proba"])
def test_an_unfitted_model_has_no_answers(ask):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        getattr(make(), ask)(X)


def test_an_unfitted_model_can_be_neither_scored_nor_merged():
    with pytest.raises(NotFittedError, match="not fitted yet"):
        make().score(X, Y)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        make().merge(make().fit(X, Y))


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_a_first_fit_that_fails_leaves_an_unfitted_model(method):
    model = make()
    with pytest.raises(ValueError, match="X row 3"):
        getattr(model, method)(with_cell(3, 1, NAN), Y)
    assert set(vars(model)) == set(model.get_params())
