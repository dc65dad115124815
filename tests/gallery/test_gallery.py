"""Every gallery file keeps what it says of itself, and the contract that any Function must keep."""

from __future__ import annotations

import ast
import itertools
from pathlib import Path
from typing import Any

import pytest
import torch
from gallery_files import GALLERY, Case, cases, gallery_files, load, with_tensors
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

CASES = list(cases())
EXACT = [c for c in CASES if c.declared is None]
SURROGATES = [c for c in CASES if c.declared not in (None, "approximate")]
KINDS = {
    *("straight-through", "reversal", "scale", "clip", "noise", "stop", "sparsify", "quantise", "routing", "custom")
}


def gradients(case: Case, inputs: tuple[Any, ...], grad_outputs: list[Tensor] | None = None) -> list[Tensor | None]:
    outputs = case.differentiable(*inputs)
    if grad_outputs is None:
        torch.manual_seed(1)
        grad_outputs = [torch.randn_like(y) for y in outputs]
    wanted = [t for t in inputs if isinstance(t, Tensor) and t.requires_grad]
    torch.manual_seed(2)  # for gradients that are random by declaration
    return list(torch.autograd.grad(outputs, wanted, grad_outputs, allow_unused=True))


def same(a: list[Tensor | None], b: list[Tensor | None], **tolerance: float) -> None:
    assert len(a) == len(b)
    for one, other in zip(a, b):
        assert (one is None) == (other is None)
        if one is not None and other is not None:
            torch.testing.assert_close(one, other, **tolerance)


@pytest.mark.parametrize("path", gallery_files(), ids=lambda p: p.stem)
def test_file_says_what_it_is(path: Path) -> None:
    module, text = load(path), path.read_text()
    docstring = ast.get_docstring(ast.parse(text)) or ""
    first, rest = docstring.split("\n", 1)
    assert rest.startswith("\n    "), "the formula stands first, indented"
    assert "Teaches: " in rest
    assert "When not to use it: " in rest
    assert isinstance(module.TEACHES, str)
    assert isinstance(module.SECOND_ORDER, bool)
    assert isinstance(module.COMPILES, bool)
    assert first.startswith("Built-in") == hasattr(module, "BUILTIN")
    assert getattr(module, "BUILTIN", "") in first
    assert "gradsmith" not in {n.names[0].name for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Import)}
    assert not text.count("\n") > 120, "the mathematics stands on one screen"
    functions = {n.name for n in ast.parse(text).body if isinstance(n, ast.ClassDef) and "Function)" in ast.unparse(n)}
    if getattr(module, "AVAILABLE", True):
        assert {n for n in functions if "backward" in vars(vars(module)[n])} <= set(module.gradsmith_inputs)


@pytest.mark.parametrize("case", EXACT, ids=str)
def test_gradcheck(case: Case) -> None:
    assert gradcheck(case.differentiable, case.inputs())
    if getattr(case.module, "FORWARD_MODE", False):
        assert gradcheck(case.call, case.inputs(), check_forward_ad=True)


@pytest.mark.parametrize("case", [c for c in EXACT if c.module.SECOND_ORDER], ids=str)
def test_second_order(case: Case) -> None:
    torch.manual_seed(0)
    assert gradgradcheck(case.differentiable, case.inputs())


@pytest.mark.parametrize("case", [c for c in EXACT if not c.module.SECOND_ORDER and c.is_function], ids=str)
def test_no_second_order_is_said_not_computed(case: Case) -> None:
    """Where grad_output carries a graph, a second backward raises instead of returning a number."""
    inputs = case.inputs()
    outputs = case.differentiable(*inputs)
    wanted = [t for t in inputs if isinstance(t, Tensor) and t.requires_grad]
    grad_outputs = [torch.randn_like(y).requires_grad_() for y in outputs]

    def twice() -> None:
        first = torch.autograd.grad(outputs, wanted, grad_outputs, create_graph=True)
        first[0].sum().backward()

    with pytest.raises(RuntimeError, match="once"):
        twice()


@pytest.mark.parametrize("case", [c for c in CASES if c.module.COMPILES], ids=str)
def test_compiles_as_a_full_graph(case: Case) -> None:
    torch._dynamo.reset()
    inputs = case.inputs()
    subject = getattr(case.module, case.name)
    run = subject.apply if case.is_function else subject
    if getattr(case.module, "IN_PLACE", False):
        run = lambda x, apply=subject.apply: apply(x.clone())  # noqa: E731
    compiled = torch.compile(lambda *a: run(*a), fullgraph=True, backend="aot_eager", dynamic=False)
    outputs = compiled(*inputs)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    live = [y for y in outputs if y.requires_grad]
    torch.manual_seed(1)
    grad_outputs = [torch.randn_like(y) for y in live]
    wanted = [t for t in inputs if isinstance(t, Tensor) and t.requires_grad]
    torch.manual_seed(2)
    got = list(torch.autograd.grad(live, wanted, grad_outputs, allow_unused=True)) if live else [None] * len(wanted)
    got = [None if g is not None and case.declared == "stop" and not g.any() else g for g in got]
    expected = gradients(case, inputs)
    if case.declared == "noise":  # the compiled graph draws other numbers
        assert [g.shape for g in got if g is not None] == [g.shape for g in expected if g is not None]
    else:
        same(got, expected)


@pytest.mark.parametrize("case", SURROGATES, ids=str)
def test_surrogates_are_declared_and_needed(case: Case) -> None:
    """A surrogate has a known kind, and its gradient is really not the derivative of its forward.

    (gradcheck is no judge here: it passes the gradient clipped by norm and the sparsified one, because it only ever
    hands backward one-hot gradients of 1.)
    """
    assert case.declared in KINDS
    inputs = case.inputs()
    live = [i for i, t in enumerate(inputs) if isinstance(t, Tensor) and t.requires_grad]
    u = {i: 1e-6 * torch.randn_like(inputs[i]) for i in live}
    moved = [[t + s * u[i] if i in u else t for i, t in enumerate(inputs)] for s in (1, -1)]
    up, down = (case.differentiable(*values) for values in moved)
    v = [torch.randn_like(y) for y in up]
    numeric = sum(((a - b) * w).sum().item() for a, b, w in zip(up, down, v)) / 2
    claimed = sum((g * u[i]).sum().item() for i, g in zip(live, gradients(case, inputs, v)) if g is not None)
    assert abs(claimed - numeric) > 1e-8


@pytest.mark.parametrize("case", CASES, ids=str)
def test_any_strides_of_grad_output(case: Case) -> None:
    inputs = case.inputs()
    torch.manual_seed(1)
    plain = [torch.randn_like(y) for y in case.differentiable(*inputs)]
    strided = [torch.stack([g, torch.full_like(g, torch.nan)], -1)[..., 0] for g in plain]
    same(gradients(case, inputs, plain), gradients(case, inputs, strided))
    constant = [torch.ones_like(g) for g in plain]
    expanded = [torch.ones((), dtype=g.dtype).expand(g.shape) for g in plain]
    same(gradients(case, inputs, constant), gradients(case, inputs, expanded))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_strided_inputs(case: Case) -> None:
    inputs = case.inputs()
    strided = with_tensors(inputs, lambda t: torch.stack([t, torch.full_like(t, torch.nan)], -1)[..., 0])
    same(gradients(case, inputs), gradients(case, strided))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_choice_of_frozen_inputs(case: Case) -> None:
    inputs = case.inputs()
    live = [i for i, t in enumerate(inputs) if isinstance(t, Tensor) and t.requires_grad]
    expected = dict(zip(live, gradients(case, inputs)))
    for count in range(1, len(live)):
        for chosen in itertools.combinations(live, count):
            frozen = tuple(t.detach() if i in live and i not in chosen else t for i, t in enumerate(inputs))
            same(gradients(case, frozen), [expected[i] for i in chosen])


@pytest.mark.parametrize("case", CASES, ids=str)
def test_nothing_is_overwritten_and_backward_repeats(case: Case) -> None:
    inputs = case.inputs()
    before = [t.detach().clone() if isinstance(t, Tensor) else t for t in inputs]
    outputs = case.differentiable(*inputs)
    torch.manual_seed(1)
    grad_outputs = [torch.randn_like(y) for y in outputs]
    copies = [g.clone() for g in grad_outputs]
    wanted = [t for t in inputs if isinstance(t, Tensor) and t.requires_grad]
    runs = []
    for _ in range(2):
        torch.manual_seed(2)
        runs.append(list(torch.autograd.grad(outputs, wanted, grad_outputs, retain_graph=True, allow_unused=True)))
    same(*runs)
    same(grad_outputs, copies)
    for t, b in zip(inputs, before):
        if isinstance(t, Tensor):
            torch.testing.assert_close(t.detach(), b, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("case", [c for c in CASES if c.is_function], ids=str)
def test_other_dtypes(case: Case, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """The raw gradients, before the engine casts them, have their inputs' dtype and shape, and the right values."""
    inputs = case.inputs()
    if any(isinstance(t, Tensor) and t.is_complex() for t in inputs):
        pytest.skip("complex")
    low = tuple(
        t.detach().to(dtype).requires_grad_(t.requires_grad)
        if isinstance(t, Tensor) and t.is_floating_point()
        else t.to(dtype)
        if isinstance(t, torch.nn.Module)
        else t
        for t in inputs
    )
    subject = getattr(case.module, case.name)
    original, seen = subject.backward, []

    def watched(ctx: Any, *grad_outputs: Any) -> Any:
        result = original(ctx, *grad_outputs)
        seen.append(result if isinstance(result, tuple) else (result,))
        return result

    monkeypatch.setattr(subject, "backward", staticmethod(watched))
    got = gradients(case, low)
    monkeypatch.undo()
    for gradient, argument in zip(seen[0], low):
        if gradient is not None:
            assert gradient.dtype == argument.dtype == dtype
            assert gradient.shape == argument.shape
    if case.declared is None:
        exact = with_tensors(low, lambda t: t.to(torch.float64))
        exact = tuple(
            t.to(torch.float64) if isinstance(t, Tensor) and t.is_floating_point() and not t.requires_grad else t
            for t in exact
        )
        for module in (t for t in exact if isinstance(t, torch.nn.Module)):
            module.to(torch.float64)
        outputs = case.differentiable(*low)
        torch.manual_seed(1)
        reference = gradients(case, exact, [torch.randn_like(y).to(torch.float64) for y in outputs])
        rough = 1e-4 if dtype == torch.float32 else 0.06
        same([g if g is None else g.to(torch.float64) for g in got], reference, rtol=rough, atol=rough)


def test_every_group_of_the_plan_is_there() -> None:
    groups = {p.name for p in GALLERY.iterdir() if p.is_dir() and not p.name.startswith("__")}
    assert groups == {
        *("elementwise", "matrix", "several", "broadcasting", "reductions", "convolution"),
        *("memory", "second_order", "control", "modern", "foreign", "recurrent", "kernels"),
    }
