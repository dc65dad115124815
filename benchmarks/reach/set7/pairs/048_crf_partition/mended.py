import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class CRFPartition(Function):
    """log Z of a linear chain: emissions (T, K), transitions[i, j] from i to j."""

    @staticmethod
    def forward(ctx, emissions, transitions):
        if emissions.dim() != 2 or emissions.is_complex() or transitions.is_complex() or emissions.size(0) < 1:
            raise TypeError("real (T, K) emissions expected")
        if transitions.shape != (emissions.size(1),) * 2:
            raise ValueError("transitions must be (K, K)")
        alpha = [emissions[0]]
        for t in range(1, emissions.size(0)):
            alpha.append(torch.logsumexp(alpha[-1][:, None] + transitions, 0) + emissions[t])
        log_z = torch.logsumexp(alpha[-1], 0)
        ctx.save_for_backward(emissions, transitions, torch.stack(alpha), log_z)
        return log_z.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        emissions, transitions, alpha, log_z = ctx.saved_tensors
        steps = emissions.size(0)
        beta = torch.zeros_like(alpha)
        pair = torch.zeros_like(transitions)
        for t in range(steps - 2, -1, -1):
            message = transitions + emissions[t + 1] + beta[t + 1]
            beta[t] = torch.logsumexp(message, 1)
            pair += torch.exp(alpha[t][:, None] + message - log_z)
        return grad * torch.exp(alpha + beta - log_z), grad * pair


gradsmith_inputs = {"CRFPartition": lambda: (torch.randn(4, 3, requires_grad=True), torch.randn(3, 3, requires_grad=True))}
