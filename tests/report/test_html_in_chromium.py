"""The HTML report in a real browser: Chromium with Playwright and axe-core (`pip install '.[browser]'`, Debian's chromium)."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from .pages import hostile, real

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
NEEDED = {"playwright": find_spec("playwright"), "axe-core-python": find_spec("axe_core_python"), "Chromium": CHROMIUM}
MISSING = ", ".join(name for name, found in NEEDED.items() if not found)
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {MISSING}")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    made = {"real": real(), "hostile": hostile(folder)}
    for name, report in made.items():
        report.save(folder / f"{name}.html")
    return {name: folder / f"{name}.html" for name in made}


class Visit:
    """One page, opened; everything that the browser complains about or asks the network for is kept."""

    def __init__(self, browser: Any, file: Path, **options: Any) -> None:
        self.complaints: list[str] = []
        self.page = browser.new_page(**options)
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on(
            "request", lambda request: self.complaints.extend([request.url] if "file:" not in request.url else [])
        )
        self.page.goto(file.as_uri())

    def shown(self, what: str) -> int:
        return int(self.page.locator(f"{what}:visible").count())


@pytest.mark.parametrize("name", ["real", "hostile"])
@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1400, "light")])
def test_nothing_is_complained_about_and_nobody_is_kept_out(
    browser: Any, pages: dict[str, Path], name: str, width: int, scheme: str
) -> None:
    size = {"width": width, "height": 900}
    visit = Visit(browser, pages[name], viewport=size, color_scheme=scheme, bypass_csp=True)
    assert visit.complaints == []
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
    visit.page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    import axe_core_python

    visit.page.evaluate((Path(axe_core_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8"))
    found = visit.page.evaluate("axe.run()")["violations"]
    assert [(v["id"], v["impact"]) for v in found if v["impact"] in ("serious", "critical")] == []


def test_hostile_names_and_messages_stay_text(browser: Any, pages: dict[str, Path]) -> None:
    visit = Visit(browser, pages["hostile"])
    assert visit.page.evaluate("window.broken") is None
    assert visit.page.locator("img").count() == 0
    assert "{{ 7 * 7 }}" in visit.page.locator("h2").all_inner_texts()[-3]


def test_filters_show_what_they_name_and_the_count_is_told(browser: Any, pages: dict[str, Path]) -> None:
    visit = Visit(browser, pages["hostile"])
    status = visit.page.locator("#shown")
    assert (visit.shown(".finding"), status.inner_text()) == (2, "2 of 2 findings shown")
    visit.page.uncheck("[name=severity][value=warning]")
    assert (visit.shown(".finding"), status.inner_text()) == (1, "1 of 2 findings shown")
    visit.page.click("[type=reset]")
    visit.page.locator(
        "#shown", has_text="2 of"
    ).wait_for()  # a function would be evaluated in the page, whose policy forbids that
    visit.page.select_option("[name=rule]", "tensor-on-ctx")
    assert (visit.shown(".finding"), visit.shown(".card"), visit.shown(".index tbody tr")) == (1, 1, 1)
    visit.page.fill("[name=words]", "not there")
    assert visit.shown(".card") == 0


def test_it_can_be_used_by_keyboard_and_the_script_be_copied(browser: Any, pages: dict[str, Path]) -> None:
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    visit = Visit(context, pages["real"])
    visit.page.keyboard.press("Tab")
    assert visit.page.evaluate("document.activeElement.className") == "skip"
    visit.page.locator("summary", has_text="See it again").first.press("Enter")
    visit.page.locator(".copy:visible").first.press("Enter")
    visit.page.locator(".copy", has_text="Copied").first.wait_for()
    assert visit.page.evaluate("navigator.clipboard.readText()").startswith("# Plain PyTorch")


def test_it_can_be_printed(browser: Any, pages: dict[str, Path], tmp_path: Path) -> None:
    visit = Visit(browser, pages["real"])
    visit.page.pdf(path=tmp_path / "report.pdf")
    assert (tmp_path / "report.pdf").stat().st_size > 10_000
