"""Every spelling of torch.autograd.Function is found, and nothing else is."""

from __future__ import annotations

import ast
import textwrap

import pytest
from source_texts import function, functions, project_of

BODY = """
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, g):
        return g
"""


@pytest.mark.parametrize(
    ("imports", "base"),
    [
        ("import torch", "torch.autograd.Function"),
        ("import torch", "torch.autograd.function.Function"),
        ("import torch", "torch.autograd.function.InplaceFunction"),
        ("import torch as th", "th.autograd.Function"),
        ("from torch import autograd", "autograd.Function"),
        ("import torch.autograd as ag", "ag.Function"),
        ("from torch.autograd import Function", "Function"),
        ("from torch.autograd import Function as F", "F"),
        ("from torch.autograd.function import InplaceFunction", "InplaceFunction"),
        ("from torch.autograd.function import NestedIOFunction as N", "N"),
        ("from torch.autograd.function import (\n    once_differentiable,\n    Function,\n)", "Function"),
        ("from torch.autograd import *", "Function"),
        ("import torch\nFn = torch.autograd.Function", "Fn"),
        ("from .compat import Function", "Function"),
        ("import torch", "\n    torch.autograd.Function,  # a comment, with (brackets)\n"),
    ],
)
def test_import_spellings(imports: str, base: str) -> None:
    found = function(f"{imports}\n\nclass Mine({base}):{BODY}")
    assert found.qualname == "Mine"
    assert found.kind == "function"
    assert found.forward is not None
    assert [p.name for p in found.forward.params] == ["x"]


def test_nested_in_functions_conditions_and_classes() -> None:
    text = f"""
import torch
def build(scale):
    class Inner(torch.autograd.Function):{BODY.replace(chr(10), chr(10) + "    ")}
    return Inner.apply
class Layer(torch.nn.Module):
    class Own(torch.autograd.Function):{BODY.replace(chr(10), chr(10) + "    ")}
try:
    import triton
except ImportError:
    class Fallback(torch.autograd.Function):{BODY.replace(chr(10), chr(10) + "    ")}
"""
    assert [f.qualname for f in functions(text)] == ["build.<locals>.Inner", "Layer.Own", "Fallback"]


def test_other_classes_are_left_alone() -> None:
    text = f'''
import torch
from mypackage import Function as Op
"""
class InDocstring(torch.autograd.Function):{BODY}
"""
class Module(torch.nn.Module):{BODY}
class Unrelated(Op):
    def run(self): pass
'''
    assert functions(text) == []


def test_indirect_subclasses_across_files() -> None:
    found = project_of(
        pkg__base=f"import torch\nclass Base(torch.autograd.Function):{BODY}",
        pkg__middle="from .base import Base\nclass Middle(Base):\n    pass\n",
        pkg__leaf="from pkg import middle as m\nclass Leaf(m.Middle):\n    def backward(ctx, g): return 2 * g\n",
    )
    names = {f.name: f for f in found.functions}
    assert set(names) == {"Base", "Middle", "Leaf"}
    leaf = names["Leaf"]
    assert leaf.forward is not None
    assert leaf.forward.inherited
    assert leaf.backward is not None
    assert not leaf.backward.inherited
    assert leaf.at(leaf.forward.node, "m").path == "pkg/base.py"


def test_a_cycle_of_bases_ends() -> None:
    found = project_of(
        a="from b import B\nclass A(B):\n    def backward(ctx, g): return g\n",
        b="from a import A\nclass B(A):\n    def backward(ctx, g): return g\n",
    )
    assert list(found.functions) == []


def test_same_name_in_two_files_means_the_imported_one() -> None:
    found = project_of(
        one__base=f"import torch\nclass Base(torch.autograd.Function):{BODY}",
        two__base="class Base:\n    pass\n",
        two__user="from two.base import Base\nclass User(Base):\n    def backward(ctx, g): return g\n",
        three__user="from one.base import Base\nclass Other(Base):\n    def backward(ctx, g): return g\n",
    )
    assert [f.name for f in found.functions] == ["Base", "Other"]


@pytest.mark.parametrize(
    "decorator",
    [
        '@custom_op("lib::scale", mutates_args=())',
        '@custom_op(\n    "lib::scale",\n    mutates_args=(),\n)',
        '@torch.no_grad()\n@custom_op(\n    "lib::scale",\n    mutates_args=(),  # none\n)',
    ],
)
def test_custom_ops_are_functions_too(decorator: str) -> None:
    found = function(f"""
        import torch
        from torch.library import custom_op

{textwrap.indent(decorator, " " * 8)}
        def scale(x: torch.Tensor, factor: float) -> torch.Tensor:
            return x * factor

        def setup(ctx, inputs, output):
            x, factor = inputs
            ctx.save_for_backward(x, output)
            ctx.factor = factor

        def grad(ctx, g):
            x, y = ctx.saved_tensors
            return g * ctx.factor, None

        scale.register_autograd(grad, setup_context=setup)
        """)
    assert (found.name, found.kind) == ("scale", "custom_op")
    assert [p.name for p in found.inputs] == ["x", "factor"]
    (save,) = found.saves
    assert [found.role_of_saved(save, e) for e in save.exprs] == ["input", "output"]


def test_a_block_has_its_decorators_over_several_lines() -> None:
    text = "first(\n    1,\n)\n@one(\n    2,\n)\n@two\ndef f():\n    return 3\n\nlast = 4\n"
    (file,) = project_of(file=text).files
    for offset in (text.index("2"), text.index("two"), text.index("return")):
        (found,) = file.blocks_at([offset])
        assert isinstance(found, ast.FunctionDef)
        assert [ast.unparse(d) for d in found.decorator_list] == ["one(2)", "two"]
    assert [ast.unparse(block) for block in file.blocks_at([0, 8, len(text) - 2])] == ["first(1)", "last = 4"]
    assert "tree" not in file.__dict__, "a block is parsed alone"


def test_slices_and_whole_files_agree() -> None:
    text = f'''"""Doc with triple quotes."""
import torch
HELP = """
class Fake(torch.autograd.Function):
    pass
"""
class A(torch.autograd.Function):{BODY}
x = """text
at the margin"""
if True:
    class B(torch.autograd.Function):
        """Doc.

class C: at the margin of a docstring
        """{BODY.replace(chr(10), chr(10) + "    ")}
'''
    whole = [(n.name, n.lineno) for n in ast.walk(ast.parse(text)) if isinstance(n, ast.ClassDef)]
    assert [(f.name, f.node.lineno) for f in functions(text)] == whole


@pytest.mark.parametrize(
    ("before", "inside"),
    [
        ('# a comment with """ in it\n', False),
        ('x = \'"""\'\n', False),
        ("x = '''\"\"\"'''\n", False),
        ('x = \'\' + """\n', True),
        ('x = """\n# a comment, \'or\n', True),
    ],
)
def test_what_stands_in_a_string_is_no_class(before: str, inside: bool) -> None:
    text = f'{before}class A(Function):\n    pass\n"""\n'
    (file,) = project_of(file=text).files
    assert file.in_docstring(text.index("class")) is inside
