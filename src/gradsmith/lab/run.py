"""One forward of a subject, and as many backwards through it as a probe wants."""

from __future__ import annotations

import contextlib
import math
import signal
import sys
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from gradsmith.lab.explore.tape import OperationTape
from gradsmith.lab.measure.memory import kept, readable
from gradsmith.lab.measure.seeding import gradients
from gradsmith.lab.measure.values import computable
from gradsmith.lab.observe import Trace, observing
from gradsmith.lab.pieces import BLOCK
from gradsmith.lab.process.state import seed_all
from gradsmith.lab.subject.arguments import Arguments
from gradsmith.lab.subject.copies import copied
from gradsmith.lab.subject.target import Target
from gradsmith.lab.subject.wrapped import plain_gradient, taken_apart


@dataclass
class Run:
    """A finished forward. `leaves` are what gradients are asked for; `passed` are the non-leaf copies forward got."""

    target: Target
    arguments: Arguments
    leaves: dict[int, Tensor]
    passed: dict[int, Tensor]
    outputs: list[Tensor]
    output_names: list[str]
    classes: tuple[type[torch.autograd.Function], ...] = ()
    trace: Trace = field(default_factory=Trace)

    @property
    def differentiable(self) -> list[int]:
        """Indices of the outputs that carry a gradient, and can be computed with."""
        return [i for i, out in enumerate(self.outputs) if out.requires_grad and computable(out.dtype)]

    @property
    def not_computable(self) -> list[int]:
        """Indices of the outputs that carry a gradient in a type which torch does not compute in, such as float8."""
        return [i for i, out in enumerate(self.outputs) if out.requires_grad and not computable(out.dtype)]

    def gradients(
        self,
        grad_outputs: dict[int, Tensor],
        *,
        retain_graph: bool = True,
        as_is: bool = False,
    ) -> dict[int, Tensor | None]:
        """Gradients by input position, for these outputs' grad_outputs; None where nothing flows.

        They are copies: backward may return a buffer that it fills again the next time.
        backward gets copies, so that one which writes into its grad_output spoils nothing; `as_is` hands over the
        very tensors, for probes that look at layout and mutation.
        """
        _in_time()
        positions = list(self.leaves)
        chosen = [i for i in self.differentiable if i in grad_outputs]
        with observing(self.classes, self.trace), _run_under_way():
            outputs, leaves = [self.outputs[i] for i in chosen], [self.leaves[p] for p in positions]
            given = [grad_outputs[i] if as_is else grad_outputs[i].clone() for i in chosen]
            for leaf in leaves:
                leaf.grad = None
            grads = gradients(outputs, leaves, given, retain_graph=retain_graph)
        # A backward that runs another one (as checkpoints do) adds to `.grad` of what it reaches, and returns nothing for it.
        reached = [g if g is not None else leaf.grad for g, leaf in zip(grads, leaves)]
        return {p: kept(plain_gradient(g)) for p, g in zip(positions, reached)}

    def without_graph(self) -> Run:
        """The same outputs, which no backward can be run through any more: the graph holds what forward saved."""
        carried = set(self.differentiable)
        outputs = [out.detach().requires_grad_(i in carried) for i, out in enumerate(self.outputs)]
        return replace(self, leaves={}, passed={}, outputs=outputs, trace=Trace())

    def ones(self) -> dict[int, Tensor]:
        return {i: torch.ones_like(self.outputs[i]) for i in self.differentiable}

    def normal(self, generator: torch.Generator) -> dict[int, Tensor]:
        """Random N(0,1) grad_outputs, one per differentiable output."""
        return {i: normal_like(self.outputs[i], generator) for i in self.differentiable}


class Spent(BaseException):
    """More runs of the subject than were allowed. No error of the subject: nothing that catches those may catch it."""

    def __init__(self, allowance: Allowance) -> None:
        super().__init__(f"more than {allowance.runs} runs of the subject")
        self.allowance = allowance


@dataclass(eq=False)
class Allowance:
    """While it is entered, the subject may run so many times; then `Spent` is raised.

    `cost` is the CPU time that a run is expected to take: one that takes at least four times as long (a loop that does not
    converge there) counts for several. A `reserved` allowance is not charged to those that were entered before it.
    """

    runs: int
    cost: float = math.inf
    reserved: bool = False
    used: int = 0

    def __enter__(self) -> Allowance:
        _allowances.append(self)
        return self

    def __exit__(self, *raised: Any) -> None:
        _allowances.remove(self)

    @property
    def entered(self) -> bool:
        return self in _allowances

    @property
    def left(self) -> int:
        return max(0, self.runs - self.used)

    def take(self) -> None:
        self.used += 1
        if self.used > self.runs:
            raise Spent(self)

    def took(self, seconds: float) -> None:
        """Charge for a run that was much longer than expected: a power of two, so that a busy machine changes little."""
        times = seconds / self.cost
        if times >= 4:
            self.used += (1 << int(math.log2(times))) - 1


class RunLimit(Allowance):
    """While it is entered, the subject may run until so many seconds are over; then `Spent` is raised, also in what is reserved.

    For those who were promised a time (a script, a test suite). Verdicts never depend on it otherwise. A run that has begun
    is stopped, too: under a tape, or in a compiler, one run takes minutes where the subject takes a second. Only runs are
    stopped, never what we do between them, so that nothing is left half restored.

    At a `first_look` others wait for their turn: where runs are dear, the gradient is judged and the rest is left for later.
    """

    def __init__(self, seconds: float, *, first_look: bool = False) -> None:
        super().__init__(sys.maxsize)
        self.first_look = first_look
        self.until = time.monotonic() + seconds
        self._before: Any = None

    def __enter__(self) -> RunLimit:
        _limits.append(self)
        if _alarm_is_free():
            self._before = signal.signal(signal.SIGALRM, self._stop)
            signal.setitimer(signal.ITIMER_REAL, max(1e-3, self.until - time.monotonic()))
        return self

    def __exit__(self, *raised: Any) -> None:
        _limits.remove(self)
        if self._before is not None:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self._before)
            self._before = None

    @property
    def entered(self) -> bool:
        return self in _limits

    @property
    def over(self) -> bool:
        return time.monotonic() > self.until

    def _stop(self, number: int, frame: FrameType | None) -> None:
        signal.setitimer(signal.ITIMER_REAL, _AGAIN)  # between two runs, or in a subject that catches everything
        if _under_way:
            raise Spent(self)


def _alarm_is_free() -> bool:
    """Whether an alarm can be set, and is nobody else's: Windows has none, only the main thread may set it."""
    if not hasattr(signal, "SIGALRM") or threading.current_thread() is not threading.main_thread():
        return False
    return signal.getsignal(signal.SIGALRM) is signal.SIG_DFL and signal.getitimer(signal.ITIMER_REAL)[0] == 0


_AGAIN = 0.5  # s after which an alarm that stopped nothing is repeated
_allowances: list[Allowance] = []
_limits: list[RunLimit] = []
_under_way: list[None] = []  # runs of the subject that have begun


@contextlib.contextmanager
def _run_under_way() -> Iterator[None]:
    before = len(_under_way)
    _under_way.append(None)
    try:
        yield
    finally:
        del _under_way[before:]


def out_of_time() -> bool:
    """Whether a time that was promised to somebody is over."""
    return any(limit.over for limit in _limits)


def at_first_look() -> bool:
    """Whether others wait for the time that is spent here."""
    return any(limit.first_look for limit in _limits)


def time_left() -> float:
    """The seconds of the time that was promised to somebody; infinite where nobody was."""
    return min((limit.until for limit in _limits), default=math.inf) - time.monotonic()


def _in_time() -> None:
    for limit in _limits:
        if limit.over:
            raise Spent(limit)


def _in_force() -> list[Allowance]:
    return _allowances[max((i for i, a in enumerate(_allowances) if a.reserved), default=0) :]


def runs_left(most: int) -> int:
    """How many runs all allowances that are in force still permit."""
    return min((a.left for a in _in_force()), default=most)


def require(runs: int) -> None:
    """Raise `Spent` where so many runs are not permitted any more: what cannot be finished is not begun."""
    for allowance in _in_force():
        if allowance.left < runs:
            raise Spent(allowance)


@contextlib.contextmanager
def counted(*, as_one: bool = False) -> Iterator[None]:
    """Around one run of the subject: it is charged to the allowances that are in force, the last one first.

    `as_one` is for a run that takes long because of us (under a tape), and not because of its arguments.
    """
    _in_time()
    charged = _in_force()[::-1]
    for allowance in charged:
        allowance.take()
    start = time.process_time()
    try:
        with _run_under_way():
            yield
    finally:
        seconds = time.process_time() - start
        for allowance in () if as_one else charged:
            allowance.took(seconds)


def forward(
    target: Target,
    arguments: Arguments,
    *,
    seed: int = 0,
    classes: Sequence[type[torch.autograd.Function]] = (),
    plain: bool = False,
    tape: OperationTape | None = None,
    spare: Collection[int] = (),
) -> Run:
    """Call the subject on fresh copies. `plain` skips the graph; a tape hears the subject alone, not the copying.

    `spare` are ids of tensors that were made for this call, and need not be copied.
    """
    with counted(as_one=tape is not None):
        given = copied(arguments, plain=plain, spare=spare)
        if tape is not None:
            tape.follow(given.passed)
        trace = Trace()
        seed_all(seed)
        with observing(classes, trace), tape if tape is not None else contextlib.nullcontext():
            result = target.call(*given.args, **given.kwargs)
    outputs, names = flat_outputs(result)
    for name, output in zip(names, outputs):
        readable(output, name)
    return Run(target, arguments, given.leaves, given.passed, outputs, names, tuple(classes), trace)


def recorded(
    target: Target, arguments: Arguments, seed: int, *, backward: bool = False, aten_only: bool = False
) -> OperationTape:
    """The tape of one forward, and of one backward if asked for; where they raise, of what ran until then."""
    tape = OperationTape(path=target.path, aten_only=aten_only)
    try:
        run = forward(target, arguments, seed=seed, tape=tape)
    except Exception as error:  # user code, under a mode it may not bear below the level of calls
        tape = OperationTape(path=target.path, calls_only=True)
        tape.failed = error
        with contextlib.suppress(Exception):
            forward(target, arguments, seed=seed, tape=tape)
        return tape
    if backward and run.differentiable:
        tape.phase = "backward"
        v = run.normal(torch.Generator().manual_seed(seed))
        with tape, contextlib.suppress(Exception):
            run.gradients(v)
    return tape


def flat_outputs(result: Any) -> tuple[list[Tensor], list[str]]:
    """The tensors in whatever forward returned, each with a name such as `output`, `output[1]`, `output['h']`."""
    if type(result) is Tensor:
        return [result], ["output"]
    pairs, _ = pytree.tree_flatten_with_path(result)
    tensors = [("output" + pytree.keystr(path), value) for path, value in pairs if isinstance(value, Tensor)]
    found = [(name, part) for name, value in tensors for part in taken_apart(value)]
    return [v for _, v in found], [name for name, _ in found]


def normal_like(tensor: Tensor, generator: torch.Generator) -> Tensor:
    """N(0,1) of the same shape, drawn in float64 on the CPU so that every device and dtype sees the same direction."""
    wide = torch.complex128 if tensor.is_complex() else torch.float64
    if tensor.numel() <= BLOCK:
        return torch.randn(tensor.shape, dtype=wide, generator=generator).to(dtype=tensor.dtype, device=tensor.device)
    drawn = torch.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device)
    for piece in drawn.view(-1).split(BLOCK):
        piece.copy_(torch.randn(piece.shape, dtype=wide, generator=generator))
    return drawn
