"""Ctrl-C during imports and compilations: it is deferred, and the process keeps working."""

import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager

import numba.core.event
import pytest

from betafield._interrupts import held
from betafield._jit import inlined, kernel


def press():
    os.kill(os.getpid(), signal.SIGINT)


@contextmanager
def handled_by(handler):
    """Install this handler of SIGINT for a while."""
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def _as_from_a_terminal():
    """Raise on SIGINT even in a background process of a shell, which inherits ignoring it."""
    with handled_by(signal.default_int_handler):
        yield


# Blocks.


def test_an_interrupt_waits_for_the_end_of_the_block():
    done = []

    @held()
    def block():
        press()
        done.append("after the interrupt")

    with pytest.raises(KeyboardInterrupt):
        block()
    assert done
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_inner_block_leaves_it_to_the_outer_one():
    done = []

    @held()
    def block():
        held()(press)()
        done.append("after the inner block")

    with pytest.raises(KeyboardInterrupt):
        block()
    assert done


def test_an_error_of_the_block_is_the_context_of_the_interrupt():
    @held()
    def block():
        press()
        raise ValueError("of the block")

    with pytest.raises(KeyboardInterrupt) as caught:
        block()
    assert isinstance(caught.value.__context__, ValueError)


def test_each_interrupt_is_handed_to_the_handler_of_the_user():
    told = []
    handler = lambda number, _: told.append(number)
    with handled_by(handler):
        with held():
            press()
            press()
            assert told == []
        assert told == [signal.SIGINT] * 2
        assert signal.getsignal(signal.SIGINT) is handler


def test_what_is_ignored_stays_ignored():
    with handled_by(signal.SIG_IGN):
        with held():
            press()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_blocks_in_other_threads_leave_the_handler_alone():
    seen = []

    def work():
        with held():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]


# Compilations.


@inlined
def one_more(x):
    return x + 1


@kernel
def twice_one_more(x):
    return 2 * one_more(x)


class Pressing(numba.core.event.Listener):
    """Presses Ctrl-C at every event."""

    def __init__(self):
        self.times = 0

    def on_start(self, _):
        self.times += 1
        press()

    def on_end(self, _):
        press()


def test_a_compilation_is_through_before_the_interrupt():
    # numba takes one of its locks for every part of a compilation, and for reading from disk.
    listener = Pressing()
    with (
        numba.core.event.install_listener("numba:compiler_lock", listener),
        pytest.raises(KeyboardInterrupt),
    ):
        twice_one_more(3.0)
    assert listener.times > 0
    assert len(twice_one_more.signatures) == 1
    assert twice_one_more(3.0) == 8.0
    assert twice_one_more(3) == 8


def test_calls_of_what_is_compiled_do_not_pass_through_python(monkeypatch):
    twice_one_more(1.5)
    monkeypatch.delattr(twice_one_more, "_compile_for_args")
    monkeypatch.setattr(type(twice_one_more), "_compile_for_args", None)
    assert twice_one_more(1.5) == 5.0


# Processes: the answer is that of Beta(1 + 1, 1 + 2) at 0.2, whatever happened before.

LEARNING = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
{before}
def learn():
    from betafield import SmoothBetaClassifier
    model = SmoothBetaClassifier(bandwidth=0.1, bounds=[[0, 1]])
    model.fit([[0.2], [0.25], [0.15], [0.9]], [1, 0, 0, 1])
    return model.predict_proba([[0.2]])[0, 1]
interrupts = 0
while True:
    try:
        found = learn()
        break
    except KeyboardInterrupt:
        interrupts += 1
assert abs(found - 0.4) < 1e-12, found
print(interrupts)
"""

AT_THE_IMPORT_OF = """
import os
class Pressing:
    def find_spec(self, name, path=None, target=None):
        if name == "{name}" and self in sys.meta_path:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Pressing())
"""


def interrupts_of(before):
    """Return how many interrupts a fresh process received before it answered."""
    command = [sys.executable, "-c", LEARNING.format(before=before)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return int(run.stdout)


@pytest.mark.parametrize(
    "name", [pytest.param("numpy.linalg", marks=pytest.mark.long), "numba.core.types"]
)
def test_a_process_interrupted_while_it_imports_works_on(name):
    assert interrupts_of(AT_THE_IMPORT_OF.format(name=name)) == 1
