import torch


class ZBufferSplat(torch.autograd.Function):
    """Write the colour of the nearest point into each pixel; pixel (N,) indices, depth (N,) distinct, color (N, C)."""

    @staticmethod
    def forward(ctx, color, pixel, depth, num_pixels):
        image = color.new_zeros(num_pixels, color.size(1))
        winner = torch.full((num_pixels,), -1, dtype=torch.long)
        for i in torch.argsort(depth, descending=True).tolist():
            image[pixel[i]] = color[i]
            winner[pixel[i]] = i
        ctx.save_for_backward(pixel, winner)
        return image

    @staticmethod
    def backward(ctx, grad_image):
        pixel, winner = ctx.saved_tensors
        grad_color = grad_image[pixel]
        visible = winner[pixel] == torch.arange(pixel.numel())
        grad_color = grad_color * visible[:, None]
        return grad_color, None, None, None


gradsmith_inputs = {
    "ZBufferSplat": lambda: (
        torch.rand(4, 3, dtype=torch.float64, requires_grad=True),
        torch.tensor([5, 0, 3, 7]),
        torch.tensor([1.0, 2.0, 0.5, 4.0]),
        8,
    )
}
