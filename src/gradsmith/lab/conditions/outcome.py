"""What became of one condition, and how results under it are compared with the plain run."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from torch import Tensor

from gradsmith.lab.lab import Lab
from gradsmith.lab.measure.gradient import Judgement
from gradsmith.lab.measure.memory import kept, readable
from gradsmith.lab.measure.seeding import gradients
from gradsmith.lab.measure.values import widened
from gradsmith.lab.once import once
from gradsmith.lab.process import torch_says
from gradsmith.lab.process.state import seed_all
from gradsmith.lab.run import counted, flat_outputs
from gradsmith.lab.subject.copies import copied

State = Literal["works", "fails", "not supported", "not tried"]


@dataclass(frozen=True)
class Outcome:
    """One cell of the compatibility matrix. `differs` says what came out otherwise; without it, something raised.

    `advice` is there where the condition knows more than the rule that asks for it; `frames` are the places, path and line, that
    were running when something raised, the innermost last.
    """

    state: State
    detail: str = ""
    differs: str = ""
    advice: str = ""
    frames: tuple[tuple[str, int], ...] = ()

    def than(self, plain: str) -> str:
        """What a subject does under the condition, after its name: `gives a different result from eager mode: ...`."""
        if self.differs:
            return f"gives a different result from {plain}: {self.differs}."
        return f"fails: {self.detail}"

    @property
    def cell(self) -> str:
        return f"{self.state}: {self.detail}" if self.detail else self.state


def column(name: str) -> Callable[[Callable[[Lab], Outcome]], Callable[[Lab], Outcome]]:
    """Run a condition once per Lab, and write its outcome into the row of the matrix."""

    def wrap(condition: Callable[[Lab], Outcome]) -> Callable[[Lab], Outcome]:
        @once
        def written(lab: Lab) -> Outcome:
            found = condition(lab)
            lab.conditions[name] = found.cell
            return found

        return written

    return wrap


@dataclass(frozen=True)
class Results:
    """Outputs and gradients of one plain run; gradients by position."""

    outputs: list[Tensor]
    gradients: dict[int, Tensor | None]


def results(lab: Lab, call: Callable[..., Any] | None = None, **options: Any) -> Results:
    """Run on fresh leaves, not observed (dynamo refuses patched Functions). `call` replaces the subject.

    `backward` (a callable given outputs, leaves and grad_outputs) replaces the plain autograd.grad, `arguments` the
    example's.
    """
    target, arguments = lab.precise
    arguments = options.get("arguments") or arguments
    call = call or target.call
    given = copied(arguments)
    seed_all(lab.settings.seed)
    v = lab.baseline.v
    with counted():
        outputs, _ = flat_outputs(call(*given.args, **given.kwargs))
        backward = options.get("backward", plain_backward)
        found = backward(outputs, list(given.leaves.values()), v)
    values = [readable(o, "an output").detach().clone() for o in outputs]
    return Results(values, {p: kept(g) for p, g in zip(given.leaves, found)})


def plain_backward(outputs: list[Tensor], leaves: list[Tensor], v: dict[int, Tensor]) -> tuple[Tensor | None, ...]:
    used = [o for o in v if outputs[o].requires_grad]
    return gradients([outputs[o] for o in used], leaves, [v[o].to(outputs[o].dtype, copy=True) for o in used])


@once
def plain(lab: Lab) -> Results:
    """The subject as it is: what conditions are compared with."""
    return results(lab)


def difference(lab: Lab, expected: Results, got: Results) -> str:
    """What differs, in words; nothing where all is equal up to rounding."""
    names = lab.baseline.run.output_names
    for name, a, b in zip(names, expected.outputs, got.outputs):
        if a.is_floating_point() and not lab.close(a, b):
            return f"{'the output' if name == 'output' else name} {far(a, b)}"
    judged = vars(lab).get("gradient")
    # A gradient that vanishes (the bias in front of a BatchNorm) is nothing but rounding, and another one in every run.
    noise = {pair.leaf.position for pair in judged.noisy} if isinstance(judged, Judgement) else set()
    for leaf in lab.precise[1].differentiable:
        if leaf.position in noise:
            continue
        x, y = expected.gradients.get(leaf.position), got.gradients.get(leaf.position)
        if not lab.close(x, y):
            return f"the gradient of '{leaf.name}' {far(x, y)}"
    return ""


def far(a: Tensor | None, b: Tensor | None) -> str:
    """How far `b` is from `a`, as a verb and what follows it."""
    if a is None or b is None:
        return "is None" if b is None else "is not None"
    if a.shape != b.shape:
        return f"has shape {tuple(b.shape)} instead of {tuple(a.shape)}"
    a, b = widened(a), widened(b)
    size = float(a.abs().nan_to_num(0, 0, 0).max()) or 1.0
    off = float((a - b.to(a.dtype)).abs().nan_to_num(0, 0, 0).max()) / size
    return f"is off by up to {off:.2g} times the largest correct element"


def compared(lab: Lab, run: Callable[[], Results], refuses: Callable[[BaseException], bool] | None = None) -> Outcome:
    """Works, or fails in words. `refuses` recognises an exception that says: this is not supported."""
    try:
        got = run()
    except Exception as error:  # the user's code and torch's machinery under a condition it may not bear
        return raised(error, refuses)
    differs = difference(lab, plain(lab), got)
    return Outcome("fails", f"a different result: {differs}", differs) if differs else Outcome("works")


def raised(error: BaseException, refuses: Callable[[BaseException], bool] | None = None) -> Outcome:
    """What an exception says of a condition."""
    said = words(error)
    if torch_says.lost_its_threads(error):
        return Outcome("not tried", f"PyTorch's own threads failed here ({said})")
    return Outcome(
        "not supported" if refuses is not None and refuses(error) else "fails", said, frames=frames_of(error)
    )


def frames_of(error: BaseException) -> tuple[tuple[str, int], ...]:
    """Where the error was raised. While dynamo traces, no frame of the user's runs: it tells the stack that it stands for."""
    traced = [(frame.filename, frame.lineno or 0) for frame in getattr(error, "real_stack", None) or ()]
    return (*((frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)), *traced)


_LONGEST = 180


def words(error: BaseException) -> str:
    """The error and its first line, with the next one where that only announces it.

    >>> words(RuntimeError("backend='aot_eager' raised:\\nAssertionError: not supported\\n"))
    "RuntimeError: backend='aot_eager' raised: AssertionError: not supported"
    """
    lines = [text.strip() for text in str(error).splitlines() if text.strip()]
    line = " ".join(lines[:2]) if lines and lines[0].endswith(":") else "".join(lines[:1])
    if len(line) > _LONGEST:  # whole sentences, as far as they go
        line = line[: line.rfind(". ", 0, _LONGEST) + 1] or f"{line[:_LONGEST].rpartition(' ')[0]} ..."
    return f"{type(error).__name__}: {line}"


def examinable(lab: Lab) -> str:
    """Why nothing can be said about conditions, if so: the plain run has to be settled first."""
    if lab.gradient.wrong and not lab.surrogate:
        return "the plain gradient is wrong"
    if not lab.baseline.v:
        return "no output carries a gradient"
    return ""
