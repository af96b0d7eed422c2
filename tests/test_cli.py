"""The command line: the real program for the main uses, and its `main` for the many wrong ones."""

import csv
import hashlib
import html
import io
import json
import os
import pty
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import time
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import betafield
from betafield import SmoothBetaClassifier, contexts, guarantees
from betafield.cli import (
    UsageError,
    distortions,
    main,
    predicting,
    reference,
    spelling,
    terminal,
    writing,
)
from betafield.estimators import load

ROOT = Path(__file__).parent.parent
BETAFIELD = [sys.executable, "-m", "betafield"]
HEAVY = {"numpy", "scipy", "numba", "sklearn", "pyarrow", "pandas", "narwhals", "rich", "pydantic"}


def rows_of(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def write_csv(path, names, *columns):
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([names, *zip(*columns, strict=True)])


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder with tables, and with models made by the library."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    x = rng.integers(0, 101, size=800) / 100
    success = rng.uniform(size=800) < 1 - x
    write_csv(folder / "trials.csv", ["difficulty", "success"], x, success.astype(int))
    model = SmoothBetaClassifier(bandwidth=0.2)
    model.fit(pa.table({"difficulty": x}), success.astype(int)).save(folder / "line.beta")
    lon, lat = rng.integers(-10, 11, size=(2, 900)).astype(float)
    positive = rng.uniform(size=900) < (lon + 10) / 20
    plane = pa.table({"lon": lon, "lat": lat, "positive": positive})
    pq.write_table(plane, folder / "screening.parquet")
    model.fit(plane.select(["lon", "lat"]), positive).save(folder / "plane.beta")
    kinds = rng.choice(["red", "green", "blue"], size=800)
    write_csv(folder / "kinds.csv", ["difficulty", "kind"], x, kinds)
    model.fit(pa.table({"difficulty": x}), kinds).save(folder / "kinds.beta")
    model.fit(x[:, None], success).save(folder / "nameless.beta")
    write_csv(folder / "points.csv", ["note", "difficulty"], ["a", "b", "c"], [0.5, 0.1, 0.9])
    shutil.copy(ROOT / "examples" / "data" / "codling.csv", folder)
    return folder


@pytest.fixture
def here(data, tmp_path, monkeypatch):
    """A separate working folder with all of these files."""
    shutil.copytree(data, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def say(here, capfd):
    """Run the program in this process; return status, output and errors."""

    def run(*arguments):
        before = set(os.listdir(here))
        status = main([str(each) for each in arguments])
        out, err = capfd.readouterr()
        if status:
            assert set(os.listdir(here)) == before, "a failed command leaves no file"
        return status, out, err

    return run


@pytest.fixture
def refuse(say):
    """Expect one matching sentence on standard error, and nothing else."""

    def run(status, match, *arguments):
        found, out, err = say(*arguments)
        assert (found, out) == (status, "")
        assert re.fullmatch(r"betafield: error: [^\n]+\n", err), err
        assert re.search(match, err), err

    return run


def program(*arguments, **settings):
    """Run the real program."""
    settings = {"capture_output": True, "timeout": 300, "env": environment(), **settings}
    return subprocess.run([*BETAFIELD, *map(str, arguments)], check=False, **settings)


def environment(*folders, **variables):
    """Return an environment in which the package is found, whatever the working folder."""
    found = os.pathsep.join(map(str, [*folders, Path(betafield.__file__).parents[1]]))
    return {**os.environ, "PYTHONPATH": found, **variables}


# Help --------------------------------------------------------------------------------------


def modules_after(*arguments):
    run = program(*arguments, env=environment(PYTHONPROFILEIMPORTTIME="1"), text=True)
    assert run.returncode == 0
    return {line.rpartition("|")[2].strip().partition(".")[0] for line in run.stderr.splitlines()}


@pytest.mark.parametrize("arguments", [["--help"], ["fit", "--help"], ["--version"]], ids=" ".join)
def test_help_is_told_without_heavy_packages(arguments):
    loaded = modules_after(*arguments)
    assert "typer" in loaded
    assert loaded & HEAVY == set()


def test_help_lists_every_command_and_option(say):
    listed = say("--help")[1]
    for command in (
        "fit",
        "predict",
        "average",
        "threshold",
        "report",
        "plan",
        "info",
        "demo",
        "paper",
    ):
        status, out, _ = say(command, "--help")
        assert status == 0
        assert f"  {command} " in listed
        assert out.startswith(f"Usage: betafield {command}")
        assert max(map(len, out.splitlines())) <= 80


def test_the_version_is_told(say):
    assert say("--version") == (0, f"betafield {betafield.__version__}\n", "")


def test_the_page_of_reference_is_up_to_date():
    assert (ROOT / "docs" / "commands.md").read_text(encoding="utf-8") == reference.page()


def test_without_typer_the_line_that_installs_it_is_told(tmp_path):
    (tmp_path / "typer.py").write_text("raise ImportError('no typer')")
    run = program("--help", env=environment(tmp_path), text=True)
    assert run.returncode == 1
    expected = "betafield: error: typer is needed for this: pip install '.[cli]' in a checkout\n"
    assert (run.stdout, run.stderr) == ("", expected)


def test_without_pyarrow_the_line_that_installs_it_is_told(say, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    status, _, err = say("fit", "trials.csv", "--outcome", "success")
    assert status == 1
    assert (
        err
        == "betafield: error: pyarrow is needed for this: pip install '.[files]' in a checkout\n"
    )


# The tutorial ------------------------------------------------------------------------------


def lines_of_the_tutorial():
    text = (ROOT / "docs" / "command_line.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


@pytest.mark.long
@pytest.mark.filterwarnings("always:X. left out")
def test_every_line_of_the_tutorial_runs(say, here):
    lines = lines_of_the_tutorial()
    assert len(lines) >= 12
    districts = ["north", "north", "south"], [5, 7, 3], [0.0, 5.0, 1.0], [4.0, 5.0, -6.0]
    write_csv(
        here / "districts.csv", ["district", "people", "lon", "lat"], *map(np.array, districts)
    )
    text = "dose;cured\n" + "".join(f"{i};{i % 3 // 2}\n" for i in range(30)) + ";1\n"
    (here / "export.csv").write_text(text)
    for line in lines:
        command, _, target = line.partition(" > ")
        if not line.startswith("betafield "):  # a pipe, which needs a shell
            betafield = shlex.join(BETAFIELD)
            script = command.replace("betafield ", f"{betafield} ")
            run = subprocess.run(["sh", "-c", script], env=environment(), check=False)
            assert run.returncode == 0
            continue
        status, out, err = say(*shlex.split(command)[1:])
        assert status == 0, err
        if target:
            Path(target).write_text(out)
    assert len(rows_of(here / "curve.csv")) == 200
    assert pq.read_table(here / "told.parquet").num_rows == 3
    assert "Success by difficulty" in (here / "report.html").read_text(encoding="utf-8")


# fit ---------------------------------------------------------------------------------------


def assert_same_model(path, expected):
    found = load(path)
    assert found.n_trials_ == expected.n_trials_
    assert found.classes_.tolist() == expected.classes_.tolist()
    at = np.linspace(*expected.bounds_.T, 7)
    names = list(expected.feature_names_in_)
    points = pa.table(list(at.T), names)
    assert found.posterior(points).mean().tolist() == expected.posterior(points).mean().tolist()


@pytest.mark.usefixtures("here")
def test_models_that_know_different_things_are_told_apart():
    x, y = np.array([0.0, 0.5, 1.0]), np.array([0, 1, 1])
    model = SmoothBetaClassifier(0.6).fit(pa.table({"x": x}), y)
    model.save("one.beta")
    assert_same_model("one.beta", model)
    for other in (y[::-1], y + 1, np.array([0, 1, 0])):
        with pytest.raises(AssertionError):
            assert_same_model("one.beta", SmoothBetaClassifier(0.6).fit(pa.table({"x": x}), other))


@pytest.mark.usefixtures("here")
def test_a_table_becomes_the_model_of_the_library():
    run = program(
        "fit", "trials.csv", "--features", "difficulty", "--outcome", "success", text=True
    )
    assert (run.returncode, run.stderr) == (0, "")
    cells = rows_of("trials.csv")
    x = [float(row["difficulty"]) for row in cells]
    y = [int(row["success"]) for row in cells]
    expected = SmoothBetaClassifier().fit(pa.table({"difficulty": x}), y)
    assert_same_model("trials.beta", expected)
    told = dict(re.findall(r"^(\w+) +(.*)$", run.stdout, re.MULTILINE))
    assert told["trials"] == f"800, {np.mean(y):.1%} of them successes"
    assert told["places"] == str(len(set(x)))
    length = f"{expected.length_scales_[0]:.4g}"
    assert told["feature"] == f"difficulty, from 0 to 1, length scale {length}"
    assert told["model"] == "trials.beta"
    assert "\x1b" not in run.stdout
    assert "━" not in run.stdout


def test_counts_with_a_column_of_background(say):
    asked = ["--features", "ct", "--successes", "dead", "--trials", "insects"]
    context = ["--background", "control_mortality", "--bandwidth", "0.1", "--out", "moth.beta"]
    assert say("fit", "codling.csv", *asked, *context)[0] == 0
    rows = np.genfromtxt("codling.csv", delimiter=",", names=True, dtype=None, encoding="utf-8")
    expected = SmoothBetaClassifier(bandwidth=0.1).fit_counts(
        pa.table({"ct": rows["ct"]}),
        rows["dead"],
        rows["insects"],
        context=contexts.background(rows["control_mortality"]),
    )
    assert_same_model("moth.beta", expected)


def test_an_imperfect_test_on_a_map(say):
    table = pq.read_table("screening.parquet")
    asked = ["--features", "lon,lat", "--outcome", "positive", "--bandwidth", "0.3"]
    rates = ["--sensitivity", "0.92", "--specificity", "0.98"]
    assert say("fit", "screening.parquet", *asked, *rates)[0] == 0
    expected = SmoothBetaClassifier(bandwidth=0.3).fit(
        table.select(["lon", "lat"]), table["positive"], context=contexts.diagnostic(0.92, 0.98)
    )
    assert_same_model("screening.beta", expected)


def test_all_options_of_the_model_arrive(say):
    given = {
        "method": "windows",
        "bandwidth": "0.25",
        "lipschitz": "2",
        "metric": "manhattan",
        "scale": "0.5,2",
        "prior": "2,3",
        "sharing": "mean",
    }
    flags = [part for name, text in given.items() for part in (f"--{name}", text)]
    bounds = ["--bounds", "lat=-20:20", "--bounds", "lon=-10:30"]
    asked = ["--features", "lon,lat", "--outcome", "positive", "--out", "m.beta"]
    assert say("fit", "screening.parquet", *asked, *flags, *bounds)[0] == 0
    found = load("m.beta")
    assert (found.bandwidth, found.lipschitz, found.metric) == (0.25, 2.0, "manhattan")
    assert list(found.scale) == [0.5, 2.0]
    assert (found.method, tuple(found.prior), found.sharing) == ("windows", (2.0, 3.0), "mean")
    assert found.bounds_.tolist() == [[-10.0, 30.0], [-20.0, 20.0]]


@pytest.mark.long
@pytest.mark.usefixtures("here")
def test_what_may_be_wrong_with_the_trials_is_a_note(say):
    write_csv("flat.csv", ["x", "c", "y"], [0, 1, 2, 3], [7] * 4, [0, 1, 1, 0])
    asked = ["fit", "flat.csv", "--outcome", "y", "--features", "x,c"]
    run = program(*asked, text=True)
    assert run.returncode == 0
    said = "'c' is constant, 7; it carries no information and can be left out"
    assert run.stderr == f"betafield: {said}\n"
    assert say(*asked, "--force", "--quiet") == (0, "", "")


def test_weights_count_rows_several_times(say):
    write_csv("w.csv", ["x", "y", "w"], [0, 1, 1], [0, 1, 0], [3, 2, 5])
    options = ["--features", "x", "--outcome", "y", "--weights", "w", "--bandwidth", "0.5"]
    assert say("fit", "w.csv", *options)[0] == 0
    assert load("w.beta").n_trials_ == 10


def test_several_files_are_one_table(say):
    os.mkdir("parts")
    for i in range(3):
        write_csv(f"parts/{i}.csv", ["x", "y"], [i, i + 0.5], [0, 1])
    assert say("fit", "parts/0.csv", "parts/[12].csv", "--outcome", "y", "--features", "x")[0] == 0
    assert load("0.beta").n_trials_ == 6
    assert say("fit", "parts", "--outcome", "y", "--out", "all.beta")[0] == 0
    assert load("all.beta").n_trials_ == 6


def test_names_with_spaces_and_dashes(say):
    shutil.copy("trials.csv", "my trials.csv")
    shutil.copy("trials.csv", "-x.csv")
    assert say("fit", "my trials.csv", "--quiet") == (0, "", "")
    assert say("fit", "--quiet", "--", "-x.csv") == (0, "", "")
    assert Path("my trials.beta").read_bytes() == Path("-x.beta").read_bytes()


def test_a_mark_of_byte_order_is_no_part_of_a_name(say):
    write_csv("plain.csv", ["x", "y"], [1, 2, 3], [0, 1, 1])
    Path("bom.csv").write_bytes(b"\xef\xbb\xbf" + Path("plain.csv").read_bytes())
    assert say("fit", "bom.csv", "--features", "x", "--outcome", "y")[0] == 0
    assert load("bom.beta").feature_names_in_.tolist() == ["x"]


# Guesses -----------------------------------------------------------------------------------


def test_columns_are_guessed_and_told(say):
    write_csv("t.csv", ["dose", "age", "died"], [1, 2, 3], [40, 50, 70], ["no", "yes", "no"])
    status, _, err = say("fit", "t.csv")
    assert status == 0
    assert err == (
        "betafield: guessed outcome 'died', the only column with two values\n"
        "betafield: guessed features 'dose', 'age', all other columns\n"
        "betafield: guessed success 'yes', by its name; choose the other with --success\n"
    )
    assert load("t.beta").feature_names_in_.tolist() == ["dose", "age"]


def test_the_success_is_never_guessed_by_the_alphabet(say, refuse):
    write_csv("t.csv", ["x", "y"], [1, 2, 3], ["correct", "incorrect", "incorrect"])
    status, told, err = say("fit", "t.csv", "--outcome", "y")
    assert status == 0
    assert "guessed success 'correct'" in err
    assert "success is correct" in told
    assert load("t.beta").pos_label_ == "correct"
    status, told, err = say("fit", "t.csv", "--success", "incorrect", "--out", "other.beta")
    assert "guessed success" not in err
    assert json.loads(say("info", "other.beta", "--json")[1])["success"] == "incorrect"
    assert "successes" in told
    write_csv("sides.csv", ["x", "y"], [1, 2, 3], ["left", "right", "right"])
    refuse(2, "--success: found 'left' and 'right' in column 'y'", "fit", "sides.csv")
    refuse(2, "--success: found 'up'", "fit", "sides.csv", "--success", "up")
    assert say("fit", "sides.csv", "--success", "left")[0] == 0
    assert load("sides.beta").pos_label_ == "left"


def test_rates_that_are_not_known(say, refuse):
    rng = np.random.default_rng(0)
    x = np.round(rng.uniform(size=80), 2)
    write_csv("t.csv", ["x", "y"], x, (rng.uniform(size=80) < 0.5 + 0.4 * x).astype(int))
    asked = ("fit", "t.csv", "--features", "x", "--outcome", "y", "--method", "process", "--force")
    status, told, err = say(*asked, "--guess", "1/2", "--lapse", "~Beta(1.5, 30)")
    assert status == 0
    assert "--lapse is unknown, with prior Beta(1.5, 30)" in err
    assert "lapse was unknown and is estimated as 0." in told
    twin = SmoothBetaClassifier(method="process").fit(
        pa.table({"x": x}),
        rows_labels("t.csv"),
        context=contexts.guess_lapse(0.5, contexts.Unknown(1.5, 30)),
    )
    assert load("t.beta").rates_["lapse"].alpha == twin.rates_["lapse"].alpha
    (rate,) = json.loads(say("info", "t.beta", "--json")[1])["rates"]
    assert rate["name"] == "lapse"
    assert rate["low"] < rate["mean"] < rate["high"]
    err = say(*asked, "--sensitivity", "92/100", "--specificity", "0.4")[2]
    assert "--sensitivity is unknown, with prior Beta(93, 9)" in err
    for option, found in (
        ("--lapse", "~Beta(1)"),
        ("--lapse", "~Beta(0, 1)"),
        ("--lapse", "~N(0, 1)"),
    ):
        refuse(2, "--lapse: ", *asked, option, found)
    refuse(2, "counts of a study", *asked, "--sensitivity", "9/8", "--specificity", "0.9")
    refuse(2, "--attenuated", *asked, "--attenuated", "~Beta(1, 1)", "--gain", "0.5")


def rows_labels(path):
    return [int(row["y"]) for row in rows_of(path)]


def test_counts_have_their_success(refuse):
    write_csv("t.csv", ["x", "k", "n"], [1, 2, 3], [1, 2, 3], [4, 4, 4])
    counted = ("--successes", "k", "--trials", "n", "--features", "x")
    refuse(2, "--success: found with --successes", "fit", "t.csv", *counted, "--success", "1")


def test_columns_of_contexts_are_no_features(say):
    write_csv("t.csv", ["x", "rate", "y"], [1, 2, 3], [0.1, 0.2, 0.3], [0, 1, 1])
    status, _, err = say("fit", "t.csv", "--background", "rate")
    assert status == 0
    assert "features 'x', the only other column" in err


def test_two_spellings_of_a_number_are_one_value(say):
    write_csv("t.csv", ["x", "y"], [1, 2, 3], ["0", "1.0", "1"])
    assert say("fit", "t.csv")[0] == 0


def test_the_whole_file_is_looked_at(refuse):
    rows = 300_000  # beyond the first block of the reader
    write_csv("t.csv", ["x", "y"], range(rows), [i % 2 if i < rows - 1 else 2 for i in range(rows)])
    assert os.path.getsize("t.csv") > 2**21
    refuse(1, "no column has two values", "fit", "t.csv")


@pytest.mark.parametrize(
    ("names", "columns", "match"),
    [
        (["sex", "y"], [[0, 1, 1], [0, 1, 0]], "columns 'sex', 'y' have two values"),
        (["x", "y"], [[1, 2, 3], [1, 2, 3]], "no column has two values"),
        (["x", "name", "y"], [[1, 2, 3], ["a", "b", "c"], [0, 1, 1]], "'name': found text"),
        (["id", "x", "y"], [[1, 2, 3], [4, 5, 6], [0, 1, 1]], "'id' seems to number the rows"),
        (["", "x", "y"], [[0, 1, 2], [4, 5, 6], [0, 1, 1]], "'' seems to number the rows"),
        (["x", "x", "y"], [[1, 2, 3], [4, 5, 6], [0, 1, 1]], "two of that name"),
        (["x", "y"], [[], []], "no rows"),
    ],
    ids=["two candidates", "none", "text", "id", "index", "twice", "no rows"],
)
def test_nothing_is_guessed_in_doubt(refuse, names, columns, match):
    write_csv("t.csv", names, *columns)
    refuse(1, match, "fit", "t.csv")


# Wrong ways to fit -------------------------------------------------------------------------

CSV_FILES = {
    "semicolons": (b"a;b\n1;0\n2;1\n", r"separated by semicolons, not by ','; .*--separator ';'"),
    "tabs": (b"a\tb\n1\t0\n2\t1\n", "separated by tabs.*--separator tab"),
    "empty": (b"", "is empty"),
    "blank": (b"\n\n", "is empty"),
    "header": (b"a,b\n", "no rows"),
    "latin1 names": (b"a,caf\xe9\n1,0\n2,1\n", "UTF-8.*0xe9"),
    "latin1 cells": (b"a,b\n1,caf\xe9\n2,th\xe9\n", "line 2 of .*, column .b.*in UTF-8"),
    "utf16": ("a,b\n1,0\n2,1\n".encode("utf-16"), "UTF-16"),
    "twice": (b"a,b,b\n1,0,1\n2,1,1\n", "2 columns 'b'"),
    "word": (b"a,b\n1,0\nx,1\n", "line 3 of .*, column 'a'.*'x'"),
    "missing": (b"a,b\n1,0\n,1\n", "line 3 of .*, column 'a'"),
    "missing outcome": (b"a,b\n1,0\n2,\n", "line 3 of .*: outcome"),
    "ragged": (b"a,b\n1,0\n2,1,3\n", "line 3 of"),
    "one class": (b"a,b\n1,no\n2,no\n", "only one class"),
}


@pytest.mark.parametrize("name", CSV_FILES)
def test_files_that_cannot_be_read_are_named(refuse, name):
    content, match = CSV_FILES[name]
    Path("bad file.csv").write_bytes(content)
    refuse(1, match, "fit", "bad file.csv", "--features", "a", "--outcome", "b")


TRIALS = ["fit", "trials.csv", "--features", "difficulty", "--outcome", "success"]


@pytest.mark.parametrize(
    ("status", "match", "arguments"),
    [
        (2, "missing command", []),
        (2, "no such command 'learn'", ["learn"]),
        (2, "missing argument 'FILE...'; see betafield fit --help", ["fit"]),
        (2, "no such option: --colour", [*TRIALS, "--colour", "red"]),
        (1, "'none.csv', but there is no such file", ["fit", "none.csv"]),
        (1, "no file matches", ["fit", "none*.csv"]),
        (1, "must end in", ["fit", "line.beta"]),
        (1, "has no column 'x'", ["fit", "trials.csv", "--features", "x", "--outcome", "success"]),
        (1, "has no column 'rate'", [*TRIALS, "--background", "rate"]),
        (1, "line.beta already exists; --force", [*TRIALS, "--out", "line.beta"]),
        (1, "is a folder", [*TRIALS, "--out", "."]),
        (1, "no folder nowhere", [*TRIALS, "--out", "nowhere/m.beta"]),
        (2, "give both", ["fit", "codling.csv", "--successes", "dead"]),
        (2, "with --successes", [*TRIALS, "--successes", "a", "--trials", "b"]),
        (2, "--weights", ["fit", "x", "--successes", "a", "--trials", "b", "--weights", "c"]),
        (2, "--specificity is needed", [*TRIALS, "--sensitivity", "0.9"]),
        (2, "--truth is needed", [*TRIALS, "--yes", "0.9"]),
        (2, "these cannot be combined", [*TRIALS, "--guess", "0.5", "--background", "0.1"]),
        (2, "--sensitivity: found 1.9", [*TRIALS, "--sensitivity", "1.9", "--specificity", "1"]),
        (2, "--pool-size: found 1.5", [*TRIALS, "--pool-size", "1.5"]),
        (2, "--bandwidth: found 'wide'", [*TRIALS, "--bandwidth", "wide"]),
        (2, "--bandwidth: found -1", [*TRIALS, "--bandwidth", "-1"]),
        (2, "--metric: found 'miles'", [*TRIALS, "--metric", "miles"]),
        (2, "--method: found 'magic'", [*TRIALS, "--method", "magic"]),
        (2, r"--prior: found \(2.0, 1.0\) with method='auto'", [*TRIALS, "--prior", "2,1"]),
        (2, "--sharing: found 'mean' with method='auto'", [*TRIALS, "--sharing", "mean"]),
        (2, "which has no windows", [*TRIALS, "--method", "process", "--bandwidth", "1"]),
        (2, "--sharing: found 'all'", [*TRIALS, "--sharing", "all"]),
        (2, "--scale: found 'miles'", [*TRIALS, "--scale", "miles"]),
        (2, "--scale: found 'miles'", [*TRIALS, "--scale", "miles,log"]),
        (2, "one per feature is needed, 1", [*TRIALS, "--scale", "range,log"]),
        (2, "--prior: found 'a'", [*TRIALS, "--prior", "a,1"]),
        (2, "--prior", [*TRIALS, "--prior", "-1,1"]),
        (2, "--bounds: found 'difficulty=3'", [*TRIALS, "--bounds", "difficulty=3"]),
        (2, "--bounds: found 'x=0:1'", [*TRIALS, "--bounds", "x=0:1"]),
        (1, "bounds allow", [*TRIALS, "--bounds", "difficulty=0.5:1"]),
    ],
    ids=lambda value: None if isinstance(value, int) else str(value)[:40],
)
def test_wrong_ways_to_fit(refuse, status, match, arguments):
    refuse(status, match, *arguments)


def test_bounds_must_be_of_all_features(refuse):
    asked = ["--features", "lon,lat", "--outcome", "positive", "--bounds", "lon=-10:10"]
    refuse(2, "none for lat", "fit", "screening.parquet", *asked)


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="no /proc here")
def test_a_folder_that_cannot_be_written_to(refuse):
    refuse(1, "/proc/told.csv", "predict", "line.beta", "--grid", "3", "--out", "/proc/told.csv")
    refuse(1, "/proc/m.beta", *TRIALS, "--quiet", "--out", "/proc/m.beta")


def test_force_replaces_a_file(say):
    before = Path("line.beta").read_bytes()
    assert say(*TRIALS, "--out", "line.beta", "--force", "--quiet")[0] == 0
    assert Path("line.beta").read_bytes() != before
    load("line.beta")


def test_a_failure_leaves_the_old_file(refuse):
    before = Path("line.beta").read_bytes()
    Path("bad.csv").write_text("a,b\n1,0\nx,1\n")
    asked = ["--features", "a", "--outcome", "b", "--out", "line.beta", "--force"]
    refuse(1, "line 3 of bad.csv", "fit", "bad.csv", *asked)
    assert Path("line.beta").read_bytes() == before


# average -----------------------------------------------------------------------------------


@pytest.fixture
def districts(here):
    rng = np.random.default_rng(3)
    lon, lat = rng.uniform(-10, 10, (2, 60))
    names = np.array(["south", "north", "=evil()"])[np.arange(60) % 3]
    people = rng.integers(0, 50, 60)
    write_csv(here / "d.csv", ["district", "people", "lon", "lat"], names, people, lon, lat)
    return names, people, np.column_stack([lon, lat])


def test_averages_are_those_of_the_library(say, districts):
    names, people, points = districts
    told = ("average", "plane.beta", "--by", "d.csv", "--area", "district", "--level", "0.9")
    status, out, err = say(*told, "--weights", "people", "--above", "0.5")
    assert (status, err) == (0, "")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [row["district"] for row in rows] == ["'=evil()", "north", "south"]
    X = pa.table(list(points.T), ["lon", "lat"])
    post = load("plane.beta").average(X, people, names)
    low, high = post.interval(0.9)
    expected = {"mean": post.mean(), "std": post.std(), "low": low, "high": high}
    for name, values in (expected | {"prob_above": post.prob_above(0.5)}).items():
        assert [float(row[name]) for row in rows] == values.tolist()
    assert [row["points"] for row in rows] == ["20"] * 3
    assert say(*told, "--out", "told.json")[0] == 0
    assert json.loads(Path("told.json").read_text())[0]["district"] == "=evil()"


@pytest.mark.parametrize(
    ("status", "match", "arguments"),
    [
        (2, "--by", ["plane.beta"]),
        (1, "no column 'area' for --area; it has 'district'", ["plane.beta", "--by", "d.csv"]),
        (2, "found - twice", ["-", "--by", "-"]),
        (2, "--level", ["plane.beta", "--by", "d.csv", "--level", "2"]),
        (
            1,
            "no column 'weight'",
            ["plane.beta", "--by", "d.csv", "--area", "lat", "--weights", "weight"],
        ),
        (1, "has no column 'difficulty'", ["line.beta", "--by", "d.csv", "--area", "district"]),
    ],
)
@pytest.mark.usefixtures("districts")
def test_wrong_ways_to_average(refuse, status, match, arguments):
    refuse(status, match, "average", *arguments)


def test_points_without_an_area_are_refused(refuse, here):
    write_csv(here / "d.csv", ["area", "difficulty"], ["a", ""], [0.1, 0.2])
    refuse(
        1,
        "line 3 of d.csv: area: found nothing in column .area",
        "average",
        "line.beta",
        "--by",
        "d.csv",
    )
    write_csv(here / "d.csv", ["area", "difficulty", "w"], ["a", "b"], [0.1, 0.2], [1, 0])
    told = ("average", "line.beta", "--by", "d.csv", "--weights", "w")
    refuse(1, "found 0 for all rows for 'b'", *told)


# predict -----------------------------------------------------------------------------------


def test_a_grid_over_the_domain(say):
    asked = ["--grid", "11", "--level", "0.9", "--above", "0.75"]
    status, out, err = say("predict", "line.beta", *asked)
    assert (status, err) == (0, "")
    told = list(csv.DictReader(out.splitlines()))
    assert list(told[0]) == ["difficulty", "mean", "std", "low", "high", "prob_above"]
    model, at = load("line.beta"), np.round(np.linspace(0, 1, 11), 12)
    posterior = model.posterior(pa.table({"difficulty": at}))
    low, high = posterior.interval(0.9)
    expected = [at, posterior.mean(), posterior.std(), low, high, posterior.prob_above(0.75)]
    found = [[float(row[name]) for row in told] for name in told[0]]
    assert found == [column.tolist() for column in expected]  # to the last digit


def test_a_grid_of_two_features(say):
    assert say("predict", "plane.beta", "--grid", "3", "--out", "map.json")[0] == 0
    found = json.loads(Path("map.json").read_text())
    expected = [(x, y) for x in (-10.0, 0.0, 10.0) for y in (-10.0, 0.0, 10.0)]
    assert [(row["lon"], row["lat"]) for row in found] == expected


def test_points_of_a_file_keep_their_order(say):
    status, out, _ = say("predict", "line.beta", "--at", "points.csv", "--band", "1")
    assert status == 0
    told = list(csv.DictReader(out.splitlines()))
    assert [row["difficulty"] for row in told] == ["0.5", "0.1", "0.9"]
    low, high = load("line.beta").band(pa.table({"difficulty": [0.5, 0.1, 0.9]}), 1.0)
    assert [float(row["band_low"]) for row in told] == low.tolist()
    assert [float(row["band_high"]) for row in told] == high.tolist()


@pytest.mark.parametrize("form", ["csv", "json", "parquet"])
def test_all_formats_say_the_same(say, form):
    say("predict", "line.beta", "--grid", "5", "--out", "a.csv")
    expected = [{name: float(v) for name, v in row.items()} for row in rows_of("a.csv")]
    assert say("predict", "line.beta", "--grid", "5", "--format", form, "--out", "b.data")[0] == 0
    content = Path("b.data").read_bytes()
    if form == "json":
        assert json.loads(content) == expected
    elif form == "parquet":
        assert pq.read_table("b.data").to_pylist() == expected
    else:
        assert content == Path("a.csv").read_bytes()


# More points than one batch.
MORE = predicting.ROWS + 100


def test_many_points_are_answered_some_at_a_time(say):
    n = MORE
    x = np.random.default_rng(0).uniform(size=n)
    pq.write_table(pa.table({"difficulty": x}), "many.parquet", row_group_size=300)
    for name in ("parts.csv", "parts.json", "parts.parquet"):
        assert say("predict", "line.beta", "--at", "many.parquet", "--out", name)[0] == 0
    mean = load("line.beta").posterior(pa.table({"difficulty": x})).mean().tolist()
    told = rows_of("parts.csv")
    assert [(float(row["difficulty"]), float(row["mean"])) for row in told] == list(
        zip(x, mean, strict=True)
    )
    assert [row["mean"] for row in json.loads(Path("parts.json").read_text())] == mean
    table = pq.read_table("parts.parquet")
    assert table["difficulty"].to_numpy().tolist() == x.tolist()
    assert table["mean"].to_numpy().tolist() == mean


def test_other_circumstances_by_numbers_and_by_columns(say):
    write_csv("at.csv", ["difficulty", "rate"], [0.1, 0.9], [0.25, 0.75])
    posterior = load("line.beta").posterior(pa.table({"difficulty": [0.1, 0.9]}))
    for text, context in [
        ("guess=1/2,lapse=0.02", contexts.guess_lapse(0.5, 0.02)),
        ("background=rate", contexts.background([0.25, 0.75])),
        ("pool-size=3", contexts.pooled(3)),
    ]:
        status, out, _ = say("predict", "line.beta", "--at", "at.csv", "--under", text)
        assert status == 0
        means = [float(row["mean"]) for row in csv.DictReader(out.splitlines())]
        assert means == posterior.under(context).mean().tolist()


def test_three_classes_have_columns_each(say):
    status, out, _ = say("predict", "kinds.beta", "--grid", "3")
    assert status == 0
    told = list(csv.DictReader(out.splitlines()))
    expected = load("kinds.beta").predict_proba(pa.table({"difficulty": [0.0, 0.5, 1.0]}))
    found = [[float(row[f"p_{c}"]) for c in ("blue", "green", "red")] for row in told]
    assert found == expected.tolist()
    assert {"low_red", "high_red"} <= set(told[0])


def test_a_model_without_names_takes_columns_in_order(say, refuse):
    write_csv("x.csv", ["anything"], [0.25])
    status, out, _ = say("predict", "nameless.beta", "--at", "x.csv")
    assert status == 0
    assert out.splitlines()[1].startswith("0.25,")
    write_csv("xy.csv", ["a", "b"], [1], [2])
    refuse(1, "has 2 columns.*1 columns are needed", "predict", "nameless.beta", "--at", "xy.csv")


def test_answers_do_not_hide_features(say):
    write_csv("t.csv", ["mean", "y"], [1, 2, 3], [0, 1, 1])
    say("fit", "t.csv", "--quiet")
    out = say("predict", "t.beta", "--grid", "2")[1]
    assert out.splitlines()[0] == "mean,posterior_mean,std,low,high"


@pytest.mark.parametrize(
    ("status", "match", "arguments"),
    [
        (2, "missing argument 'MODEL'", []),
        (2, "one of them is needed", ["line.beta"]),
        (2, "one of them is needed", ["line.beta", "--grid", "3", "--at", "points.csv"]),
        (1, "'none.beta', but there is no such file", ["none.beta", "--grid", "3"]),
        (1, "'trials.csv' is not a betafield file", ["trials.csv", "--grid", "3"]),
        (2, "--grid: found 1", ["line.beta", "--grid", "1"]),
        (2, "from 2 to 1,000", ["plane.beta", "--grid", "1001"]),
        (2, "--grid", ["line.beta", "--grid", "many"]),
        (2, "--level: found 95", ["line.beta", "--grid", "3", "--level", "95"]),
        (2, "--level: found nan", ["line.beta", "--grid", "3", "--level", "nan"]),
        (2, "--above: found 2", ["line.beta", "--grid", "3", "--above", "2"]),
        (2, "--band: found 0", ["line.beta", "--grid", "3", "--band", "0"]),
        (2, "ask for one", ["line.beta", "--grid", "3", "--band", "1", "--under", "guess=0.5"]),
        (2, "--under: found 'luck=1'", ["line.beta", "--grid", "3", "--under", "luck=1"]),
        (2, "--under: found 'rate'", ["line.beta", "--grid", "3", "--under", "guess=rate"]),
        (1, "3 classes", ["kinds.beta", "--grid", "3", "--under", "guess=0.5"]),
        (1, "3 classes", ["kinds.beta", "--grid", "3", "--band", "1"]),
        (2, "must end in", ["line.beta", "--grid", "3", "--out", "x.txt"]),
        (2, "--format: found 'xml'", ["line.beta", "--grid", "3", "--format", "xml"]),
        (1, "points.csv already exists", ["line.beta", "--grid", "3", "--out", "points.csv"]),
        (1, "codling.csv: has no column 'difficulty'", ["line.beta", "--at", "codling.csv"]),
        (1, "none.csv", ["line.beta", "--at", "none.csv"]),
    ],
    ids=lambda value: None if isinstance(value, int) else str(value)[:40],
)
def test_wrong_ways_to_predict(refuse, status, match, arguments):
    refuse(status, match, "predict", *arguments)


@pytest.mark.parametrize("to", ["csv", "json", "parquet"])
def test_a_missing_coordinate_names_file_row_and_column(refuse, to):
    x = np.full(MORE, 0.5)
    x[MORE - 43] = np.nan
    pq.write_table(pa.table({"difficulty": x}), "nan.parquet")
    where = rf"row {MORE - 43} of .*nan\.parquet, column 'difficulty': found NaN"
    refuse(1, where, "predict", "line.beta", "--at", "nan.parquet", "--out", f"told.{to}")


def test_more_than_two_features_have_no_grid(say, refuse):
    write_csv("t.csv", ["a", "b", "c", "y"], [1, 2, 3], [3, 1, 2], [2, 3, 1], [0, 1, 1])
    say("fit", "t.csv", "--quiet", "--bandwidth", "1")
    refuse(2, "3 features.*--at", "predict", "t.beta", "--grid", "3")


SPELLED = ["15.906", "3", "1e-3", "0.10", "+4", " 5", "-0"]


@pytest.mark.parametrize("times", [1, 1 + MORE // len(SPELLED)], ids=["one batch", "two"])
def test_points_are_written_as_they_were_given(say, times):
    spelled = SPELLED * times
    Path("at.csv").write_text("difficulty\n" + "\n".join(spelled) + "\n")
    status, out, _ = say("predict", "line.beta", "--at", "at.csv")
    told = list(csv.DictReader(out.splitlines()))
    assert (status, [row["difficulty"] for row in told]) == (0, spelled)
    at = pa.table({"difficulty": [float(x) for x in spelled]})
    assert [float(row["mean"]) for row in told] == load("line.beta").posterior(at).mean().tolist()
    _, out, _ = say("predict", "line.beta", "--at", "at.csv", "--format", "json")
    assert [row["difficulty"] for row in json.loads(out)] == [float(x) for x in spelled]


@pytest.mark.parametrize(
    ("kind", "spelled"),
    [
        (pa.float32(), ["15.906", "3.0"]),
        (pa.float64(), ["15.906", "3.0"]),
        (pa.int16(), ["15", "3"]),
    ],
)
def test_narrow_numbers_of_parquet_have_no_more_digits_than_they_know(say, kind, spelled):
    column = pa.array([15.906, 3.0]).cast(kind, safe=False)
    pq.write_table(pa.table({"difficulty": column}), "at.parquet")
    _, out, _ = say("predict", "line.beta", "--at", "at.parquet")
    assert [row["difficulty"] for row in csv.DictReader(out.splitlines())] == spelled


@given(low=st.floats(-1e6, 1e6), extent=st.floats(1e-3, 1e6), n=st.integers(2, 300))
def test_a_grid_has_its_ends_and_numbers_of_few_digits(low, extent, n):
    high = low + extent
    found = predicting._evenly(low, high, n)
    assert (found[0], found[-1], len(found)) == (low, high, n)
    np.testing.assert_allclose(
        found, np.linspace(low, high, n), atol=1e-11 * max(map(abs, (low, high)))
    )
    digits = [len(Decimal(repr(x)).normalize().as_tuple().digits) for x in found[1:-1].tolist()]
    assert max(digits, default=0) <= 13


@pytest.mark.filterwarnings("always:X. left out")
def test_rows_that_lack_a_value_are_left_out_and_counted(say, refuse):
    rows = "a,b,other\n1,0,\n,1,x\n2,1,\n3,,x\n4,0,\n\n5,1,x\n"
    Path("holes.csv").write_text(rows)
    asked = ["fit", "holes.csv", "--features", "a", "--outcome", "b", "--force"]
    refuse(1, "line 5 of holes.csv: outcome", *asked)
    status, _, err = say(*asked, "--drop-missing", "--bandwidth", "1")
    assert (status, load("holes.beta").n_trials_) == (0, 4)
    assert "left out 3 of 7 rows, in which a value is missing; the first is line 3 of" in err
    assert say(*asked, "--missing", "drop", "--bandwidth", "1")[2] == err
    assert "left out" not in say(*asked, "--drop-missing", "--quiet", "--bandwidth", "1")[2]
    refuse(2, "--missing, --drop-missing: ", *asked, "--drop-missing", "--missing", "level")
    status, out, err = say("predict", "holes.beta", "--at", "holes.csv", "--drop-missing")
    told = [row["a"] for row in csv.DictReader(out.splitlines())]
    assert (status, told) == (0, ["1", "2", "3", "4", "5"])
    assert "left out 2 of 7 rows" in err


@pytest.mark.parametrize(
    ("name", "mark", "asked"),
    [
        ("t.csv", ";", ["--separator", ";"]),
        ("t.csv", "\t", ["--separator", "tab"]),
        ("t.csv", "|", ["--separator", "|"]),
        ("t.tsv", "\t", []),
        ("t.TSV", ",", ["--separator", ","]),
    ],
)
def test_other_separators(say, name, mark, asked):
    rows = [["a", "b c", "y"], *([str(i), str(i % 3), str(i % 2)] for i in range(9))]
    Path(name).write_text("\n".join(mark.join(row) for row in rows) + "\n")
    same = Path("same.csv")
    same.write_text("\n".join(",".join(row) for row in rows) + "\n")
    for table, more in ((name, asked), (str(same), [])):
        say(
            "fit",
            table,
            "--features",
            "a,b c",
            "--outcome",
            "y",
            "--quiet",
            "--bandwidth",
            "1",
            *more,
        )
    at = pa.table({"a": [4.0], "b c": [1.0]})
    assert load("t.beta").posterior(at).alpha == load("same.beta").posterior(at).alpha
    ours = say("predict", "t.beta", "--at", name, *asked)
    assert ours == say("predict", "t.beta", "--at", str(same))
    assert ours[0] == 0


@pytest.mark.parametrize("mark", ["", ";;", "x", "0", '"', "\n", "§"])
def test_what_cannot_separate_columns_is_refused(refuse, mark):
    Path("t.csv").write_text("a,b\n1,0\n2,1\n")
    refuse(2, "--separator: found .*; one character is needed", "fit", "t.csv", "--separator", mark)


@pytest.mark.parametrize("text", ["0.1\n\n0.3\n", "0.1\n\n", "0.1\n\r\n0.3\n"])
def test_a_blank_line_among_points_is_named(refuse, text):
    for model, name in (("line.beta", "difficulty"), ("nameless.beta", "x")):
        Path("at.csv").write_text(f"{name}\n{text}", newline="")
        refuse(1, "line 3 of at.csv, column '?.*: found NaN", "predict", model, "--at", "at.csv")


def test_every_row_of_points_has_its_answer(say, refuse):
    Path("at.csv").write_text("lon,lat\n1,2\n3,4\n\n\n")
    status, out, _ = say("predict", "plane.beta", "--at", "at.csv")
    told = [(row["lon"], row["lat"]) for row in csv.DictReader(out.splitlines())]
    assert (status, told) == (0, [("1", "2"), ("3", "4")])
    Path("at.csv").write_text("lon,lat\n1,2\n\n3,4\n")
    refuse(
        1, "line 3 of at.csv, column 'lon': found NaN", "predict", "plane.beta", "--at", "at.csv"
    )
    pq.write_table(pa.table({"difficulty": [0.1, None, 0.3]}), "at.parquet")
    refuse(1, r"row 1 of at.parquet, .*found NaN", "predict", "line.beta", "--at", "at.parquet")


FORMULAS = ["=HYPERLINK(1)", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "＝1", "'=1", "''@"]


def test_no_name_is_a_formula_in_a_spreadsheet(say):
    for i, name in enumerate(FORMULAS):
        X = pa.table({name: [-1.0, 0.0, 1.0]})
        SmoothBetaClassifier(0.5).fit(X, [0, 1, 1]).save(f"{i}.beta")
        status, out, _ = say("predict", f"{i}.beta", "--grid", "3")
        first, *rows = csv.reader(io.StringIO(out, newline=""))
        assert status == 0
        assert first[0] == f"'{name}"
        assert [float(row[0]) for row in rows] == [-1.0, 0.0, 1.0]
        assert rows[0][0] == "-1.0"  # numbers are not escaped
        told = json.loads(say("predict", f"{i}.beta", "--grid", "3", "--format", "json")[1])
        assert next(iter(told[0])) == name


@given(st.lists(st.text(st.sampled_from("'=+-@\tab"), max_size=4), min_size=2, unique=True))
def test_names_stay_different_and_can_be_had_back(names):
    written = [writing.harmless(name) for name in names]
    assert len(set(written)) == len(names)
    assert not any(name[:1] in tuple("=+-@\t") for name in written)
    for name, safe in zip(names, written, strict=True):
        assert safe in (name, f"'{name}")
        assert writing.FORMULA.match(safe) is None or safe.removeprefix("'") == name


# Inputs ------------------------------------------------------------------------------------

OVERWRITING = {
    "threshold": ["line.beta", "threshold", "line.beta", "--level", "0.5", "--format", "csv"],
    "fit": ["trials.csv", "fit", "trials.csv"],
    "fit a folder": ["parts/b.csv", "fit", "parts"],
    "fit a glob": ["parts/a.csv", "fit", "parts/*.csv"],
    "predict a grid": ["line.beta", "predict", "line.beta", "--grid", "3", "--format", "csv"],
    "predict": ["points.csv", "predict", "line.beta", "--at", "points.csv"],
    "report": ["line.beta", "report", "line.beta"],
    "plan": ["points.csv", "plan", "line.beta", "--at", "points.csv", "--lipschitz", "1"],
}
ALIASES = {
    "name": str,
    "path": lambda name: os.path.join("..", Path.cwd().name, name),
    "symbolic link": lambda name: os.symlink(name, "linked.csv") or "linked.csv",
    "hard link": lambda name: os.link(name, "linked.csv") or "linked.csv",
    "linked folder": lambda name: os.symlink(".", "folder") or f"folder/{name}",
}


@pytest.mark.parametrize("alias", ALIASES)
@pytest.mark.parametrize("name", OVERWRITING)
def test_no_input_is_overwritten(name, alias, refuse):
    os.mkdir("parts")
    shutil.copy("trials.csv", "parts/a.csv")
    shutil.copy("trials.csv", "parts/b.csv")
    lost, *arguments = OVERWRITING[name]
    before, out = Path(lost).read_bytes(), ALIASES[alias](lost)
    for force in ([], ["--force"]):
        told = f"--out: {re.escape(out)} is an input, (.*/)?{lost}; name another file"
        refuse(2, told, *arguments, "--out", out, *force)
    assert Path(lost).read_bytes() == before


def test_the_name_that_a_report_gets_is_no_input_either(refuse):
    shutil.copy("line.beta", "model.html")
    refuse(2, "--out: model.html is an input", "report", "model.html", "--force")
    assert Path("model.html").read_bytes() == Path("line.beta").read_bytes()


@pytest.mark.usefixtures("here")
def test_standard_input_and_output_are_no_way_around():
    before = Path("trials.csv").read_bytes()
    with open("trials.csv", "rb") as given:
        run = program("fit", "-", "--out", "trials.csv", "--force", stdin=given)
    assert run.returncode == 2
    assert b"--out: trials.csv is an input, standard input;" in run.stderr
    with open("points.csv", "ab") as added:
        run = program(
            *("predict", "line.beta", "--at", "points.csv"),
            capture_output=False,
            stdout=added,
            stderr=subprocess.PIPE,
        )
    assert run.returncode == 2
    assert b"--out: - is an input, points.csv;" in run.stderr
    assert Path("trials.csv").read_bytes() == before
    assert len(Path("points.csv").read_bytes().splitlines()) == 4


def test_other_files_are_replaced_where_that_is_asked_for(say):
    shutil.copy("trials.csv", "old.beta")
    assert say(*TRIALS, "--out", "old.beta", "--force")[0] == 0
    assert load("old.beta").n_trials_ == 800


# Streams -----------------------------------------------------------------------------------


def feed(monkeypatch, content):
    """Put this on standard input."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))


@pytest.mark.usefixtures("here")
def test_standard_input_and_output_make_a_pipe(monkeypatch, capfdbinary):
    feed(monkeypatch, Path("trials.csv").read_bytes())
    assert main(["fit", "-", "--out", "-"]) == 0
    model, told = capfdbinary.readouterr()
    assert b"800, " in told
    feed(monkeypatch, model)
    assert main(["predict", "-", "--grid", "3", "--format", "parquet"]) == 0
    table, told = capfdbinary.readouterr()
    assert told == b""
    assert pq.read_table(pa.BufferReader(table))["difficulty"].to_pylist() == [0.0, 0.5, 1.0]
    feed(monkeypatch, table)
    assert main(["predict", "line.beta", "--at", "-"]) == 0
    assert len(capfdbinary.readouterr()[0].splitlines()) == 4


def test_errors_of_standard_input_call_it_so(refuse, monkeypatch):
    feed(monkeypatch, b"x,y\n1,0\nz,1\n")
    where = "error: line 3 of standard input, column 'x': found an invalid value 'z'"
    refuse(1, where, "fit", "-", "--features", "x", "--outcome", "y")
    feed(monkeypatch, b"no model")
    refuse(1, "error: standard input is not a betafield file", "predict", "-", "--grid", "3")
    feed(monkeypatch, Path("line.beta").read_bytes()[:-40])
    refuse(1, "error: standard input is cut off", "info", "-")
    feed(monkeypatch, b"x,y\n")
    refuse(1, "error: standard input: no rows to learn from", "fit", "-")
    feed(monkeypatch, b"x,y\n1,0\n2,1,3\n")
    refuse(1, "error: line 3 of standard input: found 3 values; 2 are needed", "fit", "-")
    feed(monkeypatch, b"")
    refuse(1, "standard input: is empty", "fit", "-")
    refuse(2, "- twice", "predict", "-", "--at", "-")
    refuse(2, "- twice", "fit", "-", "-")


def test_a_named_pipe_is_no_input_and_is_not_waited_for(refuse):
    os.mkfifo("pipe.csv")
    told = "found 'pipe.csv', a pipe; regular files are needed, which can be read more than once"
    refuse(1, told, "fit", "pipe.csv")
    refuse(1, told, "predict", "line.beta", "--at", "pipe.csv")
    refuse(1, "'pipe.csv' is a pipe; a regular file is needed", "info", "pipe.csv")


def test_pipes_and_devices_are_written_to_and_not_replaced(say):
    os.mkfifo("pipe")
    read = os.open("pipe", os.O_RDONLY | os.O_NONBLOCK)
    assert say("predict", "line.beta", "--grid", "3", "--out", "pipe")[0] == 0
    assert len(os.read(read, 1 << 16).splitlines()) == 4
    os.close(read)
    assert Path("pipe").is_fifo()
    assert say("predict", "line.beta", "--grid", "3", "--out", "/dev/null") == (0, "", "")


@pytest.mark.long
@pytest.mark.usefixtures("here")
def test_a_closed_pipe_is_left_quietly():
    with subprocess.Popen(
        [*BETAFIELD, "predict", "line.beta", "--grid", "100000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    ) as run:
        assert run.stdout.readline() == b"difficulty,mean,std,low,high\n"
        run.stdout.close()
        assert run.stderr.read() == b""
    assert run.returncode == 141


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
@pytest.mark.usefixtures("here")
def test_a_full_disk_is_told_in_a_sentence():
    with open("/dev/full", "wb") as full:
        run = program("--help", capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert run.returncode == 1
    assert run.stderr == b"betafield: error: No space left on device\n"


def wait_for(found, run):
    while not found():
        assert run.poll() is None, "it was done before"
        time.sleep(0.01)


@pytest.mark.usefixtures("here")
def test_an_interrupt_leaves_nothing_behind():
    # So many that the interrupt comes before the end, however busy the machine is.
    Path("many.csv").write_text("difficulty\n" + "0.5\n" * 10_000_000)
    before = set(os.listdir())
    with subprocess.Popen(
        [*BETAFIELD, "predict", "line.beta", "--at", "many.csv", "--out", "told.csv"],
        stderr=subprocess.PIPE,
        env=environment(),
    ) as run:
        wait_for(lambda: set(os.listdir()) != before, run)  # the temporary file
        run.send_signal(signal.SIGINT)
        assert run.stderr.read() == b""
    assert run.returncode == 130
    assert set(os.listdir()) == before


# Errors ------------------------------------------------------------------------------------


@pytest.mark.usefixtures("here")
def test_debug_shows_where_it_came_from():
    run = program("fit", "none.csv", "--debug", text=True)
    assert run.returncode == 1
    assert run.stderr.startswith("Traceback")
    assert "FileNotFoundError" in run.stderr


def test_what_nobody_thought_of_is_told_in_a_sentence_too(refuse, monkeypatch):
    def broken(*_):
        raise KeyError("lost")

    monkeypatch.setattr(hashlib, "sha256", broken)
    refuse(1, "KeyError: 'lost'; run it with --debug", "info", "line.beta")


@pytest.mark.usefixtures("here")
def test_errors_about_two_columns_name_the_line(refuse):
    columns = [0.1, 0.2, 0.3], [0, 1, 1], [0.5, 0.5, 0.5], [0.1, 0.7, 0.1]
    write_csv("two.csv", ["x", "y", "g", "l"], *columns)
    asked = ["--features", "x", "--outcome", "y", "--guess", "g", "--lapse", "l"]
    refuse(
        1,
        "line 3 of two.csv: guess and lapse: found guess 0.5 and lapse 0.7",
        "fit",
        "two.csv",
        *asked,
    )


def test_names_from_files_do_not_steer_the_terminal(say):
    write_csv("t.csv", ["x\x1b[2J", "y"], [1, 2, 3], [0, 1, 1])
    status, out, err = say("fit", "t.csv")
    assert status == 0
    assert "\x1b" not in out + err
    assert r"x\x1b[2J" in out


# Terminals ---------------------------------------------------------------------------------


def on_a_terminal(*arguments):
    """Return what a person sees on standard output and standard error."""
    master, slave = pty.openpty()
    run = subprocess.Popen(
        [*BETAFIELD, *arguments],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=environment(TERM="xterm", COLUMNS="80", LINES="24"),
    )
    os.close(slave)
    seen = b""
    while select.select([master], [], [], 300)[0]:
        try:
            some = os.read(master, 1 << 16)
        except OSError:  # the other end is closed
            break
        if not some:
            break
        seen += some
    os.close(master)
    return run.wait(), seen.decode()


@pytest.mark.long
@pytest.mark.usefixtures("here")
def test_a_bar_is_shown_on_a_terminal():
    status, seen = on_a_terminal(*TRIALS, "--force")
    assert status == 0
    assert "━" in seen
    assert "learning" in seen
    assert "800, " in seen


def test_a_bar_of_ones_own_waits_for_a_moment(monkeypatch, capsys):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")
    with terminal.progress("quickly", 10, watched=True, patience=300.0) as advance:
        advance(10)
    assert capsys.readouterr().err == ""
    seen = ""
    with terminal.progress("slowly", 10, watched=True, patience=0.01) as advance:
        while "slowly" not in seen:
            time.sleep(0.01)
            advance(1)
            seen += capsys.readouterr().err
    capsys.readouterr()
    with terminal.progress("unseen", 10, watched=False, patience=0.01) as advance:
        time.sleep(0.1)
        advance(1)
    assert capsys.readouterr().err == ""


def test_files_that_are_no_text_are_not_for_terminals(refuse, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    asked = ["predict", "line.beta", "--grid", "3", "--format", "parquet"]
    refuse(2, "a Parquet file cannot be shown on a terminal", *asked)
    refuse(2, "a .beta file cannot be shown on a terminal", *TRIALS, "--out", "-", "--quiet")


@pytest.mark.usefixtures("here")
def test_a_terminal_is_not_waited_for():
    status, seen = on_a_terminal("fit", "-")
    assert (status, "standard input is a terminal" in seen) == (2, True)


# The other commands ------------------------------------------------------------------------


def test_a_report_tells_the_command_that_made_it(say, refuse):
    arguments = ["report", "line.beta", "--title", "Tasks & <skills>", "--out", "my report.html"]
    assert say(*arguments) == (0, "", "")
    page = html.unescape(Path("my report.html").read_text(encoding="utf-8"))
    assert shlex.join(["betafield", *arguments]) in page
    refuse(1, "my report.html already exists", *arguments)


def test_info_for_people_and_for_programs(say):
    status, out, _ = say("info", "plane.beta", "--json")
    assert status == 0
    facts, model = json.loads(out), load("plane.beta")
    assert facts["trials"] == model.n_trials_ == 900
    assert [each["name"] for each in facts["features"]] == ["lon", "lat"]
    assert [[each["low"], each["high"]] for each in facts["features"]] == model.bounds_.tolist()
    assert facts["classes"] == [False, True]
    assert facts["parameters"]["bandwidth"] == 0.2
    table = pq.read_table("screening.parquet")
    assert facts["successes"] == sum(table["positive"].to_pylist())
    assert facts["components"] == [{"width": 0.2, "weight": 1.0}]
    assert [each["reach"] for each in facts["features"]] == pytest.approx([4.0, 4.0])
    status, out, _ = say("info", "plane.beta")
    assert status == 0
    assert "lat, from -10 to 10" in out
    assert "0.2 of the domain" in out


def test_info_of_the_default_tells_length_scales_and_what_they_mean(say):
    asked = ["--features", "lon,lat", "--outcome", "positive", "--out", "smooth.beta"]
    status, learned, _ = say("fit", "screening.parquet", *asked)
    assert status == 0
    status, out, _ = say("info", "smooth.beta", "--json")
    facts, model = json.loads(out, parse_constant=pytest.fail), load("smooth.beta")
    assert status == 0
    assert [each["reach"] for each in facts["features"]] == model.length_scales_.tolist()
    assert [each["relevance"] for each in facts["features"]] == model.relevance_.tolist()
    assert [each["weight"] for each in facts["components"]] == model.weights_["weight"].tolist()
    assert {each["part"] for each in facts["components"]} == set(model.weights_["part"].tolist())
    process = [each for each in facts["components"] if each["part"] == "process"]
    assert all("width" not in each and len(each["length_scales"]) == 2 for each in process)
    status, out, _ = say("info", "smooth.beta")
    assert status == 0
    for told in (learned, out):
        assert f"lon, from -10 to 10, length scale {model.length_scales_[0]:.4g}, relevance" in told
        assert "bandwidth  " not in told.replace("--bandwidth", "")
        assert facts["told"][-1] in told
    assert "--method" in out


def test_a_threshold_is_that_of_the_library(say):
    model = SmoothBetaClassifier(monotonic_cst={"difficulty": -1})
    rows = rows_of("trials.csv")
    x = pa.table({"difficulty": [float(row["difficulty"]) for row in rows]})
    model.fit(x, [int(row["success"]) for row in rows]).save("falling.beta")
    fitted = ("fit", "trials.csv", "--features", "difficulty", "--outcome", "success")
    assert say(*fitted, "--monotonic=-difficulty", "--out", "told.beta")[0] == 0
    expected = model.threshold(0.75, size=300, random_state=7)
    asked = ("--level", "0.75", "--level", "0.5", "--draws", "300", "--seed", "7")
    for name in ("falling.beta", "told.beta"):
        status, out, err = say("threshold", name, *asked)
        assert status == 0
        first, second = csv.DictReader(out.splitlines())
        assert float(first["threshold"]) == expected.median()
        assert (float(first["low"]), float(first["high"])) == expected.interval(0.95)
        assert float(first["slope"]) == expected.slope().median()[0] < 0.0
        assert float(second["threshold"]) > float(first["threshold"])
        assert str(expected) in err
    status, out, err = say("threshold", "told.beta", *asked, "--format", "json", "--quiet")
    assert json.loads(out)[0]["threshold"] == expected.median()
    assert err == ""
    assert "--monotonic" in say("info", "told.beta")[1]


@pytest.mark.parametrize(
    ("status", "match", "arguments"),
    [
        (2, "--level", ["line.beta"]),
        (2, "--level: found 1.5", ["line.beta", "--level", "1.5"]),
        (2, "--level: found 0.4; under", ["line.beta", "--level", "0.4", "--under", "guess=0.5"]),
        (2, "--interval: found 2", ["line.beta", "--level", "0.5", "--interval", "2"]),
        (1, "--feature: found 'a'", ["line.beta", "--level", "0.5", "--feature", "a"]),
        (1, "--feature: found None; one of", ["plane.beta", "--level", "0.5"]),
        (2, "--fixed: found 'a'", ["line.beta", "--level", "0.5", "--fixed", "a"]),
        (1, "--fixed: found 'a'; the", ["line.beta", "--level", "0.5", "--fixed", "a=1"]),
        (1, "--draws: found 0", ["line.beta", "--level", "0.5", "--draws", "0"]),
        (1, "anchored: windows", ["line.beta", "--level", "0.5", "--anchored"]),
        (2, "--under: found 'rate'", ["line.beta", "--level", "0.5", "--under", "guess=rate"]),
    ],
    ids=lambda value: None if isinstance(value, int) else str(value)[:40],
)
def test_wrong_ways_to_ask_for_a_threshold(refuse, status, match, arguments):
    refuse(status, match, "threshold", *arguments)


def test_a_plan_before_the_first_trial(say):
    asked = ["--features", "2", "--lipschitz", "1"]
    status, out, _ = say("plan", "--error", "0.1", *asked)
    assert status == 0
    needed = guarantees.trials_needed(0.01, 2, 1.0)
    assert out.startswith(f"{needed:,} trials")
    status, out, _ = say("plan", "--trials", str(needed), *asked)
    assert "guarantee a root mean square error of 0.1 or less" in " ".join(out.split())
    assert "a fitted model is as precise after far fewer trials" in " ".join(out.split())


def test_a_plan_with_a_model(say):
    status, out, err = say("plan", "line.beta", "--at", "points.csv", "--lipschitz", "1")
    assert status == 0
    assert "95 % credible intervals, low to high, need far fewer" in err
    told = list(csv.DictReader(out.splitlines()))
    at = pa.table({"difficulty": [0.5, 0.1, 0.9]})
    known = guarantees.certificate(load("line.beta"), at, 1.0)
    assert [float(row["more_trials"]) for row in told] == known["more_trials"].tolist()
    assert [float(row["guaranteed_low"]) for row in told] == known["guaranteed_low"].tolist()


@pytest.mark.parametrize(
    ("status", "match", "arguments"),
    [
        (2, "--lipschitz", ["--error", "0.1", "--features", "1"]),
        (2, "give --features and one", ["--lipschitz", "1"]),
        (2, "give --features and one", ["--lipschitz", "1", "--error", "0.1"]),
        (2, "--lipschitz: found -1", ["--lipschitz", "-1", "--error", "0.1", "--features", "1"]),
        (2, "--error: found 0", ["--lipschitz", "1", "--error", "0", "--features", "1"]),
        (1, "--features: found 0", ["--lipschitz", "1", "--error", "0.1", "--features", "0"]),
        (1, "more than", ["--lipschitz", "1", "--error", "1e-9", "--features", "9"]),
        (2, "--grid: it can only be used with a model", ["--lipschitz", "1", "--grid", "3"]),
        (
            2,
            "--error: it can only be used without a model",
            ["line.beta", "--lipschitz", "1", "--error", "1"],
        ),
        (2, "--width: found 0", ["line.beta", "--lipschitz", "1", "--grid", "3", "--width", "0"]),
        (2, "one of them", ["line.beta", "--lipschitz", "1"]),
    ],
    ids=lambda value: None if isinstance(value, int) else str(value)[:40],
)
def test_wrong_ways_to_plan(refuse, status, match, arguments):
    refuse(status, match, "plan", *arguments)


def test_the_demonstration_finds_the_truth(say):
    status, out, err = say("demo", "--out", "demo.html")
    assert (status, err) == (0, "")
    rows = re.findall(r"([\d.]+) +([\d.]+)% +([\d.]+)% +([\d.]+)% to +([\d.]+)%", out)
    assert len(rows) == 5
    held = [float(low) <= float(truth) <= float(high) for _, truth, _, low, high in rows]
    assert sum(held) >= 4
    assert Path("demo.html").stat().st_size > 10_000


def test_the_paper_is_run_from_a_checkout(tmp_path):
    assert "--quick" in program("paper", "--help", text=True).stdout
    # The same package in another folder, with and without the experiments.
    source = tmp_path / "checkout" / "src"
    source.mkdir(parents=True)
    (source / "betafield").symlink_to(Path(betafield.__file__).parent)
    there = {"text": True, "env": {**os.environ, "PYTHONPATH": str(source)}}
    run = program("paper", "--quick", **there)
    assert (run.returncode, "make paper" in run.stderr) == (1, True)
    folder = tmp_path / "checkout" / "paper"
    folder.mkdir()
    (folder / "__main__.py").write_text("import sys; print(sys.argv[1:]); sys.exit(3)")
    run = program("paper", "--quick", "--jobs", "1", **there)
    assert (run.returncode, run.stdout.strip()) == (1, "['--quick', '--jobs', '1']")


# Spelling ----------------------------------------------------------------------------------


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cc", "Cs", "Z"]), min_size=1), min_size=1)
)
def test_names_are_read_as_they_are_written(names):
    quoted = ",".join('"' + name.replace('"', '""') + '"' for name in names)
    assert spelling.names([quoted]) == names


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_are_read_to_the_last_digit(value):
    assert spelling.number("--x", repr(value)) == value


@given(st.integers(-1000, 1000), st.integers(1, 1000))
def test_fractions_are_numbers(over, under):
    assert spelling.number("--x", f"{over}/{under}") == over / under


@pytest.mark.parametrize("text", ["", "a", "1/0", "nan", "inf", "1,2", "0x10"])
def test_what_is_no_number_is_refused(text):
    with pytest.raises(UsageError, match="--x: found"):
        spelling.number("--x", text)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"guess": "0.5"}, contexts.guess_lapse(0.5)),
        ({"lapse": "0.1"}, contexts.guess_lapse(0, 0.1)),
        ({"guess": "1/4", "lapse": "0.1"}, contexts.guess_lapse(0.25, 0.1)),
        ({"sensitivity": "0.9", "specificity": "0.8"}, contexts.diagnostic(0.9, 0.8)),
        ({"pool-size": "3"}, contexts.pooled(3)),
        ({"pool-size": "3", "specificity": "0.8"}, contexts.pooled(3, specificity=0.8)),
        ({"background": "0.2"}, contexts.background(0.2)),
        ({"attenuated": "0.2"}, contexts.attenuated(0.2)),
        ({"truth": "0.2"}, contexts.randomized_response(0.2)),
        ({"truth": "0.2", "yes": "0.9"}, contexts.randomized_response(0.2, 0.9)),
        ({"gain": "0.2", "offset": "0.3"}, contexts.affine(0.2, 0.3)),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, dict) else "",
)
def test_every_context_has_its_options(given, expected):
    found = distortions.distortion(given)
    assert found.context().tolist() == expected.tolist()
    columns = pa.record_batch({f"c {name}": [float(fraction(v))] for name, v in given.items()})
    by_columns = distortions.distortion({name: f"c {name}" for name in given})
    assert set(by_columns.columns) == {f"c {name}" for name in given}
    assert by_columns.context()(columns).tolist() == [expected.tolist()]


def fraction(text):
    return spelling.number("--x", text)
