"""Settings of all tests: how many cases, the same in every run but the long one.

`make test` takes a sixth of the generated cases that a test says, and of matrices marked
`sampled` a sixth of the cases, in which every value of every parameter is met; `make test-long`
twice as many generated cases as said, new ones each time, and every case of every matrix.
"""

import gc
import hashlib
from collections import defaultdict

import numba
import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "betafield", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("plain", settings.get_profile("betafield"), max_examples=10)
# Chosen by --hypothesis-profile. What fails is printed with the line that repeats it.
settings.register_profile(
    "long", settings.get_profile("betafield"), derandomize=False, print_blob=True
)
QUICK, FEWEST, MORE = 1 / 6, 5, 2  # the share of cases in quick runs, and times in long ones

# Kernels as plain Python are run for their lines to be seen; compiled ones meet all cases.
PLAIN = bool(numba.config.DISABLE_JIT)
settings.load_profile("plain" if PLAIN else "betafield")


@pytest.hookimpl(tryfirst=True)  # before those marked `long` are taken out
def pytest_collection_modifyitems(items):
    """Choose cases; and do not watch the lines of generated ones.

    That would take half as long again, for few lines more. What they alone would run is not
    covered, so `--cov-fail-under` asks for more than it says.
    """
    generated = [
        item for item in items if getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
    ]
    if not PLAIN:
        for item in generated:
            item.add_marker("no_cover")
        for test in {getattr(item.obj, "__func__", item.obj) for item in generated}:
            take(test, as_many if settings.default.derandomize else lambda said: MORE * said)
    matrices = defaultdict(list)
    for item in items:
        if item.get_closest_marker("sampled") and not item.get_closest_marker("long"):
            matrices[item.nodeid.split("[")[0]].append(item)
    for matrix in matrices.values():
        for item in set(matrix) - set(sampled(matrix)):
            item.add_marker("long")


def pytest_collection_finish():
    """Take modules and tests out of later searches for garbage: they stay to the end."""
    gc.collect()
    gc.freeze()


def as_many(said):
    """Return how many of the generated cases that a test says are taken in quick runs."""
    return min(said, max(FEWEST, round(QUICK * said)))


def take(test, cases):
    """Change the number of cases, also where a test says its own; there is no public way."""
    said = test._hypothesis_internal_use_settings
    test._hypothesis_internal_use_settings = settings(said, max_examples=cases(said.max_examples))


def sampled(matrix):
    """Return a sixth of the cases of a matrix, and more until every value is met.

    Always the same ones, whatever else there is: in the order of a hash of their names.
    """
    met, chosen, least = set(), [], QUICK * len(matrix)
    for item in sorted(matrix, key=lambda item: hashlib.sha256(item.name.encode()).digest()):
        values = {(name, id(value)) for name, value in item.callspec.params.items()}
        if len(chosen) < least or not values <= met:
            met |= values
            chosen.append(item)
    return chosen
