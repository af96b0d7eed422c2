"""`Study`, which asks a server where to test next and tells it what happened."""

from __future__ import annotations

import contextlib
import re
import tempfile
import threading
import uuid
import warnings
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, overload

import numpy as np

from betafield import checks
from betafield.client.journal import Entry, Journal
from betafield.client.wire import Wire, address, plain
from betafield.decisions.experiment.goals import Goal
from betafield.decisions.experiment.history import Trial, claimed
from betafield.decisions.results import contexts, outcomes
from betafield.decisions.sides import to_json
from betafield.decisions.space import OPTIONS, beside
from betafield.estimators import load

if TYPE_CHECKING:
    import httpx

    from betafield.estimators import SmoothBetaClassifier

STUDY = re.compile(r"/studies/([A-Za-z0-9_-]{1,64})$")


class Study:
    """A study on a server, with the methods of an `Experiment`.

    Requests that get no answer are repeated, and count once. With a journal, outcomes are on this
    machine's disk before they are sent: without a network, `tell` still returns, and outcomes are
    sent before the next `ask`, by `send()`, or when a `Study` with the same journal is closed.

    Parameters
    ----------
    url : str
        The address of the study, `https://lab.example/studies/contrast`.
    token : str, default=None
        The token from the study's owner; the role *run* is enough to ask and tell. None if the
        server is on this machine and needs none.
    journal : str or path, default=None
        A file that keeps outcomes until the server has them.
    patience : float, default=30.0
        The number of seconds for which a request is repeated before `ConnectionError` is raised.
    timeout : float, default=30.0
        The number of seconds to wait for an answer before the request is repeated.
    client : httpx.Client, default=None
        A client with its own proxies or certificates; it is not closed.

    Attributes
    ----------
    name : str
        The name of the study.
    enough : bool
        Whether the study had enough trials at the last ask.
    tokens : dict of str to str
        Tokens by role if `create` has made the study; otherwise empty.

    Examples
    --------
    No server answers here, so the outcome is kept:

    >>> from tempfile import TemporaryDirectory
    >>> from betafield.client import Study
    >>> with TemporaryDirectory() as folder:
    ...     study = Study("http://127.0.0.1:9/studies/dots", journal=f"{folder}/dots.jsonl")
    ...     study.tell(7, success=True)
    ...     [each["body"] for each in study.unsent]
    [{'success': True, 'context': None}]
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        journal: Any = None,
        *,
        patience: float = 30.0,
        timeout: float = 30.0,
        client: httpx.Client | None = None,
    ) -> None:
        where = address("url", url)
        named = STUDY.search(where)
        if named is None:
            raise ValueError(
                f"url: found {url!r}; …/studies/NAME is needed, the address of a study"
            )
        rule = "a number of seconds is needed"
        self._patience = checks.number("patience", patience, rule, low=0.0)
        self.name = named[1]
        self.enough = False
        self.tokens: dict[str, str] = {}
        self._wire = Wire(where, _token(token), checks.positive("timeout", timeout, rule), client)
        self._journal = None if journal is None else Journal(journal, self.name)
        # Pending trials asked for here, to distinguish them from those of other studies.
        self._asked: dict[int, tuple[dict[str, Any], str | None]] = {}
        self._lock = threading.RLock()
        self._is_closed = False

    @classmethod
    def create(
        cls,
        server: str,
        token: str | None = None,
        journal: Any = None,
        *,
        name: str,
        space: Any,
        goal: Any,
        **options: Any,
    ) -> Self:
        """Create a study on a server, and return it with its owner's token.

        Parameters
        ----------
        server : str
            The address of the server, `https://lab.example`.
        token : str, default=None
            A token that may create studies.
        journal : str or path, default=None
            As in `Study`.
        name : str
            At most 64 letters, digits, `_` and `-`.
        space : mapping of str to (low, high), Log, Integer or list of levels
            The features of a trial and their possible values.
        goal : Everywhere, LevelSet, Maximize, Minimize or Compare
            What the trials are for; or a mapping such as `{"kind": "LevelSet", "level": 0.75}`.
        **options : dict
            `model`, `seed`, `strategy`, `spread`, `observed`, `contexts`, `pending_seconds` and
            `enough`, as the server takes them.
        """
        place = address("server", server)
        told = {"name": name, "space": to_json(space), "goal": _goal(goal), **options}
        wire = Wire(place, _token(token), 60.0)
        try:
            made = wire.json("POST", "/studies", body=plain("study", told))
        finally:
            wire.close()
        study = cls(f"{place}/studies/{name}", made.get("tokens", {}).get("owner"), journal)
        study.tokens = dict(made.get("tokens", {}))
        return study

    # Asking.

    @overload
    def ask(self, n: None = None, *, fixed: Any = None, participant: Any = None) -> Trial: ...
    @overload
    def ask(self, n: int, *, fixed: Any = None, participant: Any = None) -> list[Trial]: ...
    def ask(
        self, n: int | None = None, *, fixed: Any = None, participant: Any = None
    ) -> Trial | list[Trial]:
        """Return the next trial, or a list of n trials; nobody else is given the same ones.

        Parameters
        ----------
        n : int, default=None
            The number of trials. None: a single trial instead of a list.
        fixed : mapping, default=None
            Values of features that are not to be chosen this time. It must contain all observed
            features.
        participant : str, default=None
            The participant.

        Raises
        ------
        ConnectionError
            If there is no answer within `patience`.
        """
        size = 1 if n is None else checks.whole("n", n)
        body = {
            "n": size,
            "fixed": plain("fixed", {} if fixed is None else fixed),
            "participant": _participant(participant),
            "key": uuid.uuid4().hex,
        }
        self.send()
        answer = self._wire.json("POST", "/asks", body=body, patience=self._patience)
        trials = [Trial.from_dict(each) for each in self._wire.field(answer, "trials", list)]
        self._asked.update({trial.id: (dict(trial), body["participant"]) for trial in trials})
        self.enough = bool(answer.get("enough"))
        return trials[0] if n is None else trials

    # Telling.

    def tell(self, trial: Any, success: Any, context: Any = None) -> None:
        """Report the outcome of a trial; telling it again counts once.

        Parameters
        ----------
        trial : Trial, int or mapping
            A trial that was asked for, by this program or another: the `Trial` itself, its `id`, or
            a mapping with its `id`. A mapping of features to values, without an id, is recorded as
            a new trial.
        success : bool
        context : str or array of shape (p + 1,), default=None
            The name of one of the study's contexts, or coefficients.

        Raises
        ------
        ValueError
            If the server refuses it: it was told before with another outcome, or abandoned.
        ConnectionError
            If there is no answer within `patience`, and no journal.
        """
        body = {"success": bool(outcomes(success, ())), "context": _context(context)}
        key = uuid.uuid4().hex
        number = self._number(trial)
        if number is None:
            told = checks.instance(
                "trial", trial, Mapping, "a trial, its id or a mapping is needed"
            )
            body |= {"values": plain("trial", dict(told)), "key": key}
        elif number in self._asked:
            body["participant"] = self._asked[number][1]
        path = "/trials" if number is None else f"/trials/{number}/outcome"
        if self._journal is None:
            self._send_one({"path": path, "body": body}, self._patience)
        else:
            with self._lock:
                self._journal.add(key, path, body)
            self._send_kept(key)
        if number is not None:
            self._asked.pop(number, None)

    def _number(self, trial: Any) -> int | None:
        """Return the number of the trial that is meant; None for a new trial."""
        claim = claimed(trial, ())
        if claim is None:
            return None
        number = checks.whole("trial", claim[0], 0, rule="the id of a trial is needed")
        known, values = self._asked.get(number, (None, None))[0], claim[1]
        if values and known is not None and dict(values) != known:
            raise ValueError(
                f"trial: found {checks.spelled(dict(values))} as number {number}, which is none of "
                f"{self.name!r}; that is {checks.spelled(known)}"
            )
        return number

    def abandon(self, trial: Any) -> None:
        """Give up a trial that was asked for.

        Parameters
        ----------
        trial : Trial, int or mapping
            The `Trial` itself, its `id`, or a mapping with its `id`.
        """
        number = self._number(trial)
        if number is None:
            raise TypeError(
                f"trial: found {type(trial).__name__}; a trial that `ask` returned, or its id, "
                "is needed"
            )
        self._wire.call("POST", f"/trials/{number}/abandon", body={}, patience=self._patience)
        self._asked.pop(number, None)

    # Sending what was kept.

    @property
    def unsent(self) -> list[Entry]:
        """Entries of the journal that the server does not have yet, the oldest first."""
        return [] if self._journal is None else list(self._journal.unsent.values())

    @property
    def refused(self) -> list[Entry]:
        """Entries that the server has refused, with `why`; the journal keeps them for reference."""
        return [] if self._journal is None else list(self._journal.refused)

    def send(self) -> None:
        """Send what the journal keeps, or raise `ConnectionError` after `patience` seconds.

        There is a warning for each entry that the server refuses, and `refused` lists them.
        """
        self._send_all(self._patience)

    def _send_kept(self, key: str) -> None:
        """Send what is kept if there is a network; raise if this entry is refused."""
        with contextlib.suppress(ConnectionError):
            self._send_all(0.0, key)

    def _send_all(self, patience: float, mine: str | None = None) -> None:
        if self._journal is None:
            return
        with self._lock:
            for key, entry in list(self._journal.unsent.items()):
                try:
                    self._send_one(entry, patience)
                except ValueError as error:
                    self._journal.refuse(key, str(error))
                    if key == mine:
                        raise
                    warnings.warn(f"{entry['path']}: {error}", stacklevel=3)
                else:
                    self._journal.done(key)

    def _send_one(self, entry: Entry, patience: float) -> None:
        answer = self._wire.json("POST", entry["path"], body=entry["body"], patience=patience)
        # A login page of a hotel's network may answer any request, so the answer is checked.
        self._wire.field(answer, "id", int)

    # Knowing.

    def trials(self) -> list[dict[str, Any]]:
        """Return all trials in order, one dict per trial.

        Each dict has the fields of `Experiment.trials`: the features, `id`, `state`, `success`,
        `context` and `why`; and also `participant`, `expired`, and when the trial was asked for
        and ended.
        """
        return [{**row.pop("values"), **row} for row in self._rows()]

    def _rows(self) -> list[dict[str, Any]]:
        self._send_quietly()
        return self._wire.listed("/trials", "trials", self._patience)

    def pending(self) -> list[Trial]:
        """Return the trials that anyone has asked for and that are not told or abandoned yet."""
        return [Trial.from_dict(row) for row in self._rows() if row.get("state") == "pending"]

    def status(self) -> dict[str, Any]:
        """Return what is known, how uncertain it is, and how many trials are still needed.

        The dict is that of `Experiment.status`, with `stopped` added.
        """
        status = self._read("/status")
        self._wire.field(status, "told", int)
        return dict(status)

    def posterior(
        self, points: Any = None, *, grid: int = 101, level: float = 0.95
    ) -> dict[str, Any]:
        """Return the posterior at points, or over the whole space.

        Parameters
        ----------
        points : mapping of str to numbers or levels, default=None
            One column per feature. None: a grid over the ranges, at every level.
        grid : int, default=101
            The number of grid values per range.
        level : float, default=0.95
            The level of the intervals.

        Returns
        -------
        dict
            `points`, a list of mappings, and arrays `mean`, `low` and `high`, NaN before the first
            trial.
        """
        query: dict[str, Any] = {"level": checks.share("level", level)}
        if points is None:
            query["grid"] = checks.whole("grid", grid, 2)
        else:
            told = checks.instance("points", points, Mapping, "a mapping of features is needed")
            columns = {name: _column(f"points, {name}", told[name]) for name in told}
            query |= {beside(OPTIONS, str(name)): column for name, column in columns.items()}
        answer = self._read("/posterior", query)
        arrays = {
            name: np.array(self._wire.field(answer, name, list), dtype=np.float64)
            for name in ("mean", "low", "high")
        }
        return {"points": answer.get("points"), **arrays}

    @property
    def model(self) -> SmoothBetaClassifier:
        """The model with everything learned so far, downloaded from the server."""
        self._send_quietly()
        found = self._wire.call("GET", "/model", patience=self._patience).content
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, f"{self.name}.beta")
            path.write_bytes(found)
            return load(path)

    def _read(self, path: str, query: Any = None) -> Any:
        self._send_quietly()
        return self._wire.json("GET", path, query=query, patience=self._patience)

    def _send_quietly(self) -> None:
        """Send what is kept, so that answers include it; a failure shows at the next request."""
        with contextlib.suppress(ConnectionError):
            self._send_all(0.0)

    # Ruling.

    def stop(self) -> None:
        """Stop giving out trials; outcomes of pending ones are still accepted."""
        self._wire.call("POST", "/stop", patience=self._patience)

    def resume(self) -> None:
        """Resume giving out trials."""
        self._wire.call("POST", "/resume", patience=self._patience)

    def close(self) -> None:
        """Send what is kept if there is a network, and close; warn if anything remains."""
        if self._is_closed:
            return
        self._is_closed = True
        with contextlib.suppress(PermissionError):
            self._send_quietly()
        left = len(self.unsent)
        self._wire.close()
        if self._journal is not None:
            self._journal.close()
        if left:
            warnings.warn(
                f"journal: {left} outcomes are kept that the server does not have; open the study "
                "with the same journal again to send them",
                stacklevel=2,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Study({self._wire.url!r})"


# Validation of arguments --------------------------------------------------------------------


def _token(token: Any) -> str | None:
    if token is None:
        return None
    text = checks.instance("token", token, str, "text is needed")
    # The error does not quote the token, because it is secret.
    if not (text and text.isascii() and text.isprintable() and text == text.strip()):
        raise ValueError("token: found characters that cannot be part of a token")
    return text


def _participant(participant: Any) -> str | None:
    if participant is None:
        return None
    return checks.instance("participant", participant, str, "text or None is needed")


def _column(what: str, values: Any) -> list[Any]:
    """Return the values of a feature, numbers or levels, as a list."""
    listed = plain(what, values)
    cells = listed if isinstance(listed, list) else [listed]
    if any(isinstance(cell, str | bool) for cell in cells):
        return cells  # levels, which the server validates
    numbers: list[Any] = np.atleast_1d(checks.finite(what, values)).tolist()
    return numbers


def _context(context: Any) -> Any:
    """Return a context as a JSON value: a name or coefficients."""
    if context is None or isinstance(context, str):
        return context
    found = contexts(context, 1)
    if not isinstance(found, np.ndarray):
        raise TypeError(
            f"context: found {type(context).__name__}; the name of one of the study's contexts "
            "or coefficients are needed"
        )
    return found.ravel().tolist()


def _goal(goal: Any) -> Any:
    """Return a goal as the server takes it."""
    if not isinstance(goal, Goal):
        return checks.instance("goal", goal, Mapping, "a goal or a mapping is needed")
    told = {each.name: getattr(goal, each.name) for each in fields(goal)}
    if "p" in told:
        told["level"] = told.pop("p")
    return {"kind": type(goal).__name__, **told}
