"""Settings of all tests: the number of cases, which are the same in every run but the long one.

`make test` runs a sixth of the generated cases that a test asks for, and a sixth of the cases of
matrices marked `sampled`, chosen so that every value of every parameter occurs. `make test-long`
runs twice as many generated cases, new ones each time, and every case of every matrix.
"""

import gc
import hashlib
import importlib.util
from collections import defaultdict

import numba
import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "betafield", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("plain", settings.get_profile("betafield"), max_examples=10)
# Chosen by --hypothesis-profile. Failures are printed with the line that reproduces them.
settings.register_profile(
    "long", settings.get_profile("betafield"), derandomize=False, print_blob=True
)
# Files that kill, fork, lock or limit processes, or need a terminal, as only POSIX systems can.
POSIX = [
    *("hostile.py", "hostile_calls.py", "hostile_client.py", "killing.py", "mutating.py"),
    *("server", "test_cli.py", "test_dask_cluster.py", "test_hostile.py", "test_paper.py"),
    "test_persistence.py",
]
collect_ignore = [] if importlib.util.find_spec("fcntl") else POSIX
QUICK, FEWEST, MORE = 1 / 6, 5, 2  # the share of cases in quick runs, and the factor in long ones

# Kernels run as plain Python to measure coverage only; all cases run with compiled ones.
PLAIN = bool(numba.config.DISABLE_JIT)
settings.load_profile("plain" if PLAIN else "betafield")


@pytest.hookimpl(tryfirst=True)  # before tests marked `long` are deselected
def pytest_collection_modifyitems(items):
    """Choose cases, and do not measure the coverage of generated ones.

    That would take half as long again for few more lines. Lines that only they run count as not
    covered, so `--cov-fail-under` demands more than it says.
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
    """Exempt modules and tests from garbage collection, because they stay to the end."""
    gc.collect()
    gc.freeze()


def as_many(said):
    """Return how many generated cases run in quick runs, given the number a test asks for."""
    return min(said, max(FEWEST, round(QUICK * said)))


def take(test, cases):
    """Change a test's number of cases, even if it sets its own; there is no public way."""
    said = test._hypothesis_internal_use_settings
    test._hypothesis_internal_use_settings = settings(said, max_examples=cases(said.max_examples))


def sampled(matrix):
    """Return a sixth of the cases of a matrix, and more until every value occurs.

    They are chosen by a hash of their names, so they do not depend on other tests.
    """
    met, chosen, least = set(), [], QUICK * len(matrix)
    for item in sorted(matrix, key=lambda item: hashlib.sha256(item.name.encode()).digest()):
        values = {(name, id(value)) for name, value in item.callspec.params.items()}
        if len(chosen) < least or not values <= met:
            met |= values
            chosen.append(item)
    return chosen
