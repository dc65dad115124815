"""The last layer of a language model and its loss, in chunks of rows: the N x V logits never exist.

    loss = cross_entropy(x W^T + b, target)        dx = dz W        dW = dz^T x        db = sum of dz

With reduction "mean" or "sum" the gradients are made in forward, chunk by chunk, while the logits are at hand; backward
only scales them. With "none" the weights of the rows are not known before backward, so it makes the logits again.
A second derivative takes the plain way: the full logits under autograd. In torch.compile's graph the chunks are one
operator, because a loop over chunks of a weight's product is nothing that a compiler would fuse.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gradsmith.native.products import add_matmul, matmul
from gradsmith.ops.asked import linear
from gradsmith.ops.cross_entropy_rows import Terms, rows
from gradsmith.ops.route import has_memory, in_memory, is_compiling, transformed, without_autocast

_CHUNK_ELEMENTS = (
    1 << 24
)  # logits at a time: 64 MB in float32; below, adding to the gradient of the weight shows in the time


@dataclass(frozen=True)
class Options:
    """How the loss is made of the logits; the same for every chunk."""

    ignore_index: int
    label_smoothing: float
    softcap: float
    z_loss: float
    reduction: str
    chunk: int


class _LinearCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, target: Tensor, classes: Tensor | None, options: Options) -> Tensor:  # fmt: skip
        ctx.options = options
        wanted = (ctx.needs_input_grad[0], ctx.needs_input_grad[1], ctx.needs_input_grad[2])
        early = options.reduction != "none" and any(wanted)
        loss, made = _passes(x, weight, bias, target, classes, options, wanted if early else (False,) * 3, None)
        ctx.save_for_backward(x, weight, bias, target, classes, *made)
        return loss

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        x, weight, bias, target, classes, *early = ctx.saved_tensors
        wanted = ctx.needs_input_grad[:3]
        again = torch.is_grad_enabled()
        if again or (
            ctx.options.reduction == "none" and not has_memory(grad)
        ):  # a batch of them: is_grads_batched=True
            with torch.enable_grad():
                own = [t if again or t is None else t.detach().requires_grad_() for t in (x, weight, bias)]
                loss = reference(own[0], own[1], own[2], target, classes, ctx.options)
            given = [t for t, asked in zip(own, wanted) if asked]
            found = iter(torch.autograd.grad(loss, given, grad, create_graph=again))
            return *(next(found) if asked else None for asked in wanted), None, None, None
        if ctx.options.reduction == "none":
            made = _passes(x, weight, bias, target, classes, ctx.options, wanted, grad)[1]
        else:
            made = [None if part is None else part * grad for part in early]
        return *made, None, None, None


def _passes(
    x: Tensor, weight: Tensor, bias: Tensor | None, target: Tensor, classes: Tensor | None, options: Options,
    wanted: Any, scale: Tensor | None,
) -> tuple[Tensor, list[Tensor | None]]:  # fmt: skip
    """The loss, and the gradients that are wanted, one chunk of rows after the other."""
    wide = torch.float32 if x.dtype in (torch.float16, torch.bfloat16) else x.dtype
    counts = target != options.ignore_index
    target = torch.where(counts, target, -1)
    chosen = target.clamp(min=0)
    row_weight = torch.ones(target.shape, dtype=wide, device=x.device) if classes is None else classes[chosen].to(wide)
    row_weight = torch.where(counts, row_weight, 0)
    mean, many = options.reduction == "mean", int(counts.sum())
    # Without a row that counts the mean is 0 / 0; so is, as in torch, that of rows whose classes all have weight 0.
    divisor = float(row_weight.sum()) if mean else 1.0
    ce = 1 / divisor if divisor else float("nan")
    z_loss = 1 / many if mean and many else 1.0
    weight_sum = float(weight.shape[0]) if classes is None else float(classes.sum())
    terms = Terms(options.softcap, options.label_smoothing, weight_sum, ce, options.z_loss * z_loss)
    gradients: list[Tensor | None] = [
        torch.empty_like(x, memory_format=torch.contiguous_format) if wanted[0] else None,
        torch.zeros(weight.shape, dtype=wide, device=x.device) if wanted[1] else None,
        torch.zeros(weight.shape[0], dtype=wide, device=x.device) if wanted[2] else None,
    ]
    dx, dw, db = gradients
    kinds = None if classes is None else classes.to(wide).contiguous()
    scale = None if scale is None else scale.to(wide).contiguous()
    # Products of half precision, of other devices and those that a mode should see are torch's own.
    product, add_product = (matmul, add_matmul) if in_memory(x, weight, small=True) else (_mm, Tensor.addmm_)
    losses, room = [], x.new_empty(min(options.chunk, x.shape[0]), weight.shape[0])
    for first in range(0, x.shape[0], options.chunk):
        part = x[first : first + options.chunk]
        place = room[: part.shape[0]]
        z = product(part, weight.t(), place).to(wide)
        if bias is not None:
            z.add_(bias)
        here = slice(first, first + options.chunk)
        grad = any(wanted)
        losses.append(
            rows(z, target[here], row_weight[here], kinds, terms, None if scale is None else scale[here], grad)
        )
        if not grad:
            continue
        dz = z.to(x.dtype)
        if dx is not None:
            product(dz, weight, dx[here])
        if dw is not None and wide == x.dtype:
            add_product(dw, dz.t(), part)
        elif dw is not None:
            dw.add_(dz.t() @ part)
        if db is not None:
            db.add_(z.sum(0))
    loss = torch.cat(losses) if losses else x.new_zeros(0, dtype=wide)
    total = loss if options.reduction == "none" else loss.sum()
    if mean and not divisor:
        total = total + float("nan")
    return total, [None if g is None else g.to(x.dtype) for g in gradients]


def _mm(a: Tensor, b: Tensor, out: Tensor) -> Tensor:
    return torch.mm(a, b, out=out)


_library = torch.library.Library("gradsmith_ops", "FRAGMENT")
_library.define(
    "linear_cross_entropy(Tensor x, Tensor weight, Tensor? bias, Tensor target, Tensor? classes, Tensor? scale, int ignore_index, "
    "float label_smoothing, float softcap, float z_loss, str reduction, int chunk, bool[] wanted) -> (Tensor, Tensor, Tensor, Tensor)"
)


def _kernel(x: Tensor, weight: Tensor, bias: Any, target: Tensor, classes: Any, scale: Any, *options: Any) -> Any:
    loss, made = _passes(x, weight, bias, target, classes, Options(*options[:-1]), options[-1], scale)
    return loss, *(x.new_empty(0) if part is None else part for part in made)


def _fake(x: Tensor, weight: Tensor, bias: Any, target: Tensor, classes: Any, scale: Any, *options: Any) -> Any:
    reduction, wanted = options[-3], options[-1]
    kind = torch.float32 if x.dtype in (torch.float16, torch.bfloat16) else x.dtype
    loss = x.new_empty(target.shape if reduction == "none" else (), dtype=kind)
    shapes = (x.shape, weight.shape, weight.shape[:1])
    return loss, *(x.new_empty(shape if asked else (0,)) for shape, asked in zip(shapes, wanted))


# x and weight are not read. They connect backward with them: without that, a second derivative through a compiled graph would
# be missing in silence; with it, torch.compile says that it supports none.
_library.define("scaled(Tensor part, Tensor grad, Tensor x, Tensor weight) -> Tensor")
_library.impl("scaled", lambda part, grad, x, weight: part * grad, "CompositeExplicitAutograd")
torch.library.register_fake("gradsmith_ops::scaled", lambda part, *others: torch.empty_like(part), lib=_library)
_library.impl("linear_cross_entropy", _kernel, "CompositeExplicitAutograd")
torch.library.register_fake("gradsmith_ops::linear_cross_entropy", _fake, lib=_library)


class _InGraph(torch.autograd.Function):
    """The same inside torch.compile: the chunks are one operator there, so the logits do not exist either."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, target: Tensor, classes: Tensor | None, options: Any, wanted: Any) -> Tensor:  # fmt: skip
        ctx.options, ctx.wanted = options, wanted
        ctx.late = options[4] == "none"
        early = [asked and not ctx.late for asked in wanted]
        loss: Tensor
        loss, dx, dw, db = torch.ops.gradsmith_ops.linear_cross_entropy(
            x, weight, bias, target, classes, None, *options, early
        )
        ctx.save_for_backward(*((x, weight, bias, target, classes) if ctx.late else (x, weight, dx, dw, db)))
        return loss

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        if ctx.late:
            made = torch.ops.gradsmith_ops.linear_cross_entropy(*ctx.saved_tensors, grad, *ctx.options, ctx.wanted)[1:]
        else:
            x, weight, *early = ctx.saved_tensors
            made = [torch.ops.gradsmith_ops.scaled(part, grad, x, weight) for part in early]
        return *(part if asked else None for part, asked in zip(made, ctx.wanted)), None, None, None, None


def reference(x: Tensor, weight: Tensor, bias: Tensor | None, target: Tensor, classes: Tensor | None, options: Options) -> Tensor:  # fmt: skip
    """The same loss in plain operations, with all logits at once: what second derivatives and torch.func use."""
    z = F.linear(x, weight, bias)
    z = z.float() if z.dtype in (torch.float16, torch.bfloat16) else z
    if options.softcap:
        z = options.softcap * torch.tanh(z / options.softcap)
    kinds = None if classes is None else classes.to(z.dtype)
    loss = F.cross_entropy(
        z, target, kinds, ignore_index=options.ignore_index, label_smoothing=options.label_smoothing,
        reduction=options.reduction,
    )  # fmt: skip
    if options.z_loss:
        counts = (target != options.ignore_index).to(z.dtype)
        square = torch.logsumexp(z, 1).square() * counts
        term = {"none": square, "sum": square.sum(), "mean": square.sum() / counts.sum()}[options.reduction]
        loss = loss + options.z_loss * term
    return loss


def linear_cross_entropy(
    x: Tensor, weight: Tensor, target: Tensor, bias: Tensor | None = None, *, class_weight: Tensor | None = None,
    ignore_index: int = -100, label_smoothing: float = 0.0, softcap: float | None = None, z_loss: float = 0.0,
    reduction: str = "mean", chunk: int | None = None,
) -> Tensor:  # fmt: skip
    """cross_entropy(linear(x, weight, bias), target) without the logits: x is (..., D), weight (V, D), target (...).

    `softcap` bounds the logits to cap * tanh(z / cap); `z_loss` adds that multiple of logsumexp(z)^2, averaged over the
    rows that count. `chunk` is the number of rows at a time. If every row has `ignore_index`, the mean is NaN, as torch's.

    >>> x, weight = torch.zeros(2, 3), torch.zeros(4, 3)
    >>> linear_cross_entropy(x, weight, torch.tensor([0, 3]))
    tensor(1.3863)
    """
    op = "linear_cross_entropy"
    x, weight, bias = linear(x, weight, bias, op)
    _check_target(x, weight, target, class_weight, ignore_index, op)
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{op}: reduction must be 'mean', 'sum' or 'none', not {reduction!r}.")
    if not 0 <= label_smoothing <= 1:
        raise ValueError(f"{op}: label_smoothing must be between 0 and 1; it is {label_smoothing}.")
    if softcap is not None and not softcap > 0:
        raise ValueError(f"{op}: softcap must be above 0 (None for no cap); it is {softcap}.")
    if z_loss < 0:
        raise ValueError(f"{op}: z_loss must be 0 or more; it is {z_loss}.")
    if chunk is not None and chunk < 1:
        raise ValueError(f"{op}: chunk must be at least 1 row; it is {chunk}.")
    chosen = chunk or max(1, _CHUNK_ELEMENTS // max(weight.shape[0], 1))
    options = Options(ignore_index, label_smoothing, softcap or 0.0, z_loss, reduction, chosen)
    rows_of_x, flat = x.reshape(target.numel(), x.shape[-1]), target.reshape(-1)
    with without_autocast(x):
        if is_compiling() and not torch.compiler.is_exporting() and not torch._C._are_functorch_transforms_active():
            on = torch.is_grad_enabled()
            wanted = [on and t is not None and t.requires_grad for t in (rows_of_x, weight, bias)]
            loss: Tensor = _InGraph.apply(rows_of_x, weight, bias, flat, class_weight, astuple(options), wanted)
        elif transformed():
            loss = reference(rows_of_x, weight, bias, flat, class_weight, options)
        else:
            loss = _LinearCrossEntropy.apply(rows_of_x, weight, bias, flat, class_weight, options)
    return loss.reshape(target.shape) if reduction == "none" else loss


def _check_target(x: Tensor, weight: Tensor, target: Tensor, classes: Tensor | None, ignored: int, op: str) -> None:
    if not isinstance(target, Tensor) or target.dtype != torch.int64:
        kind = target.dtype if isinstance(target, Tensor) else type(target).__name__
        raise TypeError(f"{op}: target must be a tensor of class numbers (int64), not {kind}.")
    if target.shape != x.shape[:-1]:
        raise ValueError(f"{op}: target has shape {tuple(target.shape)}, expected {tuple(x.shape[:-1])}, that of x without its last dimension.")  # fmt: skip
    if classes is not None and tuple(classes.shape) != (weight.shape[0],):
        raise ValueError(f"{op}: class_weight has shape {tuple(classes.shape)}, expected ({weight.shape[0]},).")
    if classes is not None and classes.requires_grad:
        raise ValueError(f"{op}: class_weight requires grad, but gets no gradient here; detach it.")
    # On a GPU this would wait for the device; in a transform there are no values to look at.
    if target.device.type == "cpu" and not transformed() and target.numel():
        strange = ((target < 0) | (target >= weight.shape[0])) & (target != ignored)
        if bool(strange.any()):
            raise IndexError(f"{op}: target {int(target[strange][0])} is not a class; there are {weight.shape[0]}, and ignore_index is {ignored}.")  # fmt: skip


class LinearCrossEntropy(nn.Linear):
    """The last layer of a model and its loss: `head(x, target)` gives the loss, `head.logits(x)` the logits.

    >>> LinearCrossEntropy(8, 100)(torch.zeros(3, 8), torch.tensor([1, 2, 3])).shape
    torch.Size([])
    """

    def __init__(self, features: int, classes: int, bias: bool = True, **options: Any) -> None:
        super().__init__(features, classes, bias)
        self.options = options

    def forward(self, x: Tensor, target: Tensor) -> Tensor:  # type: ignore[override]
        return linear_cross_entropy(x, self.weight, target, self.bias, **self.options)

    def logits(self, x: Tensor) -> Tensor:
        """What forward makes the loss of, without the soft cap."""
        return F.linear(x, self.weight, self.bias)
