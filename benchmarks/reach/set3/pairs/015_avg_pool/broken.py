import torch
import torch.nn.functional as F


@torch.library.custom_op("set3_015::avg_pool", mutates_args=())
def avg_pool(x: torch.Tensor, size: int, padding: int = 0, count_include_pad: bool = True) -> torch.Tensor:
    """Average pooling of real x (N, L) with windows of `size` and step `size`."""
    if x.dim() != 2 or x.is_complex():
        raise ValueError("x must be real (N, L)")
    return F.avg_pool1d(x[None], size, size, padding, False, count_include_pad)[0].clone()


def setup_context(ctx, inputs, output):
    x, ctx.size, ctx.padding, ctx.include = inputs
    ctx.length = x.shape[1]


def backward(ctx, grad):
    n = grad.shape[1]
    pos = torch.arange(n * ctx.size, device=grad.device).view(n, ctx.size) - ctx.padding
    real = (pos >= 0) & (pos < ctx.length)
    count = ctx.size
    spread = (grad / count).unsqueeze(-1) * real
    gx = grad.new_zeros(grad.shape[0], ctx.length)
    gx = gx.index_add(1, pos[real], spread[:, real])
    return gx, None, None, None


avg_pool.register_autograd(backward, setup_context=setup_context)

gradsmith_inputs = {"avg_pool": lambda: (torch.randn(2, 9, requires_grad=True), 3)}
