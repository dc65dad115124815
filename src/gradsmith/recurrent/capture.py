"""Stage 1: run the user's step once on tensors without data and write down what it does, forward and backward.

The joint step is captured in one go: the eager step and its own `autograd.grad`. Tracing the forward first and
differentiating the trace would replace the backward of custom Functions by the derivative of their forward; a
spiking cell would silently lose its surrogate gradient.

The batch is traced as a prime number of rows that divides no other size, so that the batch dimension can be told
from every other one, and real tensors never enter: with real data NumPy results would be baked in silently.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, fx
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from gradsmith.native.refused import Refused

from .decompositions import table
from .fallback import call_step, check_state
from .simplify import simplify
from .standing_in import standing_in
from .structure import flatten

_PRIMES = (1009, 1013, 1019, 1021, 1031, 1033, 1039, 1049, 1051, 1061)
_VALUE_ERRORS = ("DataDependent", "GuardOnDataDependent", "UserError", "DynamicOutputShape")


class OutOfReach(Refused):
    """A mode alone cannot hand the step a stand-in for one of its tensors."""


@dataclass(frozen=True)
class Leaf:
    """What capture needs to know of one tensor: its shape per step without time, its dtype, and whether it is row-wise."""

    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype
    rowwise: bool
    wants_grad: bool


@dataclass
class Joint:
    """One captured step: placeholders by role, results by role; `None` where there is nothing to compute."""

    graph: fx.Graph
    constants: dict[str, Tensor]
    rows: int
    x: list[fx.Node]
    state: list[fx.Node]
    params: list[fx.Node]
    grad_y: list[fx.Node]
    grad_state: list[fx.Node]
    y: list[fx.Node]
    new_state: list[fx.Node]
    d_x: list[fx.Node | None] = field(default_factory=list)
    d_state: list[fx.Node | None] = field(default_factory=list)
    d_params: list[fx.Node | None] = field(default_factory=list)
    y_spec: Any = None
    state_spec: Any = None


# What a tensor without data answers as the real one would: its shape, dtype and device are part of a plan's key.
_SETTLED = frozenset({
    "dim", "dtype", "device", "element_size", "get_device", "is_complex", "is_cpu", "is_cuda", "is_floating_point",
    "is_meta", "is_mps", "is_nested", "is_quantized", "is_signed", "is_sparse", "is_same_size", "is_xla", "itemsize",
    "layout", "nbytes", "ndim", "ndimension", "nelement", "numel", "shape", "size", "__len__", "__setitem__",
    "_set_grad_enabled",  # `with torch.no_grad():` asks nothing
})  # fmt: skip


class RefuseQuestions(TorchFunctionMode):
    """Refuse a step that asks a tensor for anything but its shape, dtype and device (`h.grad`, `x.is_contiguous()`).

    The stand-ins of capture would answer for themselves, and their answer would be baked into the plan.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", str(func))
        if name == "__get__":
            name = func.__self__.__name__
        kinds = (torch.Size, torch.dtype, torch.device, Tensor)
        if name not in _SETTLED and not any(isinstance(leaf, kinds) for leaf in pytree.tree_leaves(result)):
            raise Refused(f"the step asks a tensor for {name}, which is not known while it is captured")
        return result


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """A step that cannot be captured is no news for the user's log; torch would print a traceback."""
    log = logging.getLogger("torch._subclasses.fake_tensor")
    before = log.level
    log.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        log.setLevel(before)


def rows_for(leaves: Sequence[Leaf]) -> int:
    sizes = {size for leaf in leaves for size in leaf.shape}
    return next(prime for prime in _PRIMES if not any(size and size % prime == 0 for size in sizes))


def capture(
    step: Callable[..., Any],
    x: Sequence[Leaf],
    state: Sequence[Leaf],
    params: Sequence[Leaf],
    specs: tuple[Any, Any, Any],
    seen: Sequence[Tensor],
    placed: bool,
) -> Joint:
    """`params` are the explicit ones followed by `seen`, the tensors the step reaches by closure; `specs` rebuild x, state, params.
    `placed` says how the step is given stand-ins for `seen` (standing_in.py)."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx

    leaves = [*x, *state, *params]
    rows = rows_for(leaves)
    fake_mode = FakeTensorMode()

    def stand_in(leaf: Leaf) -> Tensor:
        shape = (rows, *leaf.shape[1:]) if leaf.rowwise else leaf.shape
        return torch.empty(shape, dtype=leaf.dtype)

    joint = _JointStep(step, x, state, params, specs, seen, placed)
    try:
        with quietly(), fake_mode, torch.autocast("cpu", enabled=False):
            inputs = [stand_in(leaf) for leaf in leaves]
            y_like, state_like = joint.output_shapes(inputs)
            gradients = [torch.empty_like(t) for t in (*y_like, *state_like)] if joint.differentiable else []
            traced = make_fx(joint)(*inputs, *gradients)
            _refuse_random(traced.graph)
            traced = make_fx(torch.func.functionalize(traced), decomposition_table=table())(*inputs, *gradients)
    except Refused:
        raise
    except Exception as error:
        raise explain(error) from error
    graph = traced.graph
    if any(node.target is torch.ops.aten.copy_.default for node in graph.nodes):
        raise Refused("the step changes a tensor it does not own in place (a buffer, a running statistic)")
    _refuse_random(graph)
    constants = {str(n.target): _constant(traced, str(n.target)) for n in graph.nodes if n.op == "get_attr"}
    return _joint(simplify(graph, rows), constants, joint, len(x), len(state), len(params), len(y_like), rows)


class _JointStep:
    """The step and its vector-Jacobian product as one function of flat tensors."""

    def __init__(
        self,
        step: Any,
        x: Sequence[Leaf],
        state: Sequence[Leaf],
        params: Sequence[Leaf],
        specs: Any,
        seen: Sequence[Tensor],
        placed: bool,
    ) -> None:
        self.step, self.specs, self.seen, self.placed = step, specs, seen, placed
        self.x, self.state, self.params = x, state, params
        self.leaves = [*x, *state, *params]
        self.differentiable = any(leaf.wants_grad for leaf in self.leaves)
        self.y_spec: Any = None
        self.state_spec: Any = None
        self.gradients: list[bool] = []

    def wanted(self, index: int) -> bool:
        leaf = self.leaves[index]
        is_state = len(self.x) <= index < len(self.x) + len(self.state)
        return self.differentiable and leaf.dtype.is_floating_point and (leaf.wants_grad or is_state)

    def forward(self, inputs: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        x_spec, state_spec, params_spec = self.specs
        n_x, n_state = len(self.x), len(self.state)
        x, state, params = inputs[:n_x], inputs[n_x : n_x + n_state], inputs[n_x + n_state :]
        explicit = len(params) - len(self.seen)
        with standing_in(self.step, list(self.seen), list(params[explicit:]), self.placed):
            before = pytree.tree_unflatten(list(state), state_spec)
            own = pytree.tree_unflatten(list(params[:explicit]), params_spec)
            y, after = call_step(self.watched, list(x), before, own, x_spec, "scan")
        y_flat, state_flat = flatten(y, "y", "scan"), flatten(after, "state", "scan")
        check_state(flatten(before, "state", "scan"), state_flat, "scan")
        self.y_spec, self.state_spec = y_flat.spec, state_flat.spec
        for leaf, new in zip(self.state, state_flat.leaves):
            if new.dtype != leaf.dtype:
                raise Refused(f"{leaf.name} is {leaf.dtype} but becomes {new.dtype} after a step")
        return list(y_flat.leaves), list(state_flat.leaves)

    def watched(self, *given: Any) -> Any:
        with RefuseQuestions():
            return self.step(*given)

    def output_shapes(self, inputs: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        with torch.no_grad():
            return self.forward(inputs)

    def __call__(self, *flat: Tensor) -> list[Tensor]:
        inputs = [t.detach().requires_grad_(self.wanted(i)) for i, t in enumerate(flat[: len(self.leaves)])]
        if not self.differentiable:
            with torch.no_grad():
                y, state = self.forward(inputs)
            return [*y, *state]
        with torch.enable_grad():
            y, state = self.forward(inputs)
            outputs = [*y, *state]
            self._refuse_hidden_leaves(outputs, inputs)
            reached = [i for i, out in enumerate(outputs) if out.requires_grad]
            sources = [t for t in inputs if t.requires_grad]
            given = flat[len(self.leaves) :]
            # Custom backwards may reach closures too, so they run under the same substitution.
            explicit = len(self.params) - len(self.seen)
            fakes = inputs[len(self.x) + len(self.state) + explicit :]
            with standing_in(self.step, list(self.seen), list(fakes), self.placed):
                found = (
                    torch.autograd.grad(
                        [outputs[i] for i in reached], sources, [given[i] for i in reached], allow_unused=True
                    )
                    if reached
                    else [None] * len(sources)
                )
        self.gradients = [gradient is not None for gradient in found]
        return [*(t.detach() for t in outputs), *(g for g in found if g is not None)]

    def _refuse_hidden_leaves(self, outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> None:
        """A tensor given to `Function.apply` from a closure escapes substitution; its gradient must not be dropped."""
        known = {id(t) for t in inputs}
        stack = [out.grad_fn for out in outputs if out.grad_fn is not None]
        visited = set()
        while stack:
            node = stack.pop()
            if node in visited:
                continue
            visited.add(node)
            variable = getattr(node, "variable", None)
            if variable is not None and id(variable) not in known:
                raise OutOfReach(
                    f"a custom Function takes a tensor of shape {tuple(variable.shape)} from outside the step; pass it in params"
                )
            stack.extend(following for following, _ in node.next_functions if following is not None)


def _refuse_random(graph: fx.Graph) -> None:
    for node in graph.nodes:
        if torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()):
            raise Refused(f"the step draws random numbers ({node.target}), fresh ones at every step")


def _constant(traced: fx.GraphModule, name: str) -> Tensor:
    value = getattr(traced, name)
    constant = getattr(value, "constant", None)  # a FakeTensor remembers small literals such as torch.tensor(0.5)
    value = constant if constant is not None else value
    if type(value) not in (Tensor, torch.nn.Parameter):
        raise Refused("the step builds a constant tensor whose values are not known while it is captured")
    found: Tensor = value.detach()
    return found


def explain(error: Exception) -> Refused:
    text = str(error).strip().splitlines()
    first = text[0] if text else ""
    if any(word in type(error).__name__ for word in _VALUE_ERRORS) or "data-dependent" in str(error).lower():
        return Refused("the step looks at values (an `if` on a tensor, .item(), or NumPy)")
    if "convert all Tensors to FakeTensors" in str(error):
        return OutOfReach("the step uses a tensor that cannot be seen from outside; pass it in params")
    return Refused(f"the step could not be captured ({type(error).__name__}: {first[:160]})")


def _joint(
    graph: fx.Graph,
    constants: dict[str, Tensor],
    step: _JointStep,
    n_x: int,
    n_state: int,
    n_params: int,
    n_y: int,
    rows: int,
) -> Joint:
    inputs = [node for node in graph.nodes if node.op == "placeholder"]
    (output,) = (node for node in graph.nodes if node.op == "output")
    results = list(output.args[0])
    n_in = n_x + n_state + n_params
    found = iter(results[n_y + n_state :])
    present = iter(step.gradients)
    gradients = (
        [next(found) if step.wanted(i) and next(present) else None for i in range(n_in)] if step.differentiable else []
    )
    return Joint(
        graph, constants, rows,
        x=inputs[:n_x], state=inputs[n_x : n_x + n_state], params=inputs[n_x + n_state : n_in],
        grad_y=inputs[n_in : n_in + n_y], grad_state=inputs[n_in + n_y :],
        y=results[:n_y], new_state=results[n_y : n_y + n_state],
        d_x=gradients[:n_x], d_state=gradients[n_x : n_x + n_state], d_params=gradients[n_x + n_state :],
        y_spec=step.y_spec, state_spec=step.state_spec,
    )  # fmt: skip
