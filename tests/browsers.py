"""Browser of the system, Debian's package `chromium`, for tests of pages."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@contextmanager
def chromium() -> Iterator[Browser]:
    """Context with the browser; skips where there is none, but fails in CI."""
    from playwright.sync_api import sync_playwright

    path = shutil.which('chromium')
    if path is None:
        missing = 'the page is tested in Chromium: apt-get install chromium'
        pytest.fail(missing) if os.environ.get('CI') else pytest.skip(missing)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=['--no-sandbox'])
        yield browser
        browser.close()
