"""Trackers: the posterior weights each trial by its age, in whatever order they came."""

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from betafield import contexts, persistence
from betafield.decisions import RiskTracker, false_alarm_rate

DATA = Path(__file__).parent / "data"
BOUNDS = [(0.0, 10.0), (-1.0, 1.0)]
FORGETTING = [
    pytest.param({"half_life": 3.0}, id="half life"),
    pytest.param({"window": 9.0}, id="window"),
]


def stream(seed, t=400, d=1, low=0.0, high=1.0, until=40.0):
    """Return trials anywhere, in random order of time."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(low, high, (t, d))
    return (
        X,
        rng.uniform(size=t) < 0.2 + 0.6 * (X[:, 0] - low) / (high - low),
        rng.uniform(0, until, t),
    )


def weights(times, now, half_life=None, window=None):
    """Return the weights of trials by definition; exact fractions decide on the window."""
    if half_life is not None:
        return np.array([2.0 ** (-(now - s) / half_life) for s in times])
    span = Fraction(window) / 64
    oldest = math.floor(Fraction(now) / span) - 64
    return np.array([float(math.floor(Fraction(s) / span) >= oldest) for s in times])


def in_cells(X, bounds, side):
    """Return points moved to the middle of their cells."""
    n = math.ceil(1 / side)
    middles = np.empty_like(X)
    for k, (low, high) in enumerate(bounds):
        edges = np.linspace(low, high, n + 1)
        cell = np.clip(np.searchsorted(edges, X[:, k], side="right") - 1, 0, n - 1)
        middles[:, k] = (edges[cell] + edges[cell + 1]) / 2
    return middles


def counted(Q, X, y, w, bounds, radius):
    """Return the weights of events and of others within the radius of each row of Q, one by one."""
    sides = np.array([high - low for low, high in bounds])
    near = np.linalg.norm((Q[:, None] - X[None]) / sides, axis=2) <= radius
    return near @ (w * y), near @ (w * ~y)


# Posteriors --------------------------------------------------------------------------------


@pytest.mark.parametrize("forgetting", FORGETTING)
@pytest.mark.parametrize("later", [0.0, 0.7, 11.0])
def test_posterior_is_that_of_all_trials_by_their_age(forgetting, later):
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.uniform(0, 10, 600), rng.uniform(-1, 1, 600)])
    y, times = rng.uniform(size=600) < 0.3, rng.uniform(0, 60, 600)
    # A width that is not the distance of any two points, even up to rounding.
    tracker = RiskTracker(0.2, **forgetting, bounds=BOUNDS, bandwidth=0.2371, prior=(2.0, 3.0))
    for batch in np.array_split(np.arange(600), 7):
        tracker.update(X[batch], y[batch], times[batch])
    now = times.max() + later
    Q = np.column_stack([rng.uniform(0, 10, 50), rng.uniform(-1, 1, 50)])
    middles = in_cells(X, BOUNDS, 0.2371 / 8)
    won, lost = counted(Q, middles, y, weights(times, now, **forgetting), BOUNDS, 0.2371)
    post = tracker.posterior(Q, time=now)
    np.testing.assert_allclose(post.alpha, 2 + won, rtol=1e-8)
    np.testing.assert_allclose(post.beta, 3 + lost, rtol=1e-8)
    np.testing.assert_allclose(post.mean(), (2 + won) / (5 + won + lost), rtol=1e-9)
    above = stats.beta(2 + won, 3 + lost).sf(0.2)
    np.testing.assert_allclose(post.prob_above(0.2), above, rtol=1e-7)


@given(
    st.lists(
        st.tuples(st.floats(0, 1), st.booleans(), st.floats(-50, 50)), min_size=1, max_size=40
    ),
    st.sampled_from([{"half_life": 3.0}, {"half_life": 0.37}, {"window": 9.0}, {"window": 1.7}]),
    st.randoms(use_true_random=False),
)
@settings(deadline=None, max_examples=40)
def test_order_and_batches_do_not_show(trials, forgetting, random):
    Q = np.linspace(0, 1, 9)[:, None]
    shuffled = random.sample(trials, len(trials))
    cut = random.randint(0, len(trials))
    now = max(time for _, _, time in trials)
    posts = []
    for parts in ([trials], [shuffled[:cut], shuffled[cut:]], [[trial] for trial in shuffled]):
        tracker = RiskTracker(0.2, **forgetting, bandwidth=0.3, resolution=None)
        for part in filter(None, parts):
            X, y, times = zip(*part, strict=True)
            tracker.update(np.array(X)[:, None], y, times)
        posts.append(tracker.posterior(Q, time=now + 0.1))
    for post in posts[1:]:
        np.testing.assert_array_equal(post.alpha, posts[0].alpha)
        np.testing.assert_array_equal(post.beta, posts[0].beta)
    X, y, times = (np.array(column) for column in zip(*trials, strict=True))
    # Windows end at the border of a span, so no time may lie on it up to rounding.
    w = weights(times, now + 0.1, **forgetting)
    near = np.abs(Q - X[None]) <= 0.3
    np.testing.assert_allclose(posts[0].alpha, 1 + near @ (w * y), rtol=1e-7)


@pytest.mark.parametrize("forgetting", FORGETTING)
def test_late_trials_change_sums_that_were_asked_for_before(forgetting):
    X, y, times = stream(2, until=20.0)
    order = np.argsort(times)
    order = np.concatenate([order[order % 5 > 0], order[order % 5 == 0]])
    one, many = (RiskTracker(0.5, **forgetting, bandwidth=0.2) for _ in range(2))
    one.update(X, y, times)
    for batch in np.array_split(order, 23):
        many.update(X[batch], y[batch], times[batch])
    np.testing.assert_array_equal(one.posterior(X).alpha, many.posterior(X).alpha)
    assert one.n_trials == many.n_trials == 400


@pytest.mark.parametrize("age", [0.0, 8.99, 9.0])
def test_trials_in_the_window_count_whole(age):
    tracker = RiskTracker(0.5, window=9.0)
    tracker.update([[0.5], [0.5]], [1, 0], [100.0 - age, 100.0])
    assert tracker.posterior([[0.5]]).alpha == 2.0


@pytest.mark.parametrize("age", [9.0 * 65 / 64, 9.2, 1e6])
def test_trials_out_of_the_window_do_not_count(age):
    tracker = RiskTracker(0.5, window=9.0)
    tracker.update([[0.5], [0.5]], [1, 0], [100.0 - age, 100.0])
    assert tracker.posterior([[0.5]]).alpha == 1.0
    assert tracker.n_late == 1


def test_what_is_too_old_is_counted_as_late_and_nothing_else():
    tracker = RiskTracker(0.5, half_life=1.0)
    tracker.update([[0.5]], [0], [100.0])
    before = tracker.posterior([[0.5]])
    tracker.update([[0.5]] * 3, [1, 1, 1], [10.0, 58.0, -100.0])
    after = tracker.posterior([[0.5]])
    assert (tracker.n_trials, tracker.n_late) == (4, 3)
    assert (before.alpha, before.beta) == (after.alpha, after.beta)
    assert tracker.time == 100.0


def test_of_what_is_forgotten_the_prior_remains():
    tracker = RiskTracker(0.5, half_life=1.0, prior=(2.0, 5.0))
    before = tracker.posterior([[0.1], [0.9]])
    tracker.update([[0.1]], [1], times=0.0)
    assert tracker.posterior([[0.1]]).alpha == 3.0
    for post in (
        before,
        tracker.posterior([[0.1], [0.9]], time=39.0)[1:],
        *(tracker.posterior([[0.1]], time=later) for later in (45.0, 1e9)),
    ):
        assert set(post.alpha) == {2.0}
        assert set(post.beta) == {5.0}


def test_distorted_trials_share_by_their_likelihood():
    rng = np.random.default_rng(3)
    y, times = rng.uniform(size=40) < 0.5, rng.uniform(0, 6, 40)
    chance = contexts.guess_lapse(guess=np.where(np.arange(40) % 2, 0.5, 0.0), lapse=0.02)
    tracker = RiskTracker(0.3, half_life=3.0, bandwidth=1.0)
    tracker.update(np.full((40, 1), 0.5), y, times, context=chance)
    p = np.linspace(0, 1, 200_001)
    log = np.zeros_like(p)
    for (low, high), won, w in zip(chance, y, weights(times, times.max(), 3.0), strict=True):
        rate = low + (high - low) * p
        with np.errstate(divide="ignore"):
            log += w * np.log(rate if won else 1 - rate)
    density = np.exp(log - log.max())
    post = tracker.posterior([[0.5]])
    assert post.mean()[0] == pytest.approx(np.average(p, weights=density), abs=2e-3)
    assert post.prob_above(0.3)[0] == pytest.approx(
        density[p > 0.3].sum() / density.sum(), abs=5e-3
    )


def test_a_trial_that_teaches_nothing_is_seen_and_changes_nothing():
    tracker = RiskTracker(0.3, half_life=3.0)
    tracker.update([[0.5]], [1], [0.0], context=(0.4, 0.4))
    assert tracker.n_trials == 1
    assert tracker.posterior([[0.5]]).alpha == 1.0


# Memory ------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize(
    ("forgetting", "spans"),
    [
        pytest.param({"half_life": 10.0}, 41, id="half life"),
        pytest.param({"window": 100.0}, 65, id="window"),
    ],
)
def test_memory_is_bounded_by_cells_and_spans(forgetting, spans):
    rng = np.random.default_rng(4)
    tracker = RiskTracker(0.9, **forgetting, bandwidth=0.2)
    sizes = []
    for start in range(0, 1_000_000, 20_000):
        X, late = rng.uniform(size=(20_000, 1)), rng.exponential(30.0, 20_000)
        times = np.linspace(start, start + 20_000, 20_000) / 500 - late
        tracker.update(X, X[:, 0] < 0.3, times)
        sizes.append(tracker.n_places)
    cells = 40
    assert max(sizes) <= cells * spans
    assert max(sizes[25:]) <= max(sizes[:25]) * 1.05
    assert tracker.n_trials == 1_000_000


# Alarms ------------------------------------------------------------------------------------


def run(tracker, risk, days, seed=0, per_day=60):
    """Give a tracker some days of trials, and return the alarms that began, with the day."""
    rng, began = np.random.default_rng(seed), []
    for day in days:
        X = rng.uniform(size=(per_day, 1))
        alarms = tracker.update(X, rng.uniform(size=per_day) < risk(X[:, 0], day), times=day)
        began += [(day, *alarm["place"].tolist()) for alarm in alarms]
    return began


def jump(x, day):
    return np.where((x > 0.6) & (day >= 40) & (day < 80), 0.6, 0.05)


@pytest.mark.parametrize(
    "forgetting",
    [
        pytest.param({"half_life": 8.0}, id="half life"),
        pytest.param({"window": 16.0}, id="window"),
    ],
)
def test_alarms_begin_after_a_jump_where_it_is_and_end_after_it(forgetting):
    tracker = RiskTracker(0.2, **forgetting, alarm=0.999, bandwidth=0.1)
    began = run(tracker, jump, range(80))
    places = [place for _, place in began]
    assert len(places) == len(set(places))
    assert {0.7, 0.8, 0.9, 1.0} <= {round(place, 9) for place in places}
    assert all(40 <= day < (60 if place > 0.65 else 80) and place > 0.45 for day, place in began)
    told = tracker.alarms()
    assert {(since, *place) for since, place in zip(told["since"], told["place"], strict=True)} == {
        (float(day), place) for day, place in began
    }
    assert run(tracker, jump, range(80, 160), seed=1) == []
    assert len(tracker.alarms()) == 0


def test_an_alarm_tells_what_is_believed_there():
    tracker = RiskTracker(0.2, half_life=8.0, bandwidth=0.1)
    run(tracker, jump, range(60))
    told = tracker.alarms()
    post = tracker.posterior(told["place"])
    assert len(told)
    np.testing.assert_array_equal(told["probability"], post.prob_above(0.2))
    np.testing.assert_array_equal(told["mean"], post.mean())
    np.testing.assert_array_equal([told["low"], told["high"]], post.interval(0.95))
    elsewhere = tracker.alarms(X=[[0.05], [0.85]])
    assert elsewhere["place"].tolist() == [[0.85]]
    assert np.isnan(elsewhere["since"]).all()


def test_an_alarm_stays_until_it_is_cleared_and_may_then_begin_again():
    tracker = RiskTracker(0.45, window=1e6, alarm=0.9, clear=0.5, places=[[0.5]])
    heads = [1] * 4 + [0, 0] + [1, 1] + [0] * 8 + [1] * 12
    on, expected, was, won, lost = [], [], False, 0, 0
    for time, y in enumerate(heads):
        began = len(tracker.update([[0.5]], [y], times=float(time)))
        won, lost = won + y, lost + (1 - y)
        above = stats.beta(1 + won, 1 + lost).sf(0.45)
        now = above > 0.9 or (was and above >= 0.5)
        on.append((began, len(tracker.alarms())))
        expected.append((int(now and not was), int(now)))
        was = now
    assert on == expected
    assert sum(began for began, _ in on) == 2


def test_time_alone_ends_an_alarm_and_asking_changes_nothing():
    tracker = RiskTracker(0.3, half_life=1.0, places=[[0.5]])
    assert len(tracker.update([[0.5]] * 50, [1] * 50, times=0.0)) == 1
    assert [len(tracker.alarms(time=time)) for time in (0.0, 2.0, 39.0)] == [1, 1, 1]
    # The prior alone gives 0.7 > clear.
    strict = RiskTracker(0.3, half_life=1.0, places=[[0.5]], clear=0.8)
    strict.update([[0.5]] * 50, [1] * 50, times=0.0)
    assert [len(strict.alarms(time=time)) for time in (0.0, 2.0, 39.0)] == [1, 1, 0]
    assert len(strict.alarms()) == 1


def test_places_are_a_grid_as_fine_as_the_windows():
    tracker = RiskTracker(0.2, window=1.0, bounds=BOUNDS, bandwidth=0.3)
    assert tracker.places_.shape == (25, 2)
    assert tracker.places_.min(axis=0).tolist() == [0.0, -1.0]
    assert tracker.places_.max(axis=0).tolist() == [10.0, 1.0]
    assert len(tracker.alarms()) == 0


# False alarms ------------------------------------------------------------------------------


@pytest.mark.parametrize("threshold", [0.02, 0.2, 0.5, 0.9])
@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_one_look_is_false_no_more_often_than_stated(threshold, level):
    for n in [1, 2, 3, 10, 57, 400]:
        S = np.arange(n + 1)
        alarms = stats.beta(1 + S, 1 + n - S).sf(threshold) > level
        chance = stats.binom(n, threshold).pmf(S)[alarms].sum()
        assert chance <= (1 - level) / threshold * (1 + 1e-9)


@pytest.mark.long
def test_measured_looks_keep_the_bound_and_a_higher_level_has_fewer_alarms():
    options = {"threshold": 0.3, "window": 5.0, "bounds": [(0, 1)], "bandwidth": 0.25}
    found = [
        false_alarm_rate({**options, "alarm": level}, rate=60.0, n_trials=6_000, batch=30)
        for level in (0.9, 0.99, 0.999)
    ]
    for each, level in zip(found, (0.9, 0.99, 0.999), strict=True):
        assert each.looks == 5 * 200
        assert each.share <= (1 - level) / 0.3
        assert each.per_100_000 == pytest.approx(each.began / 0.06)
    assert found[0].began > found[1].began > found[2].began
    assert false_alarm_rate(options, rate=60.0, risk=0.05, n_trials=2_000).began == 0


# Files -------------------------------------------------------------------------------------


@pytest.mark.parametrize("forgetting", FORGETTING)
def test_a_saved_tracker_goes_on_as_if_nothing_had_been(forgetting, tmp_path):
    kept = RiskTracker(0.2, **forgetting, alarm=0.9, bounds=np.array([[0.0, 1.0]]))
    run(kept, jump, range(45))
    kept.update([[0.2]], [1], [44.5], context=contexts.background(0.1))
    kept.save(tmp_path / "tracker.beta")
    loaded = RiskTracker.load(tmp_path / "tracker.beta")
    assert len(kept.alarms())
    np.testing.assert_array_equal(loaded.alarms(), kept.alarms())
    assert run(loaded, jump, range(45, 60), seed=3) == run(kept, jump, range(45, 60), seed=3)
    np.testing.assert_array_equal(loaded.alarms(time=61.0), kept.alarms(time=61.0))
    for name in ("time", "n_trials", "n_late", "n_places"):
        assert getattr(loaded, name) == getattr(kept, name)
    loaded.save(tmp_path / "again.beta")
    kept.save(tmp_path / "tracker.beta")
    assert (tmp_path / "again.beta").read_bytes() == (tmp_path / "tracker.beta").read_bytes()


def test_a_tracker_without_trials_can_be_saved(tmp_path):
    RiskTracker(0.2, window=3.0).save(tmp_path / "new.beta")
    loaded = RiskTracker.load(tmp_path / "new.beta")
    assert loaded.n_trials == 0
    loaded.update(pd.DataFrame({"dose": [0.5]}), [1], 0.0)
    loaded.save(tmp_path / "new.beta")
    with pytest.raises(ValueError, match="feature names"):
        RiskTracker.load(tmp_path / "new.beta").update(pd.DataFrame({"age": [0.5]}), [1], 0.0)


DAMAGE = {
    "a span that is forgotten": lambda _, a: a.update(spans=a["spans"] - 100),
    "a span to come": lambda _, a: a.update(spans=a["spans"] + 1),
    "spans that fall": lambda _, a: a.update(spans=a["spans"][::-1].copy()),
    "a negative count": lambda _, a: a.update({"counts.0": -1 - a["counts.0"]}),
    "counts of three kinds": lambda _, a: a.update({"counts.0": a["counts.0"][[0, 1, 1]]}),
    "NaN as a place": lambda _, a: a.update({"axes.0": a["axes.0"] * np.nan}),
    "a place out of bounds": lambda _, a: a.update({"axes.0": a["axes.0"] + 3.0}),
    "places that fall": lambda _, a: a.update({"axes.0": a["axes.0"][:, ::-1].copy()}),
    "an unknown context": lambda _, a: a.update(contexts=a["contexts"] / 2),
    "an alarm to come": lambda _, a: a.update(since=np.full_like(a["since"], 1e9)),
    "alarms elsewhere": lambda _, a: a.update(since=a["since"][1:]),
    "another array": lambda _, a: a.update(more=np.zeros(1)),
    "no array": lambda _, a: a.pop("axes.0"),
    "no time": lambda v, _: v.update(time=None),
    "a huge time": lambda v, _: v.update(time=1e300),
    "no trials": lambda v, _: v.update(n_trials=0, n_late=0),
    "more late than all": lambda v, _: v.update(n_late=10**6),
    "no features": lambda v, _: v.update(n_features=0),
    "names of others": lambda v, _: v.update(names=["a", "b"]),
    "another field": lambda v, _: v.update(other=1),
    "an impossible option": lambda v, _: v["options"].update(threshold=2.0),
}


@pytest.mark.parametrize("damage", [pytest.param(f, id=name) for name, f in DAMAGE.items()])
def test_a_file_that_holds_no_sound_tracker_is_refused(damage, tmp_path):
    tracker = RiskTracker(0.2, half_life=4.0, alarm=0.9)
    run(tracker, jump, range(6))
    tracker.save(tmp_path / "tracker.beta")
    values, arrays = persistence.read(tmp_path / "tracker.beta", "tracker")
    damage(values, arrays)
    persistence.write(tmp_path / "tracker.beta", "tracker", values, arrays)
    with pytest.raises(ValueError, match="does not contain a consistent tracker"):
        RiskTracker.load(tmp_path / "tracker.beta")


# Bad input ---------------------------------------------------------------------------------

GOOD = {"threshold": 0.2, "half_life": 3.0}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param({"half_life": None}, "half_life, window: found neither", id="neither"),
        pytest.param({"window": 3.0}, "half_life, window: found both", id="both"),
        pytest.param({"half_life": 0.0}, "half_life: found 0.0", id="half life 0"),
        pytest.param({"half_life": math.inf}, "half_life: found inf", id="half life inf"),
        pytest.param({"half_life": None, "window": -1}, "window: found -1", id="window"),
        pytest.param({"half_life": "3"}, "half_life: found '3'", id="text"),
        pytest.param({"threshold": 0.0}, "threshold: found 0.0", id="threshold 0"),
        pytest.param({"threshold": 1.0}, "threshold: found 1.0", id="threshold 1"),
        pytest.param({"threshold": math.nan}, "threshold: found NaN", id="threshold NaN"),
        pytest.param({"threshold": np.ma.masked}, "threshold: found masked", id="masked"),
        pytest.param({"threshold": 0.2 + 0j}, "threshold: found", id="complex"),
        pytest.param({"half_life": np.timedelta64(3, "s")}, "half_life: found 3", id="a time"),
        pytest.param({"half_life": np.ma.masked}, "half_life: found masked", id="masked half life"),
        pytest.param({"half_life": 10**400}, "half_life: found 1000", id="a huge half life"),
        pytest.param({"half_life": 5e-324}, "half_life: found 5e-324; spans", id="half life tiny"),
        pytest.param({"half_life": None, "window": 5e-324}, "window: found 5e-324", id="tiny"),
        pytest.param(
            {"bounds": [(0, 1)], "bandwidth": 5e-324}, "bandwidth: found parts", id="thin"
        ),
        pytest.param(
            {"bounds": [(0, 1)], "bandwidth": 5e-324, "resolution": None},
            "bandwidth: found parts",
            id="a grid too fine",
        ),
        pytest.param(
            {"bounds": [(0, 1)], "bandwidth": 1e-20, "places": [[0.5]]},
            "bandwidth: found parts",
            id="cells too fine",
        ),
        pytest.param({"bounds": [("0", "9")]}, "bounds row 0, column 0: found '0'", id="as text"),
        pytest.param(
            {"bounds": np.ma.array([[0, 1]], mask=[[0, 1]])}, "bounds row 0.*masked", id="mask"
        ),
        pytest.param(
            {"bounds": np.array([[0, 1]], "M8[s]")}, "bounds row 0", id="from date to date"
        ),
        pytest.param(
            {"bounds": [(0, 1)], "places": np.ma.array([[0.5]], mask=[[1]])},
            "places row 0.*masked",
            id="masked places",
        ),
        pytest.param(
            {"bounds": [(0, 1)], "places": [[1j]]}, "places row 0.*1j", id="complex places"
        ),
        pytest.param({"alarm": 1.0}, "alarm: found 1.0", id="alarm"),
        pytest.param({"alarm": 0.9, "clear": 0.95}, "clear: found 0.95", id="clear"),
        pytest.param({"bandwidth": "auto"}, "bandwidth: found 'auto'", id="bandwidth"),
        pytest.param({"resolution": 0}, "resolution: found 0", id="resolution"),
        pytest.param({"bounds": [(0, 0)]}, "bounds row 0", id="no width"),
        pytest.param({"bounds": [(1, 0)]}, "bounds row 0", id="bounds upside down"),
        pytest.param({"bounds": [0, 1]}, "bounds: found shape", id="flat bounds"),
        pytest.param({"bounds": [(0, math.nan)]}, "bounds row 0", id="bounds NaN"),
        pytest.param({"bounds": [(-1e308, 1e308)]}, "bounds row 0", id="bounds too wide"),
        pytest.param({"bounds": 3}, "bounds: found", id="bounds a number"),
        pytest.param({"bounds": [(0, 1)], "prior": (0, 1)}, "prior: found", id="prior"),
        pytest.param(
            {"bounds": [(0, 1)] * 6, "bandwidth": 0.1}, "places: found none", id="a huge grid"
        ),
        pytest.param({"bounds": [(0, 1)], "places": [[0, 1]]}, "places: found shape", id="places"),
        pytest.param({"bounds": [(0, 1)], "places": [[math.nan]]}, "places row 0.*NaN", id="NaN"),
        pytest.param({"bounds": [(0, 1)], "places": "here"}, "places: ", id="places as text"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        RiskTracker(**{**GOOD, **options})


@pytest.mark.parametrize(
    ("given_", "error", "message"),
    [
        pytest.param({"times": [1, math.nan]}, ValueError, "times row 1: found NaN", id="NaN"),
        pytest.param(
            {"times": np.ma.masked}, ValueError, "times: found a masked", id="masked time"
        ),
        pytest.param(
            {"times": np.ma.array([1, 2], mask=[0, 1])}, ValueError, "times row 1.*mask", id="mask"
        ),
        pytest.param({"times": [1, 2j]}, TypeError, "times: found complex", id="complex times"),
        pytest.param({"now": np.timedelta64(5, "s")}, ValueError, "now: found 5", id="now a time"),
        pytest.param({"now": np.ma.masked}, ValueError, "now: found masked", id="now masked"),
        pytest.param({"times": [math.inf, 1]}, ValueError, "times row 0: found inf", id="inf"),
        pytest.param({"times": [1, 1e300]}, ValueError, "times row 1: found 1e", id="huge"),
        pytest.param({"times": [1, -1e15]}, ValueError, "times row 1: found -1000", id="long ago"),
        pytest.param({"times": [1]}, ValueError, "times: found shape", id="too few times"),
        pytest.param({"times": ["a", "b"]}, TypeError, "times: found <U1", id="times as text"),
        pytest.param({"times": [True, False]}, TypeError, "times: found bool", id="times as bool"),
        pytest.param(
            {"times": np.array(["2020-01-01"] * 2, dtype="M8[s]")},
            TypeError,
            "times: found datetime64",
            id="dates",
        ),
        pytest.param({"times": None}, TypeError, "times: found object", id="no times"),
        pytest.param({"now": 5.0, "times": [1, 6]}, ValueError, "times row 1.*now", id="to come"),
        pytest.param({"now": math.nan}, ValueError, "now: found NaN", id="now NaN"),
        pytest.param({"now": 1e300}, ValueError, "now row 0: found 1e", id="now huge"),
        pytest.param({"X": [[0.5], [1.5]]}, ValueError, "X row 1, column 0: found 1.5", id="out"),
        pytest.param({"X": [[0.5], [math.nan]]}, ValueError, "X row 1", id="X NaN"),
        pytest.param({"X": [[0.5, 0.5]] * 2}, ValueError, "features", id="X wide"),
        pytest.param({"y": [0, 2]}, ValueError, "y row 1: found 2", id="y 2"),
        pytest.param({"y": [0]}, ValueError, "y: found 1 rows", id="too few y"),
        pytest.param({"y": None}, ValueError, "y", id="no y"),
        pytest.param({"context": (0.5, 2.0)}, ValueError, "context", id="impossible context"),
        pytest.param({"context": [[0, 1, 1]]}, ValueError, "context: found 3", id="pooled"),
    ],
)
def test_trials_that_make_no_sense_are_refused_and_change_nothing(given_, error, message, tmp_path):
    good = {"X": [[0.5], [0.6]], "y": [0, 1], "times": [1.0, 2.0]}
    tracker = RiskTracker(**GOOD)
    with pytest.raises((ValueError, TypeError)):
        tracker.update([[0.5, 0.5]] * 2, [0, 1], [math.nan, 1.0])
    tracker.update(**good)  # the failed update has not even fixed the number of features
    tracker.save(tmp_path / "before")
    with pytest.raises(error, match=message):
        tracker.update(**{**good, **given_})
    tracker.save(tmp_path / "after")
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()


def test_too_many_contexts_are_refused_and_none_is_kept(tmp_path):
    tracker = RiskTracker(**GOOD)
    rates = np.linspace(0, 0.5, 200)
    points, y = np.full((200, 1), 0.5), np.ones(200)
    tracker.update(points, y, 0.0, context=contexts.background(rates))
    tracker.update(points, y, 0.0, context=contexts.background(rates))
    tracker.save(tmp_path / "before")
    with pytest.raises(ValueError, match="context: found 400 different ones"):
        tracker.update(points, y, 0.0, context=contexts.background(rates[::-1] + 0.0011))
    tracker.save(tmp_path / "after")
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"bandwidth": 1e-14, "places": [[0.5]]}, id="narrow"),
        pytest.param({"bandwidth": 5e-324, "places": [[0.5]], "resolution": None}, id="thin"),
        pytest.param({"bandwidth": 1e308, "resolution": 1e308}, id="wide"),
        pytest.param({"half_life": 1e308}, id="for ever"),
        pytest.param({"half_life": 3e-308}, id="a moment"),
        pytest.param({"threshold": 5e-324, "alarm": 1 - 1e-16}, id="threshold"),
        pytest.param({"bounds": [(0, 5e-324)], "places": [[0.0]]}, id="a domain of two points"),
    ],
)
def test_options_at_the_edge_count_a_trial_as_one(options):
    options = {**GOOD, "bounds": [(0, 1)], **options}
    tracker = RiskTracker(**options)
    place = [[0.5]] if options["bounds"] == [(0, 1)] else [[0.0]]
    tracker.update(place, [1], times=0.0)
    assert tracker.posterior(place).alpha == pytest.approx([2.0])


def test_the_past_cannot_be_asked():
    tracker = RiskTracker(**GOOD)
    tracker.update([[0.5]], [1], [3.0], now=4.0)
    assert tracker.time == 4.0
    for ask in (tracker.alarms, lambda time: tracker.posterior([[0.5]], time=time)):
        with pytest.raises(ValueError, match=r"time: found 3\.5; not before"):
            ask(time=3.5)
        with pytest.raises(ValueError, match="time: found NaN"):
            ask(time=math.nan)
        with pytest.raises(ValueError, match="time row 0: found 1e"):
            ask(time=1e200)


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        pytest.param({"rate": 0.0}, "rate: found 0.0", id="rate"),
        pytest.param({"options": GOOD}, "options: found no bounds", id="bounds"),
        pytest.param({"risk": 0.3}, "risk row 0: found 0.3", id="risk"),
        pytest.param({"risk": "0.1"}, "risk: found '0.1'", id="text"),
        pytest.param({"risk": lambda X: X}, "risk: found shape", id="risk of two axes"),
        pytest.param({"risk": np.ma.masked}, "risk: found a masked", id="masked"),
        pytest.param({"random_state": -1}, "random_state: found -1", id="seed"),
        pytest.param({"batch": 0}, "batch: found 0", id="batch"),
        pytest.param({"n_trials": 1.5}, "n_trials: found 1.5", id="n_trials"),
    ],
)
def test_simulations_that_make_no_sense_are_refused(given_, message):
    with pytest.raises(ValueError, match=message):
        false_alarm_rate(**{"options": {**GOOD, "bounds": [(0, 1)]}, "rate": 1.0, **given_})


def test_a_tracker_of_the_first_version_goes_on():
    tracker = RiskTracker.load(DATA / "version-1-tracker.beta")
    assert (tracker.n_trials, tracker.n_late) == (271, 1)
    _, arrays = persistence.read(DATA / "version-1-tracker.beta", "tracker")
    now = tracker.time + 3.0
    Q = np.array([[1.0], [4.9], [8.1]])
    shapes = np.tile([2.0, 3.0], (3, 1))
    for i, span in enumerate(arrays["spans"]):
        places, (lost, won) = arrays[f"axes.{i}"][0], arrays[f"counts.{i}"]
        left = 2.0 ** (-32 - (now / 4.0 - (span + 1)))  # counts have units of 2⁻³² at a span's end
        near = np.abs(Q - places) <= 2.5
        shapes += left * np.stack([near @ won, near @ lost], axis=1)
    post = tracker.posterior(Q, time=now)
    np.testing.assert_allclose([post.alpha, post.beta], shapes.T, rtol=1e-8)
    assert len(tracker.update([[9.0]] * 90, [1] * 90, times=now)) + len(tracker.alarms())
