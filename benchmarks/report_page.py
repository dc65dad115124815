"""The HTML report of the whole gallery: how large it is, and how long a real Chromium takes to open it.

    python benchmarks/report_page.py               check the gallery, right and broken, and measure its page (ten minutes)
    python benchmarks/report_page.py REPORT.json   the same of a report that is there (`gradsmith check ... --output REPORT.json`)

Needs `pip install '.[html,browser]'` and a Chromium of the system. A page is open when it has loaded and a frame was drawn.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from gradsmith.findings import Report

ROOT = Path(__file__).resolve().parent.parent
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
RUNS = 7
DRAWN = "new Promise((done) => requestAnimationFrame(() => setTimeout(done)))"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(sys.argv[1]) if sys.argv[1:] else _checked(Path(folder) / "report.json")
        report = Report.from_dict(json.loads(kept.read_text(encoding="utf-8")))
        page = Path(folder) / "report.html"
        start = time.perf_counter()
        report.save(page)
        written = time.perf_counter() - start
        text = page.read_text(encoding="utf-8")
        print(f"{len(report.subjects)} subjects, {len(report.findings)} findings, {text.count('<svg')} charts")
        print(f"size {page.stat().st_size / 1e6:.2f} MB, written in {written:.1f} s")
        for width in (360, 1400):
            seconds = _opened(page, width)
            spread = f"{min(seconds):.2f} to {max(seconds):.2f} s"
            print(f"opens at {width} pixels in {statistics.median(seconds):.2f} s (median of {RUNS}; {spread})")


def _checked(file: Path) -> Path:
    folders = [str(ROOT / "examples" / name) for name in ("gallery", "broken")]
    call = [sys.executable, "-m", "gradsmith", "check", *folders, "--output", str(file), "--exit-zero", "--isolated"]
    subprocess.run(call, check=True)
    return file


def _opened(page: Path, width: int) -> list[float]:
    from playwright.sync_api import sync_playwright

    seconds = []
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        for _ in range(RUNS):
            tab = browser.new_page(viewport={"width": width, "height": 900})
            start = time.perf_counter()
            tab.goto(page.as_uri())
            tab.evaluate(DRAWN)
            seconds.append(time.perf_counter() - start)
            tab.close()
        browser.close()
    return seconds


if __name__ == "__main__":
    main()
