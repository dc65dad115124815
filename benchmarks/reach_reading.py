"""What is said about 40 broken Functions, drawn by seed, for judging kind, cause and advice by reading.

    python benchmarks/reach_reading.py FOLDER [--count 40] [--seed 7] [--jobs 1] [--out FILE]
    python benchmarks/reach_reading.py --tally benchmarks/reach/reading.json

The first form runs `gradsmith check` on every drawn pairs/NNN/broken.py and writes what a reader needs: the change that mends
the file, and every error or warning with its cause, advice and repair. The second counts the judgements that a reader wrote down:
each entry has `kind`, `cause` and `advice` (right, wrong, none) and `harm` (true where following the advice makes it worse).
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import random
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any


def drawn(folder: Path, count: int, seed: int) -> list[Path]:
    """The pairs to read, in the order of their names."""
    pairs = sorted(p for p in (folder / "pairs").iterdir() if (p / "broken.py").is_file())
    return sorted(random.Random(seed).sample(pairs, min(count, len(pairs))))


def said(pair: Path) -> dict[str, Any]:
    """The findings on the broken file, and the difference to the mended one."""
    broken = (pair / "broken.py").read_text(encoding="utf-8").splitlines()
    mended = (pair / "mended.py").read_text(encoding="utf-8").splitlines()
    with tempfile.TemporaryDirectory(prefix="gradsmith-reading-") as cache:
        environment = {"OMP_NUM_THREADS": "1", **os.environ, "GRADSMITH_CACHE_DIR": cache}
        command = [sys.executable, "-m", "gradsmith", "check", str(pair / "broken.py"), "--format", "json"]
        result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    try:
        report = json.loads(result.stdout)
    except ValueError:
        return {"pair": pair.name, "trouble": result.stderr[-400:]}
    return {
        "pair": pair.name,
        "mended by": [
            d for d in difflib.unified_diff(broken, mended, lineterm="", n=0) if d[:2] not in ("--", "++", "@@")
        ],
        "verdicts": [(s["name"], s["verdict"], s["assumptions"]) for s in report["subjects"]],
        "findings": [
            {
                **{key: f[key] for key in ("rule", "severity", "line", "message", "cause", "advice", "applicability")},
                "kind": f["evidence"].get("kind"),
                "repair": [e["replacement"] for e in f["edits"]],
            }
            for f in report["findings"]
            if f["severity"] != "info"
        ],
    }


def tally(path: Path) -> str:
    """The shares of right kinds, causes and advices, one line for each run in the file."""
    lines = []
    for name, judged in json.loads(path.read_text(encoding="utf-8"))["runs"].items():
        named = [j for j in judged.values() if j["kind"] != "silent"]
        parts = [f"{name}: {len(named)} of {len(judged)} findings to read"]
        for what in ("kind", "cause", "advice"):
            counted = [j[what] for j in named]
            parts.append(
                f"{what} right {counted.count('right')} ({counted.count('right') / len(named):.0%}), "
                f"none {counted.count('none')}, wrong {counted.count('wrong')}"
            )
        parts.append(f"harmful advice {sum(bool(j.get('harm')) for j in judged.values())}")
        lines.append("; ".join(parts))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--tally", type=Path, metavar="FILE")
    chosen = parser.parse_args()
    if chosen.tally:
        print(tally(chosen.tally))
        return
    if chosen.folder is None:
        parser.error("name a folder, or --tally FILE")
    with ThreadPoolExecutor(chosen.jobs) as pool:
        found = list(pool.map(said, drawn(chosen.folder, chosen.count, chosen.seed)))
    text = json.dumps(found, indent=1)
    if chosen.out:
        chosen.out.write_text(text, encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
