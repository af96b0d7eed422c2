"""The pages, and the Python blocks in them: run one after the other, as a reader would.

`python docs/_pages.py` runs the blocks of all pages, or of those named, and brings up to date the
pictures that they save. The tests run the same blocks.
"""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
PICTURE = re.compile(r"!\[[^\]]*\]\(([^)\s]+)\)")


def pages() -> list[Path]:
    """Return every page that people read, those of the repository's front first."""
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path) -> list[str]:
    """Return the Python blocks of a page."""
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def run(page: Path, folder: Path) -> dict[str, Any]:
    """Return what the blocks of a page define, run in a folder that has the examples."""
    os.environ["MPLBACKEND"] = "Agg"  # pictures are saved, not shown
    (folder / "examples").symlink_to(ROOT / "examples", target_is_directory=True)
    scope: dict[str, Any] = {"__name__": "__main__"}
    text = page.read_text(encoding="utf-8")
    with _inside(folder):
        for block in BLOCK.finditer(text):
            above = "\n" * text.count("\n", 0, block.start(1))  # so that errors name the line
            exec(compile(above + block[1], str(page), "exec"), scope)
    return scope


def pictures(page: Path, folder: Path) -> dict[Path, Path]:
    """Return the pictures that the blocks saved, each with its place beside the page."""
    shown = {(page.parent / name).resolve() for name in PICTURE.findall(page.read_text("utf-8"))}
    saved = {path.name: path for path in folder.rglob("*.png")}
    return {saved[path.name]: path for path in sorted(shown) if path.name in saved}


@contextmanager
def _inside(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def main(*names: str) -> None:
    """Run pages, and replace the pictures that they make."""
    for page in [Path(name).resolve() for name in names] or pages():
        with TemporaryDirectory() as folder:
            run(page, Path(folder))
            for saved, place in pictures(page, Path(folder)).items():
                place.write_bytes(saved.read_bytes())


if __name__ == "__main__":
    main(*sys.argv[1:])
