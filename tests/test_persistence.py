"""One file per model: what is restored, what is refused, and what a crash leaves."""

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import re
import stat
import struct
import subprocess
import sys
import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from tests.killing import killed_saves
from tests.mutating import KIND, forged, mutations, parsed, small, what_is_found
from typing_extensions import TypeAliasType

from betafield import Prior, SmoothBetaClassifier, contexts, persistence, state
from betafield.decisions import Experiment, LevelSet
from betafield.estimators import load
from betafield.posteriors import reference
from betafield.process.found import Component
from betafield.state.trees import values_of

DATA = Path(__file__).parent / "data"


def saved(model, folder):
    model.save(folder / "model")
    return (folder / "model").read_bytes()


def loaded(data, folder):
    (folder / "other").write_bytes(data)
    return load(folder / "other")


def bits(model, X):
    posterior = model.posterior(X)
    return [np.asarray(part).tobytes() for part in (posterior.mean(), posterior.var())]


def test_bits_tell_models_apart():
    X, y = np.array([[0.0], [0.5], [1.0]]), [0, 1, 1]
    model = SmoothBetaClassifier(0.6)
    assert bits(model.fit(X, y), X) == bits(model.fit(X[::-1], y[::-1]), X)
    assert bits(model.fit(X, y), X) != bits(model.fit(X, y[::-1]), X)


# Round trips.

BANDWIDTHS = ["auto", "loo", "theory", 0.3]


@st.composite
def cases(draw):
    """Return options, and batches to learn from: X, y and keywords of `partial_fit`."""
    n_classes = draw(st.sampled_from([2, 2, 2, 3]))
    kinds = ["none", "mean", "affine", "polynomial"] if n_classes == 2 else ["none"]
    kind = draw(st.sampled_from(kinds))
    d = draw(st.integers(1, 3))
    options = {
        "bandwidth": draw(st.sampled_from(BANDWIDTHS)),
        "metric": draw(st.sampled_from(["euclidean", "chebyshev", "manhattan"])),
        "scale": draw(st.sampled_from(["auto", "std", None, [0.5] * d])),
        "bounds": [(0.0, 1.0)] * d,
        "sharing": "mean" if kind == "mean" else "exact",
    }
    if options["bandwidth"] == "auto" and kind != "mean":
        options["method"] = draw(st.sampled_from(["auto", "process", "windows"]))
    elif options["bandwidth"] == "auto":
        options["method"] = "windows"
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    # With three features, many contradictory trials under polynomials make a process slow.
    some = [1, 7] if kind == "polynomial" and d == 3 else [1, 7, 40]
    sizes = draw(st.lists(st.sampled_from(some), min_size=4, max_size=6))
    weighted = draw(st.sampled_from(["no", "whole", "fractional"]))
    return options, [batch(rng, n, d, n_classes, kind, weighted) for n in sizes]


def batch(rng, n, d, n_classes, kind, weighted):
    X = rng.integers(0, 9, size=(n, d)) / 8
    y = rng.binomial(n_classes - 1, 0.2 + 0.6 * X[:, 0])
    more = {"classes": list(range(n_classes))}
    if weighted != "no":
        more["sample_weight"] = rng.integers(1, 9, n) / (1 if weighted == "whole" else 3)
    if kind in ("mean", "affine") or (kind == "polynomial" and rng.random() < 0.4):
        more["context"] = contexts.guess_lapse(rng.choice([0.0, 0.2, 0.5], n), 0.1)
    elif kind == "polynomial":
        more["context"] = contexts.pooled(int(rng.integers(2, 5)), 0.9, 0.95)
    return X, y, more


def taught(options, batches):
    model = SmoothBetaClassifier(**options)
    for X, y, more in batches:
        model.partial_fit(X, y, **more)
    return model


# One case settles ten models.
@pytest.mark.long
@pytest.mark.timeout(3_600)
@settings(max_examples=50)
@given(case=cases(), ask=st.booleans())
def test_a_loaded_model_answers_and_goes_on_as_the_saved_one(case, ask, tmp_path_factory):
    folder = tmp_path_factory.getbasetemp()
    options, batches = case
    model = taught(options, batches[:2])
    # Standard deviations come from the first data, and only equal ones can be merged.
    other = taught(options, batches[1:3] if options["scale"] != "std" else batches[:3])
    points = np.random.default_rng(0).uniform(-0.2, 1.2, size=(4, len(options["bounds"])))
    if ask:
        model.predict_proba(points)
    data = saved(model, folder)
    again = loaded(data, folder)
    assert saved(again, folder) == data
    assert saved(model, folder) == data
    assert bits(again, points) == bits(model, points)
    assert again.predict(points).tobytes() == model.predict(points).tobytes()
    for step in (
        lambda m: m.partial_fit(*batches[-1][:2], **batches[-1][2]),
        lambda m: m.merge(other),
        lambda m: m.merge(m),
    ):
        assert saved(step(again), folder) == saved(step(model), folder)
    assert bits(again, points) == bits(model, points)


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("bandwidth", ["loo", 0.05])
def test_indexes_and_waiting_batches_come_back_as_they_were(d, bandwidth, tmp_path):
    rng = np.random.default_rng(d)
    X = rng.uniform(size=(30_000, d))
    y = rng.uniform(size=len(X)) < X[:, 0]
    model = SmoothBetaClassifier(bandwidth, bounds=[(0, 1)] * d)
    for start, stop in [(0, 20_000), (20_000, 26_000), (26_000, 26_500), (26_500, 26_600)]:
        model.partial_fit(X[start:stop], y[start:stop])
    again = loaded(saved(model, tmp_path), tmp_path)
    built, waiting = model.windows_._state
    assert waiting
    assert [p.size for p in again.windows_._state[1]] == [p.size for p in waiting]
    assert again.windows_._waiting_rows == model.windows_._waiting_rows
    for ours, theirs in zip(again.windows_._state[0], built, strict=True):
        assert type(ours) is type(theirs)
        assert ours.places.axes.tobytes() == theirs.places.axes.tobytes()
        assert ours.places.counts.dtype == theirs.places.counts.dtype
    for each in (model, again):
        each.partial_fit(X[26_600:], y[26_600:])
    assert bits(again, X[:200]) == bits(model, X[:200])
    assert saved(again, tmp_path) == saved(model, tmp_path)


def test_places_of_one_cell_keep_their_order(tmp_path):
    """An outlier gives all others the same code, with contexts and without."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(3000, 2)) * 1e-12
    X[0], y = 1e9, rng.integers(0, 2, size=3000)
    for context in (None, contexts.guess_lapse(rng.choice([0.1, 0.2], 3000))):
        model = SmoothBetaClassifier(1e-13, scale=None).fit(X, y, context=context)
        model.posterior(X[:2])
        data = saved(model, tmp_path)
        again = loaded(data, tmp_path)
        assert bits(again, X[:50]) == bits(model, X[:50])
        assert saved(again, tmp_path) == data


def test_saving_leaves_the_model_as_it_was(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(9000, 2)), rng.integers(0, 2, size=9000)
    models = [SmoothBetaClassifier(0.2, bounds=[(0, 1)] * 2) for _ in range(2)]
    for start in range(0, 9000, 3000):
        for model in models:
            model.partial_fit(X[start : start + 3000], y[start : start + 3000])
        before = dict(models[0].__dict__)
        state = models[0].windows_._state
        models[0].save(tmp_path / "model")
        assert models[0].__dict__ == before
        assert models[0].windows_._state is state
    assert bits(models[0], X[:100]) == bits(models[1], X[:100])


def test_too_far_to_be_told_comes_back(tmp_path):
    model = SmoothBetaClassifier(0.1).fit([[0.0], [1e-300]], [0, 1])
    with np.errstate(over="ignore"):
        model.partial_fit([[1e300]], [1])
    again = loaded(saved(model, tmp_path), tmp_path)
    assert bits(again, [[0.0], [1e-300]]) == bits(model, [[0.0], [1e-300]])


CLASSES = {
    "bool": np.array([False, True]),
    "int64": np.array([-1, 7]),
    "uint64": np.array([0, 2**64 - 1], dtype=np.uint64),
    "int8": np.array([0, 1], dtype=np.int8),
    "big-endian": np.array([0, 1], dtype=">i4"),
    "float64": np.array([0.0, 2.0]),
    "float32": np.array([-1.0, 3.0], dtype=np.float32),
    "text": np.array(["a", "ü\U0001f600"], dtype="U9"),
    "objects": np.array(["no", "yes", "zü"], dtype=object),
    "bytes": np.array([b"a", b"\xff"]),
}


@pytest.mark.parametrize("name", CLASSES)
def test_classes_come_back_with_their_dtype(name, tmp_path):
    classes = CLASSES[name]
    y = np.tile(classes, 3)
    X = np.linspace(0, 1, len(y))[:, None]
    model = SmoothBetaClassifier(0.2).fit(X, y)
    again = loaded(saved(model, tmp_path), tmp_path)
    assert again.classes_.dtype == model.classes_.dtype == classes.dtype
    assert again.classes_.tolist() == classes.tolist()
    assert again.predict(X).tolist() == model.predict(X).tolist()
    again.partial_fit(X, y)


def test_names_of_features_come_back(tmp_path):
    table = pd.DataFrame({"döse": [0.1, 0.4, 0.9], "age": [1, 2, 3]})
    model = SmoothBetaClassifier(0.5).fit(table, pd.Series(["no", "yes", "no"]))
    again = loaded(saved(model, tmp_path), tmp_path)
    assert again.feature_names_in_.tolist() == ["döse", "age"]
    assert again.feature_names_in_.dtype == object
    assert again.predict(table).tolist() == model.predict(table).tolist()
    with pytest.raises(ValueError, match="feature names"):
        again.predict(table[["age", "döse"]])


OPTIONS = [
    {"bandwidth": 1, "lipschitz": np.float64(2.5), "n_jobs": 2, "method": "windows"},
    {"bandwidth": np.float32(0.1), "metric": "manhattan", "n_jobs": -1, "prior": [2.0, 3]},
    {"scale": np.array([1.0, 2.0]), "bounds": np.array([[0, 1], [0, 3]]), "bandwidth": "loo"},
    {"scale": [1, 2], "bounds": [(0, 1), [0.0, 3.0]], "method": "process"},
    {"scale": [1, 2], "bandwidth": 0.3, "prior": np.array([0.5, 0.5])},
    {"bandwidth": "theory", "prior": Prior.from_mean_variance(0.25, 0.01), "sharing": "mean"},
    {"scale": pd.Series([1.0, 4.0]), "method": "windows", "prior": (np.array([1.0]), 2.0)},
]


@pytest.mark.parametrize("number", range(len(OPTIONS)))
def test_options_come_back(number, tmp_path):
    options = OPTIONS[number]
    X, y = np.array([[0.1, 0.2], [0.9, 2.5], [0.5, 1.0]]), [0, 1, 1]
    model = SmoothBetaClassifier(**options).fit(X, y)
    again = loaded(saved(model, tmp_path), tmp_path)
    ours, theirs = again.get_params(), model.get_params()
    assert ours.keys() == theirs.keys()
    for name, value in theirs.items():
        if isinstance(value, str | Prior) or value is None:
            assert ours[name] == value
        else:
            assert all(np.array_equal(a, b) for a, b in zip_any(ours[name], value))
    assert type(ours["prior"]) is type(theirs["prior"])
    assert bits(again, X) == bits(model, X)


def zip_any(a, b):
    return zip(a, b, strict=True) if isinstance(a, list | tuple) else [(a, b)]


def test_options_changed_after_learning_stay_apart_from_what_was_learned(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(200, 2)), rng.integers(0, 2, size=200)
    model = SmoothBetaClassifier("loo", bounds=[(0, 1)] * 2).fit(X, y)
    before = model.bandwidth_
    assert model.set_params(bandwidth=0.3, metric="manhattan").bandwidth_ == before
    model.set_params(prior=(5.0, 1.0))  # which affects answers and scores
    again = loaded(saved(model, tmp_path), tmp_path)
    assert again.windows_.metric == "euclidean"
    assert again.bandwidth_ == model.bandwidth_
    assert (again.bandwidth, again.prior) == ("loo", (5.0, 1.0))  # as learned, and as set since
    assert bits(again, X[:5]) == bits(model, X[:5])
    again.set_params(bandwidth=0.3, metric="manhattan")
    for each in (model, again):
        each.partial_fit(X, y).set_params(bandwidth="loo").partial_fit(X[:5], y[:5])
    assert saved(again, tmp_path) == saved(model, tmp_path)


@pytest.mark.long
def test_the_same_trials_make_the_same_file_in_another_process(tmp_path):
    X = np.linspace(0, 1, 50)[:, None]
    here = SmoothBetaClassifier("loo", n_jobs=2).fit(X, np.where(X[:, 0] > 0.3, "yes", "no"))
    script = (
        "import numpy as np, sys; from betafield import SmoothBetaClassifier as S\n"
        "X = np.linspace(0, 1, 50)[:, None]; y = np.where(X[:, 0] > 0.3, 'yes', 'no')\n"
        "S('loo', n_jobs=2).fit(X, y).save(sys.argv[1])"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "there")]
    subprocess.run(command, check=True, env=os.environ | {"PYTHONHASHSEED": "1"})
    assert (tmp_path / "there").read_bytes() == saved(here, tmp_path)


def test_dask_saves_the_local_model(tmp_path):
    import dask
    import dask.array as da

    from betafield.dask import SmoothBetaClassifier as DaskClassifier

    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(600, 2)), rng.integers(0, 2, size=600)
    with dask.config.set(scheduler="threads"):
        model = DaskClassifier(0.2, partition="space", bounds=[(0, 1)] * 2)
        model.fit(da.from_array(X, chunks=(100, 2)), da.from_array(y, chunks=100))
        model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert type(again) is SmoothBetaClassifier
    assert bits(again, X[:20]) == bits(
        SmoothBetaClassifier(0.2, bounds=[(0, 1)] * 2).fit(X, y), X[:20]
    )


# What cannot be saved.


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"prior": lambda _: (1.0, 1.0)}, "prior: found a function"),
        ({"prior": Prior.from_mean_variance(lambda _: 0.5, 0.01)}, "prior: found a function"),
    ],
)
def test_what_no_file_can_hold_is_said_before_a_file_is_touched(options, told, tmp_path):
    model = SmoothBetaClassifier(0.2).fit([[0.0], [1.0]], [0, 1]).set_params(**options)
    path = tmp_path / "model"
    path.write_bytes(b"old")
    with pytest.raises(ValueError, match=told):
        model.save(path)
    assert os.listdir(tmp_path) == ["model"]
    assert path.read_bytes() == b"old"


def test_a_prior_that_would_not_do_is_not_saved(tmp_path):
    model = SmoothBetaClassifier(0.2).fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(ValueError, match=r"^prior"):
        model.set_params(prior=(0, 1)).save(tmp_path / "model")
    assert os.listdir(tmp_path) == []
    model.set_params(prior=(1, 1)).save(tmp_path / "model")


def test_a_model_that_has_learned_nothing_cannot_be_saved(tmp_path):
    with pytest.raises(NotFittedError):
        SmoothBetaClassifier().save(tmp_path / "model")
    assert os.listdir(tmp_path) == []


# Refusals.

REFUSED = (
    r"path: '.*' (is not a betafield file|is cut off: it has \d+ bytes|is damaged: "
    r"|has version \d+ of|does not contain a consistent model: )"
)


def smallest(folder):
    """Return the smallest file with an index."""
    model = SmoothBetaClassifier(0.5).fit([[0.0], [1.0]], [0, 1])
    model.posterior([[0.0]])
    return saved(model, folder)


def refused(path, data):
    path.write_bytes(data)
    with pytest.raises(ValueError, match=REFUSED):
        load(path)


@pytest.mark.no_cover
def test_every_byte_counts(tmp_path):
    """All 255 other values of each of the first 64 bytes; one other value, and each bit, after."""
    data, path = smallest(tmp_path), tmp_path / "flipped"
    path.write_bytes(data)
    rng, pattern = np.random.default_rng(0), re.compile(REFUSED)
    with open(path, "r+b", buffering=0) as file:
        for at, byte in enumerate(data):
            others = {byte ^ (1 << k) for k in range(8)} | {byte ^ int(rng.integers(1, 256))}
            for other in range(256) if at < 64 else others:
                if other != byte:
                    os.pwrite(file.fileno(), bytes([other]), at)
                    assert pattern.match(refusal(path)), (at, other)
            os.pwrite(file.fileno(), bytes([byte]), at)
    assert load(path).n_trials_ == 2


def refusal(path):
    """Return the message with which a file is refused."""
    try:
        load(path)
    except ValueError as error:
        return str(error)
    return "not at all"


def test_every_truncation_and_extension_is_refused(tmp_path):
    data, path = smallest(tmp_path), tmp_path / "cut"
    path.write_bytes(data)
    for n in reversed(range(len(data))):
        os.truncate(path, n)
        words = "is cut off: it has" if n else "is not a betafield file"
        assert f"'{path}' {words}" in refusal(path), n
    for more in (b"\0", b"\0" * 32, b"\0" * 64, data, data[-32:]):
        path.write_bytes(data + more)
        assert "is damaged: it has" in refusal(path)


def test_damage_of_a_large_file_is_refused(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(100_000, 2))
    model = SmoothBetaClassifier(0.1, bounds=[(0, 1)] * 2).fit(X, X[:, 0] < 0.3)
    data, path = saved(model, tmp_path), tmp_path / "model"
    assert len(data) > 1_700_000
    with open(path, "r+b", buffering=0) as file:
        for at in rng.integers(len(data), size=150).tolist():
            os.pwrite(file.fileno(), bytes([data[at] ^ int(rng.integers(1, 256))]), at)
            assert re.match(REFUSED, refusal(path)), at
            os.pwrite(file.fileno(), data[at : at + 1], at)
        assert load(path).n_trials_ == 100_000
        for n in sorted(rng.integers(len(data), size=50).tolist(), reverse=True):
            os.truncate(path, n)
            assert "cut off" in refusal(path), n


def test_a_newer_version_is_told_before_anything_is_read(tmp_path):
    path = tmp_path / "model"
    path.write_bytes(b"\x8abetaf\r\n" + struct.pack("<II", 3, 10) + b"who knows")
    told = "has version 3 of the format; this release of betafield reads versions up to 2"
    with pytest.raises(ValueError, match=told):
        load(path)


@pytest.mark.parametrize("data", [b"", b"\x89PNG\r\n\x1a\n" + bytes(100), b"PAR1", bytes(500)])
def test_other_files_are_told_from_ours(data, tmp_path):
    (tmp_path / "model").write_bytes(data)
    with pytest.raises(ValueError, match="is not a betafield file"):
        load(tmp_path / "model")


@pytest.mark.parametrize("kind", ["experiment", ["Experiment"], {}])
def test_another_kind_of_object_is_told(tmp_path, kind):
    persistence.write(tmp_path / "a", kind, {}, {})
    with pytest.raises(ValueError, match=rf"holds {re.escape(repr(kind))}, not 'Smooth"):
        load(tmp_path / "a")


def test_who_reads_another_kind_is_told(tmp_path):
    Experiment({"x": (0, 1)}, LevelSet(0.5)).save(tmp_path / "a")
    with pytest.raises(ValueError, match=r"'Experiment', not .*; Experiment\.load reads it"):
        load(tmp_path / "a")


HOSTILE = {
    "deep": b"[" * 200_000 + b"]" * 200_000,
    "deep objects": b'{"a":' * 200_000 + b"1" + b"}" * 200_000,
    "nan": b'{"arrays":[],"kind":"SmoothBetaClassifier","values":NaN}',
    "infinite": b'{"arrays":[],"kind":"SmoothBetaClassifier","values":1e999}',
    "long number": b'{"arrays":[],"kind":"SmoothBetaClassifier","values":'
    + b"9" * 1_000_000
    + b"}",
    "no text": b'{"arrays":[],"kind":"\xff","values":{}}',
    "no object": b"[]",
    "no header": b"",
    "negative": b'{"arrays":[["a","<f8",[-1]]],"kind":"SmoothBetaClassifier","values":{}}',
    "huge": b'{"arrays":[["a","<f8",[1000000000000]]],"kind":"SmoothBetaClassifier","values":{}}',
    "huge and empty": b'{"arrays":[["a","|i1",[0,99999999999]]],"kind":"","values":{}}',
    "objects": b'{"arrays":[["a","|O",[1]]],"kind":"SmoothBetaClassifier","values":{}}',
    "one name": b'{"arrays":[["a","<f8",[0]],["a","<f8",[0]]],"kind":"","values":{}}',
    "wide": b'{"arrays":[["a","<f8",[' + b"1," * 99 + b'1]]],"kind":"","values":{}}',
    "values": b'{"arrays":[],"kind":"SmoothBetaClassifier","values":[1]}',
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_headers_are_refused_without_much_memory(name, tmp_path):
    (tmp_path / "model").write_bytes(forged({}, {}, text=HOSTILE[name]))
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=REFUSED):
            load(tmp_path / "model")
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("change", [(b'"kind":', b'"kind":"a","kind":'), (b'"kind":', b'"kind": ')])
def test_a_header_can_be_spelled_in_one_way_only(change, tmp_path):
    """No key may occur twice, because some readers take the first and others the last."""
    data, path = smallest(tmp_path), tmp_path / "other"
    values, arrays = parsed(data)
    (length,) = struct.unpack("<I", data[12:16])
    text = data[16 : 16 + length].replace(*change)
    path.write_bytes(forged(values, arrays, text=text))
    assert json.loads(text)["kind"] == KIND
    assert "its header cannot be read (it is not in canonical form)" in refusal(path)


def test_the_header_can_be_no_longer_than_allowed(tmp_path):
    text = b'"' + b"a" * (1 << 22) + b'"'
    (tmp_path / "model").write_bytes(forged({}, {}, text=text))
    with pytest.raises(ValueError, match=r"is damaged: version 2, with a header of \d+ bytes"):
        load(tmp_path / "model")
    with pytest.raises(ValueError, match="would have a header of"):
        persistence.write(tmp_path / "other", "a", "b" * (1 << 22), {})
    assert os.listdir(tmp_path) == ["model"]


def test_something_between_arrays_is_refused(tmp_path):
    data = bytearray(smallest(tmp_path))
    (length,) = struct.unpack("<I", data[12:16])
    assert (16 + length) % 64
    data[16 + length] = 1
    data[-32:] = hashlib.sha256(data[:-32]).digest()
    refused(tmp_path / "other", bytes(data))


def test_the_format_is_what_it_is_said_to_be(tmp_path):
    for name, model in small().items():
        data = saved(model, tmp_path)
        assert forged(*parsed(data)) == data, name


# Changes with a valid checksum: each must be detected by its effect on the model.
def change(name, at, value):
    def changed(_, arrays):
        arrays[name][at] = value

    return changed


def told(value, *path):
    def changed(values, _):
        for key in path[:-1]:
            values = values[key]
        values[path[-1]] = value

    return changed


def found(value, *path):
    return told(value, "found", 0, *path)


def reshaped(name, shape):
    def changed(_, arrays):
        arrays[name] = np.resize(arrays[name], shape)

    return changed


def moved_from_seen(values, arrays):
    arrays["built.0.held"] = arrays["built.0.held"].astype(np.int64)
    arrays["built.0.held"][0] += 2**35
    values["seen"][0] += 2**67
    values["seen"][1] += 2**67


SIGNED = {
    "NaN place": ("line", change("built.0.axes", (0, 0), np.nan), "axes"),
    "negative count": ("line", change("built.0.counts", (0, 0), -1), "below 0"),
    "more counted than seen": ("line", change("built.0.counts", (0, 0), 100), "seen"),
    "no trials": ("line", told([0, 0, 0, 0], "seen"), "seen"),
    "more seen than counted": ("line", told([2**40, 0, 0, 0], "seen"), "seen"),
    "distorted": ("line", told([12 * 2**32, 2**32, 0, 0], "seen"), None),
    "too many seen": ("line", told([2**100, 0, 0, 0], "seen"), "seen"),
    "fewer columns": ("line", reshaped("built.0.counts", (1, 7)), "built.0.counts"),
    "other features": ("line", told(2, "n_features"), "axes"),
    "no unit": ("line", change("unit", 0, 0.0), "unit"),
    "NaN origin": ("line", change("origin", 0, np.nan), "origin"),
    "turned bounds": ("line", change("bounds", (0, 0), 2.0), "bounds"),
    "one class": ("line", told([0], "classes", "labels"), "classes"),
    "classes in disorder": ("line", told([1, 0], "classes", "labels"), "classes"),
    "classes of objects": ("line", told("|O", "classes", "dtype"), "classes"),
    "classes of dates": ("line", told("<M8[s]", "classes", "dtype"), "classes"),
    "giant labels": ("classes", told("<U9999999", "classes", "dtype"), "classes"),
    "names of others": ("auto", told(["a"], "names"), "names"),
    "bandwidth": ("auto", told(-1, "options", "bandwidth"), "bandwidth"),
    "metric": ("line", told("hamming", "metric"), "metric"),
    "metric asked for": ("auto", told("hamming", "options", "metric"), "metric"),
    "prior": ("auto", told("os.system", "options", "prior"), "prior"),
    "prior below 0": ("auto", told({"tuple": [-1, 1]}, "options", "prior"), "prior"),
    "prior beyond counting": ("exact", told({"tuple": [1e100, 1]}, "options", "prior"), "prior"),
    "scale": ("auto", told([1], "options", "scale"), "scale"),
    "lists in lists": ("auto", told([[[[[[[1]]]]]]], "options", "scale"), "scale"),
    "option": ("auto", told({"class": "os.system"}, "options", "scale"), "scale"),
    "jobs": ("auto", told(0, "options", "n_jobs"), "n_jobs"),
    "one more option": ("auto", told(1, "options", "more"), "options"),
    "part that is not there": ("classes", told(7, "waiting"), "waiting.1"),
    "part too many": ("classes", told(0, "waiting"), "arrays"),
    "windows of a process": ("auto", told("windows", "kind"), "values"),
    "a process by windows": ("auto", told("windows", "options", "method"), "method"),
    "kind of places that are not there": ("auto", told([0, 2], "parts"), "2.points"),
    "kind of places too few": ("auto", told([], "parts"), "parts"),
    "one coefficient": ("auto", told([1], "parts"), "1.points"),
    "infinite place": ("auto", change("0.points", (0, 0), np.inf), "0.points"),
    "negative trials": ("auto", change("0.counts", (0, 0), -1), "0.counts"),
    "trials too many": ("auto", change("0.counts", (0, 0), 99), "seen"),
    "coefficient above 1": ("process", change("2.context", (0, 1), 1.5), "2.context"),
    "context that teaches nothing": ("process", change("2.context", 0, 0.5), "2.context"),
    "found for nobody": ("auto", told(None, "found_at"), "seen"),
    "found for more": ("auto", told([2**50, 0, 0, 0], "found_at"), "found_at"),
    "found for other classes": ("three", told([], "found"), "found"),
    "link": ("auto", found("probit", "components", 0, "link"), "found"),
    "length scale": ("auto", found([0.0, 99.0, 0.0], "components", 0, "theta"), "found"),
    "length scales": ("auto", found([0.0], "components", 0, "theta"), "found"),
    "NaN length scale": ("auto", found([0.0, 0.0, "nan"], "components", 0, "theta"), "found"),
    "no process": ("auto", found([], "components"), "found"),
    "windows of a word": ("auto", found("all", "windows"), "found"),
    "contexts of three": ("classes", told([12 * 2**32, 1, 0, 0], "seen"), "two classes"),
    "shift": ("exact", change("built.0.shifts", 0, 41.0), "shifts"),
    "NaN shift": ("exact", change("built.0.shifts", 0, np.nan), "shifts"),
    "negative size": ("exact", change("built.0.sizes", 0, -1.0), "sizes"),
    "giant size": ("exact", change("built.0.sizes", 0, 1e300), "sizes"),
    "held": ("exact", change("built.0.held", 0, -1), "held"),
    "giant held": ("exact", moved_from_seen, "at most"),
    "shifts by their mean": ("exact", told("mean", "sharing"), "sharing"),
    "means by their shifts": ("mean", told("exact", "sharing"), "columns"),
    "lost more than there was": (
        "mean",
        change("waiting.0.counts", (4, 0), 2**40),
        "too much lost",
    ),
    "coefficient": ("polynomial", change("coefficients", 0, 1.5), "coefficients"),
    "low polynomial": ("polynomial", change("coefficients", slice(0, 4), 0.5), "coefficients"),
    "length": ("polynomial", change("lengths", 0, 2), "lengths"),
    "no polynomials": ("polynomial", reshaped("lengths", (0,)), "coefficients"),
}


@pytest.mark.parametrize("name", SIGNED)
def test_unsound_values_are_refused_even_where_they_are_signed(name, tmp_path):
    model, change, told = SIGNED[name]
    values, arrays = parsed(saved(small()[model], tmp_path))
    change(values, arrays)
    (tmp_path / "other").write_bytes(forged(values, arrays))
    if told is None:  # a possible model
        assert load(tmp_path / "other").posterior([[0.5]]).mean() > 0
    else:
        with pytest.raises(ValueError, match=f"does not contain a consistent model: .*{told}"):
            load(tmp_path / "other")


def leaves(values, path=()):
    """Return the path of each text in values."""
    if isinstance(values, dict | list):
        keys = values if isinstance(values, dict) else range(len(values))
        return [found for key in keys for found in leaves(values[key], (*path, key))]
    return [path] if isinstance(values, str) else []


def test_names_in_a_file_are_never_imported(tmp_path, monkeypatch):
    """Every text in a file is replaced by the name of a module that reveals its import."""
    (tmp_path / "evil_module.py").write_text("import os; os.environ['BETAFIELD_EVIL'] = '1'")
    monkeypatch.syspath_prepend(tmp_path)
    values, arrays = parsed(saved(small()["auto"], tmp_path))
    assert len(leaves(values)) > 8
    for path in leaves(values):
        for text in ("evil_module", "evil_module.run", "cevil_module\nrun\n(tR."):
            changed = json.loads(json.dumps(values))
            told(text, *path)(changed, arrays)
            with contextlib.suppress(ValueError):
                loaded(forged(changed, arrays), tmp_path)
    changed = json.loads(json.dumps(values))
    for word in ("__reduce__", "__class__", "py/object", "class", "module"):
        changed["options"]["prior"] = {word: "evil_module.run"}
        with pytest.raises(ValueError, match="does not contain a consistent model: prior"):
            loaded(forged(changed, arrays), tmp_path)
    refused(tmp_path / "other", forged(values, arrays, kind="evil_module.run")[:-1])
    assert "evil_module" not in sys.modules
    assert "BETAFIELD_EVIL" not in os.environ


# Nearly valid files, half of them with a valid checksum.


def test_there_are_models_of_all_that_can_be_found(tmp_path):
    every = [model for model in small().values() if not hasattr(model, "bandwidth_")]
    for model in every:
        model.save(tmp_path / "model")
        assert what_is_found(load(tmp_path / "model")) == what_is_found(model)
    kinds = {"log", "rank", "levels", "windows", "windows by what is asked", "spread"}
    assert set.union(*map(what_is_found, every)) == kinds
    asked = [what_is_found(model) for model in every]
    assert any("windows by what is asked" in each and "spread" not in each for each in asked)


@pytest.mark.long
@pytest.mark.parametrize(("cases", "seed"), [(1_000, 0), (1_000, 1)])
def test_mutated_files_are_refused_or_sound(cases, seed):
    """No crash, no excess memory, no other error; `make bench-faults` tries more of them."""
    found = mutations(cases, seed)
    assert (found["failures"], found["unsound"], found["crashed"]) == ([], 0, 0)
    assert found["refused"] > 0.6 * cases
    assert found["sound"] > 0.05 * cases
    assert sum(found[name] for name in ("refused", "sound", "unchanged")) == cases
    assert found["memory"] < 256 << 20


# Files that are not regular.


def test_what_is_no_file_is_said_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    os.symlink("loop", tmp_path / "loop")
    model = small()["line"]
    for name, what in (("pipe", "is a pipe"), (".", "is a folder")):
        with pytest.raises(ValueError, match=rf"path: .* {what}; a regular file is needed"):
            load(tmp_path / name)
        with pytest.raises(ValueError, match=rf"path: .* {what}; a regular file is needed"):
            model.save(tmp_path / name)
    with pytest.raises(OSError, match="loop"):
        load(tmp_path / "loop")
    with pytest.raises(OSError, match="loop"):
        model.save(tmp_path / "loop")
    with pytest.raises(ValueError, match="is a device; a regular file is needed"):
        model.save("/dev/null")
    with pytest.raises(FileNotFoundError, match=r"path: found '.*nothing', but there is no such"):
        load(tmp_path / "nothing")
    with pytest.raises(FileNotFoundError, match=r"path: '.*model' was not saved: No such file"):
        model.save(tmp_path / "nothing" / "model")
    assert sorted(os.listdir(tmp_path)) == ["loop", "pipe"]


@pytest.mark.parametrize("path", [None, 3, b"model", ["model"]])
def test_paths_are_names(path):
    for use in (load, small()["line"].save):
        with pytest.raises(TypeError, match=r"path: found .*; the name of a file is needed"):
            use(path)


@pytest.mark.parametrize("path", ["", "a\0b"])
def test_names_are_names(path):
    with pytest.raises(ValueError, match=r"path: found .*; the name of a file is needed"):
        load(path)


def test_a_link_stays_and_its_target_is_replaced(tmp_path):
    (tmp_path / "far").mkdir()
    os.symlink("far/model", tmp_path / "link")
    for model in (small()["line"], small()["exact"]):  # a broken link, and a link to a file
        model.save(tmp_path / "link")
        assert (tmp_path / "link").is_symlink()
        assert os.listdir(tmp_path / "far") == ["model"]
        assert load(tmp_path / "link").n_trials_ == model.n_trials_


def test_modes_are_kept_or_usual(tmp_path):
    path, before = tmp_path / "model", os.umask(0o027)
    try:
        small()["line"].save(path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    for mode in (0o604, 0o666):
        path.chmod(mode)
        small()["line"].save(path)
        assert stat.S_IMODE(path.stat().st_mode) == mode


def test_home_is_known(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    small()["line"].save("~/model")
    assert load("~/model").n_trials_ == load(tmp_path / "model").n_trials_ == 12


# Crashes.


def test_a_file_is_on_disk_before_it_takes_the_old_ones_place(tmp_path, monkeypatch):
    """The system calls are recorded, and made: sync, replace, sync of the folder."""
    steps, path = [], tmp_path / "model"
    sync, replace = os.fsync, os.replace

    def watched_sync(number):
        found = os.fstat(number)
        steps.append(("sync", found.st_ino, None if stat.S_ISDIR(found.st_mode) else found.st_size))
        sync(number)

    def watched_replace(source, target):
        steps.append(("replace", os.stat(source).st_ino, os.stat(source).st_size))
        assert os.path.dirname(source) == os.path.dirname(target)
        replace(source, target)

    monkeypatch.setattr(os, "fsync", watched_sync)
    monkeypatch.setattr(os, "replace", watched_replace)
    small()["exact"].save(path)
    file, folder = path.stat(), tmp_path.stat().st_ino
    same = file.st_ino, file.st_size
    assert steps == [("sync", *same), ("replace", *same), ("sync", folder, None)]


@pytest.mark.parametrize("kills", [24, pytest.param(3 * 45, marks=pytest.mark.long)])
def test_a_killed_process_leaves_the_old_file_or_the_new(kills):
    """Saves of models, experiments and tables are killed before every step."""
    found = killed_saves(kills)
    assert found["steps"] <= 45  # otherwise three times as many kills would not meet all
    assert (found["torn"], found["litter"]) == (0, 0)
    assert found["old"] + found["new"] == found["kills"] == kills
    assert min(found["old"], found["new"], found["left"]) > 0


SAVING = """
import sys
from betafield import persistence
with persistence.replacing(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    print("half", flush=True)
    sys.stdin.readline()
    file.write(b" and half")
"""


@contextlib.contextmanager
def saving(path):
    """Give a process that has written half of a file, and waits for a signal to go on."""
    command = [sys.executable, "-c", SAVING, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"half\n"
        yield process


def test_the_next_save_removes_what_a_killed_one_left(tmp_path):
    for _ in range(3):
        with saving(tmp_path / "model") as process:
            process.kill()
    left = os.listdir(tmp_path)
    assert len(left) == 1  # earlier ones have been removed
    assert re.fullmatch(r"\.betafield-saving-[0-9a-f]{16}\.tmp", left[0])
    small()["line"].save(tmp_path / "another")
    assert os.listdir(tmp_path) == ["another"]


def test_what_another_process_is_saving_is_left_alone(tmp_path):
    with saving(tmp_path / "theirs") as process:
        for _ in range(3):
            small()["line"].save(tmp_path / "model")
        assert len(os.listdir(tmp_path)) == 2
        process.communicate(b"\n")
    assert process.returncode == 0
    assert (tmp_path / "theirs").read_bytes() == b"half and half"
    assert sorted(os.listdir(tmp_path)) == ["model", "theirs"]


def test_what_only_looks_like_a_file_that_was_left_is_nobodys_business(tmp_path):
    (tmp_path / "treasure").write_bytes(b"gold")
    os.symlink("treasure", tmp_path / ".betafield-saving-0.tmp")
    os.mkdir(tmp_path / ".betafield-saving-1.tmp")
    (tmp_path / ".betafield-notes.tmp").write_bytes(b"mine")
    before = os.listdir(tmp_path)
    small()["line"].save(tmp_path / "model")
    assert sorted(os.listdir(tmp_path)) == sorted([*before, "model"])
    assert (tmp_path / "treasure").read_bytes() == b"gold"


def test_a_file_taken_for_one_that_was_left_is_made_anew(tmp_path, monkeypatch):
    """Another process intervenes between creation and locking: once, or without locks."""
    flock = fcntl.flock

    def late(file, how):
        monkeypatch.setattr(fcntl, "flock", flock)
        (found,) = os.listdir(tmp_path)
        os.unlink(tmp_path / found)
        flock(file, how)

    monkeypatch.setattr(fcntl, "flock", late)
    small()["line"].save(tmp_path / "model")
    assert load(tmp_path / "model").n_trials_ == 12

    def none(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    (tmp_path / ".betafield-saving-0.tmp").write_bytes(b"whose?")
    monkeypatch.setattr(fcntl, "flock", none)
    small()["exact"].save(tmp_path / "model")
    assert sorted(os.listdir(tmp_path)) == [".betafield-saving-0.tmp", "model"]


FULL = """
import os, resource, sys
import numpy as np
from betafield import SmoothBetaClassifier
from betafield.estimators import load

path = sys.argv[1]
old = SmoothBetaClassifier(0.1).fit([[0.0], [1.0]], [0, 1])
old.save(path)
new = SmoothBetaClassifier(0.1).fit(np.linspace(0, 1, 9000)[:, None], np.arange(9000) % 2)
for room in (50_000, 100, 0):
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, 50_000))
    try:
        new.save(path)
    except OSError as error:
        print(error)
    assert os.listdir(os.path.dirname(path)) == ["model"]
    assert load(path).n_trials_ == 2
"""


def test_a_full_disk_leaves_the_old_file_alone(tmp_path):
    """The disk is full after 50,000 bytes, after 100, and from the start."""
    command = [sys.executable, "-c", FULL, str(tmp_path / "model")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r"path: '.*model' was not saved: File too large", done.stdout)) == 3


def test_interrupted_saves_leave_nothing_behind(tmp_path, monkeypatch):
    small()["line"].save(tmp_path / "model")
    old = (tmp_path / "model").read_bytes()
    sync = os.fsync

    def interrupted(number):
        sync(number)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        small()["exact"].save(tmp_path / "model")
    assert os.listdir(tmp_path) == ["model"]
    assert (tmp_path / "model").read_bytes() == old


def test_saved_while_another_thread_teaches_it(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(1200, 2)), rng.integers(0, 2, size=1200)
    parts = [slice(i, i + 20) for i in range(0, 1200, 20)]
    make = lambda: SmoothBetaClassifier(0.2, bounds=[(0, 1)] * 2)
    serial, allowed = make(), {}
    for part in parts:
        serial.partial_fit(X[part], y[part])
        allowed[serial.n_trials_] = saved(serial, tmp_path)
    model, turn = make().partial_fit(X[parts[0]], y[parts[0]]), threading.Semaphore(0)

    def save():
        turn.release()
        return saved(model, tmp_path)

    def teach():
        for part in parts[1:]:
            assert turn.acquire(timeout=300)
            model.partial_fit(X[part], y[part])

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(1) as pool:
            taught = pool.submit(teach)
            files = [save() for _ in parts]
            taught.result()
    finally:
        sys.setswitchinterval(before)
    numbers = [loaded(data, tmp_path).n_trials_ for data in files]
    assert all(data == allowed[n] for n, data in zip(numbers, files, strict=True))
    assert len(set(numbers)) > 10


def test_many_threads_save_to_one_file(tmp_path):
    models, path = list(small().values()), tmp_path / "model"
    whole = {saved(model, tmp_path) for model in models}
    with ThreadPoolExecutor(len(models)) as pool:
        for done in pool.map(lambda model: [model.save(path) for _ in range(5)], models * 2):
            assert done == [None] * 5
            assert path.read_bytes() in whole
    assert os.listdir(tmp_path) == ["model"]


# Old versions. Each file was written by the release of that version; none is ever changed.


def grid():
    """Return points, outcomes and weights that are easy to recompute."""
    i = np.arange(60)
    X = np.stack([i % 10 / 8, i * 7 % 11 / 8], axis=1)
    return X, np.where(i * 5 % 7 < 3, "yes", "no"), 0.5 + i % 3


def test_version_1_counts(tmp_path):
    model = load(DATA / "version-1-counts.beta")
    X, y, weight = grid()
    points = np.array([[0.0, 0.0], [0.5, 0.5], [1.125, 1.25], [9.0, 9.0]])
    near = np.abs(points[:, None] - X).max(axis=2) <= 0.25
    posterior = model.posterior(pd.DataFrame(points, columns=["dose", "age"]))
    np.testing.assert_array_equal(posterior.alpha, 2.0 + (near * weight) @ (y == "yes"))
    np.testing.assert_array_equal(posterior.beta, 3.0 + (near * weight) @ (y == "no"))
    assert model.classes_.tolist() == ["no", "yes"]
    options = {"metric": "chebyshev", "scale": None, "prior": (2.0, 3.0), "n_jobs": 2}
    assert model.get_params() == SmoothBetaClassifier(0.25, **options).get_params()
    more = pd.DataFrame(X[:20], columns=["dose", "age"])
    assert model.partial_fit(more, y[:20]).n_trials_ == weight.sum() + 20
    model.save(tmp_path / "again")


def test_version_1_contexts():
    model = load(DATA / "version-1-contexts.beta")
    X, y, _ = grid()
    affine = np.where(np.arange(60)[:, None] % 2, [0.25, 0.9], [0.0, 1.0])
    here = np.abs(X - 0.5).max(axis=1) <= 0.25
    under = np.concatenate(
        [contexts.elevate(affine[here], 3), np.tile(contexts.pooled(3, 0.9, 0.95), (here.sum(), 1))]
    )
    expected = reference.exact_mixture(under, np.tile(y[here] == "yes", 2))
    posterior = model.posterior([[0.5, 0.5]])
    assert posterior.mean() == pytest.approx(expected.mean(), rel=1e-6)
    assert posterior.std() == pytest.approx(expected.std(), rel=1e-6)


def test_version_1_weights():
    """The probability is x, at 400 points of a low-discrepancy sequence."""
    model = load(DATA / "version-1-weights.beta")
    assert (model.method, model.bandwidth) == ("auto", "auto")  # estimated again from its places
    assert model.weights_["weight"].sum() == pytest.approx(1.0)
    x = np.linspace(0.1, 0.9, 9)
    low, high = model.posterior(x[:, None]).interval(0.999)
    assert ((low < x) & (x < high) & (high - low < 0.3)).all()


# The trials of each kind, and its options that are not defaults.
VERSION_2 = {
    "smooth": (400, {}),
    "levels": (800, {}),
    "contexts": (400, {"method": "process"}),
    "classes": (400, {}),
    "windows": (400, {"bandwidth": "theory"}),
}


@pytest.mark.parametrize("kind", VERSION_2)
def test_version_2(kind, tmp_path):
    """Files of this version lack later options, which then have their defaults."""
    model = load(DATA / f"version-2-{kind}.beta")
    trials, options = VERSION_2[kind]
    assert model.n_trials_ == trials
    assert model.get_params() == SmoothBetaClassifier(**options).get_params()
    X = model.bounds_.mean(axis=1)[None]
    model.save(tmp_path / "again")
    assert bits(load(tmp_path / "again"), X) == bits(model, X)
    assert model.partial_fit(X, model.classes_[:1]).n_trials_ == trials + 1


def test_a_field_without_a_default_must_be_there():
    with pytest.raises(ValueError, match=r"one: found other fields; allowed are link, .*theta"):
        values_of("one", Component, {"link": "logit", "smoothness": None})


def test_an_alias_of_arrays_stands_for_arrays():
    """NumPy's `NDArray` is one from 2.5 on, which needs Python 3.12."""
    kind = TypeVar("kind", bound=np.generic)
    arrays = TypeAliasType("arrays", np.ndarray[Any, np.dtype[kind]], type_params=(kind,))
    assert values_of("one", arrays[np.float64], [0.0, 1.0]).tolist() == [0.0, 1.0]
    with pytest.raises(ValueError, match=r"^one: found others; allowed are numbers"):
        values_of("one", arrays[np.float64], ["a"])


def test_a_prior_per_point_cannot_stand_beside_learned_widths():
    """Widths are learned at all places, for which such a prior has no shapes."""
    model = SmoothBetaClassifier("loo").fit([[0.0], [0.5], [1.0]] * 4, [0, 1, 1] * 4)
    values, arrays = state.stored(model.field_)
    state.restored(values, arrays)
    values["options"]["prior"] = {"tuple": [1.0, [1.0, 2.0]]}
    with pytest.raises(ValueError, match=r"^prior: "):
        state.restored(values, arrays)
