"""What peers scored does not change with betafield: it is kept, by all that it depends on."""

import json
import os
from collections.abc import Callable
from pathlib import Path

Scores = dict[str, float]


class Kept:
    """Scores by key in a JSON file; several runs may fill one file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.known: dict[str, Scores] = self._read()

    def _read(self) -> dict[str, Scores]:
        return json.loads(self.path.read_text()) if self.path.exists() else {}

    def keep(self, key: str, found: Scores) -> None:
        self.known = self._read() | self.known | {key: found}
        self.path.parent.mkdir(exist_ok=True)
        draft = self.path.with_suffix(f".{os.getpid()}")
        draft.write_text(json.dumps(self.known, indent=0, sort_keys=True, ensure_ascii=False))
        draft.replace(self.path)

    def scored(self, key: str, work: Callable[[], Scores]) -> Scores:
        """Return what is known of the key, else what the work finds, which is then known."""
        if key not in self.known:
            self.keep(key, work())
        return self.known[key]
