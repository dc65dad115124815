"""Where backward raises, or torch refuses what it returns, there is no number to start from: every single change is run.

A change is kept if all gradients are those of the user's own forward under autograd. Whether that can be trusted is the proof's
business.
"""

from __future__ import annotations

import ast
import copy
import inspect
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from gradsmith.diagnosis.mending.own_source import OwnSource
from gradsmith.diagnosis.mutate import Candidate, candidates, of_ctx
from gradsmith.diagnosis.repair import compiled, edit_for
from gradsmith.findings import Edit
from gradsmith.lab.lab import Lab, same
from gradsmith.lab.measure.oracle import plain_forward
from gradsmith.lab.process.endless import ended_after
from gradsmith.source.loaded import definition_of

# Limits of work, as in `diagnosis/repair.py`.
_MOST = 1500
_MOST_LINES = 20_000
_ELEMENTS = 10_000_000
_CPU_SECONDS = 3.0
_FOUND = 4  # more that fit are a sign of an example that tells little


def running_edits(source: OwnSource, lab: Lab) -> Iterator[tuple[Edit, ...]]:
    """The single changes of backward with which it runs, and gives what autograd gives."""
    original = inspect.unwrap(source.function.backward) if source.backward is not None else None
    plain = plain_forward(lab.target)
    definition = definition_of(original) if original is not None else None
    if original is None or plain is None or definition is None:
        return
    tree = copy.deepcopy(definition)
    tree.decorator_list = []
    truth = _gradients(plain, lab, ())
    if not truth or not any(bool(g.any()) for g in truth):
        return
    path = (original.__code__.co_filename, "<repair>")
    most = min(_MOST, _ELEMENTS // max(1, sum(g.numel() for g in truth)))
    raised = _line_of(_error(source.function.apply, lab), original)
    start_s, found = time.thread_time(), 0
    for tried, candidate in enumerate(_in_order(tree, source.attributes, raised)):
        if tried >= most or time.thread_time() - start_s > _CPU_SECONDS or found >= _FOUND:
            return
        changed = compiled(candidate.tree, original)
        got = _gradients(_with(source.function, changed), lab, path) if changed is not None else None
        edit = edit_for(candidate, original) if got is not None and _are(got, truth) else None
        if edit is not None:
            found += 1
            yield (edit,)


def _in_order(tree: ast.FunctionDef, attributes: Sequence[str], raised: int | None) -> Iterator[Candidate]:
    """The changes of the line that raises first. A candidate holds until the next one is asked for, so they cannot be sorted."""
    offers = (candidates, lambda t: of_ctx(t, attributes))
    for first in (True, False) if raised is not None else (False,):
        for offer in offers:
            yield from (c for c in offer(tree) if raised is None or (c.line == raised) == first)


def _line_of(error: BaseException | None, function: Callable[..., Any]) -> int | None:
    """The line of the function itself that an error came through."""
    found, trace = None, error.__traceback__ if error is not None else None
    while trace is not None:
        if trace.tb_frame.f_code is function.__code__:
            found = trace.tb_lineno
        trace = trace.tb_next
    return found


def _with(cls: Any, backward: Callable[..., Any]) -> Callable[..., Any]:
    """The class with another backward, as something to call."""
    made: Any = type(cls.__name__, (cls,), {"backward": staticmethod(backward)})
    apply: Callable[..., Any] = made.apply
    return apply


def _gradients(call: Callable[..., Any], lab: Lab, files: tuple[str, ...]) -> list[Tensor] | None:
    """The gradients of a fixed random sum of the outputs; None where it raises."""
    try:
        return _run(call, lab, files)
    except Exception:  # a random change to somebody's code may raise anything
        return None


def _error(call: Callable[..., Any], lab: Lab) -> Exception | None:
    try:
        _run(call, lab, ())
    except Exception as error:  # of the user's backward
        return error
    return None


def _run(call: Callable[..., Any], lab: Lab, files: tuple[str, ...]) -> list[Tensor]:
    arguments = lab.precise[1]
    tensors = {x.position: x.tensor.detach().clone().requires_grad_(x.differentiable) for x in arguments.leaves}
    wanted = [tensors[x.position] for x in arguments.differentiable]
    args, kwargs = arguments.with_tensors({p: t.view_as(t) for p, t in tensors.items()})
    generator = torch.Generator().manual_seed(7)
    with ended_after(_MOST_LINES, files), torch.random.fork_rng([]), torch.enable_grad():
        torch.manual_seed(lab.settings.seed)
        out = call(*args, **kwargs)
        outputs = [o for o in (out if isinstance(out, (tuple, list)) else [out]) if isinstance(o, Tensor)]
        outputs = [o for o in outputs if o.requires_grad]
        vs = [torch.randn(o.shape, dtype=torch.float64, generator=generator).to(o.dtype) for o in outputs]
        grads = torch.autograd.grad(outputs, wanted, vs, allow_unused=True)
    return [torch.zeros_like(x) if g is None else g.detach().clone() for g, x in zip(grads, wanted)]


def _are(found: list[Tensor], truth: list[Tensor]) -> bool:
    return all(same(a, b, 1e-6) for a, b in zip(truth, found))
