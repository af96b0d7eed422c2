"""All studies of a server, found by name and kept in memory once used."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from sqlalchemy import func, select

from betafield.server import tokens
from betafield.server.definitions import Definition
from betafield.server.problems import Problem
from betafield.server.storage import Store
from betafield.server.study import Study
from betafield.server.tables import PENDING, TOLD, trials

# Most studies that work at the same time.
THREADS = 64
# Seconds between checks for trials that have been pending for too long.
SWEEP = 5.0


class Studies:
    """The studies of a database.

    Parameters
    ----------
    store : Store
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.threads = ThreadPoolExecutor(THREADS, thread_name_prefix="study")
        self._live: dict[str, Study] = {}
        self._guard = threading.Lock()
        self._ended = threading.Event()
        self._sweeper = threading.Thread(target=self._sweep, name="sweeper", daemon=True)
        self._sweeper.start()

    def find(self, name: str) -> Study:
        """Return a study, reading it from the database if necessary; raise if there is none."""
        found = self._live.get(name)
        return found or self._kept(self.store.study(name))

    def known(self, name: str) -> Study | None:
        """Return a study if it is in memory."""
        return self._live.get(name)

    def _kept(self, row: Any) -> Study:
        definition = Definition(json.loads(row.definition))
        with self._guard:
            study = Study(self.store, row.id, definition, self.threads)
            return self._live.setdefault(row.name, study)

    def create(self, definition: Definition) -> dict[str, Any]:
        """Add a study, and return its name and its tokens."""
        name = definition.name
        made = {role: tokens.made(name, role, "made with the study") for role in tokens.ROLES}
        self.store.create(name, definition.values, [row for _, row in made.values()])
        return {"name": name, "tokens": {role: token for role, (token, _) in made.items()}}

    def summaries(self, only: str | None = None) -> list[dict[str, Any]]:
        """Return the number of trials per state, for each study or `only` one."""
        query = select(trials.c.study, trials.c.state, func.count()).group_by(
            trials.c.study, trials.c.state
        )
        with self.store.reading() as connection:
            counted = {(row[0], row[1]): row[2] for row in connection.execute(query)}
        rows = [row for row in self.store.studies() if only in (None, row.name)]
        return [_summary(row, counted) for row in rows]

    def close(self) -> None:
        """Finish open work and end all threads."""
        self._ended.set()
        self._sweeper.join()
        self.threads.shutdown(wait=True)

    def _sweep(self) -> None:
        """Give up, at intervals, trials that have been pending for too long."""
        while not self._ended.wait(SWEEP):
            for study in list(self._live.values()):
                if study.has_late(time.time()):
                    try:
                        study.submit(lambda state: state.expire(time.time()))
                    except Problem:
                        continue


def _summary(row: Any, counted: dict[tuple[int, int], int]) -> dict[str, Any]:
    of = {state: n for (study, state), n in counted.items() if study == row.id}
    told, pending = of.get(TOLD, 0), of.get(PENDING, 0)
    return {
        "name": row.name,
        "told": told,
        "pending": pending,
        "abandoned": sum(of.values()) - told - pending,
        "stopped": bool(row.stopped),
    }
