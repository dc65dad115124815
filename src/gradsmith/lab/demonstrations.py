"""The bodies of reproduction scripts: plain PyTorch, each raises while its defect is there.

They share a prelude (`call`, `gradients`) and know `fn`, `inputs`, `keywords`, `seed`, `focus`, `element`.
"""

from __future__ import annotations

from collections.abc import Mapping

PRELUDE = '''
def declared(entry, index):
    made = (entry[index] if isinstance(entry, list) else entry)
    made = made() if callable(made) else made
    return ((), made) if isinstance(made, dict) else (tuple(made) if isinstance(made, (tuple, list)) else (made,), {})

def wants(t):
    return isinstance(t, torch.Tensor) and t.requires_grad

def call(values=None, only=None, function=None):
    """The outputs, and the tensors whose gradient is asked for (fresh ones every time)."""
    given, leaves, same = iter(values or ()), [], {}
    def copy(t):
        if not isinstance(t, torch.Tensor):
            return t
        if not t.requires_grad:
            return t.detach().clone()
        if id(t) in same:
            return same[id(t)]
        x = (next(given) if values else t).detach().clone()
        leaves.append(x.requires_grad_(only is None or len(leaves) in only))
        same[id(t)] = x.clone() if x.requires_grad else x
        return same[id(t)]
    args, kwargs = tree_map(copy, (inputs, keywords))
    torch.manual_seed(seed)
    outputs = [o for o in tree_leaves((function or fn)(*args, **kwargs)) if isinstance(o, torch.Tensor)]
    return outputs, leaves

def normal(outputs, k=0):
    g = torch.Generator().manual_seed(seed + k)
    wide = lambda o: torch.complex128 if o.is_complex() else torch.float64
    return [torch.randn(o.shape, generator=g, dtype=wide(o)).to(o.dtype) for o in outputs if o.requires_grad]

def gradients(outputs, leaves, v, **options):
    asked = [x for x in leaves if x.requires_grad]
    found = torch.autograd.grad([o for o in outputs if o.requires_grad], asked, v, allow_unused=True, **options)
    return [torch.zeros_like(x) if g is None else g for x, g in zip(asked, found)]

def close(a, b, tolerance=1e-4):
    size = max([float(x.detach().abs().max()) for x in a + b if x.numel()] + [1e-30])
    return all(torch.allclose(x, y.to(x.dtype), rtol=tolerance, atol=tolerance * size, equal_nan=True) for x, y in zip(a, b))
'''

_GRADIENT = """
outputs, leaves = call()
v = normal(outputs)
claimed = gradients(outputs, leaves, v)
if focus >= 0:  # one element of one input
    u = [torch.zeros_like(x) for x in leaves]
    u[focus][element] = 1
else:
    u = [torch.randn(x.shape, dtype=torch.float64).to(x.dtype) for x in leaves]
differentiable = [o.requires_grad for o in outputs]
def f(t):
    moved, _ = call([x.detach() + t * d for x, d in zip(leaves, u)])
    return sum(float((a.double() * b.double()).sum()) for a, b in zip([o.detach() for o, d in zip(moved, differentiable) if d], v))
h = 1e-5 if leaves[0].dtype == torch.float64 else 1e-2
left, right = (f(0) - f(-h)) / h, (f(h) - f(0)) / h
says = sum(float((g.double() * d.double()).sum()) for g, d in zip(claimed, u))
slack = 1e-3 * (abs(left) + abs(right) + abs(says)) / 2 + 1e-7
print("backward says", says, "and forward moves by", left, "on the left and", right, "on the right")
assert min(left, right) - slack <= says <= max(left, right) + slack, "the gradient is not the derivative"
"""

BODIES: Mapping[str, str] = {
    "gradient": _GRADIENT,
    "run": """
outputs, leaves = call()
gradients(outputs, leaves, normal(outputs))
""",
    "finite": """
outputs, leaves = call()
assert all(torch.isfinite(o).all() for o in outputs)
found = gradients(outputs, leaves, normal(outputs))
print(found)
assert all(torch.isfinite(g).all() for g in found), "the outputs are finite, the gradient is not"
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
    "uninitialised": """
torch.use_deterministic_algorithms(True, warn_only=True)  # fills torch.empty with NaN
outputs, leaves = call()
found = gradients(outputs, leaves, normal(outputs))
print(outputs, found)
assert not any(t.isnan().any() for t in outputs + found), "uninitialised memory reaches the result"
""",
    "tie": """
outputs, leaves = call()
v = normal(outputs)
claimed = gradients(outputs, leaves, v)
for number, x in enumerate(leaves):
    if x.ndim == 0:
        continue
    rows = x.detach().reshape(-1, x.shape[-1])
    for r, row in enumerate(rows):
        for value in row.unique():
            u = torch.zeros_like(rows)
            u[r] = (row == value).to(u.dtype)
            u = u.view_as(x)
            def f(t):
                moved, _ = call([y.detach() + t * u if k == number else y.detach() for k, y in enumerate(leaves)])
                return sum(float((o.detach() * w).sum()) for o, w in zip([o for o in moved if o.requires_grad], v))
            left, right = (f(0) - f(-1e-6)) / 1e-6, (f(1e-6) - f(0)) / 1e-6
            says = float((claimed[number] * u).sum())
            slack = 1e-3 * (abs(left) + abs(right) + abs(says)) + 1e-7
            print("equal elements move forward by", left, "to", right, "and their gradients add up to", says)
            assert min(left, right) - slack <= says <= max(left, right) + slack, "ties get the wrong share"
""",
    "overflow": """
outputs, leaves = call()
found = gradients(outputs, leaves, normal(outputs))
print(outputs, found)
assert not any(g.isnan().any() for g in found), "an intermediate result overflows"
""",
    "compile": """
outputs, leaves = call()
v = normal(outputs)
eager = gradients(outputs, leaves, v)
compiled = torch.compile(lambda *args, **kwargs: fn(*args, **kwargs), backend="aot_eager")
results, again = call(function=compiled)
graph = gradients(results, again, v)
print(eager, graph)
assert close([o.detach() for o in outputs] + eager, [o.detach() for o in results] + graph), "compiled differs from eager"
""",
    "vmap": """
values = [t for t in tree_leaves((inputs, keywords)) if wants(t)]
def pure(*tensors):
    given = iter(tensors)
    args, kwargs = tree_map(lambda t: next(given) if wants(t) else t, (inputs, keywords))
    return tuple(o for o in tree_leaves(fn(*args, **kwargs)) if isinstance(o, torch.Tensor))
stacked = [torch.stack([x.detach() * (1 + 0.1 * k) for k in range(3)]).requires_grad_() for x in values]
loop = [torch.stack(column) for column in zip(*(pure(*(x[k] for x in stacked)) for k in range(3)))]
batch = list(torch.func.vmap(pure)(*stacked))
assert close([o.detach() for o in loop], [o.detach() for o in batch]), "vmap gives another output than a loop"
assert close(gradients(loop, stacked, normal(loop)), gradients(batch, stacked, normal(batch))), "... another gradient"
""",
    "jvp": """
import torch.autograd.forward_ad as forward_ad
outputs, leaves = call()
v = normal(outputs)
u = [torch.randn(x.shape, dtype=torch.float64).to(x.dtype) for x in leaves]
backwards = sum(float((g * d).sum()) for g, d in zip(gradients(outputs, leaves, v), u))
values = [t for t in tree_leaves((inputs, keywords)) if wants(t)]
with forward_ad.dual_level():
    duals = iter([forward_ad.make_dual(x.detach(), d) for x, d in zip(values, u)])
    args, kwargs = tree_map(lambda t: next(duals) if wants(t) else t, (inputs, keywords))
    tangents = [forward_ad.unpack_dual(o).tangent for o in tree_leaves(fn(*args, **kwargs)) if isinstance(o, torch.Tensor)]
forwards = sum(float((t * w).sum()) for t, w in zip(tangents, v) if t is not None)
print("jvp says", forwards, "backward says", backwards)
assert abs(forwards - backwards) <= 1e-5 * (abs(forwards) + abs(backwards)) + 1e-9, "jvp and backward disagree"
""",
    "checkpoint": """
import random
from torch.utils.checkpoint import checkpoint
random.seed(seed)
outputs, leaves = call()
v = normal(outputs)
expected = gradients(outputs, leaves, v)
for kind in (False, True):
    random.seed(seed)
    results, again = call(function=lambda *a, **k: checkpoint(fn, *a, use_reentrant=kind, **k))
    torch.autograd.backward([o for o in results if o.requires_grad], v)
    found = [torch.zeros_like(x) if x.grad is None else x.grad for x in again]
    assert close(expected, found), "checkpointing gives another gradient"
""",
    "hooks": """
outputs, leaves = call()
v = normal(outputs)
expected = gradients(outputs, leaves, v)
with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t.clone()):
    results, again = call()
    assert close(expected, gradients(results, again, v)), "hooks that copy saved tensors change the gradient"
""",
    "thread": """
import threading
outputs, leaves = call()
v = normal(outputs)
expected = gradients(outputs, leaves, v)
results, again = call()
found = []
def work():
    try:
        found.append(gradients(results, again, v))
    except BaseException as error:
        found.append(error)
thread = threading.Thread(target=work)
thread.start()
thread.join()
assert isinstance(found[0], list) and close(expected, found[0]), f"backward in another thread: {found[0]}"
""",
    "slope": """
like = fn.__self__.__gradsmith_surrogate__.like  # the function whose slope the gradient claims
outputs, leaves = call()
v = normal(outputs)
claimed = gradients(outputs, leaves, v)
results, again = call(function=like)
assert close(gradients(results, again, v), claimed, 1e-6), "the gradient is not the slope of the function it claims"
""",
    "second": """
outputs, leaves = call()
v = normal(outputs)
w = [torch.randn(x.shape, dtype=torch.float64).to(x.dtype) for x in leaves]
u = [torch.randn(x.shape, dtype=torch.float64).to(x.dtype) for x in leaves]
def slope(t):
    moved, xs = call([x.detach() + t * d for x, d in zip(leaves, u)])
    return sum(float((g * a).sum()) for g, a in zip(gradients(moved, xs, v), w))
first = gradients(outputs, leaves, v, create_graph=True)
total = sum((g * a).sum() for g, a in zip(first, w))
second = torch.autograd.grad(total, leaves, allow_unused=True)
says = sum(float((g * d).sum()) for g, d in zip(second, u) if g is not None)
true = (slope(1e-5) - slope(-1e-5)) / 2e-5
print("autograd says", says, "the gradient moves by", true)
assert abs(says - true) <= 1e-4 * (abs(says) + abs(true)) + 1e-8, "the gradient of the gradient is wrong"
""",
}

# Rules not listed here are shown by comparing the gradient with differences of forward.
BY_RULE: Mapping[str, str] = {
    "backward-raised": "run",
    "checkpoint-mismatch": "checkpoint",
    "class-state": "state",
    "compile-mismatch": "compile",
    "distributed-mismatch": "none",  # needs a launcher; the finding names it
    "forward-raised": "run",
    "frozen-input": "subsets",
    "gradient-shape": "run",
    "hidden-parameter": "hidden",
    "hook-mismatch": "hooks",
    "inplace-grad": "grad_output",
    "inplace-input": "input",
    "inplace-saved": "saved",
    "intermediate-saved": "second",
    "jvp-mismatch": "jvp",
    "layout-dependent": "layout",
    "nonfinite-gradient": "finite",
    "nonlinear-backward": "linear",
    "not-repeatable": "repeat",
    "output-view-saved": "leak",
    "overflow": "overflow",
    "random-backward": "random",
    "reference-cycle": "cycle",
    "return-count": "run",
    "surrogate-slope": "slope",
    "tensor-on-ctx": "leak",
    "thread-bound": "thread",
    "tie-gradient": "tie",
    "uninitialised-memory": "uninitialised",
    "unused-output": "unused",
    "vmap-mismatch": "vmap",
    "wrong-second-order": "second",
}
