"""Threads over chunks of rows: kernels release the GIL, so threads share the cores."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

# The fewest rows for which a thread pays.
CHUNK = 2048


def run(work: Callable[[slice], None], m: int, n_jobs: int | None, least: int = CHUNK) -> None:
    """Do the work over chunks of at least `least` of m rows; several per thread, as costs vary.

    The pool lives for one call, so callers share nothing and a fork loses nothing.
    """
    threads = number(n_jobs)
    size = max(least, -(-m // (4 * threads)))
    chunks = [slice(start, start + size) for start in range(0, m, size)]
    if threads == 1 or len(chunks) == 1:
        for chunk in chunks:
            work(chunk)
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(work, chunks))


def number(n_jobs: int | None) -> int:
    """Return the number of threads, as in joblib: None is 1, -1 all cores, -2 all but one."""
    if n_jobs is None:
        return 1
    # The cores that this process may use, if the system says so.
    ours = getattr(os, "sched_getaffinity", lambda _: range(os.cpu_count() or 1))
    return n_jobs if n_jobs > 0 else max(1, len(ours(0)) + 1 + n_jobs)
