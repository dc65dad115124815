"""gradsmith on itself: every Function of the package, the gallery, the ops, the templates, the pages of rules and the documents.

    python tools/self_check.py [PART ...]     package, gallery, templates, ops, pages, documents; all of them take half an hour

Each passes lint (no error; none of the package's own has a warning), check at level standard (verified), and profile (it runs, and
nothing it finds is an error). One line for each part, one for each thing that does not pass; exit status 1 if there is one.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import torch

import gradsmith as gs
from gradsmith.catalog import rules
from gradsmith.findings import Report

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))


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
        yield from _files(Path(folder), declared="")


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
    """The building blocks, on the cases that their tests have."""
    from tests.ops.op_cases import CASES

    wrong, slow = [], []
    for case in CASES:
        report = gs.check(case.ours, *case.inputs(), reference=case.plain, level="standard")
        wrong += [f"{case}: {line}" for line in _told(report)]
        slow += [
            f"{case}: {f.message}" for f in gs.profile(case.ours, *case.inputs()).findings if f.severity == "error"
        ]
    yield f"check of {len(CASES)} ops", wrong
    yield f"profile of {len(CASES)} ops", slow


def _files(folder: Path, declared: str = "gradsmith_inputs") -> Iterator[tuple[str, list[str]]]:
    """Files of Functions through all three; `declared` is what a file holds that can be profiled."""
    linted = gs.lint([str(folder)])
    yield f"lint of {linted.functions} Functions", _told(linted)
    checked = gs.check_paths(str(folder), level="standard")
    yield f"check of {len(checked.subjects)} subjects", _told(checked)
    files = [str(file) for file in sorted(folder.rglob("*.py")) if declared in file.read_text(encoding="utf-8")]
    yield _profiled(files)


def _profiled(files: list[str]) -> tuple[str, list[str]]:
    """Each file in a process of its own; what the machine's load does to the figures is not judged."""
    problems = []
    for file in files:
        call = [
            sys.executable,
            "-m",
            "gradsmith",
            "profile",
            file,
            "--format",
            "json",
            "--budget",
            "0.3",
            "--no-growth",
        ]
        done = subprocess.run(call, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1):
            problems.append(f"{file}: {(done.stderr.strip() or 'no word').splitlines()[-1]}")
            continue
        profiles = json.loads(done.stdout)
        found = [f for p in (profiles if isinstance(profiles, list) else [profiles]) for f in p["findings"]]
        problems += [f"{file}: {f['rule']}: {f['message']}" for f in found if f["severity"] == "error"]
    return f"profile of {len(files)} files", problems


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
    torch.manual_seed(0)
    failed = 0
    for name in sys.argv[1:] or PARTS:
        for what, problems in PARTS[name]():
            print(f"{name}: {what}: {'passes' if not problems else f'{len(problems)} do not pass'}", flush=True)
            for problem in problems:
                print(f"  {problem}", flush=True)
            failed += len(problems)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
