"""What every reproduction script begins with: `call`, `gradients`, `close`."""

from __future__ import annotations

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

def dot(a, b):
    """The real inner product: for complex numbers Re<a, b>, PyTorch's convention for gradients."""
    wide = a.is_complex() or b.is_complex()
    both = [torch.view_as_real(t.to(torch.complex128).resolve_conj()) if wide else t.double() for t in (a, b)]
    return float((both[0] * both[1]).sum())

def close(a, b, tolerance=1e-4):
    size = max([float(x.detach().abs().max()) for x in a + b if x.numel()] + [1e-30])
    return all(torch.allclose(x, y.to(x.dtype), rtol=tolerance, atol=tolerance * size, equal_nan=True) for x, y in zip(a, b))
'''
