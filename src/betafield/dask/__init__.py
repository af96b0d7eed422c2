"""The same estimator over Dask collections, with answers equal to the bit.

    partitions   partitions: how they are read, kept, and named in errors
    questions    a field's queries of its windows, recorded and answered elsewhere
    tasks        what workers do: check, survey, learn, answer
    windows      windows on workers, whose answers are summed, and the field that queries them
    learning     from partitions to a field: windows on workers, or a process on the client
    posteriors   lazy answers at the points of collections
    estimator    SmoothBetaClassifier

A task reads its partition and returns its windows, or its sums by place. If a worker is lost with
its results, Dask runs its tasks again; trials are counted once, however often that happens.
"""

from __future__ import annotations

try:
    import dask  # noqa: F401
except ImportError as error:
    raise ImportError("dask is needed for this: pip install '.[dask]' in a checkout") from error

from betafield.dask.estimator import SmoothBetaClassifier
from betafield.dask.posteriors import Posteriors

__all__ = ["Posteriors", "SmoothBetaClassifier"]
