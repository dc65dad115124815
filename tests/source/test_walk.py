"""Walking syntax trees by the class of what is found gives what the standard library gives."""

from __future__ import annotations

import ast
import inspect

import pytest

from gradsmith.source.walk import children, link, nodes_under

TEXTS = [
    inspect.getsource(ast),
    "async def f(*a: int, b=1, **k) -> None:\n    global x\n    async for i in a: await b\n    del x[1:2, ...]\n",
    "match x:\n    case {'a': 1, **rest} | [A(b=-1j), *_]: pass\n    case None: f'{x!r:>{w}}'; b'', 1.5, True\n",
    "try: from a import b as c\nexcept E as e: raise\nfinally: lambda *, k=~1: (yield from {**a, 'b': [*c]})\n",
]


@pytest.mark.parametrize("text", TEXTS)
def test_the_nodes_are_those_of_the_standard_library(text: str) -> None:
    tree = ast.parse(text)
    expected = [node for node in ast.walk(tree) if not isinstance(node, ast.expr_context)]
    assert nodes_under(tree) == expected
    for node in expected:
        below = [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr_context)]
        assert children(node) == below


@pytest.mark.parametrize("text", TEXTS)
def test_every_node_has_its_parent(text: str) -> None:
    tree, parents = ast.parse(text), {}
    link(tree, parents)
    for node in nodes_under(tree):
        for child in children(node):
            # `+` and `and` are single objects that many nodes share.
            shared = isinstance(child, (ast.operator, ast.unaryop, ast.boolop, ast.cmpop))
            assert shared or parents[child] is node


def test_what_a_traceback_of_ipython_hangs_on_shared_nodes_is_not_walked() -> None:
    """`executing`, which IPython uses, sets `.parent` on every node it parses; `+` is one object for all trees."""
    tree = ast.parse("a + b")
    sign = tree.body[0].value.op  # type: ignore[attr-defined]
    sign.parent = tree
    try:
        assert children(sign) == []
        assert len(nodes_under(tree)) == 6
    finally:
        del sign.parent
