"""The claims of docs/live.md, and the PsychoPy handler, against a real server."""

import re
import runpy
from pathlib import Path

import pytest
from tests.server.serving import TOKEN

from betafield.client import Study
from betafield.decisions import Experiment, LevelSet

ROOT = Path(__file__).parents[2]


def handler_of():
    return runpy.run_path(str(ROOT / "examples" / "psychopy_experiment.py"))


def test_the_page_on_clients_runs(server, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "live.md").read_text(encoding="utf-8")
    first, second, third = re.findall(r"^```py\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    scope = {}
    at = {"http://127.0.0.1:8000": server.address, "the server's token": TOKEN}

    def run(block):
        for said, meant in at.items():
            block = block.replace(said, meant)
        exec(block, scope)

    run(first)
    owner = scope["study"]
    at |= {f"the token to {role} it": owner.tokens[role] for role in ("run", "view")}
    run(second)
    run(third)
    assert scope["viewer"].status()["told"] == 5
    assert (tmp_path / "contrast.jsonl").exists()
    owner.close()
    scope["viewer"].close()


def test_a_handler_runs_over_an_experiment_and_over_a_study(server):
    of = handler_of()
    handler_class = of["BetafieldHandler"]
    local = Experiment(of["SPACE"], LevelSet(0.75), random_state=0, strategy="sobol")
    study = Study.create(
        server.address,
        TOKEN,
        name="psychopy",
        space=of["SPACE"],
        goal=LevelSet(0.75),
        seed=0,
        strategy="sobol",
    )
    runs = [
        of["run"](handler_class(each, nTrials=12), lambda c: c > 0.2) for each in (local, study)
    ]
    assert runs[0].intensities == runs[1].intensities
    assert runs[0].results == [int(c > 0.2) for c in runs[0].intensities]
    for each in runs:
        assert each.finished
        assert each.thisTrialN == 11
        low, high = each.confInterval()
        assert low <= each.quantile(0.5) <= high
        assert low < each.mean() < high
        assert each.confInterval(getDifference=True) == pytest.approx(high - low)
    assert runs[0].mean() == pytest.approx(runs[1].mean(), rel=1e-9)
    runs[1].nTrials += 1
    runs[1].finished = False
    next(runs[1])
    runs[1].addResponse(1, intensity=0.33)
    runs[1].importData([0.1], [0])
    rows = study.trials()
    assert [row["state"] for row in rows[-3:]] == ["abandoned", "told", "told"]
    assert [row["contrast"] for row in rows[-2:]] == [0.33, 0.1]
    study.close()
    assert study.name == "psychopy"


def test_a_handler_wants_every_answer():
    of = handler_of()
    handler = of["BetafieldHandler"](Experiment(of["SPACE"], LevelSet(0.75), random_state=0))
    next(handler)
    with pytest.raises(RuntimeError, match="addResponse"):
        next(handler)


def test_a_handler_of_several_features_gives_and_takes_all_of_them():
    of = handler_of()
    space = {"contrast": (0.0, 0.5), "eye": ["left", "right"], "frequency": (1.0, 20.0)}
    local = Experiment(space, LevelSet(0.75), random_state=0, strategy="sobol")
    handler = of["BetafieldHandler"](local, nTrials=8, fixed={"eye": "left"})
    for shown in handler:
        assert shown["eye"] == "left"
        handler.addResponse(shown["contrast"] > 0.2)
    there = {"contrast": 0.4, "eye": "right", "frequency": 4.0}
    handler.importData([there], [1])
    *asked, told = local.trials()
    assert [{name: row[name] for name in space} for row in asked] == handler.intensities
    assert handler.results == [int(row["contrast"] > 0.2) for row in asked]
    assert ({name: told[name] for name in space}, told["success"]) == (there, True)
    at = {"eye": "left", "frequency": 4.0}
    low, high = handler.confInterval(feature="contrast", at=at)
    direct = local.model.threshold(0.75, 0, {"x1": "left", "x2": 4.0}, random_state=0)
    assert [low, high] == pytest.approx(direct.interval(0.9))
    assert low <= handler.quantile(0.5, feature="contrast", at=at) <= high


def test_a_handler_tells_what_was_shown_instead():
    of = handler_of()
    local = Experiment({"x": (0, 1), "y": (0, 1)}, LevelSet(0.75), random_state=0)
    handler = of["BetafieldHandler"](local)
    shown = next(handler)
    handler.addResponse(True, intensity={**shown, "y": 0.25})
    assert [row["state"] for row in local.trials()] == ["abandoned", "told"]
    assert local.trials()[1]["y"] == 0.25
