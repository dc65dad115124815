"""Words never change a verdict: a wrong gradient is refuted whatever names, comments and docstrings say about it.

A declaration (`# gradsmith: surrogate[...]`, `gradient="surrogate"`) is no word in this sense.
"""

from __future__ import annotations

import importlib.util
import itertools
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

import gradsmith as gs

TEXTS = [
    "gradient clipping",
    "Straight-through estimator: passes gradients on as they are.",
    "A surrogate gradient, on purpose.",
    "STE",
    "pseudo-derivative instead of the true gradient",
    "an approximation of the gradient",
    "Reverses the gradient (see DANN).",
    "natural gradient, scaled gradients, grad_clip, clip_grad_norm_",
    "Adds noise to the weights; noisy on purpose.",
    "quantize, binarize, ternarize: a heaviside step, spiking",
    "The matrix is symmetric positive definite; eigh, cholesky, covariance.",
    "target, label, mask, one_hot, tolerance, eps, n_iter: converges until done.",
]
PLACES = [
    "class docstring",
    "forward docstring",
    "backward docstring",
    "module docstring",
    "caller's docstring",
    "calling module's docstring",
    "comment above the class",
    "comment in forward",
    "comment in backward",
    "comment behind the class line",
    "string that nobody reads",
    "message of an error",
]
TEMPLATE = '''
"""{module docstring}"""
import torch

# {comment above the class}
class {name}(torch.autograd.Function):  # {comment behind the class line}
    """{class docstring}"""

    @staticmethod
    def forward(ctx, {x}):
        """{forward docstring}"""
        # {comment in forward}
        if {x}.dim() > 9:
            raise ValueError("{message of an error}")
        ctx.save_for_backward({x})
        return {x} * {x}

    @staticmethod
    def backward(ctx, grad_output):
        """{backward docstring}"""
        ({x},) = ctx.saved_tensors
        about = "{string that nobody reads}"
        return grad_output * 3 * {x}  # {comment in backward}


def square(x):
    """{caller's docstring}"""
    return {name}.apply(x)


class Layer(torch.nn.Module):
    """{calling module's docstring}"""

    def forward(self, x):
        return {name}.apply(x)
'''
NUMBER = itertools.count()


def written(folder: Path, name: str = "Square", x: str = "x", **said: str) -> type[torch.autograd.Function]:
    """The wrong Square from a file of its own, with these words in these places."""
    text = TEMPLATE.replace("{name}", name).replace("{x}", x)
    for place in PLACES:
        text = text.replace(f"{{{place}}}", said.get(place, "Nothing."))
    path = folder / f"words_{next(NUMBER)}.py"
    path.write_text(text, encoding="utf-8")
    return getattr(loaded(path), name)


def loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def verdict(function: type[torch.autograd.Function], *inputs: Any) -> tuple[str, list[tuple[str, str]]]:
    report = gs.check(function, *inputs, level="quick")
    return report.subjects[0].verdict, [(f.rule, f.severity) for f in report.findings if f.severity != "info"]


def inputs() -> torch.Tensor:
    return torch.linspace(-2.03, 2.29, 12, dtype=torch.float64).view(3, 4).requires_grad_()


WRONG = ("refuted", [("wrong-gradient", "error")])


@pytest.mark.parametrize("text", TEXTS)
def test_a_wrong_square_is_refuted_whatever_is_said_anywhere(text: str, tmp_path: Path) -> None:
    assert verdict(written(tmp_path, **dict.fromkeys(PLACES, text)), inputs()) == WRONG


@pytest.mark.parametrize("place", PLACES)
def test_a_wrong_square_is_refuted_wherever_it_is_said(place: str, tmp_path: Path) -> None:
    said = {place: "Straight-through estimator (STE): gradient clipping, a surrogate with noise."}
    assert verdict(written(tmp_path, **said), inputs()) == WRONG


@pytest.mark.parametrize(
    "name", ["STE", "square_ste", "SurrogateSquare", "QuantizedStep", "BinarySpike", "GradientReversal", "NoisySquare"]
)
def test_a_wrong_square_is_refuted_whatever_it_is_called(name: str, tmp_path: Path) -> None:
    assert verdict(written(tmp_path, name), inputs()) == WRONG


@pytest.mark.parametrize("x", ["surrogate", "ste", "noise", "quantized", "spike", "clip", "label", "tolerance"])
def test_a_wrong_square_is_refuted_whatever_its_input_is_called(x: str, tmp_path: Path) -> None:
    assert verdict(written(tmp_path, x=x), inputs()) == WRONG


def test_a_wrong_square_is_refuted_on_guessed_inputs_too(tmp_path: Path) -> None:
    assert verdict(written(tmp_path, "STE", **dict.fromkeys(PLACES, " ".join(TEXTS)))) == WRONG


ANNOTATED = """
from collections.abc import Callable, Sequence
from typing import Literal, Optional, Union
import torch
from torch import Tensor


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, how: {annotation}) -> Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 3 * ctx.saved_tensors[0], None
"""
ANNOTATIONS = {
    "list[str]": ["a"],
    "dict[str, float]": {"a": 1.0},
    "torch.BoolTensor": torch.ones(3, dtype=torch.bool),
    "Union[float, Tensor]": 1.5,
    "Optional[Tensor]": None,
    "Callable[[Tensor], Tensor]": torch.sin,
    "Sequence[int]": (1, 2),
    "Literal['a', 'b']": "a",
}


@pytest.mark.parametrize("annotation", ANNOTATIONS)
def test_a_wrong_square_is_refuted_whatever_its_other_argument_is_declared_to_be(
    annotation: str, tmp_path: Path
) -> None:
    path = tmp_path / f"annotated_{next(NUMBER)}.py"
    path.write_text(ANNOTATED.replace("{annotation}", annotation), encoding="utf-8")
    function = loaded(path).Square
    assert verdict(function, inputs(), ANNOTATIONS[annotation]) == WRONG
    assert verdict(function) == WRONG


LOSS = '''
import torch


class Loss(torch.autograd.Function):
    """{docstring}"""

    @staticmethod
    def forward(ctx, prediction, other):
        ctx.save_for_backward(prediction, other)
        return prediction * prediction * other * other

    @staticmethod
    def backward(ctx, grad_output):
        prediction, other = ctx.saved_tensors
        return grad_output * 2 * prediction * other, None  # lost a square: right for zeros and ones alone
'''


def test_a_formula_in_a_docstring_does_not_make_labels_of_an_input(tmp_path: Path) -> None:
    verdicts = {}
    for name, docstring in (("silent", "A loss."), ("speaking", "other * log(p) + (1 - other) * log(1 - p)")):
        path = tmp_path / f"{name}_loss.py"
        path.write_text(LOSS.replace("{docstring}", docstring), encoding="utf-8")
        verdicts[name] = verdict(loaded(path).Loss)
    assert verdicts["speaking"] == verdicts["silent"]
    assert verdicts["silent"][0] == "refuted"


def test_a_declaration_is_no_word(tmp_path: Path) -> None:
    declared = written(tmp_path, **{"comment behind the class line": "gradsmith: surrogate[custom]"})
    assert verdict(declared, inputs())[0] != "refuted"
