"""What the site shows from outside `docs`: the guide to contributing, the changes, the examples.

Links in the pages are those of the repository, so that they work there too. Those that leave `docs`
are turned here into links of the site. Pictures become links to themselves, so that a tap enlarges
them, and long cells of tables are marked, so that they stay wide enough to read on a phone.
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
PICTURE = re.compile(r'(?<=<p>)<img [^>]*?src="([^"]+)"[^>]*>(?=</p>)')
CELL = re.compile(r"<td>(.*?)</td>", re.DOTALL)
LONG = 30  # characters


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


def on_page_content(html: str, **_: object) -> str:
    """Return the page with pictures that open on their own, and with long cells marked."""
    return CELL.sub(_marked, PICTURE.sub(r'<a href="\1">\g<0></a>', html))


def _marked(cell: re.Match[str]) -> str:
    is_long = len(re.sub(r"<[^>]*>", "", cell[1])) > LONG
    return f'<td class="long">{cell[1]}</td>' if is_long else cell[0]


def _moved(link: re.Match[str], source: str, shown: str) -> str:
    """Return a link of a page of the repository as one of the site."""
    opening, target, anchor, closing = link.groups(default="")
    found = normpath(join(str(PurePosixPath(source).parent), target))
    there = PAGES.get(found, found.removeprefix("docs/"))
    return opening + relpath(there, str(PurePosixPath(shown).parent)) + anchor + closing
