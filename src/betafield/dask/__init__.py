"""The same estimator over dask collections: trials stay where they are.

    partitions   what is read, checked and named in errors, a partition at a time
    regions      partitions of space, for those who want them
    scattered    windows on workers: each answers for its own trials, answers are added up
    estimator    SmoothBetaClassifier, which asks them

A task reads its partition, learns from it and returns its windows, and dask runs a task again
where a worker was lost with its results: trials are counted once, however often that happens.
"""

from __future__ import annotations

try:
    import dask  # noqa: F401
except ImportError as error:
    raise ImportError("dask is needed here: pip install 'betafield[dask]'") from error

from betafield.dask.estimator import Posteriors, SmoothBetaClassifier

__all__ = ["Posteriors", "SmoothBetaClassifier"]
