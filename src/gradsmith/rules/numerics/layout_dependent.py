"""The gradient depends on how grad_output lies in memory.

What it finds
-------------
backward is called with the same grad_output in other layouts: transposed, every other element of a larger tensor, at a
storage offset, a slice of a concatenation, and expanded with stride 0 as `.sum()` makes it. The inputs are tried in other
layouts, too. The gradients have to be the same, and backward may not fail.

Why it matters
--------------
Code that takes `data_ptr()`, launches a kernel or calls `.view()` on grad_output assumes that it is contiguous. It is,
in the author's test; after `torch.cat`, `permute` or `.sum()` in somebody's model it is not, and the kernel reads the wrong
numbers. gradcheck only ever passes contiguous grad_outputs.

Known problems
--------------
A forward that draws random numbers is not tried with its inputs in other layouts: numbers are drawn in the order of the
memory, so that the same seed gives another draw.

References
----------
https://github.com/pytorch/pytorch/issues/194719, https://github.com/Dao-AILab/flash-attention/issues/355,
https://github.com/NVIDIA/apex/pull/1601
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from gradsmith.lab import Lab

CODE = "GS308"
SEVERITY = "error"
WAIVED_BY = ("noise",)
DEMONSTRATION = "layout"
EXPLAINS = ("compile-mismatch", "vmap-mismatch")
BAD = '''
import torch


class Triple(torch.autograd.Function):
    """Works on the flat memory, as a kernel would."""

    @staticmethod
    def forward(ctx, x):
        return 3 * x

    @staticmethod
    def backward(ctx, grad_output):
        flat = torch.as_strided(grad_output, (grad_output.numel(),), (1,))
        return 3 * flat.reshape(grad_output.shape)


gradsmith_inputs = {"Triple": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
'''
GOOD = BAD.replace(
    "torch.as_strided(grad_output, (grad_output.numel(),), (1,))", "grad_output.contiguous().reshape(-1)"
)


def probe(lab: Lab) -> Iterator[Finding]:
    yield from _of_grad_output(lab)
    yield from _of_inputs(lab)


def _of_grad_output(lab: Lab) -> Iterator[Finding]:
    from gradsmith.lab.measure.layouts import expanded_ones, layouts

    run, v = lab.baseline.run, lab.baseline.v
    for o in run.differentiable:
        output = run.outputs[o]
        wanted = lab.gradients({o: v[o]}) if len(run.differentiable) == 1 else None
        trials = [(name, made, v[o]) for name, made in layouts(v[o]).items()]
        if output.numel() > 1:
            trials.append(
                ("expanded with stride 0, as .sum() makes it", expanded_ones(output), output.new_ones(output.shape))
            )
        for name, made, plain in trials:
            others = {p: g * 0 for p, g in v.items() if p != o}
            expected = wanted if wanted is not None and plain is v[o] else lab.gradients({**others, o: plain})
            try:
                got = lab.gradients({**others, o: made}, as_is=True)
            except Exception as error:  # `.view` on a strided tensor, a kernel's own check
                yield lab.finding(
                    f"{lab.target.name}.backward raises {type(error).__name__} when grad_output is {name}: "
                    f"{str(error).splitlines()[0] if str(error) else ''}",
                    argument="grad_output",
                    advice="Use reshape instead of view, or start with grad_output = grad_output.contiguous().",
                )
                return
            for leaf in run.arguments.differentiable:
                if not lab.close(expected[leaf.position], got[leaf.position]):
                    yield lab.finding(
                        f"{lab.target.name}.backward gives another gradient of '{leaf.name}' when grad_output is {name}.",
                        argument="grad_output",
                        advice="Start backward with grad_output = grad_output.contiguous(), or honour its strides.",
                    )
                    return


def _of_inputs(lab: Lab) -> Iterator[Finding]:
    from gradsmith.lab.measure.layouts import layouts

    base = lab.baseline
    if lab.stochastic:  # `rand_like` fills memory in its order: another layout is another draw, whatever the seed
        return
    for leaf in base.run.arguments.leaves:
        if not leaf.tensor.is_floating_point():
            continue
        for name, made in layouts(leaf.tensor).items():
            arguments = base.run.arguments.replaced({leaf.position: made.requires_grad_(leaf.differentiable)})
            try:
                run = lab.precise_run(arguments)
            except Exception:  # forward may refuse a layout in words; that is no defect of the gradient
                break
            if not all(lab.close(a, b) for a, b in zip(base.run.outputs, run.outputs)):
                yield lab.finding(
                    f"{lab.target.name}.forward gives another result when '{leaf.name}' is {name}.",
                    argument=leaf.name,
                    advice=f"Start forward with {leaf.name} = {leaf.name}.contiguous(), or honour its strides.",
                )
                return
            try:
                grads = run.gradients(base.v)
            except Exception as error:
                yield lab.finding(
                    f"{lab.target.name}.backward raises {type(error).__name__} when '{leaf.name}' is {name}: "
                    f"{str(error).splitlines()[0] if str(error) else ''}",
                    argument=leaf.name,
                    advice="Use reshape instead of view, or call .contiguous() first.",
                )
                return
            for other in base.run.arguments.differentiable:
                if not lab.close(base.gradients[other.position], grads[other.position]):
                    yield lab.finding(
                        f"{lab.target.name}.backward gives another gradient of '{other.name}' when '{leaf.name}' is {name}.",
                        argument=leaf.name,
                        advice=f"Call {leaf.name}.contiguous() before using its memory.",
                    )
                    return
