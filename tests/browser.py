"""A real browser for the tests that look at pages, and pages whose complaints and requests are written down."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = "/usr/bin/chromium"


def give_up(reason: str) -> None:
    """Skip with a clear word, or fail where a browser is promised."""
    if os.environ.get("LAPWING_NEED_BROWSER") == "1":
        pytest.fail(f"LAPWING_NEED_BROWSER=1, but {reason}")
    pytest.skip(reason)


def launched() -> Iterator[Any]:
    """Chromium, closed at the end; the body of a fixture."""
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError:
        give_up("playwright is not installed: pip install -e '.[test]'")
    found = os.environ.get("LAPWING_CHROMIUM") or shutil.which("chromium") or CHROMIUM
    if not Path(found).exists():
        give_up(f"there is no Chromium at {found}: apt-get install chromium, or set LAPWING_CHROMIUM")
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        except Error as error:
            give_up(f"Chromium does not start: {error}")
        yield browser
        browser.close()
