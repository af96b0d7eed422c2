"""The same estimator over dask collections, with the bits of one machine.

    partitions   what is read, kept and named in errors, a partition at a time
    questions    what a field asks of its windows, noted and answered elsewhere
    tasks        what workers do: check, look, learn, answer
    windows      windows on workers, whose answers are added up, and the field that asks them
    learning     from partitions to a field: of windows there, or of a process here
    posteriors   answers at the points of collections, computed when they are wanted
    estimator    SmoothBetaClassifier

A task reads its partition and returns its windows, or its sums by place, and dask runs a task again
where a worker was lost with its results: trials are counted once, however often that happens.
"""

from __future__ import annotations

try:
    import dask  # noqa: F401
except ImportError as error:
    raise ImportError("dask is needed for this: pip install '.[dask]' in a checkout") from error

from betafield.dask.estimator import SmoothBetaClassifier
from betafield.dask.posteriors import Posteriors

__all__ = ["Posteriors", "SmoothBetaClassifier"]
