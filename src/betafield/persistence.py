"""One file of values and arrays: no pickle, no references to code, reproducible bytes.

Layout
------
    8 bytes   MAGIC
    4 bytes   version of the format, little-endian like all numbers of the file
    4 bytes   length of the header
    header    JSON in ASCII, keys sorted, no spaces, no NaN:
              {"arrays":[[name,dtype,shape],…],"kind":…,"values":…}
    arrays    one after the other, as they are in memory
    32 bytes  SHA-256 of all before it

The header and each array are padded with zeros to a multiple of ALIGN. All sizes are thus known
from the header, and a file of any other size is refused before anything is read.

Checks come in this order: the kind of file, the version, the size, the checksum, and then each
value by the caller. A checksum detects damage, not tampering, because anyone who changes a file can
recompute it.

A file is written under a temporary name and renamed when all of it is on disk, so a crash at any
instant leaves either the old or the new file. The writer holds a lock on the temporary file, which
is released when the process ends, however it ends. So the next save into the same folder can
recognise files left by killed processes, and removes them. It never removes a file that a living
process is writing, on this machine or on others that share its locks. On a file system without
locks, nothing is removed; if locks do not reach other machines (NFS mounted with nolock), a save
that loses its file raises, and the old file stays.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import secrets
import stat
import struct
from collections.abc import Iterator, Mapping
from io import BufferedReader
from typing import IO, Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from betafield.refusals import Refused, mistyped, refused

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

Arrays = dict[str, npt.NDArray[Any]]

# As in PNG: a byte that is not text, and a line end that text-mode transfers would change.
MAGIC = b"\x8abetaf\r\n"
VERSION = 2
START = struct.Struct("<8sII")
ALIGN = 64
DIGEST = 32
# The function that reads each kind of file.
READERS = {
    "SmoothBetaClassifier": "betafield.load",
    "Experiment": "Experiment.load",
    "bandit": "FieldBandit.load",
    "tracker": "RiskTracker.load",
}
DTYPES = ("|b1", "|i1", "<i2", "<i4", "<i8", "<f8")
# The most bytes of a header: hostile JSON takes thirty times its length in memory.
MOST_HEADER = 1 << 22
# The most digits of an integer: floats with integer values have no more.
MOST_DIGITS = 400
MOST_DIMENSIONS = 4
# How the names of temporary files begin and end.
LEFT = ".betafield-saving-", ".tmp"
CHUNK = 1 << 20


# Writing -----------------------------------------------------------------------------------


def write(path: Any, kind: str, values: Any, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write values and arrays to a file, all or nothing.

    Parameters
    ----------
    path : str or path
        An existing file is replaced, and keeps its mode; a link stays, and its target is
        replaced.
    kind : str
        The kind of file, which `read` must name too.
    values : dicts, lists, text, finite numbers, bools and None
    arrays : dict of arrays
        Of booleans, signed integers and float64.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write(f"{folder}/a", "squares", {"of": "1 to 3"}, {"all": np.array([1, 4, 9])})
    ...     read(f"{folder}/a", "squares")
    ({'of': '1 to 3'}, {'all': array([1, 4, 9])})
    """
    name = file_name(path)
    stored = {key: _portable(key, array) for key, array in arrays.items()}
    layout = [[key, array.dtype.str, list(array.shape)] for key, array in stored.items()]
    text = _spelled({"arrays": layout, "kind": kind, "values": values})
    if len(text) > MOST_HEADER:
        raise refused(
            "path",
            f"{name!r} would have a header of {len(text)} bytes, of names and options; "
            f"at most {MOST_HEADER} are possible",
        )
    blocks: list[bytes | memoryview] = [_start(text)]
    blocks += [_bytes(array).data for array in stored.values()]
    with replacing(name) as file:
        digest = hashlib.sha256()
        for block in blocks:
            for part in (block, bytes(-len(block) % ALIGN)):
                digest.update(part)
                file.write(part)
        file.write(digest.digest())


def _portable(name: str, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the array in little-endian byte order."""
    stored = np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")
    if stored.dtype.str not in DTYPES:
        raise TypeError(f"{name}: found dtype {array.dtype}; allowed are {', '.join(DTYPES)}")
    return stored


def _spelled(values: Any) -> bytes:
    """Return the canonical JSON of these values."""
    return json.dumps(values, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def _start(text: bytes) -> bytes:
    return START.pack(MAGIC, VERSION, len(text)) + text


def _bytes(array: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Return the memory of an array as bytes."""
    return array.reshape(-1).view(np.uint8)


@contextlib.contextmanager
def replacing(name: str) -> Iterator[BinaryIO]:
    """Give a new file, which replaces the one of this name when all of it is on disk."""
    target, mode = _target(name)
    folder = os.path.dirname(target)
    _sweep(folder)
    try:
        with _beside(folder, mode) as (file, beside):
            yield file
            file.flush()
            os.fsync(file.fileno())
            _take_place(file, beside, target)
    except OSError as error:
        why = Refused("path", f"{name!r} was not saved: {error.strerror or error}")
        raise why.on(OSError(error.errno, str(why))) from error
    sync_folder(folder)


@contextlib.contextmanager
def _beside(folder: str, mode: int | None) -> Iterator[tuple[BinaryIO, str]]:
    """Give a locked temporary file and its name, which no longer exists at the end."""
    file, beside = _created(folder, mode)
    try:
        with file:
            yield file, beside
    finally:
        with contextlib.suppress(OSError):  # it has been renamed
            os.unlink(beside)


def _created(folder: str, mode: int | None) -> tuple[BinaryIO, str]:
    """Return a new locked file, with this mode or the default one."""
    while True:
        beside = os.path.join(folder, f"{LEFT[0]}{secrets.token_hex(8)}{LEFT[1]}")
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        file = os.fdopen(os.open(beside, flags, 0o666), "wb")
        _lock(file, wait=True)
        # Before it was locked, another process may have removed it as a leftover.
        if os.path.exists(beside):
            break
        file.close()
    if mode is not None and hasattr(os, "fchmod"):
        os.fchmod(file.fileno(), mode)
    return file, beside


def _take_place(file: BinaryIO, beside: str, target: str) -> None:
    """Rename the file, keeping it locked if the system can rename open files."""
    if fcntl is None:
        file.close()
    os.replace(beside, target)


def _sweep(folder: str) -> None:
    """Remove files that killed saves left in a folder, recognised by their free locks."""
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            if fcntl is not None and name.startswith(LEFT[0]) and name.endswith(LEFT[1]):
                _remove_if_left(os.path.join(folder, name))


def _remove_if_left(path: str) -> None:
    with contextlib.suppress(OSError):
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK
        with os.fdopen(os.open(path, flags), "rb") as file:
            # If it has been renamed since, this name no longer exists and is never reused.
            if _lock(file, wait=False):
                os.unlink(path)


def _lock(file: IO[bytes], wait: bool) -> bool:
    """Return whether the file could be locked, until it is closed or the process ends."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # locked by another process, or locks are not supported
        return False
    return True


def _target(name: str) -> tuple[str, int | None]:
    """Return the file to replace, with links resolved, and its mode, if it exists."""
    target = os.path.realpath(name)
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        return target, None
    except OSError as error:
        raise _named(error, name) from error
    _require_regular(repr(name), mode)
    if not os.access(target, os.W_OK):
        raise Refused("path", f"{name!r} cannot be written").error(PermissionError)
    return target, stat.S_IMODE(mode)


def sync_folder(folder: str) -> None:
    """Make a renaming durable, if the system can."""
    # Otherwise a power cut may bring back the old file, complete like the new one.
    with contextlib.suppress(OSError):
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


# Reading -----------------------------------------------------------------------------------


class Declared(NamedTuple):
    """The description of an array in a header."""

    name: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of bytes."""
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize


def read(path: Any, kind: str, name: str | None = None) -> tuple[Any, Arrays]:
    """Return the unchecked values and arrays of a file made by `write`.

    Errors call it `name`, or by its path.

    Raises
    ------
    ValueError
        If the file is of another kind or a newer version, truncated or damaged.
    OSError
        If it cannot be read.
    """
    path = file_name(path)
    name = name or repr(path)
    with _opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        length = _header_length(name, file, size)
        header, layout = _header(name, file.read(length))
        block = _aligned(START.size + length)
        _require_size(name, size, block, layout)
        _require_hash(name, file, size - DIGEST)
        if header["kind"] != kind:
            reader = READERS.get(str(header["kind"]))
            hint = f"; {reader} reads it" if reader else ""
            raise _refusal(name, f"holds {_short(header['kind'])}, not {kind!r}{hint}")
        file.seek(START.size + length)
        _require_zeros(name, file, block - START.size - length)
        return header["values"], {a.name: _array(name, file, a) for a in layout}


def file_name(path: Any) -> str:
    """Return the name of a file, given its name or path."""
    if not isinstance(path, str | os.PathLike):
        raise mistyped("path", f"found {_short(path)}; the name of a file is needed")
    name = os.path.expanduser(os.fsdecode(path))
    if not name or "\0" in name:
        raise refused("path", f"found {name!r}; the name of a file is needed")
    return name


def _short(value: Any) -> str:
    """Return a value as users write it, shortened if long."""
    try:
        text = repr(value)
    except Exception:  # any __repr__ may fail, and that of huge integers does
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."


def _refusal(name: str, why: str) -> ValueError:
    return refused("path", f"{name} {why}")


def _named(error: OSError, name: str) -> OSError:
    """Return an error of the system that names the argument."""
    why = Refused("path", f"found {name!r}; {error.strerror}")
    return why.on(type(error)(error.errno, str(why)))


def _opened(name: str) -> BufferedReader:
    """Open a regular file; other kinds could make the reader wait for ever."""
    try:
        _require_regular(repr(name), os.stat(name).st_mode)
    except FileNotFoundError as error:
        said = f"found {name!r}, but there is no such file"
        raise Refused("path", said).error(FileNotFoundError) from error
    except OSError as error:
        raise _named(error, name) from error
    # The file may have been replaced in the meantime.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    file = os.fdopen(os.open(name, flags), "rb")
    try:
        _require_regular(repr(name), os.fstat(file.fileno()).st_mode)
    except ValueError:
        file.close()
        raise
    return file


def _require_regular(name: str, mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise _refusal(name, f"is {kind_of(mode)}; a regular file is needed")


def kind_of(mode: int) -> str:
    """Return the kind of file with this mode, in words.

    Examples
    --------
    >>> kind_of(os.stat(os.devnull).st_mode)
    'a device'
    """
    kinds = {
        stat.S_IFREG: "a regular file",
        stat.S_IFDIR: "a folder",
        stat.S_IFIFO: "a pipe",
        stat.S_IFSOCK: "a socket",
    }
    return kinds.get(stat.S_IFMT(mode), "a device")


def _header_length(name: str, file: BinaryIO, size: int) -> int:
    """Return the length of the header; raise unless this release can read the file."""
    start = file.read(START.size)
    if not start or not start.startswith(MAGIC[: len(start)]):
        raise _refusal(name, "is not a betafield file")
    if len(start) < START.size:
        raise _refusal(
            name, f"is cut off: it has {size} bytes, fewer than its fixed beginning needs"
        )
    _, version, length = START.unpack(start)
    if version > VERSION:
        raise _refusal(
            name,
            f"has version {version} of the format; this release of betafield reads versions up to "
            f"{VERSION}, so a newer one is needed",
        )
    if version < 1 or length > MOST_HEADER:
        raise _refusal(name, f"is damaged: version {version}, with a header of {length} bytes")
    least = _aligned(START.size + length) + DIGEST
    if size < least:
        raise _refusal(name, f"is cut off: it has {size} bytes where {least} or more are declared")
    return int(length)


def _header(name: str, text: bytes) -> tuple[dict[str, Any], list[Declared]]:
    """Return the header, and the arrays that it declares."""
    try:
        header = _parsed(text)
        if not (isinstance(header, dict) and header.keys() == {"arrays", "kind", "values"}):
            raise ValueError("it has unexpected parts")
        layout = [_declared(each) for each in _listed(header["arrays"])]
        if len({each.name for each in layout}) < len(layout):
            raise ValueError("two arrays have the same name")
    except (ValueError, RecursionError) as error:
        raise _refusal(name, f"is damaged: its header cannot be read ({error})") from error
    return header, layout


def _parsed(text: bytes) -> Any:
    """Return the values of JSON in exactly the form that `write` uses, without duplicate keys."""
    values = json.loads(
        text.decode("ascii"), parse_int=_whole, parse_float=_real, parse_constant=_real
    )
    if _spelled(values) != text:
        raise ValueError("it is not in canonical form")
    return values


def _whole(text: str) -> int:
    if len(text) > MOST_DIGITS:
        raise ValueError(f"a number of {len(text)} digits")
    return int(text)


def _real(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"the number {text[:20]}")
    return number


def _listed(values: Any) -> list[Any]:
    if not isinstance(values, list):
        raise ValueError("its arrays are not a list")
    return values


def _declared(entry: Any) -> Declared:
    match entry:
        case [str(name), str(dtype), list(shape)] if dtype in DTYPES and _is_shape(shape):
            return Declared(name, dtype, tuple(shape))
    raise ValueError(f"an array {_short(entry)}")


def _is_shape(shape: list[Any]) -> bool:
    return len(shape) <= MOST_DIMENSIONS and all(type(n) is int and n >= 0 for n in shape)


def _aligned(size: int) -> int:
    return size + -size % ALIGN


def _require_size(name: str, size: int, header: int, layout: list[Declared]) -> None:
    """Raise unless the size is that of the header and the arrays."""
    declared = header + sum(_aligned(each.size) for each in layout) + DIGEST
    if size != declared:
        what = "is cut off" if size < declared else "is damaged"
        raise _refusal(name, f"{what}: it has {size} bytes where {declared} are declared")
    # An array without bytes could still declare any length.
    longest = max((n for each in layout for n in each.shape), default=0)
    if longest > size:
        raise _refusal(name, f"is damaged: it has {size} bytes, and an array of {longest} rows")


def _require_hash(name: str, file: BufferedReader, size: int) -> None:
    """Raise unless the checksum at the end matches; the file is not held in memory."""
    digest, chunk = hashlib.sha256(), memoryview(bytearray(min(CHUNK, size)))
    file.seek(0)
    while size > 0:
        got = file.readinto(chunk[:size])
        if not got:
            break
        digest.update(chunk[:got])
        size -= got
    if file.read(DIGEST) != digest.digest():
        raise _refusal(name, "is damaged: its checksum differs")


def _array(name: str, file: BufferedReader, declared: Declared) -> npt.NDArray[Any]:
    """Return the next array in the file."""
    array = np.empty(declared.shape, dtype=declared.dtype)
    memory = _bytes(array)
    if file.readinto(memory.data) != memory.size:
        raise _refusal(name, "changed while it was being read")
    _require_zeros(name, file, -memory.size % ALIGN)
    if array.dtype == np.bool_ and memory.max(initial=0) > 1:
        raise _refusal(name, f"is damaged: {_short(declared.name)} has booleans other than 0 and 1")
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _require_zeros(name: str, file: BinaryIO, n: int) -> None:
    if any(file.read(n)):
        raise _refusal(name, "is damaged: there is something between its arrays")
