"""Measurements that need a process of their own: each prints one JSON object.

Run as ``python benchmarks/fresh.py NAME ARGUMENT...``; ``speed.py`` does so.
"""

import json
import sys
from pathlib import Path
from time import perf_counter, process_time
from typing import Any


def import_time() -> dict[str, float]:
    """Seconds to reach the estimator's class when scikit-learn is already imported."""
    import sklearn  # noqa: F401

    started = perf_counter()
    import betafield

    _ = betafield.SmoothBetaClassifier
    return {"seconds": perf_counter() - started}


def first_posterior(d: str, bandwidth: str) -> dict[str, float]:
    """Seconds from the first import of betafield to the first mean of a posterior."""
    started = perf_counter()
    import numpy as np

    from betafield import SmoothBetaClassifier

    rng = np.random.default_rng(0)
    X, y = rng.random((1000, int(d))), rng.integers(0, 2, 1000)
    SmoothBetaClassifier(bandwidth=bandwidth).fit(X, y).posterior(X[:10]).mean()
    return {"seconds": perf_counter() - started}


def first_default(d: str, distorted: str = "") -> dict[str, float]:
    """Processor seconds of this process in all, to a first interval of the default model.

    With ``distorted``, every trial has its own rates of guesses and lapses. To measure compiling
    too, name an empty folder in NUMBA_CACHE_DIR.
    """
    import numpy as np

    from betafield import SmoothBetaClassifier, contexts

    imported = process_time()
    rng = np.random.default_rng(0)
    X, y = rng.random((1000, int(d))), rng.integers(0, 2, 1000)
    guess = rng.choice([0.25, 0.5], 1000)
    context = contexts.guess_lapse(guess, 0.02) if distorted else None
    SmoothBetaClassifier().fit(X, y, context=context).posterior(X[:10]).interval(0.95)
    return {"seconds": process_time(), "imports": imported}


def memory_of_fit(t: str, d: str) -> dict[str, float]:
    """Bytes of `memory_of` with windows of the width by theory."""
    from field import theory_model

    return memory_of(theory_model, t, d)


def memory_of_default(t: str, d: str) -> dict[str, float]:
    """Bytes of `memory_of` with the default model, and with what it needs to answer."""
    from betafield import SmoothBetaClassifier

    return memory_of(lambda _: SmoothBetaClassifier(), t, d)


def memory_of(make: Any, t: str, d: str) -> dict[str, float]:
    """Bytes that fit needs at its peak, on top of X and y, and the bytes of X and y."""
    from field import trials

    warm = make(int(d)).fit(*trials(1000, int(d)))
    warm.posterior(trials(10, int(d))[0])  # compile, import: not what is measured
    X, y = trials(int(t), int(d))
    before = _forget_peak()
    model = make(int(d)).fit(X, y)
    peak = _resident("VmHWM")
    return {
        "extra": peak - before,
        "kept": _resident("VmRSS") - before,
        "data": X.nbytes + y.nbytes,
        "trials": model.n_trials_,
    }


def _forget_peak() -> int:
    """Set the high-water mark of this process to what it holds now, and return that."""
    Path("/proc/self/clear_refs").write_text("5")
    return _resident("VmRSS")


def _resident(field: str) -> int:
    """Bytes of one field of the kernel's account of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) * 1024


if __name__ == "__main__":
    name, *arguments = sys.argv[1:]
    known = (import_time, first_posterior, first_default, memory_of_fit, memory_of_default)
    measurements = {f.__name__: f for f in known}
    print(json.dumps(measurements[name](*arguments)))
