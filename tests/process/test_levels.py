"""Effects of levels: the design against its matrix, fits against scikit-learn, new levels."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from betafield.posteriors import LatentNormal
from betafield.process import law, leaving, mixtures
from betafield.process.basis import Effects, Prior, basis
from betafield.process.design import design, matrix
from betafield.process.fit import Problem, fit, settled
from betafield.process.following import Following, Own
from betafield.process.ladder import WIDTHS
from betafield.process.laplace import mode, slopes
from betafield.process.links import LOGIT
from betafield.process.model import Sums, Window, build, find
from betafield.process.rows import Rows, by_place
from betafield.process.sound import require_sound

SQUARE = np.array([[0.0, 1.0], [0.0, 1.0]])


def days(t, seed, levels=30, new=()):
    """Return trials on days with their own effects, without the new days."""
    rng = np.random.default_rng(seed)
    effect = np.random.default_rng(99).normal(size=levels)
    day = rng.choice(np.setdiff1d(np.arange(levels), new), size=t)
    x = np.column_stack([(day + 0.5) / levels, rng.random(t)])
    y = rng.random(t) < expit(effect[day] + 0.8 * (x[:, 1] - 0.5))
    rows = by_place(Rows(x, np.ones(t, np.int64), y * 1, np.tile([0.0, 1.0], (t, 1))))
    return rows, effect


def problem(rows):
    at = Effects(0, np.unique(rows.x[:, 0]))
    return Problem(rows, LOGIT, Prior(LOGIT.scale, float(rows.n.sum()), None, at))


THETA = np.log([1.0, 0.8, 0.45, 0.6])


@pytest.mark.parametrize(("d", "feature"), [(1, 0), (2, 0), (2, 1), (3, 1), (4, 2)])
def test_products_are_those_of_the_matrix(d, feature):
    x = np.random.default_rng(1).random((200, d))
    x[:, feature] = (np.floor(30 * x[:, feature]) + 0.5) / 30
    at = Effects(feature, np.unique(x[:, feature]))
    theta = np.log([1.0, *[0.8, 0.45, 0.6, 0.9][:d], 0.6])
    functions = basis(theta, Prior(LOGIT.scale, 200.0, None, at))
    phi, P = design(functions, x), matrix(functions, x)
    rng = np.random.default_rng(2)
    b, r, w = rng.normal(size=P.shape[1]), rng.normal(size=200), rng.random(200)
    S = rng.normal(size=(P.shape[1],) * 2)
    S = S @ S.T
    assert P.shape[1] == len(functions.J) + len(at.at)
    np.testing.assert_allclose(phi.values(b), P @ b, atol=1e-10)
    np.testing.assert_allclose(phi.adjoint(r), P.T @ r, atol=1e-10)
    expected = np.eye(len(b)) + P.T @ (w[:, None] * P)
    curvature = phi.curvature(w)
    np.testing.assert_allclose(curvature.inverse(), np.linalg.inv(expected), atol=1e-9)
    np.testing.assert_allclose(curvature.solve(b), np.linalg.solve(expected, b), atol=1e-9)
    np.testing.assert_allclose(curvature.form(b), b @ expected @ b, rtol=1e-9)
    factor = curvature.factor()
    np.testing.assert_array_equal(factor, np.triu(factor))
    np.testing.assert_allclose(factor.T @ factor, expected, atol=1e-9)
    half = 0.5 * np.linalg.slogdet(expected)[1]
    np.testing.assert_allclose(curvature.half_log_determinant, half, rtol=1e-9)
    np.testing.assert_allclose(phi.forms(S), np.einsum("ij,jk,ik->i", P, S, P), rtol=1e-9)


def test_levels_never_seen_have_the_variance_of_levels():
    rows, _ = days(200, 1)
    functions = basis(THETA, problem(rows).prior)
    x = np.array([[0.123, 0.4], [rows.x[0, 0], 0.4], [7.0, 0.4]])
    new = design(functions, x)
    zero = np.zeros((len(functions.root),) * 2)
    np.testing.assert_allclose(new.forms(zero), [0.36, 0.0, 0.36])
    b = np.zeros(len(functions.root))
    b[len(functions.J) :] = 1.0
    np.testing.assert_allclose(new.values(b), [0.0, 0.6, 0.0])


def test_slopes_are_those_of_the_evidence():
    given = problem(days(300, 3)[0])

    def objective(theta):
        return mode(theta, *given).evidence

    found = slopes(mode(THETA, *given), given.rows).gradient
    exact = approx_fprime(THETA, objective, 1e-5)
    np.testing.assert_allclose(found, exact, rtol=0.02, atol=0.02)


def test_effects_alone_are_a_ridge_regression():
    """With almost no process left, effects agree with scikit-learn's penalised logit."""
    rows, _ = days(600, 4)
    theta = np.array([np.log(1e-4), 0.0, 0.0, np.log(0.7)])
    found = settled(problem(rows), theta)
    onehot = (rows.x[:, :1] == np.unique(rows.x[:, 0])) * 0.7
    columns = np.column_stack([onehot, np.full(len(onehot), 2.0)])  # the constant has variance 4
    peer = LogisticRegression(fit_intercept=False, tol=1e-10, max_iter=1000)
    f = peer.fit(columns, rows.k).decision_function(columns)
    np.testing.assert_allclose(found.mode.f, f, atol=1e-3)


def test_leaving_out_is_that_of_refits():
    rows, _ = days(250, 5, levels=15)
    found = fit(rows, LOGIT, THETA, effects=problem(rows).prior.effects)
    left = leaving.means(found, rows, rows.k == 1)
    scores = np.log(np.where(rows.k == 1, left, 1.0 - left))
    gaps = []
    for i in range(0, 250, 12):
        others = rows.taken(np.delete(np.arange(250), i))
        again = settled(found.problem._replace(rows=others), found.theta)
        p = mixtures.mean(law.laws((again,), rows.x[i : i + 1]))[0]
        gaps.append(scores[i] - np.log(p if rows.k[i] else 1.0 - p))
    assert np.abs(gaps).mean() < 0.03
    assert abs(np.mean(gaps)) < 0.02


@pytest.mark.parametrize("way", [(1.0, 1.0), (1.0, 0.0), (0.0, 1.0)])
def test_covariances_are_averaged_over_windows_level_by_level(way):
    """As `test_cells_follow_as_pairs_do`; C within a level is far from that between levels.

    A window with a few rows of some levels has the C of these, whereas cells average over all of
    their levels: hence 0.01.
    """
    rows, _ = days(600, 6)
    found = settled(problem(rows), THETA)
    follow, stretch, some = Following.of(found, rows), np.array(way), np.arange(0, 600, 20)
    P = matrix(found.mode.basis, rows.x)
    queries, turned = rows.x[some], P[some] @ found.slopes.S
    others = some[:, None] != np.arange(600)
    pairs = turned @ P.T * follow.follow * others
    apart = np.abs((queries[:, None] - rows.x) * stretch).max(axis=2)
    means = follow.moves(queries, turned, Own(some, follow.follow[some])).means(stretch)
    for b, width in enumerate(WIDTHS):
        held = apart <= width
        found_sum = means[:, b] * (follow.follow * (held & others)).sum(axis=1)
        size = np.abs(pairs * held).sum(axis=1).max()
        gap = (pairs * held).sum(axis=1) - found_sum
        assert np.abs(gap).mean() <= 0.05 * size + 0.01
        assert abs(gap.mean()) <= 0.015 * size + 0.01
    assert abs(gap.mean()) < 1e-3


@pytest.mark.long
def test_days_that_were_not_seen_have_wide_intervals():
    new = np.arange(0, 30, 6)
    rows, effect = days(3_000, 7, new=new)
    given = Sums(rows.x, rows.trials, rows.successes)
    found = find(given, SQUARE)
    assert found.components[0].effect == 0
    smooth = build(given, SQUARE, found)
    days_of = {"new": new, "seen": np.setdiff1d(np.arange(30), new)}
    widths = {}
    for kind, day in days_of.items():
        x = np.column_stack([(day + 0.5) / 30, np.full(len(day), 0.5)])
        low, high = LatentNormal(smooth.laws(x)).interval()
        widths[kind] = np.mean(high - low)
        assert np.mean((low <= expit(effect[day])) & (expit(effect[day]) <= high)) >= 0.8
    assert widths["new"] > 2.0 * widths["seen"]


def test_windows_of_other_days_do_not_know_the_effect_of_a_new_one():
    new = np.arange(0, 30, 6)
    rows, _ = days(3_000, 7, new=new)
    given = Sums(rows.x, rows.trials, rows.successes)
    found = find(given, SQUARE)
    wide = Window(np.ones(2), 0.25, 1.2, 0.0, np.array([0.0, 1.0, 0.0]))  # only at new days
    smooth = build(given, SQUARE, found._replace(windows=(wide,), spread=np.zeros(2)))
    beliefs = smooth.beliefs(np.column_stack([(new + 0.5) / 30, np.full(len(new), 0.5)]))
    assert np.array_equal(beliefs.question, np.full(len(new), 2))
    tau = np.exp(found.components[0].theta[-1])
    assert (beliefs.held[0] > 50.0).all()
    assert (beliefs.laws.deviations[-1] > tau).all()


def test_order_cannot_be_seen_with_levels():
    rows, _ = days(2_000, 8)
    order = np.random.default_rng(9).permutation(2_000)
    x = np.concatenate([rows.x[:20], np.random.default_rng(10).random((20, 2))])
    laws = []
    for at in (np.arange(2_000), order):
        given = Sums(rows.x[at], rows.trials[at], rows.successes[at])
        laws.append(build(given, SQUARE, find(given, SQUARE)).laws(x))
    for a, b in zip(laws[0][1:], laws[1][1:], strict=True):
        np.testing.assert_array_equal(a, b)


def cells(t, seed):
    """Return trials on a lattice of places with their own effects."""
    rng = np.random.default_rng(seed)
    effect = np.random.default_rng(98).normal(0.0, 1.5, size=(12, 12))
    at = rng.integers(12, size=(t, 2))
    y = rng.random(t) < expit(effect[at[:, 0], at[:, 1]])
    return Sums((at + 0.5) / 12, np.ones(t, np.int64), y.astype(np.int64)), effect


def test_what_is_asked_decides_the_weights():
    """A seen place has its own window; a new one has none, and wider intervals."""
    given, effect = cells(6_000, 11)
    is_new = given.points[:, 0] == given.points[:, 1]
    given = Sums(*(part[~is_new] for part in given[:3]))
    found = find(given, SQUARE)
    narrow = [window for window in found.windows if window.width == 0.0]
    assert sum(window.weight for window in narrow) > 0.05
    assert all(window.others.shape == (3,) for window in found.windows)
    at = np.arange(12)
    new, seen = np.column_stack([at, at]), np.column_stack([at, at[::-1]])
    laws = build(given, SQUARE, found).laws((np.concatenate([seen, new]) + 0.5) / 12)
    assert laws.weights.shape == laws.centres.shape
    np.testing.assert_allclose(laws.weights.sum(axis=0), 1.0)
    low, high = LatentNormal(laws).interval()
    truth = expit(np.concatenate([effect[at, at[::-1]], effect[at, at]]))
    is_covered, width = (low < truth) & (truth < high), high - low
    assert is_covered[:12].sum() >= 9
    assert is_covered[12:].sum() >= 9
    assert width[12:].min() > 1.5 * width[:12].max()
    assert sum(window.others[0] for window in narrow) < sum(window.weight for window in narrow)
    for w, q in ((laws.weights[:, i], i) for i in (0, 12)):
        one = law.Laws(laws.links, w, laws.centres[:, [q]], laws.deviations[:, [q]])
        assert LatentNormal(one).ppf(0.5)[0] == pytest.approx(LatentNormal(laws).ppf(0.5)[q])
        assert mixtures.mean(one)[0] == pytest.approx(mixtures.mean(laws)[q])


@pytest.mark.long
def test_windows_by_level_hold_what_hours_of_a_day_share():
    """Storms that last some hours of one day: close in the hour, but only on that day."""
    rng = np.random.default_rng(12)
    storm = rng.normal(0.0, 1.5, size=(60, 4))
    day, hour = rng.integers(60, size=12_000), rng.random(12_000)
    f = storm[day, (4 * hour).astype(int)] - 0.5
    given = Sums(
        np.column_stack([day, hour]), np.ones(12_000, np.int64), (rng.random(12_000) < expit(f)) * 1
    )
    bounds = np.array([[0.0, 59.0], [0.0, 1.0]])
    found = find(given, bounds)
    by_level = [window for window in found.windows if window.stretch[0] > 1.0]
    assert sum(window.weight for window in by_level) > 0.2
    require_sound(found, 2)
    at = np.array([[d, (h + 0.5) / 4] for d in range(60) for h in range(4)])
    truth = expit(storm - 0.5).ravel()
    laws = [build(given, bounds, each).laws(at) for each in (found, found._replace(windows=()))]
    low, high = LatentNormal(laws[0]).interval()
    assert np.mean((low <= truth) & (truth <= high)) >= 0.9
    errors = [np.mean((mixtures.mean(each) - truth) ** 2) for each in laws]
    assert errors[0] < 0.5 * errors[1]


def test_levels_too_near_to_each_other_are_not_taken_apart():
    x = np.linspace(0.0, 1.0, 20)
    points = np.column_stack([np.tile([0.0, 1e-12, 0.3, 0.6, 1.0], 20), np.repeat(x, 5)])
    given = Sums(points, np.full(100, 3), np.tile([0, 1, 2, 3, 1], 20))
    found = find(given, SQUARE)
    assert all(window.stretch[0] <= 1.0 for window in found.windows)
