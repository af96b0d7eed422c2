"""Learn a smooth probability from yes/no trials.

The posterior at x is a function of additive statistics of the trials near x, and every room
of the package is one word of that sentence:

    trials       what was observed, validated
    files        Parquet and CSV, some rows at a time
    contexts     how a trial was distorted
    lattice      how distorted trials are counted
    units        in which units nearness is measured
    windows      sums over the trials near a point
    bandwidth    how near is near, by theory
    priors       what was believed before
    posteriors   what is then believed
    sharing      how trials under different contexts share a window
    local        polynomials fitted to the trials of a window
    weighing     which windows predict best, learned from the trials
    choosing     which windows to use
    bands        intervals with a finite-sample guarantee
    guarantees   what can be promised: rates, error bounds, trials needed
    estimators   SmoothBetaClassifier, for people who know scikit-learn
    persistence  one file of values and arrays, no pickle
    plain        options and labels as JSON has them
    state        what a model has learned, to a file and back
    observed     what a fitted model has seen, told by its windows
    plots        pictures: fields, calibration, bandwidths, windows
    report       one page of HTML about a model
    cli          the command line
    calibration  FieldCalibratedClassifier, for many features: a field over a classifier's score
    dask         the same estimator over dask collections
    baselines    what others do, with the same methods, to compare
    testing      how often intervals hold, on functions of yours
    decisions    what to test next, which arm to pull, when a risk has moved
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from betafield import baselines, contexts, decisions, guarantees, plots, report, testing
    from betafield.calibration import FieldCalibratedClassifier
    from betafield.estimators import SmoothBetaClassifier, load
    from betafield.priors import Prior

__version__ = "0.1.0"
__all__ = [
    "FieldCalibratedClassifier",
    "Prior",
    "SmoothBetaClassifier",
    "__version__",
    "baselines",
    "contexts",
    "decisions",
    "guarantees",
    "load",
    "plots",
    "report",
    "testing",
]

_MODULES = {"baselines", "contexts", "decisions", "guarantees", "plots", "report", "testing"}
_HOMES = {
    "FieldCalibratedClassifier": "betafield.calibration",
    "Prior": "betafield.priors",
    "SmoothBetaClassifier": "betafield.estimators",
    "load": "betafield.estimators",
}


def __getattr__(name: str) -> Any:
    """Import a public name where it is first used, so that importing the package is quick."""
    if name in _MODULES:
        return import_module(f"betafield.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'betafield' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
