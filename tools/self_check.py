"""gradsmith on itself: every Function of the package, the gallery, the ops, the templates, the pages of rules and the documents.

    python tools/self_check.py [PART ...] [--jobs N]     package, gallery, templates, ops, pages, documents

Each passes lint (no error; none of the package's own has a warning), check at level standard (verified), and profile (it runs, and
nothing it finds is an error). N files are worked on at a time, by default one for each core. One line for each part with its time,
one for each thing that does not pass; exit status 1 if there is one.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import json
import operator
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

import gradsmith as gs
from gradsmith.catalog import rules
from gradsmith.findings import Report

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
CORES = os.cpu_count() or 1
jobs = CORES


def package() -> Iterator[tuple[str, list[str]]]:
    """The source of gradsmith itself: read. What runs of it is checked as ops."""
    report = gs.lint([str(ROOT / "src" / "gradsmith")])
    yield f"lint of {report.functions} Functions", _told(report, "warning")


def gallery() -> Iterator[tuple[str, list[str]]]:
    yield from _files(ROOT / "examples" / "gallery")


def templates() -> Iterator[tuple[str, list[str]]]:
    """What `gradsmith new` writes, for each pattern."""
    from gradsmith.writing.patterns import NAMES

    with tempfile.TemporaryDirectory() as folder:
        for pattern in NAMES:
            file = Path(folder) / f"{pattern.replace('-', '_')}_op.py"
            call = [sys.executable, "-m", "gradsmith", "new", file.stem, "--pattern", pattern, "--output", str(file)]
            subprocess.run(call, check=True, capture_output=True)
        yield from _files(Path(folder))


def pages() -> Iterator[tuple[str, list[str]]]:
    """The right example of every rule, as its page shows it."""
    with tempfile.TemporaryDirectory() as folder:
        for rule in rules().values():
            if "gradsmith_inputs" in rule.good and not rule.package:
                (Path(folder) / f"{rule.name.replace('-', '_')}.py").write_text(rule.good, encoding="utf-8")
        yield from _files(Path(folder))


def documents() -> Iterator[tuple[str, list[str]]]:
    """The Functions that README and docs/ define, each as the page leaves it: a page may show a wrong one first.

    What is meant to be wrong to the end stands under `<!-- wrong on purpose -->`. The page of myths is about what goes wrong.
    """
    with tempfile.TemporaryDirectory() as folder:
        for page in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]):
            if page.name != "myths.md":
                for name, source in functions_in(page.read_text(encoding="utf-8")).items():
                    file = f"{'_'.join(page.relative_to(ROOT).with_suffix('').parts)}_{name}.py"
                    (Path(folder) / file).write_text(source, encoding="utf-8")
        yield from _files(Path(folder))


_BLOCK = re.compile(
    r"(?P<wrong>^<!-- wrong on purpose -->\n)?(?:^<!-- setup:\n(?:(?!-->).)*-->\n)?^```python\n(?P<code>.*?)^```$",
    re.M | re.S,
)


def functions_in(text: str) -> dict[str, str]:
    """The last definition that a page shows of every Function, as a file of its own, with the inputs that the page declares for it."""
    sources: dict[str, str] = {}
    inputs: dict[str, str] = {}
    for block in _BLOCK.finditer(text):
        lines = block["code"].splitlines()
        for node in ast.parse(block["code"]).body:
            first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
            written = "\n".join(lines[first - 1 : node.end_lineno])
            if isinstance(node, ast.ClassDef) and any(ast.unparse(b).endswith("Function") for b in node.bases):
                sources[node.name] = "" if block["wrong"] else written
            elif written.startswith("gradsmith_inputs"):
                inputs.update({name: written for name in sources if f'"{name}"' in written})
    head = "import torch\n\nimport gradsmith as gs\n\n\n"
    return {name: f"{head}{source}\n\n\n{inputs.get(name, '')}\n" for name, source in sources.items() if source}


def ops() -> Iterator[tuple[str, list[str]]]:
    """The building blocks, on the cases that their tests have: every process takes each `jobs`-th of them."""
    shares = _at_once([[sys.executable, __file__, "--share", f"{n}/{jobs}"] for n in range(jobs)])
    told: list[dict[str, Any]] = [
        _last(done) if done.returncode == 0 else {"cases": 0, "wrong": _died(done), "slow": []} for done in shares
    ]
    cases = sum(share["cases"] for share in told)
    yield f"check of {cases} ops", [line for share in told for line in share["wrong"]]
    yield f"profile of {cases} ops", [line for share in told for line in share["slow"]]


def share_of_ops(number: int, of: int) -> dict[str, Any]:
    """What one process finds: how many cases were its own, what is not verified, what the profiler calls an error."""
    from tests.ops.op_cases import CASES

    wrong, slow, mine = [], [], CASES[number::of]
    for case in mine:
        report = gs.check(case.ours, *case.inputs(), reference=case.plain, level="standard")
        wrong += [f"{case}: {line}" for line in _told(report)]
        profile = gs.profile(case.ours, *case.inputs())
        slow += [f"{case}: {f.message}" for f in profile.findings if f.severity == "error"]
    return {"cases": len(mine), "wrong": wrong, "slow": slow}


def _files(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Files of Functions through all three."""
    linted = gs.lint([str(folder)])
    yield f"lint of {linted.functions} Functions", _told(linted)
    checked = gs.check_paths(str(folder), level="standard", jobs=jobs)
    yield f"check of {len(checked.subjects)} subjects", _told(checked)
    yield _profiled([(s.path, s.name) for s in checked.subjects if s.path and s.verdict == "verified"])


def _profiled(subjects: list[tuple[str, str]]) -> tuple[str, list[str]]:
    """Those that were verified, many in one process: one alone takes seconds to import what a profile needs.

    What the machine's load does to the figures is not judged.
    """
    tasks = [json.dumps(subjects[n::jobs]) for n in range(jobs) if subjects[n::jobs]]
    shares = _at_once([[sys.executable, __file__, "--profiles", task] for task in tasks])
    problems = [line for done in shares for line in (_last(done) if done.returncode == 0 else _died(done))]
    return f"profile of {len(subjects)} subjects", problems


def profiles(subjects: list[tuple[str, str]]) -> list[str]:
    """What the profiler calls an error, and what it cannot run."""
    problems = []
    modules: dict[str, ModuleType] = {}
    for number, (path, name) in enumerate(subjects):
        try:
            if path not in modules:
                modules[path] = _imported(path, f"self_check_{number}")
            found = gs.profile(operator.attrgetter(name)(modules[path]), budget=0.3, growth=False).findings
        except Exception as error:  # whatever a file or a subject raises is the answer
            problems.append(f"{path}: {name} cannot be profiled: {type(error).__name__}: {error}")
            continue
        problems += [f"{path}: {f.rule}: {f.message}" for f in found if f.severity == "error"]
    return problems


def _imported(path: str, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _at_once(calls: list[list[str]]) -> list[subprocess.CompletedProcess[str]]:
    """Processes side by side; each computes with its share of the cores."""
    own = {**os.environ, "OMP_NUM_THREADS": str(max(1, CORES // jobs)), "TRITON_INTERPRET": "1"}
    with ThreadPoolExecutor(len(calls) or 1) as pool:
        return list(
            pool.map(lambda call: subprocess.run(call, capture_output=True, text=True, check=False, env=own), calls)
        )


def _last(done: subprocess.CompletedProcess[str]) -> Any:
    """The last line: a file may print while it is imported."""
    return json.loads(done.stdout.splitlines()[-1])


def _died(done: subprocess.CompletedProcess[str]) -> list[str]:
    return [f"exit status {done.returncode}: {(done.stderr.strip() or 'no word').splitlines()[-1]}"]


def _told(report: Report, least: str = "error") -> list[str]:
    bad = [
        f"{f.path}:{f.line}: {f.rule}: {f.message}"
        for f in report.at_least("warning" if least == "warning" else "error")
    ]
    return bad + [f"{s.path}: {s.name} {s.verdict}: {s.reason}" for s in report.subjects if s.verdict != "verified"]


PARTS: dict[str, Callable[[], Iterator[tuple[str, list[str]]]]] = {
    "package": package,
    "gallery": gallery,
    "templates": templates,
    "ops": ops,
    "pages": pages,
    "documents": documents,
}


def main() -> int:
    global jobs
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART")
    parser.add_argument("--jobs", type=int, default=jobs)
    parser.add_argument("--share", help=argparse.SUPPRESS)  # one process of `ops`
    parser.add_argument("--profiles", help=argparse.SUPPRESS)  # one process of profiles
    given = parser.parse_args()
    jobs = max(1, given.jobs)
    torch.manual_seed(0)
    if given.share:
        number, _, of = given.share.partition("/")
        print(json.dumps(share_of_ops(int(number), int(of))))
        return 0
    if given.profiles:
        print(json.dumps(profiles(json.loads(given.profiles))))
        return 0
    os.environ["OMP_NUM_THREADS"] = str(max(1, CORES // jobs))  # of what runs in processes of its own
    failed = 0
    for name in given.parts or PARTS:
        started = time.perf_counter()
        for what, problems in PARTS[name]():
            print(f"{name}: {what}: {'passes' if not problems else f'{len(problems)} do not pass'}", flush=True)
            for problem in problems:
                print(f"  {problem}", flush=True)
            failed += len(problems)
        print(f"{name}: {time.perf_counter() - started:.0f} s", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
