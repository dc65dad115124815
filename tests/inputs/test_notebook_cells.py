"""Functions of a notebook cell: compiled under a name that is no file, with the text in linecache, as IPython does."""

from __future__ import annotations

import linecache
import random
from typing import Any

import pytest
import torch

import gradsmith as gs

CELL = """import torch

class Cube(torch.autograd.Function):{comment}
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        {forward}
        return x ** 3
    @staticmethod
    def backward(ctx, grad_output):
        x, = ctx.saved_tensors
        {backward}
"""


def run_cell(
    name: str, comment: str = "", forward: str = "pass", backward: str = "return 3 * x**2 * grad_output"
) -> Any:
    text = CELL.format(comment=comment, forward=forward, backward=backward)
    path = f"/nowhere/ipykernel_1/{name}.py"
    linecache.cache[path] = (len(text), None, text.splitlines(True), path)
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(text, path, "exec"), names)
    return names["Cube"]


def test_a_right_one_is_verified_on_guessed_inputs():
    subject = gs.check(run_cell("right"), level="quick").subjects[0]
    assert (subject.verdict, subject.inputs_from, subject.line) == ("verified", "guessed", 3)


def test_the_source_lens_reads_the_cell():
    cube = run_cell("wrong", backward="grad_output *= 3 * x**2; return grad_output")
    finding = next(f for f in gs.check(cube, level="quick").findings if f.rule == "inplace-grad")
    assert finding.lenses == ("lint", "check")
    assert finding.line == 12


def test_declarations_in_comments_count():
    cube = run_cell("declared", "  # gradsmith: surrogate[straight-through]", backward="return grad_output")
    assert gs.check(cube, level="quick").subjects[0].gradient == "surrogate"


def test_html_shows_the_text_report():
    report = gs.check(run_cell("shown", backward="return 2 * x**2 * grad_output"), level="quick")
    assert "wrong-gradient" in report._repr_html_()
    assert report._repr_html_().startswith("<")


def test_interrupt_leaves_everything_as_it_was():
    cube = run_cell("interrupted", forward="raise KeyboardInterrupt")
    x = torch.randn(3, requires_grad=True)
    before = dict(vars(cube))
    torch.manual_seed(5)
    random.seed(5)
    states = torch.get_rng_state().clone(), random.getstate()
    with pytest.raises(KeyboardInterrupt):
        gs.check(cube, x)
    assert torch.equal(torch.get_rng_state(), states[0])
    assert random.getstate() == states[1]
    assert dict(vars(cube)) == before
    assert torch.is_grad_enabled()
    assert x.grad is None
