"""Categories in X: conventions, invariance, seen and unseen levels, missing values, refusals."""

from __future__ import annotations

import dataclasses

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.isotonic import IsotonicRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import betafield
from betafield import SmoothBetaClassifier, report
from betafield.answers.levels import differences
from betafield.answers.lines import typical
from betafield.observed import observed
from betafield.plots import FieldDisplay
from betafield.process.centring import centred
from betafield.weighed import stretched_apart

SITES = ["bonn", "kiel", "ulm", "jena", "trier"]


def table(n: int = 300, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    site = rng.integers(0, len(SITES), n)
    old = rng.random(n) < 0.4
    dose = rng.random(n)
    f = 3.0 * dose - 1.5 + np.linspace(-1.0, 1.0, len(SITES))[site] + 0.5 * old
    X = pd.DataFrame({"site": np.array(SITES)[site], "dose": dose, "old": old})
    return X, rng.random(n) < expit(f)


X, Y = table()
ASKED = pd.DataFrame(
    {"site": ["ulm", "rome", "bonn"], "dose": [0.3, 0.5, 0.9], "old": [True, False, False]}
)


@pytest.fixture(scope="module")
def model() -> SmoothBetaClassifier:
    return SmoothBetaClassifier().fit(X, Y)


def answers(model: SmoothBetaClassifier, asked=ASKED) -> np.ndarray:
    post = model.posterior(asked)
    return np.stack([post.mean(), *post.interval(0.9)])


# Conventions -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dress",
    [
        lambda X: X.astype({"site": "category"}),
        lambda X: X.astype({"site": "string", "old": "boolean"}),
        pl.from_pandas,
        lambda X: pl.from_pandas(X).with_columns(pl.col("site").cast(pl.Categorical)),
        lambda X: pl.from_pandas(X).with_columns(pl.col("site").cast(pl.Enum([*SITES, "rome"]))),
    ],
    ids=["category", "string", "polars", "polars categorical", "polars enum"],
)
def test_dtypes_say_which_columns_are_categories(model, dress):
    again = SmoothBetaClassifier().fit(dress(X), Y)
    assert again.field_.features.categories.columns == (0, 2)
    np.testing.assert_array_equal(answers(again, dress(ASKED)), answers(model))


@pytest.mark.parametrize("asked", [["site", "old"], [0, 2], [True, False, True]])
def test_columns_are_named(model, asked):
    again = SmoothBetaClassifier(categorical_features=asked).fit(X, Y)
    np.testing.assert_array_equal(answers(again), answers(model))
    if not isinstance(asked[0], str):
        objects = SmoothBetaClassifier(categorical_features=asked).fit(X.to_numpy(object), Y)
        np.testing.assert_array_equal(answers(objects, ASKED.to_numpy(object)), answers(model))


def test_numbers_can_be_levels():
    codes = X.assign(site=X["site"].map(SITES.index), old=X["old"].astype(int))
    text = codes.astype({"site": str, "old": str})
    a = SmoothBetaClassifier(categorical_features=["site", "old"]).fit(codes, Y)
    b = SmoothBetaClassifier().fit(text, Y)
    asked = codes[:5].astype({"site": float})
    np.testing.assert_array_equal(answers(a, asked), answers(b, text[:5]))


def test_none_are_categories_if_none_is_asked_for():
    numbers = X[["dose", "old"]]
    plain = SmoothBetaClassifier(categorical_features=None).fit(numbers, Y)
    array = SmoothBetaClassifier().fit(numbers.to_numpy(float), Y)
    np.testing.assert_array_equal(
        answers(plain, numbers[:4]), answers(array, numbers[:4].to_numpy(float))
    )


def test_of_arrays_none_is_a_category():
    assert (
        not SmoothBetaClassifier().fit(X[["dose"]].to_numpy(), Y).field_.features.categories.columns
    )


def test_clone_and_pipeline(model):
    asked = SmoothBetaClassifier(interactions=[("site", "old")], missing="level")
    assert clone(asked).get_params() == asked.get_params()
    kept = [("dose", StandardScaler(), ["dose"])]
    columns = ColumnTransformer(kept, remainder="passthrough", verbose_feature_names_out=False)
    line = make_pipeline(columns.set_output(transform="pandas"), SmoothBetaClassifier()).fit(X, Y)
    np.testing.assert_allclose(line.predict_proba(ASKED)[:, 1], answers(model)[0], atol=1e-6)


# Learning ----------------------------------------------------------------------------------


@settings(max_examples=2, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0.1, 0.9))
def test_order_batches_and_merges_change_nothing(seed, share):
    X, y = table(60, seed)
    rng = np.random.default_rng(seed)
    order, cut = rng.permutation(60), int(60 * share)
    whole = SmoothBetaClassifier().fit(X, y)
    Z, z = X.iloc[order], y[order]
    classes = [False, True]
    parts = [
        SmoothBetaClassifier().partial_fit(Z[:cut], z[:cut], classes=classes),
        SmoothBetaClassifier().partial_fit(Z[cut:], z[cut:], classes=classes),
    ]
    streamed = (
        clone(whole).partial_fit(Z[:cut], z[:cut], classes=classes).partial_fit(Z[cut:], z[cut:])
    )
    for other in (clone(whole).fit(Z, z), streamed.settle(), parts[1].merge(parts[0]).settle()):
        np.testing.assert_array_equal(answers(other), answers(whole))
        assert other.field_.features.categories == whole.field_.features.categories


def test_counts_are_trials():
    rows = X.groupby(["site", "old"], as_index=False).agg(dose=("dose", "first"))[
        ["site", "dose", "old"]
    ]
    n = np.arange(1, len(rows) + 1)
    k = n // 2
    counted = SmoothBetaClassifier().fit_counts(rows, k, n)
    each = rows.loc[rows.index.repeat(n)]
    y = np.concatenate([np.arange(m) < w for m, w in zip(n, k, strict=True)])
    np.testing.assert_array_equal(answers(counted), answers(SmoothBetaClassifier().fit(each, y)))


@pytest.mark.parametrize("method", ["auto", "windows"])
def test_saved_is_loaded_to_the_bit(tmp_path, method):
    model = SmoothBetaClassifier(
        0.5 if method == "windows" else "auto", interactions=[("site", "old")], missing="level"
    ).fit(X, Y)
    model.save(tmp_path / "m.beta")
    again = betafield.load(tmp_path / "m.beta")
    np.testing.assert_array_equal(answers(again), answers(model))
    assert again.get_params() == model.get_params()
    assert again.field_.features.categories == model.field_.features.categories
    more = table(50, 7)
    np.testing.assert_array_equal(
        answers(again.partial_fit(*more).settle()), answers(model.partial_fit(*more).settle())
    )


def test_an_unseen_level_has_what_all_share_with_a_wider_interval(model):
    seen = pd.DataFrame({"site": SITES, "dose": 0.5, "old": False})
    new = seen[:1].assign(site="rome")
    low, high = model.posterior(seen).interval(0.95)
    (a,), (b,) = model.posterior(new).interval(0.95)
    assert b - a > (high - low).max()
    means = model.posterior(seen).mean()
    assert means.min() < model.posterior(new).mean()[0] < means.max()
    other = new.assign(site="oslo")
    np.testing.assert_array_equal(answers(model, new), answers(model, other))


def test_rare_levels_lean_on_the_others():
    """Two failures in two trials at a new site count for less than they would alone."""
    more = pd.DataFrame({"site": "rare", "dose": [0.5, 0.6], "old": False})
    model = SmoothBetaClassifier().fit(pd.concat([X, more]), np.append(Y, [False, False]))
    rare, new = (model.posterior(more[:1].assign(site=s)).mean()[0] for s in ("rare", "rome"))
    assert 0.25 < rare < new


def test_only_categories():
    only = X[["site"]]
    rates = SmoothBetaClassifier().fit(only, Y).predict_proba(pd.DataFrame({"site": SITES}))[:, 1]
    by_site = pd.Series(Y).groupby(X["site"]).mean()[SITES].to_numpy()
    assert np.all(np.abs(rates - Y.mean()) <= np.abs(by_site - Y.mean()) + 0.02)  # pooled
    assert np.array_equal(np.argsort(rates), np.argsort(by_site))


def test_interactions_tell_what_sums_cannot():
    rng = np.random.default_rng(3)
    a, b = rng.integers(0, 2, (2, 2_000))
    y = rng.random(2_000) < np.where(a == b, 0.9, 0.1)
    X = pd.DataFrame({"a": a.astype(str), "b": b.astype(str)})
    corners = pd.DataFrame({"a": list("0011"), "b": list("0101")})
    plain = SmoothBetaClassifier().fit(X, y).predict_proba(corners)[:, 1]
    joint = SmoothBetaClassifier(interactions=[("a", "b")]).fit(X, y).predict_proba(corners)[:, 1]
    assert np.all(np.abs(plain - 0.5) < 0.1)
    np.testing.assert_allclose(joint, [0.9, 0.1, 0.1, 0.9], atol=0.05)


@pytest.mark.long
def test_groups_weights_and_contexts_beside_categories():
    group = np.random.default_rng(1).integers(0, 12, len(X))
    model = SmoothBetaClassifier().fit(X, Y, sample_weight=np.full(len(X), 2), groups=group)
    assert model.group_deviation_ > 0.0
    chance = betafield.contexts.guess_lapse(guess=0.3)
    guessed = SmoothBetaClassifier().fit(X, Y, context=chance)
    assert np.all(answers(guessed)[0] < answers(SmoothBetaClassifier().fit(X, Y))[0])


@pytest.mark.long
def test_three_classes():
    y = np.where(Y, "yes", np.where(X["dose"] > 0.5, "no", "perhaps"))
    model = SmoothBetaClassifier().fit(X, y)
    np.testing.assert_allclose(model.predict_proba(ASKED).sum(axis=1), 1.0)


# The joint posterior -----------------------------------------------------------------------


def test_draws_have_the_law_of_the_posterior(model):
    drawn = model.draws(ASKED, 4_000, random_state=0)
    post = model.posterior(ASKED)
    np.testing.assert_allclose(drawn.mean(axis=0), post.mean(), atol=0.02)
    np.testing.assert_allclose(drawn.std(axis=0), post.var() ** 0.5, rtol=0.12)


def test_averages_are_those_of_draws(model):
    found = model.average(ASKED)
    drawn = model.draws(ASKED, 4_000, random_state=1).mean(axis=1)
    assert found.mean()[0] == pytest.approx(drawn.mean(), abs=0.02)
    assert found.var()[0] ** 0.5 == pytest.approx(drawn.std(), rel=0.15)


def test_levels_that_are_named_after_learning_cost_no_second_fit(model):
    begun = dataclasses.replace(model.field_, found=None, found_at=None, earlier=None)
    settled = begun.featured(model.field_.features).settled()
    assert "smooth" in vars(settled)  # kept from the search


# Windows -----------------------------------------------------------------------------------


@pytest.mark.parametrize("bandwidth", ["auto", 0.2])
def test_bands_are_those_of_the_level(bandwidth):
    """Outcomes of other levels change nothing, and a level without trials is unknown."""
    own = (X["site"] == "ulm") & X["old"]
    asked = pd.DataFrame({"site": "ulm", "dose": np.linspace(0, 1, 9), "old": True})
    bands = [
        SmoothBetaClassifier(bandwidth, bounds=[(0, 1)]).fit(X, y).band(asked, 2.0)
        for y in (Y, np.where(own, Y, ~Y))
    ]
    np.testing.assert_array_equal(*bands)
    assert np.min(bands[0][1] - bands[0][0]) < 0.9
    model = SmoothBetaClassifier(bandwidth, bounds=[(0, 1)]).fit(X, Y)
    new = model.band(asked.assign(site="rome"), 2.0)
    np.testing.assert_array_equal(new, [np.zeros(9), np.ones(9)])


# Missing values ----------------------------------------------------------------------------


def test_missing_values_are_refused_with_their_number():
    holed = X.assign(site=X["site"].where(X.index % 7 != 3), dose=X["dose"])
    number = holed["site"].isna().sum()
    with pytest.raises(ValueError, match=rf"X row 3, column 'site'.*first of {number} .*missing="):
        SmoothBetaClassifier().fit(holed, Y)
    holed = X.assign(dose=X["dose"].where(X.index % 7 != 3))
    with pytest.raises(ValueError, match=rf"X row 3, column 'dose'.*first of {number} .*'drop'"):
        SmoothBetaClassifier().fit(holed, Y)


def test_rows_with_missing_values_are_dropped_and_told():
    holed = X.assign(dose=X["dose"].where(X.index % 7 != 3))
    kept = holed["dose"].notna().to_numpy()
    context = np.tile([0.1, 0.9], (len(X), 1))
    with pytest.warns(UserWarning, match=rf"left out {(~kept).sum()} of 300 rows.*row 3"):
        model = SmoothBetaClassifier(missing="drop").fit(holed, Y, context=context)
    other = SmoothBetaClassifier().fit(X[kept], Y[kept], context=context[kept])
    np.testing.assert_array_equal(answers(model), answers(other))
    with pytest.raises(ValueError, match="row 0, column 'dose'"):
        model.predict_proba(ASKED.assign(dose=np.nan))


def test_a_missing_category_is_a_level():
    holed = X.assign(site=X["site"].where(X["site"] != "ulm"))
    model = SmoothBetaClassifier(missing="level").fit(holed, Y)
    assert model.field_.features.categories.shown(0)[-1] == "(missing)"
    other = SmoothBetaClassifier().fit(X, Y)
    found, named = (
        m.posterior(q).mean()
        for m, q in ((model, ASKED.assign(site=[None, "rome", "bonn"])), (other, ASKED))
    )
    np.testing.assert_allclose(found, named, atol=1e-6)
    with pytest.raises(ValueError, match="'dose'"):
        SmoothBetaClassifier(missing="level").fit(holed.assign(dose=np.nan), Y)


# Refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"categorical_features": "auto"}, "categorical_features: found 'auto'"),
        ({"categorical_features": ["town"]}, "'town'; the columns are site, dose, old"),
        ({"categorical_features": [3]}, "indices from 0 to 2"),
        ({"categorical_features": [True]}, "one boolean per column is needed, 3"),
        ({"categorical_features": [0, 0]}, "only once"),
        ({"interactions": [("site", "town")]}, "interactions: found 'town'"),
        ({"interactions": [("site", "dose")]}, "the columns that are categories are site, old"),
        ({"interactions": [("site",)]}, "interactions"),
        ({"missing": "ignore"}, "missing: found 'ignore'"),
        ({"monotonic_cst": {"site": 1}}, "monotonic_cst: found 1 .*'site', which is a category"),
    ],
)
def test_what_cannot_be_meant_is_refused(options, said):
    with pytest.raises((ValueError, TypeError), match=said):
        SmoothBetaClassifier(**options).fit(X, Y)


def test_text_and_numbers_in_one_column_are_refused():
    mixed = X.assign(site=[*X["site"][:-1], 7])
    with pytest.raises(ValueError, match=r"row 299, column 'site': found 7 .* text and numbers"):
        SmoothBetaClassifier().fit(mixed, Y)
    SmoothBetaClassifier(categorical_features=["site"]).fit(mixed[["site"]], Y)


@pytest.mark.parametrize("bandwidth", ["auto", 0.5])
def test_too_many_levels_are_refused(bandwidth):
    n = 10_001
    many = pd.DataFrame({"id": [f"p{i}" for i in range(n)]})
    with pytest.raises(ValueError, match=r"column 0: found 10,001 levels; at most 10,000"):
        SmoothBetaClassifier(bandwidth).fit(many, np.arange(n) % 2)


def test_models_of_other_categories_cannot_be_merged(model):
    other = SmoothBetaClassifier(interactions=[("site", "old")]).fit(X, Y)
    with pytest.raises(ValueError, match="interactions"):
        clone(model).fit(X, Y).merge(other)


# Files and the command line ----------------------------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_files_are_learned_as_tables(model, tmp_path, ending):
    path = tmp_path / f"trials.{ending}"
    rows = X.assign(died=Y)
    rows.to_csv(path, index=False) if ending == "csv" else rows.to_parquet(path)
    names = ["site", "dose", "old"]
    asked = SmoothBetaClassifier(categorical_features=["site", "old"])  # booleans are numbers here
    again = asked.fit_files(path, outcome="died", features=names, batch_rows=97)
    np.testing.assert_array_equal(answers(again), answers(model))


def test_a_number_among_words_of_a_file_is_refused_wherever_it_is(tmp_path):
    path, n = tmp_path / "trials.csv", 120_000  # more than one block of the reader
    site = np.array(["kiel", "bonn"])[np.arange(n) % 2].astype(object)
    site[n - 7] = "12"
    rows = pd.DataFrame({"site": site, "dose": np.arange(n) % 10, "died": np.arange(n) % 3 == 0})
    rows.to_csv(path, index=False)
    assert path.stat().st_size > 1.2 * (1 << 20)
    said = rf"line {n - 7 + 2} of .*trials.csv, column 'site': found '12' .* text and numbers"
    with pytest.raises(ValueError, match=said):
        SmoothBetaClassifier().fit_files(path, outcome="died", features=["site", "dose"])
    named = SmoothBetaClassifier(categorical_features=["site"], method="process")
    named.fit_files(path, outcome="died", features=["site", "dose"])
    assert named.field_.features.categories.labels == (("12", "bonn", "kiel"),)


def test_numbers_where_text_was_are_refused_in_later_batches(model):
    for site, row in ((7, 0), ([*SITES, 3.5], 5)):
        later = X[:6].assign(site=site)
        said = rf"X row {row}, column 'site': found .* text and numbers"
        with pytest.raises(ValueError, match=said):
            clone(model).fit(X, Y).partial_fit(later, Y[:6])
    named = SmoothBetaClassifier(categorical_features=["site", "old"]).fit(X, Y)
    named.partial_fit(X[:6].assign(site=7), Y[:6])
    assert "7" in named.field_.features.categories.labels[0]
    codes = X.assign(site=X["site"].map(SITES.index).astype("category"))
    coded = SmoothBetaClassifier().fit(codes, Y)
    coded.partial_fit(codes[:6].astype({"site": int}), Y[:6])  # the same levels


# Which features matter ---------------------------------------------------------------------


def test_importance_is_the_share_of_variance():
    """The variances of logits 4a + 2b are 4 to 1; c has no effect."""
    rng = np.random.default_rng(0)
    x = rng.random((6_000, 3))
    y = rng.random(6_000) < expit(4.0 * x[:, 0] + 2.0 * x[:, 1] - 3.0)
    found = SmoothBetaClassifier(method="process").fit(x, y).importance_
    np.testing.assert_allclose(found, [0.8, 0.2, 0.0], atol=0.06)


def test_partial_dependence_is_an_average(model):
    along = model.partial_dependence("site", ["ulm", "bonn"])
    assert along.values.tolist() == ["ulm", "bonn"]
    means = [model.predict_proba(X.assign(site=site))[:, 1].mean() for site in along.values]
    np.testing.assert_allclose(along.posterior.mean(), means, atol=0.03)


# Monotone ----------------------------------------------------------------------------------


def doses(n, seed=0):
    """Return trials at two sites and a dose with a rising probability."""
    rng = np.random.default_rng(seed)
    site, dose = rng.choice(["bonn", "kiel"], n), rng.uniform(size=n)
    y = rng.uniform(size=n) < 0.1 + 0.6 * dose + 0.2 * (site == "kiel")
    return pd.DataFrame({"site": site, "dose": dose}), y


def asked_along(levels, n=40):
    dose = np.linspace(0, 1, n)
    each = [pd.DataFrame({"site": level, "dose": dose}) for level in levels]
    return pd.concat(each, ignore_index=True)


def test_every_level_is_monotone_and_as_centred_draws_made_so():
    X, y = doses(150)
    levels = ["bonn", "kiel", "ulm"]
    model = SmoothBetaClassifier(monotonic_cst={"dose": 1}, bounds=[(0, 1)]).fit(X, y)
    draws = model.draws(asked_along(levels), 50, random_state=0).reshape(50, 3, -1)
    assert np.all(np.diff(draws, axis=2) >= -1e-12)
    mean = model.predict_proba(asked_along(levels))[:, 1].reshape(3, -1)
    assert np.all(np.diff(mean, axis=1) >= -1e-12)
    assert np.all(mean[1] > mean[0])
    free = SmoothBetaClassifier(bounds=[(0, 1)]).fit(X, y)
    fine = asked_along(["bonn"], 129)
    drawn = np.ascontiguousarray(free.draws(fine, 20, random_state=1).T)
    curves = centred(drawn, free.posterior(fine).mean()).T
    made = model.draws(fine, 20, random_state=1)
    x = np.arange(129)
    for curve, ours in zip(curves, made, strict=True):
        assert np.allclose(IsotonicRegression().fit_transform(x, curve), ours, atol=1e-9)


@pytest.mark.long
def test_monotone_models_with_categories_are_saved_and_streamed(tmp_path):
    X, y = doses(80, seed=1)
    options = {"monotonic_cst": [0, 1], "bounds": [(0, 1)]}
    model = SmoothBetaClassifier(**options).fit(X, y)
    model.save(tmp_path / "model.beta")
    asked = asked_along(["bonn", "ulm"], 5)
    assert np.array_equal(
        betafield.load(tmp_path / "model.beta").predict_proba(asked), model.predict_proba(asked)
    )
    parts = SmoothBetaClassifier(**options).partial_fit(X[50:], y[50:], classes=[False, True])
    parts.partial_fit(X[:50], y[:50]).settle()
    assert np.array_equal(parts.predict_proba(asked), model.predict_proba(asked))


def test_trials_against_a_monotone_field_are_told_beside_categories():
    X, y = doses(400, seed=2)
    with pytest.warns(betafield.FieldWarning, match="never rises along 'dose'"):
        SmoothBetaClassifier(monotonic_cst={"dose": -1}, bounds=[(0, 1)]).fit(X, y)


@pytest.mark.parametrize("bandwidth", ["auto", 0.3])
def test_levels_differ_as_draws_say(bandwidth):
    model = SmoothBetaClassifier(bandwidth).fit(X[["site", "dose"]], Y)
    field = model.field_
    trials = observed(model).trials_of(0, field.features.categories.codes(0))
    found = differences(field, 0, trials)
    assert found.labels == sorted(SITES)
    counts = X["site"].value_counts()
    assert found.trials.tolist() == [counts[site] for site in sorted(SITES)]
    dose = typical(model.field_, 64)[:, 1]
    each = [
        model.draws(pd.DataFrame({"site": site, "dose": dose}), 400, random_state=0).mean(axis=1)
        for site in sorted(SITES)
    ]
    apart = np.array(each) - np.average(each, axis=0, weights=found.trials)
    np.testing.assert_allclose(found.difference[:, 0], apart.mean(axis=1), atol=0.03)
    np.testing.assert_allclose(found.above, (apart > 0).mean(axis=1), atol=0.12)
    # The means add up to 0, and levels with more data have narrower intervals.
    np.testing.assert_allclose(found.trials @ found.difference[:, 0], 0.0, atol=1e-9)
    assert found.above[sorted(SITES).index("trier")] > 0.95


def test_windows_of_levels_err_by_themselves():
    model = SmoothBetaClassifier(0.3).fit(X[["site", "dose"]], Y)
    asked = pd.DataFrame({"site": SITES, "dose": 0.5})
    draws = model.draws(asked, 2_000, random_state=0)
    # Noise has finitely many waves; previously, all correlations were 1.
    assert np.abs(np.corrcoef(draws.T) - np.eye(5)).max() < 0.5


def test_a_curve_per_level_is_that_of_the_level(model):
    shown = FieldDisplay.from_estimator(model, by="site", at={"old": True}, grid_resolution=7)
    order = X["site"].value_counts()
    assert [order[name] for name in shown.events] == sorted(order, reverse=True)
    for k, site in enumerate(shown.events):
        alone = FieldDisplay.from_estimator(
            model, features="dose", at={"site": site, "old": True}, grid_resolution=7
        )
        for name in ("mean", "low", "high"):
            assert np.array_equal(getattr(shown, name)[:, k], getattr(alone, name))
    assert shown.by == "P(success) by site"
    assert shown.at == {"old": "True"}
    labels = [text.get_text() for text in shown.ax_.get_legend().get_texts()]
    assert labels[:5] == list(shown.events)
    plt.close("all")


def test_the_largest_levels_have_curves_and_that_is_said():
    rng = np.random.default_rng(0)
    many = pd.DataFrame({"who": [f"w{i % 8 if i < 80 else i % 5}" for i in range(120)]})
    many["dose"] = rng.random(120)
    model = SmoothBetaClassifier(0.5).fit(many, rng.random(120) < 0.5)
    shown = FieldDisplay.from_estimator(model, by="who")
    assert set(shown.events) == {f"w{i}" for i in range(5)}
    assert shown.by == "P(success) by who: the 5 of 8 levels with most trials"
    assert shown.ax_.get_legend().get_title().get_text() == shown.by
    plt.close("all")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"by": "dose"}, "by: found 'dose'; the categories are site, old"),
        ({"by": "town"}, "by: found 'town'"),
        ({"by": "site", "lipschitz": 1.0}, "lipschitz: found 1.0 with by"),
        ({"by": "site", "at": {"site": "ulm"}}, "at: found 'site', whose levels"),
        ({"by": "site", "features": ["dose", "old"]}, "features: 'old' is a category"),
    ],
)
def test_curves_per_level_that_cannot_be_are_refused(model, options, said):
    with pytest.raises(ValueError, match=said):
        FieldDisplay.from_estimator(model, **options)


def test_the_report_says_who_differs(model):
    page = report.html(model)
    assert "How levels of" in page
    field = model.field_
    trials = observed(model).trials_of(0, field.features.categories.codes(0))
    found = differences(field, 0, trials)
    most = int(np.argmax(np.abs(found.difference[:, 0])))
    assert f"{100 * found.difference[most, 0]:+.1f}".replace("-", "−") in page
    for site in SITES:
        assert site in page


# Errors and answers --------------------------------------------------------------------------


def test_errors_name_the_column_of_a_number_beside_categories():
    low = X.assign(dose=X["dose"] - 5.0)
    with pytest.raises(ValueError, match=r"X row \d+, column 'dose': found .* bounds allow"):
        SmoothBetaClassifier(bounds=[(0, 0.1)]).fit(X, Y)
    with pytest.raises(ValueError, match=r"X row 0, column 'dose': found .* scale is 'log'"):
        SmoothBetaClassifier(scale="log").fit(low, Y)
    places = pd.DataFrame({"site": X["site"], "lon": X["dose"], "lat": 91.0})
    with pytest.raises(ValueError, match=r"X row 0, column 'lat': found 91.0; latitudes"):
        SmoothBetaClassifier(geographic=("lon", "lat")).fit(places, Y)
    codes = np.column_stack([np.arange(len(Y)) % 2, np.full(len(Y), 7.0)])
    with pytest.raises(ValueError, match=r"X row 0, column 1: found 7.0; bounds allow"):
        SmoothBetaClassifier(categorical_features=[0], bounds=[(0, 1)]).fit(codes, Y)


def test_missing_values_of_points_are_not_said_to_be_left_out(model):
    for name, what in (("site", "a missing value"), ("dose", "NaN")):
        with pytest.raises(ValueError, match=f"X row 0, column '{name}': found {what}") as error:
            model.predict_proba(X[:2].assign(**{name: None}))
        assert "missing=" not in str(error.value)


def test_infinite_values_are_not_said_to_be_left_out():
    with pytest.raises(ValueError, match="column 'dose': found inf") as error:
        SmoothBetaClassifier().fit(X.assign(dose=np.inf), Y)
    assert "missing=" not in str(error.value)


def test_a_threshold_at_a_level_is_told_in_a_sentence(model):
    found = model.threshold(0.5, feature="dose", at={"site": SITES[0], "old": True}, size=50)
    assert f" at site = {SITES[0]}, old = " in str(found)


def test_units_of_categories_are_not_numbers(model):
    assert np.isnan(model.scale_).tolist() == [True, False, True]


def test_a_number_among_words_at_the_start_of_a_file_is_refused_as_such(tmp_path):
    rows = X.assign(died=Y, site=["7", *X["site"][1:]])
    rows.to_csv(tmp_path / "trials.csv", index=False)
    said = "line 2 of .*trials.csv, column 'site': found '7' .* text and numbers"
    with pytest.raises(ValueError, match=said):
        SmoothBetaClassifier().fit_files(
            tmp_path / "trials.csv", outcome="died", features=["site", "dose"]
        )


# Windows of residuals beside levels ----------------------------------------------------------


@pytest.mark.long
def test_windows_beside_levels_know_no_order_batches_or_files(tmp_path):
    """A comb shared by all levels, for which windows of residuals have much of the weight."""
    rng = np.random.default_rng(0)
    teeth = pd.DataFrame({"level": rng.choice(list("abcd"), 1_000), "x": rng.random(1_000)})
    y = rng.random(1_000) < 0.5 + 0.4 * np.sign(np.sin(40.0 * teeth["x"]))
    asked = pd.DataFrame({"level": list("abz"), "x": [0.1, 0.5, 0.9]})
    whole = SmoothBetaClassifier(bounds=[(0, 1)]).fit(teeth, y)
    table = whole.weights_
    assert table["weight"][table["part"] == "windows"].sum() > 0.3
    order, is_a = rng.permutation(1_000), (teeth["level"] == "a").to_numpy()
    streamed = SmoothBetaClassifier(bounds=[(0, 1)])
    for some in (is_a, ~is_a):
        streamed.partial_fit(teeth[some], y[some], classes=[False, True])
    whole.save(tmp_path / "teeth.beta")
    others = [
        SmoothBetaClassifier(bounds=[(0, 1)]).fit(teeth.iloc[order], y.to_numpy()[order]),
        streamed.settle(),
        betafield.load(tmp_path / "teeth.beta"),
    ]
    for other in others:
        np.testing.assert_array_equal(answers(other, asked), answers(whole, asked))
    draws = whole.draws(asked, 4_000, random_state=0)
    means, low, high = answers(whole, asked)
    np.testing.assert_allclose(draws.mean(axis=0), means, atol=0.02)
    np.testing.assert_allclose(np.quantile(draws, [0.05, 0.95], axis=0), [low, high], atol=0.04)


def test_windows_beside_levels_are_told_by_the_categories_they_keep_apart(model):
    features = model.field_.features
    assert stretched_apart(np.array([1.0, 0.0, 0.0]), features) == ()
    assert stretched_apart(np.array([1.0, 1e6, 0.0]), features) == (0,)
    assert stretched_apart(np.array([1.0, 0.0, 1e6]), features) == (2,)


# Maps ----------------------------------------------------------------------------------------


def test_a_map_per_level_has_the_colours_of_all():
    rng = np.random.default_rng(5)
    places = X.assign(age=rng.random(len(X)))
    two = SmoothBetaClassifier(method="process").fit(places, Y)
    asked = {"features": ["dose", "age"], "at": {"old": True}, "grid_resolution": 4}
    shown = FieldDisplay.from_estimator(two, by="site", **asked)
    assert shown.mean.shape == (4, 4, 5)
    assert [axes.get_title(loc="left") or axes.get_title() for axes in shown.ax_] == list(
        shown.events
    )
    assert len({axes.collections[0].get_clim() for axes in shown.ax_}) == 1
    assert shown.ax_[0].collections[0].get_clim() == (shown.mean.min(), shown.mean.max())
    alone = FieldDisplay.from_estimator(
        two, **{**asked, "at": {"old": True, "site": shown.events[1]}}
    )
    np.testing.assert_allclose(shown.mean[..., 1], alone.mean)
    plt.close("all")
