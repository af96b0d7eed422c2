"""Learn a smooth probability from yes/no trials.

Everything is a function of additive statistics of the trials by place: windows use those near x,
the process uses all of them. Every room of the package is one word of that sentence:

    trials       what was observed, validated
    contexts     how a trial was distorted
    sums         trials by place, as they were seen
    evidence     how a trial is counted in windows, and what counts mean
    windows      sums over the trials near a point
    process      the smooth part: a Gaussian process on sums by place, and windows of its residuals
    smooth       what the default has learned, and what it says: an immutable value
    field        the same for windows
    posteriors   distributions of the probability after the trials
    teachable    how an estimator is taught
    estimators   SmoothBetaClassifier, for people who know scikit-learn

Below them

    checks       "argument: found …; allowed are …", once
    tables       any dataframe as NumPy
    bernstein    polynomials of π
    lattice      distorted trials on a lattice of log-likelihood ratios
    units        the units in which nearness is measured
    bandwidth    how near is near, by theory
    priors       distributions of the probability before the trials
    choosing     how wide windows are
    options      what a model was asked for
    learning     from validated trials to windows
    methods      which kind of field is asked for
    teaching     from an estimator's arguments to a field
    cautions     warnings about answers that may be wrong
    components   what answers are made of, in words
    learned      learned attributes of an estimator, read off its field
    streaming    learning from files, some rows at a time
    files        Parquet and CSV, some rows at a time
    bands        intervals with a finite-sample guarantee
    persistence  one file of values and arrays, no pickle
    plain        options and labels as JSON has them
    state        a field, to a file and back

and above them

    guarantees   what can be promised: rates, error bounds, trials needed
    observed     what a fitted model has seen
    meaning      what the components of answers say about the data, in sentences
    survey       asking a model over its domain
    plots        pictures: fields, calibration, components, bandwidths, one point
    report       one page of HTML about a model
    cli          the command line
    calibration  FieldCalibratedClassifier, for many features: a field over a classifier's score
    dask         the same estimator over dask collections
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
    """Import a public name where it is first used, so that importing the package is quick."""
    if name in _MODULES:
        return import_module(f"betafield.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'betafield' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
