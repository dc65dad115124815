"""Which values the source names for an option: every way in which people write them down."""

from __future__ import annotations

import inspect
import textwrap

import pytest
import torch
from source_texts import HEADER, body, function, functions, project_of

from gradsmith.source.enumerations import ENUMERATIONS
from gradsmith.source.method import Method, read_params
from gradsmith.source.options import bounds, named_values, passed_on, takes_none


def values(model, parameter="mode"):
    return [named.value for named in named_values(model, parameter)]


@pytest.mark.parametrize(
    ("forward", "expected"),
    [
        ("if mode == 'fan_in':\n    x = x * 2\nreturn x", ["fan_in"]),
        ("if 'fan_in' != mode:\n    x = x * 2\nreturn x", ["fan_in"]),
        ("assert mode in ('a', 'b', 'c')\nreturn x", ["a", "b", "c"]),
        ("assert mode in {'a': 1, 'b': 2}\nreturn x", ["a", "b"]),
        ("if mode == 2 or mode == -1:\n    x = x * 2\nreturn x", [2, -1]),
        ("if mode == float('inf'):\n    x = x * 2\nreturn x", [float("inf")]),
        ("if mode is None:\n    x = x * 2\nreturn x", [None]),
        ("if mode.lower() == 'a':\n    x = x * 2\nreturn x", ["a"]),
        ("kind = mode.lower()\nif kind == 'a':\n    x = x * 2\nreturn x", ["a"]),
        ("if mode is None:\n    mode = 'x'\nif mode == 'a':\n    x = x * 2\nreturn x", [None, "a"]),
        (
            "match mode:\n    case 'a' | 'b':\n        x = x * 2\n    case None:\n        pass\nreturn x",
            ["a", "b", None],
        ),
        ("f = {'relu': torch.relu, 'tanh': torch.tanh}[mode]\nreturn f(x)", ["relu", "tanh"]),
        ("f = {'relu': torch.relu, 'tanh': torch.tanh}.get(mode)\nreturn f(x)", ["relu", "tanh"]),
        ("f = (torch.relu, torch.tanh, torch.exp)[mode]\nreturn f(x)", [0, 1, 2]),
        ("return F.gelu(x, approximate=mode)", ["none", "tanh"]),
        ("return F.pad(x, (1, 1), mode)", ["constant", "reflect", "replicate", "circular"]),
        ("return x * mode", []),
        ("mode = x.sum()\nif mode == 3:\n    x = x * 2\nreturn x", []),
    ],
)
def test_values_that_forward_names(forward, expected):
    assert values(body(forward, signature="x, mode")) == expected


def test_an_option_that_the_source_compares_with_a_reduction_takes_all_of_them():
    model = body("if mode == 'mean':\n    return x.mean()\nreturn x", signature="x, mode")
    assert set(values(model)) == {"mean", "sum", "none"}


@pytest.mark.parametrize("annotation", ["Literal['a', 'b']", "Optional[Literal['a', 'b']]", "Mode", "'Mode'"])
def test_values_that_an_annotation_names(annotation):
    text = f"""
from typing import Literal, Optional
{HEADER}
Mode = Literal["a", "b"]
class Fn(Function):
    @staticmethod
    def forward(ctx, x, mode: {annotation} = "a"):
        return x
    @staticmethod
    def backward(ctx, g):
        return g, None
"""
    assert values(function(text)) == ["a", "b"]


@pytest.mark.parametrize(
    ("kept", "read"),
    [
        ("ctx.mode = mode", "if ctx.mode == 'x':"),
        ("ctx.mode = mode", "kind = ctx.mode\nif kind == 'x':"),
        ("ctx.options = (3, mode)", "n, kind = ctx.options\nif kind == 'x':"),
        ("ctx.options = 3, mode", "if ctx.options[1] == 'x':"),
        ("ctx.options = {'mode': mode}", "if ctx.options['mode'] == 'x':"),
    ],
)
def test_values_that_only_backward_names(kept, read):
    model = body(f"{kept}\nreturn x", f"{read}\n    g = g * 2\nreturn g, None", signature="x, mode")
    (named,) = named_values(model, "mode")
    assert (named.value, named.because) == ("x", "backward compares it with 'x'")
    assert "== 'x'" in model.file.lines[named.line - 1]


def test_a_comparison_of_another_option_names_nothing_for_this_one():
    model = body("ctx.o = (a, b)\nreturn x", "if ctx.o[0] == 'x':\n    g = g * 2\nreturn g, None, None", "x, a, b")
    assert values(model, "a") == ["x"]
    assert values(model, "b") == []


@pytest.mark.parametrize(
    ("forward", "backward"),
    [
        ("if config['mode'] == 'x':\n    x = x * 2\nreturn x", "return g, None"),
        ("if config.get('mode') == 'x':\n    x = x * 2\nreturn x", "return g, None"),
        ("mode = config.get('mode', 'y')\nassert mode in ['x']\nreturn x", "return g, None"),
        ("ctx.config = config\nreturn x", "return (g * 2 if ctx.config['mode'] == 'x' else g), None"),
        ("ctx.mode = config['mode']\nreturn x", "return (g * 2 if ctx.mode == 'x' else g), None"),
    ],
)
def test_values_named_for_an_entry_of_a_dict(forward, backward):
    model = body(forward, backward, signature="x, config")
    assert values(model, "config['mode']") == ["x"]
    assert values(model, "config['other']") == []


def test_values_named_for_an_entry_of_a_tuple():
    model = body("rows, columns = stride\nif columns == 2:\n    x = x * 2\nreturn x", signature="x, stride")
    assert values(model, "stride[1]") == [2]
    assert values(model, "stride[0]") == []


@pytest.mark.parametrize("taken", ["x, mode = inputs\n", "mode = inputs[1]\n", "_, mode, *rest = inputs\n"])
def test_values_named_behind_setup_context(taken):
    text = f"""{HEADER}
class Fn(Function):
    @staticmethod
    def forward(x, mode):
        return x
    @staticmethod
    def setup_context(ctx, inputs, output):
        {taken}
        ctx.mode = mode
    @staticmethod
    def backward(ctx, g):
        return (g * 2 if ctx.mode == "double" else g), None
"""
    assert values(function(text)) == ["double"]


def test_values_named_in_a_table_at_the_top_of_the_file_in_a_class_and_in_a_helper():
    text = f"""{HEADER}
TABLE = {{"one": 1, "two": 2}}
KINDS = frozenset(("three", "four"))
def helper(x, kind):
    return x * 5 if kind == "five" else x

class Fn(Function):
    EXTRA = ("six",)
    @staticmethod
    def forward(ctx, x, mode):
        x = x * TABLE[mode]
        assert mode in KINDS or mode in Fn.EXTRA
        return helper(x, kind=mode)
    @staticmethod
    def backward(ctx, g):
        return g, None
"""
    assert sorted(values(function(text))) == ["five", "four", "one", "six", "three", "two"]


def test_a_function_that_applies_a_function_takes_what_that_one_names():
    text = f"""{HEADER}
class Fn(Function):
    @staticmethod
    def forward(ctx, x, mode):
        return x * 2 if mode == "double" else x
    @staticmethod
    def backward(ctx, g):
        return g, None

applied = Fn.apply
def plain(x, kind="single"):
    return Fn.apply(x, kind)
def by_another_name(x, kind="single"):
    return applied(x, kind)
"""
    (file,) = project_of(file=text).files
    for name in ("plain", "by_another_name"):
        node = file.function_named(name)
        method = Method(name, node, file, "function", None, read_params(node, 0, "input", file), ())
        assert values(method, "kind") == ["double"]


def test_keyword_only_options_of_a_custom_op_are_followed_into_backward():
    text = """
    import torch
    @torch.library.custom_op("lib::op", mutates_args=())
    def op(x: torch.Tensor, *, mode: str = "a") -> torch.Tensor:
        return x.clone()
    def setup(ctx, inputs, keyword_only_inputs, output):
        ctx.mode = keyword_only_inputs["mode"]
    def backward(ctx, g):
        return g * 2 if ctx.mode == "b" else g
    op.register_autograd(backward, setup_context=setup)
    """
    (model,) = functions(textwrap.dedent(text))
    assert values(model) == ["b"]


@pytest.mark.parametrize(
    ("signature", "forward", "expected"),
    [
        ("x, mode=None", "return x", True),
        ("x, mode: 'float | None'", "return x", True),
        ("x, mode", "return x if mode is None else x * mode", True),
        ("x, mode", "if mode is not None:\n    x = x * mode\nreturn x", True),
        ("x, mode=2", "return x", False),
        ("x, mode", "return x[None] * mode", False),
    ],
)
def test_none_is_taken_only_where_somebody_says_so(signature, forward, expected):
    assert takes_none(body(forward, signature=signature), "mode") is expected


def test_bounds_are_read_from_both_sides():
    model = body("if k > 3:\n    x = x * 2\nif 0 <= k < 9:\n    x = x * 3\nreturn x", signature="x, k")
    assert [(b.order, b.number) for b in bounds(model, "k")] == [(">", 3), (">=", 0), ("<", 9)]


def test_operations_that_an_option_is_handed_to():
    model = body("y = x.cumsum(d)\nreturn torch.softmax(y, dim=d)", signature="x, d")
    assert [(p.operation, p.position, p.keyword) for p in passed_on(model, "d")] == [
        ("cumsum", 1, None),
        ("softmax", None, "dim"),
    ]


def test_torch_has_the_enumerations_that_we_know():
    for row in ENUMERATIONS:
        for name in row.operations:
            found = getattr(torch.nn.functional, name, None) or getattr(torch.fft, name, None)
            if found is None or not inspect.isfunction(inspect.unwrap(found)):
                continue  # written in C++: it has no signature
            parameters = list(inspect.signature(found).parameters)
            assert row.keyword in parameters, (name, row.keyword)
            assert row.position in (None, parameters.index(row.keyword)), (name, row.keyword)
