"""scikit-learn's checks of estimators, none of which may be skipped."""

import os
import subprocess
import sys
from unittest import SkipTest

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

# This is skipped unless SciPy was imported in another mode, so it runs in a separate process.
ELSEWHERE = "check_array_api_input"


def checked(*models, long=()):
    """Return the mark that runs a test for every estimator and check of these models.

    Models in `long` are checked in long runs only, and so are repeats on read-only memory.
    """
    checks = parametrize_with_checks([*models, *long])
    pairs = [
        pytest.param(*pair, marks=marks(*pair, long))
        for pair in checks.args[1]
        if pair[1].func.__name__ != ELSEWHERE
    ]
    return pytest.mark.parametrize(checks.args[0], pairs, **checks.kwargs)


def marks(estimator, check, long):
    """Return the marks of a check; coverage comes from our own tests."""
    is_again = check.keywords.get("readonly_memmap", False)
    is_long = is_again or any(estimator is each for each in long)
    return [pytest.mark.no_cover, *([pytest.mark.long] if is_long else [])]


def run(estimator, check):
    """Run a check, which must not be skipped."""
    try:
        check(estimator)
    except SkipTest as reason:
        pytest.fail(f"skipped: {reason}")


def run_elsewhere(*kinds):
    """Run the remaining check for these classes, with SciPy's array API switched on."""
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
    expected = len(kinds) if ELSEWHERE in checks else 0  # scikit-learn has it since 1.9
    assert found.stdout.split() == ["done"] * expected
