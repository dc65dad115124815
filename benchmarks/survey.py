"""What lint says about released packages, and how much of it is true.

    python benchmarks/survey.py              download, lint, compare with the verdicts, print precision per rule
    python benchmarks/survey.py --unjudged   also print each finding that has no verdict yet, with its code
    python benchmarks/survey.py --prove      run the snippet of every error judged true

A finding is known by (rule, qualified name, hash of its line). Its verdict stands in benchmarks/survey/verdicts.json:
true or false, the reason from reading the code, and for an error judged true a snippet of plain PyTorch that raises or
prints two differing numbers.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import json
import subprocess
import sys
import zipfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import gradsmith as gs
from gradsmith.findings import Finding

HERE = Path(__file__).parent / "survey"
PACKAGES = HERE / "packages"
VERDICTS = HERE / "verdicts.json"
PINNED = {
    "liger-kernel": "0.8.5",
    "flash-linear-attention": "0.6.0",
    "fla-core": "0.6.0",
    "snntorch": "1.0.0",
    "gpytorch": "1.15.2",
    "torchrl": "0.14.1",
}


@dataclass(frozen=True)
class Hit:
    """One distinct finding: the same defect in the same words of the same class counts once."""

    package: str
    key: str
    finding: Finding
    place: str


def folders() -> dict[str, Path]:
    """Every surveyed package and where its source is; downloads what is missing (no dependencies, pinned)."""
    found = {f"torch {importlib.metadata.version('torch')}": Path(gs_torch())}
    for name, version in PINNED.items():
        target = PACKAGES / f"{name}-{version}"
        if not target.is_dir():
            wheels = PACKAGES / "wheels"
            call = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(wheels), f"{name}=={version}"]
            subprocess.run(call, check=True, stderr=subprocess.DEVNULL)
            (wheel,) = wheels.glob(f"{name.replace('-', '_')}-{version}-*.whl")
            zipfile.ZipFile(wheel).extractall(target)
        found[f"{name} {version}"] = target
    return found


def gs_torch() -> str:
    import importlib.util

    found = importlib.util.find_spec("torch")
    assert found is not None and found.submodule_search_locations
    return found.submodule_search_locations[0]


def hits() -> tuple[list[Hit], int, int]:
    """Distinct errors and warnings of all packages; the number of files and of custom gradients."""
    out: dict[str, Hit] = {}
    files = functions = 0
    for package, folder in folders().items():
        report = gs.lint(folder)
        files, functions = files + report.files, functions + report.functions
        for finding in report.at_least("warning"):
            key = key_of(finding)
            place = f"{Path(finding.path or '').relative_to(folder)}:{finding.line}"
            out.setdefault(key, Hit(package, key, finding, place))
    return list(out.values()), files, functions


def key_of(finding: Finding) -> str:
    """`rule | qualified name | hash`: survives edits elsewhere in the file."""
    text = hashlib.sha256(" ".join(finding.snippet.split()).encode()).hexdigest()[:10]
    return f"{finding.rule} | {finding.function or Path(finding.path or '').name} | {text}"


def verdicts() -> dict[str, dict[str, str | bool]]:
    return dict(json.loads(VERDICTS.read_text())) if VERDICTS.exists() else {}


def prove(known: dict[str, dict[str, str | bool]], found: list[Hit]) -> int:
    """Run the snippets of errors judged true: each must raise, or print two numbers that differ."""
    failed = 0
    for hit in found:
        verdict = known.get(hit.key, {})
        if hit.finding.severity != "error" or not verdict.get("true"):
            continue
        snippet = str(verdict.get("snippet", ""))
        done = subprocess.run([sys.executable, "-c", snippet], capture_output=True, text=True, check=False)
        numbers = done.stdout.split()
        shown = bool(snippet) and (done.returncode != 0 or (len(numbers) == 2 and numbers[0] != numbers[1]))
        words = done.stderr.strip().splitlines()[-1:] if done.returncode else numbers
        print(f"  {'shown' if shown else 'NOT SHOWN'}: {hit.key}: {' '.join(words)[:100]}")
        failed += not shown
    return failed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--unjudged", action="store_true")
    parser.add_argument("--prove", action="store_true")
    options = parser.parse_args()
    found, files, functions = hits()
    known = verdicts()
    print(
        f"{functions} custom gradients in {files} files of {len(PINNED) + 1} packages; {len(found)} distinct findings"
    )
    by_rule: dict[tuple[str, str], list[bool | None]] = defaultdict(list)
    for hit in found:
        verdict = known.get(hit.key)
        by_rule[str(hit.finding.severity), hit.finding.rule].append(bool(verdict["true"]) if verdict else None)
        if options.unjudged and verdict is None:
            print(
                f"\n{hit.key}\n  {hit.package}: {hit.place}\n  {hit.finding.message}\n  {hit.finding.snippet.strip()}"
            )
    for severity in ("error", "warning"):
        rows = {rule: seen for (level, rule), seen in by_rule.items() if level == severity}
        judged = [v for seen in rows.values() for v in seen if v is not None]
        share = f"{100 * sum(judged) / len(judged):.1f} %" if judged else "none"
        print(f"\n{severity}s: {sum(judged)}/{len(judged)} true ({share})")
        for rule, seen in sorted(rows.items(), key=lambda row: -len(row[1])):
            sure = [v for v in seen if v is not None]
            low = " <- must become info" if len(sure) >= 5 and sum(sure) / len(sure) < 0.8 else ""
            print(f"  {rule:<24} {sum(sure)}/{len(sure)}{low}")
    missing = sum(v is None for seen in by_rule.values() for v in seen)
    gone = [bool(known[key]["true"]) for key in set(known) - {hit.key for hit in found}]
    print(
        f"\n{missing} unjudged; no longer reported at this level: {gone.count(False)} judged false, {gone.count(True)} true"
    )
    failed = prove(known, found) if options.prove else 0
    sys.exit(1 if missing or failed else 0)


if __name__ == "__main__":
    main()
