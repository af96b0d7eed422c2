"""Files: reading them in batches gives the same model as all rows at once, to the bit."""

import contextlib
import enum
import os
import re
import socket
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from betafield import SmoothBetaClassifier, contexts, files, streaming
from betafield.options import Options
from betafield.windows import Forest
from betafield.windows.base import concatenate
from betafield.windows.forest import Limits

T = 600
NAMES = ["dose", "age"]


def spelled(values):
    """Return a name of a case that is the same in every process."""
    return re.sub(r" at 0x[0-9a-f]+", "", str(values))


def trials(t=T, labels=(0, 1), seed=0):
    """Return a table: points on a coarse grid and off it, outcomes, weights, counts, contexts."""
    rng = np.random.default_rng(seed)
    held = rng.integers(0, 5, size=t)
    return pd.DataFrame(
        {
            "dose": np.where(rng.uniform(size=t) < 0.7, rng.integers(0, 9, size=t) / 8, 0.3),
            "age": rng.integers(20, 90, size=t),
            "died": np.array(labels)[rng.integers(0, len(labels), size=t)],
            "weight": rng.choice([0.0, 0.5, 1.0, 2.25, 3.0], size=t),
            "won": rng.binomial(held, 0.4),
            "held": held,
            "low": rng.choice([0.0, 0.25, 0.5], size=t),
            "high": rng.choice([0.5, 0.875, 1.0], size=t),
        }
    )


def write(table, path, rows=None):
    """Write some rows to a file, in the format of its ending."""
    arrow = pa.Table.from_pandas(table, preserve_index=False)
    if path.suffix.lower() == ".csv":
        pyarrow.csv.write_csv(arrow, path)
    else:
        pyarrow.parquet.write_table(arrow, path, row_group_size=rows or max(1, len(table)))
    return path


def split(table, folder, names, rows=100):
    """Write consecutive parts of the table to files of these names."""
    parts = np.array_split(np.arange(len(table)), len(names))
    return [
        write(table.iloc[part], folder / name, rows)
        for part, name in zip(parts, names, strict=True)
    ]


def make(**options):
    return SmoothBetaClassifier(**{"bandwidth": 0.2, **options})


def held(model):
    """Return all distinct places of a model with their statistics, sorted."""
    places = concatenate(model.windows_.places)
    keys = [*places.axes]
    sums = [*places.counts.astype(np.int64)]
    if places.shifts is not None:
        keys += [places.shifts.values, places.shifts.sizes()]
        sums += [places.shifts.held.astype(np.int64)]
    found, at = np.unique(np.stack(keys), axis=1, return_inverse=True)
    total = np.zeros((len(sums), found.shape[1]), dtype=np.int64)
    for row, column in zip(total, sums, strict=True):
        np.add.at(row, at.ravel(), column)
    return found.tobytes(), total.tobytes()


def assert_same(streamed, whole):
    """Check that two models are the same, to the bit."""
    assert streamed.classes_.tolist() == whole.classes_.tolist()
    assert streamed.n_trials_ == whole.n_trials_
    assert streamed.feature_names_in_.tolist() == whole.feature_names_in_.tolist()
    for name in ("bounds_", "scale_", "relevance_", "weights_"):
        assert getattr(streamed, name).tobytes() == getattr(whole, name).tobytes(), name
    assert streamed.field_.totals == whole.field_.totals
    assert streamed.field_.polynomials == whole.field_.polynomials
    assert streamed.windows_.totals.tolist() == whole.windows_.totals.tolist()
    assert held(streamed) == held(whole)
    grid = pd.DataFrame({"dose": [0.1, 0.3, 0.7], "age": [25.0, 50.0, 80.0]})
    assert streamed.predict_proba(grid).tobytes() == whole.predict_proba(grid).tobytes()


def test_models_that_know_different_things_are_told_apart():
    table = trials(50)
    model = make().fit(table[NAMES], table["died"])
    assert_same(model, make().fit(table[NAMES][::-1], table["died"][::-1]))
    older = table.assign(age=table["age"].where(table.index != 7, 55))
    for other in (
        make().fit(table[NAMES], 1 - table["died"]),
        make().fit(table[NAMES], table["died"] + 1),
        make().fit(table[NAMES], table["died"], sample_weight=table["weight"]),
        make().fit(older[NAMES], table["died"]),
    ):
        with pytest.raises(AssertionError):
            assert_same(model, other)


def learn_both(table, paths, fit=None, options=None, **columns):
    """Return a model of the files, and one of the table with the arguments in `fit`."""
    options = options or {}
    streamed = make(**options).fit_files(paths, features=NAMES, batch_rows=64, **columns)
    whole = make(**options)
    given = fit or {"y": table["died"]}
    method = whole.fit_counts if "trials" in given else whole.fit
    return streamed, method(table[NAMES], **given)


def learned(paths, limits, batch_rows=64, forest=None, **columns):
    """Return the result of `fit_files` with other limits on reading."""
    rows = files.Rows(paths, files.roles(NAMES, **columns), batch_rows, limits=limits)
    begun = streaming.begun("model", Options.of(make()), rows)
    if forest is not None:
        begun = replace(begun, windows=Forest(len(NAMES), limits=forest))
    return SmoothBetaClassifier.of(streaming.learned("model", begun, rows))


# The same as a single fit.

KINDS = {
    "Parquet": ["a.parquet", "b.pq", "c.parquet"],
    "CSV": ["a.csv", "b.csv"],
    "both": ["a.csv", "b.parquet", "c.CSV", "d.parquet"],
    "one": ["a.parquet"],
}


@pytest.mark.parametrize("kind", KINDS)
def test_files_teach_what_one_fit_on_all_rows_does(kind, tmp_path):
    table = trials()
    paths = split(table, tmp_path, KINDS[kind])
    assert_same(*learn_both(table, paths, outcome="died"))


@pytest.mark.parametrize("kind", ["Parquet", "CSV", "both"])
def test_weights_teach_the_same(kind, tmp_path):
    table = trials()
    table.loc[:80, "weight"] = 0.0  # batches without any weight
    table.loc[3, "age"] = 500  # a point without a trial
    table.loc[3, "weight"] = 1e-12
    paths = split(table, tmp_path, KINDS[kind])
    fit = {"y": table["died"], "sample_weight": table["weight"]}
    both = learn_both(table, paths, fit, outcome="died", sample_weight="weight")
    assert_same(*both)
    assert both[0].bounds_[1, 1] < 500


@pytest.mark.parametrize("kind", ["Parquet", "CSV", "both"])
def test_counts_teach_the_same(kind, tmp_path):
    table = trials()
    table.loc[:80, ["won", "held"]] = 0
    table.loc[3, "age"] = 500
    paths = split(table, tmp_path, KINDS[kind])
    fit = {"successes": table["won"], "trials": table["held"]}
    assert_same(*learn_both(table, paths, fit, successes="won", trials="held"))


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_counts_beyond_the_exact_floats_teach_the_same(suffix, tmp_path):
    table = trials(40)
    table["held"] = 2**53 + 1
    paths = split(table, tmp_path, ["a" + suffix, "b" + suffix])
    fit = {"successes": table["won"], "trials": table["held"]}
    assert_same(*learn_both(table, paths, fit, successes="won", trials="held"))


@pytest.mark.parametrize("kind", ["CSV", "both"])
@pytest.mark.parametrize("sharing", ["exact", "mean"])
@pytest.mark.parametrize("weighted", [False, True])
def test_contexts_in_columns_teach_the_same(kind, sharing, weighted, tmp_path):
    table = trials()
    table.loc[5, "age"] = 500
    table.loc[5, ["low", "high"]] = 0.5  # an uninformative trial
    paths = split(table, tmp_path, KINDS[kind])
    fit = {"y": table["died"], "context": table[["low", "high"]].to_numpy()}
    columns = {"outcome": "died", "context": ["low", "high"]}
    if weighted:
        fit["sample_weight"], columns["sample_weight"] = table["weight"], "weight"
    both = learn_both(table, paths, fit, {"sharing": sharing}, **columns)
    assert_same(*both)
    assert both[0].bounds_[1, 1] < 500


@pytest.mark.parametrize("sharing", ["exact", "mean"])
def test_one_context_for_all_rows_teaches_the_same(sharing, tmp_path):
    table = trials()
    paths = split(table, tmp_path, KINDS["both"])
    chance = contexts.guess_lapse(guess=0.5)
    fit = {"y": table["died"], "context": chance}
    assert_same(
        *learn_both(table, paths, fit, {"sharing": sharing}, outcome="died", context=chance)
    )


@pytest.mark.parametrize("size", [2, 3, 64])
def test_one_context_is_not_mistaken_for_one_number_a_row(size, tmp_path):
    table = trials(3 * size)
    paths = split(table, tmp_path, ["a.csv", "b.csv", "c.csv"])
    pool = contexts.pooled(size - 1)
    fit = {"y": table["died"], "context": pool[None]}
    assert_same(*learn_both(table, paths, fit, outcome="died", context=pool))


def pools(rows):
    sizes = np.asarray(rows["age"] if isinstance(rows, pd.DataFrame) else rows.column("age")) // 30
    out = np.ones((len(sizes), 4))
    out[:, 0], out[sizes < 2, 1], out[sizes == 0, 1:3] = 0.0, 0.5, (1 / 3, 2 / 3)
    return out


@pytest.mark.parametrize("rising", [True, False])
def test_a_function_of_all_columns_gives_polynomial_contexts(rising, tmp_path):
    table = trials().sort_values("age", ascending=rising)  # each batch brings new polynomials
    table["name"] = "text that is no feature"
    paths = split(table, tmp_path, KINDS["both"])
    fit = {"y": table["died"], "context": pools(table)}
    streamed, whole = learn_both(table, paths, fit, outcome="died", context=pools)
    assert_same(streamed, whole)
    assert len(whole.field_.polynomials) > 2


LABELS = {
    "three numbers": [0, 1, 2],
    "negative": [-1, 1],
    "floats": [0.0, 1.0],
    "booleans": [False, True],
    "text": ["no", "yes"],
    "three words": ["east", "Süd", "west, or so"],
}


@pytest.mark.parametrize("kind", ["Parquet", "CSV", "both"])
@pytest.mark.parametrize("labels", LABELS)
def test_any_labels_teach_the_same(kind, labels, tmp_path):
    table = trials(labels=LABELS[labels])
    paths = split(table, tmp_path, KINDS[kind])
    assert_same(*learn_both(table, paths, outcome="died"))


def test_a_class_may_be_in_one_file_only(tmp_path):
    table = trials().sort_values("died", kind="stable")
    paths = split(table, tmp_path, KINDS["both"])
    assert_same(*learn_both(table, paths, outcome="died"))


@pytest.mark.parametrize(
    "options",
    [
        {"bandwidth": "loo"},
        {"bandwidth": "auto"},
        {"bandwidth": "theory"},
        {"method": "process", "bandwidth": "auto"},
        {"method": "windows"},
        {"scale": None},
        {"scale": [1.0, 10.0], "metric": "chebyshev"},
        {"bounds": [(-1, 2), (0, 100)]},
        {"prior": (2.0, 0.5), "n_jobs": 2},
    ],
    ids=spelled,
)
def test_every_option_has_the_same_result(options, tmp_path):
    table = trials()
    paths = split(table, tmp_path, KINDS["both"])
    assert_same(*learn_both(table, paths, options=options, outcome="died"))


@pytest.mark.parametrize("bandwidth", ["loo", "auto"])
def test_widths_are_chosen_for_all_trials_at_once(bandwidth, tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.uniform(size=(3000, 2)), columns=NAMES)
    table["died"] = rng.uniform(size=3000) < table["dose"]
    paths = split(table, tmp_path, KINDS["both"], rows=700)
    assert_same(*learn_both(table, paths, options={"bandwidth": bandwidth}, outcome="died"))


@st.composite
def files_of(draw, t):
    """Draw the file of each row, and the size of row groups and batches."""
    owner = np.array(draw(st.lists(st.integers(0, 3), min_size=t, max_size=t)))
    suffixes = [draw(st.sampled_from([".csv", ".parquet"])) for _ in range(4)]
    return owner, suffixes, draw(st.integers(1, 9)), draw(st.integers(1, 9))


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 30).flatmap(files_of), st.data())
def test_how_rows_are_spread_cannot_be_seen(spread, data):
    owner, suffixes, group, batch_rows = spread
    table = trials(len(owner), seed=len(owner))
    table["died"] = np.arange(len(owner)) % 2
    table["weight"] += 0.125
    with tempfile.TemporaryDirectory() as folder:
        paths = [
            write(table[owner == i], Path(folder, f"{i}{suffix}"), group)
            for i, suffix in enumerate(suffixes)
        ]
        streamed = learned(
            data.draw(st.permutations(paths)),
            files.Limits(),
            batch_rows,
            Limits(small=4, batch=4, rows=7),
            outcome="died",
            sample_weight="weight",
            context=["low", "high"],
        )
        whole = make().fit(
            table[NAMES], table["died"], table["weight"], table[["low", "high"]].to_numpy()
        )
        assert_same(streamed, whole)


@pytest.mark.parametrize("block", [200, 1 << 20])
def test_blocks_of_csv_files_cannot_be_seen(block, tmp_path):
    table = trials(labels=["no", "yes"])
    paths = split(table, tmp_path, KINDS["CSV"])
    whole = make().fit(table[NAMES], table["died"])
    assert_same(learned(paths, files.Limits(block=block), outcome="died"), whole)


def test_lines_within_quotes_cannot_be_seen(tmp_path):
    table = trials(labels=["no,\n\n\n", '"\n\nyes'])
    path = write(table, tmp_path / "a.csv")
    whole = make().fit(table[NAMES], table["died"])
    assert_same(learned(path, files.Limits(block=110), outcome="died"), whole)


# Paths.


def test_files_are_named_by_paths_folders_globs_and_lists(tmp_path):
    table = trials()
    folder = tmp_path / "inside"
    (folder / "further").mkdir(parents=True)
    paths = split(table, folder, ["a.csv", "b.csv", "further/c.parquet"])
    (folder / "_SUCCESS").touch()
    (folder / ".hidden.csv").touch()
    whole = make().fit(table[NAMES], table["died"])
    for named in (
        folder,
        str(folder),
        [folder],
        tuple(map(str, paths)),
        iter(paths[::-1]),
        str(folder / "**" / "*.*"),
        str(tmp_path / "*"),
        [folder / "further", f"{folder}/?.csv", paths[0]],
    ):
        assert_same(make().fit_files(named, features=NAMES, outcome="died"), whole)


def test_a_file_named_twice_is_read_once(tmp_path):
    path = write(trials(), tmp_path / "a.csv")
    (tmp_path / "link.csv").symlink_to(path)
    model = make().fit_files([path, str(path), tmp_path], features=NAMES, outcome="died")
    assert model.n_trials_ == T


def test_a_path_may_look_like_a_glob(tmp_path):
    path = write(trials(), tmp_path / "[a]*.csv")
    assert make().fit_files(path, features=NAMES, outcome="died").n_trials_ == T


def test_files_without_rows_do_not_matter(tmp_path):
    table = trials()
    paths = split(table, tmp_path, ["b.csv", "c.parquet"])
    empty = [write(table[:0], tmp_path / name) for name in ("a.parquet", "d.csv", "z.pq")]
    untyped = pa.table({name: pa.nulls(0) for name in table.columns})
    pa.parquet.write_table(untyped, tmp_path / "y.parquet")
    everything = [*paths, *empty, tmp_path / "y.parquet"]
    assert_same(*learn_both(table, everything, outcome="died"))


# Columns.


def test_features_are_all_other_columns_of_numbers(tmp_path):
    table = trials()[[*NAMES, "died", "weight"]]
    write(table[:300], tmp_path / "a.csv")
    write(table[300:][["weight", "died", "age", "dose"]], tmp_path / "b.parquet")
    model = make().fit_files(tmp_path, outcome="died", sample_weight="weight")
    assert_same(model, make().fit(table[NAMES], table["died"], table["weight"]))


def test_features_are_in_the_order_asked_for(tmp_path):
    path = write(trials(), tmp_path / "a.parquet")
    model = make().fit_files(path, features=NAMES[::-1], outcome="died")
    assert model.feature_names_in_.tolist() == NAMES[::-1]
    assert model.bounds_[0, 1] > 1 == model.bounds_[1, 1]


TYPES = [
    pa.int8(),
    pa.uint64(),
    pa.float16(),
    pa.float32(),
    pa.decimal128(25, 3),
    pa.dictionary(pa.int8(), pa.int64()),
]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_columns_of_any_number_type_are_learned(dtype, tmp_path):
    values = [3, 1, 2, 3, 1, 1]
    plain = pa.array(values)
    if pa.types.is_dictionary(dtype):
        plain = plain.dictionary_encode()
    typed = pa.table({"a": plain.cast(dtype), "y": [0, 1] * 3})
    pa.parquet.write_table(typed, tmp_path / "a.parquet")
    model = make().fit_files(tmp_path, outcome="y")
    assert model.bounds_.tolist() == [[1.0, 3.0]]
    assert model.windows_.totals.tolist() == [3, 3]


def test_booleans_are_numbers_and_dates_are_none(tmp_path):
    table = pa.table({"a": [True, False, True], "y": [0, 1, 1]})
    pa.parquet.write_table(table, tmp_path / "a.parquet")
    assert make().fit_files(tmp_path, outcome="y").bounds_.tolist() == [[0.0, 1.0]]
    dates = table.set_column(0, "a", pa.array([1, 2, 3], pa.timestamp("s")))
    pa.parquet.write_table(dates, tmp_path / "b.parquet")
    said = ["b.parquet, column 'a': found timestamp", "numbers or booleans"]
    refuse(tmp_path, *said, features=["a"], outcome="y")


def test_decimals_are_rounded_once(tmp_path):
    spelled = ["0.1", "123456789012.3456789", "9007199254740993.0000001"]
    typed = pa.array(spelled).cast(pa.decimal128(38, 7))
    pa.parquet.write_table(pa.table({"a": typed, "y": [0, 1, 0]}), tmp_path / "a.parquet")
    model = make(scale=None).fit_files(tmp_path, outcome="y")
    places = np.concatenate([places.axes[0] for places in model.windows_.places])
    assert sorted(places.tolist()) == [float(number) for number in spelled]


@pytest.mark.parametrize(
    "labels",
    [
        pa.array(["no", "yes"] * 3).dictionary_encode(),
        pa.array(["no", "yes"] * 3, pa.large_string()),
        pa.array(["no", "yes"] * 3, pa.string_view()),
    ],
    ids=lambda labels: str(labels.type),
)
def test_text_of_any_type_is_a_label(labels, tmp_path):
    table = pa.table({"a": [1.0, 2.0, 3.0] * 2, "y": labels})
    pa.parquet.write_table(table, tmp_path / "a.parquet")
    assert make().fit_files(tmp_path, outcome="y").classes_.tolist() == ["no", "yes"]


def test_files_of_polars_are_read(tmp_path):
    table = trials(labels=["no", "yes"])
    pl.from_pandas(table).write_parquet(tmp_path / "a.parquet", row_group_size=90)
    assert_same(*learn_both(table, tmp_path, outcome="died"))


def test_labels_of_csv_are_what_all_of_them_can_be(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,1\n2,0\n")
    (tmp_path / "b.csv").write_text("x,y\n3,01\n4,1.0\n5,2\n")
    model = make().fit_files(tmp_path, outcome="y")
    assert model.classes_.tolist() == [0.0, 1.0, 2.0]
    assert model.windows_.totals.tolist() == [1, 3, 1]


def test_a_quoted_word_for_nothing_is_a_label(tmp_path):
    (tmp_path / "a.csv").write_text('x,y\n1,"NA"\n2,"EU\nor so"\n')
    assert make().fit_files(tmp_path, outcome="y").classes_.tolist() == ["EU\nor so", "NA"]


# Bad input. The error says which file, where in it, and what to do; the model stays unchanged.


def before_and_after(model):
    return {name: id(value) for name, value in vars(model).items()}


@given(
    lines=st.lists(st.sampled_from(["", "0.5", "2"]), max_size=7),
    before=st.integers(0, 2),
    after=st.integers(0, 3),
    line_end=st.sampled_from(["\n", "\r\n"]),
    mark=st.booleans(),
    width=st.integers(1, 3),
)
def test_every_line_of_a_csv_file_is_a_row(lines, before, after, line_end, mark, width):
    """Including blank ones, except before the header and, with two columns, at the end."""
    names = ["x", '"y, z"', "w"][:width] if width != 1 or before else ['"x,y"']
    rows = [line and ",".join([line] * width) for line in lines] + [""] * after
    text = line_end.join([*[""] * before * (not mark), ",".join(names), *rows, ""])
    while width > 1 and rows and not rows[-1]:
        rows.pop()
    expected = [float(row.split(",")[0] or "nan") for row in rows]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "points.csv")
        path.write_bytes(b"\xef\xbb\xbf" * mark + text.encode())
        read = files.Rows(path, files.Roles(()), batch_rows=3).read("")
        found = [batch.points().column(0).to_numpy() for batch in read]
    np.testing.assert_array_equal(np.concatenate([np.empty(0), *found]), expected)


@pytest.mark.parametrize("after", [1, 70_000, 200_000])
def test_blank_lines_at_the_end_are_told_from_rows_however_many(after, tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"x,y\n1,2\n3,4\n" + b"\n" * after)
    batches = list(files.Rows(path, files.Roles(())).read(""))
    assert [batch.points()["y"].to_pylist() for batch in batches] == [[2.0, 4.0]]


@pytest.mark.parametrize("blank", ["", ",,"])
def test_a_blank_line_among_trials_is_named(blank, tmp_path):
    (tmp_path / "a.csv").write_text(f"dose,age,died\n1,40,0\n{blank}\n2,50,1\n")
    refuse(tmp_path, "a.csv", "line 3 of ", "outcome: found None; no label may be missing")
    refuse(tmp_path, "line 3 of ", outcome=None, successes="died", trials="age", features=["dose"])


@contextlib.contextmanager
def refused(error, *said, **options):
    """Expect an error with all of these words, and an unchanged model."""
    table = trials(50)
    model = make().fit(table[NAMES], table["died"]).set_params(**options)
    before = before_and_after(model)
    with pytest.raises(error) as caught:
        yield model
    for words in said:
        assert words in str(caught.value), str(caught.value)
    assert before_and_after(model) == before


@pytest.mark.parametrize(
    ("error", "said"),
    [(ValueError, ["b.csv"]), (TypeError, []), (OSError, [])],
    ids=["other words", "another error", "another"],
)
def test_what_is_not_refused_as_said_is_told_apart(error, said):
    with refused(ValueError, "a.csv"):
        raise ValueError("a.csv: found nothing")
    with pytest.raises((AssertionError, ValueError)), refused(error, *said):
        raise ValueError("a.csv: found nothing")
    with pytest.raises(AssertionError), refused(ValueError, "a.csv") as model:
        refused_too_late(model)


def refused_too_late(model):
    other = trials(60)
    model.fit(other[NAMES], other["died"])
    raise ValueError("a.csv: found nothing")


def refuse(paths, *said, error=ValueError, **options):
    with refused(error, *said) as model:
        model.fit_files(
            paths, **{"features": NAMES, "outcome": "died", "batch_rows": 64, **options}
        )


@pytest.mark.parametrize(
    ("paths", "error", "said"),
    [
        ([], ValueError, ["paths: found an empty list"]),
        ("no/such.csv", FileNotFoundError, ["no/such.csv", "no such file"]),
        ("no/*.csv", FileNotFoundError, ["no/*.csv", "no file matches"]),
        (3, TypeError, ["paths: found int", "a folder, or a list"]),
        ("/dev/null", ValueError, ["paths: found '/dev/null', a device; regular files are"]),
        ([None], TypeError, ["paths: found None"]),
        (np.array(0.5), TypeError, ["paths: found ndarray", "a folder, or a list"]),
        (b"a.csv", TypeError, ["paths: found bytes"]),
    ],
    ids=repr,
)
def test_paths_that_name_nothing_are_refused(paths, error, said):
    refuse(paths, *said, error=error)


@pytest.mark.parametrize("whole", [False, True], ids=["alone", "among others"])
@pytest.mark.parametrize("what", ["a pipe", "a socket", "a broken link"])
def test_what_is_no_regular_file_is_said_wherever_it_is(what, whole, tmp_path):
    """Nothing waits for a writer, and nothing is skipped silently."""
    path = tmp_path / "a.csv"
    if what == "a pipe":
        os.mkfifo(path)
    elif what == "a socket":
        made = socket.socket(socket.AF_UNIX)
        made.bind(os.path.relpath(path))  # the full path may be too long a name
        made.close()
    else:
        path.symlink_to("nowhere.csv")
    if whole:
        write(trials(), tmp_path / "b.csv")
    error = FileNotFoundError if what == "a broken link" else ValueError
    for paths in (path, [tmp_path / "b.csv"] * whole + [path], tmp_path, f"{tmp_path}/*.csv"):
        refuse(paths, f"paths: found '{path}', {what}", error=error)


def test_a_folder_without_files_is_refused(tmp_path):
    (tmp_path / "_SUCCESS").touch()
    refuse(tmp_path, str(tmp_path), "without files", error=FileNotFoundError)


@pytest.mark.parametrize("name", ["a.pkl", "a.csv.gz", "a", "a.arrow"])
def test_an_unknown_kind_of_file_is_refused_wherever_it_is(name, tmp_path):
    path = tmp_path / name
    path.write_bytes(b"cos\nsystem\n(S'touch hacked'\ntR.")
    for paths in (path, tmp_path, [path], f"{tmp_path}/*"):
        refuse(paths, name, ".parquet, .pq, .csv")


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("column", ["age", "died"])
def test_a_column_that_one_file_lacks_is_refused_before_any_row_is_read(suffix, column, tmp_path):
    table = trials()
    table.loc[0, "dose"] = np.nan
    write(table, tmp_path / "a.parquet")
    path = write(table.drop(columns=column), tmp_path / f"b{suffix}")
    argument = "outcome" if column == "died" else "features"
    refuse(tmp_path, str(path), f"no column '{column}' for {argument}", "it has 'dose'")


def test_a_column_that_is_there_twice_is_refused(tmp_path):
    (tmp_path / "a.csv").write_text("dose,age,dose,died\n1,2,3,4\n")
    refuse(tmp_path, "a.csv", "2 columns 'dose'")
    refuse(tmp_path, "a.csv", "column 'dose'", "two of that name", features=None)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"outcome": None}, ["outcome: name either"]),
        ({"successes": "won"}, ["outcome: name either"]),
        ({"outcome": None, "successes": "won"}, ["outcome: name either"]),
        (
            {"outcome": None, "successes": "won", "trials": "held", "sample_weight": "weight"},
            ["sample_weight: found 'weight'", "counted already"],
        ),
        ({"features": ["dose", "died"]}, ["column 'died' in two places"]),
        ({"features": []}, ["features: found no names"]),
        ({"context": ["low", "low"]}, ["column 'low' in two places"]),
        ({"context": np.ones((2, 2))}, ["context: found shape (2, 2)", "one context for all"]),
        ({"context": [0.5, 1.5]}, ["context", "1.5"]),
        ({"context": [[0.5], [0.5, 1.0]]}, ["context: found rows of different lengths"]),
        ({"context": [0.5, np.ma.masked]}, ["context row 1: found a masked value"]),
        ({"batch_rows": 0}, ["batch_rows: found 0", "from 1 on"]),
        ({"batch_rows": 1.5}, ["batch_rows: found 1.5"]),
        ({"batch_rows": True}, ["batch_rows: found True"]),
        ({"batch_rows": np.timedelta64(3, "s")}, ["batch_rows: found 3 seconds"]),
        ({"progress": np.ones(2)}, ["progress: found array", "True, False or None"]),
        ({"progress": pd.NA}, ["progress: found <NA>", "True, False or None"]),
        ({"features": None, "context": pools}, ["features: "]),
    ],
    ids=spelled,
)
def test_columns_that_cannot_be_are_refused(options, said, tmp_path):
    table = trials()
    if "context" in options:
        table = table[[*NAMES, "died", "low"]]
    refuse(write(table, tmp_path / "a.csv"), *said, **options)


@pytest.mark.parametrize(
    "options",
    [
        {"features": "dose"},
        {"features": 2},
        {"features": [0, 1]},
        {"features": np.array(0.5)},
        {"features": np.ma.masked},
        {"outcome": 3},
        {"context": ["low", 3]},
    ],
    ids=spelled,
)
def test_names_that_are_none_are_refused(options, tmp_path):
    refuse(write(trials(), tmp_path / "a.csv"), next(iter(options)), error=TypeError, **options)


class Name(str, enum.Enum):  # noqa: UP042
    """Text whose str() differs, unlike that of a StrEnum."""

    MISSING = "missing"


@pytest.mark.parametrize("name", [np.str_("missing"), Name.MISSING], ids=["NumPy", "enumeration"])
def test_names_are_spelled_as_plain_text(name, tmp_path):
    path = write(trials(), tmp_path / "a.csv")
    for options in ({"outcome": name}, {"features": [name]}, {"context": [name, "low"]}):
        refuse(path, f"has no column 'missing' for {next(iter(options))};", **options)


@pytest.mark.parametrize("argument", ["features", "outcome", "sample_weight"])
def test_numbers_that_python_does_not_write_are_no_names(argument, tmp_path):
    names = [10**5000] if argument == "features" else 10**5000
    said = f"{argument}: found a value of type int"
    refuse(write(trials(), tmp_path / "a.csv"), said, error=TypeError, **{argument: names})
    refuse([10**5000], "paths: found a value of type int", error=TypeError)


@pytest.mark.parametrize("digits", [18, 400, 5000])
def test_more_rows_at_once_than_can_be_counted_are_refused(digits, tmp_path):
    path = write(trials(), tmp_path / "a.parquet")
    refuse(path, "batch_rows: found ", "at most 9007199254740992", batch_rows=10**digits)


def test_doubtful_features_are_refused(tmp_path):
    table = trials()
    path = write(table.assign(name="x"), tmp_path / "a.parquet")
    refuse(path, "features: ", "column 'name': found text", "name the columns", features=None)
    write(table, tmp_path / "b.parquet")
    said = ["features: ", "a.parquet", "b.parquet", "('name')", "name those"]
    refuse(tmp_path, *said, features=None)
    path = tmp_path / "c.parquet"
    table.sample(frac=1.0, random_state=0).to_parquet(path)
    refuse(path, "__index_level_0__", "index of a pandas dataframe", features=None)
    path = write(table[["died"]], tmp_path / "d.csv")
    refuse(path, "d.csv has no other columns", features=None)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("column", ["age", "weight", "low"])
def test_text_among_numbers_is_refused_by_its_file(suffix, column, tmp_path):
    table = trials()
    write(table, tmp_path / "a.parquet")
    words = table[column].astype(object)
    words[70] = "many"
    path = write(table.assign(**{column: words.astype(str)}), tmp_path / f"b{suffix}")
    said = [str(path), f"column '{column}'"]
    said += (
        [f"line 72 of {path}", "'many'", "number"]
        if suffix == ".csv"
        else ["found text", "numbers"]
    )
    refuse(tmp_path, *said, sample_weight="weight", context=["low", "high"])


@pytest.mark.parametrize("names", [("a.csv", "b.csv"), ("a.parquet", "b.csv"), ("a.pq", "b.pq")])
@pytest.mark.parametrize("labels", [["no", "yes"], [False, True]])
def test_outcomes_of_another_kind_are_refused_by_both_files(names, labels, tmp_path):
    one = write(trials(), tmp_path / names[0])
    other = write(trials(labels=labels), tmp_path / names[1])
    kind = "text" if labels[0] == "no" else "booleans"
    refuse(tmp_path, f"{other}, column 'died': found {kind}", f"{one} has numbers", "one kind")


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("bounds", [None, [(0, 1), (0, 100)]])
def test_a_missing_number_is_refused_by_its_row(suffix, bounds, tmp_path):
    table = trials()
    table["age"] = table["age"].astype(float)
    table.loc[345, "age"] = np.nan
    write(trials(), tmp_path / "a.csv")
    path = write(table, tmp_path / f"b{suffix}", rows=100)
    said = [f"{number(345, path)}, column 'age': found NaN", "finite"]
    with refused(ValueError, *said, bounds=bounds) as model:
        model.fit_files(tmp_path, features=NAMES, outcome="died", batch_rows=64)


def number(row, path):
    """Return the name of a row in errors, for files with one line per row."""
    return f"line {row + 2} of {path}" if path.suffix == ".csv" else f"row {row} of {path}"


BAD_ROWS = {
    "infinity": ("dose", np.inf, [", column 'dose': found inf", "finite"]),
    "no label": ("died", None, [": outcome: found None", "missing"]),
    "half a label": ("died", 0.5, ["column 'died': found 0.5", "whole numbers"]),
    "a negative weight": ("weight", -1.0, [": sample_weight: found -1.0", "negative"]),
    "no weight": ("weight", None, [": sample_weight: found NaN", "finite"]),
    "a coefficient above 1": ("high", 1.5, [": context", "1.5"]),
}


@pytest.mark.parametrize("case", BAD_ROWS)
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_row_that_cannot_be_is_refused_by_its_number(case, suffix, tmp_path):
    column, value, said = BAD_ROWS[case]
    table = trials()
    table[column] = table[column].astype("Int64" if case == "no label" else float)
    table.loc[345, column] = pd.NA if case == "no label" else value
    path = write(table, tmp_path / f"a{suffix}", rows=100)
    first = str(path) if case == "half a label" else number(345, path) + said[0]
    refuse(tmp_path, first, *said, sample_weight="weight", context=["low", "high"])


def test_more_successes_than_trials_are_refused_by_their_row(tmp_path):
    table = trials()
    table.loc[345, "won"] = 9
    path = write(table, tmp_path / "a.csv")
    columns = {"outcome": None, "successes": "won", "trials": "held"}
    refuse(path, f"line 347 of {path}: successes: found 9 of", **columns)


def test_a_point_outside_the_bounds_is_refused_by_its_row(tmp_path):
    table = trials()
    table.loc[345, "age"] = 500
    path = write(table, tmp_path / "a.csv")
    said = [f"line 347 of {path}, column 'age': found 500.0", "bounds"]
    with refused(ValueError, *said, bounds=[(0, 1), (0, 100)]) as model:
        model.fit_files(path, features=NAMES, outcome="died", batch_rows=64)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"scale": "std"}, ["scale: found 'std'", "as numbers"]),
        ({"scale": "unit"}, ["scale: found 'unit'"]),
        ({"bounds": [(0, 1)]}, ["bounds: found shape (1, 2)"]),
        ({"bandwidth": "wide"}, ["bandwidth: found 'wide'"]),
        ({"prior": (0, 1)}, ["prior: "]),
    ],
    ids=spelled,
)
def test_an_option_that_means_nothing_is_refused(options, said, tmp_path):
    path = write(trials(), tmp_path / "a.csv")
    with refused(ValueError, *said, **options) as model:
        model.fit_files(path, features=NAMES, outcome="died")


@pytest.mark.parametrize(
    ("change", "columns"),
    [
        ({"weight": 0.0}, {"sample_weight": "weight"}),
        ({"weight": 1e-12}, {"sample_weight": "weight"}),
        ({"won": 0, "held": 0}, {"outcome": None, "successes": "won", "trials": "held"}),
        ({"low": 0.5, "high": 0.5}, {"context": ["low", "high"]}),
    ],
    ids=spelled,
)
@pytest.mark.parametrize("bounds", [None, [(0, 1), (0, 100)]])
def test_rows_none_of_which_teaches_anything_are_refused(change, columns, bounds, tmp_path):
    path = write(trials().assign(**change), tmp_path / "a.csv")
    said = ["paths: found no row that teaches anything", str(path)]
    with refused(ValueError, *said, bounds=bounds) as model:
        model.fit_files(path, **{"features": NAMES, "outcome": "died", **columns})


def test_files_that_are_all_without_rows_are_refused(tmp_path):
    write(trials()[:0], tmp_path / "a.csv")
    write(trials()[:0], tmp_path / "b.parquet")
    refuse(tmp_path, "paths: found no rows in 2 files", "a.csv", "b.parquet")


def test_one_class_in_all_files_is_refused(tmp_path):
    split(trials(labels=["no"]), tmp_path, ["a.csv", "b.parquet"])
    refuse(tmp_path, "outcome: found only one class, 'no'")


@pytest.mark.parametrize("label", [0, 1, True])
def test_one_class_of_which_the_other_is_known_is_as_for_fit(label, tmp_path):
    """Windows answer ½ where there are no trials, so they require the other class."""
    table = trials(labels=[label])
    split(table, tmp_path, ["a.csv", "b.parquet"])
    with pytest.raises(ValueError, match="only one class"):
        make().fit(table[NAMES], table["died"])
    refuse(tmp_path, f"outcome: found only one class, {label!r}, in all files")
    smooth = SmoothBetaClassifier().fit_files(tmp_path, features=NAMES, outcome="died")
    whole = SmoothBetaClassifier().fit(table[NAMES], table["died"])
    assert smooth.classes_.tolist() == whole.classes_.tolist() == [0, 1]


def test_a_measurement_is_no_outcome(tmp_path):
    split(trials(), tmp_path, ["a.csv", "b.parquet"])
    rows = files.Rows(
        tmp_path, files.roles(["dose"], outcome="age"), limits=files.Limits(classes=50)
    )
    with pytest.raises(ValueError, match="more than 50 classes in column 'age'"):
        rows.classes()
    assert len(files.Rows(tmp_path, files.roles(["dose"], outcome="age")).classes()) == 70


def test_contexts_of_three_classes_are_refused(tmp_path):
    path = write(trials(labels=[0, 1, 2]), tmp_path / "a.csv")
    refuse(path, str(path), "context: found one where there are 3 classes", context=[0.5, 1.0])


@pytest.mark.parametrize("options", [{"bandwidth": 0.3, "prior": (1.0, 2.0)}], ids=str)
def test_options_for_two_classes_are_refused_before_three_are_learned(options, tmp_path):
    path = write(trials(labels=[0, 1, 2]), tmp_path / "a.csv")
    with refused(ValueError, "prior: ", **options) as model:
        model.fit_files(path, features=NAMES, outcome="died")


def test_a_function_that_gives_no_contexts_is_refused_by_the_file(tmp_path):
    path = write(trials(), tmp_path / "a.csv")
    refuse(path, str(path), "context: found 3 rows", context=lambda _: np.ones((3, 2)) / 2)
    refuse(path, "no age", error=RuntimeError, context=fails)


def fails(_):
    raise RuntimeError("no age")


# Damage.


def damaged(path, group):
    """Overwrite the pages of one row group."""
    column = pa.parquet.ParquetFile(path).metadata.row_group(group).column(0)
    start = column.dictionary_page_offset or column.data_page_offset
    data = bytearray(path.read_bytes())
    data[start : start + column.total_compressed_size] = b"\xff" * column.total_compressed_size
    path.write_bytes(data)


def test_a_damaged_row_group_is_refused_by_its_number(tmp_path):
    write(trials(), tmp_path / "a.parquet")
    path = write(trials(), tmp_path / "b.parquet", rows=100)
    damaged(path, 4)
    refuse(tmp_path, f"{path}, row group 4: cannot be read: ")


def test_a_changed_page_with_a_checksum_is_refused(tmp_path):
    path = tmp_path / "a.parquet"
    table = pa.Table.from_pandas(trials())
    options = {"compression": "none", "use_dictionary": False, "write_page_checksum": True}
    pa.parquet.write_table(table, path, row_group_size=200, **options)
    column = pa.parquet.ParquetFile(path).metadata.row_group(1).column(0)
    data = bytearray(path.read_bytes())
    data[column.data_page_offset + column.total_compressed_size - 3] ^= 1
    path.write_bytes(data)
    refuse(path, f"{path}, row group 1: cannot be read: ", "CRC checksum")


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_truncated_file_is_refused(share, tmp_path):
    write(trials(), tmp_path / "a.csv")
    path = write(trials(), tmp_path / "b.parquet")
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    refuse(tmp_path, f"{path}: cannot be read: ")


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_noise_is_refused(suffix, tmp_path):
    path = tmp_path / f"a{suffix}"
    path.write_bytes(np.random.default_rng(0).bytes(5000))
    refuse(path, str(path))


@pytest.mark.parametrize(
    ("row", "said"), [("7,8", "found 2 values; 3 are"), ("1,2,3,4", "found 4 values; 3 are")]
)
def test_a_ragged_row_is_refused_by_its_number(row, said, tmp_path):
    lines = ["dose,age,died", *(f"0.5,{20 + i},{i % 2}" for i in range(60))]
    lines[1 + 40] = row
    path = tmp_path / "a.csv"
    path.write_text("\n".join(lines))
    with pytest.raises(ValueError, match=re.escape(f"line 42 of {path}: {said}")):
        learned(path, files.Limits(block=100), outcome="died")


@pytest.mark.parametrize("is_late", [False, True])
def test_text_that_is_not_utf_8_is_refused_by_its_line(is_late, tmp_path):
    """In a column that is read, in the first block of the file and in a later one."""
    lines = [b"dose,age,died", *(b"0.5,%d,no" % (20 + i) for i in range(60))]
    lines[41 if is_late else 2] = b"0.5,20,\xff"
    path = tmp_path / "a.csv"
    path.write_bytes(b"\n".join(lines))
    said = f"line {42 if is_late else 3} of {path}, column 'died': found b'\\xff'; text must be"
    with pytest.raises(ValueError, match=re.escape(said)):
        learned(path, files.Limits(block=100), outcome="died")


@pytest.mark.parametrize("value", ["many", '"NA"', "1_000", "0x1g", " 1 2 ", "1,000.0"])
@pytest.mark.parametrize("is_late", [False, True])
def test_a_value_that_is_no_number_is_refused_by_its_line(value, is_late, tmp_path):
    """Whatever pyarrow cannot read as a number is found again, in whichever block it is."""
    lines = ["dose;age;died", *(f"0.5; {20 + i} ;{i % 2}" for i in range(60))]
    lines[41 if is_late else 2] = f"0.5;{value};1"
    path = tmp_path / "a.csv"
    path.write_text("\n".join(lines))
    found = value.strip('"')
    said = f"line {42 if is_late else 3} of {path}, column 'age': found an invalid value {found!r};"
    asked = files.roles(["dose", "age"], outcome="died")
    rows = files.Rows(path, asked, separator=";", limits=files.Limits(block=100))
    with pytest.raises(ValueError, match=re.escape(said)):
        list(rows.read("learning"))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "Empty CSV"),
        (b"dose,age,died\n1,2," + b"x" * 900 + b"\n", "straddling"),
    ],
)
def test_a_csv_file_that_cannot_be_read_is_refused(content, said, tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    where = re.escape(f"{path}: cannot be read: ")
    with pytest.raises(ValueError, match=f"{where}.*{said}"):
        learned(path, files.Limits(block=100), outcome="died")


def test_a_file_that_may_not_be_read_is_refused(tmp_path, monkeypatch):
    path = write(trials(), tmp_path / "a.parquet")

    def forbidden(*_, **__):
        raise PermissionError("Permission denied")

    monkeypatch.setattr(pa.parquet, "ParquetFile", forbidden)
    refuse(path, f"{path}: cannot be read: Permission denied")


@pytest.mark.parametrize("position", range(0, 1200, 37))
def test_no_flipped_byte_leaves_a_half_learned_model(position, tmp_path):
    path = write(trials(60), tmp_path / "a.parquet", rows=20)
    data = bytearray(path.read_bytes())
    data[position * len(data) // 1200] ^= 0x55
    path.write_bytes(data)
    model, said = make(), ""
    try:
        model.fit_files(path, features=NAMES, outcome="died")
    except ValueError as error:
        said = str(error)
    learned = set(vars(model)) - set(model.get_params())
    assert learned if not said else not learned
    assert not said or "a.parquet" in said or said.startswith("outcome: ")


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path):
    path = write(trials(), tmp_path / "a.csv")

    def changes(_):
        write(trials(labels=[0, 7]), path)
        return [[0.5, 1.0]]

    (tmp_path / "b.csv").write_text("dose,age,died\n1,2,0\n")
    refuse([tmp_path / "a.csv"], "label that was not there", context=changes)


# Without pyarrow or rich.


def without(monkeypatch, missing):
    """Make imports of a package fail."""
    for name in [missing, *sys.modules]:
        if name.partition(".")[0] == missing:
            monkeypatch.setitem(sys.modules, name, None)  # Python's mark of a missing module


def test_without_pyarrow_the_line_that_installs_it_is_told(monkeypatch, tmp_path):
    path = write(trials(), tmp_path / "a.csv")
    without(monkeypatch, "pyarrow")
    refuse(path, "pip install '.[files]'", error=ImportError)


def test_without_rich_progress_is_told_only_where_it_was_asked_for(monkeypatch, tmp_path):
    path = write(trials(), tmp_path / "a.csv")
    without(monkeypatch, "rich")
    refuse(path, "pip install rich", error=ImportError, progress=True)
    make().fit_files(path, features=NAMES, outcome="died", progress=False)


# Progress.


@pytest.mark.parametrize("kind", ["Parquet", "CSV", "both"])
def test_progress_is_shown_where_asked_for(kind, capsys, tmp_path):
    paths = split(trials(), tmp_path, KINDS[kind])
    make().fit_files(paths, features=NAMES, outcome="died", progress=True, batch_rows=10)
    out, err = capsys.readouterr()
    assert not out
    for line in ("classes", "bounds", "learning"):
        assert re.search(rf"{line} .* 100%", err), err


@pytest.mark.parametrize(("progress", "shown"), [(None, True), (False, False)])
def test_progress_is_shown_on_a_terminal(progress, shown, capsys, tmp_path, monkeypatch):
    path = write(trials(), tmp_path / "a.csv")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    make().fit_files(path, features=NAMES, outcome="died", progress=progress)
    assert bool(capsys.readouterr().err) == shown


def test_a_bar_ends_where_reading_fails(capsys, tmp_path):
    table = trials()
    table.loc[345, "dose"] = np.inf
    path = write(table, tmp_path / "a.csv")
    refuse(path, "line 347", progress=True)
    refuse(path, "line 347", progress=True)  # a second bar could not start beside the first
    assert "bounds" in capsys.readouterr().err


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_all_bytes_of_a_file_are_counted(suffix, tmp_path):
    path = write(trials(), tmp_path / f"a{suffix}", rows=50)
    (file,) = files.listed(path, limits=files.Limits(block=1000))
    read = sum(piece.size for piece in file.pieces({"dose": pa.float64()}, 7))
    assert read == pytest.approx(path.stat().st_size)


# Memory.

PEAK = """
import sys
from betafield import SmoothBetaClassifier, files, streaming
from betafield.options import Options
limits = files.Limits(block=1 << 18)  # so that as much is read ahead of both files
rows = files.Rows(sys.argv[1], files.roles(outcome="died"), limits=limits)
begun = streaming.begun("model", Options(bandwidth=0.1), rows)
model = SmoothBetaClassifier.of(streaming.learned("model", begun, rows))
model.posterior([[0.5, 0.5]]).mean()
status = open("/proc/self/status").read()
print(model.n_trials_, model.windows_.size, status.split("VmHWM:")[1].split()[0])
"""


def peak(path):
    """Return the trials, the places and the peak memory in KiB of a process that learns."""
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PEAK, str(path)],
        capture_output=True,
        text=True,
        check=True,
    )
    return tuple(map(int, run.stdout.split()))


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is told by Linux")
@pytest.mark.long
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_memory_goes_with_places_and_not_with_rows(suffix, tmp_path):
    rng = np.random.default_rng(0)
    places, peaks = np.round(rng.uniform(size=(1000, 2)), 3), []
    for t in (500_000, 1_500_000):
        at = rng.integers(0, 1000, size=t)
        table = pd.DataFrame(places[at], columns=["a", "b"]).assign(died=rng.integers(0, 2, t))
        known, size, most = peak(write(table, tmp_path / f"{t}{suffix}"))
        assert known == t
        assert size <= 3000
        peaks.append(most)
    # A million more rows would take 24 bytes each if they were kept.
    assert peaks[1] - peaks[0] < 1_000_000 * 24 / 1024 / 2


# Lines -------------------------------------------------------------------------------------


@given(
    st.lists(
        st.sampled_from(["x", "a\nb", 'say ""so""', "a\r\nb", "", "ü"]), min_size=1, max_size=9
    ),
    st.sampled_from(["\n", "\r\n"]),
    st.integers(0, 2),
    st.booleans(),
)
def test_errors_name_the_line_on_which_a_row_begins(notes, end, blank, has_mark):
    """The line number of an editor: the number of line ends before the row, plus one."""
    rows = [f'{i},"{note}",{i % 2}' for i, note in enumerate(notes)]
    rows.append(f"many,x,{len(notes) % 2}")
    text = end * blank + end.join(["dose,note,died", *rows]) + end
    before = text[: text.index("many")].replace("\r\n", "\n")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.csv")
        path.write_bytes((b"\xef\xbb\xbf" if has_mark and not blank else b"") + text.encode())
        line = before.count("\n") + 1
        refuse(
            path, f"line {line} of {path}, column 'dose': found an invalid value", features=["dose"]
        )


@pytest.mark.sampled
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("size", [3, 64, 1000])
def test_rows_without_a_value_are_left_out_of_files(suffix, size, tmp_path):
    whole = trials()
    holed = whole.astype({"age": float, "died": "Int64"})
    holed.loc[[5, 17], "age"] = np.nan
    holed.loc[[17, 200], "died"] = pd.NA
    path = write(holed, tmp_path / f"a{suffix}", rows=100)
    model = SmoothBetaClassifier(missing="drop", bandwidth=0.5)
    said = f"left out 3 of {len(whole)} rows, .*the first is {number(5, path)}"
    with pytest.warns(UserWarning, match=said):
        model.fit_files(path, features=NAMES, outcome="died", batch_rows=size)
    rest = whole.drop(index=[5, 17, 200])
    other = SmoothBetaClassifier(bandwidth=0.5).fit(rest[NAMES], rest["died"])
    ours, theirs = (each.posterior(whole[NAMES]) for each in (model, other))
    np.testing.assert_array_equal(ours.alpha, theirs.alpha)
    np.testing.assert_array_equal(ours.beta, theirs.beta)
    holed["age"] = np.nan
    write(holed, path, rows=100)
    with pytest.raises(ValueError, match="a missing value in every row"):
        model.fit_files(path, features=NAMES, outcome="died")


def test_an_error_after_rows_that_were_left_out_names_its_own_line(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("dose,died\n,0\n1,0\n,1\ninf,1\n2,1\n")
    with pytest.raises(ValueError, match=r"line 5 of .*, column 'dose': found inf"):
        SmoothBetaClassifier(missing="drop").fit_files(path, outcome="died")
