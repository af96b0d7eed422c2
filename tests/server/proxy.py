"""A failing network: a forwarder that cuts connections at any byte, in either direction."""

import contextlib
import random
import socket
import struct
import threading
from urllib.parse import urlsplit

# Closing a connection with this option resets it, instead of ending it properly.
AT_ONCE = struct.pack("ii", 1, 0)


class Proxy:
    """Forwards connections to an address; cuts some of them while `is_cutting`."""

    def __init__(self, address, seed=0, most=1500):
        self.target = urlsplit(address).hostname, urlsplit(address).port
        self.is_cutting, self.cut, self.opened = False, 0, 0
        self._rng, self._most = random.Random(seed), most
        self._guard = threading.Lock()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                self.opened += 1
                threading.Thread(target=self._forward, args=(client,), daemon=True).start()

    def _forward(self, client):
        try:
            server = socket.create_connection(self.target)
        except OSError:
            self._end(client)
            return
        with self._guard:
            limits = [self._rng.randrange(self._most) for _ in range(2)]
        ways = ((client, server, limits[0]), (server, client, limits[1]))
        for way in ways:
            threading.Thread(target=self._copy, args=way, daemon=True).start()

    def _copy(self, source, target, limit):
        """Copy bytes until one side ends, or up to the limit while connections are cut."""
        passed = 0
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                if self.is_cutting and passed + len(data) > limit:
                    target.sendall(data[: max(0, limit - passed)])
                    self.cut += 1
                    break
                target.sendall(data)
                passed += len(data)
        self._end(source)
        self._end(target)

    def _end(self, connection):
        with contextlib.suppress(OSError):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
            connection.shutdown(socket.SHUT_RDWR)
        connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._listening.close()
