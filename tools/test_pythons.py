"""Tests of lint and of the source model with other Pythons, without torch: results go to docs/compatibility.md.

    python tools/test_pythons.py python3.10 /path/to/python3.14 ...

Each interpreter gets a virtual environment outside the repository, which is removed after it.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from compatibility import ROOT, keep, kept, tested

TESTS = ("tests/lint", "tests/source")
NEEDED = (
    "pytest>=8",
    "pytest-xdist",
    "hypothesis",
    "jsonschema",
    "nbformat",
    "numpy",
    "jinja2>=3.1",
    "matplotlib>=3.8",
)


def environment(python: str, folder: Path) -> str:
    """The interpreter of a new environment. It has no pip of its own: not every distribution of Python brings one."""
    subprocess.run([python, "-m", "venv", "--without-pip", str(folder)], check=True)
    made = str(folder / "bin" / "python")
    install = [sys.executable, "-m", "pip", "--python", made, "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, *NEEDED, "--editable", str(ROOT)], check=True)
    return made


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pythons", nargs="+", help="interpreters, by name or path")
    parser.add_argument("--jobs", type=int, default=2, help="processes for pytest [2]")
    asked = parser.parse_args()
    failed = []
    for python in asked.pythons:
        folder = Path(tempfile.mkdtemp(prefix="gradsmith-python-"))
        try:
            made = environment(python, folder / "venv")
            call = [made, "-c", "import platform; print(platform.python_version())"]
            version = subprocess.run(call, capture_output=True, text=True, check=True).stdout.strip()
            keep("python", version, tests=tested(made, TESTS, folder, asked.jobs))
            failed += [
                f"{version}: {name} failed"
                for counts in kept()["python"][version]["tests"].values()
                for name in counts["failed"]
            ]
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    print("\n".join(failed) or "as expected")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
