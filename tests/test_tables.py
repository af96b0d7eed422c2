"""Tables of pandas, polars and pyarrow: the same models as from NumPy, and feature names."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from betafield import SmoothBetaClassifier

NAMES = ["hour", "day"]
TABLES = {
    "pandas": pd.DataFrame,
    "pandas nullable": lambda columns: pd.DataFrame(columns).convert_dtypes(),
    "pandas arrow": lambda columns: pd.DataFrame(columns).convert_dtypes(dtype_backend="pyarrow"),
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
    "pyarrow in chunks": lambda columns: pa.concat_tables(
        [pa.table(columns).slice(0, 7), pa.table(columns).slice(7)]
    ),
}
COLUMNS = {
    "pandas": pd.Series,
    "pandas nullable": lambda values: pd.Series(values).convert_dtypes(),
    "pandas array": pd.array,
    "polars": pl.Series,
    "pyarrow": lambda values: pa.chunked_array([values[:5], values[5:]]),
    "pyarrow array": pa.array,
    "list": list,
}


def trials(t=60):
    rng = np.random.default_rng(0)
    columns = {"hour": rng.integers(0, 24, size=t) / 2, "day": rng.integers(0, 365, size=t)}
    return columns, np.column_stack(list(columns.values())), rng.integers(0, 2, size=t)


def model_of(X, y, **options):
    return SmoothBetaClassifier(bandwidth=0.2).fit(X, y, **options)


def of_numbers(X, y):
    """Return a model for which no column is a category, whatever its type."""
    return SmoothBetaClassifier(bandwidth=0.2, categorical_features=None).fit(X, y)


def assert_same(a, b, X_of_a, X_of_b):
    ours, theirs = a.posterior(X_of_a), b.posterior(X_of_b)
    np.testing.assert_array_equal(ours.alpha, theirs.alpha)
    np.testing.assert_array_equal(ours.beta, theirs.beta)


def test_models_that_know_different_things_are_told_apart():
    _, X, y = trials()
    assert_same(model_of(X, y), model_of(X[::-1], y[::-1]), X, X)
    with pytest.raises(AssertionError):
        assert_same(model_of(X, y), model_of(X, 1 - y), X, X)


# Points.


@pytest.mark.parametrize("kind", TABLES)
def test_a_table_is_learned_as_its_numbers(kind):
    columns, X, y = trials()
    table = TABLES[kind](columns)
    model = model_of(table, y)
    assert model.feature_names_in_.tolist() == NAMES
    assert_same(model, model_of(X, y), table, X)


@pytest.mark.parametrize("dtype", ["float32", "int8", "uint16", "bool", "Int32", "Float32"])
def test_columns_of_any_number_type_are_learned(dtype):
    values = np.array([0, 1, 1, 0, 1, 0])
    model = of_numbers(pd.DataFrame({"a": pd.Series(values).astype(dtype)}), [0, 1, 0, 1, 0, 1])
    plain = model_of(values[:, None], [0, 1, 0, 1, 0, 1])
    np.testing.assert_array_equal(model.windows_.totals, plain.windows_.totals)
    np.testing.assert_array_equal(model.bounds_, plain.bounds_)


def test_categories_that_are_numbers_are_learned_as_numbers():
    values = [3, 1, 2, 3, 1, 1]
    table = pd.DataFrame({"a": pd.Categorical(values)})
    plain = np.array(values)[:, None]
    assert_same(model_of(table, [0, 1] * 3), model_of(plain, [0, 1] * 3), table, plain)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_text_in_a_table_is_refused_by_the_columns_name(kind):
    columns, _, y = trials()
    columns["day"] = ["monday"] * len(y)
    with pytest.raises(ValueError, match=r"X row 0, column 'day': found 'monday'; .* number"):
        of_numbers(TABLES[kind](columns), y)


@pytest.mark.parametrize("kind", TABLES)
def test_a_missing_value_is_refused_by_the_columns_name(kind):
    columns, _, y = trials()
    columns["day"] = [*columns["day"][:4].tolist(), None, *columns["day"][5:].tolist()]
    with pytest.raises(ValueError, match=r"X row 4, column 'day': found NaN; .* finite"):
        of_numbers(TABLES[kind](columns), y)
    with pytest.raises(
        ValueError, match=r"X row 4, column 'day': found NaN, the first of 1 .*drop"
    ):
        model_of(TABLES[kind](columns), y)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_dates_are_no_numbers(kind):
    dates = [datetime.datetime(2024, 1, day) for day in range(1, 9)]
    said = r"^X row 0, column 'when': found .*2024.* must be a number"
    with pytest.raises(ValueError, match=said):
        model_of(TABLES[kind]({"when": dates}), [0, 1] * 4)
    with pytest.raises(ValueError, match=said):
        model_of(TABLES[kind]({"day": np.arange(8.0), "when": dates}), [0, 1] * 4)
    dates[0] = None
    with pytest.raises(ValueError, match=r"^X row [01], column 'when': found (NaT|.*2024)"):
        model_of(TABLES[kind]({"when": dates}), [0, 1] * 4)


# Names.


@pytest.mark.parametrize("learned", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("asked", ["pandas", "polars", "pyarrow"])
def test_names_are_known_from_one_kind_of_table_to_another(learned, asked):
    columns, X, y = trials()
    model = model_of(TABLES[learned](columns), y)
    assert_same(model, model_of(X, y), TABLES[asked](columns), X)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["hour", "month"], "unseen at fit time"),
        (["day", "hour"], "same order"),
        (["hour", "day", "year"], "unseen at fit time"),
        (["hour"], "now missing"),
    ],
)
def test_other_names_get_scikit_learns_error(kind, names, said):
    columns, _, y = trials()
    model = model_of(TABLES[kind](columns), y)
    wrong = TABLES[kind](dict.fromkeys(names, columns["hour"]))
    with pytest.raises(ValueError, match=said):
        model.posterior(wrong)
    with pytest.raises(ValueError, match=said):
        model.partial_fit(wrong, y)
    assert model.n_trials_ == len(y)


def test_a_mixture_of_names_and_numbers_as_names_is_refused():
    columns, _, y = trials()
    table = pd.DataFrame({"hour": columns["hour"], 1: columns["day"]})
    with pytest.raises(TypeError, match="names are only supported if all"):
        model_of(table, y)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_names_lost_or_found_on_the_way_get_scikit_learns_warning(kind):
    columns, X, y = trials()
    table = TABLES[kind](columns)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        model_of(table, y).posterior(X)
    with pytest.warns(UserWarning, match="was fitted without feature names"):
        model_of(X, y).posterior(table)


def test_numbered_columns_are_no_names():
    _, X, y = trials()
    model = model_of(pd.DataFrame(X), y)
    assert not hasattr(model, "feature_names_in_")
    assert_same(model, model_of(X, y), pd.DataFrame(X), X)


def test_fit_forgets_names():
    columns, X, y = trials()
    model = model_of(pd.DataFrame(columns), y).fit(X, y)
    assert not hasattr(model, "feature_names_in_")


# Columns.


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("labels", [[0, 1], [False, True], ["no", "yes"], [0.0, 1.0]], ids=repr)
def test_outcomes_may_be_any_column(kind, labels):
    _, X, y = trials()
    model = model_of(X, COLUMNS[kind]([labels[i] for i in y]))
    assert model.classes_.tolist() == labels
    assert_same(model, model_of(X, y), X, X)


@pytest.mark.parametrize("ordered", [False, True])
def test_outcomes_may_be_categories(ordered):
    _, X, y = trials()
    labels = np.array(["no", "yes"])[y]
    model = model_of(X, pd.Series(pd.Categorical(labels, ordered=ordered)))
    assert_same(model, model_of(X, labels), X, X)
    assert_same(model_of(X, pl.Series(labels, dtype=pl.Categorical)), model, X, X)


@pytest.mark.parametrize("kind", COLUMNS)
def test_weights_may_be_any_column(kind):
    _, X, y = trials()
    weight = np.random.default_rng(1).integers(0, 7, size=len(y)) / 2
    model = model_of(X, y, sample_weight=COLUMNS[kind](weight.tolist()))
    assert_same(model, model_of(X, y, sample_weight=weight), X, X)


@pytest.mark.parametrize("kind", COLUMNS)
def test_counts_may_be_any_column(kind):
    columns, X, y = trials()
    held = y + np.arange(len(y)) % 3
    model = SmoothBetaClassifier(bandwidth=0.2)
    model.fit_counts(pd.DataFrame(columns), *map(COLUMNS[kind], (y.tolist(), held.tolist())))
    plain = SmoothBetaClassifier(bandwidth=0.2).fit_counts(X, y, held)
    assert_same(model, plain, pd.DataFrame(columns), X)


def test_an_index_of_pandas_does_not_align_rows():
    columns, X, y = trials()
    table = pd.DataFrame(columns, index=np.arange(len(y))[::-1])
    weight = pd.Series(np.arange(1.0, len(y) + 1), index=np.roll(np.arange(len(y)), 3))
    model = model_of(table, pd.Series(y), sample_weight=weight)
    assert_same(model, model_of(X, y, sample_weight=weight.to_numpy()), table, X)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("argument", ["y", "sample_weight"])
def test_a_missing_entry_of_a_column_is_refused_by_its_row(kind, argument):
    _, X, y = trials()
    column = COLUMNS[kind]([*y[:9].tolist(), None, *y[10:].tolist()])
    given = {"y": y, "sample_weight": None, argument: column}
    with pytest.raises(ValueError, match=rf"^{argument} row 9: found NaN"):
        model_of(X, given["y"], sample_weight=given["sample_weight"])


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_a_missing_label_among_text_is_refused_by_its_row(kind):
    _, X, y = trials()
    labels = np.array(["no", "yes"])[y].tolist()
    with pytest.raises(ValueError, match=r"^y row 9: found .* missing"):
        model_of(X, COLUMNS[kind]([*labels[:9], None, *labels[10:]]))


def test_a_lazy_frame_is_asked_to_be_collected():
    with pytest.raises(TypeError, match=r"X: found a lazy frame; call its .collect\(\) first"):
        model_of(pl.LazyFrame({"a": [0.0, 1.0]}), [0, 1])
