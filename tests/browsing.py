"""A browser for tests of pages, if there is one."""

import os
import shutil

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")


def browsers(of, options):
    """Yield a browser; without one, tests are skipped, or fail where all of them must run."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        why = f"no Chromium found for the tests of {of}: apt-get install chromium"
        if os.environ.get("CI") == "true":
            pytest.fail(why)
        pytest.skip(why)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=options)
        yield opened
        opened.close()
