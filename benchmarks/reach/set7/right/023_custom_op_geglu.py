import torch
import torch.nn.functional as F


@torch.library.custom_op("gluops::reglu_square", mutates_args=())
def reglu_square(x: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """a * relu(b)^2 where x (+ bias) is split into halves a, b along the last axis."""
    if not x.is_floating_point() or x.size(-1) % 2:
        raise ValueError("real x with an even last axis expected")
    if bias is not None and bias.shape != x.shape[-1:]:
        raise ValueError("bias must have one entry per feature")
    a, b = (x if bias is None else x + bias).chunk(2, -1)
    return a * F.relu(b).square()


@reglu_square.register_fake
def _(x, bias=None):
    return x.new_empty(*x.shape[:-1], x.size(-1) // 2)


def _setup(ctx, inputs, output):
    x, bias = inputs
    ctx.save_for_backward(x, bias)


def _backward(ctx, grad):
    x, bias = ctx.saved_tensors
    a, b = (x if bias is None else x + bias).chunk(2, -1)
    r = F.relu(b)
    grad_x = torch.cat([grad * r.square(), 2 * grad * a * r], -1)
    return grad_x, None if bias is None else grad_x.flatten(0, -2).sum(0) if x.dim() > 1 else grad_x


reglu_square.register_autograd(_backward, setup_context=_setup)

gradsmith_inputs = {"reglu_square": lambda: (torch.randn(3, 6, requires_grad=True), torch.randn(6, requires_grad=True))}
