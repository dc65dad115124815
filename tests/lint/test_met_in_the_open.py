"""Source lenses: ways of writing that were met in public code."""

from __future__ import annotations

import textwrap

import pytest

from gradsmith.findings import Finding
from gradsmith.linting import lint_source

HEADER = "import torch\nfrom torch import nn\n\n\n"


def found(text: str, rule: str) -> list[Finding]:
    report = lint_source(HEADER + textwrap.dedent(text), select=[rule], debug=True)
    assert report.skipped == []
    return report.findings


def test_a_return_after_raise_is_never_reached():
    text = """
        class Inference(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, scale, shift):
                return x * scale + shift

            @staticmethod
            def backward(ctx, grad_output):
                raise NotImplementedError
                return grad_output, None
    """
    assert found(text, "return-count") == []
    (finding,) = found(text.replace("        raise NotImplementedError\n", ""), "return-count")
    assert "2 gradients" in finding.message


OLD = """
    class Low(torch.autograd.Function):
        def __init__(self, bound):
            self.bound = bound

        def forward(self, x):
            return (x > self.bound).float()

        def backward(self, grad_output):
            return grad_output


    class High(Low):
        pass


    class Masked(nn.Module):
        def __init__(self, kind):
            super().__init__()
            if kind == "low":
                self.threshold = Low(0.1)
            else:
                self.threshold = OTHER(0.9)

        def forward(self, x):
            return x * self.threshold(x)
"""


def test_an_attribute_that_is_one_function_or_the_other_is_called_without_apply():
    (finding,) = found(OLD.replace("OTHER", "High"), "missing-apply")
    assert "`self.threshold` is an instance of Low" in finding.message


def test_an_attribute_that_may_be_a_module_is_left_alone():
    assert found(OLD.replace("OTHER", "nn.Hardtanh"), "missing-apply") == []


CHOICE = """
    class Noisy(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, sigma):
            return x + sigma * torch.randn_like(x)

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output, None


    def noisy(x, sigma, through=True):
        if through:
            return Noisy.apply(x, sigma)
        return Noisy.forward(None, x, sigma)
"""


def test_a_function_that_offers_forward_beside_apply_chooses():
    assert found(CHOICE, "missing-apply") == []
    only = CHOICE.replace("        if through:\n            return Noisy.apply(x, sigma)\n", "")
    assert len(found(only, "missing-apply")) == 1


OPTIONAL = """
    class Affine(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, bias=None):
            ctx.save_for_backward(x, bias)
            return x * x if bias is None else x * x + bias

        @staticmethod
        def backward(ctx, grad_output):
            x, bias = ctx.saved_tensors
            if TEST:
                return 2 * x * grad_output, grad_output
            return 2 * x * grad_output
"""


def test_a_shorter_answer_for_those_who_pass_less():
    assert found(OPTIONAL.replace("TEST", "bias is not None"), "return-count") == []
    (finding,) = found(OPTIONAL.replace("TEST", "x.is_cuda"), "return-count")
    assert "passes 'bias'" in finding.message


LEVELS = """
    class Levels(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            scale = x.abs().max()
            return (x / scale).round().to(torch.int8), scale

        @staticmethod
        def backward(ctx, grad_levels, grad_scale):
            return RESULT
"""


def test_the_gradient_of_integers_is_always_zero():
    (finding,) = found(LEVELS.replace("RESULT", "grad_levels"), "integer-output")
    assert "its gradient is always zero" in finding.message
    assert found(LEVELS.replace("RESULT", "grad_scale.expand(3)"), "integer-output") == []


STEP = """
    class Step(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, bound):
            return VALUE

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output, None
"""
FLOATS = ("(x > bound).type_as(x)", "(x > bound).to(x.dtype)", "(x > bound) * 1.0", "(x > bound).to(x)", "x.int() / 2")


@pytest.mark.parametrize("value", FLOATS)
def test_a_step_that_becomes_a_number_again_has_a_gradient(value):
    assert found(STEP.replace("VALUE", value), "integer-output") == []


@pytest.mark.parametrize(
    "value",
    ["(x > bound).int()", "x.round().to(torch.int64)", "x.argmax(-1)", "torch.greater_equal(x, bound)", "x.gt(bound)"],
)
def test_a_step_that_stays_an_integer_has_none(value):
    assert "is never called" in found(STEP.replace("VALUE", value), "integer-output")[0].message


def test_names_that_stand_for_none_are_dropped_like_none():
    text = """
        class Halved(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x / 2

            @staticmethod
            def backward(ctx, grad_output):
                grad_scale = grad_shift = None
                return grad_output / 2, grad_scale, grad_shift
    """
    assert found(text, "return-count") == []
    assert len(found(text.replace("grad_shift = None", "grad_shift = grad_output"), "return-count")) == 1
