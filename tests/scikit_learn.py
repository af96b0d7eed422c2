"""scikit-learn's checks of estimators, none of which may skip itself."""

import os
import subprocess
import sys
from unittest import SkipTest

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

# Skips itself unless SciPy was imported in another mode: it is run in a process of its own.
ELSEWHERE = "check_array_api_input"


def checked(*models, long=()):
    """Return the mark that gives a test every estimator and check of these models.

    Those of `long` are checked in long runs only, and so are checks done again on memory that
    cannot be written.
    """
    checks = parametrize_with_checks([*models, *long])
    pairs = [
        pytest.param(*pair, marks=marks(*pair, long))
        for pair in checks.args[1]
        if pair[1].func.__name__ != ELSEWHERE
    ]
    return pytest.mark.parametrize(checks.args[0], pairs, **checks.kwargs)


def marks(estimator, check, long):
    """Return marks of a check; its lines are covered by our own tests."""
    is_again = check.keywords.get("readonly_memmap", False)
    is_long = is_again or any(estimator is each for each in long)
    return [pytest.mark.no_cover, *([pytest.mark.long] if is_long else [])]


def run(estimator, check):
    """Run a check, which must not skip itself."""
    try:
        check(estimator)
    except SkipTest as reason:
        pytest.fail(f"skipped: {reason}")


def run_elsewhere(*kinds):
    """Run the check that is left, for estimators of these classes, where SciPy knows array API."""
    names = ", ".join(f"{kind.__module__}:{kind.__name__}" for kind in kinds)
    code = (
        "from importlib import import_module\n"
        "from sklearn.utils.estimator_checks import estimator_checks_generator\n"
        f"for name in {names.split(', ')!r}:\n"
        "    home, kind = name.split(':')\n"
        "    model = getattr(import_module(home), kind)()\n"
        "    for estimator, check in estimator_checks_generator(model):\n"
        f"        if check.func.__name__ == {ELSEWHERE!r}:\n"
        "            check(estimator)\n"
        "            print('done')\n"
    )
    found = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**os.environ, "SCIPY_ARRAY_API": "1", "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    checks = [check.func.__name__ for _, check in estimator_checks_generator(kinds[0]())]
    expected = len(kinds) if ELSEWHERE in checks else 0  # scikit-learn has it from 1.9 on
    assert found.stdout.split() == ["done"] * expected
