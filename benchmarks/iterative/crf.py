"""The log partition function of a linear chain, by the forward algorithm; its gradient are the marginals."""

import torch


class LogPartition(torch.autograd.Function):
    """log of the sum over all label sequences of exp(score), for emissions (time, batch, label)."""

    @staticmethod
    def forward(ctx, emissions, transitions):
        alpha = emissions[0]
        alphas = [alpha]
        for emission in emissions[1:].unbind():
            alpha = torch.logsumexp(alpha.unsqueeze(-1) + transitions, dim=1) + emission
            alphas.append(alpha)
        result = torch.logsumexp(alpha, dim=1)
        ctx.save_for_backward(emissions, transitions, torch.stack(alphas), result)
        return result

    @staticmethod
    def backward(ctx, grad_output):
        emissions, transitions, alphas, result = ctx.saved_tensors
        beta = torch.zeros_like(alphas[0])
        marginals = [(alphas[-1] - result.unsqueeze(1)).exp()]
        grad_transitions = torch.zeros_like(transitions)
        for t in range(emissions.shape[0] - 1, 0, -1):
            ahead = (beta + emissions[t]).unsqueeze(1) + transitions
            pair = (alphas[t - 1].unsqueeze(-1) + ahead - result.view(-1, 1, 1)).exp()
            grad_transitions = grad_transitions + (grad_output.view(-1, 1, 1) * pair).sum(0)
            beta = torch.logsumexp(ahead, dim=-1)
            marginals.append((alphas[t - 1] + beta - result.unsqueeze(1)).exp())
        return torch.stack(marginals[::-1]) * grad_output.view(1, -1, 1), grad_transitions


def sentence():
    emissions = torch.randn(6500, 2, 4, dtype=torch.float64, requires_grad=True)
    return emissions, torch.randn(4, 4, dtype=torch.float64, requires_grad=True)


gradsmith_inputs = {"LogPartition": sentence}
