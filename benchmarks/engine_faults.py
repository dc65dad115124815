"""Does the self-check reject a broken plan? Break emitted code at random places, one at a time, and see.

    python benchmarks/engine_faults.py [--faults 100] [--seed 0]

Each fault flips one sign, swaps one operand, shifts one index or takes a neighbouring time slot, in the C of a
randomly chosen cell. A plan with a fault must be refused; the ones that are not are printed.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from gradsmith.native.refused import Refused
from gradsmith.recurrent import (
    AdaptiveLIFCell,
    GRUCell,
    LayerNormLSTMCell,
    LSTMCell,
    MinGRUCell,
    PeepholeLSTMCell,
    TanhRNNCell,
)
from gradsmith.recurrent.engine import Engine
from gradsmith.recurrent.ladder import Call, choose, make_call, verify
from gradsmith.recurrent.plan import Plan
from gradsmith.recurrent.run import register
from gradsmith.recurrent.structure import flatten

CELLS = [TanhRNNCell, GRUCell, LSTMCell, PeepholeLSTMCell, LayerNormLSTMCell, MinGRUCell, AdaptiveLIFCell]


@dataclass(frozen=True)
class Fault:
    kind: str
    line: int
    before: str
    after: str


def flip_sign(line: str, rng: random.Random, earlier: list[str], bound: int) -> str | None:
    if "+=" in line:
        return line.replace("+=", "-=", 1)
    found = list(re.finditer(r"(?<=[\w)]) ([+-]) (?=[\w(])", _expression(line)))
    if not found:
        return None
    chosen = rng.choice(found)
    start = len(line) - len(_expression(line)) + chosen.start(1)
    return line[:start] + ("-" if line[start] == "+" else "+") + line[start + 1 :]


def swap_operand(line: str, rng: random.Random, earlier: list[str], bound: int) -> str | None:
    found = list(re.finditer(r"\bv\d+\b", _expression(line)))
    if not found:
        return None
    chosen = rng.choice(found)
    others = [name for name in earlier if name != chosen.group()]
    if not others:
        return None
    start = len(line) - len(_expression(line)) + chosen.start()
    return line[:start] + rng.choice(others) + line[start + len(chosen.group()) :]


def shift_index(line: str, rng: random.Random, earlier: list[str], bound: int) -> str | None:
    found = list(re.finditer(r"\[\(?(i\d)\b", line))
    if not found or bound < 2:
        return None
    chosen = rng.choice(found)
    start, end = chosen.span(1)
    return f"{line[:start]}(({chosen.group(1)} + 1) % {bound}){line[end:]}"


def move_slot(line: str, rng: random.Random, earlier: list[str], bound: int) -> str | None:
    """A neighbouring time slot, where that slot exists."""
    for old, new in (
        ("(t + 1) &", "t &"),
        ("(t & 1)", "((t + 1) & 1)"),
        ("((t + 1) * B", "((t) * B"),
        ("(t & m_state", "((t + 1) & m_state"),
    ):
        if old in line:
            return line.replace(old, new, 1)
    return None


KINDS: dict[str, Callable[[str, random.Random, list[str], int], str | None]] = {
    "sign": flip_sign, "operand": swap_operand, "index": shift_index, "slot": move_slot,
}  # fmt: skip


def _expression(line: str) -> str:
    """What is computed: the right-hand side, without declarations and pointers."""
    return line.split("= ", 1)[1] if line.lstrip().startswith("const ") and "= " in line else ""


def break_somewhere(source: str, rng: random.Random) -> tuple[str, Fault]:
    lines = source.splitlines()
    start = next(i for i, line in enumerate(lines) if "gs_forward" in line)
    while True:
        number = rng.randrange(start, len(lines))
        line = lines[number]
        # Sizes and thread bounds are left alone: a fault there corrupts memory, or does nothing on one thread.
        if (
            line.lstrip().startswith(("for ", "#", "void", "work", "shared", "if (!blas", "const long"))
            or "align64" in line
        ):
            continue
        earlier: list[str] = []
        bound = 0
        for above in reversed(lines[start:number]):
            name = re.match(r"\s*const \w+ (v\d+) =", above)
            if name:
                earlier.append(name.group(1))
            loop = re.match(r"\s*for \(long i\d+ = 0; i\d+ < (\d+)", above)
            if loop:
                bound = int(loop.group(1))
                break
        kind = rng.choice(list(KINDS))
        changed = KINDS[kind](line, rng, earlier, bound)
        if changed is not None and changed != line:
            lines[number] = changed
            return "\n".join(lines), Fault(kind, number - start, line.strip(), changed.strip())


def prepare(make: Any) -> tuple[Plan, Call]:
    torch.manual_seed(1)
    cell = make(9, 16)
    x = torch.randn(6, 4, 9, requires_grad=True)
    call = make_call(
        cell, flatten(x, "x", "scan"), flatten(cell.initial_state(4), "state", "scan"), flatten((), "params", "scan")
    )
    plan = choose(call, "c")
    assert plan.backend == "c", str(plan)
    return plan, call


def rejected(plan: Plan, call: Call, source: str) -> bool:
    assert plan.engine is not None
    broken = replace(
        plan, checked=set(), engine=Engine(plan.engine.parts, replace(plan.engine.emitted, source=source), plan.dtype)
    )
    assert broken.engine is not None
    broken.number = register(broken.engine)
    try:
        verify(broken, call)
    except Refused:
        return True
    return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faults", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    rng = random.Random(chosen.seed)
    prepared = {make.__name__: prepare(make) for make in CELLS}
    caught, tried = 0, Counter[str]()
    for _ in range(chosen.faults):
        name = rng.choice(list(prepared))
        plan, call = prepared[name]
        assert plan.engine is not None
        source, fault = break_somewhere(plan.engine.emitted.source, rng)
        tried[fault.kind] += 1
        if rejected(plan, call, source):
            caught += 1
        else:
            print(f"NOT rejected: {name}, {fault.kind} at line {fault.line}:\n  {fault.before}\n  {fault.after}")
    print(f"{caught} of {chosen.faults} broken plans rejected ({', '.join(f'{n} {k}' for k, n in tried.items())})")
    return 0 if caught >= 0.98 * chosen.faults else 1


if __name__ == "__main__":
    sys.exit(main())
