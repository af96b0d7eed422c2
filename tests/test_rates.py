"""Unknown rates of contexts, against integration over them, and against known ones."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import logsumexp, roots_jacobi
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from betafield import SmoothBetaClassifier, contexts, families, load, meaning
from betafield.cautions import FieldWarning
from betafield.contexts import Unknown
from betafield.decisions import Everywhere, Experiment
from betafield.process import unknown
from betafield.process.design import matrix
from betafield.process.finding import Asked
from betafield.process.unknown import find_unknown

Q = np.array([[0.2], [0.5], [0.8]])
rates = st.floats(0.0, 1.0)


def trials(t=200, seed=0, lapse=0.1):
    """Return trials with two alternatives."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 65, size=(t, 1)) / 64
    p = 1.0 - np.exp(-((X[:, 0] / 0.4) ** 3))
    return X, rng.uniform(size=t) < 0.5 + (0.5 - lapse) * p


def model(**options):
    return SmoothBetaClassifier(method="process", scale="range", bounds=[(0, 1)], **options)


def assert_same(a, b):
    np.testing.assert_array_equal(a.posterior(Q).mean(), b.posterior(Q).mean())
    np.testing.assert_array_equal(a.posterior(Q).interval(0.9), b.posterior(Q).interval(0.9))
    assert a.rates_.keys() == b.rates_.keys()
    for name, post in a.rates_.items():
        assert (post.alpha, post.beta) == (b.rates_[name].alpha, b.rates_[name].beta)


# The object ----------------------------------------------------------------------------------

MAKERS = {
    "guess_lapse": (contexts.guess_lapse, ("guess", "lapse"), {}),
    "diagnostic": (contexts.diagnostic, ("sensitivity", "specificity"), {}),
    "attenuated": (contexts.attenuated, ("factor",), {}),
    "background": (contexts.background, ("rate",), {}),
    "randomized_response": (contexts.randomized_response, ("truth", "yes"), {}),
    "pooled": (contexts.pooled, ("sensitivity", "specificity"), {"size": 4}),
}


@given(st.sampled_from(sorted(MAKERS)), rates, rates, st.integers(1, 3))
def test_a_family_is_the_constructor_at_every_rate(name, u, v, which):
    make, names, others = MAKERS[name]
    known = {name: x / 2 for name, x in zip(names, (u, v), strict=False)}
    free = [name for i, name in enumerate(names) if which >> i & 1]
    if not free:
        return
    given = {name: Unknown(1, 3) if name in free else x for name, x in known.items()}
    family = make(**given, **others)
    assert [rate.name for rate in family.rates] == sorted(free)
    expected = np.atleast_2d(make(**known, **others))
    found = family.at(**{name: known[name] for name in free})
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-15)


def test_a_column_may_have_unknown_rates_beside_known_ones():
    u = Unknown(2, 30)
    family = contexts.guess_lapse([0.5, 0.25, 0.5], [u, 0.02, u])
    expected = contexts.guess_lapse([0.5, 0.25, 0.5], [0.1, 0.02, 0.1])
    np.testing.assert_allclose(family.at(lapse=0.1), expected, atol=1e-15)
    assert family.shape == (3, 2)


def test_rows_are_chosen_by_label():
    u = Unknown(92, 10, name="A")
    each = {"A": contexts.diagnostic(u, 0.98), "B": contexts.diagnostic(0.85, 0.97)}
    family = contexts.by_row(["A", "B", "A"], each)
    expected = contexts.diagnostic([0.9, 0.85, 0.9], [0.98, 0.97, 0.98])
    np.testing.assert_allclose(family.at(A=0.9), expected, atol=1e-15)
    plain = contexts.by_row([2, 1], {1: contexts.background(0.1), 2: contexts.pooled(2)})
    np.testing.assert_allclose(contexts.probability(plain, 0.5), [0.75, 0.55])


def test_one_object_is_one_rate_and_two_are_two():
    u = Unknown(1.5, 30)
    shared = contexts.by_row(
        ["a", "b"], {"a": contexts.guess_lapse(0.5, u), "b": contexts.background(u)}
    )
    assert [rate.name for rate in shared.rates] == ["lapse"]
    two = contexts.by_row(
        ["a", "b"],
        {
            "a": contexts.guess_lapse(0.5, Unknown(1, 30, name="first")),
            "b": contexts.guess_lapse(0.5, Unknown(1, 30, name="second")),
        },
    )
    assert [rate.name for rate in two.rates] == ["first", "second"]
    np.testing.assert_allclose(two.at(first=0.1, second=0.2), [[0.5, 0.9], [0.5, 0.8]])


def test_it_is_indexed_like_rows():
    family = contexts.guess_lapse(np.linspace(0, 0.5, 6), Unknown(1.5, 30))
    for rows in (slice(2, 5), np.array([4, 1]), np.arange(6) % 2 == 0, [3]):
        np.testing.assert_array_equal(family[rows].at(lapse=0.1), family.at(lapse=0.1)[rows])
    assert len(family[2]) == 1
    again = pickle.loads(pickle.dumps(family))
    np.testing.assert_array_equal(again.corners, family.corners)
    assert again.rates == family.rates


# Nodes ---------------------------------------------------------------------------------------


@given(st.floats(0.3, 60), st.floats(0.3, 60), st.integers(2, 9))
def test_nodes_are_those_of_scipy(alpha, beta, number):
    x, w = unknown.gauss(alpha, beta, number)
    theirs, weights = roots_jacobi(number, beta - 1, alpha - 1)
    np.testing.assert_allclose(x, (theirs + 1) / 2, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(w, weights / weights.sum(), rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("shapes", [(1e6, 3e6), (1e11, 1e9), (0.01, 5.0)])
def test_nodes_of_extreme_shapes_have_the_moments(shapes):
    x, w = unknown.gauss(*shapes, 7)
    law = stats.beta(*shapes)
    assert w @ x == pytest.approx(law.mean(), rel=1e-9)
    assert w @ (x - w @ x) ** 2 == pytest.approx(law.var(), rel=1e-4)


# Learning ------------------------------------------------------------------------------------


def integrated(X, y, make, law, grid):
    """Return mean and deviation of the rate and of π, from models at all rates of a grid."""
    logs, means, squares = [], [], []
    for rate in grid:
        fitted = model().fit(X, y, context=make(rate))
        logs.append(logsumexp([f.objective + f.log_width for f in fitted.field_.smooth[0].fits]))
        post = fitted.posterior(Q)
        means.append(post.mean())
        squares.append(post.var() + post.mean() ** 2)
    logs = np.array(logs) + law.logpdf(grid)
    w = np.exp(logs - logsumexp(logs))
    mean, middle = w @ np.array(means), w @ grid
    deviation = np.sqrt(w @ np.array(squares) - mean**2)
    return middle, np.sqrt(w @ (grid - middle) ** 2), mean, deviation


@pytest.mark.long
def test_sensitivity_against_a_grid_of_models():
    X, y = trials()
    grid = np.linspace(0.66, 0.97, 16)
    expected = integrated(X, y, lambda u: contexts.diagnostic(u, 0.6), stats.beta(86, 16), grid)
    found = model().fit(X, y, context=contexts.diagnostic(Unknown(86, 16), 0.6))
    rate, post = found.rates_["sensitivity"], found.posterior(Q)
    np.testing.assert_allclose(rate.mean(), expected[0], atol=0.002)
    np.testing.assert_allclose(rate.std(), expected[1], rtol=0.05)
    np.testing.assert_allclose(post.mean(), expected[2], atol=0.005)
    np.testing.assert_allclose(post.std(), expected[3], atol=0.006)


@pytest.mark.parametrize(
    ("number", "near"), [(9, 0.02), pytest.param(15, 0.006, marks=pytest.mark.long)]
)
def test_lapses_against_a_grid_of_models(number, near):
    """Nine nodes are as accurate as this, and more of them converge."""
    X, y = trials(300, seed=1)
    grid = np.linspace(0.002, 0.25, 20)
    expected = integrated(X, y, lambda u: contexts.guess_lapse(0.5, u), stats.beta(1.5, 30), grid)
    field = model().fit(X, y, context=contexts.guess_lapse(0.5, Unknown(1.5, 30))).field_
    nodes = find_unknown(*field.per_class(), Asked(field.numeric_bounds, False, "range"), number)
    found = SmoothBetaClassifier.of(replace(field, found=(nodes,), found_at=field.totals))
    rate, post = found.rates_["lapse"], found.posterior(Q)
    np.testing.assert_allclose(rate.mean(), expected[0], atol=0.3 * near)
    np.testing.assert_allclose(rate.std(), expected[1], atol=0.3 * near)
    np.testing.assert_allclose(post.mean(), expected[2], atol=near)
    np.testing.assert_allclose(post.std(), expected[3], atol=near)


@pytest.mark.parametrize("seed", [5, *(pytest.param(n, marks=pytest.mark.long) for n in (6, 7))])
def test_two_vague_rates_of_outcomes_that_say_nothing_stay_near_what_was_believed(seed):
    """Their nodes move during the search, and weights must belong to the last ones."""
    rng = np.random.default_rng(seed)
    X, y = rng.random((300, 1)), rng.integers(0, 2, 300)
    rates = contexts.pooled(3, Unknown(9, 1), Unknown(9, 1))
    found = SmoothBetaClassifier().fit(X, y, context=rates).rates_
    for rate in found.values():
        assert 0.7 < rate.mean() < 0.97
        assert 0.03 < rate.std() < 0.2


def test_an_anchored_rate_is_found_however_wide_its_prior():
    """Half of the trials do not depend on the rate, so the others reveal it: two proportions."""
    rng = np.random.default_rng(3)
    t = 4000
    X = np.tile([[0.0], [1.0]], (t // 2, 1))
    has = np.arange(t) // 2 % 2 == 0
    y = rng.uniform(size=t) < np.where(has, 0.3 + 0.7 * 0.4, 0.4)
    u = Unknown(1, 1)
    found = model().fit(X, y, context=contexts.background([u if h else 0.0 for h in has]))
    q, p = y[has].mean(), y[~has].mean()
    plain = (q - p) / (1 - p)  # q = u + (1 − u) p
    slopes = 1 / (1 - p), (1 - q) / (1 - p) ** 2
    spread = np.hypot(
        slopes[0] * np.sqrt(q * (1 - q) / has.sum()),
        slopes[1] * np.sqrt(p * (1 - p) / (~has).sum()),
    )
    rate = found.rates_["rate"]
    assert abs(rate.mean()[0] - plain) < 0.2 * spread
    assert rate.std()[0] == pytest.approx(spread, rel=0.1)


def test_trials_at_one_point_against_a_sum_over_two_dimensions():
    """At one place the prior of f is N(0, v), so the posterior of (f, u) is a sum over a grid."""
    k, n, law = 40, 100, stats.beta(9, 3)
    x = np.array([[0.5]])
    found = model().fit_counts(x, [k], [n], context=contexts.attenuated(Unknown(9, 3)))
    smooth = found.field_.smooth[0]
    best = smooth.fits[int(np.argmax(smooth.weights))]
    v = float((matrix(best.mode.basis, x) ** 2).sum())
    f, u = np.meshgrid(np.linspace(-6, 6, 801) * np.sqrt(v), np.linspace(5e-4, 1 - 5e-4, 1000))
    q = u * best.problem.link.value(f)
    logs = law.logpdf(u) - 0.5 * f**2 / v + k * np.log(q) + (n - k) * np.log1p(-q)
    w = np.exp(logs - logs.max())
    w /= w.sum()
    rate, post = found.rates_["factor"], found.posterior(x)
    assert rate.mean()[0] == pytest.approx((w * u).sum(), abs=0.02)
    assert post.mean()[0] == pytest.approx((w * best.problem.link.value(f)).sum(), abs=0.03)


@pytest.mark.parametrize("options", [{}, {"method": "auto", "scale": "auto"}])
def test_a_rate_that_is_all_but_known_is_a_known_one(options):
    X, y = trials()
    one = model().set_params(**options).fit(X, y, context=contexts.guess_lapse(0.5, 0.04))
    sure = contexts.guess_lapse(0.5, Unknown(4e9, 96e9))
    other = model().set_params(**options).fit(X, y, context=sure)
    np.testing.assert_allclose(other.posterior(Q).mean(), one.posterior(Q).mean(), atol=2e-3)
    np.testing.assert_allclose(other.posterior(Q).std(), one.posterior(Q).std(), atol=2e-3)
    assert other.rates_["lapse"].mean()[0] == pytest.approx(0.04, abs=1e-5)


@pytest.mark.long
def test_two_rates_at_once():
    X, y = trials(300)
    found = model().fit(X, y, context=contexts.guess_lapse(Unknown(50, 50), Unknown(1.5, 30)))
    assert list(found.rates_) == ["guess", "lapse"]
    told = [str(sentence) for sentence in meaning.told(found)]
    known = [line.partition(" was unknown and is estimated as 0.")[0] for line in told[-2:]]
    assert known == ["guess", "lapse"]
    assert len(found.field_.smooth[0].nodes) <= 25
    assert 0.4 < found.rates_["guess"].mean()[0] < 0.6
    sure = contexts.guess_lapse(Unknown(5e9, 5e9), Unknown(1.5, 30))
    one = model().fit(X, y, context=contexts.guess_lapse(0.5, Unknown(1.5, 30)))
    two = model().fit(X, y, context=sure)
    np.testing.assert_allclose(two.posterior(Q).mean(), one.posterior(Q).mean(), atol=0.01)


# Order, parts, files -------------------------------------------------------------------------


def test_order_batches_merges_and_files_change_no_bit(tmp_path):
    X, y = trials(120)
    u = Unknown(1.5, 30)
    which = np.where(np.arange(120) % 3 == 0, "blank", "trial")
    each = {"trial": contexts.guess_lapse(0.5, u), "blank": contexts.guess_lapse(0.25, 0.02)}
    context = contexts.by_row(which, each)
    one = model().fit(X, y, context=context)
    order = np.random.default_rng(0).permutation(120)
    assert_same(model().fit(X[order], y[order], context=context[order]), one)
    parts = model().partial_fit(X[:50], y[:50], classes=[False, True], context=context[:50])
    parts.partial_fit(X[50:], y[50:], context=context[50:])
    assert_same(parts.settle(), one)
    halves = [model().fit(X[i::2], y[i::2], context=context[i::2]) for i in (0, 1)]
    assert_same(halves[0].merge(halves[1]).settle(), one)
    one.save(tmp_path / "m.beta")
    again = load(tmp_path / "m.beta")
    assert_same(again, one)
    assert_same(pickle.loads(pickle.dumps(one)), one)
    assert_same(copy.deepcopy(one), one)
    np.testing.assert_array_equal(
        again.draws(Q, size=20, random_state=1), one.draws(Q, size=20, random_state=1)
    )
    more = [each.partial_fit(X[:9], y[:9], context=context[:9]).settle() for each in (again, one)]
    assert_same(*more)


def test_counts_are_the_same_trials():
    X, y = trials(100)
    context = contexts.guess_lapse(0.5, Unknown(1.5, 30))
    points, which = np.unique(X, axis=0, return_inverse=True)
    held, won = np.bincount(which.ravel()), np.bincount(which.ravel(), y).astype(int)
    one, other = model().fit(X, y, context=context), model()
    assert_same(other.fit_counts(points, won, held, context=context), one)


def test_a_rate_that_comes_later_is_learned():
    X, y = trials(120)
    late = contexts.guess_lapse(0.5, Unknown(1.5, 30))
    parts = model().fit(X[:110], y[:110], context=contexts.guess_lapse(0.5, 0.02))
    assert parts.rates_ == {}
    parts.partial_fit(X[110:], y[110:], context=late)
    assert list(parts.rates_) == ["lapse"]


def test_dask_and_files(tmp_path):
    import dask.array as da

    from betafield.dask import SmoothBetaClassifier as Spread

    X, y = trials(90)
    context = contexts.guess_lapse(0.5, Unknown(1.5, 30))
    one = model().fit(X, y, context=context)
    spread = Spread(method="process", scale="range", bounds=[(0, 1)])
    spread.fit(da.from_array(X, chunks=(30, 1)), da.from_array(y, chunks=30), context=context)
    assert_same(spread.compute(), one)
    lines = [f"{x},{int(won)}" for x, won in zip(X[:, 0], y, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(["x,won", *lines]))
    read = model().fit_files(tmp_path / "t.csv", outcome="won", context=context)
    np.testing.assert_array_equal(read.rates_["lapse"].alpha, one.rates_["lapse"].alpha)


def test_pipelines_and_cross_validation_pass_it_on():
    X, y = trials(60)
    context = contexts.guess_lapse(np.full(60, 0.5), Unknown(1.5, 30))
    with sklearn.config_context(enable_metadata_routing=True):
        learner = SmoothBetaClassifier(method="process").set_fit_request(context=True)
        pipe = make_pipeline(StandardScaler(), learner)
        pipe.fit(X, y, context=context)
        assert list(pipe[-1].rates_) == ["lapse"]
        scores = cross_val_score(pipe, X, y, cv=2, params={"context": context})
        one = contexts.guess_lapse(0.5, Unknown(1.5, 30))
        for_all = cross_val_score(pipe, X, y, cv=2, params={"context": one})
    assert np.isfinite(scores).all()
    np.testing.assert_array_equal(scores, for_all)


def test_experiments_learn_rates_and_keep_them(tmp_path):
    X, y = trials(12)
    context = contexts.guess_lapse(0.5, Unknown(1.5, 30))
    experiment = Experiment({"x": (0, 1)}, Everywhere(), random_state=0)
    for x, won in zip(X[:, 0], y, strict=True):
        experiment.tell({"x": x}, bool(won), context=context)
    experiment.tell({"x": 0.3}, True)
    assert list(experiment.model.rates_) == ["lapse"]
    experiment.save(tmp_path / "e.beta")
    again = Experiment.load(tmp_path / "e.beta")
    assert again.ask() == experiment.ask()
    assert_same(again.model, experiment.model)


# Bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize("shapes", [(0, 1), (1, -1), (np.nan, 1), (np.inf, 1), ("a", 1), (None, 1)])
def test_shapes_must_be_positive(shapes):
    with pytest.raises(ValueError, match=r"(alpha|beta): found .*shapes of a Beta prior"):
        Unknown(*shapes)


def test_what_cannot_be_is_refused():
    u, v = Unknown(1, 9), Unknown(1, 9)
    cases = [
        (lambda: contexts.pooled(u), "size: found Unknown.*not a rate"),
        (lambda: contexts.affine(u, 0.1), "gain: found Unknown"),
        (lambda: contexts.randomized_response(u, u), "truth and yes: found"),
        (lambda: contexts.guess_lapse(0.5, [u, v]), "lapse: found 2 different Unknown"),
        (lambda: contexts.guess_lapse(0.95, Unknown(2, 2)), "together they must be at most 1"),
        (lambda: Unknown(1, 2, name=""), "name: found ''"),
        (lambda: contexts.by_row(["a"], {"b": [0, 1]}), "which row 0: found 'a'"),
        (lambda: contexts.by_row(["a"], {"a": [[0, 1], [0, 1]]}), "found 2 rows"),
        (lambda: contexts.by_row(["a"], [0, 1]), "contexts: found"),
        (
            lambda: contexts.diagnostic(
                [Unknown(1, 2, name="a"), Unknown(1, 2, name="b")], Unknown(1, 2)
            ),
            "found 3 unknown rates",
        ),
    ]
    for make, match in cases:
        with pytest.raises((ValueError, TypeError), match=match):
            make()


def test_models_refuse_what_they_cannot_learn():
    X, y = trials(60)
    lapse = contexts.guess_lapse(0.5, Unknown(1.5, 30))
    for options in ({"bandwidth": 0.1}, {"method": "windows"}):
        with pytest.raises(ValueError, match=r"context: found rates that are not known.*windows"):
            SmoothBetaClassifier(**options).fit(X, y, context=lapse)
    with pytest.raises(ValueError, match="context: found 3 rows where X has 60"):
        model().fit(X, y, context=contexts.guess_lapse([0.5] * 3, Unknown(1, 9)))
    fitted = model().fit(X, y, context=lapse)
    before = fitted.posterior(Q).mean()
    with pytest.raises(ValueError, match=r"Beta\(1.5, 30\) and Beta\(1, 9\) for the unknown"):
        fitted.partial_fit(X, y, context=contexts.guess_lapse(0.5, Unknown(1, 9)))
    with pytest.raises(ValueError, match="found 3 unknown rates"):
        fitted.partial_fit(X, y, context=contexts.diagnostic(Unknown(9, 1), Unknown(9, 1)))
    other = model().fit(X, y, context=contexts.guess_lapse(0.5, Unknown(1, 9)))
    with pytest.raises(ValueError, match="one rate has one prior"):
        fitted.merge(other)
    with pytest.raises(ValueError, match=r"band: .*not known"):
        fitted.band(Q, 1.0)
    for ask in (
        lambda: fitted.posterior(Q).under(lapse),
        lambda: contexts.probability(lapse, 0.5),
        lambda: contexts.mirrored(lapse),
        lambda: contexts.elevate(lapse, 3),
    ):
        with pytest.raises((TypeError, ValueError), match="not known"):
            ask()
    np.testing.assert_array_equal(fitted.posterior(Q).mean(), before)
    with pytest.raises(ValueError, match="contexts are for two"):
        model().fit(X, np.arange(60) % 3, context=lapse)


def test_rates_that_nothing_tells_are_warned_of():
    X, y = trials(60)
    free = Unknown(1, 1)
    for context in (
        contexts.guess_lapse(Unknown(1, 1), 0.02),
        contexts.attenuated(free),
    ):
        with pytest.warns(FieldWarning, match="is unknown for all trials"):
            model().fit(X, y, context=context)
    half = [free if i % 2 else 0.0 for i in range(60)]
    model().fit(X, y, context=contexts.background(half))  # warnings are errors


@pytest.mark.parametrize("damage", ["rates", "nodes", "shares", "kinds", "prior"])
def test_hostile_files_are_refused(damage):
    from betafield import state

    X, y = trials(60)
    field = model().fit(X, y, context=contexts.guess_lapse(0.5, Unknown(1.5, 30))).field_
    values, arrays = state.stored(field)
    state.restored(copy.deepcopy(values), dict(arrays))
    wrong = copy.deepcopy(values)
    if damage == "rates":
        wrong["rates"] = [["a", 1.0, 1.0], ["b", 1.0, 1.0], ["c", 1.0, 1.0]]
    elif damage == "nodes":
        wrong["found"][0]["nodes"][0] = [1.5]
    elif damage == "shares":
        wrong["found"][0]["shares"] = wrong["found"][0]["shares"][:-1]
    elif damage == "kinds":
        wrong["rates"] = []
    else:
        wrong["rates"][0][1] = -1.0
    with pytest.raises((ValueError, TypeError)):
        state.restored(wrong, dict(arrays))


def test_a_copy_of_the_estimator_knows_nothing():
    X, y = trials(60)
    fitted = model().fit(X, y, context=contexts.guess_lapse(0.5, Unknown(1.5, 30)))
    assert not hasattr(clone(fitted), "n_trials_")


def test_corners_of_some_rates_are_corners_of_all():
    a, b = families.Rate("a", 1, 1), families.Rate("b", 1, 1)
    one = np.arange(4.0).reshape(1, 2, 2) / 4
    for own, at in ((a, [0.3, 0.9]), (b, [0.9, 0.3])):
        wide = families.widened(one, [own], [a, b])
        np.testing.assert_allclose(
            families.at(wide, np.array(at)), families.at(one, np.array([0.3])), atol=1e-15
        )
