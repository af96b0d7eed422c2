"""Dependent trials: groups with their own effects, and overdispersed rows."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from sklearn import config_context
from sklearn.model_selection import GroupKFold, cross_validate

from betafield import FieldWarning, SmoothBetaClassifier, contexts, load
from betafield.dask import SmoothBetaClassifier as DaskClassifier
from betafield.observed import left_out
from betafield.process.rows import gather, listed

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(61)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def grouped(seed, t=1_200, n_groups=40, tau=1.0):
    """Return trials in groups with their own places and effects."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, n_groups, t)
    x = np.clip(rng.random(n_groups)[group] + 0.1 * rng.normal(size=t), 0.0, 1.0)
    effect = tau * rng.normal(size=n_groups)
    y = rng.random(t) < expit(curve(x) + effect[group])
    return x[:, None], y, group


def curve(x):
    return 2.0 * np.sin(5.0 * x) - 0.5


def average(x, tau):
    """Return the probability in the average group."""
    return expit(curve(x)[:, None] + tau * NODES) @ WEIGHTS


def varying(seed, rho, rows=60):
    """Return binomial rows whose trials are correlated."""
    rng = np.random.default_rng(seed)
    x = rng.random((rows, 1))
    n = np.rint(np.exp(rng.uniform(np.log(10), np.log(300), rows))).astype(int)
    p = weibull(x[:, 0])
    return x, rng.binomial(n, rng.beta(p * (1 / rho - 1), (1 - p) * (1 / rho - 1))), n


def weibull(x):
    return 0.02 + 0.96 * (1 - np.exp(-((x / 0.4) ** 3)))


def bits(model, X):
    posterior = model.posterior(X)
    return posterior.mean().tobytes(), posterior.ppf(0.9).tobytes(), model.weights_.tobytes()


def test_answers_are_about_the_average_group():
    """Intervals contain it; those that assume independent trials are far too narrow."""
    x = np.linspace(0.1, 0.9, 33)
    truth = average(x, 1.0)
    held = {"together": [], "apart": []}
    for seed in range(6):
        X, y, group = grouped(seed)
        for name, groups in (("together", group), ("apart", None)):
            model = SmoothBetaClassifier(method="process").fit(X, y, groups=groups)
            low, high = model.posterior(x[:, None]).interval(0.95)
            held[name].append(np.mean((low <= truth) & (truth <= high)))
    assert np.mean(held["together"]) > 0.9
    assert np.mean(held["apart"]) < 0.85


def test_the_deviation_of_groups_is_learned():
    found = [
        SmoothBetaClassifier().fit(X, y, groups=group).group_deviation_
        for X, y, group in (grouped(seed, t=3_000) for seed in range(4))
    ]
    assert np.mean(found) == pytest.approx(1.0, abs=0.25)
    X, y, group = grouped(0, tau=0.0)
    assert SmoothBetaClassifier().fit(X, y, groups=group).group_deviation_ < 0.4
    assert SmoothBetaClassifier().fit(X, y).group_deviation_ == 0.0


@pytest.mark.long
def test_rows_that_vary_are_not_followed():
    """With ρ = 0.1, a binomial process mistakes noise for the curve."""
    x = np.linspace(0.02, 0.98, 49)
    errors, held, found = {"auto": [], None: []}, [], []
    for seed in range(6):
        X, successes, trials = varying(seed, 0.1)
        for said, found_errors in errors.items():
            model = SmoothBetaClassifier(method="process")
            model.fit_counts(X, successes, trials, overdispersion=said)
            posterior = model.posterior(x[:, None])
            found_errors.append(np.mean((posterior.mean() - weibull(x)) ** 2))
            if said is not None:
                low, high = posterior.interval(0.95)
                held.append(np.mean((low <= weibull(x)) & (weibull(x) <= high)))
                found.append(model.overdispersion_)
            else:
                assert model.overdispersion_ == 0.0
    assert np.mean(errors["auto"]) < 0.25 * np.mean(errors[None])
    assert np.mean(held) > 0.85
    assert np.mean(found) == pytest.approx(0.1, abs=0.04)


def test_rows_that_do_not_vary_are_told_so():
    rng = np.random.default_rng(3)
    x, n = rng.random((80, 1)), np.full(80, 40)
    model = SmoothBetaClassifier().fit_counts(
        x, rng.binomial(n, weibull(x[:, 0])), n, overdispersion="auto"
    )
    assert model.overdispersion_ < 0.01


# Stored state.


@pytest.mark.long
@settings(max_examples=15)
@given(
    seed=st.integers(0, 1000),
    kind=st.sampled_from(["groups", "rows", "contexts"]),
    n_parts=st.integers(1, 4),
)
def test_neither_order_nor_batches_nor_merges_can_be_seen(seed, kind, n_parts, tmp_path_factory):
    rng = np.random.default_rng(seed)
    t = 40
    X = rng.integers(0, 6, size=(t, 1)) / 5.0
    n = rng.integers(1, 5, t)
    table = {"X": X, "successes": rng.binomial(n, 0.4), "trials": n}
    more = {"overdispersion": "auto"} if kind == "rows" else {}
    if kind != "rows":
        table["groups"] = rng.choice(["a", "b", "c", "d"], t)
    if kind == "contexts":
        table["context"] = contexts.guess_lapse(rng.choice([0.2, 0.5], t))

    def of(rows):
        part = {name: column[rows] for name, column in table.items()}
        return SmoothBetaClassifier().partial_fit_counts(**part, **more)

    at = [[0.1], [0.55], [2.0]]
    expected = bits(of(np.arange(t)), at)
    parts = np.array_split(rng.permutation(t), n_parts)
    streamed, merged = of(parts[0]), of(parts[-1])
    for part in parts[1:]:
        rows = {name: column[part] for name, column in table.items()}
        streamed.partial_fit_counts(**rows, **more)
    for part in parts[:-1]:
        merged.merge(of(part))
    path = tmp_path_factory.mktemp("models") / "model.beta"
    merged.save(path)
    assert bits(streamed.settle(), at) == expected
    assert bits(merged.settle(), at) == expected
    assert bits(load(path), at) == expected


def test_equal_rows_are_not_one_row():
    """Two rows of 5 out of 10 say more about ρ than one of 10 out of 20."""
    X, half, ten = np.full((30, 1), 0.5), np.full(30, 5), np.full(30, 10)
    apart = SmoothBetaClassifier().fit_counts(X, half, ten, overdispersion="auto")
    joined = SmoothBetaClassifier().fit_counts(X[:1], [150], [300], overdispersion="auto")
    assert apart.n_trials_ == joined.n_trials_ == 300
    assert apart.overdispersion_ < joined.overdispersion_


def test_labels_of_groups_are_the_same_in_every_type():
    X, y, group = grouped(1, t=200)
    names = np.array([f"chamber {g}" for g in group])
    at = [[0.2], [0.7]]
    alike = [group, group.astype(float), group.astype(np.uint8), pd.Series(group)]
    expected = bits(SmoothBetaClassifier().fit(X, y, groups=group), at)
    for each in alike:
        assert bits(SmoothBetaClassifier().fit(X, y, groups=each), at) == expected
    by_name = bits(SmoothBetaClassifier().fit(X, y, groups=names), at)
    assert by_name == bits(SmoothBetaClassifier().fit(X, y, groups=pd.Categorical(names)), at)


def test_rows_of_groups_are_their_trials_by_place_and_group():
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.integers(0, 3, 50) / 2, rng.integers(0, 4, 50) / 3])
    k = rng.integers(0, 2, 50)
    rows = gather(x, np.ones(50, dtype=np.int64), k, is_grouped=True)
    assert rows.d == 1
    for at, n, successes in zip(rows.x, rows.n, rows.k, strict=True):
        here = (x == at).all(axis=1)
        assert (n, successes) == (here.sum(), k[here].sum())
    assert len(listed(x[:, :1], np.ones(50, dtype=np.int64), k).x) == 50


# Groups are held out together.


def test_trials_of_a_group_are_left_out_together():
    """They are then predicted worse than from trials of their own group."""
    X, y, group = grouped(2, t=1_000, n_groups=30, tau=2.0)
    model = SmoothBetaClassifier().fit(X, y, groups=group)
    out = left_out(model)
    assert out.trials.sum() == 1_000
    alone = left_out(SmoothBetaClassifier().fit(X, y))

    def loss(out):
        p = np.clip(out.predicted, 1e-6, 1 - 1e-6)
        missed = out.trials - out.successes
        return -np.sum(out.successes * np.log(p) + missed * np.log1p(-p)) / out.trials.sum()

    assert loss(out) > loss(alone)


def test_groups_go_through_cross_validation():
    X, y, group = grouped(3, t=300)
    with config_context(enable_metadata_routing=True):
        found = cross_validate(
            SmoothBetaClassifier().set_fit_request(groups=True),
            X,
            y,
            params={"groups": group},
            cv=GroupKFold(3),
            return_estimator=True,
        )
    assert all(model.field_.sums.is_grouped for model in found["estimator"])


def test_files_have_groups(tmp_path):
    X, y, group = grouped(4, t=200)
    table = pd.DataFrame({"x": X[:, 0], "late": y, "storm": [f"s{g}" for g in group]})
    table.to_csv(tmp_path / "t.csv", index=False)
    model = SmoothBetaClassifier().fit_files(
        tmp_path / "t.csv", outcome="late", features=["x"], groups="storm"
    )
    same = SmoothBetaClassifier().fit(table[["x"]], table["late"], groups=table["storm"])
    at = pd.DataFrame({"x": [0.2, 0.7]})
    assert bits(model, at) == bits(same, at)


def test_groups_over_dask_are_those_of_one_machine():
    X, y, group = grouped(5, t=120)
    model = DaskClassifier().fit(
        da.from_array(X, chunks=(40, 1)),
        da.from_array(y, chunks=40),
        groups=da.from_array(group, chunks=40),
    )
    at = [[0.2], [0.7]]
    same = SmoothBetaClassifier().fit(X, y, groups=group)
    assert bits(model.compute(), at) == bits(same, at)
    with pytest.raises(ValueError, match=r"^overdispersion: found a value; rows that vary"):
        DaskClassifier().fit_counts(
            da.from_array(X, chunks=(40, 1)), y * 1, np.ones(120), overdispersion="auto"
        )


# Warnings and reports.


def test_rows_that_vary_are_warned_of():
    X, successes, trials = varying(0, 0.2)
    with pytest.warns(FieldWarning, match=r"overdispersion='auto'"):
        SmoothBetaClassifier().fit_counts(X, successes, trials)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"groups": np.arange(60)}, r"^groups: found 60 groups of one trial each"),
        ({"groups": [1, 2]}, r"^groups: found 2 rows where X has 60"),
        ({"groups": [None] * 60}, r"^groups row 0: found None; no label may be missing"),
        ({"groups": np.ones((60, 2))}, r"^groups: found shape \(60, 2\)"),
        ({"groups": np.ma.masked_array(np.ones(60), [True] * 60)}, r"^groups"),
    ],
)
def test_groups_that_are_none(more, message):
    X = np.linspace(0, 1, 60)[:, None]
    with pytest.raises(ValueError, match=message):
        SmoothBetaClassifier().fit(X, np.arange(60) % 2, **more)


def test_too_many_groups():
    X, t = np.linspace(0, 1, 3_000)[:, None], 3_000
    with pytest.raises(ValueError, match=r"^groups: found 1500 groups; at most 1,000"):
        SmoothBetaClassifier().fit(X, np.arange(t) % 2, groups=np.arange(t) // 2)


def test_what_does_not_go_together():
    X, successes, trials = varying(0, 0.1)
    group = np.arange(60) // 2
    with pytest.raises(ValueError, match=r"^overdispersion: found 'beta'; allowed are None and"):
        SmoothBetaClassifier().fit_counts(X, successes, trials, overdispersion="beta")
    with pytest.raises(ValueError, match=r"^overdispersion: found 'auto' together with groups"):
        SmoothBetaClassifier().fit_counts(X, successes, trials, groups=group, overdispersion="auto")
    for model in (SmoothBetaClassifier(0.2), SmoothBetaClassifier(method="windows")):
        with pytest.raises(ValueError, match=r"^groups: found with method="):
            model.fit_counts(X, successes, trials, groups=group)
        with pytest.raises(ValueError, match=r"^overdispersion: found with method="):
            model.fit_counts(X, successes, trials, overdispersion="auto")
    model = SmoothBetaClassifier().fit_counts(X, successes, trials, groups=group)
    before = bits(model, [[0.5]])
    with pytest.raises(ValueError, match=r"^groups: found none where the trials so far have"):
        model.partial_fit_counts(X, successes, trials)
    with pytest.raises(ValueError, match=r"^groups: found none where the trials so far have"):
        model.merge(SmoothBetaClassifier().fit_counts(X, successes, trials))
    assert bits(model, [[0.5]]) == before
