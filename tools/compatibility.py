"""What was run with which torch and which Python: kept in docs/compatibility.json, and docs/compatibility.md written from it.

    python tools/compatibility.py     write the page again

Nothing on the page is typed by hand but the reasons of known differences (REASONS).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "docs" / "compatibility.json"
PAGE = ROOT / "docs" / "compatibility.md"
REFERENCE = "2.13.0"  # which the tests are written with
_ENDED = (0, 1, 5)  # of pytest: all passed, some failed, there was none (left)
OLDER, BEFORE = "(older)", "f634126"  # how a result is marked whose commit was not kept; the last such commit

# Why a subject comes out differently, or a test fails, with some torch: what that torch does, not what we would like.
REASONS: dict[str, str] = {
    "broken/clip_inplace_grad.py::ClipGradient": "torch.compile of 2.6 refuses a backward that changes what it was given"
    ' ("Found an input to the backward that was mutated during the backward pass"); 2.13 compiles it.',
    "first_gradient.py::LeakyClamp": "torch.compile of 2.6 breaks the graph at an index by a mask (aten.nonzero); 2.13 does not.",
    "gallery/modern/in_place.py::ExpInPlace": "torch.compile of 2.13 drops mark_dirty (pytorch#133491); 2.6 gives the right result.",
    "broken/kernels/rms_norm_shared_row.py::RMSNorm": "The kernel reads memory that nobody wrote, which is what is wrong with it:"
    " other findings depend on what lay there.",
}

Kept = dict[str, dict[str, Any]]


def kept() -> Kept:
    """Results by kind ("torch", "python") and version."""
    found: Kept = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.is_file() else {}
    return {"torch": found.get("torch", {}), "python": found.get("python", {})}


def keep(kind: str, version: str, **results: Any) -> None:
    """Add results of a version, area by area, and write the page."""
    everything = kept()
    own = everything[kind].setdefault(version, {})
    # An area of which some tests were run again stays at the commit of the rest.
    asked = [area for area, counts in results.get("tests", {}).items() if not counts.get("mended")]
    asked += ["examples"] if "subjects" in results else []
    own["commits"] = {**own.get("commits", {}), **dict.fromkeys(asked, _commit())}
    for key, value in results.items():
        own[key] = {**own.get(key, {}), **value} if isinstance(value, dict) else value
    KEPT.write_text(json.dumps(everything, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    PAGE.write_text(page(everything), encoding="utf-8")


def _commit() -> str:
    call = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(call, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def tested(python: str, paths: Sequence[str], folder: Path, jobs: int) -> dict[str, dict[str, Any]]:
    """Counts and the names of failures, for each of these paths, from one run of pytest; nothing where it did not come to its end.

    What it came to so far stands in `folder`: the next run at this commit goes on there.
    """
    told = folder / f"{'-'.join(paths).replace('/', '.')[:200]}.{_commit()}.jsonl"
    call = [
        python,
        "-m",
        "pytest",
        *paths,
        "-m",
        "not deep",
        "-p",
        "one_by_one",
        "-p",
        "no:cacheprovider",
        "--continue-on-collection-errors",
    ]
    call += ["-n", str(jobs)] if jobs > 1 else ["-p", "no:xdist"]
    own = {**os.environ, "GRADSMITH_TOLD": str(told), "PYTHONPATH": str(ROOT / "tools")}
    done = subprocess.run(call, cwd=ROOT, env=own, check=False)
    lines = told.read_text(encoding="utf-8").splitlines() if told.is_file() else []
    return counted(paths, lines) if lines and done.returncode in _ENDED else {}  # no pytest there: it is 1, too


def counted(paths: Sequence[str], told: Iterable[str]) -> dict[str, dict[str, Any]]:
    """What tools/one_by_one.py wrote, by the paths that were asked for.

    >>> counted(["tests/recurrent"], ['{"id": "tests/recurrent/test_scan.py::test_a", "outcome": "failed"}'])
    {'tests/recurrent': {'passed': 0, 'failed': ['test_scan::test_a'], 'skipped': 0}}
    """
    found: dict[str, dict[str, Any]] = {path: {"passed": 0, "failed": [], "skipped": 0} for path in paths}
    outcomes = {test["id"]: test["outcome"] for test in map(json.loads, told)}
    for name, outcome in outcomes.items():
        file, _, test = name.partition("::")
        path = next((path for path in paths if f"{file}/".startswith(f"{path}/")), None)
        if path is not None and outcome == "failed":
            found[path]["failed"].append(f"{Path(file).stem}::{test}")
        elif path is not None:
            found[path][outcome] += 1
    return found


def tested_again(python: str, tests: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """The same counts after tests that had failed for no known reason were run alone: what passes now was mended since."""
    found = {}
    for path, before in tests.items():
        for name in (name for name in before["failed"] if name not in REASONS):
            module, _, test = name.partition("::")
            (file,) = [ROOT / path] if path.endswith(".py") else (ROOT / path).rglob(f"{module}.py")
            call = [python, "-m", "pytest", f"{file}::{test}", "-q", "-p", "no:xdist", "-p", "no:cacheprovider"]
            if subprocess.run(call, cwd=ROOT, check=False).returncode == 0:
                now = found.setdefault(path, {**before, "failed": list(before["failed"])})
                now["failed"].remove(name)
                now.update(passed=now["passed"] + 1, mended=now.get("mended", 0) + 1)
    return found


def judged(report: Mapping[str, Any]) -> dict[str, list[str]]:
    """Verdict and findings of every subject in a report of `gradsmith check --format json`."""
    found: dict[str, list[str]] = {}
    for subject in report["subjects"]:
        found[f"{subject['path']}::{subject['name']}"] = [subject["verdict"]]
    for finding in report["findings"]:
        key = f"{finding['path']}::{finding['function'] or ''}"
        found.setdefault(key, []).append(f"{finding['severity']} {finding['rule']}")
    return {key: [*words[:1], *sorted(words[1:])] for key, words in sorted(found.items())}


def differences(ours: Mapping[str, Sequence[str]], reference: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """What comes out differently, subject by subject, in words.

    >>> differences({"a.py::F": ["verified", "info x"]}, {"a.py::F": ["refuted", "error y", "info x"]})
    {'a.py::F': 'verified instead of refuted; without error y'}
    """
    found = {}
    for key in sorted({*ours, *reference}):
        here, there = Counter(ours.get(key, [])), Counter(reference.get(key, []))
        more, less = list((here - there).elements()), list((there - here).elements())
        words = []
        if more and less and " " not in more[0] + less[0]:
            words.append(f"{more.pop(0)} instead of {less.pop(0)}")
        words += [f"with {word}" for word in more] + [f"without {word}" for word in less]
        if words:
            found[key] = "; ".join(words)
    return found


def page(everything: Kept) -> str:
    torches = dict(sorted(everything["torch"].items(), key=lambda item: _numbers(item[0])))
    pythons = dict(sorted(everything["python"].items(), key=lambda item: _numbers(item[0])))
    parts = [
        "# Which torch, which Python",
        (
            "Written by `tools/compatibility.py` from what `make test-versions`, `make test-pythons` and `make test-wheel` ran. Nothing here"
            " is typed by hand but the reasons of differences."
        ),
        (
            "gradsmith is developed with torch 2.13 and Python 3.11 on Linux, where all of its tests run. The tables are for developers: they"
            " say which of these tests were run with other versions, and how many passed."
        ),
        (
            "`gradsmith lint` needs no torch. `check`, `record`, `profile`, the pytest plugin and `gs.Recurrent` need torch 2.6 or newer."
            " With an older one they end in one sentence and exit status 2; with one that is newer than the last tested, a note says so."
            " What a torch can do is asked where it is used (`lab/process/torch_says.py`); versions are not compared."
        ),
        (
            "Everything was run on Linux (x86-64). Windows and macOS are untested. There `check` forks nothing and starts a Python for"
            " every subject; that was tried on Linux only."
        ),
        "## torch",
        _tests(torches, "torch") if torches else "Nothing was run yet.",
        *_findings(torches),
        "## Python",
        (
            "Tests of lint and of the source model, without torch; and the wheel in empty environments, without torch (`import`, `lint`,"
            " `explain`, what `check` and `profile` say) and with it (`check`, `profile`, `record`, the pytest plugin, `gs.Recurrent`)."
        ),
        _tests(pythons, "Python") if pythons else "Nothing was run yet.",
    ]
    return "\n\n".join(parts) + "\n"


def _tests(versions: Mapping[str, Mapping[str, Any]], what: str) -> str:
    areas = sorted({area for own in versions.values() for area in own.get("tests", {})})
    rows = [[what, *versions], ["---"] * (len(versions) + 1)]
    if any("python" in own for own in versions.values()):
        rows.append(["Python", *(str(own.get("python", "")) for own in versions.values())])
    for area in areas:
        shown = f"`{area}`" if area.startswith("tests/") else area
        rows.append([shown, *(_cell(own, area) for own in versions.values())])
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    failed = [
        f"- {what} {version}, `{name}`: {REASONS.get(name, 'not explained')}"
        for version, own in versions.items()
        for counts in own.get("tests", {}).values()
        for name in counts["failed"]
    ]
    return "\n\n".join([table, _run_at(versions), *(["Failed:", "\n".join(failed)] if failed else [])])


def _run_at(versions: Mapping[str, Mapping[str, Any]]) -> str:
    """Which commits the cells are from: a result says nothing of what was changed after it."""
    commits = {commit for own in versions.values() for commit in own.get("commits", {}).values()}
    known = f"Run at {', '.join(f'`{commit}`' for commit in sorted(commits))}." if commits else ""
    older = any(area not in own.get("commits", {}) for own in versions.values() for area in own.get("tests", {}))
    return " ".join([known, *([f"`{OLDER}`: run before, at `{BEFORE}` or earlier."] if older else [])]).strip()


def _cell(own: Mapping[str, Any], area: str) -> str:
    counts = own.get("tests", {}).get(area)
    if counts is None:
        return "not run"
    failed = f", **{len(counts['failed'])} failed**" if counts["failed"] else ""
    mended = f" ({counts['mended']} after a fix)" if counts.get("mended") else ""
    skipped = f", {counts['skipped']} skipped" if counts["skipped"] else ""
    older = "" if area in own.get("commits", {}) else f" {OLDER}"
    return f"{counts['passed']} passed{mended}{failed}{skipped}{older}"


def _findings(torches: Mapping[str, Mapping[str, Any]]) -> list[str]:
    judged_by = {version: own["subjects"] for version, own in torches.items() if "subjects" in own}
    reference = judged_by.get(REFERENCE)
    if reference is None:
        return []
    rows = [
        "| torch | subjects | verified | refuted | not verified | different |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    told = []
    for version, subjects in judged_by.items():
        verdicts = Counter(words[0] for words in subjects.values() if " " not in words[0])
        different = differences(subjects, reference)
        counts = [verdicts.total(), verdicts["verified"], verdicts["refuted"], verdicts["unverified"], len(different)]
        rows.append(f"| {version} | {' | '.join(map(str, counts))} |")
        told += [
            f"- torch {version}, `{key}`: {w}. {REASONS.get(key, 'Not explained.')}" for key, w in different.items()
        ]
    return [
        f"## Verdicts and findings on examples/, compared with torch {REFERENCE}",
        (
            "`gradsmith check examples` (the broken files, the gallery, the wrapped examples), level standard: every verdict, and rule and"
            " severity of every finding."
        ),
        "\n".join(rows),
        *(["\n".join(told)] if told else []),
    ]


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".") if part.isdigit()]


if __name__ == "__main__":
    PAGE.write_text(page(kept()), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}", file=sys.stderr)
