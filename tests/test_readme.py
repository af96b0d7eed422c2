"""Every Python block of the README runs, as a reader would run it."""

import re
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"


def test_the_readme_runs():
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    for block in blocks:
        scope = {}
        exec(compile(block, str(README), "exec"), scope)
        low, high = scope["low"], scope["high"]
        assert (low < [0.8, 0.5]).all()
        assert (high > [0.8, 0.5]).all()
