"""Every example runs, draws, and finds what only a model that knows the contexts can."""

import runpy
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
PNG = b"\x89PNG\r\n\x1a\n"


def example(name):
    """Return the definitions of a script, without running its main."""
    return runpy.run_path(str(EXAMPLES / f"{name}.py"))


@pytest.mark.parametrize(
    "name", ["codling", "fatigue", "flights", "ome", "pooled", "randomised_response"]
)
def test_runs_and_draws(name, tmp_path, capsys):
    picture = tmp_path / "new" / f"{name}.png"
    example(name)["main"](picture)
    assert picture.read_bytes().startswith(PNG)
    assert 10_000 < picture.stat().st_size < 120_000
    printed = capsys.readouterr().out
    assert printed.endswith(f"picture  {picture}\n")
    assert "nan" not in printed


def test_codling_starts_near_zero_only_with_the_control_mortality():
    of = example("codling")
    rows = of["chambers"]()
    background = of["contexts"].background(rows["control_mortality"])
    lowest = [[17.5]]
    naive = of["learn"](rows).posterior(lowest)
    corrected = of["learn"](rows, background).posterior(lowest)
    assert naive.interval(0.95)[0] > 0.2
    assert corrected.interval(0.95)[1] < 0.1
    # The chambers within 5 of it, by Abbott's formula.
    near = np.abs(rows["ct"] - 17.5) <= 5
    assert near.sum() == 4
    dead, control = (
        np.average(column[near], weights=rows["insects"][near])
        for column in (rows["dead"] / rows["insects"], rows["control_mortality"])
    )
    assert corrected.mean() == pytest.approx((dead - control) / (1 - control), abs=0.01)
    assert naive.mean() == pytest.approx(dead, abs=0.01)


def test_codling_curves_meet_where_nearly_all_die():
    of = example("codling")
    rows = of["chambers"]()
    background = of["contexts"].background(rows["control_mortality"])
    ends = [[17.5], [64.0]]
    gap = of["learn"](rows).posterior(ends).mean()
    gap -= of["learn"](rows, background).posterior(ends).mean()
    assert gap[0] > 0.15
    assert 0 < gap[1] < 0.02


def test_ome_knows_that_half_of_the_unheard_are_guessed_right():
    of = example("ome")
    rows = of["answers"]("coherent")
    loud, share = of["levels"](rows)
    naive = of["learn"](rows).posterior(loud[:, None])
    heard = of["learn"](rows, of["CHANCE"]).posterior(loud[:, None])
    assert loud.tolist() == [35, 40, 45, 50, 55, 65]
    np.testing.assert_allclose(naive.mean()[:5], share[:5], atol=0.01)
    assert (naive.interval(0.95)[0][:3] > 0.4).all()
    assert (heard.mean()[:3] < 0.15).all()
    # Well above chance, the share of signals heard is 2 share − 1.
    np.testing.assert_allclose(heard.mean()[3:5], 2 * share[3:5] - 1, atol=0.02)


def test_fatigue_recovers_the_rested_and_the_tired_curve():
    of = example("fatigue")
    grid, rested = of["GRID"], of["rested"](of["GRID"])
    difficulty, factor, success = of["attempts"]()
    naive = of["learn"](difficulty, success).posterior(grid[:, None])
    context = of["contexts"].attenuated(factor)
    model = of["learn"](difficulty, success, context).posterior(grid[:, None])
    tired = model.under(of["TIRED"])
    assert np.mean(np.abs(model.mean() - rested)) < 0.03
    assert np.mean(np.abs(tired.mean() - rested / 2)) < 0.015
    assert np.mean(np.abs(naive.mean() - rested)) > 0.1
    assert of["coverage"](model, rested) > 0.85
    assert of["coverage"](tired, rested / 2) > 0.85
    assert of["coverage"](naive, rested) < 0.3


@pytest.mark.parametrize(
    ("name", "trials", "truth"),
    [("pooled", "pools", "prevalence"), ("randomised_response", "survey", "rate")],
)
def test_simulated_rates_are_recovered(name, trials, truth):
    of = example(name)
    grid = of["GRID"]
    if name == "pooled":
        place, context, outcome = of[trials]()
    else:
        (place, outcome), context = of[trials](), of["RULES"]
    naive = of["learn"](place, outcome).posterior(grid[:, None])
    model = of["learn"](place, outcome, context).posterior(grid[:, None])
    error, ignored = (np.mean(np.abs(each.mean() - of[truth](grid))) for each in (model, naive))
    assert error < 0.02
    assert ignored > 5 * error
    assert of["coverage"](model) > 0.85
    assert of["coverage"](naive) < 0.05
