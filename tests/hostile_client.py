"""Valid calls of a study's client, against a server in its own process."""

import atexit
import contextlib
import sys
import tempfile
import uuid
from functools import cache
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
from tests.server.serving import EVEN, TOKEN, Server

from betafield.client import Study

SPACE = {"x": (0.0, 1.0), "y": (-1.0, 1.0)}


@cache
def served():
    """Start a server on first use; it ends with this process."""
    stack = contextlib.ExitStack()
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    server = stack.enter_context(Server(Path(folder) / "study.db", "--rate", "1000000"))
    # Handlers run in reverse order: the server must end before the nursery that started it.
    atexit.register(stack.close)
    return server


@cache
def study():
    """Return a study with a pending trial."""
    made = _created("hostile", SPACE, EVEN["goal"])
    made.ask()
    return made


def _created(name, space, goal):
    return Study.create(
        served().address, TOKEN, name=name, space=space, goal=goal, strategy="sobol", seed=0
    )


def known(asked):
    """Return all that the server knows about a study."""
    return repr(asked.trials())


def calls(function, method):
    """Return calls by name, made by `function` and `method`."""
    return {
        "Study": function(
            lambda **given: Study(**given).close(),
            url="http://127.0.0.1:9/studies/dots",
            token="bf_token",
            journal="journal.jsonl",
            patience=1.0,
            timeout=1.0,
        ),
        "Study.create": function(
            lambda **given: _created(**given).close(),
            also=("study", "feature", "kind"),
            name=lambda: f"made-{uuid.uuid4().hex[:20]}",
            space=lambda: dict(SPACE),
            goal=lambda: dict(EVEN["goal"]),
        ),
        "Study.ask": method(
            study, "ask", state=known, learns=True, n=2, fixed=lambda: {"x": 0.5}, participant="p"
        ),
        "Study.tell": method(
            study,
            "tell",
            state=known,
            learns=True,
            also=("values",),
            trial=lambda: {"x": 0.5, "y": 0.0},
            success=True,
            context=lambda: [0.0, 0.5],
        ),
        "Study.abandon": method(
            study, "abandon", state=known, learns=True, trial=lambda: study().ask()
        ),
        "Study.posterior": method(
            study,
            "posterior",
            state=known,
            points=lambda: {"x": [0.1, 0.2], "y": [0.0, 0.5]},
            grid=5,
            level=0.9,
        ),
    }
