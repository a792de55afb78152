"""A browser, and one local cloud for all tests of the page."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from local import digits
from local.cloud import Cloud, Options
from tests.page.lab import BROWSERS, Lab

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="module")  # Playwright keeps an event loop running, which must end with the module
def browser() -> Iterator[Browser]:
    program = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if program is None:
        pytest.skip("THE PAGE IS NOT TESTED: there is no Chromium here. On Debian: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="module")  # Playwright keeps an event loop running, which must end with the module
def shared_lab(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """One lab for all tests of a module."""
    home = tmp_path_factory.mktemp("page")
    (home / "digits").mkdir()
    digits.write(home / "digits")
    (home / "digits" / "job.yaml").write_text("inputs: {epochs: 3}\n")
    with Cloud.start(home / ".trainyard" / "cloud", Options()) as cloud:
        yield Lab(cloud, browser, Path(home / "digits"))


@pytest.fixture
def lab(shared_lab: Lab) -> Lab:
    """The shared lab, without faults of earlier tests."""
    shared_lab.faults.clear()
    return shared_lab
