import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class PackedTanhRNN(Function):
    """h <- tanh(x[t] + h W) while t < length, then h is kept. Returns the last state (B, H)."""

    @staticmethod
    def forward(ctx, x, w, lengths):
        if x.dim() != 3 or x.is_complex() or w.is_complex():
            raise TypeError("x must be a real (T, B, H) tensor")
        if lengths.shape != (x.size(1),) or (lengths.numel() and int(lengths.max()) > x.size(0)):
            raise ValueError("one length per sequence, at most T")
        h = x.new_zeros(x.size(1), x.size(2))
        states = [h]
        for t in range(x.size(0)):
            alive = (t < lengths)[:, None]
            h = torch.where(alive, torch.tanh(x[t] + h @ w), h)
            states.append(h)
        ctx.save_for_backward(w, lengths, torch.stack(states))
        return h.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_h):
        w, lengths, states = ctx.saved_tensors
        steps = states.size(0) - 1
        grad_x = torch.zeros_like(states[1:])
        grad_w = torch.zeros_like(w)
        carry = grad_h
        for t in range(steps - 1, -1, -1):
            alive = (t < lengths)[:, None].to(carry.dtype)
            pre = carry * alive * (1 - states[t + 1] ** 2)
            grad_x[t] = pre
            grad_w += states[t].t() @ pre
            carry = pre @ w.t() + carry * (1 - alive)
        return grad_x, grad_w, None


gradsmith_inputs = {
    "PackedTanhRNN": lambda: (
        torch.randn(4, 3, 2, requires_grad=True),
        torch.randn(2, 2, requires_grad=True),
        torch.tensor([4, 4, 4]),
    )
}
