"""A live class gives the model that lint builds: from a file, from a notebook cell, from a text that was executed."""

from __future__ import annotations

import itertools
import linecache
import textwrap
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import torch
from source_texts import HEADER, functions

from gradsmith.inputs.guess.candidates import Sizes, candidates
from gradsmith.inputs.guess.clues import clues
from gradsmith.lab.subject.declarations import declaration_of
from gradsmith.lab.subject.target import resolve
from gradsmith.source import model_of
from gradsmith.source.annotations import of_live
from gradsmith.source.loaded import definition_of, place_of, text_of

TEXT = """{header}
def forward_elsewhere(ctx, x, scale: float = 2.0):
    ctx.save_for_backward(x)
    return x * scale

class Base(Function):
    @staticmethod
    def forward(x, y):
        return x * y
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y, None

class Derived(Base):
    @staticmethod
    def forward(x, y):
        return x * y.exp()

class Borrowed(Function):
    forward = staticmethod(forward_elsewhere)
    @staticmethod
    def backward(ctx, g):
        dx, dscale = None, None
        if ctx.needs_input_grad[0]:
            dx = g * 2
        return dx, dscale

def build(n):
    class Inner(Function):
        @staticmethod
        def forward(ctx, x):
            return x * n
        @staticmethod
        def backward(ctx, g):
            return g * n
    return Inner

if torch.__version__ < "1":
    class Twice(Function):
        @staticmethod
        def forward(ctx, x, never):
            return x
else:
    class Twice(Function):
        @staticmethod
        def forward(ctx, x):
            return x
        @staticmethod
        def backward(ctx, g):
            return g
""".replace("{header}", HEADER)
numbers = itertools.count()


def in_a_cell(text: str) -> dict[str, Any]:
    """As a notebook runs it: the text is known to linecache, under a name that is no file."""
    path = f"/nowhere/ipykernel_11/{next(numbers)}.py"
    linecache.cache[path] = (len(text), None, text.splitlines(True), path)
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(text, path, "exec"), names)
    return names


@pytest.fixture(params=["file", "cell"])
def run(request: pytest.FixtureRequest, load: Callable[[str], ModuleType]) -> Callable[[str], dict[str, Any]]:
    return in_a_cell if request.param == "cell" else lambda text: vars(load(text))


@pytest.fixture
def names(run: Callable[[str], dict[str, Any]]) -> dict[str, Any]:
    return run(TEXT)


def described(model: Any) -> object:
    """Everything of a model but its nodes, which belong to one parse."""
    methods = [m for m in (model.forward, model.setup_context, model.backward) if m is not None]
    return (
        model.qualname,
        model.node.lineno,
        [(m.name, m.ctx, m.node.lineno, m.inherited, [(p.name, p.declared) for p in m.params]) for m in methods],
        [b.name for b in model.bases],
        [model.gives_gradient(p.index) for p in model.inputs],
    )


@pytest.mark.parametrize("name", ["Base", "Derived"])
def test_it_is_the_model_that_lint_builds(names: dict[str, Any], name: str) -> None:
    linted = next(f for f in functions(TEXT) if f.name == name)
    assert described(model_of(names[name])) == described(linted)


def test_it_is_built_once_per_text(names: dict[str, Any]) -> None:
    assert model_of(names["Base"]) is model_of(names["Base"])


def test_a_changed_file_is_read_again(load: Callable[[str], ModuleType]) -> None:
    module = load(TEXT)
    before = model_of(module.Base)
    assert before is not None and module.__file__ is not None
    with open(module.__file__, "a") as file:
        file.write("# longer by a comment\n")
    assert model_of(module.Base) is not before


def test_a_method_that_stands_outside_the_class_belongs_to_it(names: dict[str, Any]) -> None:
    model = model_of(names["Borrowed"])
    assert [p.name for p in model.inputs] == ["x", "scale"]
    assert model.forward.ctx == "ctx" and len(model.saves) == 1


def test_what_only_ever_holds_none_is_no_gradient(names: dict[str, Any]) -> None:
    model = model_of(names["Borrowed"])
    assert [model.gives_gradient(i) for i in (0, 1)] == [True, False]
    assert [clue.gradient for clue in clues(resolve(names["Borrowed"]))] == [True, False]


def test_classes_inside_functions_and_of_two_definitions_the_loaded_one(names: dict[str, Any]) -> None:
    assert model_of(names["build"](2)).qualname == "build.<locals>.Inner"
    assert len(model_of(names["Twice"]).inputs) == 1


def test_place_text_and_syntax_come_from_the_same_model(names: dict[str, Any]) -> None:
    line = TEXT.splitlines().index("class Base(Function):") + 1
    assert place_of(names["Base"])[1] == line
    assert text_of(names["Base"]).startswith("class Base(Function):\n    @staticmethod")
    assert definition_of(names["Base"].forward).lineno == line + 2
    assert text_of(names["build"](2).forward).startswith("@staticmethod\ndef forward(ctx, x):\n    return")


def test_without_source_there_is_no_model() -> None:
    made: dict[str, Any] = {}
    exec(TEXT, made)
    assert model_of(made["Base"]) is None
    assert text_of(made["Base"]) == "" and place_of(made["Base"]) == (None, None)
    assert model_of(torch.autograd.Function) is None
    assert [clue.name for clue in clues(resolve(made["Base"]))] == ["x", "y"]


SURROGATE = """{header}
{above}
class Square(Function):{line}
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x
    @staticmethod
    def backward(ctx, g):
        {inside}
        (x,) = ctx.saved_tensors
        return g * 3 * x

def square(x):
    '''The square.{words}'''
    return Square.apply(x)
""".replace("{header}", HEADER)
COMMENT = "# gradsmith: surrogate[custom]"


@pytest.mark.parametrize("words", ["", " Does gradient clipping, and is a straight-through estimator."])
@pytest.mark.parametrize("place", ["above", "line", "inside", None])
def test_a_surrogate_is_declared_by_its_comment_wherever_it_stands_and_by_no_other_words(
    run: Callable[[str], dict[str, Any]], place: str | None, words: str
) -> None:
    comments = {each: COMMENT if each == place else "" for each in ("above", "line", "inside")}
    comments["line"] = f"  {comments['line']}".rstrip()
    text = SURROGATE.format(**comments, words=words)
    (linted,) = functions(text)
    square = run(text)["Square"]
    kinds = {
        "lint": linted.declaration.kind if linted.declaration else None,
        "model": found.kind if (found := model_of(square).declaration) else None,
        "check": declaration_of(resolve(square)).surrogate,
    }
    assert set(kinds.values()) == {"custom" if place else None}, kinds


ANNOTATED = [
    ("list[str]", "list", lambda v: isinstance(v, list) and all(isinstance(e, str) for e in v)),
    ("dict[str, float]", "dict", lambda v: isinstance(v, dict) and all(isinstance(e, str) for e in v)),
    ("torch.BoolTensor", "tensor", None),
    ("Union[float, Tensor]", "unknown", None),
    ("Optional[Tensor]", "tensor", None),
    ('"Tensor"', "tensor", None),
    ("tuple[int, int]", "tuple", lambda v: isinstance(v, tuple) and len(v) == 2 and isinstance(v[0], int)),
    ('Float[Tensor, "b d"]', "tensor", None),
    ("Literal['up', 'down']", "str", lambda v: v in ("up", "down")),
    ("Union[int, tuple[int, int, int]]", "unknown", lambda v: isinstance(v, int) or len(v) == 3),
    ("Sequence[float]", "list", lambda v: isinstance(v, list) and all(isinstance(e, float) for e in v)),
    ("dict[str, Tensor]", "dict", None),
    ("Generator", "generator", lambda v: v is None),
]
TYPED = """{future}
import torch
from collections.abc import Sequence
from typing import Literal, Optional, Union
from jaxtyping import Float
from torch import Generator, Tensor

class Typed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, value: {annotation}):
        return x * 2
    @staticmethod
    def backward(ctx, g):
        return helper(g)
"""


@pytest.mark.parametrize("future", ["", "from __future__ import annotations"])
@pytest.mark.parametrize(("annotation", "kind", "allowed"), ANNOTATED, ids=[a for a, _, _ in ANNOTATED])
def test_an_annotation_means_the_same_to_lint_and_to_a_guess(
    run: Callable[[str], dict[str, Any]], annotation: str, kind: str, allowed: Callable[[Any], bool] | None, future: str
) -> None:
    text = TYPED.format(annotation=annotation, future=future)
    (linted,) = functions(text)
    typed = run(text)["Typed"]
    said = linted.inputs[1].declared
    clue = clues(resolve(typed))[1]
    assert said.kind == kind
    assert model_of(typed).inputs[1].declared == clue.declared == said
    # Where there is no source, Python's own object is read by the same table.
    assert of_live(typed.forward.__annotations__["value"], typed.forward.__globals__) == said
    proposed = candidates(clue, Sizes())
    assert any(p.is_tensor for p in proposed) == (not said.never_tensor or said.holds_tensors)
    if allowed is not None:
        assert all(allowed(p.value) for p in proposed)
    if said.is_tensor:
        assert {p.kind for p in proposed if p.is_tensor} == {said.elements or "floating"} | (
            {"integer", "bool"} if not said.elements else set()
        )


def test_dimensions_that_jaxtyping_names_are_those_of_the_proposal(run: Callable[[str], dict[str, Any]]) -> None:
    typed = run(TYPED.format(annotation='Float[Tensor, "b d"]', future=""))["Typed"]
    clue = clues(resolve(typed))[1]
    assert clue.declared.dims == ("b", "d")
    assert candidates(clue, Sizes())[0].form == "2x3"


def test_a_call_by_another_name_is_a_call(run: Callable[[str], dict[str, Any]]) -> None:
    from gradsmith.inputs.guess.callers import calls_of

    text = TEXT + textwrap.dedent("""
        derived = Derived.apply
        def scaled(x):
            return derived(x, 3)
        def twice(x):
            return Derived.apply(x, 4)
    """)
    found = calls_of(run(text)["Derived"])
    assert [call.function.name for call in found if call.function is not None] == ["scaled", "twice"]


def test_a_sum_of_a_thousand_terms_is_no_reason_to_fail(run: Callable[[str], dict[str, Any]]) -> None:
    terms = " + ".join(["g"] * 900)
    text = f"{HEADER}class Long(Function):\n    @staticmethod\n    def forward(ctx, x):\n        return x * 900\n"
    text += f"    @staticmethod\n    def backward(ctx, g):\n        return {terms}\n"
    assert [clue.name for clue in clues(resolve(run(text)["Long"]))] == ["x"]
