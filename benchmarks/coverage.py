"""How much of public Functions a check reaches with guessed inputs, and what watching costs.

    python benchmarks/coverage.py collect             download the packages of packages.json (no dependencies), check hashes
    python benchmarks/coverage.py draw --seed 19      draw Functions from them, before anything is run
    python benchmarks/coverage.py run [--most 100]    check them in the order drawn until so many could be run; goes on where
                                                      it stopped (--count so many at once, --again from the beginning)
    python benchmarks/coverage.py cost [FOLDER ...] [--sample 20] [--rounds 3]
                                                      CPU time of a check with coverage, against one without, on the gallery
                                                      and on so many files of each FOLDER (benchmarks/reach/set6)

Code of others is kept in a folder outside the repository (`--folder`, /tmp/cover); names, versions and hashes are kept here.
A Function counts where guessed inputs run its forward and its backward: one that needs a GPU, a missing library or inputs that
are not found is listed with its reason, and so is one whose backward raises on all that was guessed. Of those that count, every line and every side that a run which returns can take is in
the denominator, those of lines that never ran included. The goals: 85 % reached at level standard, at most 1.5x the time.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import statistics
import subprocess
import sys
import tarfile
import time
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent / "coverage"
PACKAGES, DRAWN, RESULTS = HERE / "packages.json", HERE / "drawn.json", HERE / "results.json"
GALLERY = Path(__file__).parent.parent / "examples" / "gallery"
OF_ONE_PACKAGE = 6
BATCH = 10


def collect(folder: Path, names: list[str]) -> None:
    """The packages that are listed, or these new ones, as archives that were unpacked and never installed."""
    listed = json.loads(PACKAGES.read_text()) if PACKAGES.exists() else []
    wanted = [(name, None) for name in names] or [(row["name"], row) for row in listed]
    found = [] if not names else listed
    for name, row in wanted:
        archives = folder / "archives" / name
        version = f"{name}=={row['version']}" if row else name
        call = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "-d", str(archives)]
        if not archives.exists() and subprocess.run([*call, version], capture_output=True, timeout=300).returncode:
            print(f"{name}: no wheel", flush=True)
            continue
        archive = next(archives.iterdir())
        digest = hashlib.sha256(archive.read_bytes()).hexdigest()
        if row and row["sha256"] != digest:
            raise SystemExit(f"{name}: the archive is not the one that was measured")
        number = archive.name.split("-")[1]
        target = folder / "packages" / f"{name}-{number}"
        if not target.exists():
            _unpack(archive, target)
        found.append({"name": name, "version": number, "archive": archive.name, "sha256": digest})
    if names:
        HERE.mkdir(exist_ok=True)
        PACKAGES.write_text(json.dumps(found, indent=1) + "\n")


def _unpack(archive: Path, target: Path) -> None:
    if archive.suffix in (".whl", ".zip"):
        zipfile.ZipFile(archive).extractall(target)
    else:
        with tarfile.open(archive) as opened:
            opened.extractall(target, filter="data")


def draw(folder: Path, seed: int) -> None:
    """All Functions in an order that the seed decides, at most a few of one package."""
    from gradsmith.checking.subjects import functions_in

    found = []
    for package in sorted((folder / "packages").iterdir()):
        try:
            functions = [f for f in functions_in([package]) if f.kind == "function"]
        except Exception as error:  # a file that is not Python as we know it
            print(f"{package.name}: {error}")
            continue
        places = sorted({f"{Path(f.file.path).relative_to(folder / 'packages')}::{f.qualname}" for f in functions})
        # A class inside a function cannot be had without calling it.
        outer = [place for place in places if "<locals>" not in place and "/tests/" not in place]
        found += random.Random(f"{seed}:{package.name}").sample(outer, min(OF_ONE_PACKAGE, len(outer)))
    random.Random(seed).shuffle(found)
    DRAWN.write_text(json.dumps({"seed": seed, "functions": found}, indent=1) + "\n")
    print(f"{len(found)} Functions of {len({place.split('/')[0] for place in found})} packages")


def run(folder: Path, most: int, level: str, count: int, again: bool) -> None:
    drawn = json.loads(DRAWN.read_text())["functions"]
    rows: list[dict[str, Any]] = json.loads(RESULTS.read_text()) if RESULTS.exists() and not again else []
    first = len(rows)
    for start in range(first, min(len(drawn), first + count), BATCH):
        if sum(_ran(row) for row in rows) >= most:
            break
        rows += list(_checked(folder, drawn[start : start + BATCH], level))
        _told(rows)
        RESULTS.write_text(json.dumps(rows, indent=1) + "\n")
    _told(rows)
    missed = Counter(kind for row in rows if _ran(row) for kind in row["missed"])
    print("not reached, by sort:", dict(missed.most_common()))


def _checked(folder: Path, places: list[str], level: str) -> Iterator[dict[str, Any]]:
    targets = [str(folder / "packages" / place) for place in places]
    call = [sys.executable, "-m", "gradsmith", "check", *targets, "--coverage", "--level", level, "--format", "json"]
    done = subprocess.run([*call, "--timeout", "40", "--exit-zero"], capture_output=True, text=True)
    try:
        report = json.loads(done.stdout)
    except json.JSONDecodeError:
        print(done.stderr[-500:])
        report = {"subjects": []}
    subjects = {(s["path"], s["name"].rpartition(".")[2]): s for s in report["subjects"]}
    for place, target in zip(places, targets):
        path, _, name = target.partition("::")
        subject = subjects.get((path, name.rpartition(".")[2]), {})
        found = subject.get("coverage") or {}
        yield {
            "function": place,
            "verdict": subject.get("verdict", "none"),
            "reason": subject.get("reason", "")[:160],
            "lines": found.get("lines", 0),
            "lines reached": found.get("lines reached", 0),
            "sides": found.get("sides", 0),
            "sides reached": found.get("sides reached", 0),
            "not reached": found.get("not reached", []),
            "missed": [f"{p['sort']} {p['side']}" for p in found.get("points", ()) if p["state"] == "never"],
        }


def _ran(row: dict[str, Any]) -> bool:
    return bool(row["lines"]) and not row["reason"].startswith("backward raises")


def _told(rows: list[dict[str, Any]]) -> None:
    ran = [row for row in rows if _ran(row)]
    lines, sides = sum(r["lines"] for r in ran), sum(r["sides"] for r in ran)
    lines_in, sides_in = sum(r["lines reached"] for r in ran), sum(r["sides reached"] for r in ran)
    if lines and sides:
        both = (lines_in + sides_in) / (lines + sides)
        print(
            f"{len(ran)} of {len(rows)} ran: lines {lines_in}/{lines} ({lines_in / lines:.1%}), "
            f"sides {sides_in}/{sides} ({sides_in / sides:.1%}), together {both:.1%} (goal 85 %)",
            flush=True,
        )


class Blind:
    """The explorer without coverage: nothing is watched, and no side is searched for."""

    def __init__(self, *args: Any) -> None:
        pass

    def steps(self) -> Iterator[Any]:
        return iter(())

    def ordered(self, examples: list[Any], left: int) -> list[Any]:
        return examples

    def may_end_with(self, moves: Any) -> bool:
        return False

    def note(self, trial: Any) -> None:
        pass


def cost(rounds: int, folders: list[str], sample: int, seed: int) -> None:
    """CPU time of checks in turns, watched first in every second one; a check before them loads and compiles, and is not counted."""
    import torch

    from gradsmith.checking.options import Options
    from gradsmith.checking.run import examine_supplied
    from gradsmith.checking.subjects import wanted
    from gradsmith.lab.explore import explorer
    from gradsmith.lab.subject.importing import import_file
    from gradsmith.lab.subject.target import resolve

    torch.set_num_threads(1)
    watching = explorer.Steering
    for place in (str(GALLERY), *folders):
        items = list(wanted([place]))
        if place != str(GALLERY):
            items = random.Random(seed).sample(items, min(sample, len(items)))
        ratios = []
        for item in items:
            module = import_file(Path(str(item.path)))
            subjects = [getattr(module, name) for name, _ in item.subjects if "." not in name]
            times: dict[bool, float] = {True: 0.0, False: 0.0}
            for subject in subjects:
                examine_supplied(resolve(subject), Options(), module)
            for number in range(rounds):
                for watched in (True, False) if (number + len(ratios)) % 2 else (False, True):
                    explorer.Steering = watching if watched else Blind  # type: ignore[assignment,misc]
                    start = time.process_time()
                    for subject in subjects:
                        examine_supplied(resolve(subject), Options(), module)
                    times[watched] += time.process_time() - start
            explorer.Steering = watching  # type: ignore[misc]
            ratios.append((times[True], times[False]))
            name = "/".join(Path(str(item.path)).parts[-2:])
            print(f"{name:44} {times[True] / times[False]:.2f}x of {times[False] / rounds:.2f} s", flush=True)
        with_it, without = (sum(pair[i] for pair in ratios) for i in (0, 1))
        median = statistics.median(a / b for a, b in ratios)
        told = f"{place}: {len(ratios)} files, together {with_it / without:.2f}x of {without / rounds:.1f} s"
        print(f"{told}, median {median:.2f}x (goal: at most 1.5x)", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("collect", "draw", "run", "cost"))
    parser.add_argument("names", nargs="*", help="collect: packages to add; cost: folders beside the gallery")
    parser.add_argument("--sample", type=int, default=20, help="cost: files of each folder")
    parser.add_argument("--folder", type=Path, default=Path("/tmp/cover"))
    parser.add_argument("--seed", type=int, default=19)
    parser.add_argument("--most", type=int, default=100)
    parser.add_argument("--count", type=int, default=1000, help="run: so many this time")
    parser.add_argument("--again", action="store_true", help="run: from the beginning")
    parser.add_argument("--level", default="standard")
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    if chosen.what == "collect":
        collect(chosen.folder, chosen.names)
    elif chosen.what == "draw":
        draw(chosen.folder, chosen.seed)
    elif chosen.what == "run":
        run(chosen.folder, chosen.most, chosen.level, chosen.count, chosen.again)
    else:
        cost(chosen.rounds, chosen.names, chosen.sample, chosen.seed)


if __name__ == "__main__":
    main()
