import torch
from torch.autograd.function import once_differentiable


class BoxIoU(torch.autograd.Function):
    """IoU of matched boxes (N, 4) in xyxy format with x2 > x1 and y2 > y1; zero if they do not meet."""

    @staticmethod
    def forward(ctx, a, b):
        lt = torch.maximum(a[:, :2], b[:, :2])
        rb = torch.minimum(a[:, 2:], b[:, 2:])
        wh = (rb - lt).clamp(min=0)
        inter = wh.prod(-1)
        union = (a[:, 2:] - a[:, :2]).prod(-1) + (b[:, 2:] - b[:, :2]).prod(-1) - inter
        ctx.save_for_backward(a, b, lt, rb, inter, union)
        return inter / union

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        a, b, lt, rb, inter, union = ctx.saved_tensors
        d_inter = grad_output * (1 / union + inter / union**2)
        d_union = -grad_output * inter / union**2
        d_wh = d_inter[:, None] * (rb - lt).flip(-1)
        grads = []
        tie_lt = 1.0 + (a[:, :2] == b[:, :2]).to(a.dtype)
        tie_rb = 1.0 + (a[:, 2:] == b[:, 2:]).to(a.dtype)
        for box in (a, b):
            d_area = d_union[:, None] * (box[:, 2:] - box[:, :2]).flip(-1)
            g_lt = -d_area - d_wh * (box[:, :2] == lt) / tie_lt
            g_rb = d_area + d_wh * (box[:, 2:] == rb) / tie_rb
            grads.append(torch.cat([g_lt, g_rb], dim=-1))
        return tuple(grads)


gradsmith_inputs = {
    "BoxIoU": lambda: (
        torch.tensor([[0.0, 0.0, 2.0, 3.0], [1.0, 1.0, 4.0, 2.5]], dtype=torch.float64, requires_grad=True),
        torch.tensor([[0.5, 0.7, 2.5, 2.0], [0.2, 0.4, 3.0, 2.0]], dtype=torch.float64, requires_grad=True),
    )
}
