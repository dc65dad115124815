import torch


class ViterbiScore(torch.autograd.Function):
    """Score of the best label sequence of a chain: unary (T, K), transition (K, K); the best path is unique."""

    @staticmethod
    def forward(ctx, unary, transition):
        score, back = unary[0], []
        for u in unary[1:]:
            best, arg = (score[:, None] + transition).max(0)
            score = best + u
            back.append(arg)
        value, last = score.max(0)
        path = [int(last)]
        for arg in reversed(back):
            path.append(int(arg[path[-1]]))
        ctx.path, ctx.shape = path[::-1], unary.shape
        return value

    @staticmethod
    def backward(ctx, grad_output):
        T, K = ctx.shape
        gu, gt = torch.zeros(T, K, dtype=grad_output.dtype), torch.zeros(K, K, dtype=grad_output.dtype)
        for t, k in enumerate(ctx.path):
            gu[t, k] = 1
            if t:
                gt[ctx.path[t - 1], k] += 1
        return grad_output * gu, grad_output * gt


gradsmith_inputs = {
    "ViterbiScore": lambda: (
        torch.randn(5, 3, dtype=torch.float64, requires_grad=True),
        torch.randn(3, 3, dtype=torch.float64, requires_grad=True),
    )
}
