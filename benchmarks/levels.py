"""How long one subject takes at each level, with a warm zygote, over the whole gallery.

    python benchmarks/levels.py [quick standard deep] [--only PART]

The clock starts when a subject is handed to a zygote that runs already, and stops when its report is there.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path

from gradsmith.checking.isolated import WORKER, Job, reports
from gradsmith.checking.subjects import wanted
from gradsmith.lab.process.isolation import Limits, Zygote

GALLERY = Path(__file__).parent.parent / "examples" / "gallery"
BUDGET = {"quick": 0.5, "standard": 3.0, "deep": 60.0}


def measured(level: str, part: str, *, cpu: bool) -> dict[str, float]:
    """Seconds per subject of the gallery at one level; with `cpu` those of the processor, for a machine that is shared."""
    seconds: dict[str, float] = {}
    with Zygote(Limits(seconds=600.0), WORKER, warm=level != "quick") as zygote:
        zygote.until_ready()
        for item in wanted([str(GALLERY)]):
            if item.path is None or part not in item.path:
                continue
            job = Job(item.path, None, list(item.subjects), whole=item.whole)
            start = time.perf_counter()
            for done in reports(zygote, job, {"level": level, "lint": False}):
                now = time.perf_counter()
                seconds[f"{Path(item.path).stem}::{done.report.subjects[0].name}"] = (
                    zygote.cpu_seconds if cpu else now - start
                )
                start = now
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("levels", nargs="*", default=list(BUDGET))
    parser.add_argument("--only", default="", help="part of a path, to measure some of the gallery")
    parser.add_argument("--cpu", action="store_true", help="processor time instead of the clock")
    chosen = parser.parse_args()
    for level in chosen.levels or list(BUDGET):
        seconds = measured(level, chosen.only, cpu=chosen.cpu)
        slowest = sorted(seconds.items(), key=lambda pair: -pair[1])[:3]
        middle = statistics.median(seconds.values())
        verdict = "within" if middle <= BUDGET[level] else "OVER"
        print(f"{level:>9}: median {middle:.2f} s ({verdict} {BUDGET[level]:g} s), {len(seconds)} subjects")
        print(f"           slowest: {', '.join(f'{name} {s:.1f} s' for name, s in slowest)}")


if __name__ == "__main__":
    main()
