"""What to do next: what to test, which arm to pull, when a risk has moved.

    experiment   ask where to test next, tell what happened
    bandits      pull the arm that pays most, while learning which
    tracking     a risk that moves, and alarms when it passes a threshold
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
    "RiskTracker": "tracking",
}
__all__ = list(_HOMES)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    """Import a public name where it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module 'betafield.decisions' has no attribute {name!r}")
    return getattr(import_module(f"betafield.decisions.{_HOMES[name]}"), name)
