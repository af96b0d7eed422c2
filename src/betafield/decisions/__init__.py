"""Decisions: what to test next, which arm to pull, when a risk has changed.

`experiment` chooses where to test next and is told the outcomes, `bandit` pulls the best arm while
learning which that is, and `tracker` follows a changing risk and says where it is too high.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from betafield._interrupts import held

if TYPE_CHECKING:
    from betafield.decisions.bandit.bandit import FieldBandit
    from betafield.decisions.bandit.regret import Regret, simulate
    from betafield.decisions.experiment.experiment import Experiment
    from betafield.decisions.experiment.goals import (
        Compare,
        Everywhere,
        LevelSet,
        Maximize,
        Minimize,
    )
    from betafield.decisions.experiment.history import Trial
    from betafield.decisions.sides import Integer, Log
    from betafield.decisions.tracker.false_alarms import false_alarm_rate
    from betafield.decisions.tracker.tracker import RiskTracker

__all__ = [
    "Compare",
    "Everywhere",
    "Experiment",
    "FieldBandit",
    "Integer",
    "LevelSet",
    "Log",
    "Maximize",
    "Minimize",
    "Regret",
    "RiskTracker",
    "Trial",
    "false_alarm_rate",
    "simulate",
]

_HOMES = {
    "Compare": "experiment.goals",
    "Everywhere": "experiment.goals",
    "Experiment": "experiment.experiment",
    "FieldBandit": "bandit.bandit",
    "Integer": "sides",
    "LevelSet": "experiment.goals",
    "Log": "sides",
    "Maximize": "experiment.goals",
    "Minimize": "experiment.goals",
    "Regret": "bandit.regret",
    "RiskTracker": "tracker.tracker",
    "Trial": "experiment.history",
    "false_alarm_rate": "tracker.false_alarms",
    "simulate": "bandit.regret",
}


@held()
def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module 'betafield.decisions' has no attribute {name!r}")
    return getattr(import_module(f"betafield.decisions.{_HOMES[name]}"), name)
