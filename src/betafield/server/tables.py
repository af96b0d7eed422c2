"""The tables of a database of studies, and their migrations.

The rows of `trials` are the list of trials: `asked_seq` and `ended_seq` number all events of a
study in order, so that a replay of the rows gives the same experiment.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    SmallInteger,
    String,
    Table,
    Text,
    insert,
    inspect,
    select,
    update,
)

PENDING, TOLD, ABANDONED, EXPIRED = 0, 1, 2, 3
STATES = {PENDING: "pending", TOLD: "told", ABANDONED: "abandoned", EXPIRED: "abandoned"}

tables = MetaData()

about = Table(
    "betafield",
    tables,
    Column("version", Integer, nullable=False),
    # The time of the last write test; it must change, because SQLite skips writes that do not.
    Column("touched", Float(53), nullable=False),
)

studies = Table(
    "studies",
    tables,
    Column("id", Integer, primary_key=True),
    Column("name", String(64), nullable=False, unique=True),
    Column("definition", Text, nullable=False),
    Column("created", Float(53), nullable=False),
    Column("stopped", Boolean, nullable=False, default=False),
    # The number of the last event.
    Column("head", BigInteger, nullable=False, default=0),
)

_of_study = {"nullable": False, "primary_key": True}
trials = Table(
    "trials",
    tables,
    Column("study", Integer, ForeignKey("studies.id"), **_of_study),  # type: ignore[arg-type]
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("point", Text, nullable=False),
    Column("why", Text, nullable=False),
    Column("participant", String(256)),
    Column("state", SmallInteger, nullable=False),
    Column("success", Boolean),
    Column("context", Text),
    Column("asked_seq", BigInteger, nullable=False),
    Column("ended_seq", BigInteger),
    Column("asked_at", Float(53), nullable=False),
    Column("ended_at", Float(53)),
    Index("trials_asked", "study", "asked_seq"),
    Index("trials_ended", "study", "ended_seq"),
)

# The answers to requests with a key: consecutive trials.
keys = Table(
    "keys",
    tables,
    Column("study", Integer, ForeignKey("studies.id"), **_of_study),  # type: ignore[arg-type]
    Column("key", String(256), primary_key=True),
    Column("request", Text, nullable=False),
    Column("first", BigInteger, nullable=False),
    Column("n", BigInteger, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Index("keys_seq", "study", "seq"),
)

tokens = Table(
    "tokens",
    tables,
    Column("id", String(16), primary_key=True),
    Column("study", String(64), nullable=False),
    Column("role", String(8), nullable=False),
    Column("hash", String(64), nullable=False),
    Column("label", String(256), nullable=False, default=""),
    Column("created", Float(53), nullable=False),
    Column("revoked", Float(53)),
)


def _first(connection: Connection) -> None:
    tables.create_all(connection)


# Migration i turns a database of version i into one of version i + 1.
Migration = Callable[[Connection], None]
MIGRATIONS: tuple[Migration, ...] = (_first,)


def migrate(connection: Connection, steps: Sequence[Migration] = MIGRATIONS) -> int:
    """Bring a database up to date, in one transaction, and return its previous version."""
    found = version(connection)
    if found > len(steps):
        raise ValueError(
            f"database: found version {found}; this release knows versions up to "
            f"{len(steps)}, so a later release wrote it"
        )
    for step in steps[found:]:
        step(connection)
    if found == 0:
        connection.execute(insert(about).values(version=len(steps), touched=0.0))
    elif found < len(steps):
        connection.execute(update(about).values(version=len(steps)))
    return found


def version(connection: Connection) -> int:
    """Return the version of a database; 0 if it is empty."""
    names = inspect(connection).get_table_names()
    if "betafield" not in names:
        if "studies" in names or "trials" in names:
            raise ValueError("database: found tables of another program; an empty one is needed")
        return 0
    return int(connection.execute(select(about.c.version)).scalar_one())
