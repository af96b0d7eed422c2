"""Learning from distorted trials: the estimator with contexts, against the exact mixture,
closed forms, integrals, and itself with the same information in another form."""

import copy
import pickle

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats
from sklearn import config_context
from sklearn.base import clone
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from tests.distortions import affine, polynomial
from tests.forests import ANY_LIMITS, empty

from betafield import SmoothBetaClassifier, bandwidth, contexts
from betafield.posteriors import Beta
from betafield.posteriors.reference import exact_mixture

SHARINGS = ["exact", "mean"]
LEVELS = np.array([[0.025], [0.5], [0.975]])
POINTS = np.array([[0.05], [0.3], [0.5], [0.8], [0.99]])


@st.composite
def experiments(draw, rows=affine | polynomial, most=30, highest=3):
    """Draw points on eighths of a cube, possible outcomes, and contexts of one degree."""
    d = draw(st.integers(1, highest))
    cell = st.lists(st.integers(0, 8).map(lambda i: i / 8), min_size=d, max_size=d)
    drawn = draw(st.lists(st.tuples(cell, st.booleans(), rows), min_size=1, max_size=most))
    degree = max(len(row) for _, _, row in drawn) - 1
    context = np.array([contexts.elevate(row, degree) for _, _, row in drawn])
    success = np.array([happened for _, happened, _ in drawn])
    impossible = ~contexts.likelihood(context, success).any(axis=1)
    return np.array([x for x, _, _ in drawn]), (success ^ impossible).astype(int), context


def trials_of(t=60, d=1, seed=0, kind="affine"):
    """Return points, outcomes and contexts: one for all, one per trial, or polynomials, by kind."""
    rng = np.random.default_rng(seed)
    X, y = rng.uniform(size=(t, d)), rng.integers(0, 2, size=t)
    if kind == "polynomial":
        size = rng.choice([1, 2, 5], size=t)
        return X, y, contexts.pooled(size, rng.choice([0.8, 0.9], size=t), 0.95)
    low, high = rng.uniform(0, 0.5, size=t), rng.uniform(0.5, 1, size=t)
    return X, y, np.stack([low, high], axis=1)


def make(d=1, width=0.25, **options):
    return SmoothBetaClassifier(width, bounds=[(0, 1)] * d, **options)


def teaches(context):
    return (context != context[:, :1]).any(axis=1)


def near(X, q, width):
    return ((X - q) ** 2).sum(axis=1) <= width**2


def assert_same_distribution(ours, exact, tolerance=1e-6):
    np.testing.assert_allclose(ours.mean(), exact.mean(), rtol=0, atol=tolerance)
    np.testing.assert_allclose(ours.std(), exact.std(), rtol=0, atol=tolerance)
    np.testing.assert_allclose(ours.cdf(POINTS), exact.cdf(POINTS), rtol=0, atol=tolerance)
    # If there is almost no mass between two modes, a quantile is any point between them.
    found = ours.ppf(LEVELS)
    away = np.minimum(np.abs(found - exact.ppf(LEVELS)), np.abs(exact.cdf(found) - LEVELS))
    assert away.max() <= tolerance


@pytest.mark.parametrize("other", [(2.0, 3.01), (2.01, 3.015)], ids=["mean", "spread"])
def test_other_distributions_are_told_apart(other):
    assert_same_distribution(Beta([2.0], [3.0]), Beta([2.0], [3.0]))
    with pytest.raises(AssertionError):
        assert_same_distribution(Beta([2.0], [3.0]), Beta([other[0]], [other[1]]))


def bits(model, X):
    """Return all learned values, and the posterior at X and elsewhere, as bytes."""
    posterior = model.posterior(np.vstack([X, X / 2, np.full((1, X.shape[1]), 9.0)]))
    learned = model.n_trials_, model.bandwidth_, model.scale_.tolist(), model.bounds_.tolist()
    answers = posterior.mean(), posterior.std(), posterior.ppf(0.1), posterior.cdf(0.5)
    return *learned, *(answer.tobytes() for answer in answers)


def test_bits_tell_models_apart():
    X, y, context = trials_of()
    model = make()
    known = bits(model.fit(X, y, context=context), X)
    assert known == bits(model.fit(X[::-1], y[::-1], context=context[::-1]), X)
    assert known != bits(model.fit(X, 1 - y, context=context), X)
    assert known != bits(model.fit(X, y, context=context / 2), X)


# The posterior is that of the window's trials.

PRIORS = {
    "uniform": (1.0, 1.0),
    "uneven": (0.5, 2.0),
    "field": lambda P: (0.5 + P[:, 0], 2.0 + P[:, -1]),
}


def prior_at(prior, q):
    return tuple(float(shape[0]) for shape in prior(q[None])) if callable(prior) else prior


@pytest.mark.parametrize("prior", PRIORS)
@settings(max_examples=40)
@given(experiments(), st.data())
def test_the_posterior_is_the_exact_mixture_of_the_window(prior, experiment, data):
    X, y, context = experiment
    d, prior = X.shape[1], PRIORS[prior]
    model = make(d, 0.5, prior=prior)
    # Some rows may come without a context, which is (0, 1).
    absent = np.array(data.draw(st.lists(st.booleans(), min_size=len(y), max_size=len(y))))
    context[absent] = contexts.elevate((0.0, 1.0), context.shape[1] - 1)
    present = ~absent & teaches(context)
    if absent.any():
        model.partial_fit(X[absent], y[absent], [0, 1])
    if present.any():
        model.partial_fit(X[~absent], y[~absent], [0, 1], context=context[~absent])
    if not (absent | present).any():
        return
    queries = np.vstack([X[:2], np.full((1, d), 7.0)])
    posterior = model.posterior(queries)
    for i, q in enumerate(queries):
        inside = near(X, q, 0.5)
        exact = exact_mixture(context[inside], y[inside], prior_at(prior, q))
        assert_same_distribution(posterior[i], exact)


@settings(max_examples=60)
@given(experiments(rows=affine), st.sampled_from([(1.0, 1.0), (0.5, 2.0)]))
def test_mean_sharing_gives_every_trial_the_mean_context_of_the_window(experiment, prior):
    X, y, context = experiment
    there = teaches(context)
    if not there.any():
        return
    model = make(X.shape[1], 0.5, prior=prior, sharing="mean")
    model.partial_fit(X, y, [0, 1], context=context)
    X, y, context = X[there], y[there], context[there]
    posterior = model.posterior(X[:2])
    for i, q in enumerate(X[:2]):
        inside = near(X, q, 0.5)
        exact = exact_mixture(context[inside].mean(axis=0), y[inside], prior)
        assert_same_distribution(posterior[i], exact)


@pytest.fixture
def precision():
    before, ctx.prec = ctx.prec, 300
    yield
    ctx.prec = before


def truncated_beta(won, lost, low, high):
    """Return mean, deviation and cdf of θ if q = low + (high − low) θ ~ Beta(S+1, n−S+1)."""
    a, b, low, high = arb(won + 1), arb(lost + 1), arb(low), arb(high)
    below = lambda x, i=0: x.beta_lower(a + i, b, regularized=1)
    mass = lambda i: below(high, i) - below(low, i)
    first = a / (a + b) * mass(1) / mass(0)
    second = a * (a + 1) / ((a + b) * (a + b + 1)) * mass(2) / mass(0)
    mean, spread = (first - low) / (high - low), (second - first**2).sqrt() / abs(high - low)
    # With a negative gain q falls as θ rises, and both differences change sign.
    cdf = lambda p: float((below(low + (high - low) * arb(p)) - below(low)) / mass(0))
    return float(mean), float(spread), cdf


@pytest.mark.usefixtures("precision")
@pytest.mark.parametrize(("won", "lost"), [(1, 0), (0, 1), (17, 23), (90, 9), (1300, 1200)])
@pytest.mark.parametrize(
    "context", [(0.5, 1.0), (0.02, 0.9), (0.0, 0.75), (0.8, 0.3), (0.25, 0.26)]
)
@pytest.mark.sampled
def test_constant_contexts_make_a_truncated_beta(context, won, lost):
    mean, spread, cdf = truncated_beta(won, lost, *context)
    below = [cdf(p) for p in POINTS[:, 0]]
    for share in SHARINGS:
        model = make(sharing=share).fit_counts([[0.5]], [won], [won + lost], context=context)
        posterior = model.posterior([[0.5]])
        assert posterior.mean()[0] == pytest.approx(mean, abs=1e-6)
        assert posterior.std()[0] == pytest.approx(spread, abs=1e-6)
        np.testing.assert_allclose(posterior.cdf(POINTS)[:, 0], below, rtol=0, atol=1e-6)
        assert cdf(posterior.ppf(0.9)[0]) == pytest.approx(0.9, abs=1e-6)


@pytest.mark.parametrize("size", [2, 5, 40])
@pytest.mark.parametrize(("won", "lost"), [(1, 0), (0, 1), (3, 7), (40, 2), (1200, 3800)])
def test_perfect_pools_of_one_size_have_a_closed_form(size, won, lost):
    model = make().fit_counts([[0.5]], [won], [won + lost], context=[contexts.pooled(size)])
    posterior = model.posterior([[0.5]])
    # With a uniform prior, P(negative pool), v = (1 − π)^m, is Beta(n + 1/m, s + 1).
    a, b = lost + 1 / size, won + 1
    power = lambda k: np.exp(special.betaln(a + k / size, b) - special.betaln(a, b))
    assert posterior.mean()[0] == pytest.approx(1 - power(1), abs=1e-6)
    assert posterior.std()[0] == pytest.approx((power(2) - power(1) ** 2) ** 0.5, abs=1e-6)
    p = np.r_[POINTS[:, 0], POINTS[:, 0] / size]
    below = special.betaincc(a, b, (1 - p) ** size)
    np.testing.assert_allclose(posterior.cdf(p[:, None])[:, 0], below, rtol=0, atol=1e-6)
    quantiles = 1 - special.betainccinv(a, b, LEVELS) ** (1 / size)
    np.testing.assert_allclose(posterior.ppf(LEVELS), quantiles, rtol=0, atol=1e-6)


@pytest.mark.sampled
@pytest.mark.parametrize("context", [(0.2, 0.9), (0.95, 0.1), (0.5, 1.0)])
@pytest.mark.parametrize(("share", "tolerance"), [("exact", 1e-3), ("mean", 1e-6)])
def test_ten_million_trials_make_a_posterior_as_narrow_as_they_should(share, tolerance, context):
    model = make(sharing=share).fit_counts([[0.5]], [7 * 10**6], [10**7], context=context)
    posterior = model.posterior([[0.5]])
    # Practically nothing of this Beta is cut off.
    success, (low, high) = stats.beta(7e6 + 1, 3e6 + 1), context
    spread = success.std() / abs(high - low)
    level = LEVELS if high > low else 1 - LEVELS
    assert posterior.mean()[0] == pytest.approx(
        (success.mean() - low) / (high - low), abs=tolerance * spread
    )
    assert posterior.std()[0] == pytest.approx(spread, rel=tolerance)
    np.testing.assert_allclose(
        posterior.ppf(level),
        (success.ppf(LEVELS) - low) / (high - low),
        rtol=0,
        atol=tolerance * spread,
    )


def test_windows_of_thousands_of_contexts_are_as_right_as_small_ones():
    X, y, context = trials_of(3000, seed=1)
    context[::7, 0], context[::5, 1] = 0.0, 1.0
    posterior = make(width=2.0).fit(X, y, context=context).posterior([[0.5]])
    assert_same_distribution(posterior, exact_mixture(context, y))


# The context (0, 1) is no distortion.


@pytest.mark.parametrize("share", SHARINGS)
@pytest.mark.parametrize("scale", ["range", "std", None])
@pytest.mark.parametrize("width", [0.25, "theory", "loo"])
@pytest.mark.parametrize("weighted", [False, True])
def test_undistorted_trials_have_the_bits_of_trials_without_context(share, scale, width, weighted):
    X, y, _ = trials_of(80, d=2)
    X[:20] = np.round(X[:20] * 4) / 4
    weight = np.random.default_rng(1).choice([0.0, 1.0, 2.0, 0.3, 1e-12], 80) if weighted else None
    options = {"scale": scale, "sharing": share}
    plain = SmoothBetaClassifier(width, **options).fit(X, y, weight)
    given_ = SmoothBetaClassifier(width, **options).fit(X, y, weight, context=(0, 1))
    assert isinstance(given_.posterior(X), Beta)
    assert bits(given_, X) == bits(plain, X)
    for more in ((0, 1), np.tile([0.0, 1.0], (80, 1)), (0, 0.5, 1), None):
        plain.partial_fit(X, y)
        given_.partial_fit(X, y, context=more)
        assert isinstance(given_.posterior(X), Beta)
        assert bits(given_, X) == bits(plain, X)


@pytest.mark.parametrize("share", SHARINGS)
@pytest.mark.parametrize("width", [0.25, "theory", "loo"])
def test_undistorted_counts_have_the_bits_of_counts_without_context(share, width):
    X, _, _ = trials_of(40)
    rng = np.random.default_rng(2)
    trials = rng.integers(0, 5, size=40)
    successes = rng.integers(0, trials + 1)
    plain, given_ = (SmoothBetaClassifier(width, sharing=share) for _ in range(2))
    plain.fit_counts(X, successes, trials)
    given_.fit_counts(X, successes, trials, context=(0, 1))
    assert bits(given_, X) == bits(plain, X)
    plain.partial_fit_counts(X, successes, trials)
    given_.partial_fit_counts(X, successes, trials, context=(0, 1))
    assert isinstance(given_.posterior(X), Beta)
    assert bits(given_, X) == bits(plain, X)


# A context with equal coefficients carries no information.


@pytest.mark.parametrize("share", SHARINGS)
@pytest.mark.parametrize("width", [0.25, "theory", "loo"])
@pytest.mark.parametrize("scale", ["range", "std", None])
def test_trials_of_gain_zero_change_no_bit(share, width, scale):
    X, y, context = trials_of(50, d=2)
    blank = np.random.default_rng(3).uniform(size=(9, 1)) * [[1, 1]]
    blank[:2] = [[0.0], [1.0]]
    far, outcome = np.full((9, 2), 30.0), np.arange(9) % 2
    outcome[:2] = 0, 1
    all_X, all_y = np.vstack([far[:4], X, far[4:]]), np.r_[outcome[:4], y, outcome[4:]]
    all_context = np.vstack([blank[:4], context, blank[4:]])
    model = SmoothBetaClassifier(width, scale=scale, sharing=share).fit(X, y, context=context)
    other = SmoothBetaClassifier(width, scale=scale, sharing=share)
    other.fit(all_X, all_y, context=all_context)
    assert bits(other, X) == bits(model, X)
    other.partial_fit(far, outcome, context=blank)
    assert bits(other, X) == bits(model, X)
    other.partial_fit_counts(far[2:], 1, 3, context=(0.5,))
    assert bits(other, X) == bits(model, X)


def test_trials_of_gain_zero_may_lie_outside_the_bounds():
    model = make().fit([[0.0], [9.0], [1.0]], [0, 1, 1], context=[(0, 1), (0.5, 0.5), (0, 1)])
    assert model.n_trials_ == 2


# However the same trials arrive, every bit is the same.


weights = st.sampled_from([None, [1.0, 2.0, 3.0], [0.5, 1.0, 2.0, 0.1, 2.7], [1 / 3, 1e6 + 0.1]])


@st.composite
def weighted(draw, share):
    """Draw trials for one kind of sharing, with or without weights, as a list of columns."""
    rows = affine if share == "mean" else affine | polynomial
    X, y, context = draw(experiments(rows=rows, most=25))
    context[0], y[0] = contexts.elevate((0.25, 0.75), context.shape[1] - 1), 1
    of_weight = draw(weights)
    drawn = st.lists(st.sampled_from(of_weight or [1.0]), min_size=len(y), max_size=len(y))
    return X, y, None if of_weight is None else np.array(draw(drawn)), context


def rows(which, columns):
    return [None if column is None else column[which] for column in columns]


def learn(batches, share, width=0.25, limits=None):
    bounds = [(0, 1)] * batches[0][0].shape[1]
    model = empty(limits, [0, 1], bandwidth=width, bounds=bounds, sharing=share)
    for X, y, weight, context in batches:
        if not hasattr(model, "windows_") and not teaches(context).any():
            continue
        model.partial_fit(X, y, [0, 1], weight, context)
    return model


@pytest.mark.sampled
@ANY_LIMITS
@pytest.mark.parametrize("share", SHARINGS)
@pytest.mark.parametrize("width", [0.25, "theory"])
@settings(max_examples=15)
@given(st.data())
def test_any_order_and_any_batches_give_the_same_bits(limits, share, width, data):
    columns = data.draw(weighted(share))
    X, y = columns[:2]
    expected = bits(learn([columns], share, width, limits), X)
    order = np.array(data.draw(st.permutations(range(len(y)))))
    assert bits(learn([rows(order, columns)], share, width, limits), X) == expected
    owner = np.array(data.draw(st.lists(st.integers(0, 4), min_size=len(y), max_size=len(y))))
    batches = [rows(owner == i, columns) for i in data.draw(st.permutations(np.unique(owner)))]
    assert bits(learn(batches, share, width, limits), X) == expected


@pytest.mark.sampled
@ANY_LIMITS
@pytest.mark.parametrize("share", SHARINGS)
@pytest.mark.parametrize("width", [0.25, "theory"])
@settings(max_examples=15)
@given(st.data())
def test_any_merges_give_the_same_bits(limits, share, width, data):
    columns = data.draw(weighted(share))
    X, y = columns[:2]
    owner = np.array(data.draw(st.lists(st.integers(0, 4), min_size=len(y), max_size=len(y))))
    parts = [rows(owner == i, columns) for i in np.unique(owner)]
    models = [learn([part], share, width, limits) for part in parts if teaches(part[3]).any()]
    while len(models) > 1:
        one = models.pop(data.draw(st.integers(0, len(models) - 1)))
        other = models.pop(data.draw(st.integers(0, len(models) - 1)))
        models.append(one.merge(other))
    assert bits(models[0], X) == bits(learn([columns], share, width, limits), X)


@pytest.mark.parametrize("share", SHARINGS)
@pytest.mark.parametrize("width", [0.25, "theory", "loo"])
@pytest.mark.parametrize("kind", ["affine", "polynomial"])
def test_a_weight_of_two_is_the_row_twice_and_counts_are_rows(share, width, kind):
    if (share, kind) == ("mean", "polynomial"):
        kind = "affine"
    X, y, context = trials_of(50, kind=kind)
    number = np.random.default_rng(4).integers(1, 4, size=50)
    repeated = make(width=width, sharing=share)
    repeated.fit(
        *(np.repeat(column, number, axis=0) for column in (X, y)),
        None,
        np.repeat(context, number, axis=0),
    )
    weighted = make(width=width, sharing=share).fit(X, y, number.astype(float), context)
    counted = make(width=width, sharing=share).fit_counts(X, y * number, number, context)
    assert bits(weighted, X) == bits(repeated, X)
    assert bits(counted, X) == bits(repeated, X)


@pytest.mark.parametrize("share", SHARINGS)
@pytest.mark.parametrize("scale", ["range", "std"])
def test_a_model_merged_with_itself_has_every_trial_twice(share, scale):
    X, y, context = trials_of(50, d=2)
    weight = np.random.default_rng(19).choice([0.5, 1.0, 2.0], size=50)
    model, twice = (SmoothBetaClassifier("theory", sharing=share, scale=scale) for _ in range(2))
    model.fit(X, y, weight, context)
    twice.fit(np.vstack([X, X]), np.r_[y, y], np.r_[weight, weight], np.vstack([context, context]))
    assert bits(model.merge(model), X) == bits(twice, X)


def test_counts_of_both_outcomes_are_their_trials_one_by_one():
    X, _, context = trials_of(30)
    rng = np.random.default_rng(5)
    trials = rng.integers(0, 5, size=30)
    won = rng.integers(0, trials + 1)
    pairs = [(i, s) for i in range(30) for s in [1] * won[i] + [0] * (trials[i] - won[i])]
    index, outcome = (np.array(column) for column in zip(*pairs, strict=True))
    for share in SHARINGS:
        one_by_one = make(sharing=share).fit(X[index], outcome, context=context[index])
        counted = make(sharing=share).fit_counts(X, won, trials, context=context)
        assert bits(counted, X) == bits(one_by_one, X)


def test_pools_of_any_sizes_may_come_in_any_order_and_merge():
    rng = np.random.default_rng(6)
    batches = []
    for i, row in enumerate(
        [
            None,
            contexts.pooled(2),
            (0.5, 0.0, 0.5),
            contexts.pooled(5, 0.9, 0.8),
            (0.1, 0.9),
            contexts.pooled(2),
            contexts.pooled(3),
        ]
    ):
        X, y = rng.uniform(size=(20, 2)), rng.integers(0, 2, size=20)
        batches.append((X, y, [0, 1], rng.choice([0.5, 1, 2], size=20) if i % 2 else None, row))
    queries = np.vstack([batch[0] for batch in batches])
    streams = [make(2) for _ in range(2)]
    for batch in batches:
        streams[0].partial_fit(*batch)
    for batch in batches[::-1]:
        streams[1].partial_fit(*batch)
    one, other = make(2), make(2)
    for batch in batches[:4]:
        one.partial_fit(*batch)
    for batch in batches[4:]:
        other.partial_fit(*batch)
    expected = bits(streams[0], queries)
    assert bits(streams[1], queries) == expected
    assert bits(copy.deepcopy(one).merge(other), queries) == expected
    assert bits(copy.deepcopy(other).merge(one), queries) == expected
    singles = [make(2).partial_fit(*batch) for batch in batches]
    for single in singles[1:]:
        singles[0].merge(single)
    assert bits(singles[0], queries) == expected


@pytest.mark.parametrize("share", SHARINGS)
def test_huge_counts_give_the_same_bits_in_pieces(share):
    X, context = np.array([[0.25], [0.5], [0.75]]), np.array([(0.1, 0.7), (0.3, 0.9), (0.0, 0.3)])
    pieces = np.array([[10**8 + 1, 3, 7], [1, 10**9 + 7, 5], [3, 1, 10**9 + 11]])
    whole = make(width="theory", sharing=share)
    whole.fit_counts(X, pieces.sum(axis=0) // 3, pieces.sum(axis=0), context=context)
    won = pieces.sum(axis=0) // 3
    streamed = make(width="theory", sharing=share)
    for i, piece in enumerate(pieces):
        now = np.minimum(won, piece) if i < 2 else won
        won = won - now
        streamed.partial_fit_counts(X, now, piece, context=context)
    assert bits(streamed, X) == bits(whole, X)


@pytest.mark.parametrize("low", [0.6 / 2**28, 100.7 / 2**28, 1e-12, 1 / 3, 1e-5])
@pytest.mark.parametrize("high", [1.0, 0.5])
def test_small_coefficients_give_the_same_bits_beside_others(low, high):
    X, y, context = trials_of(40)
    small = np.full((40, 2), (low, high))
    small[0] = low * 1.5, high
    together = make(sharing="mean").fit(
        np.vstack([X, X]), np.r_[y, y], None, np.vstack([small, context])
    )
    apart = make(sharing="mean").fit(X, y, context=small)
    apart.posterior(X)
    apart.merge(make(sharing="mean").fit(X, y, context=context))
    assert bits(apart, X) == bits(together, X)


def test_thousands_of_trials_give_the_same_bits_in_batches():
    for share in SHARINGS:
        X, y, context = trials_of(6000, d=2)
        columns = [X, y, np.random.default_rng(7).choice([0.5, 1.0, 3.0], size=6000), context]
        order = np.random.default_rng(8).permutation(6000)
        batches = [rows(part, columns) for part in np.split(order, [1, 2, 50, 1100, 3000, 5900])]
        expected = bits(learn([columns], share, "theory"), X[::50])
        assert bits(learn(batches, share, "theory"), X[::50]) == expected


# Failure as the named class.


@pytest.mark.parametrize("share", SHARINGS)
@pytest.mark.parametrize("width", [0.25, "theory", "loo"])
@pytest.mark.parametrize("kind", ["affine", "polynomial", "extreme"])
def test_naming_failures_instead_mirrors_the_posterior(share, width, kind):
    X, y, context = trials_of(70, d=2, kind="affine" if share == "mean" else kind)
    if kind == "extreme":
        context = np.random.default_rng(9).choice([0.0, 0.25, 0.5, 0.875, 1.0], size=(70, 2))
        y = np.where(context[:, 0] == context[:, 1], context[:, 0] > 0.4, y).astype(int)
    one, other = (make(2, width, sharing=share, prior=p) for p in ((0.5, 2.0), (2.0, 0.5)))
    one.fit(X, y, context=context)
    other.fit(X, 1 - y, context=contexts.mirrored(context))
    assert other.bandwidth_ == pytest.approx(one.bandwidth_, rel=1e-12)
    a, b = one.posterior(X), other.posterior(X)
    np.testing.assert_allclose(b.mean(), 1 - a.mean(), rtol=0, atol=1e-9)
    np.testing.assert_allclose(b.std(), a.std(), rtol=0, atol=1e-9)
    np.testing.assert_allclose(b.ppf(1 - LEVELS), 1 - a.ppf(LEVELS), rtol=0, atol=1e-9)
    np.testing.assert_allclose(b.cdf(1 - POINTS), a.prob_above(POINTS), rtol=0, atol=1e-9)


# Widths.


@pytest.mark.parametrize("share", SHARINGS)
@pytest.mark.parametrize("d", [1, 2, 3])
def test_by_theory_background_costs_its_share_of_trials(share, d):
    X, y, _ = trials_of(100, d)
    rate = np.random.default_rng(10).uniform(0, 0.9, size=100)
    model = make(d, "theory", lipschitz=2.0, sharing=share)
    model.fit(X, y, context=contexts.background(rate))
    expected = 2.0 ** (-2 / (d + 2)) * ((1 - rate.mean()) * 100) ** (-1 / (d + 2))
    assert model.bandwidth_ == pytest.approx(expected, rel=1e-9)
    lapse = rate * 0.1
    model.fit(X, y, context=contexts.guess_lapse(rate, lapse))
    assert model.bandwidth_ == pytest.approx(expected, rel=1e-9)
    # In a stream, trials without a context have B = 0.
    model.partial_fit(X, y)
    expected = 2.0 ** (-2 / (d + 2)) * ((1 - rate.mean() / 2) * 200) ** (-1 / (d + 2))
    assert model.bandwidth_ == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("share", SHARINGS)
def test_by_theory_the_dearer_end_counts(share):
    X, y, context = trials_of(100)
    context = np.where(np.arange(100)[:, None] % 3 == 0, context[:, ::-1], context)
    weight = np.random.default_rng(11).choice([0.5, 1.0, 4.0], size=100)
    model = make(1, "theory", sharing=share).fit(X, y, weight, context)
    low, high = np.average(np.sort(context, axis=1), axis=0, weights=weight)
    t = weight.sum() * min(1 - low, high)
    assert model.bandwidth_ == pytest.approx(t ** (-1 / 3), rel=1e-9)


@pytest.mark.parametrize("context", [(0, 1, 0), (0.0, 1e-12), (1 - 1e-12, 1.0), (1e-3, 2e-3)])
def test_by_theory_every_context_that_teaches_has_a_width(context):
    X, y, _ = trials_of(30)
    model = make(1, "theory").fit(X, y, context=np.tile(context, (30, 1)))
    assert 0 < model.bandwidth_ < np.inf
    assert np.isfinite(model.posterior(X).mean()).all()


def integral(function, context, success, weight):
    """Return E[function(θ)] after weighted trials: a sum over log-odds, where it is smooth."""
    u = np.arange(-45.0, 45.0, 0.1)
    theta = 1 / (1 + np.exp(-u))
    density = np.log(theta) + np.log(1 / (1 + np.exp(u)))
    for row, n in zip(contexts.likelihood(context, success), weight, strict=True):
        density += n * np.log(np.maximum(contexts.probability(row, theta), 1e-300))
    density = np.exp(density - density.max())
    return np.sum(density * function(theta)) / np.sum(density)


def refitted_score(X, y, weight, context, width, share):
    """Return Σ log P(a trial's outcome | the others in its window), by integration.

    A trial of weight 1 or more counts as that many trials, of which one is left out.
    """
    total = 0.0
    for i in range(len(y)):
        others = weight.copy()
        others[i] = max(weight[i] - 1, 0)
        inside = near(X, X[i], width) & (others > 0)
        known = context[inside]
        if share == "mean" and inside.any():
            known = np.tile(np.average(known, axis=0, weights=others[inside]), (len(known), 1))
        row = context[i] if y[i] else 1 - context[i]
        chance = lambda theta, row=row: contexts.probability(row, theta)
        total += weight[i] * np.log(integral(chance, known, y[inside], others[inside]))
    return total


@pytest.mark.parametrize(
    ("share", "kind"), [("exact", "affine"), ("exact", "polynomial"), ("mean", "affine")]
)
@pytest.mark.sampled
@pytest.mark.parametrize("sizes_", [[1.0], [1.0, 2.0, 3.0], [0.5, 1.0, 0.3]])
@pytest.mark.parametrize("d", [1, 2])
def test_leave_one_out_scores_widths_as_refitting_does(share, kind, sizes_, d):
    X, y, context = trials_of(25, d, seed=12, kind=kind)
    X[0], X[1] = 0.0, 1.0
    y[X[:, 0] > 0.6] = 1
    weight = np.random.default_rng(13).choice(sizes_, size=25)
    alone = make(d, "loo", sharing=share, scale="range").fit(X, y, weight, context)
    scored = alone.field_.scored
    grid = bandwidth.candidates(np.ones(d), d**0.5, 25)
    np.testing.assert_allclose(scored.widths, grid, rtol=1e-12)
    theirs = np.array([refitted_score(X, y, weight, context, width, share) for width in grid])
    # Up to a constant that is the same for every width.
    ours = scored.scores
    np.testing.assert_allclose(ours - ours[0], theirs - theirs[0], rtol=0, atol=1e-5)
    # The last of equal scores, which differ by rounding.
    best = grid[np.flatnonzero(theirs >= theirs.max() - 1e-6)[-1]]
    assert alone.bandwidth_ == pytest.approx(best)
    assert alone.weights_["score"] == pytest.approx(ours.max())


@pytest.mark.parametrize("share", SHARINGS)
def test_leave_one_out_scores_counts_as_their_trials(share):
    X, _, context = trials_of(20, seed=14)
    trials, won = np.full(20, 3), np.arange(20) % 4
    counted = make(1, "loo", sharing=share).fit_counts(X, won, trials, context)
    index = np.repeat(np.arange(20), 3)
    outcome = (np.arange(60) % 3 < won[index]).astype(int)
    one_by_one = make(1, "loo", sharing=share).fit(X[index], outcome, None, context[index])
    assert counted.bandwidth_ == one_by_one.bandwidth_


# Answers under other contexts.


@pytest.mark.parametrize("share", SHARINGS)
@pytest.mark.parametrize(
    "other", [(0, 1), (0.5, 1), (0, 0.6), (0.9, 0.2), (0.4, 0.4), (0, 1, 1, 1), (0.2, 0.9, 0.1)]
)
def test_success_under_other_circumstances_is_expected_by_the_posterior(share, other):
    X, y, context = trials_of(40, seed=15)
    posterior = make(sharing=share).fit(X, y, context=context).posterior(X[:5])
    under = posterior.under(other)
    chance = lambda theta: contexts.probability(other, theta)
    for i in range(5):
        inside = near(X, X[i], 0.25)
        known = context[inside]
        if share == "mean":
            known = np.tile(known.mean(axis=0), (len(known), 1))
        mean = integral(chance, known, y[inside], np.ones(inside.sum()))
        spread = lambda theta, mean=mean: (chance(theta) - mean) ** 2
        variance = integral(spread, known, y[inside], np.ones(inside.sum()))
        assert under.mean()[i] == pytest.approx(mean, abs=1e-6)
        assert under.std()[i] == pytest.approx(variance**0.5, abs=1e-6)


def test_every_row_may_have_circumstances_of_its_own():
    X, y, context = trials_of(40, kind="polynomial")
    posterior = make().fit(X, y, context=context).posterior(X)
    low, high = np.random.default_rng(16).uniform(size=(2, 40))
    under = posterior.under(np.stack([low, high], axis=1))
    np.testing.assert_allclose(under.mean(), low + (high - low) * posterior.mean(), rtol=1e-12)
    tired = posterior.under(contexts.attenuated(0.5))
    np.testing.assert_allclose(tired.ppf(LEVELS), 0.5 * posterior.ppf(LEVELS), rtol=1e-12)


# Queries at many points.


@pytest.mark.parametrize("share", SHARINGS)
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_probabilities_are_posterior_means_in_blocks_and_threads(share, n_jobs):
    X, y, context = trials_of(3000, d=2)
    model = make(2, 0.1, sharing=share).fit(X, y, context=context)
    expected = model.posterior(X)
    model.set_params(n_jobs=n_jobs)
    np.testing.assert_array_equal(model.field_.mean(X, at_once=700), expected.mean())
    proba = model.predict_proba(X)
    np.testing.assert_array_equal(proba[:, 1], expected.mean())
    np.testing.assert_array_equal(proba[:, 0], 1 - expected.mean())
    np.testing.assert_array_equal(model.posterior(X).ppf(0.3), expected.ppf(0.3))
    np.testing.assert_array_equal(model.predict(X), (expected.mean() > 0.5).astype(int))


# Copies.


@pytest.mark.parametrize("kind", ["affine", "polynomial"])
@pytest.mark.parametrize("width", [0.25, "theory", "loo"])
def test_a_pickled_model_knows_the_same_and_learns_on(kind, width):
    X, y, context = trials_of(80, kind=kind)
    model = make(width=width).fit(X[:50], y[:50], context=context[:50])
    twin = pickle.loads(pickle.dumps(model))
    assert bits(twin, X) == bits(model, X)
    twin.partial_fit(X[50:], y[50:], context=context[50:])
    assert bits(twin, X) != bits(model, X)
    model.partial_fit(X[50:], y[50:], context=context[50:])
    assert bits(twin, X) == bits(model, X)
    assert bits(pickle.loads(pickle.dumps(model)).merge(twin), X) == bits(model.merge(twin), X)


def test_a_clone_has_no_contexts_and_learns_the_same_anew():
    X, y, context = trials_of()
    model = make(sharing="mean").fit(X, y, context=context)
    fresh = clone(model)
    assert set(vars(fresh)) == set(fresh.get_params())
    assert bits(fresh.fit(X, y, context=context), X) == bits(model, X)


def test_fit_forgets_contexts():
    X, y, context = trials_of(kind="polynomial")
    model = make().fit(X, y, context=context).fit(X, y)
    assert isinstance(model.posterior(X), Beta)
    assert bits(model, X) == bits(make().fit(X, y), X)
    model.set_params(sharing="mean").fit(X, y, context=trials_of()[2])
    assert bits(model, X) == bits(make(sharing="mean").fit(X, y, context=trials_of()[2]), X)


# scikit-learn's tools.


def test_a_pipeline_passes_contexts_on():
    X, y, context = trials_of(100, d=2)
    # The model's own range is that of the scaled data.
    plain = SmoothBetaClassifier(0.3).fit(MinMaxScaler().fit_transform(X), y, context=context)
    expected = plain.predict_proba(MinMaxScaler().fit_transform(X))
    pipeline = make_pipeline(MinMaxScaler(), SmoothBetaClassifier(0.3))
    pipeline.fit(X, y, smoothbetaclassifier__context=context)
    np.testing.assert_array_equal(pipeline.predict_proba(X), expected)
    with config_context(enable_metadata_routing=True):
        model = SmoothBetaClassifier(0.3).set_fit_request(context=True)
        routed = make_pipeline(MinMaxScaler(), model).fit(X, y, context=context)
        np.testing.assert_array_equal(routed.predict_proba(X), expected)


def negative_log_loss(model, X, y):
    return -log_loss(y, model.predict_proba(X)[:, 1])


def test_cross_validation_hands_each_fold_its_own_contexts():
    X, y, context = trials_of(90, d=2, seed=17)
    by_hand = [
        negative_log_loss(make(2).fit(X[a], y[a], context=context[a]), X[b], y[b])
        for a, b in KFold(3).split(X)
    ]
    with config_context(enable_metadata_routing=True):
        scores = cross_val_score(
            make(2).set_fit_request(context=True),
            X,
            y,
            cv=KFold(3),
            scoring=negative_log_loss,
            params={"context": context},
        )
    assert scores.tolist() == by_hand


def test_grid_search_hands_each_fold_its_own_contexts():
    X, y, context = trials_of(90, d=2, seed=18)
    grid = {
        "smoothbetaclassifier__bandwidth": [0.1, 0.5],
        "smoothbetaclassifier__sharing": SHARINGS,
    }
    with config_context(enable_metadata_routing=True):
        model = SmoothBetaClassifier().set_fit_request(context=True)
        search = GridSearchCV(
            make_pipeline(StandardScaler(), model), grid, cv=KFold(3), scoring=negative_log_loss
        ).fit(X, y, context=context)
    for options, score in zip(
        search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True
    ):
        by_hand = []
        for a, b in KFold(3).split(X):
            pipeline = make_pipeline(StandardScaler(), SmoothBetaClassifier())
            pipeline.set_params(**options)
            pipeline.fit(X[a], y[a], smoothbetaclassifier__context=context[a])
            by_hand.append(negative_log_loss(pipeline, X[b], y[b]))
        assert score == pytest.approx(np.mean(by_hand), rel=1e-12)
    best = SmoothBetaClassifier(
        search.best_params_["smoothbetaclassifier__bandwidth"],
        sharing=search.best_params_["smoothbetaclassifier__sharing"],
    )
    best.fit(StandardScaler().fit_transform(X), y, context=context)
    assert bits(search.best_estimator_[-1], X) == bits(best, X)
