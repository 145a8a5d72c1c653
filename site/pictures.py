"""Pictures of reports: screenshots where there is a browser, else the figures themselves."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

#: Browsers that Playwright can drive, as systems install them.
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
#: Sizes of a screen and of a phone, and the colors of each.
_VIEWS = {"light": (1100, 1500), "dark": (380, 800)}
#: The colors of figures outside of their report.
_COLORS = "--ink: currentColor; --faint: gray; --first: #1f6f8b; --second: #c8553d"
_GRID = "display: grid; gap: 1rem; grid-template-columns: repeat(auto-fill, minmax(15rem, 1fr))"


def browser() -> str | None:
    """Return the path of a browser that can take pictures; None without one."""
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return None
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def screenshots(report: Path) -> dict[str, bytes]:
    """Return pictures of a report, as PNG, by the name of their file: one light, one dark."""
    found = browser()
    if found is None:
        return {}
    from playwright.sync_api import sync_playwright

    taken = {}
    with sync_playwright() as driver:
        shell = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        for scheme, (width, height) in _VIEWS.items():
            page = shell.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
            page.goto(report.as_uri())
            taken[f"{report.stem}-{scheme}.png"] = page.screenshot()
            page.close()
        shell.close()
    return taken


def inline(report: str) -> str:
    """Return the figures of a report as HTML for a page of the site."""
    drawn = re.findall(r"<h2>([^<]*)</h2>\s*<figure>(.*?)</figure>", report, flags=re.S)
    figures = "\n".join(
        f"<figure>{re.sub(r'<!--.*?-->', '', svg, flags=re.S)}<figcaption>{title}</figcaption>"
        "</figure>"
        for title, svg in drawn
    )
    return f'<div style="{_GRID}; {_COLORS}">\n{figures}\n</div>\n'
