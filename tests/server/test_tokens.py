"""A server's tokens: never older than its latest reading."""

import contextlib
import threading

from tests.server.serving import DOTS

from betafield.server.definitions import Definition
from betafield.server.storage import Store
from betafield.server.studies import Studies
from betafield.server.tokens import Tokens


class Lagging(Store):
    """A store in which a thread named "late" is paused after reading."""

    def __init__(self, path):
        self.has_read, self.may_go_on = threading.Event(), threading.Event()
        super().__init__(path, serving=True)

    @contextlib.contextmanager
    def reading(self):
        with super().reading() as connection:
            yield connection
        if threading.current_thread().name == "late":
            self.has_read.set()
            assert self.may_go_on.wait(60)


def test_a_read_that_began_before_a_study_was_made_does_not_forget_its_tokens(tmp_path):
    store = Lagging(str(tmp_path / "study.db"))
    known = Tokens(store, "the server's own token")
    late = threading.Thread(target=known.refresh, name="late")
    late.start()
    assert store.has_read.wait(60)
    made = Studies(store).create(Definition.of(DOTS))["tokens"]
    newer = threading.Thread(target=known.refresh)
    newer.start()
    newer.join(1.0)  # it waits for the late one, and would otherwise be done by now
    store.may_go_on.set()
    late.join()
    newer.join()
    found = known.holder(made["run"])
    known.close()
    store.close()
    assert found is not None
    assert found.role == "run"
