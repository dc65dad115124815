"""A real Jupyter kernel: a Function defined in one cell, recorded and checked in others."""

from __future__ import annotations

from typing import Any

import nbformat
import pytest

nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
pytestmark = pytest.mark.deep

FUNCTION = """
import torch, gradsmith as gs
torch.set_num_threads(1)

class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x ** 3

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return {factor} * x ** 2 * grad_output
"""
LAYER = """
class Layer(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = torch.nn.Linear(size, 3)
    def forward(self, x):
        return Cube.apply(self.linear(x))
"""
RECORD = """
with gs.record() as tape:
    Layer(4)(torch.randn(5, 4)).sum().backward()
tape
"""


def run(*cells: str) -> list[list[Any]]:
    """The outputs of each cell, from a kernel of its own."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell.strip()) for cell in cells])
    nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
    return [cell.outputs for cell in notebook.cells]


def shown(outputs: list[Any], kind: str = "text/plain") -> str:
    return "".join(out["data"].get(kind, "") for out in outputs if "data" in out)


def test_a_function_of_a_cell_is_recorded_and_refuted_with_its_cell_and_line():
    *_, tape, report = run(FUNCTION.format(factor=2), LAYER, RECORD, "tape.check()")
    assert shown(tape) == "1 Function ran: Cube once (cell 2:6)"
    text = shown(report)
    assert "wrong-gradient" in text and "Cube.backward" in text
    assert "cell 1" in text
    assert "1 refuted" in text
    assert "Layer: built as Layer(size=4) at cell 3:2; runs Cube" in text
    assert "wrong-gradient" in shown(report, "text/html")


def test_a_right_one_is_verified_and_a_cell_run_again_counts_as_it_is_now():
    _, first, _, second = run(
        FUNCTION.format(factor=2), "gs.check(Cube).ok", FUNCTION.format(factor=3), "gs.check(Cube).ok"
    )
    assert (shown(first), shown(second)) == ("False", "True")


def test_the_kernels_own_state_is_untouched():
    asked = """
torch.manual_seed(3)
report = gs.check(Cube, torch.ones(4, 3, requires_grad=True))
drawn = torch.randn(2)
torch.manual_seed(3)
print(torch.equal(drawn, torch.randn(2)), torch.get_default_dtype(), torch.is_grad_enabled(), report.ok)
"""
    *_, output = run(FUNCTION.format(factor=3), asked)
    assert output[0]["text"] == "True torch.float32 True True\n"
