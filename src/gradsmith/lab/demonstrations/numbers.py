"""Bodies that compare the gradient, or its gradient, with numbers."""

from __future__ import annotations

from collections.abc import Mapping

_GRADIENT = """
outputs, leaves = call()
v = normal(outputs)
claimed = gradients(outputs, leaves, v)
if focus >= 0 and not leaves[focus].is_complex():  # one element of one input
    u = [torch.zeros_like(x) for x in leaves]
    u[focus][element] = 1
else:
    u = [torch.randn(x.shape, dtype=torch.complex128 if x.is_complex() else torch.float64).to(x.dtype) for x in leaves]
differentiable = [o.requires_grad for o in outputs]
def f(t):
    moved, _ = call([x.detach() + t * d for x, d in zip(leaves, u)])
    return sum(dot(a, b) for a, b in zip([o.detach() for o, d in zip(moved, differentiable) if d], v))
h = 1e-5 if leaves[0].dtype in (torch.float64, torch.complex128) else 1e-2
left, right = (f(0) - f(-h)) / h, (f(h) - f(0)) / h
says = sum(dot(g, d) for g, d in zip(claimed, u))
slack = 1e-3 * (abs(left) + abs(right) + abs(says)) / 2 + 1e-7
print("backward says", says, "and forward moves by", left, "on the left and", right, "on the right")
assert min(left, right) - slack <= says <= max(left, right) + slack, "the gradient is not the derivative"
"""

BODIES: Mapping[str, str] = {
    "gradient": _GRADIENT,
    "finite": """
outputs, leaves = call()
assert all(torch.isfinite(o).all() for o in outputs)
found = gradients(outputs, leaves, normal(outputs))
print(found)
assert all(torch.isfinite(g).all() for g in found), "the outputs are finite, the gradient is not"
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
    "float16": """
outputs, leaves = call()
found = gradients(outputs, leaves, normal(outputs))
print(outputs, found)
assert not any(g.isnan().any() for g in found), "an intermediate result overflows"
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
