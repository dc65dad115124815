"""State on the class or module is shared by every call.

What it finds
-------------
forward leaves something on the class (`Fn.mask = mask`), in a global or in a default argument, and backward reads it. At
run time a second forward with other inputs is run between a forward and its backward; the gradient must not change. If a
forward is seen to write to something that outlives it, calls of other values, ids, options and sizes are run in between, too,
and a second step on the same tensors, changed in place. What backward reads again of its class, its file or a dict argument is
changed between forward and backward, and put back: if the gradient changes with it, and some function writes it (or it is the
caller's dict), that is a warning.

Why it matters
--------------
With one call per step it works. With two layers of the same kind, two micro-batches or a validation pass in between,
the later call overwrites what the earlier backward needs, and nothing raises.

Known problems
--------------
Constants and counters on a class are fine and are not reported. A dict or list that forward writes to is shared by two calls
only if the caller passes it to both: that, and a backward that raises, is a warning.

References
----------
https://github.com/pytorch/pytorch/issues/16947, https://github.com/pytorch/pytorch/issues/821
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from gradsmith.findings import Finding
from gradsmith.rules.transforms import MISMATCHES
from gradsmith.source.behind import made_of

if TYPE_CHECKING:
    from torch import Tensor

    from gradsmith.lab import Arguments, Lab
    from gradsmith.source import FunctionModel, Method

CODE = "GS216"
SEVERITY = "error"
WAIVED_BY = ("noise",)
DEMONSTRATION = "state"
EXPLAINS = (
    "wrong-gradient",
    "nonlinear-backward",
    "frozen-input",
    "layout-dependent",
    "not-repeatable",
    "wrong-second-order",
    *MISMATCHES,
)
BAD = """
import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        Square.last = x.detach()
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2 * Square.last


gradsmith_inputs = {"Square": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = """
import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 2 * x


gradsmith_inputs = {"Square": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""


def lint(function: FunctionModel) -> Iterator[Finding]:
    backward = function.backward
    if backward is None or function.kind != "function":
        return
    read = {_shared(function, backward, n) for n in backward.nodes if isinstance(getattr(n, "ctx", None), ast.Load)}
    for method in function.before:
        assignments: list[ast.Assign | ast.AnnAssign] = [*method.of(ast.Assign), *method.of(ast.AnnAssign)]
        for node in assignments:
            if node.value is None:
                continue
            for target, value in _assigned(node.targets if isinstance(node, ast.Assign) else [node.target], node.value):
                shared = _shared(function, method, target)
                if shared is None or shared not in read or not _of_this_call(method, value):
                    continue
                if any(shared in ast.unparse(guard.test) for guard in method.guards(node)):
                    continue  # made once and kept: a cache, not the memory of a call
                yield function.at(
                    node,
                    f"{function.name}.{method.name} stores what {backward.name} needs in '{shared}', which all calls share: the "
                    "next forward overwrites it.",
                    advice="Keep the value on ctx: tensors with ctx.save_for_backward, numbers as attributes of ctx.",
                )


def _assigned(targets: list[ast.expr], value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Every single target and what it is given; `a, b = c, d` are two."""
    for target in targets:
        if not isinstance(target, (ast.Tuple, ast.List)):
            yield target, value
        elif isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
            for inner, part in zip(target.elts, value.elts):
                yield from _assigned([inner], part)
        else:
            yield from _assigned(target.elts, value)


def _of_this_call(method: Method, value: ast.expr) -> bool:
    """Made from what this call was given; anything else is the same for all calls anyway."""
    names = (node for node in made_of(method, [value]) if isinstance(node, ast.Name))
    return any(b.how == "param" and b.name != method.ctx for name in names for b in method.definitions(name))


def _shared(function: FunctionModel, method: Method, node: ast.AST) -> str | None:
    """`Fn.last`, `cls.last`, or a global that the method declares as such; spelled the same in every method."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        first = method.node.args.args[0].arg if method.binder == "class" and method.node.args.args else None
        return f"{function.name}.{node.attr}" if node.value.id in (function.name, first) else None
    if isinstance(node, ast.Name):
        if isinstance(node.ctx, ast.Load):
            return node.id if method.is_free(node) else None
        return node.id if any(node.id in n.names for n in method.of(ast.Global)) else None
    return None


def probe(lab: Lab) -> Iterator[Finding]:
    found = next(_seen(lab), None)
    if found is not None:
        yield found


def _seen(lab: Lab) -> Iterator[Finding]:
    run = lab.precise_run()
    elsewhere = _in_between(lab, run.arguments)
    if elsewhere is not None:
        grads = run.gradients(lab.baseline.v)
        for leaf in run.arguments.differentiable:
            if not lab.close(lab.baseline.gradients[leaf.position], grads[leaf.position]):
                yield lab.finding(
                    f"{lab.target.name}: the gradient of '{leaf.name}' changes when another forward runs before backward: "
                    "the calls share state.",
                    argument=leaf.name,
                    advice=_ADVICE,
                )
        yield from _stale(lab, elsewhere)
    yield from _disturbed(lab)
    if elsewhere is not None:
        yield from _out_of_date(lab, elsewhere)
    yield from _read_again(lab)


_ADVICE = "Keep what backward needs on ctx: tensors through ctx.save_for_backward, numbers as attributes."


def _disturbed(lab: Lab) -> Iterator[Finding]:
    """Other calls in between: with other values, ids, options and sizes."""
    from gradsmith.lab.explore.trial import worth_exploring
    from gradsmith.lab.measure.shared_state import disturbed

    if lab.level == "quick" or not worth_exploring(lab):
        return
    # A wrong number tells more than an exception, and is the worse of the two.
    for found in sorted(disturbed(lab), key=lambda d: (d.argument, d.error is not None)):
        through = " and ".join(f"`{name}`" for name in found.through[:2])
        if found.error is not None:
            what = f"backward raises {type(found.error).__name__}"
        else:
            assert found.leaf is not None
            what = f"the gradient of '{found.leaf.name}' changes"
        yield lab.finding(
            f"{lab.target.name}: {what} when another forward runs before it, {found.words}. The calls share {through}.",
            argument=found.leaf.name if found.leaf is not None else None,
            severity="warning" if found.argument or found.error is not None else None,
            advice=_ADVICE,
        )


def _out_of_date(lab: Lab, elsewhere: Arguments) -> Iterator[Finding]:
    """A second training step on the same tensors, which an optimizer has changed in place."""
    from gradsmith.lab.measure.shared_state import remembered

    if lab.level == "quick" or lab.stochastic or lab.gradient.wrong:
        return
    if (leaf := remembered(lab, elsewhere)) is not None:
        yield lab.finding(
            f"{lab.target.name}.backward gives an out-of-date gradient of '{leaf.name}' after its inputs were changed in place, "
            "as an optimizer does: it remembers an earlier call with the same tensors.",
            argument=leaf.name,
            advice="Keep what backward needs on ctx. A cache needs the values, or tensor._version, in its key.",
        )


def _read_again(lab: Lab) -> Iterator[Finding]:
    """What others write between forward and backward."""
    from gradsmith.findings import Reproduction
    from gradsmith.lab.measure.read_again import read_again

    if lab.level == "quick" or lab.surrogate or lab.stochastic:
        return
    for found in read_again(lab):
        writer = f" {found.writer} writes it." if found.writer else " The caller may change it."
        finding = lab.finding(
            f"{lab.target.name}.backward reads `{found.name}` again: if it changes after forward, the gradient of "
            f"'{found.leaf.name}' is wrong.{writer}",
            argument=found.leaf.name,
            severity="warning",
            advice="Read it in forward and keep the value on ctx, so that backward uses what forward used.",
            evidence={"read again": found.name},
        )
        # A script would have to change the value as the user's own code does, which nobody knows.
        yield replace(finding, reproduce=Reproduction(seed=lab.settings.seed))


def _in_between(lab: Lab, arguments: Arguments) -> Arguments | None:
    """Other inputs for the forward in between: elements moved by one (also those of masks), else scaled."""
    import torch

    def rolled(tensor: Tensor) -> Tensor:
        return tensor.detach().flatten().roll(1).view(tensor.shape)

    masks = {x.position: rolled(x.tensor) for x in arguments.leaves if x.tensor.dtype == torch.bool}
    for move, others in ((rolled, masks), (rolled, {}), (lambda t: 0.75 * t.detach(), {})):
        moved = {x.position: move(x.tensor).clone().requires_grad_() for x in arguments.differentiable} | others
        try:
            lab.precise_run(arguments.replaced(moved))
        except Exception:  # forward may refuse the values (a domain such as symmetric matrices)
            continue
        return arguments.replaced(moved)
    return None


def _stale(lab: Lab, elsewhere: Arguments) -> Iterator[Finding]:
    """A backward that remembers its first call gives that call's gradient for other inputs, too."""
    from gradsmith.lab.measure.gradient import judge

    if lab.gradient.wrong or lab.stochastic or lab.surrogate or lab.approximate or not _keeps_tensors(lab):
        return
    there = lab.precise_run(elsewhere).gradients(lab.baseline.v)
    same = [x for x in elsewhere.differentiable if lab.close(lab.baseline.gradients[x.position], there[x.position])]
    if not same or not any(there[x.position] is not None for x in same):
        return
    wrong = {pair.leaf.name for pair in judge(lab.precise[0], elsewhere, lab.settings).wrong}
    for leaf in same:
        if leaf.name in wrong:
            yield lab.finding(
                f"{lab.target.name}.backward gives for other inputs the gradient of '{leaf.name}' at the first ones: it "
                "remembers an earlier call.",
                argument=leaf.name,
                advice=_ADVICE,
            )
            return


def _keeps_tensors(lab: Lab) -> bool:
    """Whether a class attribute, or a global that its methods name, holds tensors between calls."""
    import inspect

    from torch import Tensor
    from torch.utils import _pytree as pytree

    cls = lab.target.function
    if cls is None:
        return False
    held = list(vars(cls).values())
    for name in ("forward", "backward", "setup_context"):
        method = inspect.unwrap(getattr(cls, name))
        code = getattr(method, "__code__", None)
        scope = getattr(method, "__globals__", {})
        held += [scope[word] for word in (code.co_names if code is not None else ()) if word in scope]
    return any(isinstance(leaf, Tensor) for value in held for leaf in pytree.tree_leaves(value))
