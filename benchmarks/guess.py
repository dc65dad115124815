"""How often guessed inputs are good enough to judge a gradient by, on every Function of the pinned packages.

Run: pip install --no-deps --target benchmarks/survey/packages/site liger-kernel==0.8.5 flash-linear-attention==0.6.0 \
         snntorch==1.0.0 gpytorch==1.15.2 torchrl==0.14.1 linear_operator tensordict pyvers einops transformers cloudpickle
     python benchmarks/guess.py [part of a name ...]

benchmarks/guess/functions.json names every Function of the packages whose module imports on the CPU and, with reasons,
what is left out: what needs a GPU, a process group or a library that is not installed. A guess counts only if every input
that gets a gradient gets a finite one that is not zero, and if a sign flip and a factor 2, put into each returned gradient
in turn, are both judged wrong as gs.check judges guessed inputs: the same judgement, and the same searches for what a
guess may break. (Only its diagnosis is left out: naming the mistake takes most of the time.)

Where the unchanged Function is already refuted, or looks like a surrogate, there is no derivative to hold the change
against: then it is checked as a surrogate that claims the slope of the unchanged one. Those are counted apart: they show
that the inputs reach every gradient, not that the mistake would be found without being told what is meant.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import logging
import signal
import statistics
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from gradsmith.checking.guessed import elsewhere
from gradsmith.checking.options import Options
from gradsmith.checking.run import examine
from gradsmith.findings import Report
from gradsmith.inputs.examples import Supply
from gradsmith.inputs.guess import Guess, guess
from gradsmith.inputs.lifting import NotLiftable, lookup
from gradsmith.lab.measure.gradient import Settings, judge
from gradsmith.lab.process.state import preserved
from gradsmith.lab.run import forward
from gradsmith.lab.subject.arguments import Arguments, Leaf
from gradsmith.lab.subject.target import Target, backward_of, resolve
from gradsmith.lab.subject.wrapped import Wrapped

HERE = Path(__file__).parent
FACTORS = (-1.0, 2.0)
JUDGING_SECONDS = 30
QUICK = Options(level="quick", lint=False)
UNREACHABLE = "defined inside a function, and cannot be had without calling it"


@contextlib.contextmanager
def _limited(seconds: int) -> Iterator[None]:
    """TimeoutError in what takes longer (processor time: the machine may be busy)."""

    def ring(*_: object) -> None:
        raise TimeoutError(f"no verdict within {seconds} s")

    kept = signal.signal(signal.SIGPROF, ring)
    # Again and again: a probe that is stopped is only one probe, and the next one would run without a limit.
    signal.setitimer(signal.ITIMER_PROF, seconds, 0.2)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, kept)


@dataclass
class Row:
    name: str
    seconds: float = 0.0
    attempts: int = 0
    miss: str = ""
    against: str = "derivative"
    code: str = ""


def main() -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    logging.disable(logging.ERROR)
    sys.path.insert(0, str(HERE / "survey" / "packages" / "site"))
    listed = json.loads((HERE / "guess" / "functions.json").read_text())
    wanted = [e for e in listed["functions"] if not sys.argv[1:] or any(a in e["function"] for a in sys.argv[1:])]
    # Some forwards compile themselves; compiled code cannot be observed, and gradsmith checks guesses without it.
    torch.compiler.set_stance("force_eager")
    rows = []
    for entry in wanted:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            row = examined(entry["module"], entry["function"])
        rows.append(row)
        if row.miss:
            print(f"miss  {row.name}  ({row.seconds:.2f} s, {row.attempts} guesses): {row.miss}", flush=True)
        elif sys.argv[1:]:
            print(f"count {row.name}  ({row.seconds:.2f} s, {row.attempts} guesses, {row.against}): {row.code}")
    summary(rows, wanted, listed["excluded"])


def summary(rows: list[Row], wanted: list[dict[str, str]], excluded: list[dict[str, str]]) -> None:
    hits = [r for r in rows if not r.miss]
    reached = [r for r in rows if not r.miss.startswith(UNREACHABLE)]
    against = Counter(r.against for r in hits)
    print(f"{len(hits)} of {len(rows)} count ({len(hits) / len(rows):.0%}; target 75 %)")
    print(
        f"without the {len(rows) - len(reached)} that are {UNREACHABLE}: "
        f"{len(hits)} of {len(reached)} ({len(hits) / len(reached):.0%})"
    )
    never = sum("never" in entry for entry in wanted)
    print(f"counted as misses, although no input can make them count (reasons in functions.json): {never}")
    print(f"held against the derivative: {against.pop('derivative', 0)}; against their own unchanged gradient:")
    for why, number in against.most_common():
        print(f"  {number:3} {why}")
    print(f"median {statistics.median(r.seconds for r in reached):.3f} s for a guess (target 1.5 s)")
    reasons = Counter(e["reason"].partition(":")[0] for e in excluded)
    print("left out: " + ", ".join(f"{number} {reason}" for reason, number in reasons.most_common()))


def examined(module: str, function: str) -> Row:
    row = Row(f"{module}:{function}")
    try:
        target = resolve(lookup(importlib.import_module(module), function))
    except NotLiftable as error:
        row.miss = f"{UNREACHABLE}: {error}"
        return row
    found = guess(target)
    row.seconds, row.attempts, row.code = found.seconds, found.attempts, found.code
    if found.args is None:
        row.miss = f"no inputs worked; most often {found.errors[0][:100] if found.errors else 'nothing tried'}"
    elif found.trouble:
        row.miss = found.trouble.splitlines()[0][:140]
    else:
        try:
            with preserved(), _limited(JUDGING_SECONDS):
                row.against, row.miss = judged(target, found)
        except Exception as error:  # user code on guessed inputs: a miss with its reason
            row.miss = f"judging raised {type(error).__name__}: {str(error)[:100]}"
    return row


def judged(target: Target, found: Guess) -> tuple[str, str]:
    """(what the mutations were held against, why the guess does not count)."""
    assert found.args is not None
    arguments = Arguments.of(found.args, found.kwargs, target.names)
    run = forward(target, arguments)
    gradients = run.gradients(run.normal(torch.Generator().manual_seed(3)))
    for leaf in arguments.differentiable:
        gradient = gradients[leaf.position]
        if gradient is None or not bool(gradient.isfinite().all()) or not bool(gradient.abs().gt(0).any()):
            return "", f"the gradient of '{leaf.name}' is zero or not finite"
    plain = examine(target, _as_supply(found), QUICK)
    against = _against(plain)
    for leaf in arguments.differentiable:
        for factor in FACTORS:
            mutated = _mutated(target, found.args, leaf, factor)
            why = _unseen(mutated, leaf, found) if against == "derivative" else _unlike(mutated, leaf, target, found)
            if why:
                return "", f"a factor {factor:g} in the gradient of '{leaf.name}' is not detected: {why[:80]}"
    return against, ""


def _unseen(mutated: Target, leaf: Leaf, found: Guess) -> str:
    """Why gs.check would not say that the gradient of this input is wrong; empty where it does."""
    judgement = judge(mutated, Arguments.of(found.args or (), found.kwargs, mutated.names), Settings())
    if not any(p.leaf.position == leaf.position for p in judgement.wrong):
        return "noise hides it" if judgement.noisy else "judged right"
    right = elsewhere(mutated, (found.args or (), found.kwargs), 0)
    return right.words if right is not None else ""


def _as_supply(found: Guess) -> Supply:
    return Supply(((found.args or (), found.kwargs),), "guessed", found.code)


def _unlike(mutated: Target, leaf: Leaf, target: Target, found: Guess) -> str:
    """The same, for a surrogate that claims the slope of the unchanged Function."""
    claimed = replace(QUICK, gradient="surrogate", like=target.call, select=("surrogate-slope",))
    report = examine(mutated, _as_supply(found), claimed)
    seen = any(f.rule == "surrogate-slope" and f.argument == leaf.name for f in report.errors)
    return "" if seen else report.subjects[0].reason or "the same slope"


def _against(plain: Report) -> str:
    subject = plain.subjects[0]
    if subject.verdict == "verified" or "the gradient is right where" in subject.reason:
        return "derivative"
    if subject.verdict == "refuted":
        return f"refuted unchanged: {subject.reason[:60]}"
    return subject.reason[:80]


def _mutated(target: Target, args: tuple[Any, ...], leaf: Leaf, factor: float) -> Target:
    """The same Function with one of the gradients it returns multiplied; of a custom op, the gradient on its way out."""
    function = target.function
    # A tensor subclass is one input, whatever it is made of.
    made_of = [tree_leaves(a) if isinstance(a, Wrapped) else [a] for a in args]
    place = next((i for i, parts in enumerate(made_of) if any(p is leaf.tensor for p in parts)), None)
    if function is None or place is None:
        return replace(target, call=_outside(target, leaf.position, factor))
    original = backward_of(function)

    def backward(ctx: Any, *grads: Any) -> Any:
        returned = original(ctx, *grads)
        many = list(returned) if isinstance(returned, (tuple, list)) else [returned]
        many[place] = many[place] * factor
        return tuple(many)

    spelling = "backward" if original is function.backward else "vjp"
    kind = type(function.__name__, (function,), {spelling: staticmethod(backward)})
    return replace(resolve(kind), name=target.name, names=target.names)


class _Factor(torch.autograd.Function):
    """The identity with a gradient that is wrong by a factor: what a mutation of one returned gradient amounts to."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, factor: float) -> torch.Tensor:
        ctx.factor = factor
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad_output: torch.Tensor) -> tuple[torch.Tensor, None]:
        return grad_output * ctx.factor, None


def _outside(target: Target, position: int, factor: float) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        given = Arguments.of(args, kwargs, target.names)
        wrong = _Factor.apply(given.flat[position], factor)
        args, kwargs = given.with_tensors({position: wrong})
        return target.call(*args, **kwargs)

    return call


if __name__ == "__main__":
    main()
