import torch


class WeightNorm(torch.autograd.Function):
    """w = g * v / |v|, one length per row."""

    @staticmethod
    def forward(ctx, v, g):
        if v.dim() != 2 or g.shape != v.shape[:1]:
            raise ValueError("v must be (out, in) and g (out,)")
        if not bool((v.square().sum(1) > 0).all()):
            raise ValueError("v has a zero row")
        ctx.save_for_backward(v, g)
        return v * (g / v.norm(dim=1)).unsqueeze(1)

    @staticmethod
    def backward(ctx, grad_w):
        v, g = ctx.saved_tensors
        norm = v.norm(dim=1, keepdim=True)
        along = (grad_w * v).sum(1, keepdim=True)
        grad_g = (along / norm).squeeze(1)
        grad_v = g.unsqueeze(1) / norm * (grad_w - along * v / norm.square())
        return grad_v, grad_g


def example():
    torch.manual_seed(0)
    v = torch.nn.functional.normalize(torch.randn(3, 4, dtype=torch.float64), dim=1)
    return v.requires_grad_(), torch.rand(3, dtype=torch.float64, requires_grad=True)


gradsmith_inputs = {"WeightNorm": example}
