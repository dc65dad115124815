"""The tests that touch torch, and the verdicts on examples/, with another torch: results go to docs/compatibility.md.

    python tools/test_versions.py 2.8.0 [newest ...] [--only tests|failed|findings] [--tests PATH ...] [--venv FOLDER]

Each version gets a virtual environment outside the repository, which is removed after it: older wheels bring gigabytes. With
--venv it stays, and a run that was cut off goes on where it was when it is started again at the same commit. Exit status 1
if a test fails or a finding differs for a reason that tools/compatibility.py does not give.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from compatibility import REASONS, REFERENCE, ROOT, differences, judged, keep, kept, tested, tested_again

TESTS = (
    "tests/test_torch_facts.py", "tests/test_catalogue.py", "tests/test_check_extras.py", "tests/test_findings.py",
    "tests/conditions", "tests/deriving", "tests/explaining", "tests/explore", "tests/gallery", "tests/inputs", "tests/lab", "tests/measure",
    "tests/plugin", "tests/profiling", "tests/recording", "tests/recurrent",
)  # fmt: skip

_NEEDS = """
import json, sys
from importlib.metadata import requires
from pip._vendor.packaging.requirements import Requirement

package, extra = sys.argv[1:]
needs = [need for need in map(Requirement, requires(package) or ()) if not need.marker or need.marker.evaluate({"extra": extra})]
for need in needs:
    need.marker = None
print(json.dumps({need.name: str(need) for need in needs}))
"""


def environment(version: str, folder: Path) -> str:
    """The interpreter of an environment with this torch and all that the tests need; made where it is missing.

    Wheels of torch for Linux ask for gigabytes of CUDA, which no test here calls: empty libraries take their place.
    """
    python = str(folder / "bin" / "python")
    ready = folder / "ready"  # without it, making the environment was cut off
    if not ready.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-cache-dir"]
        subprocess.run([*install, "--no-deps", "torch" if version == "newest" else f"torch=={version}"], check=True)
        subprocess.run([*install, "--no-deps", "--editable", str(ROOT)], check=True)
        needs = _asked_for(python, "gradsmith", "dev") | _asked_for(python, "torch")  # the Triton that torch names
        wanted = [need for name, need in needs.items() if name != "torch" and not name.startswith(("nvidia", "cuda"))]
        subprocess.run([*install, *wanted], check=True)  # ends by telling what of CUDA is missing
        subprocess.run([python, str(ROOT / "tools" / "without_cuda.py")], check=True)
        ready.touch()
    return python


def _asked_for(python: str, package: str, extra: str = "") -> dict[str, str]:
    """What an installed package asks for on this system, by name and without the conditions."""
    found: dict[str, str] = json.loads(_said(python, _NEEDS, package, extra))
    return found


def examined(python: str, folder: Path) -> dict[str, list[str]]:
    """Verdicts and findings on examples/, with a cache of their own."""
    call = [python, "-m", "gradsmith", "check", ".", "--format", "json", "--exit-zero", "--isolated"]
    own = {**os.environ, "GRADSMITH_CACHE_DIR": str(folder / "cache"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(call, cwd=ROOT / "examples", env=own, stdout=subprocess.PIPE, text=True, check=True)
    return judged(json.loads(done.stdout))


def _said(python: str, code: str, *words: str) -> str:
    return subprocess.run([python, "-c", code, *words], capture_output=True, text=True, check=True).stdout.strip()


def tried(version: str, asked: argparse.Namespace, folder: Path) -> list[str]:
    """What is wrong with this version and not explained."""
    python = environment(version, Path(asked.venv) if asked.venv else folder / "venv")
    version = _said(python, "import torch; print(torch.__version__)").partition("+")[0]
    keep("torch", version, python=_said(python, "import platform; print(platform.python_version())"))
    if asked.only == "failed":
        keep("torch", version, tests=tested_again(python, kept()["torch"][version].get("tests", {})))
    elif asked.only != "findings":
        for area in asked.tests or TESTS:  # each is kept as soon as it is known
            keep("torch", version, tests=tested(python, [area], Path(asked.venv or folder), asked.jobs))
    if asked.only in (None, "findings"):
        keep("torch", version, subjects=examined(python, folder))
    results = kept()["torch"]
    own, reference = results[version], results.get(REFERENCE, {}).get("subjects", {})
    failed = [name for counts in own.get("tests", {}).values() for name in counts["failed"]]
    wrong = [f"{version}: {name} failed" for name in failed if name not in REASONS]
    if reference and "subjects" in own:
        different = differences(own["subjects"], reference).items()
        wrong += [f"{version}: {key}: {words}" for key, words in different if key not in REASONS]
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("versions", nargs="+", help="such as 2.8.0, or newest")
    parser.add_argument("--only", choices=("tests", "failed", "findings"), help="`failed`: what failed the last time")
    parser.add_argument("--tests", nargs="*", metavar="PATH", help="these tests instead of all that touch torch")
    parser.add_argument("--jobs", type=int, default=2, help="processes for pytest [2]")
    parser.add_argument("--venv", metavar="FOLDER", help="use this environment, or make it here and keep it")
    asked = parser.parse_args()
    wrong = []
    for version in asked.versions:
        folder = Path(tempfile.mkdtemp(prefix="gradsmith-torch-"))
        try:
            wrong += tried(version, asked, folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    print("\n".join(wrong) or "as expected")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
