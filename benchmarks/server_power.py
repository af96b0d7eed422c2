"""Power cuts: what a server writes is recorded with its fsyncs, and cut off at any byte.

A write is on the disk after the next fsync of its file. Before that, any part of it may be there:
each cut keeps about half of the writes since the last fsync, a quarter of them in part, and the
first bytes of the one that was under way.
"""

from __future__ import annotations

import os
import random
import re
import sqlite3
import subprocess
import tempfile
import time
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from server_setup import FAST, Progress, say
from tests.server.serving import EVEN, Server, created
from tests.server.test_promise import Load

from betafield.server.running import Served, check

CALLS = "pwrite64,write,fsync,fdatasync,ftruncate,sendto,sendmsg,writev"
# The files of a database: the main one, and the write-ahead log.
KINDS = ("", "-wal")


class Event(NamedTuple):
    """A write, a truncation, an fsync of one of the two files, or an outcome that was answered."""

    what: str
    kind: str
    where: int
    data: bytes


def power(scale, seed):
    """Record what a server writes, and cut the power at every fsync and at random bytes."""
    cuts = max(50, int(10_000 * scale))
    with tempfile.TemporaryDirectory() as folder:
        base, log = _recorded(Path(folder), max(60, int(1_000 * scale)))
        found = _cut(log, base, cuts, Path(folder), random.Random(seed))
    pages = sum(each.what == "write" and each.kind == "" for each in log)
    told = sum(each.what == "answer" for each in log)
    say(
        "power",
        f"{found['fsyncs']} fsyncs and {cuts} random bytes cut, {told} outcomes answered, {pages} "
        f"pages written by checkpoints: {found['missing']} missing, "
        f"{found['broken']} files that do not open",
    )
    return found["missing"] + found["broken"]


# Recording ---------------------------------------------------------------------------------------


def _recorded(folder, outcomes):
    """Return the files before so many outcomes, and the events until they are answered."""
    trace, path = folder / "trace", folder / "study.db"
    with Server(path, *FAST) as server, server.client() as client:
        created(client, EVEN, "even")
        with _traced(server.process.pid, trace):
            base = {kind: _bytes(f"{path}{kind}") for kind in KINDS}
            load = Load(server, "even", 8)
            while len(load.answered) < outcomes:
                time.sleep(0.1)
            load.end()
        open_files = Path(f"/proc/{server.process.pid}/fd")
        links = {int(each.name): os.readlink(each) for each in open_files.iterdir()}
    kinds = {number: link.removeprefix(str(path)) for number, link in links.items()}
    return base, _parsed(trace, {n: kind for n, kind in kinds.items() if kind in KINDS})


@contextmanager
def _traced(process, trace):
    """Write the system calls of a process, in all of its threads, to a file."""
    command = ["strace", "-f", "-xx", "-s", "1000000", "-e", f"trace={CALLS}", "-o", trace]
    strace = subprocess.Popen([*command, "-p", str(process)], stderr=subprocess.PIPE, text=True)
    while "attached" not in (line := strace.stderr.readline()):
        assert line, "strace ended"
    try:
        yield
    finally:
        strace.terminate()
        strace.communicate()


def _bytes(path):
    found = Path(path)
    return found.read_bytes() if found.exists() else b""


def _parsed(trace, kinds):
    """Return writes, fsyncs and answers in the order in which they ended."""
    pending, log = {}, []
    with trace.open(errors="replace") as lines:
        for line in lines:
            thread, _, call = line.strip().partition(" ")
            call = call.strip()
            if call.endswith("<unfinished ...>"):
                pending[thread] = call.removesuffix("<unfinished ...>")
                continue
            if call.startswith("<..."):
                call = pending.pop(thread, "") + call.partition("resumed>")[2]
            log += _events(call, kinds)
    return log


def _events(call, kinds):
    """Return the events of one system call."""
    found = re.match(r"(\w+)\((\d+)", call)
    if found is None:
        return []
    name, kind = found[1], kinds.get(int(found[2]))
    data = re.search(r'"((?:\\x[0-9a-f]{2})*)"', call)
    raw = bytes.fromhex(data[1].replace("\\x", "")) if data else b""
    if kind is None:
        told = re.findall(rb'\{"id": (\d+), "state": "told", "success": (\w+)', raw)
        return [Event("answer", "", int(number), success) for number, success in told]
    if name == "pwrite64":
        return [Event("write", kind, int(re.search(r", (\d+)\s*\)\s+= \d+", call)[1]), raw)]
    if name == "ftruncate":
        return [Event("truncate", kind, int(re.search(r", (\d+)\s*\)", call)[1]), b"")]
    return [Event("sync", kind, 0, b"")] if name in ("fsync", "fdatasync") else []


# Cutting -----------------------------------------------------------------------------------------


class Disk:
    """What is on the disk for certain, what may be there, and which outcomes were answered."""

    def __init__(self, base):
        self.durable = {kind: bytearray(data) for kind, data in base.items()}
        self.waiting, self.answered = [], {}

    def follow(self, event):
        """Apply the next event."""
        if event.what == "answer":
            self.answered[event.where] = event.data == b"true"
        elif event.what == "sync":
            for each in self.waiting:
                each.kind == event.kind and _apply(self.durable, each)
            self.waiting = [each for each in self.waiting if each.kind != event.kind]
        else:
            self.waiting.append(event)

    def after_a_cut(self, rng, under_way=None):
        """Return the files as they may be found after a cut."""
        files = {kind: bytearray(data) for kind, data in self.durable.items()}
        for each in self.waiting:
            kept = rng.random()
            if kept < 0.5:
                _apply(files, each)
            elif kept < 0.75:
                _apply(files, _begun(each, rng))
        if under_way is not None:
            _apply(files, _begun(under_way, rng))
        return files


def _begun(event, rng):
    """Return the first bytes of a write."""
    return event._replace(data=event.data[: int(rng.random() * len(event.data))])


def _apply(files, event):
    file = files[event.kind]
    if event.what == "truncate":
        del file[event.where :]
        return
    file.extend(b"\0" * (event.where + len(event.data) - len(file)))
    file[event.where : event.where + len(event.data)] = event.data


def _cut(log, base, cuts, folder, rng):
    """Return what is found after power cuts: after every fsync, and within writes."""
    writes = [i for i, each in enumerate(log) if each.what == "write"]
    within = dict.fromkeys(range(len(log)), 0)
    for i in rng.choices(writes, k=cuts):
        within[i] += 1
    disk, progress = Disk(base), Progress("power", cuts)
    found = {"fsyncs": 0, "missing": 0, "broken": 0}
    for i, event in enumerate(log):
        for _ in range(within[i]):
            _count(found, disk.after_a_cut(rng, event), disk.answered, folder / "cut.db")
            progress.add()
        disk.follow(event)
        if event.what == "sync":
            path = folder / "cut.db"
            found["fsyncs"] += 1
            _count(found, disk.after_a_cut(rng), disk.answered, path)
            found["broken"] += not _is_served(path, len(disk.answered))
    return found


def _count(found, files, answered, path):
    """Write the files, open them, and count what is missing or broken."""
    for kind in (*KINDS, "-shm"):
        Path(f"{path}{kind}").unlink(missing_ok=True)
    for kind, data in files.items():
        Path(f"{path}{kind}").write_bytes(data)
    missing, is_sound = _opened(path, answered)
    found["missing"] += missing
    found["broken"] += not is_sound


def _opened(path, answered):
    with closing(sqlite3.connect(path)) as connection:
        try:
            rows = connection.execute("SELECT id, success FROM trials WHERE state = 1").fetchall()
            (said,) = connection.execute("PRAGMA quick_check").fetchone()
        except sqlite3.DatabaseError:
            return len(answered), False
    told = {number: bool(success) for number, success in rows}
    return sum(told.get(n) != s for n, s in answered.items()), said == "ok"


def _is_served(path, answered):
    """Return whether a server opens the file and rebuilds the study with these outcomes."""
    told = dict(check(Served(str(path))))
    found = re.search(r"([\d,]+) told", told["study"])
    return int(found[1].replace(",", "")) >= answered and "check" in told
