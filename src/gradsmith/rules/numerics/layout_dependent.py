"""The gradient depends on how grad_output lies in memory.

What it finds
-------------
backward is called with the same grad_output in other layouts: transposed, every other element of a larger tensor, at a
storage offset, a slice of a concatenation, every other row, permuted, and expanded with stride 0 as `.sum()` makes it. The
inputs are tried in other layouts, too, indices and masks among them. The gradients have to be the same, and backward may not
fail.

Why it matters
--------------
Code that takes `data_ptr()`, launches a kernel or calls `.view()` on grad_output assumes that it is contiguous. It is,
in the author's test; after `torch.cat`, `permute` or `.sum()` in somebody's model it is not, and the kernel reads the wrong
numbers. gradcheck only ever passes contiguous grad_outputs.

Known problems
--------------
Triton kernels that read an input as if it was contiguous are warned of: "assumes that 'x' is contiguous", and the verdict stays.
For grad_output it is an error. A forward that draws random numbers is not tried with its inputs in other layouts: numbers are drawn in the order of the
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
    from torch import Tensor

    from gradsmith.lab import Arguments, Lab, Leaf

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
    from gradsmith.lab.measure.rounding import rounding_in, within_rounding

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
                    raised=error,
                    message=f"{lab.target.name}.backward raises {type(error).__name__} when grad_output is {name}: "
                    f"{str(error).splitlines()[0] if str(error) else ''}",
                    argument="grad_output",
                    advice="Use reshape instead of view, or start with grad_output = grad_output.contiguous().",
                )
                return
            differing = [
                x for x in run.arguments.differentiable if not lab.close(expected[x.position], got[x.position])
            ]
            rounding = rounding_in(lab, {**others, o: plain}) if differing else {}
            for leaf in differing:
                if not within_rounding(expected[leaf.position], got[leaf.position], rounding.get(leaf.position, 0.0)):
                    yield lab.finding(
                        f"{lab.target.name}.backward returns a different gradient of '{leaf.name}' when grad_output has the same values in another memory layout ({name}).",
                        line=lab.line_of_part("memory", leaf.name),
                        argument="grad_output",
                        advice="Start backward with `grad_output = grad_output.contiguous()`.",
                    )
                    return


def _of_inputs(lab: Lab) -> Iterator[Finding]:
    """Every input in every layout. All of them change at once, each into another layout, and alone where that matters.

    Nobody gives a module parameters in another layout; PyTorch's own batch_norm is wrong for a strided weight
    (tests/test_torch_facts.py). A Function in the module is asked for itself, with the parameter as its input.
    """
    from gradsmith.checking.assuming import if_contiguous
    from gradsmith.lab.measure.layouts import layouts
    from gradsmith.lab.subject.foreign import runs_kernels

    if lab.stochastic:  # `rand_like` fills memory in its order: another layout is another draw, whatever the seed
        return
    arguments = lab.baseline.run.arguments
    known = {id(leaf.tensor): leaf for leaf in reversed(arguments.leaves)}  # a tensor that is passed twice stays one
    theirs = [leaf for leaf in arguments.leaves if known[id(leaf.tensor)] is leaf and not leaf.of_module]
    ways = [(leaf, list(layouts(leaf.tensor).items())) for leaf in theirs]
    ways = [(leaf, made) for leaf, made in ways if made]
    for turn in range(max((len(made) for _, made in ways), default=0)):
        chosen = [(leaf, *made[(turn + number) % len(made)]) for number, (leaf, made) in enumerate(ways)]
        if len(chosen) > 1 and _alike(lab, chosen):
            continue
        differing = [(leaf, f) for leaf, name, made in chosen if (f := _differing(lab, leaf, name, made)) is not None]
        if not differing:
            continue
        # Kernels take contiguous inputs for granted, and their callers know it; grad_output's layout is in nobody's hands.
        kernels = [
            if_contiguous(lab, f) for leaf, f in differing if runs_kernels(lab.target) and leaf.tensor.is_contiguous()
        ]
        yield from kernels or [differing[0][1]]
        return


def _alike(lab: Lab, chosen: list[tuple[Leaf, str, Tensor]]) -> bool:
    """Whether outputs and gradients are the same with all of these inputs in their new layouts."""
    base = lab.baseline
    try:
        run = lab.precise_run(_in_layouts(base.run.arguments, chosen))
        grads = run.gradients(base.v)
    except Exception:  # one of them is refused, or breaks backward: they are looked at one by one
        return False
    outputs = all(lab.close(a, b) for a, b in zip(base.run.outputs, run.outputs))
    return outputs and all(lab.close(base.gradients[position], grads[position]) for position in grads)


def _in_layouts(arguments: Arguments, chosen: list[tuple[Leaf, str, Tensor]]) -> Arguments:
    return arguments.replaced({leaf.position: made.requires_grad_(leaf.differentiable) for leaf, _, made in chosen})


def _differing(lab: Lab, leaf: Leaf, name: str, made: Tensor) -> Finding | None:
    """What is different with one input in another layout."""
    from gradsmith.lab.measure.rounding import rounding_in, within_rounding
    from gradsmith.lab.process.torch_says import subclass_lacks

    base = lab.baseline
    try:
        run = lab.precise_run(_in_layouts(base.run.arguments, [(leaf, name, made)]))
    except Exception:  # forward may refuse a layout in words; that is no defect of the gradient
        return None
    if not all(lab.close(a, b) for a, b in zip(base.run.outputs, run.outputs)):
        return lab.finding(
            f"{lab.target.name}.forward returns a different result when '{leaf.name}' has the same values in another memory layout ({name}).",
            argument=leaf.name,
            advice=f"Start forward with `{leaf.name} = {leaf.name}.contiguous()`.",
        )
    try:
        grads = run.gradients(base.v)
    except Exception as error:
        if subclass_lacks(error):  # the gradient is one, and cannot be handed back to memory of another layout
            return None
        return lab.finding(
            raised=error,
            message=f"{lab.target.name}.backward raises {type(error).__name__} when '{leaf.name}' is {name}: "
            f"{str(error).splitlines()[0] if str(error) else ''}",
            argument=leaf.name,
            advice="Use reshape instead of view, or call .contiguous() first.",
        )
    moved = [
        (other, base.gradients[other.position], grads[other.position]) for other in base.run.arguments.differentiable
    ]
    moved = [(other, before, after) for other, before, after in moved if not lab.close(before, after)]
    rounding = rounding_in(lab, base.v) if moved else {}
    for other, before, after in moved:
        if not within_rounding(before, after, rounding.get(other.position, 0.0)):
            return lab.finding(
                f"{lab.target.name}.backward returns a different gradient of '{other.name}' when '{leaf.name}' has the same values in another memory layout ({name}).",
                line=lab.line_of_gradient(other.name),
                argument=leaf.name,
                advice=f"Call {leaf.name}.contiguous() before using its memory.",
            )
    return None
