"""A kernel with one expression changed, in place of the user's own: for the search for a repair."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterator
from typing import Any

from gradsmith.lab.lab import Lab
from gradsmith.lab.triton.events import kernels_unlogged
from gradsmith.lab.triton.witness import interprets, witness


def kernels_of_backward(lab: Lab) -> list[Any]:
    """The functions of the kernels that stored something while backward ran."""
    if not interprets(lab):
        return []
    from triton.runtime.interpreter import InterpretedFunction

    names = list(dict.fromkeys(store.kernel for store in reversed(witness(lab).backward)))
    return [fn for name in names for fn in InterpretedFunction.rewritten_fn if fn.__name__ == name]


def masks_in(tree: ast.FunctionDef) -> set[str]:
    """Names that are passed on as the mask of an access.

    >>> sorted(masks_in(ast.parse("def k(p, n):\\n    y = tl.load(p, mask=a & b)").body[0]))
    ['a', 'b']
    """
    keywords = (k for node in ast.walk(tree) if isinstance(node, ast.Call) for k in node.keywords)
    return {name for keyword in keywords if keyword.arg == "mask" for name in names_in(keyword.value)}


def names_in(node: ast.AST) -> set[str]:
    """The names in an expression."""
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


@contextlib.contextmanager
def changed(kernel: Any, tree: ast.FunctionDef) -> Iterator[None]:
    """While it is entered, launches run the changed kernel; raises where it cannot be compiled."""
    from triton.runtime.interpreter import FunctionRewriter, InterpretedFunction

    rewriter = FunctionRewriter(kernel)
    rewriter.filename, rewriter.def_file_lineno = kernel.__code__.co_filename, 1
    own = InterpretedFunction.rewritten_fn[kernel]
    bare = ast.FunctionDef(tree.name, tree.args, tree.body, [], tree.returns, None)
    bare.type_params = []  # type: ignore[attr-defined]
    InterpretedFunction.rewritten_fn[kernel] = rewriter._compile_and_exec(
        rewriter._transform_ast(ast.unparse(ast.fix_missing_locations(bare)))
    )
    try:
        with kernels_unlogged():
            yield
    finally:
        InterpretedFunction.rewritten_fn[kernel] = own
