"""`betafield serve`, `tokens` and `backup`: live experiments."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Annotated, Any

import betafield.cli.terminal as terminal
from betafield._extras import needed
from betafield.cli.declaring import argument, flag, option
from betafield.cli.usage import UsageError

SERVED, ADDRESS, ACCESS, TOKEN = "What", "Where", "Who may come in", "Token"
# The environment variable for a token, because other users can see command lines.
VARIABLE = "BETAFIELD_TOKEN"


Database = Annotated[
    str | None,
    argument(SERVED, "DATABASE", "An SQLite file, which is created if it does not exist."),
]
Url = Annotated[
    str | None,
    option(SERVED, "URL", "Instead of a file: postgresql://user:password@host/name.", "--database"),
]
StudyFile = Annotated[
    str | None,
    option(SERVED, "FILE", "Create this study (.json, .yaml or .py), unless its name exists."),
]
Check = Annotated[
    bool,
    flag(
        SERVED, "--check", "Open the database, rebuild every study, print what was found, and exit."
    ),
]
Host = Annotated[
    str, option(ADDRESS, "ADDRESS", "Address to listen on; any but the default needs --token.")
]
Port = Annotated[int, option(ADDRESS, "NUMBER", "Port to listen on; 0 takes any free port.")]
AllowedHosts = Annotated[
    list[str] | None,
    option(
        ADDRESS, "NAME", "Another host name under which the server is reached.", "--allowed-host"
    ),
]
Origins = Annotated[
    list[str] | None,
    option(
        ACCESS,
        "ORIGIN",
        "A site whose pages may use the server, such as https://lab.example.",
        "--origin",
    ),
]
Token = Annotated[
    str | None,
    option(
        ACCESS,
        "TEXT",
        "The server's token, which permits everything; by default a new one. Better set it in "
        f"{VARIABLE}, where other users cannot see it.",
    ),
]
Rate = Annotated[float, option(ACCESS, "NUMBER", "Requests per second that each token may make.")]


def serve(
    file: Database = None,
    database: Url = None,
    study: StudyFile = None,
    check: Check = False,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    allowed_hosts: AllowedHosts = None,
    token: Token = None,
    origins: Origins = None,
    rate: Rate = 1000.0,
) -> None:
    """Serve live experiments to many people and devices.

    Prints its address and a link with a token. An outcome is on disk before it is acknowledged.
    Ctrl-C finishes open requests, closes the file, and stops.

        betafield serve study.db
        betafield serve study.db --study dots.yaml
        betafield serve --database postgresql://lab@db/studies --host 10.0.0.5
            --allowed-host studies.example.org
    """
    running = _running()
    served = running.Served(
        database=_database(file, database),
        host=host,
        port=_port(port),
        token=token or os.environ.get(VARIABLE) or None,
        origins=tuple(origins or ()),
        hosts=tuple(allowed_hosts or ()),
        study=study,
        rate=rate,
    )
    if not rate > 0.0:
        raise UsageError(f"--rate: found {rate}; a positive number is needed")
    if check:
        terminal.facts(running.check(served))
        return
    running.serve(served, _tell)


def _tell(name: str, value: str) -> None:
    import sys

    terminal.say(f"{name} {value}")
    sys.stdout.flush()


def _running() -> Any:
    needed("server", "fastapi", "uvicorn", "sqlalchemy", "pydantic", "yaml")
    import betafield.server.running as running

    return running


def _database(file: str | None, url: str | None) -> str:
    if (file is None) == (url is None):
        raise UsageError("DATABASE, --database: found both or neither; name one of them")
    return str(file or url)


def _port(port: int) -> int:
    if not 0 <= port <= 65535:
        raise UsageError(f"--port: found {port}; a number from 0 to 65535 is needed")
    return port


Action = Annotated[
    str,
    argument(TOKEN, "ACTION", "make, list or revoke."),
]
Known = Annotated[
    str,
    argument(SERVED, "DATABASE", "The SQLite file, or the URL of the database."),
]
StudyName = Annotated[str | None, option(TOKEN, "NAME", "For make: the study.")]
Role = Annotated[str | None, option(TOKEN, "ROLE", "For make: owner, run or view.")]
Label = Annotated[str, option(TOKEN, "TEXT", "For make: a note on who or what it is for.")]
TokenId = Annotated[
    str | None, option(TOKEN, "ID", "For revoke: the id of the token, as list shows it.", "--id")
]


def tokens(
    action: Action,
    database: Known,
    study: StudyName = None,
    role: Role = None,
    label: Label = "",
    token_id: TokenId = None,
) -> None:
    """Make, list and revoke tokens of studies, even while they are being served.

    A token is shown only once, when it is made, because only its hash is stored.

        betafield tokens make study.db --study dots --role run --label "tablet 3"
        betafield tokens list study.db
        betafield tokens revoke study.db --id 1a2b3c4d
    """
    _running()
    from betafield.server import tokens as kept
    from betafield.server.storage import Store

    if action not in ("make", "list", "revoke"):
        raise UsageError(f"ACTION: found {action!r}; make, list or revoke is needed")
    if action == "make" and (study is None or role not in kept.ROLES):
        raise UsageError("--study, --role: a study and one of owner, run and view are needed")
    if action == "revoke" and token_id is None:
        raise UsageError("--id: found none; `betafield tokens list` shows the ids")
    store = Store(_existing(database))
    try:
        if action == "list":
            _list(kept.listed(store))
        elif action == "make":
            made_id, token = kept.make(store, str(study), str(role), label)
            terminal.facts([("id", made_id), ("token", token)])
        else:
            kept.revoke(store, str(token_id))
            terminal.say(f"revoked {token_id}")
    except Exception as error:
        raise _plain(error) from error
    finally:
        store.close()


def _plain(error: Exception) -> Exception:
    """Return a problem of the server as an error of the command line."""
    detail = getattr(error, "detail", None)
    return error if detail is None else ValueError(detail)


def _list(rows: list[Any]) -> None:
    heads = [(name, False) for name in ("id", "study", "role", "label", "created", "revoked")]
    told = [
        [row.id, row.study, row.role, row.label, _when(row.created), _when(row.revoked)]
        for row in rows
    ]
    terminal.table(heads, told)


def _when(seconds: float | None) -> str:
    form = "%Y-%m-%d %H:%M"
    return "" if seconds is None else time.strftime(form, time.gmtime(seconds))


def _existing(database: str) -> str:
    if "://" not in database and not Path(database).is_file():
        raise FileNotFoundError(2, "there is no such file", database)
    return database


BackupOut = Annotated[
    str,
    argument(SERVED, "OUT", "The copy, a new file."),
]
ServedFile = Annotated[
    str,
    argument(SERVED, "DATABASE", "The SQLite file; for PostgreSQL use pg_dump."),
]


def backup(database: ServedFile, out: BackupOut) -> None:
    """Make a consistent copy of an SQLite file of studies, even while it is being served.

    The copy is verified, and appears complete or not at all.

        betafield backup study.db monday.db
    """
    _running()
    from betafield.server.backing_up import copied

    if "://" in database:
        raise UsageError("DATABASE: found a URL; for PostgreSQL use pg_dump")
    if Path(out).exists():
        raise FileExistsError(17, "the file already exists", out)
    trials = copied(Path(_existing(database)), Path(out))
    terminal.facts([("copy", out), ("trials", f"{trials:,}")])
