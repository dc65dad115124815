"""How many bugs that declared inputs hide are named, on a set of pairs that somebody else wrote.

    python benchmarks/reach.py FOLDER [--only PART] [--level standard] [--jobs 2] [--json OUT] [--goal 0.9]

FOLDER holds pairs/NNN_name/{broken,mended,harm}.py, right/NNN_name.py and manifest.json. Every broken, mended and right file
is given to `gradsmith check FILE --format json` in a process of its own, with an empty cache and 180 s. A bug is named as an
error by an error (or `refuted`) that the mended file does not get; as an assumption by a finding of `assumes`, or a warning
that the gradient is wrong, whose rule and argument the mended file does not get. harm.py is the author's proof and is not
run here. With --goal the exit status is 1 if a smaller share of the pairs is named, or right code gets an error.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TextIO

from keeping import NotFinished, kept
from naming import Answer, answer
from reach_results import Checked, Measured, Pair, tables

LIMIT = 180.0


def check_file(path: Path, level: str, limit: float = LIMIT) -> Checked:
    """`gradsmith check` on one file, as a user types it. A process that outlives the limit is killed with its workers."""
    with tempfile.TemporaryDirectory(prefix="gradsmith-reach-") as cache:
        environment = {"OMP_NUM_THREADS": "1", **os.environ, "GRADSMITH_CACHE_DIR": cache}
        command = [sys.executable, "-m", "gradsmith", "check", str(path), "--format", "json", "--level", level]
        start = time.perf_counter()
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        with subprocess.Popen(command, env=environment, start_new_session=True, **pipes) as process:  # type: ignore[call-overload]
            try:
                told, complaint = process.communicate(timeout=limit)
            except subprocess.TimeoutExpired:
                _kill_session(process.pid)
                process.communicate()
                late = Answer("unverified", trouble=(f"no answer within {limit:g} s",))
                return Checked(str(path), late, None, time.perf_counter() - start)
        seconds = time.perf_counter() - start
        try:
            return Checked(str(path), answer(json.loads(told)), process.returncode, seconds)
        except (ValueError, KeyError, TypeError):
            last = (complaint.strip().splitlines() or ["nothing said"])[-1]
            words = f"no report, exit status {process.returncode}: {last}"
            return Checked(str(path), Answer("unverified", trouble=(words,)), process.returncode, seconds)


def _checked(path: Path, level: str) -> Checked:
    return kept(f"reach {path.resolve()} {level}", lambda: check_file(path, level))


def _kill_session(leader: int) -> None:
    """Kill what a process has started: its workers have process groups of their own, and share its session."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError):
            if int(stat.read_text().rpartition(")")[2].split()[3]) == leader:
                os.kill(int(stat.parent.name), signal.SIGKILL)


def measure(
    folder: Path, only: str = "", level: str = "standard", jobs: int = 2, bar: TextIO | None = None
) -> Measured:
    """Check every file of the set whose name has `only` in it."""
    manifest = _manifest(folder)
    pairs = [p for p in sorted((folder / "pairs").glob("*")) if only in p.name and (p / "broken.py").is_file()]
    right = [p for p in sorted((folder / "right").glob("*.py")) if only in p.stem]
    files = [pair / name for pair in pairs for name in ("broken.py", "mended.py")] + right
    done: dict[Path, Checked] = {}
    with ThreadPoolExecutor(jobs) as pool:
        waiting = {pool.submit(_checked, path, level): path for path in files}
        for number, future in enumerate(as_completed(waiting), 1):
            path = waiting[future]
            done[path] = replace(future.result(), path=str(path.relative_to(folder)))
            _draw(bar, number, len(files), done[path].path)
    return Measured(
        [Pair(p.name, _entry(manifest["pairs"], p.name), done[p / "broken.py"], done[p / "mended.py"]) for p in pairs],
        [done[p] for p in right],
    )


def _manifest(folder: Path) -> dict[str, list[Mapping[str, Any]]]:
    path = folder / "manifest.json"
    told = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
    if isinstance(told, dict) and not {"pairs", "right"} & told.keys():  # by name, as the author of set 3 wrote it
        told = [
            {"name": name, "mechanism": e["bug"], "harm": e["shows"], "hidden": e["hidden"]} for name, e in told.items()
        ]
    if isinstance(told, list):
        return {"pairs": told, "right": told}
    return {"pairs": list(told.get("pairs", ())), "right": list(told.get("right", ()))}


def _entry(entries: Sequence[Mapping[str, Any]], folder: str) -> Mapping[str, Any]:
    """The entry of a folder NNN_name, by its whole name, by NNN, or by name: authors write the id in either way."""
    number, _, name = folder.partition("_")

    def fits(entry: Mapping[str, Any]) -> int:
        told = str(entry.get("id", ""))
        same_number = told.isdigit() and number.isdigit() and int(told) == int(number)
        return 4 * (told == folder) + 2 * (str(entry.get("name", "")) in (name, folder)) + same_number

    best = max(entries, key=fits, default={})
    return best if best and fits(best) else {}


def _draw(bar: TextIO | None, number: int, total: int, what: str) -> None:
    if bar is not None:
        full = 30 * number // total
        line = f"[{'#' * full}{'.' * (30 - full)}] {number}/{total} {what}"
        print(f"\r{line:<100}" if bar.isatty() else line, end="" if bar.isatty() else "\n", file=bar, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="part of a name, to check some of the set")
    parser.add_argument("--level", default="standard")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--json", type=Path, metavar="OUT", help="write everything that was said, for judging by reading"
    )
    parser.add_argument("--goal", type=float, help="exit 1 if a smaller share is named, or right code gets an error")
    chosen = parser.parse_args()
    try:
        measured = measure(chosen.folder, chosen.only, chosen.level, chosen.jobs, sys.stderr)
    except NotFinished:
        sys.exit("not finished: run it again, and it goes on")
    print("\n".join(tables(measured)))
    if chosen.json:
        chosen.json.write_text(json.dumps(_as_json(measured), indent=1), encoding="utf-8")
    if chosen.goal is not None:
        met = measured.share >= chosen.goal and not measured.wrongly_refuted
        print(f"\nnamed {measured.share:.1%}, goal {chosen.goal:.0%}: {'reached' if met else 'MISSED'}")
        raise SystemExit(not met)


def _as_json(measured: Measured) -> dict[str, Any]:
    pairs = [
        {
            "name": p.name,
            "about": dict(p.about),
            "kind": p.kind,
            "by": asdict(p.by) if p.by else None,
            "broken": p.broken.to_dict(),
            "mended": p.mended.to_dict(),
        }
        for p in measured.pairs
    ]
    return {"share": measured.share, "pairs": pairs, "right": [c.to_dict() for c in measured.right]}


if __name__ == "__main__":
    main()
