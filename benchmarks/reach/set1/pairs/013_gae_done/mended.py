import torch


class GAE(torch.autograd.Function):
    """Generalised advantage estimate, differentiable in the values (T+1,)."""

    @staticmethod
    def forward(ctx, values, rewards, done, gamma, lam):
        alive = 1.0 - done.to(values.dtype)
        T = rewards.shape[0]
        adv = torch.empty_like(rewards)
        run = values.new_zeros(())
        for t in range(T - 1, -1, -1):
            delta = rewards[t] + gamma * alive[t] * values[t + 1] - values[t]
            run = delta + gamma * lam * alive[t] * run
            adv[t] = run
        ctx.save_for_backward(alive)
        ctx.gl = gamma, lam
        return adv

    @staticmethod
    def backward(ctx, g):
        (alive,) = ctx.saved_tensors
        gamma, lam = ctx.gl
        T = g.shape[0]
        grad_values = g.new_zeros(T + 1)
        grad_rewards = torch.empty_like(g)
        carry = g.new_zeros(())
        for t in range(T):
            carry = g[t] + carry
            grad_rewards[t] = carry
            grad_values[t] -= carry
            grad_values[t + 1] += gamma * alive[t] * carry
            carry = gamma * lam * alive[t] * carry
        return grad_values, grad_rewards, None, None, None


gradsmith_inputs = {
    "GAE": lambda: (
        torch.randn(7, requires_grad=True),
        torch.randn(6, requires_grad=True),
        torch.zeros(6, dtype=torch.bool),
        0.99,
        0.95,
    )
}
