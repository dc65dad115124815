"""The scripts of docs/found.md under "Kernels", taken from the page and run: what each prints, or what a check of it reports.

    python benchmarks/kernels_found.py /tmp/kernels/pkgs [MORE FOLDERS ...] [--only "liger-kernel 0.8.5"]

The page names the release that each script needs; the folders are searched for packages in the order in which they are given.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "found.md"
LIMIT_S = 300


def scripts() -> Iterator[tuple[str, str]]:
    """Headings, and the script below each."""
    section = PAGE.read_text(encoding="utf-8").partition("\n## Kernels\n")[2]
    for entry in section.split("\n### ")[1:]:
        for script in re.findall(r"^```\n(.*?)^```$", entry, re.MULTILINE | re.DOTALL):
            yield entry.partition("\n")[0], script


def run(script: str, folders: list[str]) -> list[str]:
    """The lines that matter: all that a script prints, or findings and verdict of a check."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "shown.py"
        path.write_text(script, encoding="utf-8")
        is_checked = "gradsmith_inputs" in script
        command = [sys.executable, *(("-m", "gradsmith", "check") if is_checked else ()), str(path)]
        around = {**os.environ, "PYTHONPATH": os.pathsep.join([*folders, os.environ.get("PYTHONPATH", "")])}
        done = subprocess.run(command, env=around, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    lines = done.stdout.splitlines()
    if is_checked:
        return [line for line in lines if re.match(r"error|  -->|refuted|verified|unverified", line)] or [done.stderr]
    return lines or [done.stderr]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--only", default="", help="words of a heading")
    chosen = parser.parse_args()
    for heading, script in scripts():
        if chosen.only in heading:
            print(heading)
            print(*(f"    {line}" for line in run(script, chosen.folders)), sep="\n", flush=True)


if __name__ == "__main__":
    main()
