"""Two gloo ranks: the same gradient as one process, and the two surprises of DDP explained."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from gradsmith.findings import Report
from gradsmith.lab.conditions.ranks import WholeModule, joined


class Gain(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gain = torch.nn.Parameter(torch.tensor(2.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.gain * x


SCALE = """
import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, running):
        {write}
        ctx.save_for_backward(x, weight)
        return x * weight

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        return grad_output * weight, {gradient}, None


def example():
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    weight = torch.tensor([1.5, 0.5, -2.0], dtype=torch.float64, requires_grad=True)
    return x, weight, torch.zeros(3, dtype=torch.float64)


gradsmith_inputs = {{"Scale": example}}
"""
RIGHT = "(grad_output * x).sum(0)"


def ddp(check_source: Callable[..., Report], gradient: str = RIGHT, write: str = "pass") -> str:
    report = check_source(SCALE.format(gradient=gradient, write=write), level="deep")
    return report.subjects[0].conditions["DDP"]


@pytest.mark.deep
def test_a_right_function_works_on_two_ranks(check_source: Callable[..., Report]) -> None:
    assert ddp(check_source) == "works"


@pytest.mark.deep
def test_a_buffer_that_forward_writes_is_explained(check_source: Callable[..., Report]) -> None:
    said = ddp(check_source, write="running.add_(x.detach().mean(0))")
    assert said.startswith("fails: forward writes into the buffer 'running'")
    assert "broadcast_buffers" in said


@pytest.mark.deep
def test_a_parameter_without_a_gradient_is_explained(check_source: Callable[..., Report]) -> None:
    source = SCALE.replace("return x * weight", "return x * 2").replace("grad_output * weight", "grad_output * 2")
    report = check_source(source.format(gradient="None", write="pass"), level="deep")
    said = report.subjects[0].conditions["DDP"]
    assert said.startswith("works: 'weight' gets None from backward, of which DDP makes zeros")
    assert "distributed-mismatch" not in {f.rule for f in report.findings}


MODULE = """
import os

import torch


class Mean(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor([1.5, 0.5, -2.0], dtype=torch.float64))

    def forward(self, x):
        y = x * self.weight
        if y.requires_grad:
            y.register_hook(lambda grad: grad {share})
        return y


gradsmith_inputs = {{"Mean": lambda: (Mean(), torch.randn(4, 3, dtype=torch.float64, requires_grad=True))}}
"""


@pytest.mark.deep
@pytest.mark.parametrize(
    ("share", "said"),
    [
        ("* 1.0", "works"),
        ('/ float(os.environ.get("WORLD_SIZE", 1))', "fails: a different result: the gradient of 'weight' is off by"),
    ],
)
def test_a_module_runs_on_two_ranks_as_it_is(share: str, said: str, check_source: Callable[..., Report]) -> None:
    report = check_source(MODULE.format(share=share), level="deep")
    assert report.subjects[0].conditions["DDP"].startswith(said)


def test_a_sample_may_be_one_number() -> None:
    """Inputs with a batch dimension and nothing else: the probe stopped with an IndexError."""
    model = WholeModule(Gain(), [torch.tensor(2.0), torch.tensor([1.0, 3.0])], [1])
    assert joined(model) == {"module.gain": torch.tensor(1.0)}  # weight 0.5 for the only element, half of 0.5 * (1 + 3)
