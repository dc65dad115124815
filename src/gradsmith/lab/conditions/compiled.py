"""torch.compile: the subject in a graph (aot_eager, or inductor at level deep) against eager."""

from __future__ import annotations

import contextlib
import itertools
import logging
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import FrameType, FunctionType
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

from gradsmith.about import FOLDER
from gradsmith.lab.conditions.outcome import (
    Outcome,
    Results,
    column,
    compared,
    difference,
    examinable,
    plain,
    plain_backward,
    results,
    words,
)
from gradsmith.lab.conditions.patience import OutOfPatience, at_most
from gradsmith.lab.lab import Lab
from gradsmith.lab.process import torch_says
from gradsmith.lab.subject.arguments import Arguments
from gradsmith.lab.subject.foreign import interpreted, uses_triton

_MOST_CALLS = 200  # some 10 s of tracing and more
_MOST_OPERATORS = 500  # 2 to 4 ms each, for every graph that is tried (torch 2.13, aot_eager)
_PATIENCE = 30.0


@column("compile")
def aot_eager(lab: Lab) -> Outcome:
    return under(lab, "aot_eager")


@column("compile, one tensor twice")
def aliased(lab: Lab) -> Outcome:
    """Two inputs that are one tensor: the compiler drops duplicates before it traces, eager mode does not."""
    if aot_eager(lab).state != "works":
        return Outcome("not tried", "it does not compile as one graph")
    arguments = with_twins(lab)
    if arguments is None:
        return Outcome("not tried", "no two inputs are alike")
    if any(call.dirty for call in lab.baseline.run.trace.forwards):
        return Outcome("not tried", "forward works in place")
    try:
        eager = results(lab, arguments=arguments)
    except Exception as error:  # forward may want two different tensors
        return Outcome("not tried", f"eager mode raises {words(error)}")
    compiled = torch.compile(with_own_code(lab.precise[0].call), backend="aot_eager")
    with _quiet():
        try:
            got = results(lab, compiled, arguments=arguments)
        except Exception as error:
            return Outcome("fails", words(error))
    differs = difference(lab, eager, got)
    return Outcome("fails", f"a different result: {differs}", differs) if differs else Outcome("works")


def with_twins(lab: Lab) -> Arguments | None:
    """The example with its first two inputs of one shape and type made one tensor."""
    arguments = lab.precise[1]
    own = [leaf for leaf in arguments.differentiable if not leaf.of_module]
    for a, b in itertools.combinations(own, 2):
        same = a.tensor.shape == b.tensor.shape and a.tensor.dtype == b.tensor.dtype
        if same and a.tensor is not b.tensor:
            return arguments.replaced({b.position: a.tensor})
    return None


@column("inductor")
def inductor(lab: Lab) -> Outcome:
    return under(lab, "inductor")


@column("dynamic shapes")
def dynamic(lab: Lab) -> Outcome:
    return under(lab, "aot_eager", dynamic=True)


def under(lab: Lab, backend: str, **options: Any) -> Outcome:
    """One graph first; where that breaks, the same with graph breaks: numbers have to be right in both cases."""
    if reason := examinable(lab) or ("forward draws random numbers" if lab.stochastic else ""):
        return Outcome("not tried", reason)
    if reason := uncompilable(lab):
        return Outcome("not tried", reason)
    # In a process of its own the alarm is ours to set; an element loop in NumPy is unrolled by inductor for many minutes.
    limit = at_most(_PATIENCE) if lab.isolated else contextlib.nullcontext()
    try:
        with _quiet(), limit:
            return _in_one_graph_or_many(lab, backend, **options)
    except OutOfPatience:
        return Outcome("not tried", f"torch.compile did not finish within {_PATIENCE:g} s")


def uncompilable(lab: Lab) -> str:
    """Why the compiler is not asked, if so. Nobody can stop it once it has begun."""
    if interpreted() and uses_triton(lab.target):
        return "kernels under Triton's interpreter cannot be traced"
    if lab.watched.frees:
        return "it frees the memory of tensors, which a compiled graph may read"
    if (operators := lab.watched.operators) > _MOST_OPERATORS:
        return f"{operators} operators in one run, which dynamo would unroll one by one"
    calls = python_calls(lab)
    return f"{calls} calls in one run, which dynamo would unroll one by one" if calls > _MOST_CALLS else ""


def _in_one_graph_or_many(lab: Lab, backend: str, **options: Any) -> Outcome:
    whole = compared(lab, lambda: compiled_results(lab, backend, fullgraph=True, **options))
    if whole.state == "works" or whole.differs:
        return whole
    broken = compared(
        lab, lambda: compiled_results(lab, backend, fullgraph=False, **options), torch_says.compile_refused
    )
    if broken.state == "not supported":
        return broken
    if broken.state == "works":
        return Outcome("not supported", f"graph break: {whole.detail}", frames=whole.frames)
    return broken


def python_calls(lab: Lab) -> int:
    """How many calls the user's code makes in one forward and backward: dynamo traces every one, loops unrolled."""
    count = 0
    foreign = (str(Path(torch.__file__).parent), FOLDER, "<frozen")

    def tick(frame: FrameType, event: str, arg: object) -> None:
        nonlocal count
        if event in ("call", "c_call") and not frame.f_code.co_filename.startswith(foreign):
            count += 1

    plain(lab)  # the first backward of a process imports half of torch
    results(lab, _profiled(lab.precise[0].call, tick), backward=_profiled(plain_backward, tick))
    return count


def _profiled(action: Callable[..., Any], tick: Callable[[FrameType, str, object], None]) -> Callable[..., Any]:
    def watched(*args: Any, **kwargs: Any) -> Any:
        before = sys.getprofile()
        sys.setprofile(tick)
        try:
            return action(*args, **kwargs)
        finally:
            sys.setprofile(before)

    return watched


def compiled_results(lab: Lab, backend: str, **options: Any) -> Results:
    function = with_own_code(lab.precise[0].call)
    return results(lab, torch.compile(function, backend=backend, **options))


def with_own_code(call: Callable[..., Any]) -> Callable[..., Any]:
    """A wrapper with a code object of its own: dynamo counts recompilations per code object, across subjects."""

    def subject(*args: Any, **kwargs: Any) -> Any:
        return call(*args, **kwargs)

    return FunctionType(
        subject.__code__.replace(), subject.__globals__, "subject", subject.__defaults__, subject.__closure__
    )


def graph_breaks(lab: Lab) -> Outcome | None:
    """Why and where the subject does not fit into one graph; None where it does."""
    outcome = aot_eager(lab)
    if outcome.state != "not supported":
        return None
    return replace(outcome, detail=outcome.detail.removeprefix("graph break: "))


@column("opcheck")
def opcheck(lab: Lab) -> Outcome:
    """torch.library.opcheck of a custom op: schema, registration, FakeTensor, AOT."""
    if lab.target.kind != "custom_op":
        return Outcome("not tried", "not a custom op")
    args, kwargs = lab.arguments.with_tensors({})
    with _quiet():
        try:
            found = torch.library.opcheck(lab.target.original, args, kwargs, raise_exception=False)
        except Exception as error:
            return Outcome("fails", words(error))
    failed = {name: result for name, result in found.items() if result != "SUCCESS"}
    if not failed:
        return Outcome("works")
    name, result = next(iter(failed.items()))
    if differing := _fake_differs(lab):
        advice = "Correct the function under register_fake: it has to return tensors of the same shape and dtype as the operator."
        return Outcome("fails", differing, name, advice)
    return Outcome("fails", f"{name}: {words(result) if isinstance(result, BaseException) else result}", name)


def _fake_differs(lab: Lab) -> str:
    """What register_fake promises beside what the operator returns, where shape or dtype differ; empty where they agree."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    def arguments(change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
        return tree_map(lambda v: change(v) if isinstance(v, torch.Tensor) else v, lab.arguments.with_tensors({}))

    def returned(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[torch.Tensor]:
        found = tree_leaves(lab.target.original(*args, **kwargs))
        return [leaf for leaf in found if isinstance(leaf, torch.Tensor)]

    mode = FakeTensorMode()
    try:
        real = returned(*arguments(lambda tensor: tensor.detach().clone()))  # the operator may write into it
        given = arguments(lambda tensor: mode.from_tensor(tensor.detach()))
        with mode:
            fake = returned(*given)
    except Exception:  # the operator's own code; opcheck says in its words what is wrong
        return ""
    for promised, computed in zip(fake, real):
        for kind in ("shape", "dtype"):
            a, b = (getattr(t, kind) for t in (promised, computed))
            if a != b:
                a, b = (tuple(v) if kind == "shape" else v for v in (a, b))
                return f"its register_fake returns a tensor of {kind} {a}, the operator itself one of {kind} {b}."
    return ""


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """What dynamo would log about the user's code is in the outcome already."""
    loggers = [logging.getLogger(name) for name in ("torch._dynamo", "torch._functorch", "torch._inductor", "torch")]
    before = [(logger, logger.level) for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in before:
            logger.setLevel(level)
