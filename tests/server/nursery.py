"""Server processes that start at once: children of a process that has imported everything.

The imports of a server take longer than most tests and than a kill; a child forked afterwards has
them. Otherwise it is like a process started by `python -m betafield`, with its own standard output
and environment.
"""

import array
import atexit
import contextlib
import functools
import json
import os
import select
import signal
import socket
import subprocess
import sys


class Child:
    """A process of the nursery, with the methods of `subprocess.Popen` that tests use."""

    def __init__(self, nursery, arguments, environment):
        self.args = [sys.executable, "-m", "betafield", *arguments]
        self._nursery, self.returncode = nursery, None
        (out, to_out), (err, to_err) = os.pipe(), os.pipe()
        request = {"arguments": arguments, "environment": environment}
        self.pid = nursery.call(request, [to_out, to_err])
        os.close(to_out)
        os.close(to_err)
        self.stdout, self.stderr = os.fdopen(out), os.fdopen(err)
        self._alive = os.pidfd_open(self.pid)

    def poll(self):
        """Return its exit status, None while it runs."""
        return self.returncode if self.returncode is not None else self._ended(0)

    def wait(self, timeout=None):
        """Return its exit status once it has ended."""
        if self.returncode is None and self._ended(timeout) is None:
            raise subprocess.TimeoutExpired(self.args, timeout)
        return self.returncode

    def _ended(self, timeout):
        if select.select([self._alive], [], [], timeout)[0]:
            self.returncode = self._nursery.call({"ended": self.pid}, [])
            os.close(self._alive)
        return self.returncode

    def send_signal(self, number):
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            signal.pidfd_send_signal(self._alive, number)


class Nursery:
    """The parent process of all servers; it ends with the process that started it."""

    def __init__(self):
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        code = f"from tests.server.nursery import nurse; nurse({theirs.fileno()})"
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", code], pass_fds=[theirs.fileno()], env=environment
            )

        atexit.register(self._close)

    def _close(self):
        self._socket.close()
        self._process.wait()

    def call(self, request, descriptors):
        """Return the answer of the process."""
        some = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
        self._socket.sendmsg([json.dumps(request).encode()], some if descriptors else [])
        return json.loads(self._socket.recv(1 << 16))


@functools.cache
def nursery():
    """Return the nursery of this process."""
    return Nursery()


def nurse(number):
    """Fork a server for each request that comes over a socket."""
    import uvicorn  # noqa: F401

    import betafield.server.running  # noqa: F401
    from betafield.cli import main

    with socket.socket(fileno=number) as requests:
        while True:
            data, descriptors, _, _ = socket.recv_fds(requests, 1 << 20, 2)
            if not data:
                return
            request = json.loads(data)
            if "ended" in request:
                status = os.waitstatus_to_exitcode(os.waitpid(request["ended"], 0)[1])
                requests.send(json.dumps(status).encode())
                continue
            pid = os.fork()
            if pid == 0:
                requests.close()
                _become(main, request, descriptors)
            for each in descriptors:
                os.close(each)
            requests.send(json.dumps(pid).encode())


def _become(main, request, descriptors):
    """Become a server, and never return."""
    status = 1
    with contextlib.suppress(BaseException):
        for target, descriptor in enumerate(descriptors, 1):
            os.dup2(descriptor, target)
            os.close(descriptor)
        os.environ.clear()
        os.environ.update(request["environment"])
        status = main(request["arguments"])
    sys.stdout.flush()
    os._exit(status or 0)
