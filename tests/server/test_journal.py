"""The client's journal: what was stored stays, whatever happens during writes."""

import subprocess
import sys

import pytest

from betafield.client.journal import Journal


def test_a_journal_has_one_user_and_one_study(tmp_path):
    journal = Journal(tmp_path / "j", "dots")
    with pytest.raises(ValueError, match="in use by another"):
        Journal(tmp_path / "j", "dots")
    journal.add("a", "/trials", {})
    journal.close()
    with pytest.raises(ValueError, match=r"line 1 of .* is of the study 'dots', not 'lines'"):
        Journal(tmp_path / "j", "lines")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"\xff\xfe", "line 2 of .* is not a JSON object"),
        (b"[1, 2]", "line 2 of .* is not a JSON object"),
        (b"", "line 2 of .* is not a JSON object"),
        (b'{"key": 3}', "line 2 of .* has no valid 'key'"),
        (b'{"key": "a", "study": "dots", "path": "/", "body": 1}', "has no valid 'body'"),
    ],
)
def test_damage_before_the_last_line_is_refused_and_left_as_it_is(tmp_path, line, message):
    journal = Journal(tmp_path / "j", "dots")
    journal.add("a", "/trials", {})
    journal.close()
    with (tmp_path / "j").open("ab") as file:
        file.write(line + b'\n{"done": "b"}\n')
    before = (tmp_path / "j").read_bytes()
    with pytest.raises(ValueError, match=message):
        Journal(tmp_path / "j", "dots")
    assert (tmp_path / "j").read_bytes() == before


def test_a_journal_that_was_cut_at_any_byte_keeps_all_whole_lines(tmp_path):
    path = tmp_path / "j"
    journal = Journal(path, "dots")
    ends = []
    for i in range(3):
        journal.add(str(i), f"/trials/{i}/outcome", {"success": True})
        ends.append(path.stat().st_size)
    journal.close()
    data = path.read_bytes()
    for size in range(len(data) + 1):
        path.write_bytes(data[:size])
        journal = Journal(path, "dots")
        assert len(journal.unsent) == sum(end <= size for end in ends)
        journal.add("new", "/trials", {})
        journal.close()
        journal = Journal(path, "dots")
        assert list(journal.unsent)[-1] == "new"
        journal.close()


def test_what_is_done_or_refused_is_not_sent_again(tmp_path):
    journal = Journal(tmp_path / "j", "dots")
    for key in "abc":
        journal.add(key, f"/{key}", {"success": True})
    journal.done("b")
    journal.refuse("a", "told before")
    journal.close()
    again = Journal(tmp_path / "j", "dots")
    assert list(again.unsent) == ["c"]
    assert [(each["path"], each["why"]) for each in again.refused] == [("/a", "told before")]
    again.close()


FULL = """
import resource, signal, sys
from betafield.client.journal import Journal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
journal = Journal(sys.argv[1], "dots")
journal.add("a", "/trials", {"x": 1})
limit = journal.path.stat().st_size + 20
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
try:
    journal.add("b", "/trials", {"x": 1})
except OSError as error:
    print("refused")
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
journal.add("c", "/trials", {"x": 1})
print(*journal.unsent)
journal.close()
print(*Journal(sys.argv[1], "dots").unsent)
"""


def test_a_full_disk_leaves_no_half_line(tmp_path):
    command = [sys.executable, "-c", FULL, str(tmp_path / "j")]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines() == ["refused", "a c", "a c"]
