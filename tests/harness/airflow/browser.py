"""Chromium for tests of pages, driven by Playwright."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.harness.airflow.api_server import ApiServer

WIDE, NARROW = (1280, 900), (390, 844)

_PATIENCE = 240_000
"""Milliseconds that a busy machine may take to show something, or to answer a click."""

_ARGUMENTS = (
    "--no-sandbox",  # as root, as in containers
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start the system's Chromium; on Debian, root installs it first where there is none.

    Raises:
        FileNotFoundError: there is none, and it cannot be installed.
    """
    expect.set_options(timeout=_PATIENCE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_path() or _installed(), args=list(_ARGUMENTS))
        yield browser
        browser.close()


def _path() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def _installed() -> str:
    install = "apt-get install -y -qq --no-install-recommends chromium"
    if os.geteuid() == 0 and shutil.which("apt-get"):
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for command in ("apt-get update -qq", install):
            subprocess.run(command.split(), check=True, env=environment, stdout=subprocess.DEVNULL)
    path = _path()
    if path is None:
        raise FileNotFoundError(f"there is no chromium on PATH; on Debian 12, as root: {install}")
    return path


@contextmanager
def logged_in(
    browser: Browser, server: ApiServer, user: str, size: tuple[int, int] = WIDE, *, dark: bool = False
) -> Iterator[Page]:
    """Open a window in which a user has logged in by the form, with the errors of its scripts in ``page.faults``."""
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]}, color_scheme="dark" if dark else "light", timezone_id="UTC"
    )
    page = context.new_page()
    page.set_default_timeout(_PATIENCE)
    page.goto(f"{server.url}/auth/login")
    page.get_by_label("Username").fill(user)
    page.get_by_label("Password").fill(server.password)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(lambda url: "/auth/" not in url)
    yield page
    context.close()
