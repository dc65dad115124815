"""What `gradsmith check` says of Functions in released packages that nobody here has looked at.

    python benchmarks/fresh.py collect                        fetch the candidates, keep those with Functions
    python benchmarks/fresh.py widen --seed 5 --count 700      draw more candidates from all names of the index
    python benchmarks/fresh.py draw --name first --seed 20     draw packages, then at most 4 Functions of each, 150 in all
    python benchmarks/fresh.py run --name first                check each one, as a user would; keep the first answer
    python benchmarks/fresh.py table --name first              tabulate, with the verdicts of whoever read the code

Kept in benchmarks/fresh/: names, versions, hashes, paths, verdicts. Never the code: it is unpacked in /tmp/trust.
Each check is `gradsmith check FILE::CLASS --format json` where the file was unpacked, its dependencies not installed.
Judgements stand in <name>.judged.json: finding by finding true or false, with the reason.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fresh_packages import (
    HERE,
    PLACE,
    Package,
    candidates,
    compiled,
    fetched,
    functions,
    index_names,
    mentioned,
    newest,
    repository_text,
)

PER_PACKAGE = 4
Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("collect", "widen", "draw", "run", "table"))
    parser.add_argument("--name", default="first")
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--count", type=int, default=150)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--again", action="store_true", help="run into <name>.again.json; delete it to start anew")
    parser.add_argument("--only", nargs="*", default=(), help="run these classes alone and print what comes out")
    given = parser.parse_args()
    {"collect": collect, "widen": widen, "draw": draw, "run": run, "table": table}[given.command](given)


def collect(_: argparse.Namespace) -> None:
    """Write packages.json: every candidate without compiled code that has a Function."""
    with ThreadPoolExecutor(6) as pool:
        found = [p for p in pool.map(_collected, candidates()) if p is not None]
    kept = [asdict(p) for p in found if p.functions]
    (HERE / "packages.json").write_text(json.dumps(kept, indent=1) + "\n")
    print(f"{len(found)} fetched, {len(kept)} with Functions, {sum(p['functions'] for p in kept)} Functions")


def widen(given: argparse.Namespace) -> None:
    """Names of the index that say what they are about, drawn with a seed; what has Functions is added to packages.json."""
    listed = HERE / "candidates.txt"
    known = set(listed.read_text().split())
    text = repository_text()
    named = [name for name in index_names() if name not in known and not mentioned(name, text)]
    drawn = sorted(random.Random(given.seed).sample(named, min(given.count, len(named))))
    with ThreadPoolExecutor(6) as pool:
        found = [p for p in pool.map(_collected, drawn) if p is not None]
    stored = json.loads((HERE / "packages.json").read_text())
    new = [asdict(p) for p in found if p.functions]
    (HERE / "packages.json").write_text(json.dumps(stored + new, indent=1) + "\n")
    listed.write_text("\n".join(sorted(known | set(drawn))) + "\n")
    print(f"{len(drawn)} of {len(named)} names drawn, {len(found)} fetched, {len(new)} with Functions")


def _collected(name: str) -> Package | None:
    try:
        package = newest(name)
        folder = fetched(package) if package else None
        if package is None or folder is None:
            return None
        count = 0 if compiled(folder) else len(list(functions(folder)))
    except Exception as error:  # one strange archive among hundreds
        print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
        return None
    return Package(package.name, package.version, package.url, package.sha256, count)


def draw(given: argparse.Namespace) -> None:
    """Write <name>.json: Functions drawn with a seed; the same code in two packages counts once, drawn ones never again."""
    target = HERE / f"{given.name}.json"
    if target.exists():
        raise SystemExit(f"{target} is drawn already")
    text = repository_text()
    earlier = [row for path in HERE.glob("*.json") for row in _rows(path) if "code" in row]
    seen = {row["code"] for row in earlier}
    used = {row["package"] for row in earlier}
    chance = random.Random(given.seed)
    packages = [Package(**stored) for stored in json.loads((HERE / "packages.json").read_text())]
    chance.shuffle(packages)
    taken: list[Row] = []
    for package in packages:
        if package.name in used or not fetched(package):
            continue
        if any(mentioned(module, text) for module in _modules(package.folder)):
            continue
        new = {code: (path, name) for path, name, code in sorted(functions(package.folder)) if code not in seen}
        seen.update(new)
        for code in chance.sample(sorted(new), min(PER_PACKAGE, len(new), given.count - len(taken))):
            path, name = new[code]
            about = {"package": package.name, "version": package.version, "sha256": package.sha256}
            taken.append(about | {"path": path, "name": name, "code": code})
    target.write_text(json.dumps(sorted(taken, key=_key), indent=1) + "\n")
    print(f"{len(taken)} Functions from {len({t['package'] for t in taken})} packages")


def run(given: argparse.Namespace) -> None:
    """Write <name>.first.json (or .again.json): the report on every drawn Function, the code left out."""
    rows = _rows(HERE / f"{given.name}.json")
    if given.only:
        for row in (r for r in rows if r["name"] in given.only):
            print(json.dumps(_checked(row), indent=1))
        return
    target = HERE / f"{given.name}.{'again' if given.again else 'first'}.json"
    done: list[Row] = _rows(target) if target.exists() else []  # a run that was cut off goes on
    known = {_key(row) for row in done}
    first = HERE / f"{given.name}.first.json"
    took = {_key(row): row["seconds"] for row in _rows(first)} if given.again and first.exists() else {}
    # A second run that is cut off has most of them: those that took longest come last.
    open_rows = sorted((row for row in rows if _key(row) not in known), key=lambda row: took.get(_key(row), 0.0))
    with ThreadPoolExecutor(given.jobs) as pool:
        for number, told in enumerate(pool.map(_checked, open_rows)):
            done.append(told)
            target.write_text(json.dumps(done, indent=1) + "\n")
            print(number, told["package"], told["name"], told["verdict"], told["reason"][:90], flush=True)


def _checked(row: Row) -> Row:
    path = PLACE / f"{row['package']}-{row['version']}" / row["path"]
    call = [sys.executable, "-m", "gradsmith", "check", f"{path}::{row['name']}", "--format", "json", "--coverage"]
    cache = Path("/tmp/trust/cache")
    started = time.monotonic()
    ended = subprocess.run(call, capture_output=True, text=True, env={**os.environ, "GRADSMITH_CACHE_DIR": str(cache)})
    told: Row = {k: row[k] for k in ("package", "version", "path", "name")} | {"exit": ended.returncode}
    told["seconds"] = round(time.monotonic() - started, 1)
    try:
        report = json.loads(ended.stdout)
    except json.JSONDecodeError:
        return told | {"verdict": "none", "reason": ended.stderr[-500:], "inputs_from": "none", "findings": []}
    subject = next(iter(report["subjects"]), {})
    told |= {"verdict": subject.get("verdict", "none"), "reason": subject.get("reason", ended.stderr[-500:])}
    told |= {"inputs_from": subject.get("inputs_from", "none"), "inputs": subject.get("inputs_code", "")[:600]}
    reached = subject.get("coverage") or {}
    told["coverage"] = {k: reached.get(k, 0) for k in ("lines", "lines reached", "sides", "sides reached")}
    told["assumptions"] = subject.get("assumptions", [])
    told["notes"] = [note for note in report.get("notes", []) if "guessed" not in note]
    kept = ("rule", "severity", "message", "line", "cause", "lenses", "advice", "blame")
    told["findings"] = [{k: f.get(k) for k in kept} for f in report["findings"]]
    return told


def table(given: argparse.Namespace) -> None:
    for suffix in ("first", "again"):
        path = HERE / f"{given.name}.{suffix}.json"
        if path.exists():
            print(f"\n{given.name}, {'first run' if suffix == 'first' else 'after mending'}\n")
            print(_tabulated(_rows(path), _judged(given.name, suffix)))


def _tabulated(rows: list[Row], judged: dict[str, bool]) -> str:
    ran = [r for r in rows if not _unloaded(r)]
    found = [r for r in ran if r["inputs_from"] != "none"]
    without = [r for r in ran if r["inputs_from"] == "none"]
    lines = [
        ("Functions", len(rows)),
        ("loaded without their dependencies", len(ran)),
        ("inputs guessed (or declared) for them", len(found)),
        *((f"not found, {why}", count) for why, count in Counter(_why_not_found(r) for r in without).items()),
        *((verdict, sum(r["verdict"] == verdict for r in rows)) for verdict in ("verified", "refuted", "unverified")),
        ("no report", sum(r["verdict"] == "none" for r in rows)),
        ("crashed, timed out", sum(r["reason"].startswith(("crashed", "timed-out", "out-of-memory")) for r in rows)),
        ("probes of ours stopped", sum("the probe for" in r["reason"] for r in rows)),
    ]
    measured = [r["coverage"] for r in rows if r.get("coverage", {}).get("lines")]
    if measured:
        all_of, reached = (sum(c[f"lines{w}"] + c[f"sides{w}"] for c in measured) for w in ("", " reached"))
        lines.append(("lines and sides reached", f"{reached} of {all_of} ({reached / all_of:.0%}) of {len(measured)}"))
    for severity in ("error", "warning"):
        keys = [_finding_key(r, f) for r in rows for f in r["findings"] if f["severity"] == severity]
        verdicts = [judged.get(f"{key}::{line}", judged.get(key)) for key, line in keys]
        true, false = (sum(verdict is which for verdict in verdicts) for which in (True, False))
        lines.append(
            (f"{severity}s", f"{len(keys)}: {true} true, {false} false, {len(keys) - true - false} not judged")
        )
    return "| | |\n| --- | --- |\n" + "\n".join(f"| {name} | {value} |" for name, value in lines)


def _unloaded(row: Row) -> bool:
    return row["reason"].startswith("import-failed") or row["verdict"] == "none"


# What no guess could be found for, by what `gradsmith check` says of it; the first that fits.
_NOT_FOUND = {
    "a library, extension or GPU is missing": r"is a stand-in|without its decorator|CUDA|NVIDIA|process group|KeyError: 'cpu'",
    "an object that only a caller has": r"nothing that has it could be built|only a caller can give",
    "nothing to run: abstract, of the old style, or without a result": r"forward (is left|returns nothing)|old style",
    "not within its time": r"^(not tried|timed-out|crashed|out-of-memory)",
}


def _why_not_found(row: Row) -> str:
    return next(
        (why for why, words in _NOT_FOUND.items() if re.search(words, row["reason"])), "none of those tried works"
    )


def _finding_key(row: Row, finding: Row) -> tuple[str, int | None]:
    """What a judgement is kept under, and the line, where findings of one rule were judged one by one."""
    return f"{row['package']}::{row['name']}::{finding['rule']}::{finding['severity']}", finding["line"]


def _judged(name: str, suffix: str) -> dict[str, bool]:
    """What was found by reading; of a run after mending, what was not found before has entries of its own."""
    path = HERE / f"{name}.judged.json"
    stored: dict[str, Row] = json.loads(path.read_text()) if path.exists() else {}
    return {key: entry["true"] for key, entry in stored.items()}


def _rows(path: Path) -> list[Row]:
    stored = json.loads(path.read_text())
    return stored if isinstance(stored, list) else []


def _key(row: Row) -> tuple[str, str, str]:
    return (row["package"], row["path"], row["name"])


def _modules(folder: Path) -> list[str]:
    """The names under which a package is imported, as far as they are names of its own."""
    tops = {p.parent.name for p in folder.rglob("__init__.py") if not (p.parent.parent / "__init__.py").exists()}
    return sorted(tops - {"tests", "test", "src", "examples", "docs", "utils", "benchmarks", "scripts", "tools"})


if __name__ == "__main__":
    main()
