"""What to do next: what to test, which arm to pull, when a risk has moved.

`experiment` asks where to test next and is told what happened, `bandits` pull the arm that pays
most while learning which, `tracking` follows a risk that moves and says where it is too high.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "Compare": "goals",
    "Everywhere": "goals",
    "Experiment": "experiment",
    "FieldBandit": "bandits",
    "LevelSet": "goals",
    "Maximize": "goals",
    "Minimize": "goals",
    "Regret": "simulation",
    "RiskTracker": "tracking",
    "Trial": "experiment",
    "false_alarm_rate": "tracking",
    "simulate": "simulation",
}
__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    """Import a public name where it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module 'betafield.decisions' has no attribute {name!r}")
    return getattr(import_module(f"betafield.decisions.{_HOMES[name]}"), name)
