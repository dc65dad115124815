"""Kernels of released packages, checked on a CPU: how many run, what the verdicts are, how long it takes, and which of the
mistakes that a script plants in them are named.

    python -m pip install --no-deps --target /tmp/kernels/pkgs liger-kernel==0.8.5 fla-core==0.6.0 einops packaging
    python benchmarks/kernels.py verdicts --packages /tmp/kernels/pkgs
    python benchmarks/kernels.py mutants --packages /tmp/kernels/pkgs --seed 24 --count 40
    python benchmarks/kernels.py guard --packages /tmp/kernels/pkgs

Recipes (inputs, and a float64 reference where there is one) are in kernel_recipes/. Every case runs in a process of its own.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import importlib.util
import json
import os
import random
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ["TRITON_INTERPRET"] = "1"
import torch

HERE = Path(__file__).parent
LIMIT_S = 150


@dataclass(frozen=True)
class Case:
    """A Function of a package, and how to make inputs for it."""

    name: str
    module: str
    function: str
    arguments: Callable[[torch.dtype], tuple[Any, ...]]
    reference: Callable[..., Any] | None


def cases(package: str) -> list[Case]:
    recipes = importlib.import_module(f"kernel_recipes.{package}")
    return [Case(f"{package}.{name}", *row) for name, row in recipes.C.items()]


def apart(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What the work returns, from a process of its own."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        signal.setitimer(signal.ITIMER_PROF, LIMIT_S)  # of CPU time
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
    return json.loads(data) if data else {"verdict": "raises", "reason": f"no answer within {LIMIT_S} s"}


def checked(case: Case, level: str, home: Any = None) -> dict[str, Any]:
    from gradsmith.checking.options import Options
    from gradsmith.checking.run import examine
    from gradsmith.inputs.examples import Supply
    from gradsmith.lab import resolve
    from gradsmith.lab.triton.events import SEEN

    home = home or importlib.import_module(case.module)
    torch.manual_seed(0)
    arguments = case.arguments(torch.float32)
    start_s = time.process_time()
    options = Options(level=level, lint=False, isolated=True)
    report = examine(resolve(getattr(home, case.function)), Supply(((arguments, {}),), "given"), options)
    (subject,) = report.subjects
    return {
        "verdict": subject.verdict,
        "reason": subject.reason,
        "seconds": time.process_time() - start_s,
        "launches": sum(t.launches for t in SEEN[0].traffic.values()),
        "findings": [
            (g.rule, f.severity, os.path.basename(g.path or ""), g.line)
            for f in report.findings
            if f.severity in ("error", "warning")
            for g in (f, *f.symptoms)
        ],
    }


def ran(case: Case) -> dict[str, Any]:
    """Forward and backward once, held against the reference in float64."""
    torch.manual_seed(0)
    made = case.arguments(torch.float32)
    function = getattr(importlib.import_module(case.module), case.function)
    start_s = time.process_time()
    got = _gradients(function.apply, made, torch.float32)
    seconds = time.process_time() - start_s
    if case.reference is None:
        return {"ran": True, "off": None, "seconds": seconds}
    wanted = _gradients(case.reference, made, torch.float64)
    off = max(
        (float((a.double() - b).abs().max() / b.abs().max().clamp(min=1e-30)) for a, b in zip(got, wanted)), default=0.0
    )
    return {"ran": True, "off": off, "seconds": seconds}


def _gradients(call: Callable[..., Any], made: tuple[Any, ...], dtype: torch.dtype) -> list[torch.Tensor]:
    given = [
        a.detach().clone().to(dtype if a.is_floating_point() else a.dtype).requires_grad_(a.requires_grad)
        if isinstance(a, torch.Tensor)
        else a
        for a in made
    ]
    result = call(*given)
    outputs = [
        o
        for o in (result if isinstance(result, tuple) else (result,))
        if isinstance(o, torch.Tensor) and o.requires_grad
    ]
    leaves = [a for a in given if isinstance(a, torch.Tensor) and a.requires_grad]
    generator = torch.Generator().manual_seed(1)
    v = [torch.randn(o.shape, generator=generator, dtype=torch.float64).to(o.dtype) for o in outputs]
    return [g for g in torch.autograd.grad(outputs, leaves, v, allow_unused=True) if g is not None]


# Mistakes that a script plants: each takes a node of a module's tree and gives the one to put in its place.
def _without(node: ast.Call, name: str) -> ast.Call | None:
    kept = [k for k in node.keywords if k.arg != name]
    return ast.Call(node.func, node.args, kept) if len(kept) < len(node.keywords) else None


def mistakes(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
    if isinstance(node, ast.Call) and called in ("tl.load", "tl.store"):
        if (bare := _without(node, "mask")) is not None:
            yield "mask dropped", _without(bare, "other") or bare
        if (bare := _without(node, "other")) is not None:
            yield "other removed", bare
    if isinstance(node, ast.Call) and called == "tl.atomic_add" and len(node.args) > 1:
        masks = [k for k in node.keywords if k.arg == "mask"]
        yield "missing atomic", ast.Call(ast.parse("tl.store", mode="eval").body, node.args, masks)
    if isinstance(node, ast.Call) and called == "triton.cdiv" and len(node.args) == 2:
        yield "grid short", ast.BinOp(node.args[0], ast.FloorDiv(), node.args[1])
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Lt):
        yield "boundary", ast.Compare(node.left, [ast.LtE()], node.comparators)
    if (
        isinstance(node, ast.BinOp)
        and isinstance(node.op, (ast.Add, ast.Sub))
        and "ptr" not in ast.unparse(node).lower()
    ):
        yield "term dropped", node.left
        yield "sign", ast.BinOp(node.left, ast.Sub() if isinstance(node.op, ast.Add) else ast.Add(), node.right)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and "stride" in ast.unparse(node.right):
        yield "stride swapped", ast.BinOp(node.left, ast.Mult(), ast.Constant(1))


@dataclass(frozen=True)
class Mutant:
    case: Case
    kind: str
    path: str
    line: int
    before: str
    after: str
    text: str  # of the whole file


def mutants_of(case: Case) -> Iterator[Mutant]:
    """Every mistake that fits somewhere in the kernels of a module, and in the grids it launches them with."""
    home = importlib.import_module(case.module)
    path = str(home.__file__)
    text = Path(path).read_text(encoding="utf-8")
    tree = ast.parse(text)
    kernels = [
        n
        for n in tree.body
        if isinstance(n, ast.FunctionDef) and any("jit" in ast.unparse(d) for d in n.decorator_list)
    ]
    inside = [(True, n) for k in kernels for s in k.body for n in ast.walk(s)]
    outside = [(False, n) for f in tree.body if f not in kernels for n in ast.walk(f)]
    for in_kernel, node in inside + outside:
        for kind, new in mistakes(node):
            if in_kernel == (kind != "grid short"):
                yield Mutant(
                    case, kind, path, node.lineno, ast.unparse(node), ast.unparse(new), _replaced(text, node, new)
                )
        if in_kernel and isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
            new = ast.Assign([node.target], node.value, lineno=node.lineno)
            yield Mutant(
                case,
                "accumulate overwritten",
                path,
                node.lineno,
                ast.unparse(node),
                ast.unparse(new),
                _replaced(text, node, new),
            )


def _replaced(text: str, node: Any, new: ast.AST) -> str:
    """The text with one node replaced; every other line keeps its number."""
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    first = starts[node.lineno - 1] + len(lines[node.lineno - 1].encode()[: node.col_offset].decode())
    last = starts[node.end_lineno - 1] + len(lines[node.end_lineno - 1].encode()[: node.end_col_offset].decode())
    written = ast.unparse(new)
    written = written if isinstance(new, ast.Assign) else f"({written})"
    return text[:first] + written + "\\\n" * (node.end_lineno - node.lineno) + text[last:]


def loaded(mutant: Mutant) -> Any:
    folder = tempfile.mkdtemp(prefix="mutant-")
    path = Path(folder) / Path(mutant.path).name
    path.write_text(mutant.text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(mutant.case.module, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[mutant.case.module] = module
    spec.loader.exec_module(module)
    return module


def drawn(every: list[Case], seed: int, count: int) -> list[Mutant]:
    """So many mistakes, one kind after the other, over as many Functions as there are: drawn before anything runs."""
    chance = random.Random(seed)
    by_kind: dict[str, list[Mutant]] = {}
    seen_modules: set[str] = set()
    for case in every:
        if case.module not in seen_modules:
            seen_modules.add(case.module)
            for mutant in mutants_of(case):
                by_kind.setdefault(mutant.kind, []).append(mutant)
    chosen: list[Mutant] = []
    used: dict[str, int] = {}
    while len(chosen) < count:
        for kind in sorted(by_kind):
            pool = by_kind[kind]
            if pool and len(chosen) < count:
                least = min(used.get(m.case.module, 0) for m in pool)
                mutant = chance.choice([m for m in pool if used.get(m.case.module, 0) == least])
                pool.remove(mutant)
                used[mutant.case.module] = used.get(mutant.case.module, 0) + 1
                chosen.append(mutant)
    return chosen


def effect(mutant: Mutant) -> dict[str, Any]:
    """Whether a mistake shows at all on the recipe: another number, or another access to memory."""
    from gradsmith.lab.triton.events import SEEN

    torch.manual_seed(0)
    made = mutant.case.arguments(torch.float32)
    before = _gradients(
        getattr(importlib.import_module(mutant.case.module), mutant.case.function).apply, made, torch.float32
    )
    known = len(SEEN[0].events) + len(SEEN[0].undefined)
    after = _gradients(getattr(loaded(mutant), mutant.case.function).apply, made, torch.float32)
    heard = len(SEEN[0].events) + len(SEEN[0].undefined)
    same = all(torch.equal(a, b) for a, b in zip(before, after)) and len(before) == len(after)
    return {"shows": not same or heard > known}


MEMORY = ("mask dropped", "boundary", "missing atomic", "other removed", "grid short")


def run_mutants(every: list[Case], seed: int, count: int, level: str) -> None:
    right = {c.name: None for c in every}
    chosen = drawn([c for c in every if c.reference is not None and c.name in right], seed, count)
    named = shown = at_line = memory = 0
    for mutant in chosen:
        answer = apart(lambda mutant=mutant: checked(mutant.case, level, loaded(mutant)))
        shows = apart(lambda mutant=mutant: effect(mutant)).get("shows", True)
        errors = [rule for rule, severity, _, _ in answer.get("findings", ()) if severity == "error"]
        is_named = bool(errors) or (answer["verdict"] == "raises" and "no answer" not in answer["reason"])
        lines = [line for rule, severity, file, line in answer.get("findings", ()) if file == Path(mutant.path).name]
        near = any(abs(line - mutant.line) <= 3 for line in lines if line)
        shown += bool(shows)
        named += is_named
        if mutant.kind in MEMORY and shows:
            memory, at_line = memory + 1, at_line + (is_named and near)
        print(
            f"{'named ' if is_named else 'silent' if shows else 'equal '} {mutant.kind:23s} {mutant.case.name}:{mutant.line} "
            f"{mutant.before[:50]!r} -> {mutant.after[:40]!r} {answer['reason'][:60]} {'at the line' if near else ''}",
            flush=True,
        )
    functions = len({m.case.module for m in chosen})
    print(
        f"{named} of {len(chosen)} named ({shown} show on the recipe), over {functions} modules; memory at the line: {at_line} of {memory}"
    )


def run_verdicts(every: list[Case], level: str) -> None:
    rows = []
    for case in every:
        first = apart(lambda case=case: ran(case))
        answer = apart(lambda case=case: checked(case, level)) if first.get("ran") else first
        rows.append((case, first, answer))
        print(
            f"{case.name:32s} {answer['verdict']:10s} {answer.get('seconds', 0):6.1f} s {answer.get('launches', 0):5d} launches "
            f"off {first.get('off')} {answer['reason'][:90]}",
            flush=True,
        )
        for finding in answer.get("findings", ()):
            print("      ", *finding, flush=True)
    agree = [a for _, f, a in rows if f.get("off") is not None and f["off"] < 1e-4]
    times = [a["seconds"] for _, _, a in rows if "seconds" in a]
    verdicts = {v: sum(a["verdict"] == v for a in agree) for v in ("verified", "unverified", "refuted", "raises")}
    print(
        f"ran {sum(bool(f.get('ran')) for _, f, _ in rows)} of {len(rows)}; agree with float64: {len(agree)}, of them {verdicts}"
    )
    print(f"seconds: median {statistics.median(times):.1f}, longest {max(times):.1f}")


def run_guard(every: list[Case]) -> None:
    """The interpreted run with the guard against the one without it."""
    ratios = []
    for case in every:
        with_guard = apart(lambda case=case: _timed(case, True)).get("seconds")
        without = apart(lambda case=case: _timed(case, False)).get("seconds")
        if with_guard and without:
            ratios.append(with_guard / without)
    print(f"guard: median {statistics.median(ratios):.2f}x, largest {max(ratios):.2f}x over {len(ratios)} cases")


def _timed(case: Case, guarded: bool) -> dict[str, Any]:
    if not guarded:
        from gradsmith.lab.triton import guard

        guard.uninstall()
    best = float("inf")
    for _ in range(3):
        best = min(best, ran(case)["seconds"])
    return {"seconds": best}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("verdicts", "mutants", "guard"))
    parser.add_argument("--packages", default="/tmp/kernels/pkgs")
    parser.add_argument("--only", nargs="*", default=())
    parser.add_argument("--level", default="quick")
    parser.add_argument("--seed", type=int, default=24)
    parser.add_argument("--count", type=int, default=40)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    sys.path[:0] = [chosen.packages, str(HERE)]
    from gradsmith import catalog
    from gradsmith.lab.triton import shims

    shims.install()
    catalog.rules()
    every = [c for package in ("liger", "fla") for c in cases(package) if not chosen.only or c.name in chosen.only]
    if chosen.what == "verdicts":
        run_verdicts(every, chosen.level)
    elif chosen.what == "mutants":
        run_mutants(every, chosen.seed, chosen.count, chosen.level)
    else:
        run_guard(every)


if __name__ == "__main__":
    main()
