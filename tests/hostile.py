"""Hostile calls: every public callable with one or two arguments that nobody should give.

Each case takes a valid call, replaces one or two arguments by strange values, and requires that the
call either works or is refused with the name of an argument; and that no warning leaks, no failure
changes a model, no input is modified, and no internal error is raised.

    python tests/hostile.py 20000 0

runs this many cases from a seed, in a process with limits on time and memory.
"""

import contextlib
import faulthandler
import os
import random
import re
import resource
import signal
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from sklearn.exceptions import NotFittedError

from hostile_calls import CALLS, prepared
from hostile_values import VALUES

REFUSALS = (ValueError, TypeError, KeyError, OSError)
INSIDE = re.compile(
    r"truth value|ufunc|be broadcast|out of bounds|unsupported operand|has no attribute"
    r"|not subscriptable|not iterable|cannot unpack|not supported between|unhashable|no len\(\)"
    r"|invalid literal|Traceback|numba|only length-1|only 0-dimensional|not callable|integer scalar"
    r"|values to unpack|Exceeds the limit|0-d array"
)
SECONDS_OF_WORK = 60.0


class TooLong(BaseException):
    """A call that took too much processor time."""


@dataclass
class Report:
    """The results of the cases; `findings` are those that broke a rule, and how to repeat them."""

    cases: int = 0
    worked: int = 0
    refused: int = 0
    findings: list = field(default_factory=list)

    def __str__(self):
        by_call = Counter(finding.split("(")[0] for finding in self.findings)
        lines = [
            f"{self.cases} hostile calls: {self.worked} worked, {self.refused} were refused by "
            f"name, {len(self.findings)} broke a rule"
        ]
        lines += [f"  {count:5} {name}" for name, count in by_call.most_common()]
        return "\n".join([*lines, *self.findings])


def run(cases, seed, calls=CALLS):
    """Return a Report of this many cases, drawn from the seed."""
    report, rng = Report(), random.Random(seed)
    for _ in range(cases):
        name = rng.choice(sorted(calls))
        call = calls[name]
        places = rng.sample(call.names, min(len(call.names), rng.choice((1, 1, 2))))
        judge(report, name, call, {place: rng.choice(sorted(VALUES)) for place in places})
    return report


def judge(report, name, call, hostile, seconds=SECONDS_OF_WORK):
    """Make one call, and record the result."""
    given = {**call.arguments(), **{place: VALUES[value]() for place, value in hostile.items()}}
    before = {place: frozen(value) for place, value in given.items()}
    subject = call.of() if call.of else None
    state = call.state(subject) if call.state else None
    report.cases += 1
    with limited(seconds):
        problem, failed = attempted(call, subject, given)
    if problem is None and call.state and (failed or not call.learns):
        problem = "changed the model" if call.state(subject) != state else None
    written = [place for place, value in given.items() if frozen(value) != before[place]]
    if problem is None and written:
        problem = f"wrote to {written}"
    if problem is not None:
        text = ", ".join(f"{place}={value}" for place, value in hostile.items())
        report.findings.append(f"{name}({text}): {problem}")
    elif failed:
        report.refused += 1
    else:
        report.worked += 1


def attempted(call, subject, given):
    """Return what was wrong with the call, if anything, and whether it failed."""
    names, problem, failed = call.names + call.also, None, True
    with warnings.catch_warnings(record=True) as told, np.errstate(all="warn", under="ignore"):
        warnings.simplefilter("error")
        warnings.simplefilter("always", UserWarning)  # which may be meant for users
        try:
            call.what(subject, **given)
            failed = False
        except REFUSALS as error:
            problem = judged(error, names)
        except (Exception, TooLong) as error:
            problem = f"raised {where(error)}"
    unnamed = [str(each.message) for each in told if not named(str(each.message), names)]
    return (f"warned {unnamed[0][:160]!r}" if unnamed and not problem else problem), failed


def judged(error, names):
    """Return what is wrong with the refusal of a call, if anything."""
    message = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    inside = INSIDE.search(message)
    if isinstance(error, NotFittedError) or (inside is None and named(message, names)):
        return None
    return f"says nothing of an argument: {where(error)}"


def named(message, names):
    words = "|".join(map(re.escape, names))
    return bool(re.search(rf"(?<!\w)({words})(?!\w)", message, re.IGNORECASE))


def where(error):
    at = traceback.extract_tb(error.__traceback__)[-1]
    file = at.filename.rsplit("betafield/", 1)[-1]
    return f"{type(error).__name__}: {str(error)[:160]!r} ({file}:{at.lineno})"


def frozen(value):
    """Return the contents of a value, to be compared with its contents later."""
    if isinstance(value, np.ma.MaskedArray):
        return frozen(value.data), frozen(np.ma.getmaskarray(value))
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, pd.DataFrame | pd.Series):
        return value.to_string()
    if isinstance(value, list | tuple | dict | set):
        return repr(value)
    return None


@contextlib.contextmanager
def limited(seconds):
    """Stop a call that takes too much processor time, and a process that hangs."""

    def too_long(*_):
        raise TooLong

    faulthandler.dump_traceback_later(20 * seconds, exit=True)
    before = signal.signal(signal.SIGVTALRM, too_long)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, before)
        faulthandler.cancel_dump_traceback_later()


def right(calls=CALLS):
    """Return the calls that fail with valid arguments: there must be none."""
    failed = []
    for name, call in calls.items():
        report = Report()
        judge(report, name, call, {})
        failed += report.findings or [f"{name}: refused"] * report.refused
    return failed


def main(cases, seed, pattern=""):
    """Run the calls whose names match, in their own directory and with limited memory."""
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        prepared()
        some = {name: call for name, call in CALLS.items() if re.search(pattern, name)}
        wrong = right(some)
        with open("/proc/self/statm") as pages:
            held = int(pages.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (held + (1 << 31),) * 2)
        report = run(cases, seed, some)
        os.chdir("/")
    sys.stdout.write("\n".join(map(str, [*wrong, report])) + "\n")
    return bool(wrong or report.findings)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:]))
