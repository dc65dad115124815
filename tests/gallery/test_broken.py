"""Each broken file does the harm its rule speaks of: shown here in plain PyTorch, one test per file.

The tests are the ground truth the checker is measured against, so nothing here comes from gradsmith.
"""

from __future__ import annotations

import ast
import gc
import re
import weakref
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from gallery_files import BROKEN, GALLERY, broken_files, expected_rules, load
from measure import count_elements, count_ops, saved_bytes, unpack_calls
from torch import Tensor, nn
from torch.autograd import gradcheck, gradgradcheck
from torch.nn import functional as F


def broken(name: str) -> ModuleType:
    return load(BROKEN / f"{name}.py")


def gallery(name: str) -> ModuleType:
    return load(GALLERY / f"{name}.py")


def inputs(module: ModuleType, name: str, number: int = 0) -> tuple[Any, ...]:
    torch.manual_seed(0)
    makers = module.gradsmith_inputs[name]
    return (makers[number] if isinstance(makers, list) else makers)()


def leaf(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(shape, dtype=dtype, requires_grad=True)


def grads(y: Tensor, *wanted: Tensor, g: Tensor | None = None) -> tuple[Tensor, ...]:
    g = torch.ones_like(y) if g is None else g
    return torch.autograd.grad(y, wanted, g, retain_graph=True, allow_unused=True)


def differ(a: Tensor, b: Tensor) -> bool:
    return not torch.allclose(a, b, rtol=1e-6, atol=1e-9)


def raw_gradients(function: Any, y: Callable[[], Tensor], monkeypatch: pytest.MonkeyPatch) -> tuple[Any, ...]:
    """What backward returns, before the engine casts and sums it."""
    original, seen = function.backward, []

    def watched(ctx: Any, *grad_outputs: Any) -> Any:
        seen.append(original(ctx, *grad_outputs))
        return seen[-1]

    monkeypatch.setattr(function, "backward", staticmethod(watched))
    y().sum().backward()
    return seen[0] if isinstance(seen[0], tuple) else (seen[0],)


# the files themselves


def test_there_are_enough() -> None:
    assert len(broken_files()) >= 45


@pytest.mark.parametrize("path", broken_files(), ids=lambda p: p.stem)
def test_file_is_runnable_and_names_its_rule(path: Path) -> None:
    assert expected_rules(path)
    assert path.read_text().startswith("# expect: ")
    module = load(path)
    for name, makers in module.gradsmith_inputs.items():
        assert hasattr(module, name)
        for make in makers if isinstance(makers, list) else [makers]:
            assert isinstance(make(), tuple)


def test_every_file_has_its_own_test() -> None:
    tested = set(re.findall(r"^def test_broken_(\w+)\(", Path(__file__).read_text(), re.M))
    assert tested == {p.stem for p in broken_files()}


def test_no_file_gives_itself_away() -> None:
    """A reader, or a checker, must find the mistake: only the expect line names it."""
    for path in broken_files():
        text = re.sub(r"# expect:.*", "", path.read_text()).lower()
        assert not re.search(r"\b(bug|wrong|broken|mistake|incorrect|should be)\b", text), path.name
        ast.parse(text)


# wrong numbers: the true gradient by autograd beside the claimed one


def assert_gradient_differs(name: str, function: str, true: Callable[..., Any], which: int, number: int = 0) -> None:
    module = broken(name)
    arguments = inputs(module, function, number)
    argument = arguments[which]
    claimed = getattr(module, function).apply(*arguments)
    exact = true(*arguments)
    claimed, exact = (sum(t.sum() for t in y) if isinstance(y, tuple) else y for y in (claimed, exact))
    torch.testing.assert_close(claimed, exact)
    assert differ(grads(claimed, argument)[0], grads(exact, argument)[0])


def test_broken_linear_transposed() -> None:
    assert_gradient_differs("linear_transposed", "MyLinear", lambda x, w: x @ w.t() * 1, 1)
    module = broken("linear_transposed")
    x, w = inputs(module, "MyLinear")
    g = torch.randn(4, 3, dtype=torch.float64)
    torch.testing.assert_close(grads(module.MyLinear.apply(x, w), w, g=g)[0], grads(x @ w.t(), w, g=g)[0].t())


def test_broken_tanh_sign() -> None:
    assert_gradient_differs("tanh_sign", "Tanh", torch.tanh, 0)


def test_broken_squares_and_product_missing_term() -> None:
    true = lambda x, y: (x * x + y * y, x * y)  # noqa: E731
    assert_gradient_differs("squares_and_product_missing_term", "SquaresAndProduct", true, 0)


def test_broken_product_swapped() -> None:
    assert_gradient_differs("product_swapped", "Product", torch.mul, 0)
    assert_gradient_differs("product_swapped", "Product", torch.mul, 1)


def test_broken_threshold_leaks() -> None:
    assert_gradient_differs("threshold_leaks", "Threshold", lambda x, t: x * (x > t), 0)


def test_broken_mse_without_n() -> None:
    module = broken("mse_without_n")
    prediction, target = inputs(module, "MSELoss")
    (claimed,) = grads(module.MSELoss.apply(prediction, target), prediction)
    (exact,) = grads(F.mse_loss(prediction, target), prediction)
    torch.testing.assert_close(claimed, 12 * exact)


def test_broken_hvp_returns_input() -> None:
    module = broken("hvp_returns_input")
    x, v = inputs(module, "HessianVectorProduct")
    y = module.HessianVectorProduct.apply(x, v)
    assert torch.equal(y, v)
    assert differ(y, 12 * x**2 * v)
    assert not gradcheck(module.HessianVectorProduct.apply, (x, v), raise_exception=False)


def test_broken_channel_bias_unsummed() -> None:
    module = broken("channel_bias_unsummed")
    x, b = inputs(module, "ChannelBias")
    g = torch.randn(4, 3, 3, dtype=torch.float64)
    assert differ(grads(module.ChannelBias.apply(x, b), b, g=g)[0], g.sum((0, 2)))
    torch.testing.assert_close(grads(module.ChannelBias.apply(x, b), b, g=g)[0], g.sum((0, 1)))
    with pytest.raises(RuntimeError, match="invalid gradient"):
        module.ChannelBias.apply(leaf(4, 3, 5), b).sum().backward()


def test_broken_weighted_scalar_gradient() -> None:
    module = broken("weighted_scalar_gradient")
    x, w = inputs(module, "WeightedSum")
    with pytest.raises(RuntimeError, match=r"invalid gradient at index 1 - got \[\] but expected shape"):
        module.WeightedSum.apply(x, w).backward()


def test_broken_conv1d_unread_inputs() -> None:
    module = broken("conv1d_unread_inputs")
    x, w, stride = inputs(module, "Conv1d")
    assert gradcheck(module.Conv1d.apply, (leaf(2, 3, 7), w, stride)), "right where the stride reads every input"
    with pytest.raises(RuntimeError, match=r"invalid gradient at index 0 - got \[2, 3, 7\] but expected shape"):
        module.Conv1d.apply(x, w, stride).sum().backward()


# dtype and device


def test_broken_max_zeros_without_dtype() -> None:
    module = broken("max_zeros_without_dtype")
    (x,) = inputs(module, "RowMax")
    module.RowMax.apply(x.detach().float().requires_grad_()).sum().backward()
    with pytest.raises(RuntimeError, match="dtype"):
        module.RowMax.apply(x).sum().backward()


def test_broken_exp_gradient_dtype(monkeypatch: pytest.MonkeyPatch) -> None:
    module = broken("exp_gradient_dtype")
    (x,) = inputs(module, "Exp")
    (raw,) = raw_gradients(module.Exp, lambda: module.Exp.apply(x), monkeypatch)
    assert raw.dtype == torch.float32
    assert (raw.double() - torch.exp(x)).abs().max() > 1e-9


def test_broken_softplus_cancellation() -> None:
    module = broken("softplus_cancellation")
    (x,) = inputs(module, "Softplus")
    assert gradcheck(module.Softplus.apply, (x,)), "right in float64"
    low = x.detach().float().requires_grad_()
    exact = torch.sigmoid(x.detach())
    own, theirs = (
        ((grads(f(low), low)[0].double() - exact) / exact).abs().max() for f in (module.Softplus.apply, F.softplus)
    )
    assert theirs < 1e-5
    assert own > 1e-2


# second order


def assert_second_order_differs(name: str, function: str, true: Callable[[Tensor], Tensor]) -> None:
    module = broken(name)
    (x,) = inputs(module, function)
    values = []
    for f in (getattr(module, function).apply, true):
        (first,) = torch.autograd.grad(f(x).sum(), x, create_graph=True)
        if first.requires_grad:
            weight = torch.arange(x.numel(), dtype=x.dtype).reshape(x.shape)
            values.append(torch.autograd.grad((first * weight).sum(), x, materialize_grads=True)[0])
        else:
            values.append(torch.zeros_like(x))
    assert gradcheck(getattr(module, function).apply, (x,))
    assert differ(*values)
    assert not gradgradcheck(getattr(module, function).apply, (x,), raise_exception=False)


def test_broken_swish_saves_intermediate() -> None:
    assert_second_order_differs("swish_saves_intermediate", "Swish", F.silu)


def test_broken_logsumexp_saves_softmax() -> None:
    assert_second_order_differs("logsumexp_saves_softmax", "LogSumExp", lambda x: torch.logsumexp(x, -1))
    module = broken("logsumexp_saves_softmax")
    (x,) = inputs(module, "LogSumExp", 1)
    y = module.LogSumExp.apply(x)
    assert y.isfinite().all()
    assert grads(y[:2].sum(), x)[0].isnan().any(), "0 times nan: even though the masked row was not used"
    assert not grads(gallery("reductions/logsumexp").LogSumExp.apply(x, -1, False)[:2].sum(), x)[0].isnan().any()


def test_broken_cube_data_attr() -> None:
    assert_second_order_differs("cube_data_attr", "Cube", lambda x: x**3)


def test_broken_sinc_opaque_backward() -> None:
    assert_second_order_differs("sinc_opaque_backward", "Sinc", torch.sinc)


def test_broken_cube_wrong_second_order() -> None:
    assert_second_order_differs("cube_wrong_second_order", "Cube", lambda x: x**3)


# in place


def test_broken_relu_inplace_input() -> None:
    module = broken("relu_inplace_input")
    x = torch.tensor([-1.0, 2.0], requires_grad=True)
    results = []
    for relu in (module.ReLU.apply, torch.relu):
        base = x * 1
        results.append((relu(base) + base).detach())
    assert results[0].tolist() == [0.0, 4.0]
    assert results[1].tolist() == [-1.0, 4.0]


def test_broken_clip_inplace_grad() -> None:
    module = broken("clip_inplace_grad")
    x = torch.ones(3, requires_grad=True)
    g = torch.full((3,), 2.0)
    module.ClipGradient.apply(x, 0.5).backward(g)
    assert g.tolist() == [0.5, 0.5, 0.5], "the caller's tensor was changed"
    siblings = []
    for clip in (module.ClipGradient.apply, gallery("control/clip").ClipByValue.apply):
        a, b = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
        other = b * 1
        (other + clip(a, 0.5)).backward(torch.full((3,), 2.0))
        siblings.append(b.grad)
    assert differ(*siblings), "the other branch got the clipped gradient too"


def test_broken_exp_inplace_saved() -> None:
    module = broken("exp_inplace_saved")
    (x,) = inputs(module, "Exp")
    y = module.Exp.apply(x)
    value = y.detach().clone()
    grads(y, x, g=torch.full_like(y, 2.0))
    assert differ(y.detach(), value), "backward changed the output that everybody else holds"
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        grads(y, x)


def test_broken_hook_inplace() -> None:
    module = broken("hook_inplace")
    x, w = inputs(module, "residual")
    (claimed,) = grads(module.residual(x, w), x)
    branch = torch.tanh(x * w)
    branch.register_hook(lambda g: g.clamp(-0.1, 0.1))
    (meant,) = grads(x + branch, x)
    assert differ(claimed, meant), "the skip connection's gradient was clipped as well"
    torch.testing.assert_close(meant - claimed, torch.full_like(x, 0.9))


def test_broken_hook_never_removed() -> None:
    module = broken("hook_never_removed")
    layer = module.WatchedLinear(3, 5)
    for _ in range(3):
        layer(torch.randn(4, 3)).sum().backward()
    assert len(layer.norms) == 1 + 2 + 3, "every forward added one more hook"


# memory


def alive_without_collector(run: Callable[[], Tensor]) -> bool:
    gc.collect()
    gc.disable()
    try:
        y = run()
        watch = weakref.ref(y.grad_fn)
        del y
        return watch() is not None
    finally:
        gc.enable()
        gc.collect()


def test_broken_square_on_ctx() -> None:
    module = broken("square_on_ctx")
    x = leaf(3)
    base = x * 1
    before = base.detach().clone()
    y = module.Square.apply(base)
    with torch.no_grad():
        base.zero_()
    assert not grads(y, x)[0].any(), "silently the gradient at the new content"
    assert differ(torch.zeros_like(before), 2 * before)
    base = x * 1
    y = gallery("elementwise/square").Square.apply(base)
    with torch.no_grad():
        base.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        grads(y, x)


def test_broken_exp_output_on_ctx() -> None:
    module, x = broken("exp_output_on_ctx"), leaf(3)
    assert alive_without_collector(lambda: module.Exp.apply(x))
    assert not alive_without_collector(lambda: gallery("elementwise/exp").Exp.apply(x))


def test_broken_exp_output_view_saved() -> None:
    module, x = broken("exp_output_view_saved"), leaf(4, 3)
    y = module.RowExp.apply(x)
    watch = weakref.ref(y.grad_fn)
    del y
    gc.collect()
    assert watch() is not None, "not even the collector frees it"


def test_broken_linear_unused_save() -> None:
    module = broken("linear_unused_save")
    x, w = leaf(50, 16), leaf(32, 16)
    needed = saved_bytes(lambda: gallery("memory/fused_linear_relu").LinearReLU.apply(x, w, leaf(32).detach()))
    assert saved_bytes(lambda: module.LinearReLU.apply(x, w)) - needed == 50 * 32 * 8


# the contract


def test_broken_saved_in_forward() -> None:
    module = broken("saved_in_forward")
    with pytest.raises(ValueError, match="not enough values to unpack"):
        module.ScaledSquare.apply(*inputs(module, "ScaledSquare"))


def test_broken_sum_saves_shape() -> None:
    module = broken("sum_saves_shape")
    with pytest.raises(TypeError, match="save_for_backward can only save variables"):
        module.Sum.apply(*inputs(module, "Sum"))


def test_broken_linear_too_few_gradients() -> None:
    module = broken("linear_too_few_gradients")
    with pytest.raises(RuntimeError, match="incorrect number of gradients"):
        module.Linear.apply(*inputs(module, "Linear")).sum().backward()


def test_broken_swish_unpack_count() -> None:
    module = broken("swish_unpack_count")
    with pytest.raises(ValueError, match="too many values to unpack"):
        module.Swish.apply(*inputs(module, "Swish")).sum().backward()


def test_broken_sin_cos_backward_arity() -> None:
    module = broken("sin_cos_backward_arity")
    s, _ = module.SinCos.apply(*inputs(module, "SinCos"))
    with pytest.raises(TypeError, match="takes 2 positional arguments but 3 were given"):
        s.sum().backward()


def test_broken_softsign_ctx_signature() -> None:
    module = broken("softsign_ctx_signature")
    with pytest.raises(TypeError, match="missing a required argument: 'x'"):
        module.Softsign.apply(*inputs(module, "Softsign"))


def test_broken_power_gradient_for_int() -> None:
    module = broken("power_gradient_for_int")
    with pytest.raises(RuntimeError, match="returned a gradient different than None at position 2"):
        module.Power.apply(*inputs(module, "Power")).sum().backward()


def test_broken_sin_cos_none_arithmetic() -> None:
    module = broken("sin_cos_none_arithmetic")
    (x,) = inputs(module, "SinCos")
    with pytest.raises(TypeError, match="NoneType"):
        module.SinCos.apply(x)[0].sum().backward()


def test_broken_sin_cos_unused_output() -> None:
    module = broken("sin_cos_unused_output")
    (x,) = inputs(module, "SinCos")
    assert grads(module.SinCos.apply(x)[0], x)[0] is None
    assert grads(torch.sin(x), x)[0].any()


def test_broken_round_missing_apply() -> None:
    module = broken("round_missing_apply")
    (x,) = inputs(module, "layer")
    assert not grads(module.layer(x), x)[0].any(), "torch.round's own zero, not the estimator's gradient"
    assert grads(module.Round.apply(x), x)[0].all()


def test_broken_linear_needs_index() -> None:
    module = broken("linear_needs_index")
    name, x, w = inputs(module, "Linear")
    grad_x, grad_w = grads(module.Linear.apply(name, x, w), x, w)
    assert grad_x is None
    assert grad_w is not None
    assert grads(module.Linear.apply(name, x.detach(), w), w)[0] is None


def test_broken_recompute_nested_backward() -> None:
    module = broken("recompute_nested_backward")
    x, w = inputs(module, "RecomputedBlock")
    (exact,) = grads(torch.tanh(x @ w.t()), w)
    module.RecomputedBlock.apply(x, w).sum().backward()
    torch.testing.assert_close(w.grad, 2 * exact, msg="counted once by the inner and once by the outer backward")


def test_broken_two_backward_calls() -> None:
    module = broken("two_backward_calls")
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        module.train_step(*inputs(module, "train_step"))


def test_broken_two_losses_one_graph() -> None:
    module = broken("two_losses_one_graph")
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        module.train_step(*inputs(module, "train_step"))


# silently lost gradients


def test_broken_split_container_output() -> None:
    module = broken("split_container_output")
    square, cube = module.SquareAndCube.apply(*inputs(module, "SquareAndCube"))
    assert not square.requires_grad
    assert not cube.requires_grad


def test_broken_stack_container_input() -> None:
    module = broken("stack_container_input")
    (tensors,) = inputs(module, "SumOfSquares")
    assert not module.SumOfSquares.apply(tensors).requires_grad
    assert grads(tensors[0].square().sum(), tensors[0])[0].any()


def test_broken_projection_closure() -> None:
    module = broken("projection_closure")
    (x,) = inputs(module, "Project")
    assert gradcheck(module.Project.apply, (x,)), "gradcheck sees nothing"
    claimed = grads(module.Project.apply(x), module.weight)[0]
    assert claimed is None
    assert grads(x @ module.weight.t(), module.weight)[0].any()


def test_broken_product_save_overwritten() -> None:
    module = broken("product_save_overwritten")
    a, b = inputs(module, "Product")
    assert differ(grads(module.Product.apply(a, b), b)[0], a.detach())


def test_broken_swish_none_for_beta() -> None:
    module = broken("swish_none_for_beta")
    x, beta = inputs(module, "Swish")
    assert grads(module.Swish.apply(x, beta), beta)[0] is None
    assert grads(x * torch.sigmoid(beta * x), beta)[0].abs() > 0.1


def test_broken_max_false_non_differentiable() -> None:
    module = broken("max_false_non_differentiable")
    (x,) = inputs(module, "MaxAndMean")
    _, mean = module.MaxAndMean.apply(x)
    assert not mean.requires_grad
    assert grads(x.mean(-1), x)[0].all()


def test_broken_checkpoint_forgets_parameters() -> None:
    module = broken("checkpoint_forgets_parameters")
    layers, x = inputs(module, "CheckpointedSequence")
    assert gradcheck(lambda x: module.CheckpointedSequence.apply(layers, x), (x,)), "gradcheck passes it"
    module.CheckpointedSequence.apply(layers, x).sum().backward()
    assert [p.grad for p in layers.parameters()] == [None] * 4
    assert all(g.any() for g in grads(layers(x), *layers.parameters()))


def test_broken_sinc_graph_cut() -> None:
    module = broken("sinc_graph_cut")
    (x,) = inputs(module, "layer")
    hidden = module.layer.linear(x)
    y = module.layer(x)
    torch.testing.assert_close(y, hidden + torch.sinc(hidden))
    assert differ(grads(y, x)[0], grads(hidden + torch.sinc(hidden), x)[0])
    torch.testing.assert_close(grads(y, x), grads(hidden, x), msg="only the linear part arrives")


def test_broken_mse_ignores_grad_output() -> None:
    module = broken("mse_ignores_grad_output")
    prediction, target = inputs(module, "MSELoss")
    (half,) = grads(0.5 * module.MSELoss.apply(prediction, target), prediction)
    (whole,) = grads(module.MSELoss.apply(prediction, target), prediction)
    torch.testing.assert_close(half, whole, msg="half the loss, the same gradient")


def test_broken_sign_undeclared() -> None:
    module = broken("sign_undeclared")
    (x,) = inputs(module, "Binarize")
    assert not gradcheck(module.Binarize.apply, (x,), raise_exception=False)
    assert "gradsmith:" not in (BROKEN / "sign_undeclared.py").read_text()


def test_broken_square_nonlinear_backward() -> None:
    module = broken("square_nonlinear_backward")
    (x,) = inputs(module, "Square")
    assert gradcheck(module.Square.apply, (x,)), "gradcheck only ever sends gradients of 1"
    y = module.Square.apply(x)
    one, ten = (grads(y, x, g=torch.full_like(y, s))[0] for s in (1.0, 10.0))
    torch.testing.assert_close(one, ten)


def test_broken_linear_frozen_weight() -> None:
    module = broken("linear_frozen_weight")
    x, w = inputs(module, "Linear")
    assert gradcheck(module.Linear.apply, (x, w)), "right while both are trained"
    assert not grads(module.Linear.apply(x, w.detach()), x)[0].any()
    assert grads(x @ w.detach().t(), x)[0].any()


def test_broken_linear_requires_grad_read() -> None:
    module = broken("linear_requires_grad_read")
    x, w = inputs(module, "Linear")
    assert grads(module.Linear.apply(x, w), w)[0] is None, "the contiguous copy does not require grad"
    assert grads(x @ w.t(), w)[0].any()
    contiguous = w.detach().contiguous().requires_grad_()
    assert grads(module.Linear.apply(x, contiguous), contiguous)[0].any()


# state and randomness


def test_broken_dropout_redrawn() -> None:
    module = broken("dropout_redrawn")
    x, p = inputs(module, "Dropout")
    y = module.Dropout.apply(x, p)
    (gradient,) = grads(y, x)
    assert ((y == 0) != (gradient == 0)).any()


def test_broken_relu_class_state() -> None:
    module = broken("relu_class_state")
    a, b = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([-1.0, -2.0], requires_grad=True)
    y = module.ReLU.apply(a)
    module.ReLU.apply(b)
    assert grads(y, a)[0].tolist() == [0, 0]
    assert grads(torch.relu(a), a)[0].tolist() == [1, 1]


def test_broken_exp_not_repeatable() -> None:
    module = broken("exp_not_repeatable")
    (x,) = inputs(module, "BlockExp")
    y = module.BlockExp.apply(x)
    first, second = grads(y, x)[0], grads(y, x)[0]
    assert first.all()
    assert not second.any()


# values, shapes, strides


def test_broken_max_ties() -> None:
    module = broken("max_ties")
    (x,) = inputs(module, "RowMax", 1)
    assert grads(module.RowMax.apply(x), x)[0].sum(1).tolist() == [2, 3]
    assert grads(x.amax(1), x)[0].sum(1).tolist() == [1, 1]


def test_broken_norm_nan_at_zero() -> None:
    module = broken("norm_nan_at_zero")
    (x,) = inputs(module, "RowNorm", 1)
    y = module.RowNorm.apply(x)
    assert y.isfinite().all()
    assert grads(y, x)[0][3].isnan().all()
    assert grads(x.norm(dim=-1), x)[0].isfinite().all()


def test_broken_softplus_overflow() -> None:
    module = broken("softplus_overflow")
    (x,) = inputs(module, "LogisticLoss", 1)
    y = module.LogisticLoss.apply(x)
    assert y.isinf()
    assert grads(y, x)[0].isnan().any()
    exact = F.softplus(x).sum()
    assert exact.isfinite()
    assert grads(exact, x)[0].isfinite().all()


def test_broken_row_scale_view_grad() -> None:
    module = broken("row_scale_view_grad")
    x, s = inputs(module, "RowScale")
    assert gradcheck(module.RowScale.apply, (x, s)), "gradcheck only ever sends contiguous gradients"
    y = module.RowScale.apply(x, s)
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        y.transpose(0, 1).reshape(8, 3).t().matmul(torch.ones(8, dtype=torch.float64)).sum().backward()


def transposed(g: Tensor) -> Tensor:
    return g.t().contiguous().t()


def test_broken_softsign_ctypes_strides() -> None:
    module = broken("softsign_ctypes_strides")
    (x,) = inputs(module, "Softsign")
    assert gradcheck(module.Softsign.apply, (x,)), "gradcheck only ever sends contiguous gradients"
    y, g = module.Softsign.apply(x), torch.randn(4, 3, dtype=torch.float64)
    assert differ(grads(y, x, g=g)[0], grads(y, x, g=transposed(g))[0])


def test_broken_pair_sums_as_strided() -> None:
    module = broken("pair_sums_as_strided")
    (x,) = inputs(module, "RowSums")
    assert gradcheck(module.RowSums.apply, (x,)), "gradcheck only ever sends contiguous gradients"
    y, g = module.RowSums.apply(x), torch.randn(4, 2, dtype=torch.float64)
    assert differ(grads(y, x, g=g)[0], grads(y, x, g=transposed(g))[0])


def test_broken_block_drops_remainder() -> None:
    module = broken("block_drops_remainder")
    (x,) = inputs(module, "Square")
    assert gradcheck(module.Square.apply, (x,)), "right for eight rows"
    longer = leaf(9, 3)
    assert not grads(module.Square.apply(longer), longer)[0][8].any()
    assert not gradcheck(module.Square.apply, (longer,), raise_exception=False)


# speed


def test_broken_linear_wasted_gradient() -> None:
    module = broken("linear_wasted_gradient")
    x, w = inputs(module, "Linear")
    frozen = w.detach()
    wasteful = count_ops(module.Linear.apply(x, frozen).sum().backward)["aten::mm"]
    careful = count_ops(gallery("matrix/linear").Linear.apply(x, frozen, None).sum().backward)["aten::mm"]
    assert (wasteful, careful) == (2, 1)


def test_broken_square_element_loop() -> None:
    module = broken("square_element_loop")
    counts = [count_ops(lambda n=n: module.Square.apply(leaf(n, n))).total() for n in (4, 8)]
    assert counts[1] > 3.5 * counts[0], "four times the elements, four times the kernels"
    vectorised = gallery("elementwise/square").Square
    small, large = (count_ops(lambda n=n: vectorised.apply(leaf(n, n))).total() for n in (4, 8))
    assert small == large


def test_broken_product_repeated_unpack() -> None:
    module = broken("product_repeated_unpack")
    a, b = inputs(module, "Product")
    assert unpack_calls(lambda: module.Product.apply(a, b)) == 4
    assert unpack_calls(lambda: gallery("broadcasting/sum_to_shape").BroadcastProduct.apply(a, b)) == 2


def test_broken_clip_host_sync() -> None:
    module = broken("clip_host_sync")
    x = leaf(4, 3)
    y = module.ClipByNorm.apply(x, 1.0)
    assert count_ops(lambda: grads(y, x))["aten::_local_scalar_dense"] == 1
    y = gallery("control/clip").ClipByNorm.apply(x, 1.0)
    assert count_ops(lambda: grads(y, x))["aten::_local_scalar_dense"] == 0


def test_broken_sigmoid_pointless_wrapper() -> None:
    module = broken("sigmoid_pointless_wrapper")
    (x,) = inputs(module, "Sigmoid")
    g = torch.randn_like(x)
    y = module.Sigmoid.apply(x)
    torch.testing.assert_close(grads(y, x, g=g), grads(torch.sigmoid(x), x, g=g))
    own = count_ops(lambda: grads(y, x, g=g)).total()
    y = torch.sigmoid(x)
    assert own > count_ops(lambda: grads(y, x, g=g)).total(), "the same numbers from more kernels"
    with pytest.raises(RuntimeError, match="setup_context"):
        torch.func.grad(lambda t: module.Sigmoid.apply(t).sum())(x.detach())


# transforms


def test_broken_matmul_no_autocast() -> None:
    module = broken("matmul_no_autocast")
    x, w = leaf(4, 3, dtype=torch.float32), leaf(3, 5, dtype=torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        y = module.MatMul.apply(x, w)
    with pytest.raises(RuntimeError, match="same dtype"):
        y.sum().backward()


def test_broken_centre_vmap_mismatch() -> None:
    module = broken("centre_vmap_mismatch")
    x = torch.randn(4, 3, 2, dtype=torch.float64)
    exact = torch.vmap(lambda sample: sample - sample.mean(0, keepdim=True))(x)
    assert differ(torch.vmap(module.Centre.apply)(x), exact), "the samples were mixed"


# tests that prove nothing


def test_broken_gradcheck_float32() -> None:
    module = broken("gradcheck_float32")
    with pytest.warns(UserWarning, match="not a double precision"), pytest.raises(RuntimeError, match="Jacobian"):
        module.check_square()
    assert gradcheck(module.Square.apply, inputs(module, "Square")), "the Function itself is right"


def test_broken_gradcheck_silenced() -> None:
    module = broken("gradcheck_silenced")
    module.check_square()
    assert not gradcheck(module.Square.apply, inputs(module, "Square"), raise_exception=False)


def test_broken_gradcheck_loosened() -> None:
    module = broken("gradcheck_loosened")
    module.check_square()
    assert not gradcheck(module.Square.apply, inputs(module, "Square"), raise_exception=False)


def test_broken_gradcheck_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    module = broken("gradcheck_nothing")
    module.check_square()
    assert "skipped" in capsys.readouterr().out
    assert not gradcheck(module.Square.apply, inputs(module, "Square"), raise_exception=False)


# recurrent


def per_step(module: ModuleType, op: str, backward: bool = False) -> list[int]:
    """How often an operator runs, for 10 and for 20 steps."""
    counts = []
    for steps in (10, 20):
        model, x = type(module.rnn)(3, 5), leaf(steps, 2, 3, dtype=torch.float32)
        calls = count_ops(model(x).sum().backward if backward else lambda model=model, x=x: model(x))
        counts.append(calls[op])
    return counts


def test_broken_rnn_batch_first() -> None:
    module = broken("rnn_batch_first")
    (x,) = inputs(module, "encoder")
    right = nn.RNN(3, 5).double()
    right.load_state_dict(module.encoder.rnn.state_dict())
    earlier = x.detach().clone()
    earlier[0] += 1  # the first step must reach the last state
    assert torch.equal(module.encoder(x), module.encoder(earlier))
    assert differ(right(x)[0][-1], right(earlier)[0][-1])


def test_broken_rnn_time_index() -> None:
    module = broken("rnn_time_index")
    assert per_step(module, "aten::select_backward", backward=True) == [10, 20]
    elements = []
    for steps in (50, 100):
        model, x = type(module.rnn)(3, 5), leaf(steps, 2, 3, dtype=torch.float32)
        elements.append(count_elements(model(x).sum().backward))
    assert elements[1] > 3 * elements[0], "twice the steps, nearly four times the work"


def test_broken_rnn_unhoisted_projection() -> None:
    assert per_step(broken("rnn_unhoisted_projection"), "aten::addmm") == [10, 20]
    assert per_step(gallery("recurrent/rnn_unbind"), "aten::addmm") == [11, 21], "one for all x, one per step for h"


def test_broken_rnn_cat_in_loop() -> None:
    module = broken("rnn_cat_in_loop")
    elements = [
        count_elements(lambda n=n: type(module.rnn)(3, 5)(leaf(n, 2, 3, dtype=torch.float32))) for n in (50, 100)
    ]
    assert elements[1] > 2.8 * elements[0]
    model = gallery("recurrent/rnn_unbind").UnbindRNN
    elements = [count_elements(lambda n=n: model(3, 5)(leaf(n, 2, 3, dtype=torch.float32))) for n in (50, 100)]
    assert elements[1] < 2.1 * elements[0]


def test_broken_rnn_slot_write() -> None:
    module = broken("rnn_slot_write")
    elements = []
    for steps in (50, 100):
        model, x = type(module.rnn)(3, 5), leaf(steps, 2, 3, dtype=torch.float32)
        elements.append(count_elements(model(x).sum().backward))
    assert elements[1] > 2.5 * elements[0], "each write clones the whole gradient"


def test_broken_rnn_loop_invariant() -> None:
    assert per_step(broken("rnn_loop_invariant"), "aten::div") == [10, 20]


def test_broken_rnn_state_without_dtype() -> None:
    module = broken("rnn_state_without_dtype")
    module.rnn(*inputs(module, "rnn"))
    with pytest.raises(RuntimeError, match="same dtype"):
        type(module.rnn)(3, 5).double()(leaf(7, 2, 3))


def test_broken_rnn_builtin_cell() -> None:
    module = broken("rnn_builtin_cell")
    (x,) = inputs(module, "rnn")
    builtin = gallery("recurrent/rnn_builtin").BuiltinRNN(3, 5).double()
    builtin.take_weights(module.rnn.from_input, module.rnn.from_state)
    torch.testing.assert_close(module.rnn(x), builtin(x))
