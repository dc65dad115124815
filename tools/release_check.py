"""Is this tree ready to be released? One line for each thing to look at; exit status 1 if one is not ready.

    python tools/release_check.py

`make release-check` runs this first, then what takes long: the site, gradsmith on itself, and all tests.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# What a wheel must hold beside the code: they are read at run time.
CARRIED = ("py.typed", "rules/codes.txt", "report/page/page.html.j2", "report/page/page.css", "report/page/page.js")


def versions() -> Iterator[str]:
    """All places that name the version name the same one."""
    places = {
        "pyproject.toml": r'^version = "(.+)"',
        "src/gradsmith/about.py": r'^VERSION = "(.+)"',
        "CITATION.cff": r"^version: (\S+)",
        "CHANGELOG.md": r"^## (\S+)",
    }
    found = {place: re.search(pattern, _read(place), re.M) for place, pattern in places.items()}
    named = {place: match[1] if match else "none" for place, match in found.items()}
    if len({*named.values()}) > 1:
        yield ", ".join(f"{place} says {version}" for place, version in named.items())


def changelog() -> Iterator[str]:
    first = re.search(r"^## .*$", _read("CHANGELOG.md"), re.M)
    if first is None or "unreleased" in first[0]:
        yield "CHANGELOG.md: the newest version still is (unreleased); write its date"


def tree() -> Iterator[str]:
    changed = subprocess.run(["git", "status", "--short"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    if changed:
        yield f"{len(changed.splitlines())} files are not committed"


def wheel() -> Iterator[str]:
    """A wheel can be built, and carries what is read at run time."""
    with tempfile.TemporaryDirectory() as folder:
        call = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, str(ROOT)]
        done = subprocess.run(call, capture_output=True, text=True, check=False)
        made = list(Path(folder).glob("*.whl"))
        if done.returncode or not made:
            yield f"no wheel: {(done.stderr.strip() or 'pip said nothing').splitlines()[-1]}"
            return
        names = zipfile.ZipFile(made[0]).namelist()
        yield from (f"the wheel lacks {name}" for name in CARRIED if f"gradsmith/{name}" not in names)


def figures() -> Iterator[str]:
    """Benchmarks whose figures the page of evidence does not have."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    import evidence

    missing = [entry.name for entry in evidence.ENTRIES if not (evidence.KEPT / f"{entry.name}.json").is_file()]
    if missing:
        yield f"not measured: {', '.join(missing)} (python benchmarks/evidence.py run NAME)"


def _read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def main() -> int:
    failed = 0
    for check in (versions, changelog, tree, wheel, figures):
        problems = list(check())
        print(f"{check.__name__}: {'; '.join(problems) if problems else 'ready'}", flush=True)
        failed += len(problems)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
