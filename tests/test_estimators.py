"""SmoothBetaClassifier with windows, against windows counted by hand."""

from fractions import Fraction

import numpy as np
import pytest

from betafield import Prior, SmoothBetaClassifier

METRICS = ["euclidean", "chebyshev", "manhattan"]


def grid_trials(t, d, n_classes=2, seed=0):
    """Return trials on eighths of the unit cube: many equal places, many borders, no rounding."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 9, size=(t, d)) / 8
    X[0], X[1] = 0.0, 1.0
    return X, rng.integers(0, n_classes, size=t)


def is_near(x, q, unit, width, metric):
    """Return in exact arithmetic whether x lies within the width of q."""
    apart = [
        abs(Fraction(a) - Fraction(b)) / Fraction(u) for a, b, u in zip(x, q, unit, strict=True)
    ]
    if metric == "euclidean":
        return sum(step**2 for step in apart) <= Fraction(width) ** 2
    return (max(apart) if metric == "chebyshev" else sum(apart)) <= Fraction(width)


def counted(X, y, queries, unit, width, metric="euclidean", weight=None):
    """Return (m, n_classes): the trials of each class near each query, one by one."""
    weight = np.ones(len(y), dtype=int) if weight is None else weight
    sums = [[Fraction(0)] * (int(max(y)) + 1) for _ in queries]
    for row, q in zip(sums, queries, strict=True):
        for x, outcome, w in zip(X, y, weight, strict=True):
            if is_near(x, q, unit, width, metric):
                row[outcome] += Fraction(w)
    return np.array(sums, dtype=float)


def assert_same_posterior(a, b, X):
    ours, theirs = a.posterior(X), b.posterior(X)
    for answer in (lambda post: post.mean(), lambda post: post.ppf(0.025)):
        np.testing.assert_array_equal(answer(ours), answer(theirs))
    if hasattr(ours, "alpha"):
        np.testing.assert_array_equal(ours.alpha, theirs.alpha)


def assert_same_knowledge(a, b, X):
    """Expect everything learned to be equal, not only the answers at X."""
    for name in ("classes_", "n_trials_", "scale_", "bounds_"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
    assert a.weights_.tobytes() == b.weights_.tobytes()
    assert_same_posterior(a, b, X)


def test_models_that_know_different_things_are_told_apart():
    X, y = grid_trials(40, 1)
    model = SmoothBetaClassifier(0.25).fit(X, y)
    assert_same_knowledge(model, SmoothBetaClassifier(0.25).fit(X[::-1], y[::-1]), X)
    for other in (
        SmoothBetaClassifier(0.25).fit(X, 1 - y),
        SmoothBetaClassifier(0.25).fit(X, y + 1),
        SmoothBetaClassifier(0.25, bounds=[(-1, 1)]).fit(X, y),
        SmoothBetaClassifier(0.25).fit(X, y, sample_weight=np.full(40, 2.0)),
        SmoothBetaClassifier(0.26).fit(X, y),
    ):
        with pytest.raises(AssertionError):
            assert_same_knowledge(model, other, X)
    with pytest.raises(AssertionError):
        assert_same_posterior(model, SmoothBetaClassifier(0.25).fit(X, 1 - y), X)


# The posterior is Beta(α + S, β + n − S).


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize(
    ("options", "units"),
    [
        ({}, [1, 1, 1]),
        ({"bounds": [(0, 1)] * 3}, [1, 1, 1]),
        ({"bounds": [(0, 2), (-1, 3), (0, 1)]}, [2, 4, 1]),
        ({"scale": None}, [1, 1, 1]),
        ({"scale": None, "bounds": [(0, 2), (-1, 3), (0, 1)]}, [1, 1, 1]),
        ({"scale": [0.5, 2.0, 1.0]}, [0.5, 2, 1]),
        ({"scale": [0.5, 2.0, 1.0], "bounds": [(-2, 2)] * 3}, [0.5, 2, 1]),
    ],
)
@pytest.mark.sampled
def test_the_posterior_adds_the_window_to_the_prior(metric, d, options, units):
    X, y = grid_trials(60, d)
    queries = X[:30]
    options = {name: value if value is None else value[:d] for name, value in options.items()}
    model = SmoothBetaClassifier(bandwidth=0.25, metric=metric, prior=(0.5, 2.0), **options)
    posterior = model.fit(X, y).posterior(queries)
    failures, successes = counted(X, y, queries, units[:d], 0.25, metric).T
    np.testing.assert_array_equal(posterior.alpha, 0.5 + successes)
    np.testing.assert_array_equal(posterior.beta, 2.0 + failures)


@pytest.mark.parametrize("metric", METRICS)
def test_scale_std_measures_in_standard_deviations(metric):
    # Half the trials at each end: the standard deviations are exactly 3 and 1/2.
    X = np.array([[-3.0, 1.0], [3.0, 2.0], [-3.0, 2.0], [3.0, 1.0]])
    y = np.array([0, 1, 1, 0])
    queries = np.array([[-3.0, 1.5], [0.0, 1.5], [0.0, 1.0], [3.0, 2.0], [-2.75, 1.0]])
    model = SmoothBetaClassifier(bandwidth=1.0, scale="std", metric=metric).fit(X, y)
    failures, successes = counted(X, y, queries, [3, 0.5], 1, metric).T
    posterior = model.posterior(queries)
    np.testing.assert_array_equal(model.scale_, [3.0, 0.5])
    np.testing.assert_array_equal(posterior.alpha, 1 + successes)
    np.testing.assert_array_equal(posterior.beta, 1 + failures)


def test_the_unit_of_scale_std_is_numpys_weighted_deviation():
    rng = np.random.default_rng(1)
    X, weight = rng.normal(5.0, [1.0, 30.0], size=(200, 2)), rng.integers(1, 4, size=200)
    model = SmoothBetaClassifier(bandwidth=1.0, scale="std")
    model.fit(X, np.arange(200) % 2, sample_weight=weight)
    np.testing.assert_allclose(model.scale_, np.repeat(X, weight, axis=0).std(axis=0), rtol=1e-13)


@pytest.mark.parametrize(
    ("metric", "q", "width"),
    [
        ("euclidean", [3.0, 4.0], 5.0),
        ("euclidean", [5.0, 12.0], 13.0),
        ("chebyshev", [3.0, 4.0], 4.0),
        ("manhattan", [3.0, 4.0], 7.0),
    ],
)
def test_a_trial_at_exactly_the_width_is_inside(metric, q, width):
    model = SmoothBetaClassifier(bandwidth=width, scale=None, metric=metric)
    model.partial_fit([[0.0, 0.0]], [1], classes=[0, 1])
    assert model.posterior([q]).alpha.tolist() == [2.0]
    assert model.posterior([np.nextafter(q, np.inf)]).alpha.tolist() == [1.0]


def test_a_window_counted_on_paper():
    X = [[0.0], [0.25], [0.5], [0.75], [1.0]]
    model = SmoothBetaClassifier(bandwidth=0.25).fit(X, [1, 1, 0, 1, 0])
    posterior = model.posterior([[0.25], [0.5], [1.0], [0.125]])
    assert posterior.alpha.tolist() == [3.0, 3.0, 2.0, 3.0]
    assert posterior.beta.tolist() == [2.0, 2.0, 2.0, 1.0]
    np.testing.assert_allclose(posterior.mean(), [3 / 5, 3 / 5, 1 / 2, 3 / 4], rtol=1e-15)


@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("far", [50.0, 1e30, -1e300])
def test_far_from_all_trials_the_prior_remains(d, far):
    X, y = grid_trials(30, d)
    posterior = (
        SmoothBetaClassifier(bandwidth=0.3, prior=(0.25, 4.0))
        .fit(X, y)
        .posterior(np.full((2, d), far))
    )
    assert posterior.alpha.tolist() == [0.25, 0.25]
    assert posterior.beta.tolist() == [4.0, 4.0]


def test_a_query_too_far_to_be_scaled_gets_the_prior():
    model = SmoothBetaClassifier(bandwidth=0.3).fit([[0.0], [1e-300]], [0, 1])
    assert model.posterior([[1e300]]).alpha.tolist() == [1.0]


# Priors.


def test_a_prior_may_be_a_function_of_place():
    X, y = grid_trials(60, 2)
    model = SmoothBetaClassifier(bandwidth=0.25, prior=lambda P: (1 + P[:, 0], 2.0 + 3 * P[:, 1]))
    posterior = model.fit(X, y).posterior(X)
    failures, successes = counted(X, y, X, [1, 1], 0.25).T
    np.testing.assert_array_equal(posterior.alpha, 1 + X[:, 0] + successes)
    np.testing.assert_array_equal(posterior.beta, 2.0 + 3 * X[:, 1] + failures)


def test_a_prior_function_sees_points_in_the_users_units():
    seen = []
    prior = lambda P: seen.append(P.copy()) or (1.0, 1.0)
    model = SmoothBetaClassifier(bandwidth=0.1, bounds=[(0, 1000)], prior=prior)
    model.fit([[100.0], [900.0]], [0, 1]).posterior([[250.0]])
    assert seen[-1].tolist() == [[250.0]]


def test_leave_one_out_shows_a_prior_function_the_users_units():
    seen = []
    prior = lambda P: seen.append(P.copy()) or (1.0, 1.0)
    X = np.array([[100.0, 7.0], [500.0, 7.0], [900.0, 7.0]])
    SmoothBetaClassifier(bandwidth="loo", prior=prior).fit(X, [0, 1, 0])
    assert all(np.array_equal(np.sort(points, axis=0), X) for points in seen)
    assert seen


def test_a_prior_by_mean_and_variance_is_what_remains_far_away():
    prior = Prior.from_mean_variance(0.25, 0.0375)
    posterior = SmoothBetaClassifier(bandwidth=0.1, prior=prior).fit([[0], [1]], [0, 1])
    shapes = posterior.posterior([[50.0]])
    # ν = 0.1875 / 0.0375 − 1 = 4.
    np.testing.assert_allclose([shapes.alpha[0], shapes.beta[0]], [1.0, 3.0], rtol=1e-14)


# Three classes and more: a Dirichlet.


@pytest.mark.parametrize("metric", METRICS)
def test_three_classes_have_the_dirichlet_of_the_windows_counts(metric):
    X, y = grid_trials(90, 2, n_classes=3)
    model = SmoothBetaClassifier(bandwidth=0.25, metric=metric, prior=(0.5, 1.0, 2.0)).fit(X, y)
    shapes = np.array([0.5, 1.0, 2.0]) + counted(X, y, X, [1, 1], 0.25, metric)
    np.testing.assert_array_equal(model.posterior(X).alpha, shapes)
    np.testing.assert_allclose(
        model.predict_proba(X), shapes / shapes.sum(axis=1, keepdims=True), rtol=1e-14
    )


def test_two_equal_shapes_serve_every_class():
    X, y = grid_trials(40, 1, n_classes=4)
    model = SmoothBetaClassifier(bandwidth=0.1, prior=(0.5, 0.5)).fit(X, y)
    assert model.posterior([[99.0]]).alpha.tolist() == [[0.5] * 4]


# Labels.


@pytest.mark.parametrize(
    "labels",
    [
        np.array([0, 1]),
        np.array([-3, 12]),
        np.array([False, True]),
        np.array(["no", "yes"]),
        np.array(["no", "yes"], dtype=object),
        np.array([0.0, 1.0]),
        np.array([1, 2], dtype=np.uint8),
    ],
    ids=repr,
)
def test_success_is_the_second_class_whatever_labels_are(labels):
    X, y = grid_trials(80, 2)
    model = SmoothBetaClassifier(bandwidth=0.25).fit(X, labels[y])
    assert_same_posterior(model, SmoothBetaClassifier(bandwidth=0.25).fit(X, y), X)
    np.testing.assert_array_equal(model.classes_, labels)
    assert model.predict(X).dtype == labels.dtype
    assert set(model.predict(X)) <= set(labels)


def test_predict_takes_the_class_of_highest_probability():
    X, y = grid_trials(200, 2, n_classes=3)
    model = SmoothBetaClassifier(bandwidth=0.2).fit(X, np.array(["a", "b", "c"])[y])
    proba = model.predict_proba(X)
    np.testing.assert_array_equal(model.predict(X), np.array(["a", "b", "c"])[proba.argmax(axis=1)])
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-15)


def test_probabilities_of_two_classes_are_failure_then_success():
    model = SmoothBetaClassifier(bandwidth=0.5).fit([[0], [0], [1]], [1, 1, 0])
    np.testing.assert_allclose(
        model.predict_proba([[0], [1]]), [[1 / 4, 3 / 4], [2 / 3, 1 / 3]], rtol=1e-15
    )


def test_score_is_the_share_of_right_predictions():
    X = [[0.0], [0.0], [0.0], [1.0], [1.0]]
    model = SmoothBetaClassifier(bandwidth=0.1).fit(X, [1, 1, 0, 0, 0])
    assert model.score(X, [1, 1, 0, 0, 0]) == pytest.approx(4 / 5)


def test_one_class_is_learned_when_both_are_named():
    model = SmoothBetaClassifier(bandwidth=0.5).partial_fit([[0], [0]], ["b", "b"], ["a", "b"])
    posterior = model.posterior([[0]])
    assert (posterior.alpha.tolist(), posterior.beta.tolist()) == ([3.0], [1.0])


# Weights.


@pytest.mark.parametrize("options", [{}, {"bandwidth": "theory"}, {"bandwidth": "loo"}], ids=repr)
@pytest.mark.parametrize("scale", ["range", "std"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_weight_two_is_the_row_twice(options, scale, n_classes):
    X, y = grid_trials(90, 2, n_classes)
    weight = np.random.default_rng(3).integers(1, 4, size=90)
    make = lambda: SmoothBetaClassifier(**{"bandwidth": 0.25, "scale": scale, **options})
    weighted = make().fit(X, y, sample_weight=weight)
    repeated = make().fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert_same_knowledge(weighted, repeated, X)


@pytest.mark.parametrize("bandwidth", [0.25, "theory", "loo"])
@pytest.mark.parametrize("scale", ["range", "std", None])
def test_weight_zero_is_the_row_left_out(bandwidth, scale):
    X, y = grid_trials(90, 2)
    far = np.array([[50.0, -7.0], [-3.0, 1e6]])
    make = lambda: SmoothBetaClassifier(bandwidth, scale=scale)
    weighted = make().fit(
        np.vstack([far[:1], X, far[1:]]), [1, *y, 0], sample_weight=[0.0, *np.ones(90), 0.0]
    )
    assert_same_knowledge(weighted, make().fit(X, y), X)


def test_a_row_of_weight_zero_may_lie_outside_the_bounds():
    model = SmoothBetaClassifier(bandwidth=0.5, bounds=[(0, 1)])
    model.fit([[0], [9], [1]], [0, 1, 1], sample_weight=[1, 0, 1])
    assert model.n_trials_ == 2


@pytest.mark.parametrize("w", [0.5, 0.25, 2.0**-32, 3.75, 1e6 + 0.25])
def test_fractional_weights_add_up_exactly_where_binary_fractions_do(w):
    model = SmoothBetaClassifier(bandwidth=0.5)
    model.fit([[0], [0], [0], [1]], [1, 1, 0, 0], sample_weight=[w, w, w, 1.0])
    posterior = model.posterior([[0]])
    assert posterior.alpha.tolist() == [1 + 2 * w]
    assert posterior.beta.tolist() == [1 + w]
    assert model.n_trials_ == 1 + 3 * w


@pytest.mark.parametrize("w", [1 / 3, 1e-3, 0.1, 1e6 + 1 / 7])
def test_fractional_weights_add_up_to_a_billionth(w):
    model = SmoothBetaClassifier(bandwidth=0.5)
    model.fit(np.zeros((3000, 1)), np.arange(3000) % 3 == 0, sample_weight=np.full(3000, w))
    posterior = model.posterior([[0]])
    # Each weight is stored to within half of 2⁻³²; then the sum is rounded to a float.
    successes, failures = (float(1 + n * Fraction(w)) for n in (1000, 2000))
    assert posterior.alpha[0] == pytest.approx(successes, abs=1000 * 2**-33, rel=4e-16)
    assert posterior.beta[0] == pytest.approx(failures, abs=2000 * 2**-33, rel=4e-16)


def test_weights_of_many_sizes_are_summed_a_window_at_a_time():
    X, y = grid_trials(120, 2, n_classes=3)
    weight = np.random.default_rng(5).choice([0.5, 1.0, 2.0**-20, 1e6 + 0.25, 0.0], size=120)
    model = SmoothBetaClassifier(bandwidth=0.25, bounds=[(0, 1)] * 2)
    model.fit(X, y, sample_weight=weight)
    sums = counted(X, y, X, [1, 1], 0.25, weight=weight)
    np.testing.assert_array_equal(model.posterior(X).alpha, 1 + sums)


# Counts.


@pytest.mark.parametrize("bandwidth", [0.25, "theory", "loo"])
@pytest.mark.parametrize("scale", ["range", "std"])
def test_counts_are_their_trials_one_by_one(bandwidth, scale):
    rng = np.random.default_rng(4)
    X, _ = grid_trials(60, 2)
    trials = rng.integers(0, 6, size=60)
    successes = rng.integers(0, trials + 1)
    rows = [
        (x, outcome)
        for x, n, s in zip(X, trials, successes, strict=True)
        for outcome in [1] * s + [0] * (n - s)
    ]
    make = lambda: SmoothBetaClassifier(bandwidth, scale=scale)
    one_by_one = make().fit(np.array([x for x, _ in rows]), [outcome for _, outcome in rows])
    assert_same_knowledge(make().fit_counts(X, successes, trials), one_by_one, X)


def test_more_counts_and_labels_join_in_one_model():
    model = SmoothBetaClassifier(bandwidth=0.5, bounds=[(0, 1)]).fit_counts([[0]], [2], [5])
    model.partial_fit([[0], [1]], [1, 0]).partial_fit_counts([[0], [1]], 3, 4)
    posterior = model.posterior([[0], [1]])
    assert posterior.alpha.tolist() == [1 + 2 + 1 + 3, 1 + 3]
    assert posterior.beta.tolist() == [1 + 3 + 1, 1 + 1 + 1]
    assert model.n_trials_ == 15


def test_counts_join_a_model_of_two_named_classes():
    model = SmoothBetaClassifier(bandwidth=0.5).fit([[0], [1]], ["no", "yes"])
    assert model.partial_fit_counts([[0]], [7], [7]).predict([[0]]).tolist() == ["yes"]


def test_counts_beyond_the_precision_of_floats_are_exact():
    model = SmoothBetaClassifier(bandwidth=0.5).fit_counts([[0], [1]], [0, 1], [2**53 + 1, 1])
    assert model.n_trials_ == 2**53 + 2


# Learned attributes.


def test_whole_trials_are_counted_by_an_integer():
    model = SmoothBetaClassifier(bandwidth=0.5).fit([[0], [1]], [0, 1], sample_weight=[2.0, 3.0])
    assert (model.n_trials_, type(model.n_trials_)) == (5, int)


def test_learned_attributes_describe_the_data():
    X = np.array([[1.0, 10.0, 7.0], [3.0, 50.0, 7.0], [2.0, 20.0, 7.0]])
    model = SmoothBetaClassifier(bandwidth=0.5).fit(X, ["a", "b", "a"])
    assert model.n_features_in_ == 3
    assert model.classes_.tolist() == ["a", "b"]
    assert model.bounds_.tolist() == [[1.0, 3.0], [10.0, 50.0], [7.0, 7.0]]
    assert model.scale_.tolist() == [2.0, 40.0, np.inf]
    assert model.bandwidth_ == 0.5


def test_given_bounds_are_the_domain_learned():
    model = SmoothBetaClassifier(bandwidth=0.5, bounds=[(-1, 3)]).fit([[0], [1]], [0, 1])
    assert model.bounds_.tolist() == [[-1.0, 3.0]]
    assert model.scale_.tolist() == [4.0]


def test_units_come_from_the_first_batch():
    model = SmoothBetaClassifier(bandwidth=0.5).partial_fit([[0], [2]], [0, 1])
    model.partial_fit([[10], [3]], [1, 1])
    assert model.scale_.tolist() == [2.0]
    # One unit is 2, so the window reaches 1 to each side.
    assert model.posterior([[2], [10], [5]]).alpha.tolist() == [3.0, 2.0, 1.0]


# Edge cases of shapes.


@pytest.mark.parametrize("scale", ["range", "std"])
@pytest.mark.parametrize("value", [0.0, 0.1, 1e10 + 0.1, -7.77])
def test_a_constant_column_carries_no_distance(scale, value):
    X, y = grid_trials(199, 2)
    wider = np.insert(X, 1, value, axis=1)
    elsewhere = np.insert(X, 1, 99.0, axis=1)
    model = SmoothBetaClassifier(bandwidth=0.5, scale=scale).fit(wider, y)
    plain = SmoothBetaClassifier(bandwidth=0.5, scale=scale).fit(X, y)
    for queries in (wider, elsewhere):
        np.testing.assert_array_equal(model.posterior(queries).alpha, plain.posterior(X).alpha)
        np.testing.assert_array_equal(model.posterior(queries).beta, plain.posterior(X).beta)


@pytest.mark.parametrize("bandwidth", [0.3, "theory", "loo"])
@pytest.mark.parametrize("d", [1, 3])
def test_one_row_is_enough_to_learn_from(bandwidth, d):
    model = SmoothBetaClassifier(bandwidth).partial_fit(np.ones((1, d)), [1], classes=[0, 1])
    posterior = model.posterior(np.ones((1, d)))
    assert (posterior.alpha.tolist(), posterior.beta.tolist()) == ([2.0], [1.0])


@pytest.mark.parametrize("bandwidth", [0.3, "theory", "loo"])
@pytest.mark.parametrize("d", [1, 3])
def test_trials_all_at_one_point_are_one_beta(bandwidth, d):
    model = SmoothBetaClassifier(bandwidth).fit(np.full((500, d), 0.1), np.arange(500) % 5 == 0)
    posterior = model.posterior(np.full((1, d), 0.1))
    assert (posterior.alpha.tolist(), posterior.beta.tolist()) == ([101.0], [401.0])


@pytest.mark.parametrize("scale", ["range", "std"])
@pytest.mark.parametrize("unit", [1e-200, 1e300])
def test_values_of_any_magnitude_are_told_apart(scale, unit):
    model = SmoothBetaClassifier(bandwidth=0.1, scale=scale).fit([[-unit], [unit]], [0, 1])
    posterior = model.posterior([[-unit], [unit]])
    assert posterior.alpha.tolist() == [1.0, 2.0]
    assert posterior.beta.tolist() == [2.0, 1.0]


# The memory layout of arrays.


def strided(X):
    wide = np.full((2 * len(X), 2 * X.shape[1]), np.nan)
    wide[::2, ::2] = X
    return wide[::2, ::2]


def read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


@pytest.mark.parametrize(
    "layout",
    [
        np.asfortranarray,
        strided,
        read_only,
        lambda X: X[::-1].copy()[::-1],
        lambda X: X.astype(np.float32),
        lambda X: X.tolist(),
        lambda X: X.astype(object),
    ],
    ids=["fortran", "strided", "read-only", "reversed", "float32", "lists", "objects"],
)
@pytest.mark.parametrize("d", [1, 3])
def test_the_layout_of_x_does_not_matter(layout, d):
    X, y = grid_trials(70, d)
    model = SmoothBetaClassifier().fit(layout(X), y)
    plain = SmoothBetaClassifier().fit(X, y)
    assert_same_knowledge(model, plain, X)
    np.testing.assert_array_equal(plain.predict_proba(layout(X)), plain.predict_proba(X))


def test_float32_is_measured_as_the_float64_of_the_same_value():
    X = np.random.default_rng(6).uniform(size=(300, 2)).astype(np.float32)
    y = np.arange(300) % 2
    model = SmoothBetaClassifier().fit(X, y)
    assert_same_knowledge(model, SmoothBetaClassifier().fit(X.astype(np.float64), y), X)


@pytest.mark.parametrize("layout", [np.ascontiguousarray, np.asfortranarray])
@pytest.mark.parametrize("scale", ["range", "std", None])
@pytest.mark.parametrize("d", [1, 2])
def test_the_callers_arrays_are_never_changed(layout, scale, d):
    X, y = grid_trials(70, d)
    X, weight = layout(X), np.linspace(0.0, 2.0, 70)
    kept = X.copy(), y.copy(), weight.copy()
    model = SmoothBetaClassifier(bandwidth=0.3, scale=scale).fit(X, y, sample_weight=weight)
    model.partial_fit(X, y, sample_weight=weight).posterior(X)
    model.partial_fit_counts(X, y, np.ones(70)).predict(X)
    for now, before in zip((X, y, weight), kept, strict=True):
        np.testing.assert_array_equal(now, before)


@pytest.mark.parametrize("scale", ["range", None])
@pytest.mark.parametrize("d", [1, 2])
def test_a_model_does_not_change_with_the_data_it_learned_from(scale, d):
    X, y = grid_trials(70, d)
    model = SmoothBetaClassifier(bandwidth=0.3, scale=scale).fit(X, y)
    queries = X.copy()
    before = model.posterior(queries).alpha
    X[:], y[:] = -5.0, 0
    np.testing.assert_array_equal(model.posterior(queries).alpha, before)


@pytest.mark.parametrize("d", [1, 2])
def test_what_is_put_off_does_not_change_with_the_data_either(d):
    X, y = grid_trials(70, d)
    kept, ours = SmoothBetaClassifier(), SmoothBetaClassifier()
    for half in (slice(0, 35), slice(35, 70)):
        kept.partial_fit(X[half].copy(), y[half].copy(), classes=[0, 1])
        some, outcomes = X[half].copy(), y[half].copy()
        ours.partial_fit(some, outcomes, classes=[0, 1])
        some[:], outcomes[:] = -5.0, 0
    assert_same_knowledge(ours, kept, X)


def test_a_fitted_model_does_not_change_with_the_arrays_of_its_options():
    X, y = grid_trials(70, 2)
    bounds, scale = np.array([(0.0, 1.0)] * 2), np.array([1.0, 2.0])
    model = SmoothBetaClassifier(bandwidth=0.3, scale=scale, bounds=bounds).fit(X, y)
    before = model.posterior(X).alpha
    bounds[:], scale[:] = 7.0, 9.0
    np.testing.assert_array_equal(model.posterior(X).alpha, before)
    assert model.bounds_.tolist() == [[0.0, 1.0]] * 2
    assert model.scale_.tolist() == [1.0, 2.0]


# Widths.


def test_theory_narrows_the_window_as_trials_come_in():
    X, y = grid_trials(64, 1)
    model = SmoothBetaClassifier("theory", lipschitz=2.0).fit(X, y)
    # (L² t)^(−1/3), with t = 64 and then 512.
    assert model.bandwidth_ == pytest.approx((4 * 64) ** (-1 / 3))
    model.partial_fit(np.tile(X, (7, 1)), np.tile(y, 7))
    assert model.bandwidth_ == pytest.approx((4 * 512) ** (-1 / 3))


@pytest.mark.long
@pytest.mark.parametrize("d", [1, 2])
def test_by_theory_the_error_falls_at_the_proven_rate(d):
    rng = np.random.default_rng(8)
    truth = lambda P: 0.5 + 0.3 * np.sin(4 * P.sum(axis=1))
    queries = rng.uniform(size=(1000, d))
    sizes, errors = 2 ** np.arange(9, 19, 3), []
    for t in sizes:
        X = rng.uniform(size=(t, d))
        y = rng.uniform(size=t) < truth(X)
        model = SmoothBetaClassifier("theory", lipschitz=1.2 * d**0.5, bounds=[(0, 1)] * d)
        mean = model.fit(X, y).posterior(queries).mean()
        errors.append(np.abs(mean - truth(queries)).mean())
    slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert slope == pytest.approx(-1 / (d + 2), abs=0.06)


def learned_width(truth, seed, d=1, **options):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(4000, d))
    return SmoothBetaClassifier(**options).fit(X, rng.uniform(size=4000) < truth(X)).bandwidth_


@pytest.mark.parametrize("d", [1, 2])
def test_leave_one_out_finds_wide_windows_for_a_flat_field(d):
    flat = lambda X: np.full(len(X), 0.3)
    # If all widths do well, chance decides between them, so not every data set gets a wide one.
    chosen = [learned_width(flat, seed, d, bandwidth="loo") for seed in range(9)]
    assert np.median(chosen) > 0.3


def test_leave_one_out_finds_narrow_windows_for_a_steep_field():
    steep = lambda X: 0.5 + 0.45 * np.sign(np.sin(60 * X[:, 0]))
    # Half a wave is 0.05 long and holds 200 trials.
    chosen = [learned_width(steep, seed, bandwidth="loo") for seed in range(3)]
    assert 0.001 < min(chosen) <= max(chosen) < 0.02


@pytest.mark.parametrize("cuts", [(20,), (1500,), (20, 700, 2990)])
def test_leave_one_out_is_the_same_for_trials_in_batches(cuts):
    rng = np.random.default_rng(11)
    X = rng.uniform(size=(3000, 1))
    y = rng.uniform(size=3000) < X[:, 0]
    make = lambda: SmoothBetaClassifier("loo", bounds=[(0, 1)])
    streamed = make()
    for batch in np.split(np.arange(3000), cuts):
        streamed.partial_fit(X[batch], y[batch], classes=[False, True])
        streamed.posterior(X[:2])
    assert_same_knowledge(streamed, make().fit(X, y), X)


def test_leave_one_out_has_the_width_with_the_best_score():
    """Every trial is left out of windows that are counted by hand."""
    rng = np.random.default_rng(12)
    X = rng.uniform(size=(60, 1))
    y = (rng.uniform(size=60) < X[:, 0]).astype(int)
    field = SmoothBetaClassifier("loo", bounds=[(0, 1)]).fit(X, y).field_
    scores = []
    for width in field.scored.widths:
        near = (np.abs(X - X[:, 0]) <= width) & ~np.eye(60, dtype=bool)
        chance = (1 + near @ y) / (2 + near.sum(axis=1))
        scores.append(np.log(np.where(y == 1, chance, 1 - chance)).sum())
    np.testing.assert_allclose(field.scored.scores, scores, rtol=1e-12)
    assert field.width == field.scored.widths[np.argmax(scores)]


# Merging.


def test_merged_bounds_hold_both_models_data():
    a, b = (SmoothBetaClassifier(bandwidth=1.0, scale=None) for _ in range(2))
    a.fit([[0.0], [2.0]], [0, 1]).merge(b.fit([[-5.0], [1.0]], [1, 0]))
    assert a.bounds_.tolist() == [[-5.0, 2.0]]
    assert a.posterior([[1.0]]).beta.tolist() == [3.0]


def test_merging_leaves_the_other_model_as_it_was():
    a, b = (SmoothBetaClassifier(bandwidth=1.0, bounds=[(0, 1)]) for _ in range(2))
    a.fit([[0.0], [0.5]], [0, 1]), b.fit([[1.0], [0.5]], [0, 1])
    before = b.posterior([[0.5]])
    a.merge(b).partial_fit([[0.5]], [1])
    assert (b.n_trials_, a.n_trials_) == (2, 5)
    assert b.posterior([[0.5]]).alpha.tolist() == before.alpha.tolist()


def test_a_model_merged_with_itself_has_every_trial_twice():
    X, y = grid_trials(50, 2)
    model = SmoothBetaClassifier(bandwidth=0.25, bounds=[(0, 1)] * 2).fit(X, y)
    twice = SmoothBetaClassifier(bandwidth=0.25, bounds=[(0, 1)] * 2).fit(X, y, sample_weight=2)
    assert_same_knowledge(model.merge(model), twice, X)
