"""`Lab`: what a probe is given. One subject, one set of inputs, and the observations that probes share."""

from __future__ import annotations

import contextlib
import copy
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from gradsmith.findings import Finding, InputsFrom, Severity
from gradsmith.lab.explore.budget import Budget, budget_of, cost_of
from gradsmith.lab.explore.tape import OperationTape
from gradsmith.lab.explore.watching import Watched, guard, watched
from gradsmith.lab.measure.gradient import Judgement, Settings, distinct, judge, moved_together, typical_size
from gradsmith.lab.measure.noise import relative_noise
from gradsmith.lab.measure.screening import screened
from gradsmith.lab.measure.values import widened
from gradsmith.lab.pieces import largest, pieces
from gradsmith.lab.run import Run, Spent, forward, normal_like, recorded, time_left
from gradsmith.lab.subject.arguments import Arguments, Leaf
from gradsmith.lab.subject.binding import functional
from gradsmith.lab.subject.foreign import leaves_torch, runs_kernels
from gradsmith.lab.subject.target import Target, functions_behind, resolve
from gradsmith.source.loaded import line_of, model_of
from gradsmith.source.places import Part, cut, line_of_gradient, line_of_part, name_of_output

LARGE = 64 << 20  # bytes of inputs
_ALONE = 16  # runs for whether forward and backward run at all, where the gradient alone is judged
_UNROLLED = 16  # runs, by their rounded cost, that have to be left for autograd through forward


@dataclass(frozen=True)
class PlainRun:
    run: Run
    v: dict[int, Tensor]
    gradients: dict[int, Tensor | None]


@dataclass(frozen=True)
class Tolerance:
    rtol: float
    floor: float


@dataclass
class Lab:
    """A subject on the bench.

    `run()` is an observed forward on fresh copies of the inputs; `gradient` is the judgement of the oracles.
    """

    target: Target
    arguments: Arguments
    settings: Settings
    level: str = "standard"
    surrogate: str | None = None  # the declared kind, if the gradient is not meant to be the derivative
    approximate: bool = False
    like: Callable[..., Any] | None = None  # the function whose slope a surrogate claims
    demands_second_order: bool = False
    isolated: bool = False  # in a process of its own: what may crash can be tried
    empty: bool = True  # whether tensors without elements are among what may be tried
    inputs_from: InputsFrom = "given"
    declared_at: tuple[str, int] | None = None  # where the user's module declares these inputs: name and number
    first: bool = True  # of several examples
    gradient_alone: bool = False  # is judged here: all else, on a part of these inputs
    number: int = 0  # of this one among them
    remembers: bool = True  # what failed once; a repair that is only being tried has no history
    accepted: tuple[str, ...] = ()  # what the user says always holds: "matrix is symmetric"
    conditions: dict[str, str] = field(default_factory=dict)  # what became of each condition, as probes find out
    left_out: list[str] = field(default_factory=list)  # what the budget did not suffice for: rules, exploring
    kernel_events: dict[Any, Any] = field(
        default_factory=dict, repr=False
    )  # what kernels did to memory on explored examples
    answers: dict[Any, dict[Any, Any]] = field(default_factory=dict, repr=False)  # of the questions marked with `@once`
    _spent: Spent | None = field(default=None, repr=False)

    def run(self, arguments: Arguments | None = None, *, seed: int | None = None) -> Run:
        """An observed forward; backward through `Run.gradients` is observed, too."""
        chosen = arguments if arguments is not None else self.arguments
        return forward(self.target, chosen, seed=self.settings.seed if seed is None else seed, classes=self.classes)

    def precise_run(self, arguments: Arguments | None = None) -> Run:
        """The same in float64 where the subject runs there, so that differences stand out from rounding."""
        target, own = self.precise
        return forward(target, arguments or own, seed=self.settings.seed, classes=self.classes)

    def gradients(self, v: dict[int, Tensor], *, as_is: bool = False) -> dict[int, Tensor | None]:
        """A fresh forward and one backward: what an earlier backward may have spoiled plays no part."""
        return self.precise_run().gradients(v, as_is=as_is)

    @cached_property
    def baseline(self) -> PlainRun:
        """grad_outputs and the gradients they give, undisturbed: what every provocation is compared with."""
        run = self.precise_run()
        v = run.normal(self.generator(5))
        return PlainRun(run, v, run.gradients(v))

    @cached_property
    def watched(self) -> Watched:
        """What one run of the subject, as it is, was seen to do."""
        return watched(self.target, self.arguments, self.settings.seed)

    def guarded(self) -> contextlib.AbstractContextManager[Any]:
        """Around everything that runs a subject which frees memory: an operator that would read it raises instead."""
        return guard() if self.watched.frees else contextlib.nullcontext()

    @cached_property
    def stochastic(self) -> bool:
        """Whether forward draws random numbers: an operator does, with whatever seed, or two seeds give two results.

        A seed of its own does not help: numbers are drawn in the order of the memory, so that another layout is another
        draw.
        """
        if self.watched.draws:
            return True
        target, arguments = self.precise
        try:
            # With gradients on: some forwards only draw while they are trained.
            outputs = [[out.detach() for out in forward(target, arguments, seed=seed).outputs] for seed in (1, 2)]
        except Exception:  # it runs under the seed of the settings: what raises under another one depends on chance
            return True
        return not all(self.close(a, b) for a, b in zip(*outputs))

    @cached_property
    def tape(self) -> OperationTape:
        """Every operation of one forward and one backward on the example; `lab/explore/questions.py` reads it."""
        target, arguments = self.precise
        return recorded(target, arguments, self.settings.seed, backward=True)

    @cached_property
    def tolerance(self) -> Tolerance:
        """What counts as equal: rounding in the coarsest precision at hand, and what cancellation leaves of nothing."""
        target, arguments = self.precise
        judged = "gradient" in vars(self)  # then there is a run to look at
        run = self.gradient.run if judged else forward(target, arguments, seed=self.settings.seed)
        tensors = [x.tensor for x in arguments.differentiable] + [run.outputs[o] for o in run.differentiable]
        eps = max(torch.finfo(t.dtype).eps for t in tensors)
        reach = max((largest(t) for t in tensors), default=0.0)
        least = min((typical_size(x.tensor) for x in arguments.differentiable), default=1.0)
        rtol = 1e-9 if eps < 1e-15 else 1e-4 if eps < 1e-6 else 5e-2
        return Tolerance(rtol, min(100 * eps, 1e-2) * reach / least)

    def close(self, a: Tensor | None, b: Tensor | None) -> bool:
        """Equal up to what reordering sums may change."""
        return same(a, b, self.tolerance.rtol, self.tolerance.floor)

    def is_rounding(self, leaf: Leaf, *gradients: Tensor | None) -> bool:
        """These gradients are what cancellation leaves of nothing: forward does not depend on this input, or as good as not.

        A sum whose terms cancel is off by the rounding of its terms, which are as large as grad_output times the slope of a line
        through the origin.
        """
        sizes = [float(g.abs().max()) for g in gradients if g is not None and g.numel()]
        v = max((float(v.abs().max()) for v in self.baseline.v.values() if v.numel()), default=0.0)
        numbers = [out for out in self.baseline.run.outputs if out.dtype != torch.bool]
        outputs = [out.detach() for out in numbers if out.numel()]
        steepness = max((float(widened(out).abs().max()) for out in outputs), default=0.0) / typical_size(leaf.tensor)
        still = all(pair.flat for pair in self.gradient.pairs if pair.leaf.position == leaf.position)
        few_digits = 2**12 * torch.finfo(leaf.tensor.dtype).eps * v * steepness
        return all(size <= max(few_digits, 1e-8 * v if still else 0.0) for size in sizes)

    @cached_property
    def classes(self) -> tuple[type[torch.autograd.Function], ...]:
        """The custom Functions that take part: the subject itself, or those found behind its outputs."""
        if self.target.function is not None:
            return (self.target.function,)
        return tuple(functions_behind(forward(self.target, self.arguments, seed=self.settings.seed).outputs))

    @cached_property
    def observed(self) -> Run:
        """A forward and one backward with N(0,1) grad_outputs, for probes that only look."""
        run = self.run()
        run.gradients(run.normal(self.generator(3)))
        return run

    @cached_property
    def precise(self) -> tuple[Target, Arguments]:
        """Subject and inputs in float64, where it runs there; truth is float64 even when asked about float32."""
        kinds = {leaf.tensor.dtype for leaf in self.arguments.leaves if leaf.tensor.is_floating_point()}
        if kinds <= {torch.float64} or runs_kernels(self.target) or self.large:
            return self.target, self.arguments
        try:
            target, arguments = cast_target(self.target, torch.float64), self.arguments.cast(torch.float64)
            run = forward(target, arguments, seed=self.settings.seed)
            run.gradients(run.ones())
            if leaves_torch(self.target) and not self._honest(target, arguments):
                return self.target, self.arguments
        except Exception:  # the subject exists in its own precision only; any error of its code says so
            return self.target, self.arguments
        return target, arguments

    @cached_property
    def large(self) -> bool:
        """Whether the inputs are so large that memory counts more than digits: they are not copied to float64, and what probes
        would share is computed again. The same on every machine, so that the verdict is."""
        return size_of(self.arguments) >= LARGE

    def forget_runs(self) -> None:
        """Of large inputs nothing is held between probes."""
        if self.large:
            for name in ("baseline", "observed", "tape"):
                self.__dict__.pop(name, None)
            for question in [question for question in self.answers if getattr(question, "holds_a_run", False)]:
                del self.answers[question]

    def _honest(self, target: Target, arguments: Arguments) -> bool:
        """Whether foreign code that takes float64 computes in it: with its digits, and the numbers of float32."""
        low = forward(self.target, self.arguments, seed=self.settings.seed).outputs
        high = forward(target, arguments, seed=self.settings.seed).outputs
        if not all(same(a.detach().to(b.dtype), b, 1e-3) for a, b in zip(low, high)):
            return False
        return forward_noise(target, arguments, self.settings) < 1e-12

    def measure_noise(self) -> None:
        """Where code outside torch computes, what it computes in is measured, and steps and tolerances follow from it."""
        if leaves_torch(self.target) or runs_kernels(self.target) or self.large:
            target, arguments = self.precise
            found = forward_noise(target, arguments, self.settings)
            if self.large:  # a forward that only moves numbers has no noise, and the digits of its type all the same
                found = max(found, *(torch.finfo(x.tensor.dtype).eps for x in arguments.differentiable))
            opaque = runs_kernels(self.target) and _launches(target, arguments, self.settings.seed)
            known = found if found > 1e-12 or self.large else 0.0
            self.settings = replace(self.settings, noise=known, opaque=opaque, lean=self.large)

    @cached_property
    def budget(self) -> Budget:
        """How often the subject may run during the whole check."""
        target, arguments = self.precise

        def run() -> None:
            found = forward(target, arguments, seed=self.settings.seed)
            found.gradients(found.ones())

        try:
            cost = cost_of(run)
        except Exception:  # reported by the probes, which do not get far then
            cost = 0.0
        found = budget_of(self.level, cost)
        if self.gradient_alone:  # the few checks that are left all have their runs
            found = replace(found, runs=max(found.runs, _ALONE))
        return found.for_kernels() if runs_kernels(self.target) else found

    @cached_property
    def gradient(self) -> Judgement:
        """The judgement of the oracles. Where it takes too many runs, `Spent`, each time it is asked for."""
        if self._spent is not None:
            raise self._spent
        target, arguments = self.precise
        self.forget_runs()
        try:
            with self.budget.for_gradient():
                dear = self.large or self.budget.expensive
                return (self.plainly_right if dear else None) or judge(target, arguments, self.settings)
        except Spent as spent:
            self._spent = spent
            raise

    @cached_property
    def plainly_right(self) -> Judgement | None:
        """The judgement of a gradient that few runs show to be right; None where it takes more to judge it."""
        target, arguments = self.precise
        with self.budget.for_gradient():
            # Through a loop of 20,000 steps, autograd takes 23 times as long as forward: more than was promised, perhaps.
            autograd = time_left() > _UNROLLED * self.budget.cost
            return screened(target, arguments, self.settings, autograd=autograd)

    @property
    def gradient_unsettled(self) -> bool:
        """Whether the runs that are reserved for the gradient were not enough to judge it."""
        return self._spent is not None

    def generator(self, offset: int = 0) -> torch.Generator:
        return torch.Generator().manual_seed(self.settings.seed + 1000 + offset)

    def finding(
        self,
        message: str,
        *,
        argument: str | None = None,
        advice: str | None = None,
        severity: Severity | None = None,
        cause: str | None = None,
        evidence: dict[str, Any] | None = None,
        function: str | None = None,
        line: int | None = None,
        at: Part | None = None,
        raised: BaseException | None = None,
    ) -> Finding:
        """A finding about this subject, placed at its class line unless the probe, or the source lens, knows better.

        A probe says which part of the Function its finding is about (`at`), or hands on the exception that the user's code
        raised.
        """
        own = function is None or function == self.target.name
        line = line or (self.line_among(_frames(raised)) if raised is not None else None)
        line = line or (self.line_of_part(at, argument) if at is not None and own else None)
        text = line_of(self.target.path, line)
        return Finding(
            message=message,
            function=function or self.target.name,
            argument=argument,
            path=self.target.path,
            line=line or self.target.line,
            column=len(text) - len(text.lstrip()),
            snippet=text.rstrip("\n"),
            advice=advice,
            severity=severity or "",
            cause=cause,
            evidence=evidence or {},
        )

    def line_of_gradient(self, argument: str | None) -> int | None:
        """The line in which backward computes the gradient of this input, as far as the source says."""
        model = model_of(self.target.function) if self.target.function is not None and argument is not None else None
        return line_of_gradient(model, argument) if model is not None and argument is not None else None

    @property
    def cut(self) -> tuple[int, str] | None:
        """The line of backward whose result autograd takes for a constant, as far as the source says, and what to write instead."""
        model = model_of(self.target.function) if self.target.function is not None else None
        found = cut(model) if model is not None else None
        return (getattr(found[0], "lineno", 0), found[1]) if found is not None else None

    def shown_output(self, index: int, name: str) -> str:
        """`output[1] ('mask')` where the source has a name for it."""
        model = model_of(self.target.function) if self.target.function is not None else None
        called = name_of_output(model, index) if model is not None and name == f"output[{index}]" else None
        return f"{name} ('{called}')" if called else name

    def line_of_part(self, part: Part, argument: str | None) -> int | None:
        """The line of a part of the Function; see `source/places.py`."""
        model = model_of(self.target.function) if self.target.function is not None else None
        return line_of_part(model, part, argument) if model is not None else None

    def line_among(self, frames: Iterable[tuple[str, int]]) -> int | None:
        """The last of these lines that stands in the subject's file: it was running when something raised."""
        if self.target.path is None:
            return None
        own = os.path.realpath(self.target.path)
        return next((line for path, line in reversed(list(frames)) if os.path.realpath(path) == own), None)

    def with_settings(self, **changes: Any) -> Lab:
        return Lab(self.target, self.arguments, replace(self.settings, **changes), self.level, self.surrogate)


def _frames(error: BaseException) -> Iterator[tuple[str, int]]:
    for frame, line in traceback.walk_tb(error.__traceback__):
        yield frame.f_code.co_filename, line


def size_of(arguments: Arguments) -> int:
    """The bytes of all tensors among the arguments; one that is passed twice counts once."""
    tensors = {id(leaf.tensor): leaf.tensor for leaf in arguments.leaves}
    return sum(t.numel() * t.element_size() for t in tensors.values())


def _launches(target: Target, arguments: Arguments, seed: int) -> bool:
    """Whether forward launches a kernel, as the guard over the interpreter sees it."""
    events: Any = sys.modules.get("gradsmith.lab.triton.events")
    if events is None:
        return False
    with events.kernels_logged() as seen, contextlib.suppress(Exception):
        forward(target, arguments, seed=seed)
    return bool(seen.traffic)


def forward_noise(target: Target, arguments: Arguments, settings: Settings) -> float:
    """The noise of forward as a share of its outputs, with all inputs moved by a few units in the last place."""
    try:
        run = forward(target, arguments, seed=settings.seed)
        leaves = distinct(arguments.differentiable)
        v = run.normal(torch.Generator().manual_seed(settings.seed + 4))
        drawn = torch.Generator().manual_seed(settings.seed + 5)
        moves = [(x, normal_like(x.tensor, drawn) * typical_size(x.tensor)) for x in leaves]
        step = 8 * max((torch.finfo(x.tensor.dtype).eps for x in leaves), default=0.0)
        evaluate = moved_together(target, arguments, moves, settings)
        del run
        return relative_noise(lambda k: evaluate(k * step), {o: g for o, g in v.items() if not g.is_complex()})
    except Exception:  # reported by the probes, which do not get far then
        return 0.0


def cast_target(target: Target, dtype: torch.dtype) -> Target:
    """A module in another precision; every other subject as it is."""
    if target.module is None:
        return target
    return functional(resolve(copy.deepcopy(target.module).to(dtype)))


def same(a: Tensor | None, b: Tensor | None, rtol: float = 1e-9, floor: float = 0.0) -> bool:
    """Equal up to rounding, None being zero, nan equal to nan."""
    if a is None or b is None:
        other = a if a is not None else b
        return other is None or not any(bool(p.abs().gt(floor).any()) for (p,) in pieces(other.detach()))
    if a.shape != b.shape:
        return False
    a, b = widened(a.detach()), widened(b.detach())
    if not (a.is_floating_point() or a.is_complex()):
        return torch.equal(a, b.to(a.dtype))
    atol = rtol * largest(a) + floor
    return all(torch.allclose(p, q.to(p.dtype), rtol=rtol, atol=atol, equal_nan=True) for p, q in pieces(a, b))
