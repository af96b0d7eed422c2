"""The database of studies: an SQLite file, or PostgreSQL.

SQLite has a write-ahead log with `synchronous=FULL`, and one server process per file, which a lock
file beside it ensures; writes go through one thread (`committing`).

PostgreSQL may have several server processes. A process that changes a study locks its row, reads
what others have written meanwhile, and commits (`Turn`).
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import sqlalchemy as sa
from sqlalchemy import Connection, Engine, bindparam, event, insert, select, update
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from betafield.server import tables
from betafield.server.committing import Committer
from betafield.server.problems import Problem, Unavailable, conflict, missing
from betafield.server.tables import keys, studies, trials

# Seconds after which a database that does not answer counts as unavailable.
PATIENCE = 5


@dataclass
class Writes:
    """The changes that a turn makes to the rows of a study."""

    asked: list[dict[str, Any]] = field(default_factory=list)
    ended: list[dict[str, Any]] = field(default_factory=list)
    keys: list[dict[str, Any]] = field(default_factory=list)
    stopped: bool | None = None

    def __bool__(self) -> bool:
        return bool(self.asked or self.ended or self.keys or self.stopped is not None)


INSERT_TRIALS = insert(trials)
INSERT_KEYS = insert(keys)
END_TRIALS = (
    update(trials)
    .where(trials.c.study == bindparam("of_study"), trials.c.id == bindparam("of_id"))
    .values(
        state=bindparam("state"),
        success=bindparam("success"),
        context=bindparam("context"),
        ended_seq=bindparam("ended_seq"),
        ended_at=bindparam("ended_at"),
    )
)


def written(connection: Connection, study: int, head: int, writes: Writes) -> None:
    """Write changes to the rows of a study."""
    if writes.asked:
        connection.execute(INSERT_TRIALS, writes.asked)
    if writes.ended:
        connection.execute(END_TRIALS, writes.ended)
    if writes.keys:
        connection.execute(INSERT_KEYS, writes.keys)
    values: dict[str, Any] = {"head": head}
    if writes.stopped is not None:
        values["stopped"] = writes.stopped
    connection.execute(update(studies).where(studies.c.id == study).values(**values))


@contextlib.contextmanager
def reachable() -> Iterator[None]:
    """Turn database errors into one that asks clients to try again."""
    try:
        yield
    except IntegrityError:
        raise
    except (DBAPIError, PoolTimeout, OSError) as error:
        said = str(getattr(error, "orig", None) or error).strip().splitlines()
        raise Unavailable(said[0] if said else type(error).__name__) from error


class Turn:
    """The exclusive right to change a study, with access to what others have changed.

    Parameters
    ----------
    store : Store
    study : int
    connection : Connection or None
        A transaction that has locked the study's row; None if there are no other writers.
    """

    def __init__(self, store: Store, study: int, connection: Connection | None) -> None:
        self.store, self.study, self.connection = store, study, connection

    def head(self) -> tuple[int, bool] | None:
        """Return the number of the last event, and whether the study is stopped.

        None means that the state in memory is up to date.
        """
        if self.connection is None:
            return None
        query = select(studies.c.head, studies.c.stopped).where(studies.c.id == self.study)
        head, stopped = self.connection.execute(query.with_for_update()).one()
        return int(head), bool(stopped)

    def rows(self, since: int) -> list[Any]:
        """Return the trials that have changed since an event."""
        with self._reading() as connection:
            return trials_since(connection, self.study, since)

    def keys(self, since: int) -> list[Any]:
        """Return the keys recorded since an event."""
        query = select(keys).where(keys.c.study == self.study, keys.c.seq > since)
        with self._reading() as connection:
            return list(connection.execute(query.order_by(keys.c.seq)).all())

    def commit(self, head: int, writes: Writes) -> None:
        """Make changes durable."""
        if self.connection is not None:
            written(self.connection, self.study, head, writes)
            self.connection.commit()
        else:
            self.store.commit(lambda connection: written(connection, self.study, head, writes))

    @contextlib.contextmanager
    def _reading(self) -> Iterator[Connection]:
        if self.connection is not None:
            yield self.connection
        else:
            with self.store.reading() as connection:
                yield connection


def trials_since(connection: Connection, study: int, since: int) -> list[Any]:
    """Return the trials of a study that have changed since an event, in order of number."""
    is_new = (trials.c.asked_seq > since) | (trials.c.ended_seq > since)
    wanted = trials.c.study == study
    if since:
        wanted &= is_new
    return list(connection.execute(select(trials).where(wanted).order_by(trials.c.id)).all())


class Store:
    """A database of studies.

    Parameters
    ----------
    url : str
        A URL of SQLAlchemy, or the path of an SQLite file.
    serving : bool, default=False
        Whether this process is the one that serves an SQLite file.
    """

    def __init__(self, url: str, serving: bool = False) -> None:
        self.url = database_url(url)
        self.is_file = self.url.get_backend_name() == "sqlite"
        self._lock = _locked(Path(str(self.url.database))) if self.is_file and serving else None
        try:
            self.engine = _engine(self.url)
            with reachable(), self._writing() as connection:
                tables.migrate(connection)
        except Unavailable as error:
            self._release()
            where = self.url.render_as_string(hide_password=True)
            raise ValueError(f"{where}: {error.why}") from error
        except BaseException:
            self._release()
            raise
        self._committer = Committer(self._writing) if self.is_file and serving else None

    def close(self) -> None:
        """Commit all queued writes, and close the database."""
        if self._committer is not None:
            self._committer.close()
        self._release()

    def _release(self) -> None:
        """Close connections and the lock, so that another process can use the file."""
        if hasattr(self, "engine"):
            self.engine.dispose()
        if self._lock is not None:
            self._lock.close()

    # Transactions.

    @contextlib.contextmanager
    def _writing(self) -> Iterator[Connection]:
        with (
            self.engine.connect().execution_options(writes=True) as connection,
            connection.begin(),
        ):
            yield connection

    def commit(self, write: Any) -> None:
        """Return once a write is durable."""
        with reachable():
            if self._committer is not None:
                self._committer.commit(write)
            else:
                with self._writing() as connection:
                    write(connection)

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """Yield a connection for reading."""
        with reachable(), self.engine.connect() as connection:
            yield connection

    @contextlib.contextmanager
    def turn(self, study: int) -> Iterator[Turn]:
        """Yield the exclusive right to change a study."""
        if self._committer is not None:
            yield Turn(self, study, None)
            return
        with reachable(), self.engine.connect() as connection:
            yield Turn(self, study, connection)

    def probe(self) -> None:
        """Raise unless something can be written and made durable."""
        touch = update(tables.about).values(touched=time.time())
        self.commit(lambda connection: connection.execute(touch))

    # Studies.

    def create(self, name: str, definition: Any, hashes: Sequence[dict[str, Any]]) -> int:
        """Add a study with its tokens, and return its number."""
        made: list[int] = []

        def write(connection: Connection) -> None:
            values = {
                "name": name,
                "definition": json.dumps(definition),
                "created": time.time(),
                "stopped": False,
                "head": 0,
            }
            found = connection.execute(insert(studies).values(**values)).inserted_primary_key
            connection.execute(insert(tables.tokens), list(hashes))
            assert found is not None
            made.append(int(found[0]))

        try:
            self.commit(write)
        except IntegrityError as error:
            raise conflict(f"name: found {name!r}, which is already taken") from error
        return made[-1]

    def studies(self) -> list[Any]:
        """Return all studies, the oldest first."""
        with self.reading() as connection:
            return list(connection.execute(select(studies).order_by(studies.c.id)).all())

    def study(self, name: str) -> Any:
        """Return the row of a study, or raise."""
        with self.reading() as connection:
            query = select(studies).where(studies.c.name == name)
            row = connection.execute(query).one_or_none()
        if row is None:
            raise missing(f"study: found {name!r}; there is no study of this name")
        return row

    def page(self, study: int, after: int, limit: int) -> list[Any]:
        """Return at most `limit` trials of a study with numbers above `after`."""
        query = select(trials).where(trials.c.study == study, trials.c.id > after)
        with self.reading() as connection:
            return list(connection.execute(query.order_by(trials.c.id).limit(limit)).all())


def database_url(given: str) -> sa.URL:
    """Return the URL of a database; a path is that of an SQLite file.

    Examples
    --------
    >>> database_url("study.db").drivername, database_url("postgresql://h/d").drivername
    ('sqlite', 'postgresql+psycopg')
    """
    if "://" not in given:
        return sa.URL.create("sqlite", database=given)
    url = sa.make_url(given)
    if url.drivername in ("postgresql", "postgres"):
        return url.set(drivername="postgresql+psycopg")
    if url.drivername not in ("postgresql+psycopg", "sqlite"):
        raise ValueError(f"database: found {url.drivername}; sqlite or postgresql is needed")
    return url


def _engine(url: sa.URL) -> Engine:
    if url.get_backend_name() != "sqlite":
        from betafield._extras import needed

        needed("postgresql", "psycopg")
        return sa.create_engine(
            url,
            pool_pre_ping=True,
            pool_size=16,
            max_overflow=48,
            pool_timeout=PATIENCE,
            connect_args={"connect_timeout": PATIENCE},
        )
    engine = sa.create_engine(
        url,
        pool_size=16,
        max_overflow=48,
        pool_timeout=PATIENCE,
        connect_args={"timeout": PATIENCE, "check_same_thread": False},
    )
    event.listen(engine, "connect", _on_connect)
    event.listen(engine, "begin", _on_begin)
    return engine


def _on_connect(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # transactions begin explicitly, in `_on_begin`
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")


def _on_begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get("writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _locked(path: Path) -> IO[bytes] | None:
    """Return a lock file that this process holds while it serves; raise if another holds it."""
    try:
        import fcntl
    except ImportError:  # not on this system, where only SQLite's own locks protect the file
        return None
    try:
        lock = Path(f"{path}-serving").open("ab")  # noqa: SIM115 (held while serving)
    except OSError as error:
        raise ValueError(f"{path}: it cannot be opened to write: {error.strerror}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.close()
        raise ValueError(
            f"{path}: another server serves it; several may share a PostgreSQL database"
        ) from error
    return lock


__all__ = ["Problem", "Store", "Turn", "Writes", "database_url", "reachable"]
