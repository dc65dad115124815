import torch
from torch.autograd.function import once_differentiable


class TanhRNN(torch.autograd.Function):
    """h[t] = tanh(w x[t] + u h[t-1]) for real x (T, I), h (H,), w (H, I), u (H, H); all states and the last one."""

    @staticmethod
    def forward(ctx, x, h, w, u):
        n = h.numel()
        if x.dim() != 2 or h.dim() != 1 or w.shape != (n, x.shape[1]) or u.shape != (n, n) or x.is_complex() or len(x) == 0:
            raise ValueError("x (T, I), h (H,), w (H, I), u (H, H)")
        states = [h]
        for row in x:
            states.append(torch.tanh(w @ row + u @ states[-1]))
        ctx.save_for_backward(x, w, u, torch.stack(states))
        return torch.stack(states[1:]), states[-1].clone()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad, grad_last):
        x, w, u, states = ctx.saved_tensors
        carry = grad_last
        gates = torch.empty_like(grad)
        for k in reversed(range(x.shape[0])):
            gates[k] = (carry + grad[k]) * (1 - states[k + 1] ** 2)
            carry = u.t() @ gates[k]
        return gates @ w, carry, gates.t() @ x, gates.t() @ states[:-1]


gradsmith_inputs = {
    "TanhRNN": lambda: (
        torch.randn(4, 2, requires_grad=True),
        torch.randn(3, requires_grad=True),
        torch.randn(3, 2, requires_grad=True),
        torch.randn(3, 3, requires_grad=True),
    )
}
