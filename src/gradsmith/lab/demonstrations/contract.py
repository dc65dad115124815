"""Bodies that hold backward to its contract: nothing overwritten, linear, repeatable, freed."""

from __future__ import annotations

from collections.abc import Mapping

BODIES: Mapping[str, str] = {
    "run": """
outputs, leaves = call()
gradients(outputs, leaves, normal(outputs))
""",
    "repeat": """
outputs, leaves = call()
v = normal(outputs)
first = [g.clone() for g in gradients(outputs, leaves, v, retain_graph=True)]
second = gradients(outputs, leaves, v)
print(first, second)
assert close(first, second, 1e-9), "the second backward gives another gradient"
""",
    "grad_output": """
outputs, leaves = call()
v = normal(outputs)
kept = [g.clone() for g in v]
gradients(outputs, leaves, v)
assert all(torch.equal(a, b) for a, b in zip(v, kept)), "backward changed the grad_output it was given"
""",
    "saved": """
outputs, leaves = call()
v = normal(outputs)
kept = [t.detach().clone() for t in outputs + leaves]
first = [g.clone() for g in gradients(outputs, leaves, v, retain_graph=True)]
changed = not all(torch.equal(a.detach(), b) for a, b in zip(outputs + leaves, kept))
second = gradients(outputs, leaves, v)
assert not changed and close(first, second, 1e-9), "backward changed a saved tensor"
""",
    "input": """
seen = []
def watched(*args, **kwargs):
    seen.extend((t, t.detach().clone(), t._version) for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor))
    return fn(*args, **kwargs)
call(function=watched)
assert all(torch.equal(t.detach(), kept) or t._version > v and t.grad_fn is not None and "Clone" not in t.grad_fn.name()
           for t, kept, v in seen), "forward changed its input"
""",
    "linear": """
outputs, leaves = call()
a, b = normal(outputs, 1), normal(outputs, 2)
def backward(v):
    return gradients(*call(), v)
mixed = backward([2 * x - 3 * y for x, y in zip(a, b)])
parts = [2 * x - 3 * y for x, y in zip(backward(a), backward(b))]
assert close(mixed, parts, 1e-6), "backward is not linear in grad_output"
""",
    "subsets": """
outputs, leaves = call()
v = normal(outputs)
everything = gradients(outputs, leaves, v)
for i in range(len(leaves)):
    alone = gradients(*call(only={i}), v)
    assert close(alone, everything[i : i + 1], 1e-6), f"gradient {i} changes when the others are frozen"
    if len(leaves) > 1:
        rest = set(range(len(leaves))) - {i}
        without = gradients(*call(only=rest), v)
        assert close(without, [g for k, g in enumerate(everything) if k != i], 1e-6), f"input {i} frozen changes the others"
""",
    "unused": """
outputs, leaves = call()
count = len([o for o in outputs if o.requires_grad])
for i in range(count):
    outputs, leaves = call()
    chosen = [o for o in outputs if o.requires_grad]
    v = normal(outputs)
    alone = torch.autograd.grad(chosen[i], leaves, v[i], allow_unused=True)
    alone = [torch.zeros_like(x) if g is None else g for x, g in zip(leaves, alone)]
    zeros = gradients(*call(), [g if k == i else g * 0 for k, g in enumerate(v)])
    assert close(alone, zeros, 1e-6), f"output {i} alone gives another gradient than with zeros for the others"
""",
    "layout": """
def strided(g):
    wide = torch.full((*g.shape[:-1], 2 * g.shape[-1] + 1), float("nan"), dtype=g.dtype) if g.ndim else g.clone()
    return wide[..., 1::2].copy_(g) if g.ndim else g
def transposed(g):
    return g.transpose(-1, -2).contiguous().transpose(-1, -2) if g.ndim > 1 else g
outputs, leaves = call()
v = normal(outputs)
plain = gradients(outputs, leaves, v)
ones = [torch.ones_like(g) for g in v]
for name, other, same in (
    ("strided", [strided(g) for g in v], plain),
    ("transposed", [transposed(g) for g in v], plain),
    ("expanded", [torch.ones((), dtype=g.dtype).expand(g.shape) for g in v], gradients(*call(), ones)),
):
    assert close(gradients(*call(), other), same, 1e-6), f"a {name} grad_output gives another gradient"
for change in (strided, transposed):
    keep, inputs = inputs, tree_map(lambda t: change(t.detach()).requires_grad_(t.requires_grad) if isinstance(t, torch.Tensor) and t.is_floating_point() else t, inputs)
    plain_call = fn(*tree_map(lambda t: t.detach() if isinstance(t, torch.Tensor) else t, inputs), **keywords)
    found = [o.detach() for o in tree_leaves(plain_call) if isinstance(o, torch.Tensor)]
    assert close(found, [o.detach() for o in outputs], 1e-6), "inputs with other strides give another output"
    inputs = keep
""",
    "state": """
outputs, leaves = call()
v = normal(outputs)
expected = gradients(outputs, leaves, v)
outputs, leaves = call()
call([x.detach() * 1.7 + 0.3 for x in leaves])  # another forward before backward
assert close(gradients(outputs, leaves, v), expected, 1e-6), "a forward in between changes the gradient"
""",
    "random": """
outputs, leaves = call()
v = normal(outputs)
torch.manual_seed(1)
first = [g.clone() for g in gradients(outputs, leaves, v, retain_graph=True)]
torch.manual_seed(2)
assert close(first, gradients(outputs, leaves, v), 1e-6), "backward draws random numbers"
""",
    "hidden": """
import inspect
outputs, leaves = call()
held = list(tree_leaves((inputs, keywords)))
forward = getattr(getattr(fn, "__self__", None), "forward", fn)
found = inspect.getclosurevars(inspect.unwrap(forward))
held += [*found.globals.values(), *found.nonlocals.values()]
parameters = [p for m in held if isinstance(m, torch.nn.Module) for p in m.parameters()]
parameters += [t for t in held if isinstance(t, torch.Tensor) and t.requires_grad and t.is_leaf and all(t is not x for x in tree_leaves((inputs, keywords)))]
used = [o for o in outputs if o.requires_grad]
torch.autograd.backward(used, [torch.ones_like(o) for o in used])
assert all(p.grad is not None for p in parameters), "a parameter that forward uses has no gradient"
""",
    "cycle": """
import gc, weakref
gc.collect()
gc.disable()
outputs, leaves = call()
node = weakref.ref(next(o for o in outputs if o.requires_grad).grad_fn)
del outputs, leaves
assert node() is None, "the graph outlives its outputs: it waits for the garbage collector"
""",
    "leak": """
import gc, weakref
outputs, leaves = call()
node = weakref.ref(next(o for o in outputs if o.requires_grad).grad_fn)
del outputs, leaves
gc.collect()
assert node() is None, "the graph is never freed, not even by the garbage collector"
""",
}
