"""Hostile calls are refused by name, and the rules that judge them can fail."""

import inspect
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import betafield
import hostile
from betafield import (
    baselines,
    client,
    contexts,
    decisions,
    guarantees,
    plots,
    posteriors,
    report,
    testing,
)
from hostile_calls import CALLS, Call

# scikit-learn's own methods, plots, and methods for internal use.
OTHERS = {"get_metadata_routing", "get_params", "score", "set_params", "plot"}
INNER = {
    "asked",
    "crossing",
    "known",
    "only",
    "proven",
    "ratio",
    "seen",
    "status",
    "trials",
    "pending",
    "polynomial_moments",
    "possible",
    "usual",
    "exponent",
}


@pytest.mark.parametrize("cases", [60, pytest.param(2_000, marks=pytest.mark.long)])
def test_hostile_calls_are_refused_by_name_or_work(cases):
    command = [sys.executable, str(Path(hostile.__file__)), str(cases), "0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
    assert f"{cases} hostile calls" in done.stdout


# Packages whose names stand alone, and those named with their module.
PACKAGES = (betafield, baselines, client, decisions, plots, posteriors)
MODULES = (contexts, guarantees, report, testing)


def public():
    """Yield the public names that take arguments."""
    for room in PACKAGES:
        for name in room.__all__:
            thing = getattr(room, name)
            if inspect.isclass(thing):
                yield from methods(name, thing)
            elif inspect.isfunction(thing):
                yield name
    for room in MODULES:
        for name, thing in vars(room).items():
            is_ours = getattr(thing, "__module__", None) == room.__name__
            if inspect.isfunction(thing) and is_ours and not name.startswith("_"):
                yield f"{room.__name__.rpartition('.')[2]}.{name}"


def methods(name, kind):
    for method, function in inspect.getmembers(kind, callable):
        is_other = method.startswith(("_", "set_")) or method in OTHERS | INNER
        is_ours = str(getattr(function, "__module__", None)).startswith("betafield")
        if is_ours and not is_other and len(inspect.signature(function).parameters) > 1:
            yield f"{name}.{method}"


def test_every_public_callable_is_tried():
    tried = set(CALLS)
    missing = {name for name in public() if name not in tried}
    never = {"Dirichlet.under"}  # always refused
    assert {name for name in missing - never if not name.startswith("Posterior.")} == set()


# The rules can fail.


def broken(what, **options):
    return Call(what, lambda: {"x": np.zeros(3)}, ("x",), **options)


def warns(*_, **__):
    import warnings

    warnings.warn("something", RuntimeWarning, stacklevel=1)


def writes(_, x):
    x += 1.0


def raises(error):
    def what(*_, **__):
        raise error

    return what


class Model:
    known = 0


def learns_and_fails(model, **_):
    model.known += 1
    raise ValueError("x: found something; else is needed")


def works_too_long(*_, **__):
    while True:
        pass


def warns_people(*_, **__):
    import warnings

    warnings.warn("something", UserWarning, stacklevel=1)


def warns_people_and_fails(*_, **__):
    import warnings

    warnings.warn("x is not what it was", UserWarning, stacklevel=1)
    raise ZeroDivisionError


BROKEN = {
    "a warning to people without a name": (broken(warns_people), "warned 'something'"),
    "an error after a warning": (broken(warns_people_and_fails), "raised ZeroDivisionError"),
    "a warning": (broken(warns), "RuntimeWarning"),
    "an input written to": (broken(writes), "wrote to ['x']"),
    "an error without a name": (broken(raises(ValueError("no"))), "nothing of an argument"),
    "an error from inside": (
        broken(raises(ValueError("x: The truth value of an array is ambiguous"))),
        "nothing of an argument",
    ),
    "another error": (broken(raises(ZeroDivisionError("x"))), "raised ZeroDivisionError"),
    "a model half changed": (
        broken(learns_and_fails, of=Model, state=lambda model: model.known, learns=True),
        "changed the model",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_rule_is_found(case):
    call, said = BROKEN[case]
    report = hostile.Report()
    hostile.judge(report, "broken", call, {})
    assert len(report.findings) == 1
    assert said in report.findings[0]


def test_a_call_that_does_not_end_is_found():
    report = hostile.Report()
    hostile.judge(report, "broken", broken(works_too_long), {}, seconds=0.5)
    assert "TooLong" in report.findings[0]


def test_a_refusal_by_name_is_none():
    report = hostile.Report()
    hostile.judge(report, "right", broken(raises(TypeError("x: found 3; text is needed"))), {})
    assert (report.refused, report.findings) == (1, [])
