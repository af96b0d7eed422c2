"""The default model: it is a function of its trials only, and its answers are right."""

import tracemalloc
from pathlib import Path

import dask.array
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.datasets import load_iris
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_predict

import betafield.dask
from betafield import SmoothBetaClassifier, contexts, load

ROOT = Path(__file__).parents[1]

# Settling.

KINDS = ("plain", "weights", "affine", "pools", "three")


@st.composite
def tables(draw):
    """Return points, outcomes and further arguments, at few places and at many."""
    kind, d = draw(st.sampled_from(KINDS)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    t = draw(st.sampled_from([3, 20, 60]))
    X = rng.integers(0, 5, size=(t, d)) / 4 if draw(st.booleans()) else rng.normal(size=(t, d))
    y = rng.integers(0, 3 if kind == "three" else 2, size=t)
    more = {}
    if kind == "weights":
        more["sample_weight"] = rng.integers(1, 9, size=t) / 4
    if kind == "affine":
        more["context"] = contexts.guess_lapse(rng.choice([0.0, 0.25, 0.5], t), 0.02)
    if kind == "pools":
        more["context"] = contexts.pooled(rng.integers(1, 4, t), 0.9, 0.95)
    return X, y, [0, 1, 2] if kind == "three" else [0, 1], more


def some(table, rows):
    X, y, classes, more = table
    return X[rows], y[rows], classes, {name: value[rows] for name, value in more.items()}


def learned(table):
    X, y, classes, more = table
    return SmoothBetaClassifier().partial_fit(X, y, classes=classes, **more)


def bits(model, X):
    posterior = model.posterior(X)
    return posterior.mean().tobytes(), posterior.ppf(0.9).tobytes(), model.weights_.tobytes()


@settings(max_examples=25)
@given(table=tables(), seed=st.integers(0, 1000), asks=st.booleans())
def test_neither_order_nor_batches_nor_merges_can_be_seen(table, seed, asks, tmp_path_factory):
    X, rng = table[0], np.random.default_rng(seed)
    at = np.vstack([X[:3], rng.normal(size=(2, X.shape[1]))])
    expected = bits(learned(table), at)
    order = rng.permutation(len(X))
    parts = [p for p in np.array_split(order, rng.integers(1, 5)) if len(p)]
    streamed, merged = learned(some(table, parts[0])), learned(some(table, parts[-1]))
    for part in parts[1:]:
        if asks:
            streamed.posterior(at)
        X_, y_, _, more = some(table, part)
        streamed.partial_fit(X_, y_, **more)
    for part in parts[:-1]:
        merged.merge(learned(some(table, part)))
    assert bits(streamed.settle(), at) == expected
    assert streamed.settled_
    assert bits(merged.settle().set_params(n_jobs=2), at) == expected
    path = tmp_path_factory.getbasetemp() / "model"
    merged.save(path)
    assert bits(load(path), at) == expected


def test_a_stream_is_settled_anew_after_a_tenth_more_trials():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(330, 1))
    y = rng.uniform(size=330) < X[:, 0]
    model = SmoothBetaClassifier().fit(X[:300], y[:300])
    assert model.settled_
    assert not model.partial_fit(X[300:320], y[300:320]).settled_
    assert model.partial_fit(X[320:], y[320:]).n_trials_ == 330
    assert not model.settled_
    assert model.partial_fit(X[:1], y[:1]).settled_  # 331 > 1.1 · 300


# Answers.


def test_a_line_is_learned_and_held_by_its_intervals():
    rng = np.random.default_rng(1)
    x = np.linspace(0.05, 0.95, 19)[:, None]
    held, errors = [], []
    for _ in range(20):
        X = rng.uniform(size=(500, 1))
        model = SmoothBetaClassifier().fit(X, rng.uniform(size=500) < X[:, 0])
        low, high = model.posterior(x).interval(0.95)
        held.append(np.mean((low < x[:, 0]) & (x[:, 0] < high)))
        errors.append(np.mean((model.predict_proba(x)[:, 1] - x[:, 0]) ** 2))
    assert np.mean(held) > 0.9
    # A straight line fitted by least squares has an error of about 2 π(1−π)/t.
    assert np.mean(errors) < 2 * (2 * (1 / 6) / 500)


@pytest.mark.parametrize("d", [1, 2])
def test_events_that_never_happened_may_yet_happen(d):
    """With 0 of t, the upper limit is 3/t by the rule of three, and 3.7/t exactly."""
    X = np.random.default_rng(2).uniform(size=(300, d))
    for y, side in ((np.zeros(300, int), 1), (np.ones(300, int), 0)):
        posterior = SmoothBetaClassifier().fit_counts(X, y, 1).posterior(X[:50])
        low, high = posterior.interval(0.95)
        end = high if side else 1 - low
        assert ((end > 3 / 300) & (end < 12 / 300)).all()


@pytest.mark.parametrize("held", [10**7, 10**10])
def test_rates_without_any_order_are_learned_of_many_trials(held):
    """Neighbours differ by up to 0.8, and every rate is known to a few times √(π(1−π)/n)."""
    x, pi = np.linspace(0, 1, 100)[:, None], np.random.default_rng(4).choice([0.1, 0.9], 100)
    model = SmoothBetaClassifier().fit_counts(x, np.rint(pi * held).astype(int), held)
    found = model.posterior(x).mean()
    assert np.abs(found - pi).max() < 5 * np.sqrt(0.09 / held)


def test_so_many_trials_that_evidence_is_in_the_billions():
    """The evidence of different units then differs too much for floats, or not at all."""
    model = SmoothBetaClassifier().fit_counts([[1.0], [2.0], [4.0]], [1e14, 2e14, 1e14], 3e14)
    found = model.posterior([[1.0], [2.0], [4.0]]).mean()
    assert found == pytest.approx([1 / 3, 2 / 3, 1 / 3], abs=1e-5)


@pytest.mark.long
def test_rare_events_are_held():
    rng, held = np.random.default_rng(3), []
    for _ in range(60):
        X = rng.uniform(size=(300, 1))
        y = (rng.uniform(size=300) < 0.01).astype(int)
        low, high = SmoothBetaClassifier().fit_counts(X, y, 1).posterior(X[:50]).interval(0.95)
        held.append(np.mean((low < 0.01) & (high > 0.01)))
    assert np.mean(held) > 0.93


def test_trials_at_one_point_are_nearly_one_beta():
    model = SmoothBetaClassifier().fit_counts([[0.1]], [100], [500])
    posterior = model.posterior([[0.1]])
    beta = stats.beta(101, 401)
    assert posterior.mean() == pytest.approx([beta.mean()], abs=0.002)
    ends = np.ravel(posterior.interval(0.95))
    assert ends == pytest.approx(beta.ppf([0.025, 0.975]), abs=0.006)


def test_far_from_all_trials_the_base_rate_remains():
    rng = np.random.default_rng(4)
    X = rng.uniform(size=(2_000, 2))
    y = rng.uniform(size=2_000) < 0.2 + 0.2 * X[:, 0]
    posterior = SmoothBetaClassifier().fit(X, y).posterior([[50.0, -50.0], [0.5, 0.5]])
    assert posterior.mean()[0] == pytest.approx(y.mean(), abs=0.05)
    away, amid = np.diff(posterior.interval(0.95), axis=0)[0]
    assert away > 3 * amid


@pytest.mark.long
def test_one_outlier_changes_little_elsewhere():
    errors = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.uniform(size=(2_000, 2))
        truth = 0.5 + 0.4 * np.sin(6 * X[:, 0])
        y = rng.uniform(size=2_000) < truth
        tables = (X, y), (np.vstack([X, [[1000.0, 1000.0]]]), np.append(y, True))
        chances = [SmoothBetaClassifier().fit(*each).predict_proba(X)[:, 1] for each in tables]
        errors.append([np.mean((p - truth) ** 2) for p in chances])
    without, with_it = np.mean(errors, axis=0)
    assert with_it < 1.1 * without


def test_a_guess_rate_that_is_told_leaves_the_curve():
    rng = np.random.default_rng(6)
    X = rng.uniform(size=(3_000, 1))
    truth = 1 / (1 + np.exp(-10 * (X[:, 0] - 0.5)))
    task = contexts.guess_lapse(0.5, 0.02)
    y = rng.uniform(size=3_000) < contexts.probability(task, truth)
    told = SmoothBetaClassifier().fit(X, y, context=task).predict_proba(X)[:, 1]
    right = SmoothBetaClassifier().fit(X, y).predict_proba(X)[:, 1]
    inverted = np.clip((right - 0.5) / 0.48, 0, 1)
    assert np.mean((told - truth) ** 2) < 1.05 * np.mean((inverted - truth) ** 2)


def test_effects_of_days_are_found():
    rng = np.random.default_rng(7)
    effect, day, hour = rng.normal(size=100), rng.integers(0, 100, 6_000), rng.random(6_000)
    truth = 1 / (1 + np.exp(0.8 - effect[day] - 0.8 * (hour - 0.5)))
    X = np.column_stack([day, hour])
    model = SmoothBetaClassifier().fit(X, rng.random(6_000) < truth)
    p, alone = model.predict_proba(X)[:, 1], (truth.mean() - truth) ** 2
    assert np.mean((p - truth) ** 2) < 0.2 * alone.mean()
    low, high = model.posterior(X).interval(0.95)
    assert np.mean((low < truth) & (truth < high)) > 0.9


def test_a_curve_has_no_spikes_where_it_was_tested():
    """Hearing at six levels of loudness, with about 800 trials each."""
    table = np.genfromtxt(ROOT / "examples/data/ome.csv", delimiter=",", names=True, dtype=None)
    correct, trials = table["correct"], table["trials"]
    model = SmoothBetaClassifier()
    model.fit_counts(table["loud"][:, None], correct, trials, context=contexts.guess_lapse(0.5))
    levels = np.unique(table["loud"])[:, None]
    mean = model.posterior(levels).mean()
    for nearby in (levels - 0.01, levels + 0.01):
        np.testing.assert_allclose(model.posterior(nearby).mean(), mean, atol=0.005)


@pytest.mark.long
def test_three_classes_add_up_and_predict_well():
    X, y = load_iris(return_X_y=True)
    chances = cross_val_predict(SmoothBetaClassifier(), X, y, cv=5, method="predict_proba")
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    assert log_loss(y, chances) < 0.155  # the best of scikit-learn's usual models, with defaults


# Memory.


def peak(t, d):
    """Return the peak of allocated memory during a fit of t trials, and the bytes of X and y."""
    rng = np.random.default_rng(t)
    X = rng.uniform(size=(t, d))
    y = (rng.uniform(size=t) < 0.5 + 0.4 * np.cos(3.0 * X.sum(axis=1))).astype(np.int64)
    tracemalloc.start()
    try:
        SmoothBetaClassifier().fit(X, y)
        return tracemalloc.get_traced_memory()[1], X.nbytes + y.nbytes
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("d", "t"), [(1, 300_000), pytest.param(2, 1_000_000, marks=pytest.mark.long)]
)
def test_more_trials_take_at_most_three_times_the_memory_of_x_and_y(d, t):
    """A difference, because grids and bases take the same memory for any number of trials."""
    peak(5_000, d)  # imports and compiles on first use
    some, more = peak(t, d), peak(2 * t, d)
    assert more[0] - some[0] <= 3 * (more[1] - some[1])


# Refusals.


def test_options_of_windows_are_refused_with_what_to_do():
    X, y = [[0.0], [1.0]], [0, 1]
    for options, said in (
        ({"prior": (2.0, 1.0)}, "prior: .* give method='windows' or a bandwidth"),
        ({"sharing": "mean"}, "sharing: .* give method='windows' or a bandwidth"),
        ({"method": "process", "bandwidth": 0.1}, "bandwidth: .* leave one of the two out"),
    ):
        with pytest.raises(ValueError, match=said):
            SmoothBetaClassifier(**options).fit(X, y)


def test_trials_are_kept_for_one_method():
    X, y = [[0.0], [1.0]], [0, 1]
    model, windows = SmoothBetaClassifier().fit(X, y), SmoothBetaClassifier(0.1).fit(X, y)
    with pytest.raises(ValueError, match=r"^method: .* fit all trials again"):
        model.set_params(bandwidth=0.1).partial_fit(X, y)
    with pytest.raises(ValueError, match=r"^other: .* both must be of windows"):
        windows.merge(SmoothBetaClassifier().fit(X, y))
    assert (model.n_trials_, windows.n_trials_) == (2, 2)


def test_a_logarithm_needs_positive_values():
    with pytest.raises(ValueError, match=r"^X row 1, column 0: found -1.0; where scale is 'log'"):
        SmoothBetaClassifier(scale="log").fit([[2.0], [-1.0]], [0, 1])


def test_a_feature_may_lose_its_logarithm():
    rng = np.random.default_rng(8)
    X = np.exp(2.0 * rng.normal(size=(400, 1)))
    y = rng.uniform(size=400) < 1 / (1 + np.exp(-np.log(X[:, 0])))
    model = SmoothBetaClassifier().fit(X, y)
    assert any("log" in units for units in model.weights_["units"])
    model.partial_fit([[0.0]], [0])
    assert all("log" not in units for units in model.weights_["units"])
    assert np.isfinite(model.predict_proba([[0.0], [1.0]])).all()


def test_a_range_beyond_floats_is_refused_however_trials_come(tmp_path):
    X, y = np.array([[-1.0], [-0.5], [0.5], [1.0]]) * 1.7e308, [0, 1, 0, 1]
    said = r"X column 0: found values from -1.7e\+308 to 1.7e\+308; .* rescale the feature"
    model, other = (
        SmoothBetaClassifier().fit(X[:2], [0, 1]),
        SmoothBetaClassifier().fit(X[2:], y[:2]),
    )
    rows = "".join(f"{x!r},{label}\n" for x, label in zip(X[:, 0].tolist(), y, strict=True))
    (tmp_path / "wide.csv").write_text(f"x,y\n{rows}")
    chunks = dask.array.from_array(X, chunks=(2, 1)), dask.array.from_array(y, chunks=2)
    ways = [
        lambda: model.partial_fit(X[2:], y[2:]),
        lambda: model.merge(other),
        lambda: SmoothBetaClassifier().fit_files(tmp_path / "wide.csv", outcome="y"),
        lambda: betafield.dask.SmoothBetaClassifier().fit(*chunks),
    ]
    for way in ways:
        with pytest.raises(ValueError, match=said):
            way()
    assert model.n_trials_ == 2


def test_several_classes_are_fitted_on_log_odds_alone():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(300, 1))
    y = (rng.uniform(size=300) < X[:, 0]).astype(int)
    of_two = SmoothBetaClassifier(method="process").fit(X, y)
    of_three = SmoothBetaClassifier(method="process").fit(X, y + (X[:, 0] > rng.uniform(size=300)))
    links = [
        {fit.problem.link.name for fit in smooth.fits}
        for smooth in (*of_two.field_.smooth, *of_three.field_.smooth)
    ]
    assert links == [{"logit", "soft identity"}, {"logit"}, {"logit"}, {"logit"}]
