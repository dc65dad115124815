"""How often guessed inputs are good enough to judge a gradient by, on every Function of the pinned packages.

Run: pip install --no-deps --target benchmarks/survey/packages/site liger-kernel==0.8.5 flash-linear-attention==0.6.0 \
         snntorch==1.0.0 gpytorch==1.15.2 torchrl==0.14.1 linear_operator tensordict pyvers einops transformers cloudpickle
     python benchmarks/guess.py [part of a name ...]

benchmarks/guess/functions.json names the Functions and, with reasons, what is left out; both were fixed before the
guesser was written. A guess counts only if every input that gets a gradient gets a finite one that is not zero, and if
a sign flip and a factor 2, put into each returned gradient in turn, are both detected. Where the
unchanged gradient already differs from the derivative (surrogates, but also a guess the author never meant), the change is
only held against that gradient, where it always shows: those are counted apart, and are no proof of detection.
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
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from gradsmith.inputs.guess import guess
from gradsmith.lab.arguments import Arguments
from gradsmith.lab.gradient import Settings, judge
from gradsmith.lab.importing import lookup
from gradsmith.lab.lab import same
from gradsmith.lab.run import Run, forward
from gradsmith.lab.state import preserved
from gradsmith.lab.target import Target, resolve

HERE = Path(__file__).parent
FACTORS = (-1.0, 2.0)
JUDGING_SECONDS = 20


@contextlib.contextmanager
def _limited(seconds: int) -> Iterator[None]:
    """TimeoutError in what takes longer (processor time: the machine may be busy)."""

    def ring(*_: object) -> None:
        raise TimeoutError(f"no verdict within {seconds} s")

    kept = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, kept)


@dataclass
class Row:
    name: str
    seconds: float
    attempts: int
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
            subject = lookup(importlib.import_module(entry["module"]), entry["function"])
            row = examine(f"{entry['module']}:{entry['function']}", resolve(subject))
        rows.append(row)
        if row.miss:
            print(f"miss  {row.name}  ({row.seconds:.2f} s, {row.attempts} guesses): {row.miss}", flush=True)
        elif sys.argv[1:]:
            print(f"count {row.name}  ({row.seconds:.2f} s, {row.attempts} guesses, {row.against}): {row.code}")
    hits = [r for r in rows if not r.miss]
    derivative = sum(r.against == "derivative" for r in hits)
    print(
        f"{len(hits)} of {len(rows)} count ({len(hits) / len(rows):.0%}; target 75 %), "
        f"{derivative} of them against the derivative, {len(hits) - derivative} only against their own gradient (judged wrong, or surrogates)"
    )
    print(f"median {statistics.median(r.seconds for r in rows):.3f} s for a guess (target 1.5 s)")
    importable = [e for e in listed["excluded"] if not e["reason"].startswith("import")]
    print(
        f"left out: {len(listed['excluded']) - len(importable)} whose module does not import here, "
        f"{len(importable)} for the reasons in functions.json (with these as misses: "
        f"{len(hits) / (len(rows) + len(importable)):.0%})"
    )


def examine(name: str, target: Target) -> Row:
    found = guess(target)
    row = Row(name, found.seconds, found.attempts, code=found.code)
    if found.args is None:
        row.miss = f"no inputs worked; most often {found.errors[0][:100] if found.errors else 'nothing tried'}"
        return row
    if found.trouble:
        row.miss = found.trouble.splitlines()[0][:140]
        return row
    arguments = Arguments.of(found.args, found.kwargs, target.names)
    with preserved(), _limited(JUDGING_SECONDS):
        try:
            row.against, row.miss = judged(target, arguments)
        except Exception as error:  # user code on guessed inputs: a miss with its reason
            row.miss = f"judging raised {type(error).__name__}: {str(error)[:100]}"
    return row


def judged(target: Target, arguments: Arguments) -> tuple[str, str]:
    """(what the mutations were held against, why the guess does not count)."""
    plain = judge(target, arguments, Settings())
    if noisy := plain.noisy:
        return "", f"numeric noise hides the gradient of '{noisy[0].leaf.name}'"
    surrogate = bool(plain.wrong)
    for leaf in arguments.differentiable:
        pairs = [p for p in plain.pairs if p.leaf.position == leaf.position]
        if not any(bool(torch.isfinite(p.claimed).all()) and bool(p.claimed.abs().gt(0).any()) for p in pairs):
            return "", f"the gradient of '{leaf.name}' is zero or not finite"
        for factor in FACTORS:
            mutated = replace(target, call=_mutated(target, arguments, leaf.position, factor))
            seen = (
                _changed(target, mutated, arguments, leaf.position)
                if surrogate
                else any(p.leaf.position == leaf.position for p in judge(mutated, arguments, Settings()).wrong)
            )
            if not seen:
                return "", f"a factor {factor:g} in the gradient of '{leaf.name}' is not detected"
    return ("itself" if surrogate else "derivative"), ""


class _Factor(torch.autograd.Function):
    """The identity with a gradient that is wrong by a factor: what a mutation of one returned gradient amounts to."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, factor: float) -> torch.Tensor:
        ctx.factor = factor
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad_output: torch.Tensor) -> tuple[torch.Tensor, None]:
        return grad_output * ctx.factor, None


def _mutated(target: Target, arguments: Arguments, position: int, factor: float) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        given = Arguments.of(args, kwargs, target.names)
        wrong = _Factor.apply(given.flat[position], factor)
        args, kwargs = given.with_tensors({position: wrong})
        return target.call(*args, **kwargs)

    return call


def _changed(target: Target, mutated: Target, arguments: Arguments, position: int) -> bool:
    def gradient(run: Run) -> torch.Tensor | None:
        return run.gradients(run.normal(torch.Generator().manual_seed(3)))[position]

    return not same(gradient(forward(target, arguments)), gradient(forward(mutated, arguments)), rtol=1e-3)


if __name__ == "__main__":
    main()
