"""torch.func: grad, vmap against a loop, jacrev, and forward mode against backward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from gradsmith.lab.conditions.compiled import uncompilable, with_own_code
from gradsmith.lab.conditions.outcome import Outcome, Results, column, compared, examinable, far, plain, words
from gradsmith.lab.lab import Lab
from gradsmith.lab.measure.differences import dot
from gradsmith.lab.process import torch_says
from gradsmith.lab.process.state import seed_all
from gradsmith.lab.run import flat_outputs, normal_like

_ROWS = 3
_MOST_ENTRIES = 50_000  # of a Jacobian


def pure(lab: Lab) -> tuple[Callable[..., list[Tensor]], list[Tensor]]:
    """The subject as a function of its differentiable tensors alone, and these tensors."""
    target, arguments = lab.precise
    wanted = arguments.differentiable

    def function(*tensors: Tensor) -> list[Tensor]:
        given = {leaf.position: t for leaf, t in zip(wanted, tensors)}
        args, kwargs = arguments.with_tensors(arguments.beside_copies(given))
        seed_all(lab.settings.seed)
        return flat_outputs(target.call(*args, **kwargs))[0]

    return function, [leaf.tensor.detach().clone() for leaf in wanted]


def unfit(lab: Lab) -> str:
    if reason := examinable(lab):
        return reason
    if lab.stochastic:
        return "forward draws random numbers"
    run = lab.baseline.run
    if any(call.dirty for call in run.trace.forwards):
        return "forward works in place"
    positions = [id(leaf.tensor) for leaf in lab.precise[1].differentiable]
    return "a tensor is passed twice" if len(set(positions)) < len(positions) else ""


@column("func.grad")
def func_grad(lab: Lab) -> Outcome:
    if reason := unfit(lab):
        return Outcome("not tried", reason)
    return compared(lab, lambda: _graded(lab, lambda f, n: torch.func.grad(f, argnums=n)), torch_says.transform_refused)


@column("compiled func.grad")
def compiled_func_grad(lab: Lab) -> Outcome:
    """pytorch#193279: in a compiled torch.func.grad the custom backward is dropped, and autograd's used instead."""
    if func_grad(lab).state != "works":
        return Outcome("not tried", "torch.func.grad itself does not work")
    if reason := uncompilable(lab):
        return Outcome("not tried", reason)

    def transform(f: Callable[..., Tensor], numbers: tuple[int, ...]) -> Callable[..., Any]:
        graded = torch.func.grad(f, argnums=numbers)
        return torch.compile(with_own_code(graded), backend="aot_eager")

    return compared(lab, lambda: _graded(lab, transform))


def _graded(lab: Lab, transform: Callable[[Callable[..., Tensor], tuple[int, ...]], Callable[..., Any]]) -> Results:
    target, arguments = lab.precise
    wanted = arguments.differentiable
    values = [leaf.tensor.detach().clone() for leaf in wanted]
    v, call = lab.baseline.v, target.call

    def loss(*tensors: Tensor) -> Tensor:
        given = {leaf.position: t for leaf, t in zip(wanted, tensors)}
        args, kwargs = arguments.with_tensors(arguments.beside_copies(given))
        outputs = flat_outputs(call(*args, **kwargs))[0]
        terms = [(v[o].conj() * outputs[o]).sum() for o in v]
        total = terms[0]
        for term in terms[1:]:
            total = total + term
        return total.real if total.is_complex() else total

    seed_all(lab.settings.seed)
    grads = transform(loss, tuple(range(len(values))))(*values)
    return Results(plain(lab).outputs, {leaf.position: g for leaf, g in zip(wanted, grads)})


@column("jacrev")
def jacrev(lab: Lab) -> Outcome:
    """The whole Jacobian, for which torch.func runs backward under vmap; v times it is what backward gives for v."""
    if reason := unfit(lab):
        return Outcome("not tried", reason)
    function, values = pure(lab)
    v = lab.baseline.v
    if any(t.is_complex() for t in (*values, *v.values())):
        return Outcome("not tried", "a Jacobian of complex numbers is no gradient")
    if sum(x.numel() for x in values) * sum(g.numel() for g in v.values()) > _MOST_ENTRIES:
        return Outcome("not tried", "the Jacobian is too large")
    if lab.surrogate and not _is_linear(lab):  # of an exact gradient that has a rule of its own
        return Outcome("not tried", "backward is not linear in grad_output, so rows of a Jacobian do not add up to it")

    def run() -> Results:
        chosen = torch.func.jacrev(lambda *xs: [function(*xs)[o] for o in v], argnums=tuple(range(len(values))))
        with torch_says.without_vmap_advice():
            rows = chosen(*values)
        grads = [
            torch.stack([torch.tensordot(g, row[i], g.ndim) for g, row in zip(v.values(), rows)]).sum(0)
            for i in range(len(values))
        ]
        return Results(plain(lab).outputs, {x.position: g for x, g in zip(lab.precise[1].differentiable, grads)})

    return compared(lab, run, lambda error: torch_says.transform_refused(error) or torch_says.vmap_refused(error))


def _is_linear(lab: Lab) -> bool:
    """Whether grad_outputs a thousand times as large and as small give gradients that are so, too; a clip does not."""
    for factor in (2.0**-10, 2.0**10):
        scaled = lab.gradients({o: g * factor for o, g in lab.baseline.v.items()})
        for leaf in lab.precise[1].differentiable:
            before, after = lab.baseline.gradients[leaf.position], scaled[leaf.position]
            if before is not None and after is not None and not lab.close(before, after / factor):
                return False
    return True


@column("vmap")
def vmap(lab: Lab) -> Outcome:
    """Stacked inputs under vmap against a loop over them; outputs, and the gradient through vmap."""
    if reason := unfit(lab):
        return Outcome("not tried", reason)
    function, values = pure(lab)
    stacked = [torch.stack([x * (1 + 0.1 * k) for k in range(_ROWS)]) for x in values]
    try:
        loop = [function(*(x[k] for x in stacked)) for k in range(_ROWS)]
        expected = [torch.stack(column) for column in zip(*loop)]
        wanted = _gradients(
            lambda *xs: [torch.stack(c) for c in zip(*(function(*(x[k] for x in xs)) for k in range(_ROWS)))], stacked
        )
    except Exception as error:
        return Outcome("not tried", f"the loop itself raises {words(error)}")
    try:
        with torch_says.without_vmap_advice():
            got = torch.func.vmap(lambda *xs: tuple(function(*xs)))(*stacked)
            grads = _gradients(lambda *xs: torch.func.vmap(lambda *ys: tuple(function(*ys)))(*xs), stacked)
    except Exception as error:
        return Outcome("not supported" if torch_says.transform_refused(error) else "fails", words(error))
    for name, a, b in zip(lab.baseline.run.output_names, expected, got):
        if not lab.close(a, b):
            return Outcome("fails", f"a different {name}", f"the output {far(a.detach(), b.detach())}")
    for leaf, x, y in zip(lab.precise[1].differentiable, wanted, grads):
        if not lab.close(x, y):
            return Outcome(
                "fails", f"a different gradient of '{leaf.name}'", f"the gradient of '{leaf.name}' {far(x, y)}"
            )
    return _otherwise_batched(lab, function, stacked)


def _otherwise_batched(lab: Lab, function: Callable[..., Any], stacked: list[Tensor]) -> Outcome:
    """A vmap of the user's own has to heed in_dims: the batch may come last, and may be missing in some inputs."""
    cls = lab.target.function
    if cls is None or getattr(cls, "vmap", None) is torch.autograd.Function.vmap:
        return Outcome("works")
    last = [x.ndim - 1 for x in stacked]
    some = [[0 if i == k else None for i in range(len(stacked))] for k in range(len(stacked))]
    for dims in ([last] if any(last) else []) + (some if len(stacked) > 1 else []):
        rows = [x if d is not None else x[0] for x, d in zip(stacked, dims)]
        loop = [function(*(x[k] if d is not None else x for x, d in zip(rows, dims))) for k in range(_ROWS)]
        moved = [x if d is None else x.movedim(0, d).contiguous() for x, d in zip(rows, dims)]
        try:
            with torch_says.without_vmap_advice():
                got = torch.func.vmap(lambda *xs: tuple(function(*xs)), in_dims=tuple(dims))(*moved)
        except Exception as error:
            return Outcome("fails", f"in_dims={tuple(dims)}: {words(error)}")
        for name, column_of, b in zip(lab.baseline.run.output_names, zip(*loop), got):
            a = torch.stack(column_of)
            if a.shape != b.shape or not lab.close(a, b):
                how = far(a.detach(), b.detach())
                return Outcome("fails", f"a different {name} with in_dims={tuple(dims)}", f"the output {how}")
    return Outcome("works")


def _gradients(function: Callable[..., Any], values: list[Tensor]) -> tuple[Tensor | None, ...]:
    leaves = [x.detach().clone().requires_grad_() for x in values]
    outputs = [o for o in function(*(x.clone() for x in leaves)) if o.requires_grad]
    generator = torch.Generator().manual_seed(29)
    return torch.autograd.grad(outputs, leaves, [normal_like(o, generator) for o in outputs], allow_unused=True)


@column("jvp")
def jvp(lab: Lab) -> Outcome:
    """Forward mode where the Function defines it: <v, jvp(u)> against <backward(v), u>."""
    cls = lab.target.function
    if cls is None or not torch_says.has_own_jvp(cls):
        return Outcome("not tried", "no jvp is defined")
    if reason := unfit(lab):
        return Outcome("not tried", reason)
    function, values = pure(lab)
    directions = [normal_like(x, lab.generator(31 + i)) for i, x in enumerate(values)]
    try:
        with forward_ad.dual_level():
            duals = [forward_ad.make_dual(x, u) for x, u in zip(values, directions)]
            tangents = [forward_ad.unpack_dual(o).tangent for o in function(*duals)]
    except Exception as error:
        return Outcome("fails", words(error))
    v, grads = lab.baseline.v, lab.baseline.gradients
    forwards = sum(dot(v[o], tangents[o]) for o in v if tangents[o] is not None)
    leaves = lab.precise[1].differentiable
    pairs = [(grads[leaf.position], u) for leaf, u in zip(leaves, directions)]
    backwards = sum(dot(g, u) for g, u in pairs if g is not None)
    size = sum(float((g * u).abs().sum()) for g, u in pairs if g is not None)
    if abs(forwards - backwards) > 1e-6 * (size + abs(forwards)):
        said = f"in the same direction jvp returned {forwards:.6g} and backward returned {backwards:.6g}"
        return Outcome("fails", said, said)
    return Outcome("works")
