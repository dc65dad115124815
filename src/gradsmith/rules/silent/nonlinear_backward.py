"""backward is not linear in grad_output.

What it finds
-------------
backward is called with grad_outputs a, b and 2a - 3b, and with zero. A gradient is a linear map of grad_output, so
backward(2a - 3b) has to equal 2 backward(a) - 3 backward(b), and backward(0) has to be 0.

Why it matters
--------------
The chain rule multiplies gradients along the way to the loss. A backward that clips, normalises, takes the sign of or
branches on grad_output gives a gradient that depends on the scale of the loss: change the batch size or use a loss
scaler, and training changes. gradcheck only ever passes one-hot grad_outputs of size +1 and cannot see it.

Known problems
--------------
Clipping, noise, sparsifying and an auxiliary loss are surrogates: declare them with their kind
(`# gradsmith: surrogate[clip]`); one that is declared without a kind has to be linear. Where the gradient looks like an
undeclared one anyway, this is a warning.

References
----------
https://github.com/SeanNaren/warp-ctc/issues/69, https://github.com/pytorch/pytorch/issues/11750
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from torch import Tensor

    from gradsmith.lab import Lab

CODE = "GS218"
SEVERITY = "error"
WAIVED_BY = ("clip", "sparsify", "custom", "noise", "aux-loss")
DEMONSTRATION = "linear"
OUTCOME = "nonlinear"
EXPLAINS = ("wrong-gradient", "undeclared-surrogate")
BAD = """
import torch


class ClampedScale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 3 * x

    @staticmethod
    def backward(ctx, grad_output):
        return 3 * grad_output.clamp(-0.1, 0.1)


gradsmith_inputs = {"ClampedScale": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = BAD.replace("grad_output.clamp(-0.1, 0.1)", "grad_output")


_SHAKE = 1 + 2.0**-30


def _is_noise(deviation: Tensor, gradient: Tensor, shaken: Tensor | None) -> bool:
    """Whether a hair's breadth more of the same grad_output changes the gradient as much: rounding, blown up inside.

    A backward that is linear gives that much more of the gradient; one that clips, a billionth less. Where numbers cancel
    (a gradient of 1e17, from a point outside the domain of forward), neither holds, and nothing can be told.
    """
    if shaken is None:
        return False
    noise = float((shaken / _SHAKE - gradient).abs().max()) if gradient.numel() else 0.0
    return float(deviation.abs().max()) <= 1e3 * noise


def probe(lab: Lab) -> Iterator[Finding]:
    from gradsmith.lab.lab import same
    from gradsmith.lab.measure.raw import narrowed
    from gradsmith.lab.measure.resemblance import surrogate_kind
    from gradsmith.lab.subject.target import where_comments_go

    lost = narrowed(lab)
    run, a = lab.baseline.run, lab.baseline.v
    b = run.normal(lab.generator(6))
    of_a, of_b = lab.baseline.gradients, lab.gradients(b)
    mixed = lab.gradients({o: 2 * a[o] - 3 * b[o] for o in a})
    zero = lab.gradients({o: a[o] * 0 for o in a})
    for leaf in run.arguments.differentiable:
        ga, gb, gm, g0 = (g[leaf.position] for g in (of_a, of_b, mixed, zero))
        if ga is None or gb is None or gm is None:
            continue
        # 1e-6: rounding in a narrower type inside backward is another defect (wrong-gradient/low-precision).
        rtol, floor = max(1e-6, lab.tolerance.rtol, 1e3 * lost.get(leaf.name, 0.0)), lab.tolerance.floor
        if same(2 * ga - 3 * gb, gm, rtol, floor) and (g0 is None or same(g0, g0 * 0, rtol, floor)):
            continue
        shaken = lab.gradients({o: a[o] * _SHAKE for o in a})[leaf.position]
        if lab.is_rounding(leaf, ga, gb, gm) or _is_noise(2 * ga - 3 * gb - gm, ga, shaken):
            continue
        wanted, got = 2 * ga - 3 * gb, gm
        at = int((wanted - got).abs().argmax())
        meant = not lab.surrogate and not lab.approximate and surrogate_kind(lab.gradient, lab.settings) is not None
        yield lab.finding(
            f"{lab.target.name}.backward is not linear in grad_output. For '{leaf.name}' and two random grad_outputs a and b: "
            f"backward(2a - 3b) returned {got.flatten()[at].item():.6g}, and 2 backward(a) - 3 backward(b) is "
            f"{wanted.flatten()[at].item():.6g}.",
            argument=leaf.name,
            severity="warning" if meant else None,
            advice="Use grad_output only as a factor. If you do this on purpose, write `# gradsmith: surrogate[clip]` (or "
            f"`surrogate[aux-loss]` where backward adds a gradient of its own) {where_comments_go(lab.target)}.",
            at="gradient",
        )
