"""`gs.wrap`: a function on NumPy arrays as a torch callable with a gradient whose error is known."""

from __future__ import annotations

import functools
import itertools
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from gradsmith.external import operator
from gradsmith.external.calls import Calls, CallSignature, plain
from gradsmith.external.errors import ExternalError, PoorGradientError
from gradsmith.external.evaluating import Evaluator
from gradsmith.external.field import Field, RowLayout, typical_size
from gradsmith.external.foreign import AnyArray, Foreign, Outputs
from gradsmith.external.given import Given
from gradsmith.external.gradients import evaluations, gradient
from gradsmith.external.quality import METHODS, NOTICEABLE, Measured, Statement, measure
from gradsmith.external.tensors import as_array, as_tensors, float_type, numpy_type, weights
from gradsmith.lab.subject.declarations import ATTRIBUTE, Declaration
from gradsmith.lab.subject.target import short_name
from gradsmith.nearest import nearest

_handles = itertools.count()
_wrapped: dict[int, Wrapped] = {}
_FAR = 10.0  # steps are measured anew once an input has grown or shrunk by more than this


def wrap(
    fn: Callable[..., Any],
    *,
    vjp: Callable[..., Any] | None = None,
    jacobian: Callable[..., Any] | None = None,
    jvp: Callable[..., Any] | None = None,
    method: str = "auto",
    batched: bool | str = False,
    shared: Sequence[str] = (),
    dtype: Any = np.float64,
    workers: int = 1,
    executor: Executor | None = None,
    timeout: float | None = None,
    accept_error: float | bool | None = None,
    samples: int = 16,
    seed: int = 0,
    progress: bool = False,
    name: str | None = None,
) -> Wrapped:
    """A torch callable that runs `fn` on NumPy arrays and has a gradient.

    The gradient comes from `vjp(grad, *args)`, `jacobian(*args)` or `jvp(tangent, *args)` if one is given, else from
    differences: `method` is "central", "forward", "richardson", "complex-step", "spsa" or "auto", which measures and
    chooses. Floating-point tensors reach `fn` as arrays of `dtype`; outputs get the dtype and device of the inputs.
    `batched=True` says that `fn` takes rows that are independent; `batched="rows"` calls `fn` on one row at a time;
    `shared` names inputs without rows. `workers=N` evaluates in N processes, `executor=` on any
    `concurrent.futures.Executor`, `timeout=` stops an evaluation after so many seconds. A gradient whose error is above 1 %
    raises `PoorGradientError` on first backward, unless `accept_error` allows it.

    >>> import numpy as np, torch
    >>> wave = wrap(lambda x: np.sin(x) * x)
    >>> x = torch.linspace(1, 2, 3, dtype=torch.float64, requires_grad=True)
    >>> wave(x).sum().backward()
    >>> torch.allclose(x.grad, x.cos() * x + x.sin())
    True
    >>> wave.statement.grade
    'good'
    """
    given = [(kind, f) for kind, f in (("vjp", vjp), ("jacobian", jacobian), ("jvp", jvp)) if f is not None]
    if len(given) > 1:
        raise ExternalError(f"wrap got {given[0][0]}= and {given[1][0]}=: pass one of them.")
    if method not in METHODS:
        raise ExternalError(f"no method is called {method!r}; {nearest(method, METHODS)}")
    if batched not in (False, True, "rows"):
        raise ExternalError(
            f"batched is {batched!r}: pass True (fn takes all rows at once) or 'rows' (fn takes one row)."
        )
    if not callable(fn):
        raise ExternalError(f"wrap needs a function of arrays, and got {type(fn).__name__}.")
    if isinstance(fn, Wrapped):
        raise ExternalError(f"{fn.__name__} is wrapped already.")
    if workers < 1 or samples < 1:
        raise ExternalError("workers and samples must be at least 1.")
    called = name or short_name(fn)
    called = "the lambda" if called == "<lambda>" else called
    options = WrapOptions(
        method,
        RowLayout(batched is True, batched == "rows", tuple(shared)),
        np.dtype(dtype),
        accept_error,
        samples,
        seed,
    )
    run = Evaluator(fn, called, workers, executor, timeout, progress)
    return Wrapped(fn, called, options, run, Given(given[0][0], given[0][1], called) if given else None)


@dataclass(frozen=True)
class WrapOptions:
    """What was asked of a wrapped function."""

    method: str
    layout: RowLayout
    dtype: np.dtype[Any]
    accept_error: float | bool | None
    samples: int
    seed: int

    @property
    def limit(self) -> float:
        """The largest error that is accepted."""
        if self.accept_error is None or self.accept_error is False:
            return NOTICEABLE
        return float("inf") if self.accept_error is True else float(self.accept_error)


class Wrapped:
    """A foreign function as a torch callable. `statement` says how good its gradient is, once that was measured."""

    def __init__(
        self, fn: Callable[..., Any], name: str, options: WrapOptions, run: Evaluator, given: Given | None
    ) -> None:
        functools.update_wrapper(self, fn, updated=())
        self.__name__ = name
        self.options, self.run, self.given = options, run, given
        self.foreign = Foreign(fn, name)
        self.calls = Calls(fn, name)
        self.statement: Statement | None = None
        self.returns: pytree.TreeSpec | None = None
        self.verified = given is None
        self._measured: dict[Any, tuple[Measured, list[float]]] = {}
        self._silent = False
        self.handle = next(_handles)
        _wrapped[self.handle] = self
        self.op, self.functional = operator.register(name, self._forward, self._fake, self._backward)
        setattr(self, ATTRIBUTE, Declaration(approximate=given is None))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling():
            flat = _in_graph(self.handle, args, kwargs)
            return (
                flat[0] if self.returns is None or self.returns.is_leaf() else pytree.tree_unflatten(flat, self.returns)
            )
        tensors, call = self.calls.of(args, kwargs)
        if not self.verified:
            self._verify(tensors, args, kwargs)
        found = self._found(tensors, call)
        spec = self._outputs(call, [t.shape for t in tensors]).spec
        return found[0] if spec.is_leaf() else pytree.tree_unflatten(found, spec)

    def _found(self, tensors: list[Tensor], call: CallSignature) -> list[Tensor]:
        if torch._C._are_functorch_transforms_active():
            return list(self.functional(call.number, *tensors))
        found: list[Tensor] = self.op(tensors, call.number)
        return found

    def __repr__(self) -> str:
        how = self.given.kind if self.given else self.options.method
        return f"gs.wrap({self.__name__}, {how}{f', error {self.statement.error:.2g}' if self.statement else ''})"

    def quality(self, *args: Any, grad_outputs: Any = None, **kwargs: Any) -> Statement:
        """Measure the gradient at these inputs: error, noise, steps, evaluations and a grade.

        `grad_outputs` are the weights of the outputs; random ones, if there are none.
        """
        tensors, call = self.calls.of(args, kwargs)
        of = self._field(
            [as_array(t, self.options.dtype) for t in tensors], call, [t.is_floating_point() for t in tensors]
        )
        if not of.blocks:
            raise ExternalError(
                f"there is no gradient of {self.__name__} to measure: no input is a floating-point tensor with elements."
            )
        if grad_outputs is None:
            rng = np.random.default_rng(self.options.seed)
            v: list[AnyArray | None] = [
                rng.standard_normal(o.shape) if o.dtype.kind in "fc" else None for o in of.outputs
            ]
        else:
            flat = pytree.tree_flatten(grad_outputs)[0]
            v = weights([g for g in flat if isinstance(g, Tensor)], of.outputs)
        of.weigh(v)
        return self._measure(of, [t.dtype for t in tensors]).statement

    def __deepcopy__(self, memo: dict[int, Any]) -> Wrapped:
        """Another wrapper of the same function: it measures its own gradient, and has its own worker processes."""
        return Wrapped(self.foreign.fn, self.__name__, self.options, self.run.anew(), self.given)

    def __reduce__(self) -> Any:
        if self.run.executor is not None:
            raise ExternalError(
                f"{self.__name__} cannot be pickled with its executor. Wrap the function again where it is loaded."
            )
        return Wrapped, (self.foreign.fn, self.__name__, self.options, self.run.anew(), self.given)

    def close(self) -> None:
        """End the worker processes."""
        self.run.close()

    @property
    def __gradsmith_statement__(self) -> str:
        """What reports show of the gradient."""
        return str(self.statement) if self.statement is not None else ""

    def _forward(self, tensors: list[Tensor], number: int) -> list[Tensor]:
        call = self.calls[number]
        arrays = [as_array(t, self.options.dtype) for t in tensors]
        for t, name in zip(tensors, call.names):
            if t.is_complex() and t.requires_grad:
                raise ExternalError(
                    f"'{name}' is complex: {self.__name__} has gradients of real inputs only. Pass real and imaginary part."
                )
        if self.options.layout.by_row or self.run.apart:
            outputs = Field(self.foreign, call, arrays, (), self.run, self.options.layout).outputs
        else:
            outputs = self.foreign.called(call, arrays)
        return as_tensors(outputs, tensors)

    def _fake(self, tensors: list[Tensor], number: int) -> list[Tensor]:
        """Outputs without numbers, for the compiler. The shapes come from an earlier call, else from a trial."""
        call = self.calls[number]
        shapes = [tuple(int(s) for s in t.shape) for t in tensors]
        known = self._outputs(call, shapes, [t.dtype for t in tensors])
        self.returns = known.spec
        kind, device = float_type(tensors), tensors[0].device if tensors else torch.device("cpu")
        rows = (shapes[0][0],) if self.options.layout.by_row else ()
        return [
            torch.empty((*rows, *shape), dtype=kind(dtype), device=device)
            for shape, dtype in zip(known.shapes, known.dtypes)
        ]

    def _outputs(
        self, call: CallSignature, shapes: Sequence[Sequence[int]], types: Sequence[torch.dtype] = ()
    ) -> Outputs:
        layout = self.options.layout
        mine = tuple(
            tuple(s)[1:] if layout.by_row and layout.has_rows(n) else tuple(s) for s, n in zip(shapes, call.names)
        )
        known = self.foreign.known.get((call.number, mine))
        if known is None:
            self._try(call, mine, types)
            known = self.foreign.known[call.number, mine]
        return known

    def _try(self, call: CallSignature, shapes: Sequence[tuple[int, ...]], types: Sequence[torch.dtype]) -> None:
        """One evaluation at ones, to learn the shapes of the outputs before there are any numbers."""
        arrays = [np.ones(s, dtype=numpy_type(t, self.options.dtype)) for s, t in zip(shapes, types)]
        args, kwargs = call.arguments(arrays)
        try:
            value = self.foreign.fn(*args, **kwargs)
        except Exception as error:
            raise ExternalError(
                f"the shapes of the outputs of {self.__name__} are not known for inputs {', '.join(map(str, shapes))}, and it does not accept ones "
                f"({type(error).__name__}). Call it once with such inputs before torch.compile."
            ) from None
        self.foreign.read(call, arrays, value)

    def _backward(self, tensors: list[Tensor], grads: list[Tensor], number: int, needed: list[bool]) -> list[Tensor]:
        call = self.calls[number]
        arrays = [as_array(t, self.options.dtype) for t in tensors]
        found: list[AnyArray | None] = [None] * len(tensors)
        key = (number, tuple(a.shape for a in arrays), tuple(needed))
        known, sizes = self._measured.get(key, (None, []))
        stale = known is None or _far(sizes, arrays)
        if self.given is not None and (self._silent or not stale):
            self._given_into(found, call, arrays, grads, needed)
            return _returned(found, tensors)
        of = self._field(arrays, call, needed)
        if not of.blocks:  # nothing to move: inputs without elements
            return _returned([np.zeros(a.shape) if n else None for a, n in zip(arrays, needed)], tensors)
        of.weigh(weights(grads, of.outputs))
        columns = sum(block.x.shape[1] for block in of.blocks)
        with self.run.shown(
            evaluations(
                self.options.method if self.options.method != "auto" else "central", columns, self.options.samples
            )
        ):
            if stale:
                known = self._measure(of, [t.dtype for t in tensors])
                self._hold(known.statement)
                if not all(i.independent for i in known.statement.inputs):  # these weights said nothing about steps
                    self._measured[key] = known, [_size(a) for a in arrays]
            assert known is not None
            if self.given is not None:
                self._given_into(found, call, arrays, grads, needed)
                return _returned(found, tensors)
            for block, steps in zip(of.blocks, known.steps):
                matrix = gradient(
                    of, block, known.statement.method, steps, self.options.samples, self.options.seed + self.run.count
                )
                for k, (begin, end) in zip(block.positions, block.spans):
                    found[k] = matrix[:, begin:end].reshape(arrays[k].shape)
        return _returned(found, tensors)

    def _field(self, arrays: list[AnyArray], call: CallSignature, needed: Sequence[bool]) -> Field:
        wanted = [k for k, (a, n) in enumerate(zip(arrays, needed)) if n and a.dtype.kind == "f" and a.size]
        return Field(self.foreign, call, arrays, wanted, self.run, self.options.layout)

    def _measure(self, of: Field, types: Sequence[torch.dtype]) -> Measured:
        claimed = None
        if self.given is not None:
            claimed = []
            for block in of.blocks:
                spec = self._outputs(of.call, [a.shape for a in of.arrays])
                v = [w if w is not None else np.zeros(s) for w, s in zip(of.v, spec.shapes)]
                parts = self.given.gradients(of.call, of.arrays, spec, v, block.positions)
                claimed.append(np.concatenate([p.reshape(block.x.shape[0], -1) for p in parts], axis=1))
        kinds = [torch.finfo(t).eps for t in types if t.is_floating_point]
        # Half of the digits that the coarsest input has; the rest would be rounded away in what is made of the gradient.
        enough = min(float(np.sqrt(max(kinds, default=0.0))), 1e-4)
        method = self.given.kind if self.given else self.options.method
        found = measure(of, method, self.options.samples, self.options.seed, claimed, enough)
        self.statement = found.statement
        return found

    def _hold(self, statement: Statement) -> None:
        """An error where the gradient is worse than was accepted; a warning where it is noticeably off."""
        if statement.error > self.options.limit or (
            statement.error >= NOTICEABLE and self.options.accept_error is None
        ):
            raise PoorGradientError(f"{statement}\n{_advice(statement, self.given)}")
        if statement.grade == "noticeable" and self.options.accept_error is None:
            warnings.warn(str(statement), UserWarning, stacklevel=2)

    def _given_into(
        self,
        found: list[AnyArray | None],
        call: CallSignature,
        arrays: list[AnyArray],
        grads: list[Tensor],
        needed: list[bool],
    ) -> None:
        assert self.given is not None
        spec = self._outputs(call, [a.shape for a in arrays])
        v = [np.zeros(s) if not _carries(g) else as_array(g, np.dtype(np.float64)) for g, s in zip(grads, spec.shapes)]
        wanted = [k for k, n in enumerate(needed) if n]
        for k, part in zip(wanted, self.given.gradients(call, arrays, spec, v, wanted)):
            found[k] = part

    def _verify(self, tensors: list[Tensor], args: Any, kwargs: Any) -> None:
        """`gs.check` on the gradient that was given, before it is used for the first time."""
        if (
            not torch.is_grad_enabled()
            or not any(t.requires_grad for t in tensors)
            or torch._C._len_torch_dispatch_stack()
        ):
            return
        from gradsmith.checking.run import check

        assert self.given is not None
        _, call = self.calls.of(args, kwargs)
        arrays = [as_array(t, self.options.dtype) for t in tensors]
        outputs = self._field(arrays, call, []).outputs
        v = [np.ones(o.shape) if o.dtype.kind in "fc" else np.zeros(o.shape) for o in outputs]
        wanted = [k for k, t in enumerate(tensors) if t.requires_grad]
        self.given.gradients(call, arrays, self._outputs(call, [a.shape for a in arrays]), v, wanted)  # its shapes
        self.verified = self._silent = True
        try:
            # The contract and the numbers; not other sizes, which C code need not survive.
            report = check(self, *args, kwargs=kwargs, level="quick", gradient="exact", select=("contract", "silent"))
        finally:
            self._silent = False
        if any(f.severity == "error" for f in report.findings):
            self.verified = False
            raise PoorGradientError(f"the {self.given.kind} that was given for {self.__name__} is wrong.\n{report}")


@torch.compiler.allow_in_graph  # type: ignore[untyped-decorator]
def _in_graph(handle: int, args: Any, kwargs: Any) -> list[Tensor]:
    """The call as one node of a graph: the compiler never looks inside."""
    wrapped = _wrapped[int(handle)]  # a symbol, once the compiler has seen two of them
    tensors, call = wrapped.calls.of(plain(args), plain(kwargs))
    return wrapped._found(tensors, call)


def _advice(statement: Statement, given: Given | None) -> str:
    if given is not None:
        return f"The {given.kind} does not agree with differences of the function. Correct it, or leave it out."
    if statement.method == "spsa":
        return "spsa estimates a gradient from a few random directions. Say accept_error=True if that is what you want."
    if statement.method == "complex-step":
        return "The function is not analytic (abs, comparisons, conj, a cast to real). Use method='central'."
    if not statement.error < 1:
        return (
            "No digit of it is right: these inputs are at a corner or a jump of the function, or it is mostly noise. Move the inputs, "
            "make the function smoother, or give vjp=."
        )
    return (
        "Make the function smoother (tighter solver tolerances, a fixed seed, float64), give vjp=, or accept the error: "
        f"accept_error={float(f'{statement.error * 1.5:.1g}'):g}."
    )


def _returned(found: Sequence[AnyArray | None], tensors: Sequence[Tensor]) -> list[Tensor]:
    return [
        torch.empty(0, dtype=t.dtype, device=t.device)
        if g is None
        else torch.from_numpy(np.ascontiguousarray(g)).to(t.device, t.dtype).reshape(t.shape)
        for g, t in zip(found, tensors)
    ]


def _carries(tensor: Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def _size(array: AnyArray) -> float:
    return typical_size(array) if array.dtype.kind == "f" else 0.0


def _far(sizes: Sequence[float], arrays: Sequence[AnyArray]) -> bool:
    """Whether an input has left the size at which its steps were measured."""
    now = [_size(a) for a in arrays]
    return any(a != b and (max(a, b) > _FAR * min(a, b)) for a, b in zip(sizes, now))
