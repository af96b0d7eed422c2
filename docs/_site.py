"""What the site shows from outside `docs`: the guide to contributing, the changes, the examples.

Links in the pages are those of the repository, so that they work there too. Those that leave `docs`
are turned here into links of the site.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from posixpath import join, normpath, relpath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

PAGES = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "CODE_OF_CONDUCT.md": "code_of_conduct.md",
}
OTHERS = ("examples/*.py", "paper/results.json")
LINK = re.compile(r"(\]\()([^)#:\s]+)(#[^)\s]*)?(\))")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what stands outside `docs`."""
    from mkdocs.structure.files import File

    root = Path(config.config_file_path).parent
    outside = [path for pattern in OTHERS for path in sorted(root.glob(pattern))]
    names = dict(PAGES)
    names |= {name: name for name in (path.relative_to(root).as_posix() for path in outside)}
    for name, shown in names.items():
        files.append(File.generated(config, shown, abs_src_path=str(root / name)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Return the page with its links as they are in the site."""
    shown = page.file.src_uri
    source = {there: name for name, there in PAGES.items()}.get(shown, f"docs/{shown}")
    return LINK.sub(lambda link: _moved(link, source, shown), markdown)


def _moved(link: re.Match[str], source: str, shown: str) -> str:
    """Return a link of a page of the repository as one of the site."""
    opening, target, anchor, closing = link.groups(default="")
    found = normpath(join(str(PurePosixPath(source).parent), target))
    there = PAGES.get(found, found.removeprefix("docs/"))
    return opening + relpath(there, str(PurePosixPath(shown).parent)) + anchor + closing
