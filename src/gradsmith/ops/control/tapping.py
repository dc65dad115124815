"""`grad_tap`: y = x, dx = g, and what g was like is written down.

Statistics stay on the device as six numbers per step, in a ring of fixed size: no host sync, no growing list, and the
write is one that torch.compile can have in its graph. They are read, and turned into Python numbers, on request.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from gradsmith.ops.asked import floating
from gradsmith.ops.route import applier


@dataclass(frozen=True)
class GradStats:
    """One gradient, as it came by."""

    step: int
    mean: float
    rms: float
    largest: float
    zeros: float
    """Share of elements that are exactly 0."""
    not_finite: float
    """Share of elements that are NaN or infinite."""


def _statistics(grad: Tensor) -> Tensor:
    flat = grad.detach().abs() if grad.is_complex() else grad.detach()
    flat = flat.float() if flat.dtype in (torch.float16, torch.bfloat16) else flat
    many = max(flat.numel(), 1)
    length = torch.linalg.vector_norm(flat)
    largest = flat.abs().amax() if flat.numel() else length
    zeros, strange = (flat == 0).sum() / many, 1 - torch.isfinite(flat).sum() / many
    return torch.stack([flat.sum() / many, length / many**0.5, largest, zeros, strange]).float()


class _Record(torch.autograd.Function):
    """Writes the statistics of a gradient down and hands the gradient on; under vmap, those of the whole batch."""

    @staticmethod
    def forward(grad: Tensor, history: Tensor, count: Tensor) -> Tensor:
        place = (count % history.shape[0]).reshape(1)
        history.index_copy_(0, place, _statistics(grad).unsqueeze(0))
        count.add_(1)
        return grad.view_as(grad)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, again: Tensor) -> tuple[Tensor, None, None]:
        return again, None, None

    @staticmethod
    def vmap(info: Any, in_dims: Any, grad: Tensor, history: Tensor, count: Tensor) -> Any:
        return _record(grad, history, count), in_dims[0]


_record = applier(_Record)


class Tap(torch.autograd.Function):
    """The identity that has the statistics of its gradient written down."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, history: Tensor, count: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        # Not saved: they are written to between forward and backward, on purpose.
        ctx.written = inputs[1:]

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None, None]:
        return _record(grad_output, *ctx.written), None, None


_tap = applier(Tap)


class GradTap(nn.Module):
    """The identity that keeps statistics of the gradient, one entry per backward, the last `keep` of them.

    >>> tap = GradTap("after conv1", keep=100)
    >>> x = torch.ones(4, requires_grad=True)
    >>> (2 * tap(x)).sum().backward()
    >>> tap.latest.rms, tap.latest.zeros
    (2.0, 0.0)
    >>> tap.remove(); tap(x) is x
    True
    """

    history: Tensor
    count: Tensor

    def __init__(self, name: str = "", keep: int = 1000) -> None:
        super().__init__()
        if keep < 1:
            raise ValueError(f"GradTap: keep must be at least 1; it is {keep}.")
        self.name, self.on = name, True
        # Not persistent: a checkpoint of the model does not change because somebody looked at gradients.
        self.register_buffer("history", torch.zeros(keep, 5), persistent=False)
        self.register_buffer("count", torch.tensor(0), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        if not self.on or not x.requires_grad:
            return x
        floating(x, "grad_tap")
        result: Tensor = _tap(x, self.history, self.count)
        return result

    def _apply(self, fn: Any, recurse: bool = True) -> GradTap:
        """Statistics move with the module to another device, and stay in float32 when it is converted."""
        history = self.history
        super()._apply(fn, recurse)
        place = self.history.device
        self.history = torch.zeros_like(history, device=place) if history.is_meta else history.to(place)
        return self

    def remove(self) -> None:
        """From the next forward on, the tap does nothing; what it has written stays readable."""
        self.on = False

    def restore(self) -> None:
        """Write again."""
        self.on = True

    @property
    def statistics(self) -> list[GradStats]:
        """What is kept, the oldest first."""
        count, rows = int(self.count), self.history.tolist()
        first = max(0, count - len(rows))
        return [GradStats(step, *rows[step % len(rows)]) for step in range(first, count)]

    @property
    def latest(self) -> GradStats | None:
        """The last gradient; None before the first backward."""
        found = self.statistics
        return found[-1] if found else None

    def extra_repr(self) -> str:
        return f"{self.name!r}, {'on' if self.on else 'removed'}"


def grad_tap(x: Tensor, tap: GradTap) -> Tensor:
    """x itself; statistics of its gradient go to `tap`.

    >>> tap = GradTap()
    >>> grad_tap(torch.ones(3, requires_grad=True), tap).sum().backward()
    >>> len(tap.statistics)
    1
    """
    if not isinstance(tap, GradTap):
        raise TypeError(f"grad_tap: tap must be a GradTap, not {type(tap).__name__}.")
    result: Tensor = tap(x)
    return result
