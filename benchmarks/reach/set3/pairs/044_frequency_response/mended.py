import torch


class FrequencyResponse(torch.autograd.Function):
    """x * response for a real or complex x (..., F) and a complex response (F,) of the same precision."""

    @staticmethod
    def forward(ctx, x, response):
        if not response.is_complex() or x.shape[-1:] != response.shape or x.dim() < 1:
            raise ValueError("x (..., F), response complex (F,)")
        if x.to(response.dtype).dtype != torch.promote_types(x.dtype, response.dtype):
            raise ValueError("x is more precise than the response")
        ctx.save_for_backward(x, response)
        return x * response

    @staticmethod
    def backward(ctx, grad):
        x, response = ctx.saved_tensors
        gx = grad * response.conj()
        return gx if x.is_complex() else gx.real, (grad * x.conj()).sum_to_size(response.shape)


gradsmith_inputs = {
    "FrequencyResponse": lambda: (
        torch.randn(3, 4, requires_grad=True),
        torch.randn(4, dtype=torch.complex64, requires_grad=True),
    )
}
