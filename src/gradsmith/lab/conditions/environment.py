"""Autocast, activation checkpointing, saved-tensor hooks, another thread, and copies of a module."""

from __future__ import annotations

import ast
import copy
import threading
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import save_on_cpu, saved_tensors_hooks
from torch.utils.checkpoint import checkpoint

from gradsmith.lab.conditions.outcome import (
    Outcome,
    Results,
    column,
    compared,
    difference,
    examinable,
    far,
    plain,
    plain_backward,
    raised,
    results,
    words,
)
from gradsmith.lab.lab import Lab
from gradsmith.lab.process.state import seed_all
from gradsmith.lab.run import Run, flat_outputs, forward
from gradsmith.lab.subject.foreign import interpreted, uses_triton
from gradsmith.source.loaded import class_definition_of, place_of


@column("autocast forward")
def autocast_forward(lab: Lab) -> Outcome:
    """CPU autocast in bfloat16 around forward only, as the documentation recommends."""
    return _autocast(lab, both=False)


@column("autocast both")
def autocast_both(lab: Lab) -> Outcome:
    return _autocast(lab, both=True)


@column("checkpoint")
def checkpoint_non_reentrant(lab: Lab) -> Outcome:
    return _checkpoint(lab, use_reentrant=False)


@column("checkpoint reentrant")
def checkpoint_reentrant(lab: Lab) -> Outcome:
    return _checkpoint(lab, use_reentrant=True)


@column("save_on_cpu")
def offloaded(lab: Lab) -> Outcome:
    if reason := examinable(lab):
        return Outcome("not tried", reason)

    def run() -> Results:
        with save_on_cpu():
            return results(lab)

    return compared(lab, run)


@column("saved-tensor hooks")
def copied_by_hooks(lab: Lab) -> Outcome:
    """Hooks that hand back a copy, as compression, offloading and checkpointing do."""
    if reason := examinable(lab):
        return Outcome("not tried", reason)

    def run() -> Results:
        with saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t.clone()):
            return results(lab)

    return compared(lab, run)


@column("another thread")
def backward_elsewhere(lab: Lab) -> Outcome:
    """backward in a thread of its own: the engine does so for every device but the CPU."""
    if reason := examinable(lab):
        return Outcome("not tried", reason)

    def elsewhere(outputs: list[Tensor], leaves: list[Tensor], v: dict[int, Tensor]) -> tuple[Tensor | None, ...]:
        found: tuple[Tensor | None, ...] = in_thread(lab, lambda: plain_backward(outputs, leaves, v))
        return found

    return compared(lab, lambda: results(lab, backward=elsewhere))


@column("two threads")
def two_threads(lab: Lab) -> Outcome:
    """Two threads, each with a forward and a backward of its own, at the same time."""
    if lab.target.module is not None:
        # functional_call swaps parameters in place: two at once leave the module with somebody else's tensors.
        return Outcome("not tried", "a module's parameters cannot be swapped by two threads at once")
    if interpreted() and uses_triton(lab.target):
        return Outcome("not tried", "Triton's interpreter serves one thread at a time")
    if reason := examinable(lab) or ("forward draws random numbers" if lab.stochastic else ""):
        return Outcome("not tried", reason)
    found: list[Results | BaseException] = []

    def work() -> None:
        try:
            with lab.guarded():  # a mode holds for the thread that enters it
                found.append(results(lab))
        except Exception as error:
            found.append(error)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in found:
        if isinstance(result, BaseException):
            return raised(result)
        if differs := difference(lab, plain(lab), result):
            return Outcome("fails", f"a different result: {differs}", differs)
    return Outcome("works")


@column("deepcopy")
def module_copy(lab: Lab) -> Outcome:
    """A deep copy with other parameters computes otherwise, leaves the original alone, and takes its state back."""
    module = lab.target.module
    if module is None:
        return Outcome("not tried", "not a module")
    args, kwargs = lab.arguments.with_tensors({})
    given = args[1:]
    try:
        twin = copy.deepcopy(module)
        before = _outputs(lab, module, given, kwargs)
        if not any(p.requires_grad for p in twin.parameters()):
            return Outcome("not tried", "no parameters")
        state = copy.deepcopy(module.state_dict())
        with torch.no_grad():
            for parameter in twin.parameters():
                parameter.mul_(1.5).add_(0.1)
        moved = _outputs(lab, twin, given, kwargs)
        twin.load_state_dict(state)
        back = _outputs(lab, twin, given, kwargs)
    except Exception as error:
        return _not_copied(lab.target.name, module, error)
    name = lab.target.name
    if all(lab.close(a, b) for a, b in zip(before, moved)):
        said = f"a deep copy of {name} computes with the parameters of the original: changing its own changes nothing"
        advice = (
            "Read parameters through self in forward; do not keep them in closures, globals or lists made in __init__."
        )
        return Outcome("fails", said, said, advice)
    for a, b in zip(before, back):
        if not lab.close(a, b):
            said = f"{name} computes something else after load_state_dict(state_dict()): the output {far(a, b)}"
            advice = (
                "Register what forward reads, so that state_dict has it: nn.Parameter, or self.register_buffer(...)."
            )
            return Outcome("fails", said, said, advice)
    return Outcome("works")


def _not_copied(name: str, module: nn.Module, error: Exception) -> Outcome:
    """Which attribute it is that cannot be copied, found by copying each one alone."""
    for prefix, part in module.named_modules():
        held = {k: v for k, v in vars(part).items() if k not in ("_modules", "_parameters", "_buffers")}
        for key, value in {**held, **part._parameters, **part._buffers}.items():
            try:
                copy.deepcopy(value)
            except Exception as own:
                attribute = ".".join(filter(None, ("self", prefix, key)))
                if isinstance(value, Tensor) and value.grad_fn is not None:
                    now = f"({_value_set(type(part), key)}).detach()"
                    said = (
                        f"{name} cannot be copied with copy.deepcopy (which EMA and swa_utils call): {attribute} is a tensor that was "
                        "computed from parameters"
                    )
                    advice = (
                        f"If {attribute} has to change when the parameters do, compute it in forward. If it is trained on its own, write "
                        f"`{attribute} = nn.Parameter({now})`. If it is a constant, write `self.register_buffer({key!r}, {now})`."
                    )
                else:
                    said = f"copy.deepcopy of {name} raises at {attribute}: {words(own)}"
                    advice = f"Make {attribute} in forward, or define __deepcopy__ for a value of type {type(value).__name__}."
                return Outcome("fails", said, "", advice, _where_set(type(part), key))
    return Outcome("fails", f"{name} cannot be copied with copy.deepcopy and load_state_dict: {words(error)}")


def _value_set(cls: type, key: str) -> str:
    """The last expression that this class assigns to `self.key`, as it is written; `...` where there is none."""
    node = class_definition_of(cls)
    values = [
        n.value
        for n in (ast.walk(node) if node is not None else ())
        if isinstance(n, ast.Assign) and any(isinstance(t, ast.Attribute) and t.attr == key for t in n.targets)
    ]
    return ast.unparse(values[-1]) if values else "..."


def _where_set(cls: type, key: str) -> tuple[tuple[str, int], ...]:
    """The lines of this class that assign `self.key`."""
    path, node = place_of(cls)[0], class_definition_of(cls)
    if path is None or node is None:
        return ()
    lines = [
        n.lineno
        for n in ast.walk(node)
        if isinstance(n, ast.Attribute) and n.attr == key and isinstance(n.ctx, ast.Store)
    ]
    return tuple((path, line) for line in lines[-1:])


def in_thread(lab: Lab, action: Callable[[], Any]) -> Any:
    """Run in a new thread; its exception is raised here."""
    box: dict[str, Any] = {}

    def work() -> None:
        try:
            with lab.guarded():
                box["result"] = action()
        except BaseException as error:
            box["error"] = error

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    if "error" in box:
        raise box["error"]
    return box["result"]


def _outputs(lab: Lab, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Tensor]:
    seed_all(lab.settings.seed)
    with torch.no_grad():
        return [o.detach().clone() for o in flat_outputs(module(*args, **kwargs))[0]]


def _checkpoint(lab: Lab, *, use_reentrant: bool) -> Outcome:
    if reason := examinable(lab):
        return Outcome("not tried", reason)
    if any(call.dirty for call in lab.baseline.run.trace.forwards):
        return Outcome("not tried", "forward works in place, which recomputation cannot repeat")
    if use_reentrant and (lab.target.module is not None or not _only_direct(lab)):
        return Outcome("not tried", "the reentrant kind sees tensors only as direct arguments")
    call = lab.precise[0].call
    backward = accumulating_backward if use_reentrant else plain_backward
    return compared(
        lab,
        lambda: results(lab, lambda *a, **k: checkpoint(call, *a, use_reentrant=use_reentrant, **k), backward=backward),
    )


def _only_direct(lab: Lab) -> bool:
    """Whether every input that requires a gradient is an argument itself, in no list, no keyword and no other argument."""
    direct = {id(value) for value in lab.arguments.with_tensors({})[0]}
    return all(id(x.tensor) in direct and not x.held for x in lab.arguments.differentiable)


def accumulating_backward(
    outputs: list[Tensor], leaves: list[Tensor], v: dict[int, Tensor]
) -> tuple[Tensor | None, ...]:
    """`.backward()` into `.grad`: reentrant checkpoints refuse autograd.grad."""
    used = [o for o in v if outputs[o].requires_grad]
    torch.autograd.backward([outputs[o] for o in used], [v[o].clone() for o in used])
    return tuple(leaf.grad for leaf in leaves)


_COARSER = 2.0**16  # steps of bfloat16 are so much longer than those of float32
_SHAKE = 1 + 2.0**-7


def _rounded(run: Run, v: dict[int, Tensor], position: int, gradient: Tensor) -> float:
    """How far the gradient is from linear in grad_output: what float32 rounds on the way to it."""
    other = run.gradients({o: g * _SHAKE for o, g in v.items()})[position]
    return float((other / _SHAKE - gradient).abs().max()) if other is not None else 0.0


def _autocast(lab: Lab, *, both: bool) -> Outcome:
    if reason := examinable(lab):
        return Outcome("not tried", reason)
    # In the precision in which people use autocast: float32 outside, bfloat16 inside.
    narrow = lab.arguments.cast(torch.float32)
    target = lab.target
    try:
        reference = forward(target, narrow, seed=lab.settings.seed)
        v = {o: g.to(reference.outputs[o].dtype) for o, g in lab.baseline.v.items()}
        expected = reference.gradients(v)
    except Exception as error:
        return Outcome("not tried", f"it does not run in float32: {words(error)}")
    mode = torch.autocast("cpu", dtype=torch.bfloat16)
    try:
        with mode:
            run = forward(target, narrow, seed=lab.settings.seed)
    except Exception as error:
        return Outcome("fails", f"forward raises {words(error)}")
    try:
        grad_outputs = {o: g.to(run.outputs[o].dtype) for o, g in v.items()}
        if both:
            with mode:
                got = run.gradients(grad_outputs)
        else:
            got = run.gradients(grad_outputs)
    except Exception as error:
        return Outcome("fails", f"backward raises {words(error)}")
    for leaf in narrow.differentiable:
        a, b = expected[leaf.position], got[leaf.position]
        if a is not None and b is not None and a.numel():
            size = float(a.abs().max())
            off = float((a - b.to(a.dtype)).abs().max())
            # bfloat16 keeps 8 bits: a quarter is no rounding, unless what cancels leaves nothing but rounding in float32, too.
            if off > 0.25 * size and off > _COARSER * _rounded(reference, v, leaf.position, a):
                said = f"the gradient of '{leaf.name}' {far(a, b)}"
                return Outcome("fails", f"a different result: {said}", said)
    return Outcome("works")
