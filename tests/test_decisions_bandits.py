"""Bandits: pulls agree with slow formulas; rewards may be late; bad input changes nothing."""

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from betafield import SmoothBetaClassifier, contexts, persistence
from betafield.decisions import FieldBandit
from betafield.decisions.bandit.fields import ModelField
from betafield.decisions.bandit.policies import highest
from betafield.decisions.bandit.pulls import Pull
from betafield.decisions.bandit.regret import Regret, simulate
from betafield.decisions.bandit.zoom import ZoomedField
from betafield.posteriors import Beta

DATA = Path(__file__).parent / "data"
LINE = {"x": (0.0, 1.0)}
KINDS = {
    "continuum": ({"x": (0, 1), "y": (-2, 2)}, None),
    "continuum, observed": (LINE, {"age": (20, 60)}),
    "points": ([[0.0, 1.0], [0.5, 2.0], [1.0, 0.0]], None),
    "names": (["a", "b", "c"], None),
    "names, observed": (["a", "b", "c"], {"age": (20, 60)}),
}
POLICIES = ("thompson", "ucb")
every_kind = pytest.mark.parametrize("kind", list(KINDS))
every_policy = pytest.mark.parametrize("policy", POLICIES)


def made(kind, policy="thompson", **options):
    arms, observed = KINDS[kind]
    return FieldBandit(arms, policy, observed=observed, random_state=0, **options)


def seen(bandit, number):
    """Return the observation at a pull, if the bandit has any."""
    return {"age": 20.0 + number * 7 % 40} if bandit.arms.observed else None


def played(bandit, n, start=0):
    """Pull n times, with immediate rewards by a deterministic rule."""
    pulls = []
    for number in range(start, start + n):
        pull = bandit.pull(seen(bandit, number))
        bandit.update(pull, success=(number * 13 + pull.index) % 3 == 0)
        pulls.append(pull)
    return pulls


def told(pulls):
    return [(pull.id, pull.arm, pull.features, pull.why) for pull in pulls]


# Pulls ---------------------------------------------------------------------------------------


def test_ucb_of_named_arms_is_the_highest_quantile_of_their_beta():
    wins, losses = np.zeros((2, 3))
    bandit = made("names", "ucb")
    rng = np.random.default_rng(0)
    for t in range(50):
        level = 1 - 1 / (2 + np.log(1 + t) ** 1.5)
        bounds = stats.beta.ppf(level, 1 + wins, 1 + losses)
        pull = bandit.pull()
        assert f"(the {level:.4g} quantile" in pull.why
        assert bounds[pull.index] == pytest.approx(bounds.max(), rel=1e-9)
        success = rng.uniform() < (0.2, 0.5, 0.8)[pull.index]
        (wins if success else losses)[pull.index] += 1
        bandit.update(pull, success)
    assert np.argmax(wins + losses) == 2


def test_ucb_of_points_counts_the_trials_within_the_window():
    points = np.linspace(0, 1, 21)[:, None]
    bandit = FieldBandit(points, "ucb", model=SmoothBetaClassifier(0.12), random_state=0)
    rng = np.random.default_rng(1)
    where, ends = [], []
    for t in range(50):
        near = np.abs(points - np.array(where)) <= 0.12
        wins, held = near @ np.array(ends), near.sum(axis=1)
        bounds = stats.beta.ppf(1 - 1 / (2 + np.log(1 + t) ** 1.5), 1 + wins, 1 + held - wins)
        pull = bandit.pull()
        assert bounds[pull.arm] == pytest.approx(bounds.max(), rel=1e-9)
        where.append(pull["x0"])
        ends.append(float(rng.uniform() < pull["x0"]))
        bandit.update(pull, ends[-1])


def test_thompson_pulls_an_arm_as_often_as_it_is_the_best():
    bandit = FieldBandit(["a", "b"], random_state=0)
    pulls = bandit.pull(n=12)
    bandit.update(pulls, [pull.arm == "a" and pull.id % 2 == 0 for pull in pulls])
    held = {arm: [p for p in pulls if p.arm == arm] for arm in "ab"}
    wins = sum(pull.id % 2 == 0 for pull in held["a"])
    rng = np.random.default_rng(0)
    a = rng.beta(1 + wins, 1 + len(held["a"]) - wins, 100_000)
    b = rng.beta(1, 1 + len(held["b"]), 100_000)
    share = np.mean([pull.arm == "a" for pull in bandit.pull(n=4_000)])
    assert share == pytest.approx(np.mean(a > b), abs=4 * np.sqrt(0.25 / 4_000))


def test_thompson_draws_one_level_for_all_points():
    points = np.linspace(0, 1, 11)[:, None]
    bandit = FieldBandit(points, model=SmoothBetaClassifier(0.05), random_state=0)
    bandit.update(bandit.pull(n=40), [True, False] * 20)
    shapes = np.array([(p.alpha[0], p.beta[0]) for p in map(bandit.posterior, named(points))])
    levels = []
    for pull in bandit.pull(n=300):
        level = float(pull.why.split("the ")[1].split(" quantile")[0])
        draws = stats.beta.ppf(level, *shapes.T)
        assert draws[pull.arm] == pytest.approx(draws.max(), abs=1e-3)
        levels.append(level)
    assert stats.kstest(levels, "uniform").pvalue > 1e-3


def named(points):
    return [{"x0": float(x)} for (x,) in points]


def slow(x, X, ends, lipschitz):
    """Return the Beta shapes at x from whole or fractional trials, ring by ring."""
    far = np.sqrt(((X - x) ** 2).sum(axis=1) / X.shape[1])
    won = lost = 0.0
    for k in range(1, 7):
        ring = (far <= 0.5**k) & ((far > 0.5 ** (k + 1)) if k < 6 else (far > 0))
        won, lost = won + ends[ring].sum(), lost + (1 - ends[ring]).sum()
        off = 1 + (won + lost) * lipschitz**2 / 4**k
        won, lost = won / off, lost / off
    here = far == 0
    return 1 + won + ends[here].sum(), 1 + lost + (1 - ends[here]).sum()


def spread(n, seed):
    """Return points of the plane that crowd in a corner, and points to query."""
    rng = np.random.default_rng(seed)
    X = rng.beta(2, 5, (n, 2))
    return X, rng.integers(2, size=n).astype(float), np.vstack([rng.uniform(size=(40, 2)), X[:5]])


def test_trials_count_for_less_the_farther_they_are():
    X, ends, Q = spread(300, 0)
    found = ZoomedField([(0, 1)] * 2, 1.5).learned(X, ends).posterior(Q)
    alpha, beta = np.transpose([slow(x, X, ends, 1.5) for x in Q])
    np.testing.assert_allclose(found.mean(), stats.beta.mean(alpha, beta), rtol=1e-9)
    np.testing.assert_allclose(found.ppf(0.9), stats.beta.ppf(0.9, alpha, beta), rtol=1e-9)


@given(st.integers(1, 60), st.integers(0, 60), st.integers(0, 99))
@settings(max_examples=20)
def test_supposed_trials_count_as_parts_of_trials(known, supposed, seed):
    X, ends, Q = spread(known + supposed, seed)
    ends[known:] = np.random.default_rng(seed).uniform(size=supposed)
    before = field = ZoomedField([(0, 1)] * 2).learned(X[:known], ends[:known])
    expected = field.posterior(Q).mean()  # which must be kept up to date from now on
    for x, end in zip(X[known:], ends[known:], strict=True):
        field = field.supposing(x[None], np.array([end]))
    assert np.array_equal(before.posterior(Q).mean(), expected)
    alpha, beta = np.transpose([slow(x, X, ends, 1.0) for x in Q])
    np.testing.assert_allclose(field.posterior(Q).mean(), alpha / (alpha + beta), rtol=1e-7)
    again = ZoomedField([(0, 1)] * 2).learned(X[:known], ends[:known])
    if supposed:
        again = again.supposing(X[known:], ends[known:])
    assert np.array_equal(again.posterior(Q).mean(), field.posterior(Q).mean())


@pytest.mark.parametrize("bandwidth", [0.2, "loo", "auto"])
def test_supposed_trials_of_a_model_do_not_show_in_which_order_they_came(bandwidth):
    X, ends, Q = spread(60, 0)
    parts = np.random.default_rng(1).uniform(size=20)
    model = SmoothBetaClassifier(bandwidth, bounds=[(0, 1)] * 2)
    before = ModelField(model).learned(X[:40], ends[:40])
    one_by_one = before
    for i in np.random.default_rng(2).permutation(20):
        one_by_one = one_by_one.supposing(X[40 + i : 41 + i], parts[i : i + 1])
    together = before.supposing(X[40:], parts).posterior(Q)
    np.testing.assert_array_equal(together.mean(), one_by_one.posterior(Q).mean())
    if bandwidth == 0.2:
        near = np.linalg.norm(Q[:, None] - X, axis=2) <= 0.2
        won = near @ np.concatenate([ends[:40], parts])
        np.testing.assert_allclose(together.alpha, 1 + won, rtol=1e-8)
        np.testing.assert_allclose(together.beta, 1 + near.sum(axis=1) - won, rtol=1e-8)


def test_pending_pulls_count_as_what_those_made_let_expect():
    points = np.linspace(0, 1, 21)[:, None]
    bandit = FieldBandit(points, "ucb", model=SmoothBetaClassifier(0.12), random_state=0)
    rng = np.random.default_rng(1)
    made_at, ends, waiting = [], [], []
    for t in range(40):
        near = np.abs(points - np.array(made_at)) <= 0.12
        won, n = near @ np.array(ends), near.sum(axis=1)
        mean = (1 + won) / (2 + n)
        late = np.abs(points - np.array([points[i, 0] for i in waiting])) <= 0.12
        if made_at:  # before the first reward there is no expectation
            won, n = won + late @ mean[waiting], n + late.sum(axis=1)
        bounds = stats.beta.ppf(1 - 1 / (2 + np.log(1 + t) ** 1.5), 1 + won, 1 + n - won)
        pull = bandit.pull()
        assert bounds[pull.arm] == pytest.approx(bounds.max(), rel=1e-6)
        waiting.append(pull.arm)
        if t % 5 == 4:  # the oldest two are told, the third is abandoned
            first = bandit.pending[:3]
            ends += [float(rng.uniform() < p["x0"]) for p in first[:2]]
            bandit.update(first[:2], ends[-2:])
            bandit.abandon(first[2])
            made_at += [p["x0"] for p in first[:2]]
            del waiting[:3]


@example(34, 0.5)  # the highest one rounds to 1
@given(st.integers(0, 99), st.floats(1e-6, 1 - 1e-6))
@settings(max_examples=30)
def test_the_highest_quantile_is_found_among_few(seed, level):
    rng = np.random.default_rng(seed)
    belief = Beta(*rng.gamma(0.5 + 9 * rng.uniform(), 5, (2, 200)) + 0.01)
    scores, all_of_them = highest(belief, level), belief.ppf(level)
    assert np.argmax(scores) == np.argmax(all_of_them)
    assert scores.max() == pytest.approx(all_of_them.max(), rel=1e-12)


@pytest.mark.sampled
@every_kind
@every_policy
def test_what_pays_is_found(kind, policy):
    bandit = made(kind, policy)

    rng = np.random.default_rng(3)
    for number in range(80):
        pull = bandit.pull(seen(bandit, number))
        first = next(iter(pull.values()), 0.0)
        good = pull.index == 1 if bandit.arms.names else abs(first - 0.5) < 0.2
        bandit.update(pull, rng.uniform() < (0.9 if good else 0.1))
    best = bandit.best(seen(bandit, 0))
    assert best.index == 1 if bandit.arms.names else abs(next(iter(best.values())) - 0.5) < 0.25


@every_kind
@every_policy
def test_every_pull_says_why(kind, policy):
    bandit = made(kind, policy)
    played(bandit, 10)
    pull = bandit.pull(seen(bandit, 10))
    word = "draw" if policy == "thompson" else "bound"
    assert word in pull.why
    assert f"highest of {bandit.arms.size}" in pull.why
    assert dict(pull) == pull.features
    posterior = bandit.posterior(pull, arm=pull.arm if bandit.arms.names else None)
    assert f"mean {posterior.mean()[0]:.3g}" in pull.why


# Late, simultaneous and repeated rewards -----------------------------------------------------


@every_kind
@every_policy
def test_a_batch_is_what_as_many_calls_give(kind, policy):
    one, many = made(kind, policy), made(kind, policy)
    for bandit in (one, many):
        played(bandit, 6)
    x = seen(one, 99)
    batch = many.pull(x, n=6)
    assert told(batch) == told([one.pull(x) for _ in range(6)])
    assert told(many.pending) == told(batch)


@every_policy
def test_rows_observed_are_the_same_as_array_list_and_table(policy):
    ages = np.array([[25.0], [33.0], [58.0]])
    tables = [
        ages,
        ages.tolist(),
        [{"age": age} for (age,) in ages],
        pd.DataFrame(ages, columns=["age"]),
        pl.DataFrame(ages, schema=["age"]),
    ]
    found = [told(made("names, observed", policy).pull(table)) for table in tables]
    assert all(each == found[0] for each in found)
    assert [features["age"] for _, _, features, _ in found[0]] == [25.0, 33.0, 58.0]


@every_kind
@every_policy
@settings(max_examples=3)
@given(data=st.data())
def test_rewards_may_come_in_any_order_and_batches(kind, policy, data):
    one, other = made(kind, policy), made(kind, policy)
    x = seen(one, 1)
    first, second = one.pull(x, n=9), other.pull(x, n=9)
    ends = data.draw(st.lists(st.booleans(), min_size=9, max_size=9))
    order = data.draw(st.permutations(range(9)))
    cut = data.draw(st.integers(1, 8))
    one.update(first, ends)
    for part in (order[:cut], order[cut:]):
        other.update([second[i] for i in part], [ends[i] for i in part])
    assert told([one.pull(x)]) == told([other.pull(x)])


def test_ucb_spreads_a_batch_and_thompson_too():
    for policy in POLICIES:
        bandit = made("continuum", policy)
        played(bandit, 30)
        assert len({tuple(pull.values()) for pull in bandit.pull(n=20)}) > 2


@every_policy
def test_arms_of_which_nothing_is_known_take_turns(policy):
    x = np.sort([pull["x"] for pull in FieldBandit(LINE, policy, random_state=0).pull(n=32)])
    assert np.diff(x, prepend=0.0, append=1.0).max() < 4 / 32
    if policy == "ucb":
        assert sorted(pull.arm for pull in made("names", policy).pull(n=3)) == ["a", "b", "c"]


def test_an_abandoned_pull_counts_for_nothing():
    one, other = made("names", "ucb"), made("names", "ucb")
    pulls = one.pull(n=4)
    one.update(pulls[:3], [1, 0, 1])
    one.abandon(pulls[3])
    other.update(other.pull(n=3), [1, 0, 1])
    for arm in "abc":
        assert repr(one.posterior({}, arm)) == repr(other.posterior({}, arm))
    assert not one.pending
    with pytest.raises(ValueError, match="number 3 was abandoned before"):
        one.update(pulls[3], True)


@pytest.mark.parametrize("several", [False, True])
def test_rates_that_are_not_known_are_refused_and_nothing_is_learned(several):
    bandit = FieldBandit(["a", "b"])
    pull = bandit.pull()
    context = contexts.guess_lapse(0.5, contexts.Unknown(1.5, 30))
    with pytest.raises(ValueError, match="context: found rates that are not known"):
        bandit.update([pull] if several else pull, [True] if several else True, context=context)
    bandit.update(pull, True)


def test_a_context_tells_what_was_luck():
    guess = contexts.guess_lapse(guess=1 / 2)
    bandit = made("names, observed")
    pulls = bandit.pull([[30.0]] * 40)
    bandit.update(pulls, [True] * 40, context=guess)
    mine = [pull for pull in pulls if pull.arm == "a"]
    model = SmoothBetaClassifier(1 / 64, bounds=[(20, 60)])
    model.partial_fit([[30.0]] * len(mine), [1] * len(mine), classes=[0, 1], context=guess)
    assert bandit.posterior({"age": 30}, "a").mean() == model.posterior([[30.0]]).mean()


@pytest.mark.sampled
@every_kind
@every_policy
@pytest.mark.parametrize("bandwidth", [None, "loo", "auto"])
def test_saved_and_loaded_it_goes_on_as_before(kind, policy, bandwidth, tmp_path):
    model = bandwidth and SmoothBetaClassifier(bandwidth)
    bandit = made(kind, policy, model=model)
    played(bandit, 9)
    x = seen(bandit, 9)
    late = bandit.pull(x, n=5)
    few = bandit.arms.size < 10  # posteriors of many points under contexts are slow
    guess = contexts.guess_lapse(guess=0.2) if few else None
    bandit.update(late[:2], [True, False], context=guess)
    bandit.abandon(late[2])
    bandit.pull(x, n=2)
    bandit.save(tmp_path / "a.beta")
    again = FieldBandit.load(tmp_path / "a.beta")
    again.save(tmp_path / "b.beta")
    assert (tmp_path / "a.beta").read_bytes() == (tmp_path / "b.beta").read_bytes()
    assert told(again.pending) == told(bandit.pending)
    for each in (bandit, again):
        each.update(late[4], True)
    assert told(played(again, 2, 30)) == told(played(bandit, 2, 30))


@pytest.mark.parametrize("scale", [np.array([2.0, 4.0]), (2.0, 4.0), None, "std"])
def test_a_model_of_any_scale_can_be_saved_and_loaded(scale, tmp_path):
    bandit = made("points", model=SmoothBetaClassifier(0.3, scale=scale))
    played(bandit, 6)
    bandit.save(tmp_path / "a.beta")
    again = FieldBandit.load(tmp_path / "a.beta")
    assert told(played(again, 3, 6)) == told(played(bandit, 3, 6))


def test_a_changed_file_is_refused(tmp_path):
    bandit = made("names, observed", "ucb")
    played(bandit, 6)
    bandit.save(tmp_path / "a")
    values, arrays = persistence.read(tmp_path / "a", "bandit")
    wrong = [
        ({"policy": "luck"}, {}),
        ({"seed": -1}, {}),
        ({"other": 7}, {}),
        ({"arms": ["a", "a"]}, {}),
        ({"arms": "points"}, {}),
        ({"observed": None}, {}),
        ({}, {"index": arrays["index"] + 3}),
        ({}, {"ends": arrays["ends"] + 5}),
        ({}, {"ends": arrays["ends"] * 0 - 1}),
        ({}, {"given": arrays["given"] + 100}),
        ({}, {"given": arrays["given"] * np.nan}),
        ({}, {"step.pulls": arrays["step.pulls"] * 0}),
        ({}, {"step.sizes": arrays["step.sizes"] * 2}),
        ({}, {"step.contexts": arrays["step.contexts"] + 1}),
        ({}, {"more": arrays["ends"]}),
    ]
    for value, array in wrong:
        persistence.write(tmp_path / "b", "bandit", {**values, **value}, {**arrays, **array})
        with pytest.raises(ValueError, match="does not contain a consistent bandit"):
            FieldBandit.load(tmp_path / "b")


# Bad input -----------------------------------------------------------------------------------


class Huge(list):
    """A list that claims to be long, and must not be read."""

    def __init__(self, first):
        super().__init__([first])

    def __len__(self):
        return 10**12

    def __iter__(self):
        raise AssertionError("read")


@pytest.mark.parametrize(
    ("arms", "options", "error", "says"),
    [
        pytest.param(LINE, {"policy": "luck"}, ValueError, "policy: found 'luck'", id="policy"),
        pytest.param({"x": (1, 1)}, {}, ValueError, "arms, feature 'x': found .1.0, 1", id="width"),
        pytest.param({"x": (0, np.nan)}, {}, ValueError, "arms, .*: found NaN", id="NaN bound"),
        pytest.param({"x": "09"}, {}, ValueError, "arms, feature 'x': found '09'", id="text bound"),
        pytest.param(
            LINE, {"policy": np.ones(2)}, ValueError, "policy: found array", id="policies"
        ),
        pytest.param(
            [np.datetime64("NaT", "s")] * 2, {}, TypeError, r"arms\[0\]: found NaT", id="NaT"
        ),
        pytest.param(
            np.array([["2020"], ["NaT"]], "M8[Y]"), {}, ValueError, "arms row 0, .*2020", id="dates"
        ),
        pytest.param(np.array([[1], ["NaT"]], "m8[s]"), {}, ValueError, "arms row 0", id="times"),
        pytest.param(
            np.ma.array([[0.0], [1.0]], mask=[[0], [1]]), {}, ValueError, "row 1.*masked", id="mask"
        ),
        pytest.param(
            np.ma.array(["a", "b"], mask=[0, 1]), {}, TypeError, r"arms\[1\]", id="masked names"
        ),
        pytest.param([[0.0], [1j]], {}, ValueError, "arms row 1, column 0: found 1j", id="complex"),
        pytest.param([[0.0], [10**400]], {}, ValueError, "arms row 1, .*found 1000", id="huge"),
        pytest.param([[0.0], [1.0, 2.0]], {}, ValueError, "arms: found rows", id="ragged"),
        pytest.param(
            pd.DataFrame({"x": pd.to_datetime(["2020-01-01", None])}),
            {},
            ValueError,
            "arms",
            id="days",
        ),
        pytest.param({}, {}, ValueError, "arms: found no features", id="no features"),
        pytest.param(["a"], {}, ValueError, "arms: found 1; 2 to", id="one arm"),
        pytest.param(["a", "a"], {}, ValueError, "arms: found 'a' twice", id="twice"),
        pytest.param(["a", 3], {}, TypeError, r"arms\[1\]: found 3", id="number"),
        pytest.param("ab", {}, TypeError, "arms: found str", id="text"),
        pytest.param(7, {}, TypeError, "arms: found int", id="int"),
        pytest.param(Huge("a"), {}, ValueError, "arms: found 1,000,000,000,000", id="many names"),
        pytest.param(Huge([0.0]), {}, ValueError, "arms: found 1,000,000,000,000", id="points"),
        pytest.param([[0.0], [np.nan]], {}, ValueError, "arms row 1.*found NaN", id="NaN point"),
        pytest.param([[0.0], ["b"]], {}, ValueError, "arms row 1.*found 'b'", id="text point"),
        pytest.param(LINE, {"observed": LINE}, ValueError, "observed: found 'x'", id="both"),
        pytest.param(LINE, {"observed": {"a": 3}}, ValueError, "observed, .*shape", id="observed"),
        pytest.param(LINE, {"model": 3}, TypeError, "model: found int", id="model"),
        pytest.param(LINE, {"random_state": 0.5}, ValueError, "random_state: found", id="seed"),
        pytest.param(LINE, {"random_state": -1}, ValueError, "random_state: found", id="below 0"),
    ],
)
def test_what_cannot_be_a_bandit_is_refused(arms, options, error, says):
    with pytest.raises(error, match=says):
        FieldBandit(arms, **options)


@pytest.mark.parametrize(
    ("x", "n", "error", "says"),
    [
        pytest.param(None, None, ValueError, "x: found nothing; 'age'", id="nothing"),
        pytest.param({"age": 61}, None, ValueError, "x, feature 'age': found 61", id="outside"),
        pytest.param({"age": np.nan}, None, ValueError, "x, feature 'age': found NaN", id="NaN"),
        pytest.param({"size": 3}, None, ValueError, "x: found the feature 'size'", id="unknown"),
        pytest.param({}, None, ValueError, "x: found no value of 'age'", id="missing"),
        pytest.param([[30], [10]], None, ValueError, "x row 1, .*found 10", id="row outside"),
        pytest.param(
            np.ma.array([[30], [31]], mask=[[0], [1]]), None, ValueError, "x row 1.*mask", id="mask"
        ),
        pytest.param([[30], [np.ma.masked]], None, ValueError, "x row 1.*masked", id="masked"),
        pytest.param([[30 + 0j]], None, ValueError, "x row 0, .*30", id="complex"),
        pytest.param([[np.timedelta64(30, "s")]], None, ValueError, "x row 0, .*30", id="time"),
        pytest.param([[30, 31]], None, ValueError, r"x: found shape \(1, 2\)", id="two values"),
        pytest.param([{"age": 30}, [31]], None, TypeError, "x row 1: found list", id="mixed"),
        pytest.param([], None, ValueError, "x: found 0 rows", id="no rows"),
        pytest.param(30, None, TypeError, "x: found int; a mapping, or rows", id="number"),
        pytest.param("30", None, TypeError, "x: found str; a mapping, or rows", id="text"),
        pytest.param([[30], [31]], 2, ValueError, "n: found 2 with 2 rows", id="both"),
        pytest.param({"age": 30}, 0, ValueError, "n: found 0", id="none"),
        pytest.param({"age": 30}, 10**9, ValueError, "n: found 1000000000", id="too many"),
        pytest.param({"age": 30}, 1.5, ValueError, "n: found 1.5", id="fraction"),
    ],
)
@every_policy
def test_a_pull_that_cannot_be_made_changes_nothing(policy, x, n, error, says):
    bandit = made("names, observed", policy)
    with pytest.raises(error, match=says):
        bandit.pull(x, n=n)
    assert bandit.n_pulls == 0
    assert not bandit.pending


def test_something_observed_where_nothing_is():
    with pytest.raises(ValueError, match="x: found values; this bandit has no observed"):
        made("points").pull({"x0": 1})


BAD_UPDATES = {
    "again": (lambda p: p[0], True, None, ValueError, "pull: number 0 was told before"),
    "one again": (lambda p: [p[1], p[0]], [1, 1], None, ValueError, "nothing was counted"),
    "twice": (lambda p: [p[1], p[1]], [1, 1], None, ValueError, "pull: found 1 twice"),
    "unknown": (lambda _: 99, True, None, ValueError, "pull: found 99"),
    "negative": (lambda _: -1, True, None, ValueError, "pull: found -1"),
    "time": (lambda _: np.timedelta64(1, "s"), True, None, TypeError, "pull: found"),
    "masked": (lambda p: p[1], np.ma.masked, None, ValueError, "success: found a masked"),
    "a mask": (
        lambda p: p[1:3], np.ma.array([1, 1], mask=[0, 1]), None, ValueError, "success row 1.*mask"
    ),
    "one missing": (lambda p: p[1:3], [True, None], None, ValueError, "success row 1: found None"),
    "complex": (lambda p: p[1], 1 + 0j, None, ValueError, "success: found"),
    "dates": (lambda p: p[1:3], np.array([0, 1], "M8[s]"), None, ValueError, "success row 0"),
    "mapping": (lambda _: {"age": 30}, True, None, TypeError, "pull: found dict"),
    "number": (lambda _: 0.5, True, None, TypeError, "pull: found float"),
    "foreign": (
        lambda _: made("continuum").pull(n=2)[1], True, None, ValueError, "from another bandit"
    ),
    "NaN": (lambda p: p[1], np.nan, None, ValueError, "success: found NaN"),
    "two": (lambda p: p[1], 2, None, ValueError, "success: found 2"),
    "None": (lambda p: p[1], None, None, ValueError, "success: found None"),
    "text": (lambda p: p[1], "yes", None, ValueError, "success: found 'yes'"),
    "few": (lambda p: p[1:], [True], None, ValueError, r"success: found shape \(1,\)"),
    "list": (lambda p: p[1], [True], None, ValueError, r"success: found shape \(1,\)"),
    "context": (lambda p: p[1], True, [0.0, 1.5], ValueError, "context"),
    "text context": (lambda p: p[1], True, "luck", ValueError, "context: found 'luck'"),
    "contexts": (lambda p: p[1:4], [1] * 3, [[0, 1]] * 2, ValueError, "context: found 2 rows"),
    "a context of many": (
        lambda p: p[1:4], [1] * 3, [[0, 1], [0, 1], [0, 2]], ValueError, "context row 2"
    ),
    "one number per pull": (
        lambda p: p[1:4], [1] * 3, [0.1, 0.2, 0.3], ValueError, "context: found shape"
    ),
    "masked context": (
        lambda p: p[1], True, np.ma.array([0, 1], mask=[0, 1]), ValueError, "context row 1"
    ),
    "complex context": (lambda p: p[1], True, [0, 1j], ValueError, "context row 1: found 1j"),
}  # fmt: skip


@pytest.mark.parametrize("name", list(BAD_UPDATES))
@every_policy
def test_a_reward_that_cannot_be_counted_changes_nothing(policy, name):
    pull, success, context, error, says = BAD_UPDATES[name]
    bandit = made("names, observed", policy)
    pulls = bandit.pull([[20 + i] for i in range(8)])
    bandit.update(pulls[0], True)
    before = told(bandit.pending)
    beliefs = [repr(bandit.posterior({"age": 30}, arm)) for arm in "abc"]
    with pytest.raises(error, match=says):
        bandit.update(pull(pulls), success, context=context)
    assert told(bandit.pending) == before
    assert [repr(bandit.posterior({"age": 30}, arm)) for arm in "abc"] == beliefs
    bandit.update(pulls[1:], [True] * 7)


def test_no_rewards_at_all_change_nothing(tmp_path):
    bandit = made("names")
    bandit.update(bandit.pull(n=2), [True, False])
    bandit.save(tmp_path / "a")
    bandit.update([], [])
    bandit.save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_questions_about_unknown_arms_are_refused():
    with pytest.raises(ValueError, match="x: found 2 rows; give one row to get its best arm"):
        made("names, observed").best([[30], [40]])
    for arm in ("z", np.array(["a", "b"]), None):
        with pytest.raises(ValueError, match=r"arm: found .*the arms are 'a', 'b', 'c'"):
            made("names").posterior({}, arm)
    with pytest.raises(ValueError, match="arm: found 'a'"):
        made("points").posterior({"x0": 0, "x1": 1}, "a")


# Regret ----------------------------------------------------------------------------------------


class Always:
    """A bandit that always pulls the same arm."""

    def __init__(self, index):
        self.arms, self.index, self.told = made("names").arms, index, []

    def pull(self, n):
        return [Pull(i, "", {}, "", self.index) for i in range(n)]

    def update(self, _, success):
        self.told.append(np.mean(success))


def chances(X):
    return np.tile([0.2, 0.5, 0.9], (len(X), 1))


def test_regret_is_what_the_best_arm_pays_more():
    regret = simulate(lambda _: Always(1), chances, 50, seeds=[0, 1])
    np.testing.assert_allclose(regret.cumulative, np.tile(0.4 * np.arange(1, 51), (2, 1)))
    assert regret.exponent() == pytest.approx(1.0)
    assert simulate(lambda _: Always(2), chances, 50).final.max() == 0.0


def test_the_best_of_a_continuum_is_that_of_all_its_points():
    best = {"x": 1 / 3, "y": np.sqrt(2) - 1}

    class There(Always):
        def pull(self, n):
            return [Pull(i, best, best, "", 0) for i in range(n)]

    bandit = There(0)
    bandit.arms = made("continuum").arms
    regret = simulate(
        lambda _: bandit, lambda X: np.exp(-((X - [*best.values()]) ** 2).sum(axis=1)), 9, [0]
    )
    assert regret.final[0] < 1e-9
    wide = simulate(lambda _: bandit, lambda X: np.exp(X.sum(axis=1) - 3), 9, [0])
    assert wide.final[0] == pytest.approx(9 * (1 - np.exp(sum(best.values()) - 3)), abs=1e-4)


def test_rewards_are_those_of_the_chance_and_come_late():
    bandit = Always(2)
    simulate(lambda _: bandit, chances, 10_000, seeds=[0], batch=100, delay=300)
    assert len(bandit.told) == 97
    assert np.mean(bandit.told) == pytest.approx(0.9, abs=0.015)


@pytest.mark.long
@every_policy
@pytest.mark.parametrize("kind", ["continuum, observed", "names, observed", "points"])
def test_bandits_lose_less_than_chance_does(kind, policy):
    def truth(X):
        own = 0.1 + 0.8 * np.exp(-(((X[:, :1] - [[0.3, 0.9]]) / 0.3) ** 2))
        return own if kind.startswith("names") else own[:, 0]

    def named(X):
        near = (X - 20) / 40
        return np.hstack([near, 1 - near, 0 * near])

    regret = simulate(
        lambda seed: FieldBandit(
            KINDS[kind][0], policy, observed=KINDS[kind][1], random_state=seed
        ),
        named if kind.startswith("names") else truth,
        300,
        seeds=[0],
        batch=10,
        delay=20,
    )
    assert 0.0 <= regret.final[0] < 0.25 * 300
    assert (np.diff(regret.cumulative[0]) >= 0.0).all()
    assert regret.exponent() < 0.95


def test_the_same_seed_gives_the_same_regret():
    runs = [
        simulate(lambda s: FieldBandit(LINE, random_state=s), lambda X: X[:, 0], 60, seeds=[4])
        for _ in range(2)
    ]
    assert np.array_equal(runs[0].cumulative, runs[1].cumulative)


def test_a_regret_is_drawn_on_axes_that_others_share():
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    n = np.arange(1.0, 101.0)
    first = Regret([n, 2 * n], label="linear").plot()
    second = Regret([np.sqrt(n)], label="root").plot(ax=first.ax_)
    lines = second.ax_.lines
    np.testing.assert_array_equal(lines[0].get_ydata(), 1.5 * n)
    np.testing.assert_array_equal(lines[1].get_ydata(), np.sqrt(n))
    assert lines[0].get_color() != lines[1].get_color()
    assert [text.get_text() for text in second.ax_.get_legend().get_texts()] == ["linear", "root"]
    plt.close("all")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        pytest.param({"n": 0}, "n: found 0", id="n"),
        pytest.param({"batch": 1.5}, "batch: found 1.5", id="batch"),
        pytest.param({"delay": -1}, "delay: found -1", id="delay"),
        pytest.param({"seeds": []}, "seeds: found none", id="seeds"),
        pytest.param({"seeds": [0, -1]}, r"seeds\[1\]: found -1", id="a negative seed"),
        pytest.param({"make": 3}, "make: found 3; a function of a seed", id="make"),
        pytest.param({"truth": 0.5}, "truth: found 0.5; a function of rows", id="truth"),
        pytest.param({"truth": lambda X: 2 * chances(X)}, "truth row 0.*: found", id="above 1"),
        pytest.param({"truth": lambda X: X[:, :0]}, "truth: found shape", id="another shape"),
    ],
)
def test_simulations_that_cannot_be_are_refused(change, says):
    with pytest.raises(ValueError, match=says):
        simulate(**{"make": lambda _: Always(1), "truth": chances, "n": 5, **change})


def test_a_regret_that_cannot_be_is_refused():
    with pytest.raises(ValueError, match=r"cumulative: found shape \(3,\)"):
        Regret([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="positive regret"):
        Regret(np.zeros((1, 50))).exponent()


def test_a_bandit_of_the_first_version_goes_on():
    bandit = FieldBandit.load(DATA / "version-1-bandit.beta")
    assert (bandit.n_pulls, [pull.id for pull in bandit.pending]) == (27, [24, 26])
    # Rewards followed a rule: the second of a pair at points 2 and 3, the first every third time.
    values, arrays = persistence.read(DATA / "version-1-bandit.beta", "bandit")
    points, index = np.array([0.0, 0.25, 0.5, 1.0]), arrays["index"][:24]
    paid = np.where(np.arange(24) % 2, index > 1, np.arange(24) // 2 % 3 == 0)
    for x in points:
        near = np.abs(points[index] - x) <= 0.3
        found = bandit.posterior({"x0": x})
        assert found.alpha == 1 + np.sum(paid & near)
        assert found.beta == 1 + np.sum(~paid & near)
    bandit.update(bandit.pending, [True, False])
    assert bandit.pull().id == 27
    assert values["policy"] == bandit.policy == "ucb"
