"""Access rights: tokens per study and role. Only their hashes are stored.

    owner   may do everything with a study
    run     may ask and tell, and see nothing else
    view    may see, and change nothing

The server's own token, known to whoever starts it, makes its holder an owner of all studies.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from typing import Any, NamedTuple

from sqlalchemy import insert, select, update

from betafield.server.problems import Problem, missing
from betafield.server.storage import Store
from betafield.server.tables import studies, tokens

ROLES = ("owner", "run", "view")
# Seconds after which a token that was revoked elsewhere is refused here.
FRESH = 0.5


class Holder(NamedTuple):
    """The holder of a token: its id, role and study; None for all studies."""

    id: str
    role: str
    study: str | None


def made(study: str, role: str, label: str = "") -> tuple[str, dict[str, Any]]:
    """Return a new token, and its row in the database.

    Examples
    --------
    >>> token, row = made("dots", "run")
    >>> len(token) > 40, token in str(row)
    (True, False)
    """
    token = f"bf_{secrets.token_urlsafe(32)}"
    row = {
        "id": secrets.token_hex(4),
        "study": study,
        "role": role,
        "hash": hashed(token),
        "label": label,
        "created": time.time(),
        "revoked": None,
    }
    return token, row


def hashed(token: str) -> str:
    """Return the hash of a token, which is all that is stored."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


class Tokens:
    """The tokens of a database, which a thread reads again every half second.

    Parameters
    ----------
    store : Store
    own : str
        The server's own token.
    """

    def __init__(self, store: Store, own: str) -> None:
        self._store, self._own = store, hashed(own)
        self._known: list[tuple[str, Holder]] = []
        # Without it, the older of two concurrent reads could replace the newer.
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self.refresh()
        self._thread = threading.Thread(target=self._follow, name="tokens", daemon=True)
        self._thread.start()

    def holder(self, token: str) -> Holder | None:
        """Return the holder of a token; every token is compared, each in constant time."""
        given = hashed(token)
        found = Holder("server", "owner", None) if hmac.compare_digest(given, self._own) else None
        for hash_, holder in self._known:
            if hmac.compare_digest(given, hash_):
                found = holder
        return found

    def looked_up(self, token: str) -> Holder | None:
        """Return the holder of a token, after reading the database again."""
        self.refresh()
        return self.holder(token)

    def refresh(self) -> None:
        """Read the currently valid tokens."""
        valid = select(tokens).where(tokens.c.revoked.is_(None))
        with self._lock:
            with self._store.reading() as connection:
                rows = connection.execute(valid).all()
            self._known = [(row.hash, Holder(row.id, row.role, row.study)) for row in rows]

    def close(self) -> None:
        """End the thread."""
        self._ended.set()
        self._thread.join()

    def _follow(self) -> None:
        while not self._ended.wait(FRESH):
            try:
                self.refresh()
            except Exception:  # the database is unavailable: the last known tokens stay valid
                continue


# For the command `betafield tokens` ----------------------------------------------------------


def make(store: Store, study: str, role: str, label: str = "") -> tuple[str, str]:
    """Add a token for a study, and return its id and the token, which is never shown again."""
    with store.reading() as connection:
        query = select(studies.c.id).where(studies.c.name == study)
        if connection.execute(query).one_or_none() is None:
            raise missing(f"study: found {study!r}; there is no study of this name")
    token, row = made(study, role, label)
    store.commit(lambda connection: connection.execute(insert(tokens).values(**row)))
    return str(row["id"]), token


def listed(store: Store) -> list[Any]:
    """Return all tokens, without their hashes."""
    shown = [c for c in tokens.c if c.name != "hash"]
    with store.reading() as connection:
        return list(connection.execute(select(*shown).order_by(tokens.c.created)).all())


def revoke(store: Store, token_id: str) -> None:
    """Revoke a token."""
    if not any(row.id == token_id for row in listed(store)):
        raise missing(f"token: found no id {token_id!r}")
    change = update(tokens).where(tokens.c.id == token_id, tokens.c.revoked.is_(None))
    store.commit(lambda connection: connection.execute(change.values(revoked=time.time())))


def require(holder: Holder, study: str | None, roles: tuple[str, ...]) -> None:
    """Raise unless a token is for this study and has one of these roles.

    If the study is None, the request concerns the whole server and needs the server's own token.
    """
    if holder.study is not None and study is None:
        raise Problem(403, "token: found one of a study; this needs the server's own")
    if holder.study not in (None, study):
        raise Problem(403, "token: found one of another study")
    if holder.role not in roles:
        raise Problem(403, f"token: found one to {holder.role}; this needs {' or '.join(roles)}")
