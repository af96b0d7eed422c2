"""Stored models, changed at random: each must be refused, or be as sound as a learned one.

Half of the changes are to values and arrays, with a new checksum; the other half are to bytes, some
with a new checksum too. Every change follows from a seed and its number, so it can be repeated:

    python -m tests.mutating SEED NUMBER

shows what it did. Changed files are loaded in a separate process with limited memory; if one of
them crashes it, that is counted, and another process continues after it. Nothing here needs pytest,
and nothing depends on how busy the machine is.
"""

import contextlib
import functools
import hashlib
import json
import os
import random
import resource
import struct
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd

from betafield import SmoothBetaClassifier, contexts, load

ROOT = Path(__file__).parents[1]
KIND = "SmoothBetaClassifier"
# Bytes that loading and querying may take beyond the initial memory of the process.
MEMORY = 256 << 20
# A folder in memory, if there is one.
QUICK = "/dev/shm" if os.path.isdir("/dev/shm") else None
FIELDS = ("refused", "sound", "unsound", "crashed", "unchanged")


# A second writer and reader of the format, from its description alone -------------------------


def forged(values, arrays, kind=KIND, version=2, text=None, layout=None):
    """Return a file with these values and arrays and a valid checksum."""
    if text is None:
        layout = layout or [[k, a.dtype.str, list(a.shape)] for k, a in arrays.items()]
        header = {"arrays": layout, "kind": kind, "values": values}
        text = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    blocks = [b"\x8abetaf\r\n" + struct.pack("<II", version, len(text)) + text]
    blocks += [array.tobytes() for array in arrays.values()]
    body = b"".join(block + bytes(-len(block) % 64) for block in blocks)
    return body + hashlib.sha256(body).digest()


def parsed(data):
    """Return the values and the arrays of a file."""
    (length,) = struct.unpack("<I", data[12:16])
    header, at, arrays = json.loads(data[16 : 16 + length]), 16 + length, {}
    for name, dtype, shape in header["arrays"]:
        at += -at % 64
        array = np.frombuffer(data, dtype, int(np.prod(shape)), at).reshape(shape).copy()
        arrays[name], at = array, at + array.nbytes
    return header["values"], arrays


# Files to change ---------------------------------------------------------------------------


@functools.cache
def small():
    """Return small models of all kinds."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 9, size=(12, 2)) / 8, rng.integers(0, 2, size=12)
    half = rng.integers(1, 4, 12) / 2
    affine = contexts.guess_lapse(rng.choice([0.1, 0.3], 12), 0.1)
    make = functools.partial(SmoothBetaClassifier, bounds=[(0, 1), (0, 1)])
    models = {
        "line": SmoothBetaClassifier(0.3, bounds=[(0, 1)]).fit(X[:, :1], y),
        "auto": make(scale=[1.0, 2.0])
        .fit(pd.DataFrame(X, columns=["a", "b"]), y)
        .partial_fit(pd.DataFrame(X[:1], columns=["a", "b"]), y[:1]),
        "loo": SmoothBetaClassifier("loo").fit(X[:, :1], y, sample_weight=half),
        "process": make(method="process").fit(X, y, half, affine),
        "three": make().fit(X, y + y[::-1]).partial_fit(X[:1], y[:1]),
        "pools": make().fit(X, y, context=contexts.pooled(3, 0.9, 0.9)).partial_fit(X, y),
        "classes": make(0.5, prior=(1, 1, 2)).fit(X, np.array(["a", "b", "cc"])[y + y[::-1]]),
        "mean": make(0.5, sharing="mean").fit(X, y, context=affine),
        "exact": make(0.5).fit(X, y, half, affine).partial_fit(X, y),
        "polynomial": make("theory").fit(X, y, context=contexts.pooled(3, 0.9, 0.9)),
        **found(),
    }
    for name in ("line", "exact"):
        models[name].predict_proba(models[name].windows_.places[0].axes.T)  # no batch is pending
    return models


def found():
    """Return default models that cover everything listed by `what_is_found`."""
    rng = np.random.default_rng(0)
    level = np.repeat(np.arange(12), 8)
    x = np.column_stack([level / 7, rng.random(96)])
    y = (rng.random(96) < rng.choice([0.1, 0.9], 12)[level]).astype(int)
    dose = np.exp(2.0 * rng.normal(size=(60, 1)))
    died = (rng.random(60) < 1 / (1 + dose[:, 0] ** -2)).astype(int)
    pick = rng.integers(0, 40, 90)
    often = rng.random((40, 1))[pick], (rng.random(90) < rng.choice([0.05, 0.95], 40)[pick])
    third = y + (rng.random(96) < 0.4) * rng.integers(0, 2, 12)[level]
    affine = contexts.guess_lapse(rng.choice([0.1, 0.3], 96), 0.05)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            "levels": SmoothBetaClassifier().fit(x, y),
            "logarithms": SmoothBetaClassifier().fit(dose, died),
            "windows": SmoothBetaClassifier().fit(*often),
            "windows of classes": SmoothBetaClassifier().fit(x[:, :1], third),
            "levels and windows": SmoothBetaClassifier().fit(x[:, :1], y, context=affine),
            "groups": SmoothBetaClassifier().fit(x[:, 1:], y, groups=level),
            "rows that vary": SmoothBetaClassifier().fit_counts(
                often[0], 4 * often[1], 4, overdispersion="auto"
            ),
            "pools in windows": SmoothBetaClassifier().fit(
                x[:, :1], y, context=contexts.pooled(2, 0.95, 0.95)
            ),
        }


def what_is_found(model):
    """Return the parts of a default model."""
    every = model.field_.serving[0]
    units = {unit for each in every for one in each.components for unit in one.scale}
    has = {
        "levels": any(one.effect is not None for each in every for one in each.components),
        "windows": any(each.windows for each in every),
        "windows by what is asked": any(w.others.size for each in every for w in each.windows),
        "spread": any(each.spread.size for each in every),
    }
    return units - {"range"} | {name for name, there in has.items() if there}


def originals():
    """Return the files of these models."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model")
        return [(model.save(path), path.read_bytes())[1] for model in small().values()]


# Changes -----------------------------------------------------------------------------------

# fmt: off
WORDS = [None, True, False, -1, 0, 1, 2, 3, 4, 12, 2**31, 2**62, 2**63, 10**40, -0.5, 0.1, 1.0,
         1e308, 5e-324, "", "mean", "exact", "auto", "ard", "manhattan", "os.system", "|O", "<U99",
         [], {}, [1, 2], {"tuple": [1, 1]}, {"array": [1.0], "dtype": "<f8"}, [[1, 2]] * 3]
NUMBERS = [np.nan, np.inf, -np.inf, -1.0, 0.0, -0.0, 5e-324, 1e-300, 0.5, 1.0, 2.0, 3.5, 40.0,
           1e9, 1e200, 1.7e308]
WHOLES = [-1, 0, 1, 2, 3, 4, 5, 100, 127, 2**15 - 1, 2**31 - 1, 2**40, 2**62, 2**63 - 1, -(2**63)]
# fmt: on


class Mutator:
    """Random changes of files."""

    def __init__(self, seed, number):
        self.chance = random.Random(f"{seed} {number}")

    def mutated(self, data, number, others):
        """Return a changed file, with a new checksum if the number is odd."""
        return self.signed(data) if number % 2 else self.unsigned(data, others)

    def signed(self, data):
        """Return a file with changed values or arrays."""
        values, arrays = parsed(data)
        ways = [self.word, self.word, self.cell, self.cell, self.column]
        ways += [self.counted, self.shape, self.part]
        for _ in range(self.chance.choice([1, 1, 1, 2, 3])):
            with contextlib.suppress(Exception):  # one change may leave values too odd for another
                self.chance.choice(ways)(values, arrays)
        return forged(values, arrays)

    def unsigned(self, data, others):
        """Return a file with changed bytes, in some cases with a new checksum."""
        chance = self.chance
        data, at = bytearray(data), chance.randrange(len(data))
        how, n = chance.randrange(5), chance.choice([1, 2, 8, 64])
        if how == 0:
            for _ in range(n):
                data[chance.randrange(len(data))] = chance.randrange(256)
        elif how == 1:
            del data[at : at + n]
        elif how == 2:
            data[at:at] = chance.randbytes(n)
        elif how == 3:
            data[at:] = chance.choice(others)[at:]
        else:
            data = data[:at]
        if chance.random() < 0.5 and len(data) > 100:
            data[-32:] = hashlib.sha256(data[:-32]).digest()
        return bytes(data)

    def word(self, values, _):
        """Change or remove a value of the header."""
        chosen = self.chance.choice(containers(values))
        key = self.chance.choice(list(chosen) if isinstance(chosen, dict) else range(len(chosen)))
        if self.chance.random() < 0.1:
            del chosen[key]
        elif isinstance(chosen[key], int) and self.chance.random() < 0.5:
            chosen[key] += self.chance.choice([-1, 1, 2**32])
        else:
            chosen[key] = self.chance.choice(WORDS)

    def filled(self, arrays):
        """Return the name of an array with cells."""
        return self.chance.choice([name for name, array in arrays.items() if array.size])

    def cell(self, _, arrays):
        """Change one cell of an array."""
        array = arrays[self.filled(arrays)]
        kind = array.dtype
        value = self.chance.choice(NUMBERS if kind.kind == "f" else WHOLES)
        if kind.kind == "i":
            value = max(min(value, np.iinfo(kind).max), np.iinfo(kind).min)
        array.flat[self.chance.randrange(array.size)] = 1 if kind.kind == "b" else value

    def column(self, _, arrays):
        """Scale all numbers of an array, or reverse them."""
        array = arrays[self.filled(arrays)]
        if array.dtype.kind == "f":
            array[...] = array * self.chance.choice([0.0, -1.0, 0.5, 1e-200, 1e200, np.nan])
        else:
            array[...] = np.roll(array, 1)

    def counted(self, values, arrays):
        """Count more trials at a place, and change the totals accordingly."""
        ends = (".counts", ".held")
        name = self.chance.choice([name for name in arrays if name.endswith(ends)])
        arrays[name] = arrays[name].astype(np.int64)
        more = self.chance.choice([1, 200, 2**20, 2**33, 2**61])
        row = self.chance.randrange(2) if name.endswith("counts") else 0
        arrays[name].reshape(-1, arrays[name].shape[-1])[row, 0] += more
        values["seen"][0] += more * 2**32
        if name.endswith("held"):
            values["seen"][1] += more * 2**32

    def shape(self, _, arrays):
        """Change the shape, the type or the name of an array."""
        name = self.filled(arrays)
        array, how = arrays[name], self.chance.randrange(6)
        if how == 0:
            arrays[name] = array.reshape(-1)
        elif how == 1:
            arrays[name] = array[..., :-1].copy()
        elif how == 2:
            arrays[name] = np.concatenate([array, array], axis=-1)
        elif how == 3:
            arrays[name] = array.T.copy()
        elif how == 4:
            arrays[name] = array.astype(self.chance.choice(["|i1", "<i2", "<i4", "<i8", "<f8"]))
        else:
            arrays[self.chance.choice(list(arrays))] = arrays.pop(name)

    def part(self, values, arrays):
        """Remove places, or duplicate them."""
        if "parts" in values:
            self.some_places(values, arrays)
            return
        ends = ".axes"
        names = [name.removesuffix(ends) for name in arrays if name.endswith(ends)]
        name = self.chance.choice(names)
        some = {key: array for key, array in arrays.items() if key.startswith(name)}
        if self.chance.random() < 0.5:
            arrays.update({key: array[..., :1].copy() for key, array in some.items()})
            return
        kind, _ = name.split(".")
        for key, array in some.items():
            arrays[f"{kind}.{values[kind]}" + key.removeprefix(name)] = array
        values[kind] += 1
        values["seen"] = [2 * number for number in values["seen"]]

    def some_places(self, values, arrays):
        """Remove or move places of a process, and change the totals accordingly."""
        name = self.chance.choice([name for name in arrays if name.endswith(".points")])
        kind = name.removesuffix(".points")
        kept = self.chance.choice([slice(1), slice(2), slice(None, None, 2), slice(None)])
        for which in ("points", "context"):
            arrays[f"{kind}.{which}"] = arrays[f"{kind}.{which}"][kept].copy()
        arrays[f"{kind}.counts"] = arrays[f"{kind}.counts"][:, kept].copy()
        arrays[name] *= self.chance.choice([-1.0, 1.0, 0.0, 1e-300, 1e300])
        counted = {
            each: int(arrays[f"{each}.counts"].sum()) * 2**32 for each in map(str, values["parts"])
        }
        values["seen"][0] = sum(counted.values())
        values["seen"][1] = values["seen"][0] - counted.get("0", 0)
        values["found_at"] = list(values["seen"])


def containers(values):
    """Return all lists and dicts in values that are not empty."""
    if not isinstance(values, dict | list) or not values:
        return []
    inside = values.values() if isinstance(values, dict) else values
    return [values, *(found for each in inside for found in containers(each))]


# Results -----------------------------------------------------------------------------------


def outcome(path):
    """Return "refused", "sound" or "unsound", and why; any other error is raised."""
    try:
        model = load(path)
    except ValueError as error:
        if not str(error).startswith("path: "):
            raise
        return "refused", str(error)
    try:
        require_sound(model, path)
    except MemoryError:
        raise
    except Exception:
        return "unsound", traceback.format_exc()
    return "sound", ""


def require_sound(model, path):
    """Raise unless a model answers with probabilities, and can be saved and loaded again."""
    points = np.resize([[0.5], [0.0], [3.0]], (n_points(model.prior), 1))
    points = points * np.ones(model.n_features_in_)
    before = answers(model, points)
    model.save(path)
    after = answers(load(path), points)
    if [each.tobytes() for each in before] != [each.tobytes() for each in after]:
        raise AssertionError("saved again, it answers otherwise")


def n_points(prior):
    """Return the number of points at which a prior can be queried: it may have one value each."""
    sizes = [np.size(part) for part in prior] if isinstance(prior, list | tuple) else []
    return max(sizes) if set(sizes) - {1} else 3


def answers(model, points):
    """Return a model's answers at points; raise unless all are possible values."""
    posterior = model.posterior(points)
    low, high = posterior.interval(0.9)
    found = [np.asarray(each) for each in (posterior.mean(), low, high)]
    found.append(model.predict_proba(points))
    if not all(((each >= 0.0) & (each <= 1.0)).all() for each in found):
        raise AssertionError(f"found {found}; probabilities are needed")
    if not (low <= high).all():
        raise AssertionError("the ends of an interval are turned round")
    spread = np.asarray(posterior.std())
    if not ((spread >= 0.0) & (spread <= 0.5)).all():
        raise AssertionError(f"found deviations {spread}")
    if not np.isin(model.predict(points), model.classes_).all():
        raise AssertionError("predicts what is no class")
    return [*found, spread]


# In a separate process ---------------------------------------------------------------------


def run(folder, seed, start, stop):
    """Load changed files from `start` to `stop`, and report each number and result."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    files, path = originals(), Path(folder, "model")
    for data in files:
        path.write_bytes(data)
        require_sound(load(path), path)
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY,) * 2)
    before = peak()
    for number in range(start, stop):
        data = mutation(files, seed, number)
        path.write_bytes(data)
        say(number)
        try:
            found, why = outcome(path)
        except Exception:
            found, why = "crashed", traceback.format_exc()
        if data in files:
            found = "unchanged"
        say([found, why if found in ("unsound", "crashed") else ""])
    say(["memory", peak() - before])


def say(value):
    """Write a line at once, because the process may end with the next file."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def mutation(files, seed, number):
    """Return one changed file."""
    return Mutator(seed, number).mutated(files[number // 2 % len(files)], number, files)


def peak():
    """Return the peak memory of this process so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def mutations(n, seed=0, start=0):
    """Load changed files from `start` to n, and return counts of the results.

    Returns
    -------
    dict
        `refused`, `sound`, `unsound` (it loads, and then fails or gives impossible answers),
        `crashed` (the process ended, or raised anything but a ValueError about the path),
        `unchanged`, `memory` (bytes beyond the initial ones), and `failures`: number and traceback
        of each file that was unsound or crashed.
    """
    counts, memory, failures, number = Counter(dict.fromkeys(FIELDS, 0)), 0, [], start
    while number < n:
        with tempfile.TemporaryDirectory(dir=QUICK) as folder:
            command = [sys.executable, "-m", "tests.mutating", folder, str(seed)]
            command += [str(number), str(n)]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        if not lines:
            raise RuntimeError(done.stderr)
        for line in lines:
            if isinstance(line, int):
                number = line
            elif line[0] == "memory":
                memory = max(memory, line[1])
            else:
                counts[line[0]] += 1
                failures += [(number, line[1])] if line[1] else []
        if isinstance(lines[-1], int):
            counts["crashed"] += 1
            failures.append((number, f"ended with {done.returncode}: {done.stderr[-2000:]}"))
        number += 1
    return {**counts, "memory": memory, "failures": failures}


def tell(seed, number):
    """Print the effect of one change."""
    warnings.simplefilter("ignore")
    files = originals()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model")
        path.write_bytes(mutation(files, seed, number))
        sys.stdout.write("\n".join(outcome(path)) + "\n")


if __name__ == "__main__":
    if len(sys.argv) == 3:
        tell(*map(int, sys.argv[1:]))
    else:
        run(sys.argv[1], *map(int, sys.argv[2:]))
