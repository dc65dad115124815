"""What PyTorch says and hides: every error text that gradsmith recognises, every private name that it relies on.

Wordings that `gradsmith explain` knows, too, stand in errors/ and are taken from there. Each has a test in
tests/test_torch_facts.py that provokes it for real, so that a release which words it differently fails
there, by name. The recurrent engine, which stands alone, keeps its own (tests/recurrent/test_torch_facts_recurrent.py).
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import logging
import math
import os
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor
from torch.autograd.function import _SingleLevelFunction

from gradsmith.errors import incorrect_number_of_gradients, invalid_gradient_shape, leaf_in_place
from gradsmith.torch_here import need_torch

need_torch("gradsmith")


def _filled(wording: str, *values: str) -> str:
    """A wording of `gradsmith.errors` as a pattern: each value stands for one of its gaps."""
    parts = wording.split("...")
    return "".join(re.escape(part) + value for part, value in zip(parts, [*values, ""]))


# --- what comes back from backward ----------------------------------------------------------------------------------


def gradients_returned(text: str) -> int | None:
    """How many gradients backward returned, where PyTorch says that it is the wrong number.

    >>> gradients_returned("function FBackward returned an incorrect number of gradients (expected 2, got 1)")
    1
    """
    match = re.search(_filled(incorrect_number_of_gradients.WORDINGS[0], r"\d+", r"(\d+)"), text)
    return int(match[1]) if match else None


def gradient_of_shape(text: str) -> tuple[int, list[int]] | None:
    """(input, shape of its gradient), where that shape does not fit the input.

    >>> gradient_of_shape("returned an invalid gradient at index 1 - got [2, 3] but expected shape compatible with [3]")
    (1, [2, 3])
    """
    match = re.search(_filled(invalid_gradient_shape.WORDINGS[0], r"(\d+)", r"\[([\d, ]*)\]", ""), text)
    return (int(match[1]), [int(n) for n in match[2].split(",") if n.strip()]) if match else None


def only_under_backward(error: BaseException) -> bool:
    """A checkpoint asks `torch.autograd._is_checkpoint_valid()`, and refuses to run under `torch.autograd.grad`."""
    return ".grad()" in str(error)


def written_into_a_leaf(error: BaseException) -> bool:
    """Forward works in place on what it is given, and was given a leaf."""
    return any(wording in str(error) for wording in leaf_in_place.WORDINGS)


# --- what an operation wants ----------------------------------------------------------------------------------------

Wanted = Literal["square", "integer", "channels", "bool", "complex"]
_WANTED: dict[Wanted, str] = {
    "square": r"\bsquare\b",
    "integer": r"used as indices|must be (a )?(torch\.)?(long|int)|[Ee]xpected .*\b(Long|Int|int64)\b|integer tensor"
    r"|index tensor|not implemented for '(Float|Double)'",
    "channels": r"shape '\[1, (?!1\b)\d+(, 1)+\]' is invalid for input",
    "bool": r"must be (a )?(torch\.)?bool|[Ee]xpected .*\bBool|bool(ean)? (tensor|mask)",
    "complex": r"must be (a )?(torch\.)?complex",
}


def wanted_instead(text: str) -> Wanted | None:
    """What a tensor should have been, as far as an operation says so.

    >>> wanted_instead("where expected condition to be a boolean tensor, but got a tensor with dtype Float")
    'bool'
    """
    asked = re.split(r"\bbut (?:got|found)\b|[,;] got\b", text)[0]  # not what there was, but what it should have been
    return next((what for what, pattern in _WANTED.items() if re.search(pattern, asked)), None)


def wants_complex(text: str) -> bool:
    """Real numbers were given to an operation on complex ones."""
    return re.search(r"non-complex dtypes|only supported for complex", text) is not None


def sparse_layout_wanted(text: str) -> torch.layout | None:
    """The layout of a sparse matrix that was asked for where a dense one was given; None where none was.

    >>> sparse_layout_wanted("crow_indices expected sparse row compressed tensor layout but got Strided")
    torch.sparse_csr
    """
    said = r"sparse[a-z ]* tensor layout but got Strided|must \w+ be all sparse_\w+|Unsupported layout type: torch\.strided"
    said += (
        r"|aten::_?(values|indices)' with arguments from the 'CPU' backend"  # those of COO alone have no other error
    )
    found = re.search(said, text)
    if found is None:
        return None
    return torch.sparse_coo if re.search("coordinate|aten", found[0]) else torch.sparse_csr


def speaks_of_complex(text: str) -> bool:
    return "complex" in text


def dtypes_differ(text: str) -> bool:
    """Two tensors of different dtypes meet in an operation that converts neither."""
    return re.search(r"same dtype|expected scalar type|[Ee]xpected .*\bdtype|\bDouble\b", text) is not None


def speaks_of_dtype(text: str) -> bool:
    return any(word in text for word in ("Float", "Double", "dtype", "float", "double", "Half"))


def sizes_differ(text: str) -> bool:
    """Tensors do not fit each other."""
    pattern = r"shape|size|dimension|index \d+ is out of|must match|broadcast|expand"
    return re.search(pattern, text, re.IGNORECASE) is not None


def subclass_lacks(error: BaseException) -> bool:
    """A tensor subclass does not have an operation: whoever asked for it, the subject's own code need not need it."""
    return isinstance(error, TypeError) and "__torch_dispatch__ handlers returned NotImplemented" in str(error)


def values_do_not_suit(text: str) -> bool:
    """The shapes are right, the values are not: a singular matrix, an index beyond the end."""
    pattern = r"LinAlg|PSD|(positive|negative|semi).?definite|singular|invertible|must be positive|symmetric|is out of bounds for"
    return re.search(pattern, text, re.IGNORECASE) is not None


def index_beyond(text: str) -> tuple[int, int, int] | None:
    """(index, dimension, size) where an index lies beyond the end of a dimension.

    >>> index_beyond("index 8 is out of bounds for dimension 1 with size 3")
    (8, 1, 3)
    """
    found = re.search(r"index (-?\d+) is out of bounds for (?:dimension|axis) (\d+) with size (\d+)", text)
    return (int(found[1]), int(found[2]), int(found[3])) if found else None


def numbers_are_no_good(warning: str) -> bool:
    """A warning that what comes out is not to be trusted: an iteration that does not converge, an overflow."""
    pattern = r"converge|residual|ill.?condition|singular|definite|symmetric|overflow|underflow|invalid value|tolerance|\bNaN\b"
    return re.search(pattern, warning, re.IGNORECASE) is not None


def cannot_run_here(text: str) -> bool:
    """What is missing is a device, a driver, a group of processes, or what this Triton no longer has: no inputs would help.

    >>> cannot_run_here("Torch not compiled with CUDA enabled")
    True
    """
    pattern = r"not compiled with CUDA|active drivers|process group has not been init|[Nn]o CUDA GPUs|NVIDIA driver"
    pattern += r"|Block pointers have been removed"
    pattern += r"|^(?:\w+: )?Could not run '[^']*' with arguments from the 'CPU' backend"
    return re.search(pattern, text) is not None


def wants_group(text: str) -> bool:
    """A group of processes is missing, and a group of one would do.

    >>> wants_group("ValueError: Default process group has not been initialized, please make sure to call init_process_group.")
    True
    """
    pattern = r"process group has not been init|init_process_group|initialize torch\.distributed|distributed.* not (been )?init"
    return re.search(pattern, text) is not None


def floating_named(text: str) -> str | None:
    """The floating dtype that a refusal names first, as torch spells it.

    >>> floating_named("Only torch.bfloat16 input dtype is supported, got torch.float64")
    'bfloat16'
    """
    found = re.search(r"\b(bfloat16|float16|BFloat16|Half|bf16|fp16)\b", text)
    if found is None:
        return None
    return "bfloat16" if found[1].lower() in ("bfloat16", "bf16") else "float16"


def wants_a_number(error: BaseException) -> bool:
    """A tensor was given where Python counts or cuts: a plain integer would do (Python and torch say this).

    >>> wants_a_number(TypeError("only integer tensors of a single element can be converted to an index"))
    True
    """
    pattern = (
        r"converted to an index|interpreted as an integer|indices must be integers|converted to (a )?Python scalar"
    )
    pattern += r"|only one element tensors can be converted"
    return isinstance(error, (TypeError, ValueError, RuntimeError)) and re.search(pattern, str(error)) is not None


def wants_whole_numbers(error: BaseException) -> bool:
    """A number with a fraction was given for a size, a count or an index (Python and torch say this).

    >>> wants_whole_numbers(TypeError("torch.Size() takes an iterable of 'int' (item 0 is 'float')"))
    True
    """
    text = str(error)
    asked = re.search(r"\b(ints?|integers?|non-int)\b|__index__", text) is not None
    return isinstance(error, TypeError) and asked and ("float" in text or "__index__" in text)


def arguments_missing(text: str) -> int:
    """How many values more a function wants that was handed `*args` (Python says this, not PyTorch).

    >>> arguments_missing("TypeError: linear() missing 2 required positional arguments: 'weight' and 'bias'")
    2
    """
    found = re.search(r"missing (\d+) required positional argument", text)
    return int(found[1]) if found else 0


def is_no_operand(error: BaseException, kind: str) -> bool:
    """A value of this type was calculated with, and cannot be.

    >>> is_no_operand(TypeError("unsupported operand type(s) for *: 'float' and 'function'"), "function")
    True
    """
    text = str(error)
    return isinstance(error, TypeError) and "unsupported operand type" in text and f"'{kind}'" in text


def is_not_a_tensor(error: BaseException) -> str | None:
    """The name of the type that was given where an operation takes tensors.

    >>> is_not_a_tensor(TypeError("sin(): argument 'input' (position 1) must be Tensor, not list"))
    'list'
    """
    match = re.search(r"must be Tensor, not (\w+)", str(error)) if isinstance(error, TypeError) else None
    return match[1] if match else None


def is_not_callable(error: BaseException) -> str | None:
    """The type of what was called and cannot be (Python says this, not PyTorch)."""
    match = re.search(r"'(\w+)' object is not callable", str(error)) if isinstance(error, TypeError) else None
    return match[1] if match else None


# --- what is not there ----------------------------------------------------------------------------------------------


def kernel_missing(error: BaseException) -> bool:
    """An operation does not exist for this dtype."""
    return isinstance(error, NotImplementedError) or "not implemented for" in str(error)


def device_missing(error: BaseException) -> bool:
    """The machine lacks a GPU, its driver, or a process group."""
    pattern = (
        r"not compiled with CUDA|no NVIDIA driver|No (CUDA|HIP|XPU) (GPUs|devices)|no CUDA-capable|"
        r"process group has not been initialized"
    )
    return re.search(pattern, str(error), re.IGNORECASE) is not None


def out_of_memory(error: BaseException) -> bool:
    text = str(error).lower()
    return isinstance(error, MemoryError) or "allocate memory" in text or "out of memory" in text


# --- transforms -----------------------------------------------------------------------------------------------------


def transform_refused(error: BaseException) -> bool:
    """The Function lacks what torch.func needs: setup_context, a vmap of its own, a jvp."""
    words = ("setup_context", "generate_vmap_rule", "vmap staticmethod", "forward AD", "jvp")
    return any(word in str(error) for word in words)


def vmap_refused(error: BaseException) -> bool:
    """vmap cannot run what the subject does: .item(), an `if` on a tensor, sizes that depend on values."""
    return "vmap" in str(error)


def compile_refused(error: BaseException) -> bool:
    """torch.compile says that it cannot do this, such as a second derivative."""
    return re.search(r"not (currently )?support", str(error)) is not None


# --- where an operation has no slope --------------------------------------------------------------------------------


@functools.cache
def clamp_stops_at_its_bounds() -> bool:
    """Whether torch.clamp hands nothing back where x is a bound that is a number, and half of it where that is a tensor.

    It handed back everything before torch 2.15 (pytorch#191142).
    """
    return _slope_at_zero(lambda x: x.clamp(min=0.0)) == 0


@functools.cache
def fmax_shares_between_equals() -> bool:
    """Whether equal arguments of torch.fmax share the gradient, as those of torch.maximum do; the first had it before torch 2.15."""
    return _slope_at_zero(lambda x: torch.fmax(x, torch.zeros(()))) == 0.5


def reads_as_tuple(index: Sequence[Any]) -> bool:
    """Whether this list, as an index, is read as one index for each dimension: deprecated, and announced to end."""
    parts = any(isinstance(i, (Tensor, Sequence, slice)) or i is None or i is Ellipsis for i in index)
    return parts and len(index) < 32 and _lists_of_indices_are_tuples()


@functools.cache
def _lists_of_indices_are_tuples() -> bool:
    with warnings.catch_warnings(), torch._C.DisableTorchFunction():  # whoever is reading must not read this, too
        warnings.simplefilter("ignore")
        return torch.zeros(2, 2)[[[0], [1]]].ndim == 1


def _slope_at_zero(call: Callable[[Tensor], Tensor]) -> float:
    with torch.enable_grad():
        x = torch.zeros((), requires_grad=True)
        return float(torch.autograd.grad(call(x), x)[0])


# --- private names --------------------------------------------------------------------------------------------------


def forward_class(node: Any) -> type[torch.autograd.Function] | None:
    """The Function that made a node of the graph; None for PyTorch's own nodes."""
    found: type[torch.autograd.Function] | None = getattr(node, "_forward_cls", None)
    return found


def is_differentiated(ctx: Any) -> bool:
    """Inside forward: whether autograd will ask this call for gradients. It does not under no_grad, whatever its inputs."""
    return any(node is not None for node, _ in ctx.next_functions)


def has_own_jvp(cls: type) -> bool:
    """Whether a Function brings a jvp, and not the one that only raises."""
    return getattr(cls, "jvp", None) is not _SingleLevelFunction.jvp


def custom_ops() -> list[Any]:
    """The custom operators of this process that have a gradient of their own; each asks `_setup_context_fn` at every call."""
    defined = torch._library.custom_ops.OPDEFS.values()
    return [op for op in defined if op._backward_fn is not None]


def children_of(spec: Any) -> Sequence[Any]:
    """The parts of a nested structure: `TreeSpec` had a list of them, and has a method since."""
    if hasattr(spec, "children"):
        parts: Sequence[Any] = spec.children()
        return parts
    older: Sequence[Any] = spec.children_specs
    return older


def under_a_transform(tensor: Tensor) -> bool:
    """Whether torch.func has wrapped it."""
    return bool(torch._C._functorch.is_functorch_wrapped_tensor(tensor))


@contextlib.contextmanager
def without_vmap_advice() -> Iterator[None]:
    """An op without a batching rule runs in a loop; torch advises on stderr to file an issue, which is not our user's."""
    functorch: Any = torch._C._functorch  # torch's stubs lack the switch
    functorch._set_vmap_fallback_warning_enabled(False)
    try:
        yield
    finally:
        functorch._set_vmap_fallback_warning_enabled(True)


def set_deterministic(mode: bool, *, warn_only: bool) -> None:
    """As torch.use_deterministic_algorithms, without importing torch._inductor (2 s); fills torch.empty with NaN."""
    torch._C._set_deterministic_algorithms(mode, warn_only=warn_only)


def onednn_product(a: Tensor, b: Tensor) -> Callable[[], Tensor] | None:
    """How oneDNN multiplies these two matrices, as a new tensor; None where torch lacks it, or it has no form for them.

    `aten.mm` of float32 asks MKL, which uses the widest vectors of Intel's processors alone; oneDNN those of all (torch 2.13).
    """
    plain = a.dtype is b.dtype is torch.float32 and a.device.type == b.device.type == "cpu"
    laid_out = b.is_contiguous() or b.t().is_contiguous()
    if not (plain and laid_out and min(*a.shape, *b.shape) > 0 and _has_onednn()):
        return None
    return lambda: torch.ops.mkldnn._linear_pointwise(a, b.t(), None, "none", [], "")


@functools.cache
def _has_onednn() -> bool:
    return torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")


@functools.cache
def openmp_parallel() -> int | None:
    """Where `GOMP_parallel(function, data, threads, flags)` of the OpenMP that torch computes with is; None where it has none.

    GCC's and LLVM's OpenMP both have it. It is looked for in what torch's own library needs: a process may hold several.
    """
    if not torch.backends.openmp.is_available():
        return None
    with contextlib.suppress(OSError, AttributeError):
        return ctypes.cast(ctypes.CDLL(torch._C.__file__).GOMP_parallel, ctypes.c_void_p).value
    return None


# --- sizes ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Comparison:
    """What PyTorch, or the user's code, asked about sizes on the way through forward, and found true.

    `sizes` are the names of the sizes in it. `between` are the names on its two sides where nothing else stands there.
    """

    kind: Literal["equal", "order"]
    sizes: frozenset[str]
    holds: Callable[[Mapping[str, int]], bool]
    between: bool = False
    stated: bool = False  # the user's own code asks it
    fixes: bool = False  # one size is one number


def compared_sizes(
    call: Callable[[list[Any]], Any], values: Sequence[Tensor | int], *, real: bool = False
) -> tuple[list[list[str]], list[Comparison]]:
    """(names of the sizes of each value, what was asked about them) when `call` runs on stand-ins of these values.

    A tensor has a name per dimension, an integer one. `real` carries the values along, for code that asks for them. What
    `call` raises is raised here. Imports sympy and torch._dynamo: 1.4 s the first time (torch 2.15).

    "Not equal" is left out: it is how PyTorch keeps apart what it treats in two ways, and both ways are right.
    """
    from torch._dispatch.python import enable_python_dispatcher

    def taken_apart() -> tuple[list[list[str]], list[Comparison]]:
        """Operations in Python, as torch.compile has them: there sizes stay sizes."""
        return _compared(call, values, real, enable_python_dispatcher())

    try:
        names, asked = _compared(call, values, real, contextlib.nullcontext())
    except RuntimeError as error:
        if re.search("only concrete integers|with symbolic sizes", str(error)) is None:
            raise
        return taken_apart()  # some views, and products with what is no input (torch 2.6 to 2.10)
    fixed = _fixed_by_torch(asked)
    if fixed:  # by a weight that is no input, or by a product that takes sizes for plain integers (torch 2.6 to 2.10)
        with contextlib.suppress(Exception):
            again, asked_again = taken_apart()
            if _fixed_by_torch(asked_again) < fixed:
                return again, asked_again
    return names, asked


def _fixed_by_torch(asked: Sequence[Comparison]) -> int:
    return sum(c.fixes and not c.stated for c in asked)


def _compared(
    call: Callable[[list[Any]], Any],
    values: Sequence[Tensor | int],
    real: bool,
    dispatcher: contextlib.AbstractContextManager[Any],
) -> tuple[list[list[str]], list[Comparison]]:
    from torch._dynamo.source import ConstantSource
    from torch._functorch import config
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental import symbolic_shapes as shapes

    env = shapes.ShapeEnv(duck_shape=False, specialize_zero_one=False)

    def symbol(value: int, name: str) -> Any:
        source, free = ConstantSource(name), shapes.DimDynamic.DYNAMIC
        made = env.create_symbol(value, source=source, dynamic_dim=free, constraint_dim=None, positive=None)
        return env.create_symintnode(made, hint=value, source=source)

    def stand_in(i: int, value: Tensor | int) -> Any:
        if not isinstance(value, Tensor):
            return symbol(value, f"number{i}")
        shape = [symbol(n, f"size{i}_{dim}") for dim, n in enumerate(value.shape)]
        strides = [math.prod(shape[dim + 1 :]) for dim in range(len(shape))]
        with mode:
            made: Any = torch.empty_strided(shape, strides, dtype=value.dtype, device=value.device)
        made.real_tensor = value if real else None
        return made

    with config.patch(fake_tensor_propagate_real_tensors=real), _quiet():
        mode = FakeTensorMode(shape_env=env, allow_non_fake_inputs=True)
        mode.cache_enabled = False  # nothing is asked twice, and keeping the answers takes half of the time
        given = [stand_in(i, value) for i, value in enumerate(values)]
        sizes: list[list[Any]] = [list(v.shape) if isinstance(v, Tensor) else [v] for v in given]
        names = [[str(n.node.expr) for n in own] for own in sizes]
        with mode, torch.no_grad(), dispatcher:
            call(given)
    known = {name for own in names for name in own}
    asked = {str(guard.expr): guard for guard in env.guards}
    found = (_comparison(guard.expr, _is_stated(guard)) for guard in asked.values())
    return names, [c for c in found if c is not None and c.sizes <= known]


def _is_stated(guard: Any) -> bool:
    """Whether the code that was called compares the sizes itself, and not an operation of PyTorch's; False where it does not say."""
    where = getattr(getattr(guard, "sloc", None), "framework_loc", None)
    file = str(getattr(where, "filename", ""))
    return bool(file) and not file.startswith(os.path.dirname(torch.__file__))


def _comparison(expr: Any, stated: bool) -> Comparison | None:
    import sympy  # type: ignore[import-untyped]
    from torch.utils._sympy.printers import PythonPrinter

    if isinstance(expr, sympy.Ne) or not isinstance(expr, (sympy.core.relational.Relational, sympy.Or, sympy.And)):
        return None
    code = compile(PythonPrinter().doprint(expr), "<sizes>", "eval")

    def holds(sizes: Mapping[str, int]) -> bool:
        try:
            return bool(eval(code, {"__builtins__": _IN_SIZES, "torch": torch, "math": math}, dict(sizes)))
        except (ZeroDivisionError, OverflowError):
            return False

    bare = all(side.is_Symbol for side in expr.args)
    kind: Literal["equal", "order"] = "equal" if expr.has(sympy.Eq) else "order"
    fixes = isinstance(expr, sympy.Eq) and {type(side) for side in expr.args} <= {sympy.Symbol, sympy.Integer}
    return Comparison(kind, frozenset(map(str, expr.free_symbols)), holds, bare, stated, fixes and not bare)


# What a printed relation of sizes may call: `int(channels / 4)` in forward is printed as `math.trunc(float(s0) / 4.0)`.
_IN_SIZES = {"max": max, "min": min, "abs": abs, "float": float, "int": int, "round": round}


def lost_its_threads(error: BaseException) -> bool:
    """The pool of threads that PyTorch computes with is not there, as may happen in a process that was forked; nobody's code did it."""
    return "Invalid thread pool" in str(error)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """PyTorch logs every operation that fails on stand-ins, and every value that it looks up."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)
