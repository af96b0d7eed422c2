"""Threads: 32 that teach one model and 32 that ask it, all at once.

Each batch has trials at two places that share no window, in fixed proportions. A reader that sees
a whole state therefore finds, at both places, the counts of the same number of batches, and never
fewer than before. Half of the writers teach by `partial_fit`, half by `merge`.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from threading import Barrier, Event
from typing import Any

import numpy as np

from betafield import SmoothBetaClassifier

WRITERS = READERS = 32
PLACES = np.array([[0.1], [0.9]])
# Trials of a batch at each place: 3 of 10 succeed at the first, 4 of 10 at the second.
OUTCOMES = np.array([[1] * 3 + [0] * 7, [1] * 4 + [0] * 6])
# Seconds between two reads of a thread, so that readers leave writers some time.
PAUSE = 0.01
X, Y = np.repeat(PLACES, 10, axis=0), OUTCOMES.ravel()


def threads(cases: int) -> tuple[int, str]:
    """Return how many trials were lost and how many states seen were not whole."""
    batches = cases // len(Y)
    model, over = new(), Event()
    batches_seen(model.merge(new()))  # compiles
    start = Barrier(WRITERS + READERS)
    with ThreadPoolExecutor(WRITERS + READERS) as pool:
        readers = [pool.submit(read, model, start, over) for _ in range(READERS)]
        writers = [
            pool.submit(write, model, start, (batches + i) // WRITERS, i % 2)
            for i in range(WRITERS)
        ]
        try:
            wait_for(writers)
        finally:
            over.set()
        seen = np.array([reader.result() for reader in readers])
    counted = int(model.n_trials_) - 2 * len(Y)
    reads, torn = seen.sum(axis=0)
    wrong = abs(batches * len(Y) - counted) + int(torn) + (batches_seen(model) != batches + 2)
    return wrong, f"{counted:,} trials counted, {reads - torn:,} whole states of {reads:,} read"


def wait_for(writers: list[Future[None]]) -> None:
    for writer in writers:
        writer.result()


def new() -> SmoothBetaClassifier:
    """Return a model that has learned one batch."""
    return SmoothBetaClassifier(0.1, bounds=[(0.0, 1.0)]).fit(X, Y)


def write(model: SmoothBetaClassifier, start: Barrier, batches: int, merging: int) -> None:
    start.wait()
    for _ in range(batches):
        if merging:
            model.merge(new())
        else:
            model.partial_fit(X, Y)


def read(model: SmoothBetaClassifier, start: Barrier, over: Event) -> tuple[int, int]:
    """Return how often a model was read, and how often what was seen was not whole."""
    start.wait()
    reads, torn, before = 0, 0, 0
    while not over.wait(PAUSE):
        found = batches_seen(model)
        reads, torn = reads + 1, torn + (found is None or found < before)
        before = max(before, found or 0)
    return reads, torn


def batches_seen(model: SmoothBetaClassifier) -> int | None:
    """Return of how many batches a model tells, or None if no number of them is all it tells."""
    posterior: Any = model.posterior(PLACES)
    successes, failures = posterior.alpha - 1.0, posterior.beta - 1.0
    each = np.concatenate([successes / OUTCOMES.sum(axis=1), failures / (1 - OUTCOMES).sum(axis=1)])
    return int(each[0]) if np.all(each == each[0]) and each[0] == int(each[0]) else None
