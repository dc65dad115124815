"""A subject made ready to be measured: calls get copies of the inputs, fresh ones if it writes into them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from gradsmith.findings import InputsFrom
from gradsmith.lab.process import torch_says
from gradsmith.lab.process.state import seed_all
from gradsmith.lab.run import flat_outputs
from gradsmith.lab.subject.arguments import Arguments
from gradsmith.lab.subject.binding import positional
from gradsmith.lab.subject.copies import copied
from gradsmith.lab.subject.target import Target

_ARRIVING = 1_000_003


@dataclass(frozen=True)
class CallCopies:
    """What a call works on: a copy of each input, by the id of the original, and of the gradients that arrive."""

    inputs: dict[int, Tensor]
    grad_outputs: list[Tensor | None]


@dataclass
class ReadyCall:
    """One call that is ready to run: `forward()`, then `backward()`. Nothing but the subject runs inside them."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    leaves: list[Tensor]
    grad_outputs: list[Tensor | None]
    copies: dict[str, Tensor]
    owned: dict[int, Tensor]  # id of an input -> the copy that stands for it
    outputs: list[Tensor] = field(default_factory=list)
    result: Any = None

    def forward(self) -> None:
        self.result = self.function(*self.args, **self.kwargs)

    def between(self) -> None:
        """Collect what forward returned; kept out of the clock."""
        tensors, _ = flat_outputs(self.result)
        self.outputs = [t for t in tensors if t.requires_grad]
        self.leaves = self.leaves or _graph_leaves(self.outputs)
        if len(self.grad_outputs) != len(self.outputs):
            self.grad_outputs = [torch.ones_like(t) for t in self.outputs]

    @property
    def has_backward(self) -> bool:
        return bool(self.outputs and self.leaves)

    def backward(self) -> tuple[Tensor | None, ...]:
        return torch.autograd.grad(self.outputs, self.leaves, self.grad_outputs, allow_unused=True)


@dataclass
class Bench:
    """A subject and its inputs. Parameters of a module are its own.

    Inputs are copied, for every call until `learn` has seen that the subject leaves them alone. From then on all calls share one
    copy, as in a loop that a user writes. Copying per call moves what malloc hands out next, and what is in the cache: measured
    on torch 2.13 against such a loop, `x * x` of 2 million elements took 2.4 times as long, benchmarks/profile_pairs/clones.py 1.27
    times and broadcast_sum.py 0.77 times.
    """

    target: Target
    arguments: Arguments
    seed: int = 0
    function: Callable[..., Any] | None = None  # instead of the target: a remedy to be measured on the same inputs
    through_clones: bool = False  # a Function that marks its input dirty may not be given a leaf
    inputs_from: InputsFrom = "given"
    forward_only: bool = False  # backward fails: what forward costs is still worth knowing
    _grad_outputs: list[Tensor | None] = field(default_factory=list)
    _shared: CallCopies | None = None

    @staticmethod
    def of(target: Target, args: tuple[Any, ...], kwargs: Mapping[str, Any], seed: int = 0) -> Bench:
        if target.function is not None and kwargs:
            args = positional(target, args, kwargs)
            kwargs = {}
        if target.module is not None:
            own = _copied(target.module)
            target = replace(target, module=own, call=own)
        return Bench(target, Arguments.of(args, kwargs, target.names), seed)

    @property
    def parameters(self) -> list[Tensor]:
        module = self.target.module
        return [p for p in module.parameters() if p.requires_grad] if module is not None else []

    def call(self) -> ReadyCall:
        """A call on copies; tensors passed twice stay one tensor. Shared copies are new tensors on the same memory."""
        seed_all(self.seed)
        shared = self._shared.inputs if self._shared else None
        given = copied(self.arguments, through=self.through_clones, shared=shared)
        leaves = [tensor for tensor in given.owned.values() if tensor.requires_grad]
        named = {leaf.name: given.passed[leaf.position] for leaf in self.arguments.leaves}
        named.update(self.target.module.named_parameters() if self.target.module is not None else ())
        function = self.function if self.function is not None else self.target.call
        return ReadyCall(
            function, given.args, given.kwargs, leaves + self.parameters, self._arriving(), named, given.owned
        )

    def _arriving(self) -> list[Tensor | None]:
        if self._shared is not None:
            return list(self._shared.grad_outputs)
        return [g.clone() if g is not None else None for g in self._grad_outputs]

    def learn(self, call: ReadyCall) -> None:
        """After a run: later calls share its copies if it left them as they were; else every call gets its own."""
        pairs: list[tuple[Tensor | None, Tensor | None]]
        pairs = [(call.owned[id(leaf.tensor)], leaf.tensor) for leaf in self.arguments.leaves]
        pairs += zip(call.grad_outputs, self._grad_outputs)
        kept = len(call.grad_outputs) == len(self._grad_outputs) and all(_unchanged(*pair) for pair in pairs)
        self._shared = CallCopies(call.owned, list(call.grad_outputs)) if kept else None

    @property
    def shares(self) -> bool:
        """Whether a call needs no memory of its own before it runs."""
        return self._shared is not None and not self.through_clones

    def first(self) -> ReadyCall:
        """The first forward: learns how the subject wants its inputs, and what gradient its outputs take."""
        call = self.call()
        try:
            call.forward()
        except RuntimeError as error:
            if not torch_says.written_into_a_leaf(error) or self.through_clones:
                raise
            self.through_clones = True
            call = self.call()
            call.forward()
        call.between()
        # Not the inputs' own seed: a grad_output equal to the input is special, e.g. normalising then has gradient zero.
        generator = torch.Generator().manual_seed(self.seed + _ARRIVING)
        self._grad_outputs = [_normal(t, generator) for t in call.outputs]
        call.grad_outputs = self._arriving()
        return call

    def with_arguments(self, arguments: Arguments) -> Bench:
        return replace(self, arguments=arguments, _grad_outputs=[], _shared=None)

    def with_function(self, function: Callable[..., Any]) -> Bench:
        """The same inputs for another callable: a reference, a compiled version, the built-in layer."""
        return replace(self, function=function, _shared=None)


def _unchanged(copied: Tensor | None, original: Tensor | None) -> bool:
    """Element by element, NaN like NaN. What cannot be compared, e.g. memory that was given away, counts as changed."""
    if copied is None or original is None:
        return copied is original
    try:
        if copied.untyped_storage().nbytes() < copied.numel() * copied.element_size():
            return False
        return torch.equal(copied, original) or bool(torch.isclose(copied, original, 0, 0, equal_nan=True).all())
    except RuntimeError:
        return False


def _normal(tensor: Tensor, generator: torch.Generator) -> Tensor:
    drawn = torch.randn(tensor.shape, generator=generator)
    return drawn.to(device=tensor.device, dtype=tensor.dtype)


def graph(outputs: list[Tensor]) -> Iterator[Any]:
    """Every autograd node behind `outputs`, once."""
    stack: list[Any] = [t.grad_fn for t in outputs]
    seen: set[Any] = set()
    while stack:
        node = stack.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        yield node
        stack.extend(parent for parent, _ in node.next_functions)


def _graph_leaves(outputs: list[Tensor]) -> list[Tensor]:
    """Leaves of the graph behind `outputs`, for callables that carry their parameters inside."""
    variables = [getattr(node, "variable", None) for node in graph(outputs)]
    return list({id(v): v for v in variables if v is not None}.values())


def _copied(module: nn.Module) -> nn.Module:
    """A copy, so that running statistics and buffers of the user's module stay as they are."""
    try:
        return copy.deepcopy(module)
    except Exception:  # modules that hold a graph, a file or a lock cannot be copied; they are measured as they are
        return module
