"""Averages and contrasts, against joint draws, single points and closed forms."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from betafield import SmoothBetaClassifier, contexts, load
from betafield.answers import area
from betafield.posteriors.contrasts import Difference, Pair
from betafield.process import averages
from betafield.process.links import LOGIT

RNG = np.random.default_rng(5)


def smooth(n=400, d=1):
    rng = np.random.default_rng(d)
    X = rng.random((n, d))
    return X, rng.random(n) < 0.2 + 0.6 * np.sin(2.5 * X[:, 0]) ** 2


def rough():
    rng = np.random.default_rng(8)
    X = rng.random((1_500, 1))
    return X, rng.random(1_500) < np.where(np.sin(60 * X[:, 0]) > 0, 0.75, 0.2)


def days():
    rng = np.random.default_rng(7)
    day = rng.integers(0, 30, 900)
    X = np.column_stack([rng.random(900), day])
    return X, rng.random(900) < expit(rng.normal(size=30)[day] + X[:, 0])


MODELS = {
    "process": ({"method": "process"}, smooth()),
    "two features": ({"method": "process"}, smooth(600, 2)),
    "windows of residuals": ({}, rough()),
    "days": ({}, days()),
    "windows": ({"bandwidth": 0.15}, smooth()),
}


@pytest.fixture(params=list(MODELS), scope="module")
def model(request):
    options, trials = MODELS[request.param]
    return SmoothBetaClassifier(**options).fit(*trials)


def grid(model, count=300):
    low, high = model.bounds_.T
    x = low + (high - low) * np.random.default_rng(1).random((count, len(low)))
    if high[-1] > 2.0:
        x[:, -1] = np.round(x[:, -1])
    return x


def test_an_average_has_the_law_of_averaged_draws(model):
    X = grid(model)
    weights = np.random.default_rng(2).random(len(X))
    for w, chosen in ((None, X), (weights, X), (None, X[X[:, 0] < 0.3])):
        found = model.average(chosen, w)
        drawn = np.average(model.draws(chosen, random_state=0), axis=1, weights=w)
        assert found.shape == (1,)
        assert abs(found.mean()[0] - drawn.mean()) < 0.35 * drawn.std()
        assert found.std()[0] == pytest.approx(drawn.std(), rel=0.3)


def test_a_contrast_has_the_law_of_draws(model):
    X = grid(model)
    one, two = X[X[:, 0] < 0.4], X[X[:, 0] > 0.5]
    found = model.contrast(one, two)
    drawn = model.draws(np.concatenate([one, two]), random_state=0)
    a, b = drawn[:, : len(one)].mean(axis=1), drawn[:, len(one) :].mean(axis=1)
    gap, odds = a - b, a / (1 - a) * (1 - b) / b
    assert abs(found.mean()[0] - gap.mean()) < 0.35 * gap.std()
    assert found.std()[0] == pytest.approx(gap.std(), rel=0.3)
    assert found.prob_above(0.0)[0] == pytest.approx((gap > 0).mean(), abs=0.12)
    ratio = found.odds_ratio()
    middle, low = np.quantile(np.log(odds), [0.5, 0.025])
    reach = middle - low
    assert abs(np.log(ratio.median()[0]) - middle) < 0.4 * reach
    assert np.log(ratio.ppf(0.025)[0]) == pytest.approx(low, abs=0.5 * reach)


@pytest.mark.parametrize("n", [40, 150])
def test_averages_of_distorted_trials_are_those_of_weighed_draws(n):
    """Compared with many more draws from another seed."""
    rng = np.random.default_rng(n)
    x = rng.random((n, 1))
    y = rng.random(n) < 0.5 + 0.48 * (0.2 + 0.6 * x[:, 0])
    model = SmoothBetaClassifier(bounds=[(0, 1)]).fit(
        x, y, context=contexts.guess_lapse(guess=0.5, lapse=0.02)
    )
    X = np.linspace(0, 0.4, 41)[:, None]
    drawn = model.draws(X, size=8_000, random_state=9).mean(axis=1)
    found = model.average(X)
    assert abs(found.mean()[0] - drawn.mean()) < 0.25 * drawn.std()
    assert found.std()[0] == pytest.approx(drawn.std(), rel=0.2)
    again = SmoothBetaClassifier(bounds=[(0, 1)]).fit(
        x[::-1], y[::-1], context=contexts.guess_lapse(guess=0.5, lapse=0.02)
    )
    np.testing.assert_array_equal(again.average(X).interval(), found.interval())
    gap = model.contrast(X, X + 0.6)
    assert gap.mean()[0] == pytest.approx(
        found.mean()[0] - model.average(X + 0.6).mean()[0], abs=1e-9
    )


@pytest.mark.parametrize(("mean", "share"), [(0.02, 0.3), (0.5, 0.05), (0.97, 0.6), (0.3, 0.95)])
def test_log_odds_have_the_moments_asked_for(mean, share):
    deviation = share * np.sqrt(mean * (1 - mean))
    centre, s = area.with_moments(np.array([mean]), np.array([deviation]))
    z = stats.norm.ppf((np.arange(400_000) + 0.5) / 400_000)
    found = expit(centre[0] + s[0] * z)
    assert found.mean() == pytest.approx(mean, abs=1e-4)
    assert found.std() == pytest.approx(deviation, rel=1e-2)


def test_the_average_over_one_point_is_its_posterior():
    model = SmoothBetaClassifier(method="process").fit(*smooth(60))
    for x in ([[0.1]], [[0.5]], [[0.9]]):
        one, post = model.average(x), model.posterior(x)
        assert one.mean()[0] == pytest.approx(post.mean()[0], abs=1e-6)
        assert one.std()[0] == pytest.approx(post.std()[0], rel=0.06)
        np.testing.assert_allclose(one.interval(0.95), post.interval(0.95), atol=0.03)


def test_points_that_share_what_is_unknown_do_not_average_out():
    model = SmoothBetaClassifier(method="process").fit(*smooth(200))
    near = np.linspace(0.5, 0.51, 400)[:, None]
    alone = model.posterior([[0.505]]).std()[0]
    assert model.average(near).std()[0] == pytest.approx(alone, rel=0.05)
    assert model.average(np.linspace(0, 1, 400)[:, None]).std()[0] < 0.75 * alone


def test_weights_are_relative_and_count_as_copies():
    model = SmoothBetaClassifier(method="process").fit(*smooth(200))
    X, w = RNG.random((20, 1)), RNG.integers(0, 4, 20)
    found = model.average(X, w)
    copied = model.average(np.repeat(X, w, axis=0))
    np.testing.assert_allclose(found.mean(), copied.mean(), rtol=1e-10)
    np.testing.assert_allclose(found.std(), copied.std(), rtol=1e-6)
    np.testing.assert_allclose(model.average(X, 1e200 * w).mean(), found.mean(), rtol=1e-12)


def test_areas_are_those_of_one_at_a_time(model):
    X = grid(model, 90)
    by = np.array(["b", "a", "c"])[np.arange(90) % 3]
    found = model.average(X, by=by)
    assert found.shape == (3,)
    for row, name in enumerate("abc"):
        alone = model.average(X[by == name])
        np.testing.assert_allclose(found.mean()[row], alone.mean()[0], rtol=1e-12)
        np.testing.assert_allclose(found[row].interval(), alone.interval(), rtol=1e-9)


def test_files_and_order_change_nothing(tmp_path):
    model = SmoothBetaClassifier().fit(*smooth(100))
    X = RNG.random((50, 1))
    model.save(tmp_path / "m.beta")
    again = load(tmp_path / "m.beta")
    np.testing.assert_array_equal(again.average(X).interval(), model.average(X).interval())
    np.testing.assert_array_equal(
        again.contrast(X[:9], X[9:]).ppf(0.2), model.contrast(X[:9], X[9:]).ppf(0.2)
    )


@pytest.mark.filterwarnings("ignore::betafield.cautions.FieldWarning")
def test_new_levels_average_out_over_levels():
    model = SmoothBetaClassifier().fit(*days())
    x = np.full(40, 0.5)
    one = model.average(np.column_stack([x, np.full(40, 35.0)])).std()[0]
    many = model.average(np.column_stack([x, 35.0 + np.arange(40)])).std()[0]
    assert many < 0.7 * one


# Pieces ------------------------------------------------------------------------------------


def test_log_odds_have_the_mean_and_deviation_asked_for():
    c, s = np.meshgrid([-4.0, -1.0, 0.0, 2.0], [0.01, 0.3, 1.0, 3.0])
    c, s = c.ravel(), s.ravel()
    mean, slope = averages.mean_and_slope(LOGIT, c, s)
    centre, deviation = area.in_log_odds(mean, s * slope)
    np.testing.assert_allclose(deviation, s, rtol=2e-3)
    np.testing.assert_allclose(centre, c, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("d", [1, 2])
def test_waves_stand_for_pairs(d):
    rng = np.random.default_rng(d)
    x, moves = 4.0 * rng.random((area.PAIRS, d)), rng.random((2, area.PAIRS))
    exact = area.correlated(moves, x)
    twice = area.correlated(np.hstack([moves, 0 * moves[:, :1]]), np.vstack([x, x[:1]]))
    np.testing.assert_allclose(twice, exact, rtol=0.15)


def test_independent_points_add_up_by_place():
    x = np.array([[1.0], [2.0], [1.0]])
    moves = np.array([[1.0, 2.0, 3.0]])
    assert area.independent(moves, x)[0, 0] == (1.0 + 3.0) ** 2 + 2.0**2
    assert area.independent(moves[:, :0], x[:0])[0, 0] == 0.0


# The posterior of a contrast ---------------------------------------------------------------


def pair():
    root = np.array([[[0.5, 0.0], [0.3, 0.4]], [[0.2, 0.0], [-0.1, 0.3]]])
    covariances = root @ root.transpose(0, 2, 1)
    return Pair(np.array([0.7, 0.3]), np.array([[0.5, -0.3], [-1.0, 0.4]]), covariances)


def simulated(count=400_000):
    rng, (w, centres, covariances) = np.random.default_rng(0), pair()
    which = rng.random(count) < w[0]
    both = [rng.multivariate_normal(centres[k], covariances[k], count) for k in (0, 1)]
    return np.where(which[:, None], *both)


def test_a_difference_has_the_law_of_two_normal_log_odds():
    f = simulated()
    gap = expit(f[:, 0]) - expit(f[:, 1])
    post = Difference(pair(), gap.mean(), gap.var())
    t = np.linspace(-0.6, 0.6, 13)
    np.testing.assert_allclose(post.cdf(t), [(gap <= each).mean() for each in t], atol=4e-3)
    np.testing.assert_allclose(post.cdf(t) + post.prob_above(t), 1.0, atol=1e-12)
    q = np.array([0.01, 0.3, 0.5, 0.99])
    np.testing.assert_allclose(post.ppf(q), np.quantile(gap, q), atol=5e-3)
    np.testing.assert_allclose(post.cdf(post.ppf(q)), q, atol=1e-9)
    fine = np.linspace(-1.0, 1.0, 2_001)
    assert np.trapezoid(post.pdf(fine), fine) == pytest.approx(1.0, abs=1e-4)
    assert post.cdf([-1.0, 1.0]).tolist() == [0.0, 1.0]
    assert post.ppf([0.0, 1.0]).tolist() == [-1.0, 1.0]
    sampled = post.sample(200_000, random_state=0)[:, 0]
    assert stats.ks_2samp(sampled, gap[:200_000]).statistic < 0.01


def test_an_odds_ratio_is_log_normal():
    f = simulated()
    odds = np.exp(f[:, 0] - f[:, 1])
    post = Difference(pair(), 0.0, 0.01).odds_ratio()
    assert post.mean()[0] == pytest.approx(odds.mean(), rel=0.01)
    assert post.std()[0] == pytest.approx(odds.std(), rel=0.05)
    q = np.array([0.025, 0.5, 0.975])
    np.testing.assert_allclose(post.ppf(q), np.quantile(odds, q), rtol=0.02)
    np.testing.assert_allclose(post.cdf(post.ppf(q)), q, atol=1e-9)
    assert post.prob_above(1.0)[0] == pytest.approx((odds > 1).mean(), abs=4e-3)
    assert post.prob_above(-1.0)[0] == 1.0
    fine = np.exp(np.linspace(-6, 6, 4_001))
    assert np.trapezoid(post.pdf(fine), fine) == pytest.approx(1.0, abs=1e-3)


def test_a_contrast_turns_round():
    model = SmoothBetaClassifier(method="process").fit(*smooth(200))
    a, b = RNG.random((30, 1)), 0.3 * RNG.random((20, 1))
    there, back = model.contrast(a, b), model.contrast(b, a)
    assert there.mean()[0] == pytest.approx(-back.mean()[0], abs=1e-12)
    assert there.prob_above(0.0)[0] == pytest.approx(1.0 - back.prob_above(0.0)[0], abs=1e-9)
    np.testing.assert_allclose(there.interval()[0], -back.interval()[1], atol=1e-6)
    np.testing.assert_allclose(
        there.odds_ratio().median() * back.odds_ratio().median(), 1.0, rtol=1e-9
    )
    same = model.contrast(a, a)
    assert same.std()[0] < 1e-6


def test_weights_of_both_sides_count():
    model = SmoothBetaClassifier(method="process").fit(*smooth(200))
    X = np.array([[0.1], [0.9]])
    found = model.contrast(X, X, [1, 0], [0, 1])
    np.testing.assert_allclose(found.mean(), model.contrast(X[:1], X[1:]).mean(), rtol=1e-12)


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda m: m.average(np.empty((0, 1))), "X"),
        (lambda m: m.average([[0.5]], [-1.0]), "weights row 0: found -1.0"),
        (lambda m: m.average([[0.5]], [np.inf]), "weights row 0: found inf"),
        (lambda m: m.average([[0.5], [0.6]], [1.0]), "weights: found shape"),
        (lambda m: m.average([[0.5]], [0.0]), "weights: found 0 for all rows"),
        (lambda m: m.average([[0.5], [0.6]], [0, 1], ["a", "b"]), "for all rows for 'a'"),
        (lambda m: m.average([[0.5], [0.6]], by=["a"]), "by: found shape"),
        (lambda m: m.average([[0.5], [0.6]], by=["a", None]), "by row 1: found None"),
        (lambda m: m.average([[0.5], [0.6]], by=[1.0, np.nan]), "by row 1: found"),
        (lambda m: m.contrast([[0.5]], [[0.6]], weights2=[-1.0]), "weights2 row 0: found -1.0"),
    ],
)
def test_bad_input_is_refused(ask, said):
    model = SmoothBetaClassifier(method="process").fit(*smooth(60))
    with pytest.raises(ValueError, match=said):
        ask(model)


def test_three_classes_are_told_what_to_do():
    X, y = smooth(60)
    model = SmoothBetaClassifier(bandwidth=0.3).fit(X, np.where(X[:, 0] < 0.2, 2, y))
    with pytest.raises(ValueError, match=r"average: this model has 3 classes.*draws\(X\)"):
        model.average(X)


# Other interfaces --------------------------------------------------------------------------


def test_the_last_step_of_a_pipeline_is_asked():
    X, y = smooth(150)
    pipe = make_pipeline(MinMaxScaler((-3, 5)), SmoothBetaClassifier(method="process")).fit(X, y)
    inner, moved = pipe[-1], pipe[:-1].transform(X[:20])
    alone = SmoothBetaClassifier(method="process").fit(pipe[:-1].transform(X), y)
    np.testing.assert_array_equal(inner.average(moved).ppf(0.3), alone.average(moved).ppf(0.3))
    np.testing.assert_array_equal(
        inner.draws(moved, 20, random_state=0), alone.draws(moved, 20, random_state=0)
    )


def test_a_dask_model_answers_after_compute():
    import dask.array as dask_array

    from betafield.dask import SmoothBetaClassifier as Spread

    X, y = smooth(200)
    for options in ({}, {"bandwidth": 0.2}):
        spread = Spread(**options).fit(
            dask_array.from_array(X, chunks=(50, 1)), dask_array.from_array(y, chunks=50)
        )
        local, there = SmoothBetaClassifier(**options).fit(X, y), spread.compute()
        x = np.linspace(0, 1, 9)[:, None]
        np.testing.assert_array_equal(there.average(x).interval(), local.average(x).interval())
        np.testing.assert_array_equal(
            there.draws(x, 20, random_state=0), local.draws(x, 20, random_state=0)
        )


def test_averages_of_monotone_fields_are_those_of_their_draws():
    rng = np.random.default_rng(3)
    X = rng.uniform(size=(60, 1))
    y = rng.uniform(size=60) < 0.3 + 0.2 * X[:, 0]
    model = SmoothBetaClassifier(bounds=[(0, 1)], monotonic_cst=[1]).fit(X, y)
    left, right = np.linspace(0, 0.4, 9)[:, None], np.linspace(0.6, 1, 9)[:, None]
    # The draws behind the posteriors are the model's own.
    low, high = (model.posterior(each).draws.mean(axis=1) for each in (left, right))
    assert model.average(left).mean() == pytest.approx(low.mean(), abs=1e-6)
    more = model.contrast(right, left)
    assert more.mean() == pytest.approx((high - low).mean(), abs=1e-6)
    assert more.std() == pytest.approx((high - low).std(), rel=0.02)
    assert more.mean() > 0.0
