"""What lint says of released projects that nobody here has looked at, and how much of it is true.

    python benchmarks/projects.py draw --name first --seed 21 --count 20   shuffle the candidates, take the first 20 that qualify
    python benchmarks/projects.py run --name first [--again]            lint each one; keep what lint said
    python benchmarks/projects.py sample --name first [--again]         every error and 80 drawn warnings, with their code
    python benchmarks/projects.py table --name first [--again]          tabulate, with the verdicts of whoever read the code

    python benchmarks/projects.py draw --name fourth --seed 417 --least 60   smaller projects, once the large ones are read
    python benchmarks/projects.py draw --name fifth --seed 5617 --count 24 --candidates candidates.index.txt   names that nobody thought of
    python benchmarks/projects.py draw --name sixth --seed 5618 --count 40 --least 60 --candidates candidates.index.txt   the rest of them

    python benchmarks/projects.py draw --name seventh --seed 5619 --count 40 --least 60 --candidates candidates.index.2.txt   see project_names.py
    python benchmarks/projects.py draw --name eighth --seed 5620 --count 40 --least 60 --candidates candidates.index.3.txt
    python benchmarks/projects.py draw --name ninth --seed 5621 --count 40 --least 60 --candidates candidates.index.4.txt
    python benchmarks/projects.py draw --name tenth --seed 5622 --count 100 --least 10 --pieces 1 --unlike 0.1 --candidates candidates.tenth.txt

candidates.txt was written down from memory. candidates.index.txt comes from the index: of all its names with a word of the field in them,
5,091 were asked for in random order; it holds those whose newest release has 400 kB to 60 MB, asks for torch (where a wheel says so), and has
60 Python files (where a wheel lists them).

candidates.tenth.txt holds what no draw had taken of candidates.txt, 199 more names from memory, and candidates.index.5.txt.

`--pieces` asks for so many custom gradients and kernels, in place of one file with a custom gradient; `--unlike` leaves out forks: projects of whose pieces (see project_pieces.py)
more than that share is code of an earlier draw, of the survey's packages, or of a project drawn before. Both are asked before
anything is linted.

Kept in benchmarks/projects/: names, versions, hashes, findings (path, line, rule), verdicts. Never the code: it is unpacked
in /tmp/lint. A project qualifies when no other file of the repository mentions it, it has 200 Python files (`--least`), and at least
one of them writes a custom gradient. Verdicts stand in <name>.judged.json: true, weak (true of the code, and harmless) or
false, with the reason.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import fresh_packages
from fresh_packages import Package, fetched, mentioned, newest
from project_pieces import remembered

import gradsmith as gs
from gradsmith.source import scan

HERE = Path(__file__).parent / "projects"
PLACE = Path("/tmp/lint/projects")
LEAST_FILES, WARNINGS = 200, 80
MOST_BYTES = 60 << 20
VERDICTS = ("true", "weak", "false")
Row = dict[str, Any]


@dataclass(frozen=True)
class Project(Package):
    """A released file, how many Python files and how many files with a custom gradient are in it."""

    files: int = 0

    @property
    def folder(self) -> Path:
        return PLACE / f"{self.name}-{self.version}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("draw", "run", "sample", "table"))
    parser.add_argument("--name", default="first")
    parser.add_argument("--seed", type=int, default=21)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--least", type=int, default=LEAST_FILES, help="draw: Python files that a project must have")
    parser.add_argument(
        "--candidates", default="candidates.txt", help="draw: the list of names, in benchmarks/projects"
    )
    parser.add_argument("--pieces", type=int, default=0, help="draw: custom gradients and kernels it must have")
    parser.add_argument("--unlike", type=float, help="draw: the largest share of its pieces that an earlier draw has")
    parser.add_argument("--again", action="store_true", help="after mending: into <name>.again.json")
    given = parser.parse_args()
    {"draw": draw, "run": run, "sample": sample, "table": table}[given.command](given)


def draw(given: argparse.Namespace) -> None:
    """Write <name>.json: candidates in an order drawn with a seed, as many as are wanted of those that qualify."""
    fresh_packages.LARGEST = MOST_BYTES
    text = _other_text()
    names = [name for name in sorted(set((HERE / given.candidates).read_text().split())) if not mentioned(name, text)]
    taken = {row["name"] for path in _draws() if path.stem != given.name for row in json.loads(path.read_text())}
    random.Random(given.seed).shuffle(names)
    kept: list[Row] = []
    looked_at = forks = 0
    known = _known_pieces(given.name) if given.unlike is not None else set()
    with ThreadPoolExecutor(6) as pool:
        for project in pool.map(_looked_at, names):
            if len(kept) == given.count:
                break
            looked_at += 1
            if project is None or project.files < given.least or project.name in taken:
                continue
            if not (project.functions or given.pieces):
                continue
            pieces = remembered(project.folder)
            if len(pieces.gradients) < given.pieces:
                continue
            if given.unlike is not None and pieces.known_among(known) > given.unlike:
                forks += 1
                continue
            known |= pieces.all
            kept.append(asdict(project))
        pool.shutdown(cancel_futures=True)
    (HERE / f"{given.name}.json").write_text(json.dumps(kept, indent=1) + "\n")
    print(
        f"{len(names)} candidates, {looked_at} looked at, {forks} forks, {len(kept)} taken, {sum(r['files'] for r in kept)} files"
    )
    print("  " + ", ".join(f"{r['name']} {r['version']}" for r in kept))


def _known_pieces(name: str) -> set[str]:
    """Those of all other draws, and of the packages on which the rules were written."""
    from survey import folders

    found: set[str] = set()
    others = (path.stem for path in _draws() if path.stem not in (name, "control"))
    for folder in (*folders().values(), *(project.folder for other in others for project in projects(other))):
        found |= remembered(folder).all
    return found


def _draws() -> list[Path]:
    return [path for path in HERE.glob("*.json") if "." not in path.stem]


def _other_text() -> str:
    """The words of every tracked file but those of this benchmark."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=HERE.parent.parent, capture_output=True, text=True, check=True
    )
    paths = [HERE.parent.parent / p for p in listed.stdout.split("\0") if p and not p.startswith("benchmarks/projects")]
    return "-".join(fresh_packages._words(p.read_text(errors="replace")) for p in paths if p.is_file())


def _looked_at(name: str) -> Project | None:
    """The newest release and what is in it. Remembered: asking for a thousand names takes minutes, and may be cut off."""
    seen = PLACE.parent / "looked" / f"{name}.json"
    if not seen.is_file():
        project = _asked_for(name)
        seen.parent.mkdir(parents=True, exist_ok=True)
        seen.write_text(json.dumps(asdict(project) if project is not None else None))
    row = json.loads(seen.read_text())
    return Project(**row) if row is not None else None


def _asked_for(name: str) -> Project | None:
    try:
        package = newest(name)
        if package is None:
            return None
        project = Project(package.name, package.version, package.url, package.sha256)
        folder = fetched(project)
        if folder is None:
            return None
        count = functions = 0
        for source in scan.read_all([str(folder)]):
            if isinstance(source, scan.SourceFile):
                count += 1
                functions += scan.known(source.data).function
    except Exception as error:  # one strange archive among hundreds
        print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
        return None
    return Project(package.name, package.version, package.url, package.sha256, functions, count)


def projects(name: str) -> list[Project]:
    """The drawn projects, fetched again where they are missing."""
    fresh_packages.LARGEST = MOST_BYTES
    drawn = [Project(**row) for row in json.loads((HERE / f"{name}.json").read_text())]
    for project in drawn:
        assert fetched(project) is not None
    return drawn


def run(given: argparse.Namespace) -> None:
    """Write <name>.run.json or <name>.again.json: what lint said, project by project."""
    rows: list[Row] = []
    files = functions = crashes = 0
    for project in projects(given.name):
        report = gs.lint(project.folder)
        files, functions = files + report.files, functions + report.functions
        crashes += sum(" failed on " in s.reason for s in report.skipped)
        for finding in report.at_least("warning"):
            path = str(Path(finding.path or "").relative_to(project.folder))
            row = {"project": project.name, "path": path, "line": finding.line, "rule": finding.rule}
            row |= {"severity": str(finding.severity), "function": finding.function, "message": finding.message}
            rows.append({"key": key_of(row, finding.snippet), **row})
    content = {"files": files, "functions": functions, "crashes": crashes, "findings": rows}
    _results(given).write_text(json.dumps(content, indent=1) + "\n")
    counts = {level: len(_distinct(rows, level)) for level in ("error", "warning")}
    print(f"{files} files, {functions} custom gradients, {crashes} crashes, distinct findings: {counts}")


def key_of(row: Row, snippet: str) -> str:
    """`rule | qualified name | hash`: the same defect in the same words of the same class counts once."""
    text = hashlib.sha256(" ".join(snippet.split()).encode()).hexdigest()[:10]
    return f"{row['rule']} | {row['function'] or Path(row['path']).name} | {text}"


def sample(given: argparse.Namespace) -> None:
    """Print every error and 80 drawn warnings that nobody has judged yet, with the code."""
    judged = _judged(given.name)
    folders = {project.name: project.folder for project in projects(given.name)}
    for row in asked(given):
        if row["key"] in judged:
            continue
        lines = (folders[row["project"]] / row["path"]).read_text(errors="replace").splitlines()
        print(f"\n##### {row['key']}\n{row['severity']} {row['project']} {row['path']}:{row['line']}\n{row['message']}")
        for number in range(max(1, row["line"] - 3), min(len(lines), row["line"] + 3) + 1):
            print(f"{'>' if number == row['line'] else ' '} {number:5} {lines[number - 1][:150]}")


def asked(given: argparse.Namespace) -> list[Row]:
    """What has to be read: all errors, and warnings drawn by seed."""
    rows = json.loads(_results(given).read_text())["findings"]
    warnings = sorted(_distinct(rows, "warning"), key=lambda row: str(row["key"]))
    drawn = random.Random(given.seed).sample(warnings, min(WARNINGS, len(warnings)))
    return [*_distinct(rows, "error"), *drawn]


def table(given: argparse.Namespace) -> None:
    """Print how many of the findings that were read are true."""
    content, judged, rows = json.loads(_results(given).read_text()), _judged(given.name), asked(given)
    print(f"{content['files']} files, {content['functions']} custom gradients, {content['crashes']} crashes")
    missing = 0
    for level in ("error", "warning"):
        by_rule: dict[str, list[str]] = {}
        for row in rows:
            if row["severity"] == level:
                by_rule.setdefault(row["rule"], []).append(judged.get(row["key"], {}).get("verdict", "unread"))
        told = [verdict for seen in by_rule.values() for verdict in seen]
        missing += told.count("unread")
        print(f"\n{level}s read: {len(told)}; " + ", ".join(f"{told.count(v)} {v}" for v in (*VERDICTS, "unread")))
        for rule, seen in sorted(by_rule.items(), key=lambda item: (-len(item[1]), item[0])):
            print(f"  {rule:<24} " + ", ".join(f"{seen.count(v)} {v}" for v in VERDICTS if v in seen))
    sys.exit(1 if missing else 0)


def _judged(name: str) -> dict[str, dict[str, str]]:
    path = HERE / f"{name}.judged.json"
    return dict(json.loads(path.read_text())) if path.exists() else {}


def _distinct(rows: list[Row], level: str) -> list[Row]:
    return list({row["key"]: row for row in reversed(rows) if row["severity"] == level}.values())[::-1]


def _results(given: argparse.Namespace) -> Path:
    return HERE / f"{given.name}.{'again' if given.again else 'run'}.json"


if __name__ == "__main__":
    main()
