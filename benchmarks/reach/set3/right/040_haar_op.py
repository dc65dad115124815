import torch

_ROOT = 0.5**0.5


@torch.library.custom_op("set3_right::haar", mutates_args=())
def haar(x: torch.Tensor, levels: int) -> torch.Tensor:
    """Orthonormal Haar transform of x (N, L), L a multiple of 2^levels; coarse part first."""
    if x.dim() != 2 or levels < 0 or x.shape[1] % 2**levels:
        raise ValueError("x (N, L), L a multiple of 2^levels")
    out = x.clone()
    n = x.shape[1]
    for _ in range(levels):
        a, b = out[:, 0:n:2].clone(), out[:, 1:n:2].clone()
        out[:, : n // 2] = (a + b) * _ROOT
        out[:, n // 2 : n] = (a - b) * _ROOT
        n //= 2
    return out


def _setup(ctx, inputs, output):
    ctx.levels = inputs[1]


def _backward(ctx, grad):
    n = grad.shape[1] // 2**ctx.levels
    for _ in range(ctx.levels):
        a, b = grad[:, :n], grad[:, n : 2 * n]
        pair = torch.stack(((a + b) * _ROOT, (a - b) * _ROOT), -1).flatten(1)
        grad = torch.cat((pair, grad[:, 2 * n :]), 1)
        n *= 2
    return grad.clone(), None


haar.register_autograd(_backward, setup_context=_setup)

gradsmith_inputs = {"haar": lambda: (torch.randn(2, 8, requires_grad=True), 2)}
