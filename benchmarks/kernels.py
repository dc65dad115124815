"""Kernels of released packages, checked on a CPU: how many run, what the verdicts are, how long it takes, and which of the
mistakes that a script plants in them are named.

    python -m pip install --no-deps --target /tmp/kernels/pkgs -r benchmarks/kernel_recipes/packages.txt
    MAMBA_FORCE_BUILD=TRUE MAMBA_SKIP_CUDA_BUILD=TRUE python -m pip install --no-deps --no-build-isolation \\
        --target /tmp/kernels/pkgs mamba-ssm==2.3.2.post1
    DS_BUILD_OPS=0 python -m pip install --no-deps --no-build-isolation --target /tmp/kernels/pkgs deepspeed==0.19.8
    python benchmarks/kernels.py verdicts --packages /tmp/kernels/pkgs
    python benchmarks/kernels.py mutants --packages /tmp/kernels/pkgs --seed 24 --count 40
    python benchmarks/kernels.py guard --packages /tmp/kernels/pkgs
    python benchmarks/kernels.py planted

flash-attn 2.8.3.post2 does not build without CUDA: unpack the sdist, and move its flash_attn/ to a folder of its own. It has to come
before the packages for `--only further` alone: xformers, which finds it, asks for its compiled part.

Some of the other packages use block pointers, which triton 3.9 has no more: they run with an older triton before the packages.

    python -m pip install --no-deps --target /tmp/kernels/triton-3.4.0 triton==3.4.0
    python benchmarks/kernels.py verdicts --only others --packages /tmp/kernels/triton-3.4.0:/tmp/kernels/pkgs

Recipes (inputs, and a float64 reference where there is one) are in kernel_recipes/. Every case runs in a process of its own, and
seconds are those of its CPU.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import os
import signal
import statistics
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["TRITON_INTERPRET"] = "1"
import torch
from kernel_mutants import OF_MEMORY, Mutant, drawn, loaded
from kernel_recipes import Case

LIMIT_S = 150
PACKAGES = ("liger", "fla", "others", "more", "further")
AGREES = 1e-4
PLANTED = Path(__file__).parent / "kernel_planted"
TURNS = 7
TURN_S = 0.03
LONG_S = 0.2  # runs that need no repetition


def cases(package: str) -> list[Case]:
    recipes = importlib.import_module(f"kernel_recipes.{package}")
    return [c for value in vars(recipes).values() for c in getattr(value, "cases", ())]


def apart(work: Callable[[], dict[str, Any]], limit_s: float = LIMIT_S) -> dict[str, Any]:
    """What the work returns, from a process of its own."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        signal.setitimer(signal.ITIMER_PROF, limit_s)  # of CPU time
        try:
            answer = work()
        except BaseException as error:  # whatever a kernel does is a row of the table
            answer = {"verdict": "raises", "reason": f"{type(error).__name__}: {str(error)[:200]}"}
        os.write(writing, json.dumps(answer).encode())
        os._exit(0)
    os.close(writing)
    data = b""
    while piece := os.read(reading, 65536):
        data += piece
    os.close(reading)
    os.waitpid(child, 0)
    return json.loads(data) if data else {"verdict": "no answer", "reason": f"within {limit_s} s"}


def checked(case: Case, level: str, home: Any = None) -> dict[str, Any]:
    """The verdict of a check, and its errors and warnings."""
    from gradsmith.checking.options import Options
    from gradsmith.checking.run import examine
    from gradsmith.inputs.examples import Supply
    from gradsmith.lab import resolve
    from gradsmith.lab.triton.events import LOGS

    home = home or case.home()
    torch.manual_seed(0)
    arguments = case.arguments()
    start_s = time.process_time()
    options = Options(level=level, lint=False, isolated=True)
    report = examine(resolve(getattr(home, case.function)), Supply(((arguments, {}),), "given"), options)
    (subject,) = report.subjects
    return {
        "verdict": subject.verdict,
        "reason": subject.reason,
        "seconds": time.process_time() - start_s,
        "launches": sum(t.launches for t in LOGS[0].traffic.values()),
        "findings": [
            (g.rule, g.code, f.severity, g.path or "", g.line)
            for f in report.findings
            if f.severity in ("error", "warning")
            for g in (f, *f.symptoms)
        ],
    }


def ran(case: Case) -> dict[str, Any]:
    """Forward and backward once, held against the reference in float64."""
    torch.manual_seed(0)
    made = case.arguments()
    function = getattr(case.home(), case.function)
    wanted, known = gradients(case.reference, made, torch.float64) if case.reference is not None else ([], None)
    start_s = time.process_time()
    got, _ = gradients(function.apply, made, None, known)
    seconds = time.process_time() - start_s
    if case.reference is None:
        return {"ran": True, "off": None, "seconds": seconds}
    off = [
        float((a.to(b.dtype) - b).abs().max() / b.abs().max().clamp(min=1e-30))
        for a, b in zip(got, wanted, strict=True)
    ]
    return {"ran": True, "off": max(off), "seconds": seconds}


def gradients(
    call: Callable[..., Any], made: tuple[Any, ...], dtype: torch.dtype | None, known: list[int] | None = None
) -> tuple[list[torch.Tensor], list[int]]:
    """Outputs that have a gradient, and all gradients, for one fixed grad_output; and which outputs: `known`, if given.

    Inputs are cast to the dtype, where there is one.
    """
    given = [
        a.detach().clone().to(dtype if dtype and a.is_floating_point() else a.dtype).requires_grad_(a.requires_grad)
        if isinstance(a, torch.Tensor)
        else a
        for a in made
    ]
    leaves = [a for a in given if isinstance(a, torch.Tensor) and a.requires_grad]
    result = call(*given)
    results = result if isinstance(result, tuple) else (result,)
    has_gradient = [i for i, o in enumerate(results) if isinstance(o, torch.Tensor) and o.requires_grad]
    chosen = known if known is not None else has_gradient
    outputs = [results[i] for i in chosen]
    before = [o.detach().clone() for o in outputs]
    generator = torch.Generator().manual_seed(1)
    v = [torch.randn(o.shape, generator=generator, dtype=torch.float64).to(o.dtype) for o in outputs]
    found = torch.autograd.grad(outputs, leaves, v, allow_unused=True)
    return [*before, *(g.detach() for g in found if g is not None)], chosen


def run_verdicts(every: list[Case], level: str) -> None:
    rows = []
    for case in every:
        first = apart(lambda case=case: ran(case))
        answer = apart(lambda case=case: checked(case, level)) if first.get("ran") else first
        rows.append((case, first, answer))
        off = "no reference" if first.get("off") is None else f"off {first['off']:.0e}"
        print(
            f"{case.name:34s} {answer['verdict']:10s} {answer.get('seconds', 0):6.1f} s {answer.get('launches', 0):5d} launches "
            f"{off:12s} {answer['reason'][:100]}",
            flush=True,
        )
        for finding in answer.get("findings", ()):
            print("      ", *finding[:3], os.path.basename(finding[3]), finding[4], flush=True)
    for package in dict.fromkeys(c.name.partition(".")[0] for c, _, _ in rows):
        _summary(package, [r for r in rows if r[0].name.partition(".")[0] == package])
    _summary("all", rows)


def _summary(title: str, rows: list[tuple[Case, dict[str, Any], dict[str, Any]]]) -> None:
    agree = [a for _, f, a in rows if f.get("off") is not None and f["off"] < AGREES]
    verdicts = Counter(
        "rightly refuted" if a["verdict"] == "refuted" and c.defect else a["verdict"]
        for c, f, a in rows
        if f.get("off") is not None and f["off"] < AGREES
    )
    times = [a["seconds"] for _, _, a in rows if "seconds" in a]
    print(
        f"{title}: {sum(bool(f.get('ran')) for _, f, _ in rows)} of {len(rows)} run; {len(agree)} agree with float64:",
        end=" ",
    )
    print(", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common()), end="; ")
    print(
        f"CPU seconds: median {statistics.median(times):.1f}, longest {max(times):.1f}"
        if times
        else "nothing was checked"
    )


def _errors(answer: dict[str, Any]) -> set[str]:
    return {rule for rule, _, severity, _, _ in answer.get("findings", ()) if severity == "error"}


def effect(mutant: Mutant) -> dict[str, Any]:
    """Whether a mistake shows at all on the recipe: other numbers, or other accesses to memory.

    A load without `other` shows where some number in its masked lanes changes a result: a store with the same mask drops them.
    """
    from gradsmith.lab.triton.events import kernels_logged

    torch.manual_seed(0)
    made = mutant.case.arguments()
    right = getattr(mutant.case.home(), mutant.case.function)
    with kernels_logged() as seen:
        before, _ = gradients(right.apply, made, None)
    known = accesses(seen)
    with kernels_logged() as seen:
        wrong = loaded(mutant, mutant.with_nonsense)
        after, _ = gradients(getattr(wrong, mutant.case.function).apply, made, None)
    same = len(before) == len(after) and all(torch.equal(a, b) for a, b in zip(before, after))
    touches = bool(accesses(seen) - known)
    return {"shows": not same or touches, "memory": touches or mutant.kind in OF_MEMORY}


def accesses(seen: Any) -> set[tuple[Any, ...]]:
    """What the guard saw, wherever the file lies: a mutant is a file of its own."""
    return {(e.kind, os.path.basename(e.path), e.line, e.argument) for e in seen.events.values()}


def run_mutants(every: list[Case], seed: int, count: int, level: str) -> None:
    """The first so many mistakes that show; one that raises, or changes nothing on the recipe, is not counted."""
    chosen: list[Mutant] = []
    named = at_line = memory = without_effect = 0
    for mutant in drawn([c for c in every if c.reference is not None], seed):
        if len(chosen) == count:
            break
        if mutant.case.defect:  # it is reported without a mistake, too
            continue
        known = apart(lambda mutant=mutant: effect(mutant), 30)
        if not known.get("shows"):
            without_effect += 1
            continue
        chosen.append(mutant)
        answer = apart(lambda mutant=mutant: checked(mutant.case, level, loaded(mutant)))
        named += bool(_errors(answer))
        here = [(path, line) for _, code, _, path, line in answer.get("findings", ()) if code.startswith("GSK")]
        near = any(mutant.is_at(path, line) for path, line in here)
        where = ""
        if known["memory"]:
            memory, at_line = memory + 1, at_line + near
            where = " at the line" if near else f" NOT AT THE LINE, but at {[line for _, line in here]}"
        errors = ", ".join(sorted(_errors(answer))) or f"NOT NAMED: {answer['verdict']} {answer['reason'][:90]}"
        print(
            f"{mutant.kind:23s} {mutant.case.name}:{mutant.line} {mutant.before[:60]!r} -> {mutant.after[:50]!r}: {errors}{where}",
            flush=True,
        )
    functions = len({(m.case.module, m.case.function) for m in chosen})
    print(
        f"{named} of {len(chosen)} named, over {functions} Functions; of memory, at the kernel's line: {at_line} of {memory}; "
        f"{without_effect} more had no effect on the recipe, or raised"
    )


def run_guard(every: list[Case]) -> None:
    """The interpreted run with the guard against the one without it, by turns in one process."""
    ratios = {}
    for case in every:
        answer = apart(lambda case=case: _by_turns(case))
        if "guarded" in answer:
            ratios[case.name] = answer["ratio"]
            print(
                f"{case.name:34s} {answer['bare']:7.3f} s without, {answer['guarded']:7.3f} s with: {ratios[case.name]:.2f}x",
                flush=True,
            )
    print(
        f"guard: median {statistics.median(ratios.values()):.2f}x, over {len(ratios)} cases; beyond 1.5x: "
        + (", ".join(f"{name} {ratio:.2f}x" for name, ratio in ratios.items() if ratio > 1.5) or "none")
    )


def _by_turns(case: Case) -> dict[str, Any]:
    from gradsmith.lab.triton import guard

    ran(case)  # kernels are rewritten once
    once_s = max(_alone(case, 2) / 2, 1e-4)
    times = max(1, round(TURN_S / once_s))
    guarded, bare = [], []
    for _ in range(TURNS if once_s < LONG_S else 3):
        guarded.append(_alone(case, times) / times)
        guard.uninstall()
        bare.append(_alone(case, times) / times)
        guard.install()
    # Of each pair by itself: what else the machine does changes from one to the next.
    ratio = statistics.median(g / b for g, b in zip(guarded, bare))
    return {"guarded": statistics.median(guarded), "bare": statistics.median(bare), "ratio": ratio}


def _alone(case: Case, times: int) -> float:
    """CPU seconds of so many forwards and backwards, without the reference."""
    torch.manual_seed(0)
    function, made = getattr(case.home(), case.function), case.arguments()
    start_s = time.thread_time()  # the process's own is counted in ticks while a timer is set on it
    for _ in range(times):
        gradients(function.apply, made, None)
    return time.thread_time() - start_s


def run_planted(only: set[str]) -> None:
    """Functions written for this: broken ones, ones that are broken beside their example only, and ones that look so."""
    from gradsmith.checking.paths import check_paths

    for name, level in (("broken", "quick"), ("hidden", "standard"), ("right", "standard")):
        if only and name not in only:
            continue
        path = PLANTED / f"{name}.py"
        text = path.read_text(encoding="utf-8")
        expected, at = _written(text, "EXPECTED"), _written(text, "AT")
        report = check_paths(path, level=level, lint=False)
        as_expected = 0
        for subject in report.subjects:
            found = [f for f in report.findings if f.function == subject.name and f.severity in ("error", "warning")]
            every = [g for f in found for g in (f, *f.symptoms)]
            if name == "right":
                fine = subject.verdict == "verified" and not found
            else:
                fine = bool({g.rule for g in every} & expected[subject.name])
            piece = at.get(subject.name)
            lines = [text.splitlines()[g.line - 1] for g in every if g.code.startswith("GSK") and g.line]
            where = (
                "" if piece is None else " at the line" if any(piece in line for line in lines) else " NOT AT THE LINE"
            )
            as_expected += fine
            rules = ", ".join(dict.fromkeys(f"{g.rule} ({g.severity})" for g in every)) or subject.reason
            print(
                f"{name} {subject.name}: {subject.verdict} {rules}{where}{'' if fine else ': NOT AS EXPECTED'}",
                flush=True,
            )
        print(f"{name}, level {level}: {as_expected} of {len(report.subjects)} as expected", flush=True)


def _written(text: str, name: str) -> dict[str, Any]:
    """The literal that a name is bound to in a file, without running it."""
    for part in ast.parse(text).body:
        if isinstance(part, ast.Assign) and ast.unparse(part.targets[0]) == name:
            return dict(ast.literal_eval(part.value))
    return {}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("verdicts", "mutants", "guard", "planted"))
    parser.add_argument("--packages", default="/tmp/kernels/pkgs")
    parser.add_argument("--only", nargs="*", default=(), help="packages of recipes, cases, or planted files")
    parser.add_argument("--level", default="quick")
    parser.add_argument("--seed", type=int, default=24)
    parser.add_argument("--count", type=int, default=40)
    chosen = parser.parse_args()
    if chosen.what == "planted":
        run_planted(set(chosen.only))
        return
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    sys.path[:0] = chosen.packages.split(":")
    from gradsmith import catalog
    from gradsmith.lab.triton import shims

    shims.install()
    catalog.rules()
    only = set(chosen.only)
    every = [c for package in PACKAGES for c in cases(package) if not only or {package, c.name} & only]
    if chosen.what == "verdicts":
        run_verdicts(every, chosen.level)
    elif chosen.what == "mutants":
        run_mutants(every, chosen.seed, chosen.count, chosen.level)
    else:
        run_guard(every)


if __name__ == "__main__":
    main()
