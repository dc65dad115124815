"""What a method calls: torch operations under one name, kernels, extensions, unknown helpers."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from gradsmith.source import knowledge as know
from gradsmith.source import torch_ops
from gradsmith.source.behind import behind
from gradsmith.source.lexicon import is_a

if TYPE_CHECKING:
    from gradsmith.source.method import Method

_NOT_METHODS = frozenset(("str", "list", "dict", "tuple", "ndarray", "module", "dtype", "device", "shape", "callable"))


class CallSite(NamedTuple):
    """One call. `dotted` is its resolved name if it has one, `op` the torch operation it is, if it is one.

    `is_kernel`: `kernel[grid](...)`, a Triton or Numba launch.
    """

    node: ast.Call
    dotted: str | None
    op: str | None
    is_kernel: bool = False

    @property
    def is_extension(self) -> bool:
        """A function of a compiled extension: `_C.forward(...)`, `torch.ops.lib.fwd(...)`, `foo_cuda.backward(...)`."""
        if self.dotted is None or self.dotted.startswith("torch.ops.aten"):
            return False
        if self.dotted.startswith("torch.ops."):
            return True
        module = self.dotted.rpartition(".")[0]
        return bool(module) and not module.startswith("torch") and is_a(module, "extension module")

    @property
    def is_numpy(self) -> bool:
        return self.op == "numpy" or (self.dotted or "").startswith(("numpy.", "scipy."))

    @property
    def is_opaque(self) -> bool:
        """Autograd sees nothing of what happens in there."""
        return self.is_kernel or self.is_extension or self.is_numpy or self.op == "data_ptr"


def read_calls(method: Method) -> list[CallSite]:
    calls = method.of(ast.Call)
    return [CallSite(n, method.dotted(n.func), op(method, n), is_launch(method, n.func)) for n in calls]


def is_launch(method: Method, func: ast.expr) -> bool:
    """`kernel[grid]` launches a kernel; `table[mode]` takes a function out of a dict or a list.

    A grid is a tuple, or a function of the block sizes; a key is a number, a text or an argument. Where
    the kernel itself stands in this file, nothing else is asked.
    """
    if not isinstance(func, ast.Subscript):
        return False
    holder = behind(method, func.value)
    if isinstance(holder, (ast.Dict, ast.List, ast.Tuple, ast.DictComp, ast.ListComp)):
        return False
    if method.value(func.value).kind in ("dict", "list", "tuple"):
        return False
    if isinstance(func.value, ast.Name) and method.is_free(func.value):
        kernel = method.file.function_named(func.value.id)
        if kernel is not None:
            return bool(kernel.decorator_list)
    grid = behind(method, func.slice)
    if isinstance(grid, (ast.Tuple, ast.Lambda)):
        return True
    if not isinstance(grid, ast.Name):
        return isinstance(grid, (ast.Call, ast.BinOp))
    bound = method.definitions(grid)
    return all(
        b.how == "def" or (b.how == "assign" and isinstance(b.value, (ast.Tuple, ast.Lambda, ast.Call))) for b in bound
    )


def op(method: Method, node: ast.AST) -> str | None:
    """One name for `torch.matmul(a, b)`, `F.linear`, `a.matmul(b)`, `a @ b`; None for what is no torch operation."""
    if isinstance(node, ast.BinOp):
        return "matmul" if isinstance(node.op, ast.MatMult) else None
    if not (isinstance(node, ast.Call) and isinstance(node.func, (ast.Attribute, ast.Name))):
        return None
    dotted = method.dotted(node.func)
    if (name := know.bare_op(dotted)) is not None:
        return name
    if isinstance(node.func, ast.Name):
        return None
    # The name first: what it is called upon may take the flow of the whole method to know.
    name = node.func.attr
    if name in torch_ops.NEEDS_ARGUMENT and not node.args and not node.keywords:
        return None  # `queue.take()`: no tensor has such a method
    if not _is_method(name):
        return None
    root: ast.expr = node.func
    while isinstance(root, ast.Attribute):
        root = root.value
    if isinstance(root, ast.Name):
        if root.id in method.file.imports.names and not method.definitions(root):
            return None  # a function of some other module: np.matmul
        if method.context.is_ctx(root) and node.func.value is root:
            return None
    return None if method.value(node.func.value).kind in _NOT_METHODS else name


def _is_method(name: str) -> bool:
    return (
        name in know.METHODS
        or name in _OTHER
        or know.is_inplace_name(name)
        or (name in know.TUPLES and name not in know.NOT_METHODS)
    )


_OTHER = know.TO_NUMBER | know.TO_INT | know.TO_FLAG | know.TO_SHAPE | know.TUPLES_WITH_DIM | {"tolist", "numpy"}
