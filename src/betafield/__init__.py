"""Learn a smooth probability from yes/no trials.

Everything is a function of additive statistics of the trials by place: windows use those near x,
the process uses all of them. The main modules:

    trials       validated trials
    contexts     how a trial was distorted
    sums         trials by place
    evidence     how trials are counted in windows, and what the counts mean
    windows      sums over the trials near a point
    process      the smooth part: a Gaussian process on sums by place, and windows of its residuals
    smooth       the default field: what it has learned, and its answers; immutable
    field        the same for windows
    posteriors   distributions of the probability after the trials
    teachable    the methods by which an estimator learns
    estimators   SmoothBetaClassifier, in scikit-learn's conventions

Below them

    checks       checks of arguments: "argument: found …; allowed are …"
    tables       any dataframe as NumPy
    bernstein    polynomials of π
    lattice      distorted trials on a lattice of log-likelihood ratios
    units        the units in which nearness is measured
    bandwidth    the theoretical width of windows
    priors       distributions of the probability before the trials
    choosing     the learned width of windows
    options      the options of a model
    learning     from validated trials to windows
    methods      which kind of field to use
    teaching     from an estimator's arguments to a field
    cautions     warnings about answers that may be wrong
    components   what answers are made of, in words
    learned      learned attributes of an estimator, read off its field
    streaming    learning from files, in batches
    files        Parquet and CSV files, read in batches
    bands        intervals with a finite-sample guarantee
    persistence  one file of values and arrays, no pickle
    plain        options and labels as JSON values
    state        fields to files and back

and above them

    guarantees   what can be promised: rates, error bounds, trials needed
    observed     what a fitted model has seen
    meaning      what the components of answers say about the data, in sentences
    survey       asking a model over its domain
    plots        pictures: fields, calibration, components, bandwidths, one point
    report       one HTML page about a model
    cli          the command line
    calibration  FieldCalibratedClassifier, for many features: a field over a classifier's score
    dask         the same estimator over Dask collections
    baselines    other methods with the same interface, to compare with
    testing      coverage of intervals, on functions that you supply
    decisions    what to test next, which arm to pull, when a risk has moved
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from betafield._interrupts import held

if TYPE_CHECKING:
    from betafield import baselines, contexts, decisions, guarantees, plots, report, testing
    from betafield.calibration import FieldCalibratedClassifier
    from betafield.cautions import FieldWarning
    from betafield.estimators import SmoothBetaClassifier, load
    from betafield.priors import Prior

__version__ = "0.2.0"
__all__ = [
    "FieldCalibratedClassifier",
    "FieldWarning",
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
    "FieldWarning": "betafield.cautions",
    "Prior": "betafield.priors",
    "SmoothBetaClassifier": "betafield.estimators",
    "load": "betafield.estimators",
}


@held()
def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that importing the package is quick."""
    if name in _MODULES:
        return import_module(f"betafield.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'betafield' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
