import torch

KIND = "backward walks through time in the order of forward"
WRONG = [("for t in reversed(range(x.shape[0])):", "for t in range(x.shape[0]):")]


class LeakySum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, decay):
        state = torch.zeros_like(x[0])
        states = []
        for t in range(x.shape[0]):
            state = decay * state + x[t]
            states.append(state)
        out = torch.stack(states)
        ctx.save_for_backward(x, decay, out)
        return out

    @staticmethod
    def backward(ctx, grad_output):
        x, decay, out = ctx.saved_tensors
        grad_x = torch.empty_like(x)
        grad_decay = torch.zeros_like(decay)
        running = torch.zeros_like(x[0])
        for t in reversed(range(x.shape[0])):
            running = grad_output[t] + running
            grad_x[t] = running
            if t > 0:
                grad_decay = grad_decay + (running * out[t - 1]).sum()
            running = running * decay
        return grad_x, grad_decay


def _inputs():
    return torch.randn(6, 3, dtype=torch.float64, requires_grad=True), torch.tensor(
        0.7, dtype=torch.float64, requires_grad=True
    )


gradsmith_inputs = {"LeakySum": _inputs}
