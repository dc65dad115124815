"""Bodies that run the subject as somebody's model would: compiled, vectorised, recomputed, elsewhere."""

from __future__ import annotations

from collections.abc import Mapping

BODIES: Mapping[str, str] = {
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
    "jacrev": """
values = [t for t in tree_leaves((inputs, keywords)) if wants(t)]
outputs, leaves = call()
v = normal(outputs)
expected = gradients(outputs, leaves, v)
def used(*tensors):
    given = iter(tensors)
    args, kwargs = tree_map(lambda t: next(given) if wants(t) else t, (inputs, keywords))
    results = [o for o in tree_leaves(fn(*args, **kwargs)) if isinstance(o, torch.Tensor)]
    return [o for o, mine in zip(results, outputs) if mine.requires_grad]
numbers, plain = tuple(range(len(values))), [x.detach() for x in values]
graded = torch.func.grad(lambda *t: sum((o * g).sum() for o, g in zip(used(*t), v)), argnums=numbers)(*plain)
assert close(expected, list(graded)), "torch.func.grad gives another gradient"
rows = torch.func.jacrev(used, argnums=numbers)(*plain)
found = [sum(torch.tensordot(g, row[i], g.ndim) for g, row in zip(v, rows)) for i in numbers]
assert close(expected, found), "torch.func.jacrev gives another gradient"
""",
}
