"""The paper's experiments, reduced: its claims hold, and nothing is computed twice."""

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import tracemalloc
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import psutil
import pytest
from paper import figure_1, harness, measures, methods, page, processes, results
from paper.__main__ import CHECKS, checked, curves, main
from paper.harness import Cache, Unit
from paper.problems import PROBLEMS
from paper.results import Check, Results
from paper.sizes import FULL, QUICK, SMALL, UNTIMED
from scipy.integrate import quad
from scipy.stats import beta

from betafield.posteriors import Beta, Mixture

ROOT = Path(__file__).parent.parent
PNG = b"\x89PNG\r\n\x1a\n"
# Whichever test comes first waits for the quick run, about a minute on an idle machine.
pytestmark = pytest.mark.timeout(3_600)
PICTURES = ["figure-1.png", "figure-2.png", "figure-3.png", "figure-4.png", "theorems.png"]


# The quick run -------------------------------------------------------------------------------


LONG = pytest.param(UNTIMED, id="quick", marks=pytest.mark.long)


@pytest.fixture(scope="module", params=[pytest.param(SMALL, id="small"), LONG])
def sizes(request):
    return request.param


@pytest.fixture(scope="module")
def quick(tmp_path_factory, sizes):
    """Run everything but timings, with a separate cache, and return the cache.

    Of several test processes, the first one runs it while the others wait.
    """
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    first = shared / f"paper-{sizes.t[-1]}"
    with open(f"{first}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not first.exists():
            cache = tmp_path_factory.mktemp("paper")
            main(["--quick", "--cache", str(cache), "--jobs", "1"], sizes)
            cache.rename(first)
    return Path(shutil.copytree(first, tmp_path_factory.mktemp("paper") / "own"))


@pytest.fixture(scope="module")
def checks(quick, sizes):
    return checked(Results.read(curves(sizes), Cache(quick)))


UNTIMED_CHECKS = [name for name in CHECKS if name not in figure_1.TIMED]
SHOWN = [pytest.param(SMALL, n, id=f"small-{n}") for n in UNTIMED_CHECKS if n not in figure_1.LATE]
SHOWN += [pytest.param(UNTIMED, n, id=f"quick-{n}", marks=pytest.mark.long) for n in UNTIMED_CHECKS]


@pytest.mark.parametrize(("sizes", "name"), SHOWN, indirect=["sizes"], scope="module")
def test_what_the_paper_says(name, checks):
    assert checks[name].met, str(checks[name])


@pytest.mark.parametrize("reduced", [QUICK, SMALL], ids=["quick", "small"])
def test_a_reduced_run_spans_enough_trials_for_a_slope(reduced):
    assert np.log10(reduced.t[-1] / reduced.t[0]) >= 1.4


def test_the_quick_run_draws_and_keeps_its_numbers(quick, sizes):
    out = quick / "quick"
    assert sorted(path.name for path in out.glob("*.png")) == PICTURES
    assert all((out / name).read_bytes().startswith(PNG) for name in PICTURES)
    kept = json.loads((out / "results.json").read_text(encoding="utf-8"))
    assert list(kept["checks"]) == list(CHECKS)
    sbp = kept["curves"]["1 left"]["SBP"]
    assert len(sbp["l2"]["mean"]) == len(sbp["l2"]["se"]) == len(sizes.t)
    assert kept["checks"]["1-D slope"]["value"] == sbp["l2"]["slope"]


@pytest.mark.long
def test_a_second_run_computes_nothing(quick, sizes, capsys):
    again = lambda **_: pytest.fail("computed again")
    status = main(["--quick", "--cache", str(quick), "--jobs", "1"], sizes, again)
    printed = capsys.readouterr().out
    missed = printed.count("MISSED ")
    assert status == (missed > 0)
    assert missed <= len(figure_1.TIMED | figure_1.LATE)
    assert f"{len(CHECKS) - missed} of {len(CHECKS)} met" in printed
    assert printed.count("figure") == len(CHECKS)


def test_neighbours_decide_as_the_uniform_prior_does(quick, sizes):
    four = Results.read(curves(sizes), Cache(quick))["4"]
    assert four["NN"]["risk"] == four["SBP"]["risk"]


# Growth of the work ----------------------------------------------------------------------------

# Counts lines of Python, including those of kernels, which are not compiled here.
COUNTED = """
import json, sys
from paper import methods
from paper.problems import PROBLEMS

problem, count = PROBLEMS["cone-1"], 0
Q = problem.grid[::100]

def line(frame, event, arg):
    global count
    count += event == "line"
    return line

def lines(t):
    global count
    trials, count = problem.trials(t, 0), 0
    sys.settrace(line)
    posterior = methods.fit("SBP", problem, trials).posterior(Q)
    posterior.mean(), posterior.var()
    sys.settrace(None)
    return count

lines(100)  # what is imported when first needed
print(json.dumps([lines(t) for t in json.loads(sys.argv[1])]))
"""


def exponent(t, work):
    return results.slope(t, work, np.zeros(len(t)))[0]


def test_lines_run_by_the_smooth_beta_process_grow_at_most_as_trials_do():
    t = [1_000, 10_000, 100_000]
    told = subprocess.run(
        [sys.executable, "-c", COUNTED, json.dumps(t)],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        check=True,
    )
    lines = json.loads(told.stdout)
    assert min(lines) > 1_000
    assert exponent(t, lines) <= 1.1


@pytest.mark.parametrize(
    ("method", "t", "least", "most"),
    [
        ("SBP", (10_000, 30_000, 100_000), 0.0, 1.1),
        ("LGP, kernel given", (250, 500, 1_000), 1.9, 3),
    ],
)
def test_memory_grows_as_the_paper_says_of_time(method, t, least, most):
    """Writing memory takes time, so both grow alike: LGP has a number per pair of trials."""
    peak_memory(method, 100)  # imports on first use
    assert least <= exponent(t, [peak_memory(method, each) for each in t]) <= most


def peak_memory(method, t):
    problem = PROBLEMS["cone-1"]
    trials = problem.trials(t, 0)
    tracemalloc.start()
    methods.fit(method, problem, trials).posterior(problem.grid[::100]).var()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


# Units of work -------------------------------------------------------------------------------

UNITS = [Unit("errors", "cone-1", method, t, 0) for method in ("SBP", "NN") for t in (50, 60, 70)]


class Counting:
    """Measures, and remembers what; the one after the last is interrupted."""

    def __init__(self, last=None):
        self.done, self.last = [], last

    def __call__(self, **unit):
        if len(self.done) == self.last:
            raise KeyboardInterrupt
        self.done.append(unit)
        return measures.measure(**unit)


def test_a_stopped_run_goes_on_where_it_was(tmp_path):
    cache, stopped, rest = Cache(tmp_path), Counting(last=4), Counting()
    with pytest.raises(KeyboardInterrupt):
        harness.run(UNITS, cache, jobs=1, measure=stopped)
    assert len(stopped.done) == 4
    assert harness.run(UNITS, cache, jobs=1, measure=rest) == 2
    done = stopped.done + rest.done
    assert sorted(map(str, done)) == sorted(str(asdict(unit)) for unit in UNITS)
    assert harness.run(UNITS, cache, jobs=1) == 0


def test_the_same_unit_in_two_figures_is_computed_once(tmp_path):
    counting = Counting()
    assert harness.run(UNITS[:1] * 2, Cache(tmp_path), jobs=1, measure=counting) == 1
    assert len(counting.done) == 1


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda _: "",
        lambda _: "null",
        lambda _: '{"unit": {}}',
        lambda text: text.replace('"t": 50', '"t": 51'),
        lambda text: text.replace('"found": {', '"lost": {'),
    ],
)
def test_a_damaged_entry_is_computed_again(tmp_path, damage):
    cache, counting = Cache(tmp_path), Counting()
    harness.run(UNITS, cache, jobs=1)
    path = cache.path(UNITS[0])
    whole = path.read_text(encoding="utf-8")
    path.write_text(damage(whole), encoding="utf-8")
    assert cache.get(UNITS[0]) is None
    assert harness.run(UNITS, cache, jobs=1, measure=counting) == 1
    assert counting.done == [asdict(UNITS[0])]
    assert path.read_text(encoding="utf-8") == whole


def test_a_write_cut_short_leaves_nothing(tmp_path, monkeypatch):
    cache = Cache(tmp_path)
    monkeypatch.setattr(Path, "replace", lambda *_: pytest.fail("stopped here"))
    with pytest.raises(pytest.fail.Exception):
        cache.put(UNITS[0], {"l2": 0.1})
    assert cache.get(UNITS[0]) is None


@pytest.mark.long
def test_two_processes_find_what_one_does(tmp_path):
    one, two = Cache(tmp_path / "one"), Cache(tmp_path / "two")
    harness.run(UNITS, one, jobs=1)
    harness.run(UNITS, two, jobs=2)
    assert [one.get(unit) for unit in UNITS] == [two.get(unit) for unit in UNITS]


MORTAL = """
import os, signal, sys
from pathlib import Path
from paper import measures, worker

how, marks, folder = sys.argv[1:]

def mortal(**unit):
    first = not (mark := Path(marks, f"{unit['method']} {unit['t']}")).exists()
    mark.touch()
    if how == "always" and unit["t"] == 60 or how != "always" and first:
        killed = how == "once" and len(os.listdir(marks)) % 2
        os.kill(os.getpid(), signal.SIGKILL) if killed else os._exit(0)
    return measures.measure(**unit)

worker.main(folder, mortal)
"""


def mortal(how, marks):
    """Return the command of a worker that dies while computing: once per unit, or always on one."""
    marks.mkdir()
    return [sys.executable, "-c", MORTAL, how, str(marks)]


def test_workers_that_end_while_work_is_left_lose_none(tmp_path):
    """Every unit kills its process when first begun; warnings are errors, as in all tests.

    Processes are killed and exit by themselves in turn.
    """
    one, two, units = Cache(tmp_path / "one"), Cache(tmp_path / "two"), UNITS[1:3]
    harness.run(units, one, jobs=1)
    worker = mortal("once", tmp_path / "marks")
    assert harness.run(units, two, jobs=2, worker=worker) == 2
    assert len(list((tmp_path / "marks").iterdir())) == 2
    assert [one.get(unit) for unit in units] == [two.get(unit) for unit in units]


@pytest.mark.long
def test_a_unit_that_ends_every_worker_is_named(tmp_path):
    worker, cache = mortal("always", tmp_path / "marks"), Cache(tmp_path / "kept")
    ours = psutil.Process()
    before = set(ours.children())
    with pytest.raises(RuntimeError, match=r"t=60, run=0\) was not computed: 3 processes ended"):
        harness.run(UNITS[:2], cache, jobs=2, worker=worker)
    assert set(ours.children()) <= before
    assert cache.get(UNITS[1]) is None


def test_pieces_are_all_the_work_in_its_order():
    cut = list(processes.pieces(UNITS, 0.1))  # units of slightly more than 0.05 seconds
    assert [len(piece) for piece in cut] == [2, 2, 2]
    assert [unit for piece in cut for unit in piece] == UNITS
    dear = Unit("errors", "cone-1", "LGP", 3_000, 0)
    assert list(processes.pieces([dear, *UNITS], 0.1)) == [[dear], *cut]


def test_other_settings_are_other_units():
    other = lambda problem: methods.smooth_beta(problem, prior=(2.0, 1.0))
    assert UNITS[0].key(known=methods.METHODS | {"SBP": other}) != UNITS[0].key()
    assert UNITS[0].key(known=methods.METHODS | {"NN": other}) == UNITS[0].key()


@pytest.mark.parametrize(
    "change",
    [
        {"of": lambda X: 0.101 + 1.3 * np.abs(X[:, 0] - 0.4)},
        {"lipschitz": 1.4},
        {"circumstances": PROBLEMS["background"].circumstances},
    ],
)
def test_another_function_is_another_unit(change):
    other = replace(PROBLEMS["cone-1"], **change)
    assert UNITS[0].key(PROBLEMS | {"cone-1": other}) != UNITS[0].key()


def test_keys_do_not_depend_on_where_things_are_in_memory():
    recipes = [methods.recipe(name, PROBLEMS["cone-1"]) for name in methods.METHODS]
    assert not any(" at 0x" in recipe for recipe in recipes)


def test_fresh_forgets_measurements_and_nothing_else(tmp_path):
    cache, other = Cache(tmp_path), tmp_path / "notes.txt"
    harness.run(UNITS, cache, jobs=1)
    other.write_text("mine", encoding="utf-8")
    cache.clear()
    assert not any(map(cache.get, UNITS))
    assert other.read_text(encoding="utf-8") == "mine"


def test_timings_come_last(tmp_path):
    timing, counting = Unit("seconds", "cone-1", "SBP", 100, 0), Counting()
    harness.run([timing, *UNITS], Cache(tmp_path), jobs=1, measure=counting)
    assert counting.done[-1] == asdict(timing)


def test_progress_tells_the_time_left(capsys):
    with harness.lines(UNITS, every=0.0) as done:
        for unit in UNITS:
            done(unit)
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == len(UNITS)
    assert all(re.search(r"about [\d,]+ s left", line) for line in printed)
    assert printed[-1].startswith("6 of 6 units, 100%")


def test_the_bar_fills(capsys):
    with harness.bar(UNITS) as done:
        for unit in UNITS:
            done(unit)
    assert "100%" in capsys.readouterr().out


# Numbers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("exponent", [-2 / 3, -0.5, 0.0, 2.9])
def test_slopes_of_power_laws_are_those_of_polyfit(exponent):
    t = np.array(FULL.t)
    mean = 0.3 * t**exponent
    found, error = results.slope(t, mean, np.zeros(len(t)))
    assert found == pytest.approx(np.polyfit(np.log(t), np.log(mean), 1)[0], abs=1e-12)
    assert found == pytest.approx(exponent, abs=1e-12)
    assert error == 0.0


def test_the_standard_error_of_a_slope_is_that_of_repeated_experiments():
    rng, t = np.random.default_rng(0), np.array(FULL.t)
    spread, mean = 0.05, t ** (-2 / 3.0)
    noisy = mean * (1 + spread * rng.normal(size=(4_000, len(t))))
    fitted = np.polyfit(np.log(t), np.log(noisy).T, 1)[0]
    assert results.slope(t, mean, spread * mean)[1] == pytest.approx(fitted.std(), rel=0.05)


def test_summaries_average_over_runs():
    found = results.summary([10, 100], [[1.0, 3.0], [0.1, 0.3]])
    np.testing.assert_allclose(found["mean"], [2.0, 0.2])
    np.testing.assert_allclose(found["se"], [1.0, 0.1])
    assert found["slope"] == pytest.approx(-1.0)


def test_times_are_the_best_of_several():
    found = results.timed([10, 100], [[1.0, 3.0], [400.0, 100.0]])
    assert found == {"seconds": [1.0, 100.0], "exponent": pytest.approx(2.0)}


def test_runs_may_differ_from_one_t_to_the_next(tmp_path):
    curve = results.Curve("1 left", "SBP", "cone-1", (50, 60), (3, 2))
    assert harness.run(curve.units(), Cache(tmp_path), jobs=1) == 5
    found = curve.read(Cache(tmp_path))
    each = [measures.errors(PROBLEMS["cone-1"], "SBP", 60, run)["l2"] for run in range(2)]
    assert found["runs"] == [3, 2]
    assert found["l2"]["mean"][1] == pytest.approx(np.mean(each))
    assert found["l2"]["se"][1] == pytest.approx(abs(each[0] - each[1]) / 2)


def test_what_was_not_computed_is_not_read(tmp_path):
    with pytest.raises(LookupError, match="t=50, run=0\\) has not been computed"):
        results.Curve("1 left", "SBP", "cone-1", (50,), (1,)).read(Cache(tmp_path))


@pytest.mark.parametrize(
    ("sign", "value", "error", "met"),
    [
        ("≤", -0.61, 0.0, True),
        ("≤", -0.59, 0.0, False),
        ("≤", -0.59, 0.005, True),
        ("≤", -0.59, 0.004, False),
        ("≥", -0.59, 0.0, True),
        ("≥", -0.61, 0.004, False),
        ("≤", float("nan"), 0.0, False),
    ],
)
def test_two_standard_errors_are_allowed_for(sign, value, error, met):
    check = Check("1 left", "slope", value, sign, -0.6, error)
    assert check.met is met
    assert str(check).startswith("met " if met else "MISSED ")
    assert "figure 1 left: slope: " in str(check)
    assert f"allowed {sign} -0.6" in str(check)


@pytest.mark.parametrize("shapes", [(1.0, 1.0), (2.0, 5.0), (40.0, 3.5), (900.0, 1_400.0)])
@pytest.mark.parametrize("truth", [0.0, 0.1, 0.4, 0.97, 1.0])
def test_l1_error_against_integration(shapes, truth):
    belief = beta(*shapes)
    ends = sorted({0.0, truth, belief.ppf(1e-9), belief.mean(), belief.ppf(1 - 1e-9), 1.0})
    expected = sum(
        quad(lambda p: abs(p - truth) * belief.pdf(p), low, high)[0] for low, high in pairwise(ends)
    )
    posterior = Beta([shapes[0]], [shapes[1]])
    assert measures.absolute_error(posterior, np.array([truth])) == pytest.approx(expected)


def test_l1_error_from_draws_is_that_of_the_closed_form():
    truth = np.linspace(0.01, 0.99, 5_000)
    plain = Beta(np.full(5_000, 8.0), np.full(5_000, 5.0))
    mixture = Mixture.of_betas(np.zeros(1), plain.alpha[:, None], plain.beta[:, None])
    exact, drawn = (measures.absolute_error(each, truth).mean() for each in (plain, mixture))
    assert drawn == pytest.approx(exact, rel=0.01)


def test_errors_are_what_they_say():
    problem = PROBLEMS["cone-1"]
    found = measures.errors(problem, "SBP", 500, 0)
    posterior = methods.fit("SBP", problem, problem.trials(500, 0)).posterior(problem.grid)
    draws = posterior.sample(400, random_state=1)
    assert found["l2"] == pytest.approx(np.mean((draws - problem.truth) ** 2), rel=0.01)
    assert found["l1"] == pytest.approx(np.mean(np.abs(draws - problem.truth)), rel=0.01)
    decided = posterior.mean() >= 0.5
    wrong = decided != (problem.truth >= 0.5)
    lost = np.where(wrong, np.abs(2 * problem.truth - 1), 0.0).mean()
    assert found["excess"] == pytest.approx(lost, abs=1e-12)


# Problems --------------------------------------------------------------------------------------


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=repr)
def test_lipschitz_constants_are_the_smallest(problem):
    rng = np.random.default_rng(0)
    X = rng.random((200_000, problem.d))
    Y = (X + 1e-4 * rng.normal(size=X.shape)).clip(0, 1)
    steepness = np.abs(problem(X) - problem(Y)) / np.linalg.norm(X - Y, axis=1)
    assert 0.999 * problem.lipschitz < steepness.max() < (1 + 1e-6) * problem.lipschitz
    assert problem.truth.min() >= 0
    assert problem.truth.max() <= 1


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=repr)
def test_trials_are_the_same_for_all_methods_and_others_for_every_run(problem):
    one, again, other = problem.trials(100, 0), problem.trials(100, 0), problem.trials(100, 1)
    np.testing.assert_array_equal(one.X, again.X)
    np.testing.assert_array_equal(one.y, again.y)
    assert not np.array_equal(one.X, other.X)


def test_noise_in_contexts_has_mean_zero_and_stays_possible():
    rng = np.random.default_rng(0)
    told, true = PROBLEMS["told with noise"].circumstances(rng, 100_000)
    noise = true[:, 0] - told[:, 0]
    assert abs(noise.mean()) < 0.003
    assert noise.std() == pytest.approx(0.25, rel=0.01)
    assert abs(np.corrcoef(noise, told[:, 0])[0, 1]) < 0.01
    assert true.min() >= 0
    assert true.max() <= 1


# The page --------------------------------------------------------------------------------------


def kept_results():
    return json.loads(page.RESULTS.read_text(encoding="utf-8"))


def test_tables_of_the_page_are_those_of_the_results():
    text = page.PAGE.read_text(encoding="utf-8")
    assert re.findall(r"<!-- table: (\w+) -->", text) == list(page.TABLES)
    assert page.rendered(text, kept_results()) == text


def test_the_page_would_follow_other_results():
    kept = kept_results()
    kept["curves"]["1 left"]["SBP"]["l2"]["slope"] = -0.123
    assert "−0.123 ±" in page.rendered(page.PAGE.read_text(encoding="utf-8"), kept)


def test_results_are_those_of_the_full_run():
    kept = kept_results()
    assert kept["sizes"] == json.loads(json.dumps(asdict(FULL)))
    assert list(kept["checks"]) == list(CHECKS)
    checks = checked(Results(kept["curves"] | means_of_no_run()))
    for name in kept["checks"].keys() - {"wide window is smooth", "narrow window is ragged"}:
        assert kept["checks"][name]["value"] == checks[name].value
        assert kept["checks"][name]["met"] is checks[name].met


def means_of_no_run():
    """Return arbitrary posterior means, because they are not stored with the results."""
    return {"1 middle": {name: {"rested": [0.0, 1.0]} for name in ("Δ₁", "Δ₂", "SBP")}}


def test_the_page_shows_pictures_that_exist():
    links = re.findall(r"\]\(([^)#]+)\)", page.PAGE.read_text(encoding="utf-8"))
    assert {f"paper/{name}" for name in PICTURES} <= set(links)
    assert all((page.PAGE.parent / link).exists() for link in links)


def test_every_misprint_on_the_page_has_its_test():
    text = page.PAGE.read_text(encoding="utf-8")
    named = set(re.findall(r"`(test_\w+)`", text))
    defined = set(
        re.findall(r"def (test_\w+)", (ROOT / "tests/test_misprints.py").read_text("utf-8"))
    )
    assert named
    assert named <= defined
