"""Forwards that iterate and take 0.05 to 0.5 s: are they decided within 30 s, and rightly?

    python benchmarks/iterative.py [--only PART] [--level standard] [--jobs 1]

Twelve Functions with declared inputs (benchmarks/iterative/): solvers, eigenvectors, transport, alignment, differential
equations. Four of them have a real mistake. tests/test_iterative.py proves in plain PyTorch which. Each file is given to
`gradsmith check` in a process of its own; a right one must be verified without an error, a wrong one refuted. The goal is 9.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from reach import check_file
from reach_results import Checked

FOLDER = Path(__file__).parent / "iterative"
LIMIT = 30.0
GOAL = 9
WRONG = {
    "box_qp": "forgets that coordinates at a bound do not move",
    "equilibrium": "multiplies by the Jacobian instead of its transpose",
    "ista": "the gradient of the penalty is that of the first iteration alone",
    "sinkhorn": "takes the plan for constant: true of the regularised cost, not of <plan, cost>",
}


def files() -> list[Path]:
    return sorted(FOLDER.glob("*.py"))


def function_of(path: Path) -> tuple[Any, Callable[[], tuple[Any, ...]]]:
    """The Function of a file, and what builds its declared inputs."""
    spec = importlib.util.spec_from_file_location(f"iterative_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    ((name, build),) = module.gradsmith_inputs.items()
    return getattr(module, name), build


def seconds_of_forward(path: Path) -> float:
    """The fastest of three calls."""
    import torch

    torch.set_num_threads(1)
    function, build = function_of(path)
    taken = []
    for _ in range(3):
        torch.manual_seed(0)
        args = build()
        start = time.perf_counter()
        function.apply(*args)
        taken.append(time.perf_counter() - start)
    return min(taken)


def decided_rightly(path: Path, checked: Checked) -> bool:
    wanted = "refuted" if path.stem in WRONG else "verified"
    return checked.answer.verdict == wanted and bool(checked.answer.errors) == (path.stem in WRONG)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--level", default="standard")
    parser.add_argument("--jobs", type=int, default=1)
    chosen = parser.parse_args()
    paths = [path for path in files() if chosen.only in path.stem]
    forwards = [seconds_of_forward(path) for path in paths]
    with ThreadPoolExecutor(chosen.jobs) as pool:
        found = pool.map(lambda path: check_file(path, chosen.level, LIMIT), paths)
        right = 0
        print(f"{'':22} {'forward':>9} {'check':>8}  {'is':6} {'verdict':11} said")
        for path, forward, checked in zip(paths, forwards, found):
            ok = decided_rightly(path, checked)
            right += ok
            said = [str(s) for s in checked.answer.said if s.severity != "info"]
            words = "; ".join([*checked.answer.trouble, *checked.answer.reasons, *said])
            is_ = "wrong" if path.stem in WRONG else "right"
            line = f"{path.stem:22} {forward:>7.3f} s {checked.seconds:>6.1f} s  {is_:6} {checked.answer.verdict:11}"
            print(f"{line} {'' if ok else 'NOT DECIDED RIGHTLY: '}{words}", flush=True)
    print(f"decided rightly {right} of {len(paths)} within {LIMIT:g} s each (goal {GOAL} of 12)")
    raise SystemExit(right < GOAL and len(paths) == len(files()))


if __name__ == "__main__":
    main()
