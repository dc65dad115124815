"""What the docstrings of the gallery claim beyond "the gradient is right", one measurement each."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from gallery_files import GALLERY, cases, load
from measure import count_ops, saved_bytes
from torch import Tensor, nn
from torch.nn import functional as F


def gallery(name: str) -> ModuleType:
    return load(GALLERY / f"{name}.py")


def leaf(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(shape, dtype=dtype, requires_grad=True)


def grad_of(y: Tensor, x: Tensor, g: Tensor | None = None) -> Tensor:
    (gradient,) = torch.autograd.grad(y, x, torch.ones_like(y) if g is None else g, retain_graph=True)
    return gradient


# element-wise


def test_square_loops_start_a_kernel_per_element() -> None:
    module, x = gallery("elementwise/square"), leaf(6, 5)
    loops = count_ops(lambda: module.SquareLoops.apply(x))["aten::mul"]
    vectorised = count_ops(lambda: module.Square.apply(x))["aten::mul"]
    assert (loops, vectorised) == (30, 1)


@pytest.mark.parametrize("name", ["relu", "sigmoid", "tanh"])
def test_saving_the_output_costs_nothing_when_the_next_layer_saves_it_too(name: str) -> None:
    module = gallery(f"elementwise/{name}")
    from_output, from_input = (f for n, f in vars(module).items() if n.endswith(("FromOutput", "FromInput")))
    weight, x = leaf(16, 16), leaf(100, 16)
    run = lambda f: saved_bytes(lambda: F.linear(f.apply(x * 1), weight))  # noqa: E731
    assert run(from_input) - run(from_output) == 100 * 16 * 8


def test_sigmoid_tail_survives_only_from_the_input() -> None:
    module = gallery("elementwise/sigmoid")
    x = torch.tensor([40.0], requires_grad=True)
    assert grad_of(module.SigmoidFromOutput.apply(x), x).item() == 0
    assert grad_of(module.SigmoidFromInput.apply(x), x).item() == pytest.approx(4.248e-18, rel=1e-3)


def test_quantile_threshold_is_the_autograd_of_where() -> None:
    module, x = gallery("elementwise/threshold_no_grad"), leaf(8, 5)
    y = module.QuantileThreshold(0.5)(x)
    keep = y.detach() != 0
    assert keep.sum() == 20
    torch.testing.assert_close(grad_of(y.square().sum(), x), torch.where(keep, 2 * x.detach(), 0))


# matrix


def test_linear_layer_is_nn_linear_and_frozen_weights_cost_no_product() -> None:
    module = gallery("matrix/linear")
    ours, theirs = module.LinearLayer(3, 5).double(), nn.Linear(3, 5).double()
    theirs.load_state_dict(ours.state_dict())
    x, g = leaf(2, 4, 3), torch.randn(2, 4, 5, dtype=torch.float64)
    for a, b in zip(
        torch.autograd.grad(ours(x), [x, *ours.parameters()], g),
        torch.autograd.grad(theirs(x), [x, *theirs.parameters()], g),
    ):
        torch.testing.assert_close(a, b)
    weight = ours.weight.detach()
    flat = leaf(4, 3)
    y = module.Linear.apply(flat, weight, None)
    assert count_ops(lambda: y.sum().backward())["aten::mm"] == 1


def test_einsum_refuses_what_its_rule_does_not_cover() -> None:
    apply = gallery("matrix/einsum_product").EinsumProduct.apply
    with pytest.raises(ValueError, match=r"'ij'.*appear elsewhere"):
        apply(leaf(2, 3), leaf(2, 4), "ij,ik->ik")


def test_clipped_linear_clips_the_weight_gradient_only() -> None:
    apply = gallery("matrix/clipped_linear").ClippedLinear.apply
    x, w = leaf(4, 3), leaf(5, 3)
    y = apply(x, w, 0.5)
    g = torch.randn_like(y)
    torch.testing.assert_close(grad_of(y, x, g), g @ w.detach())
    torch.testing.assert_close(grad_of(y, w, g), (g.T @ x.detach()).clamp(-0.5, 0.5))
    assert (g.T @ x.detach()).abs().max() > 0.5


# several in, several out


def test_the_mask_output_is_out_of_the_graph() -> None:
    y, kept = gallery("several/non_differentiable_output").ShrinkWithMask.apply(leaf(4, 3), 0.5)
    assert y.requires_grad
    assert not kept.requires_grad


@pytest.mark.parametrize("used", [0, 1])
def test_an_unused_output_costs_one_product_less(used: int) -> None:
    apply, x = gallery("several/unused_outputs").SinCos.apply, leaf(4, 3)
    outputs = apply(x)
    assert count_ops(lambda: grad_of(outputs[used], x))["aten::mul"] == 1
    expected = torch.cos(x) if used == 0 else -torch.sin(x)
    torch.testing.assert_close(grad_of(apply(x)[used], x), expected.detach())


# broadcasting and reductions


def test_sum_to_shape_is_sum_to_size() -> None:
    module = gallery("broadcasting/sum_to_shape")
    g = torch.randn(2, 4, 3)
    for shape in [(2, 4, 3), (4, 3), (1, 3), (3,), (1,), (), (2, 1, 1)]:
        torch.testing.assert_close(module.sum_to_shape(g, torch.Size(shape)), g.sum_to_size(shape))


def test_max_shares_the_gradient_among_ties_as_amax_does() -> None:
    apply = gallery("reductions/max").Max.apply
    x = torch.tensor([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]], requires_grad=True)
    ours = grad_of(apply(x, -1, False), x)
    torch.testing.assert_close(ours, grad_of(torch.amax(x, -1), x))
    torch.testing.assert_close(ours.sum(-1), torch.ones(2))


def test_sum_saves_no_tensor() -> None:
    x = leaf(50, 40)
    assert saved_bytes(lambda: gallery("reductions/sum").Sum.apply(x, 0, False)) == 0


@pytest.mark.parametrize("fill", [0.0, 1000.0, -1000.0, -torch.inf])
def test_logsumexp_is_finite_where_it_can_be(fill: float) -> None:
    apply = gallery("reductions/logsumexp").LogSumExp.apply
    x = torch.full((2, 3), fill, dtype=torch.float64)
    x[1, 0] = 1.0
    x.requires_grad_()
    y = apply(x, -1, False)
    torch.testing.assert_close(y, torch.logsumexp(x, -1))
    gradient = grad_of(y, x)
    assert gradient.isfinite().all()
    expected = torch.zeros(3, dtype=torch.float64) if fill == -torch.inf else torch.full((3,), 1 / 3).double()
    torch.testing.assert_close(gradient[0], expected)


def test_convolution_for_every_length_and_stride() -> None:
    apply = gallery("convolution/conv1d").Conv1d.apply
    for length in range(4, 12):
        for stride, padding in [(1, 0), (2, 1), (3, 0), (4, 2)]:
            x, w, b = leaf(2, 3, length), leaf(4, 3, 3), leaf(4)
            y = F.conv1d(x, w, b, stride, padding)
            g = torch.randn_like(y)
            ours = torch.autograd.grad(apply(x, w, b, stride, padding), [x, w, b], g)
            for a, e in zip(ours, torch.autograd.grad(y, [x, w, b], g)):
                torch.testing.assert_close(a, e)


# memory


def test_recomputed_block_keeps_only_its_inputs() -> None:
    module = gallery("memory/recompute_block")
    x, up, down = leaf(50, 4), leaf(64, 4), leaf(4, 64)
    inputs = sum(t.numel() * 8 for t in (x, up, down))
    assert saved_bytes(lambda: module.RecomputedBlock.apply(x, up, down)) == inputs
    assert saved_bytes(lambda: module.block(x, up, down)) == inputs + 2 * 50 * 64 * 8


def test_recomputed_sequence_trains_its_parameters_and_replays_dropout() -> None:
    module = gallery("memory/recompute_sequence")
    torch.manual_seed(3)
    layers = [nn.Linear(3, 20), nn.Dropout(0.5), nn.Tanh(), nn.Linear(20, 2)]
    plain, recomputed = nn.Sequential(*layers).double(), module.Recomputed(*layers)
    x, results = leaf(6, 3), []
    for model in (plain, recomputed):
        torch.manual_seed(5)
        loss = model(x).square().sum()
        torch.rand(7)  # somebody else draws in between
        after = torch.get_rng_state()
        results.append([loss.detach(), *torch.autograd.grad(loss, [x, *model.parameters()])])
        assert torch.equal(torch.get_rng_state(), after), "backward leaves the random state alone"
    for a, b in zip(*results):
        torch.testing.assert_close(a, b)


def test_rms_norm_saves_one_number_per_row() -> None:
    module = gallery("memory/selective_saving")
    x, w = leaf(50, 64), leaf(64)
    ours = saved_bytes(lambda: module.RMSNorm.apply(x * 1, w, 1e-6))
    plain = saved_bytes(lambda: (x * 1) * torch.rsqrt((x * 1).square().mean(-1, keepdim=True) + 1e-6) * w)
    assert ours == (50 * 64 + 64 + 50) * 8
    assert plain - ours >= 2 * 50 * 64 * 8
    torch.testing.assert_close(module.RMSNorm.apply(x, w, 1e-6), F.rms_norm(x, (64,), w, 1e-6))


def test_bit_mask_is_one_bit() -> None:
    module = gallery("memory/bit_mask")
    x = leaf(1000, 16)
    assert saved_bytes(lambda: module.BitMaskReLU.apply(x)) == 1000 * 16 // 8
    for count in (1, 7, 8, 9, 24):
        mask = torch.rand(count) > 0.5
        assert torch.equal(module.unpack(module.pack(mask), mask.shape), mask)


def test_fused_layer_keeps_one_activation() -> None:
    module = gallery("memory/fused_linear_relu")
    layer, x = module.LinearReLULayer(16, 32), leaf(50, 16, dtype=torch.float32)
    assert saved_bytes(lambda: layer(x)) == (50 * 16 + 32 * 16 + 50 * 32) * 4


def test_a_target_that_requires_grad_is_refused_with_the_remedy() -> None:
    module = gallery("memory/detached_target_loss")
    with pytest.raises(ValueError, match=r"pass target\.detach\(\)"):
        module.DetachedTargetLoss.apply(leaf(3), leaf(3))
    x, target = leaf(4, 3), leaf(4, 3)
    loss = module.BootstrapLoss()(x, target)
    torch.testing.assert_close(grad_of(loss, x), grad_of(F.mse_loss(x, target.detach()), x))


# second order


def test_cube_gives_every_derivative() -> None:
    x = torch.tensor(2.0, requires_grad=True)
    y, values = gallery("second_order/square_and_cube").Cube.apply(x), []
    for _ in range(3):
        (y,) = torch.autograd.grad(y, x, create_graph=True)
        values.append(y.item())
    assert values == [12.0, 12.0, 6.0]


def test_hvp_and_hessian_agree_with_torch_and_the_formula() -> None:
    product, matrix = gallery("second_order/hessian_vector_product"), gallery("second_order/hessian")
    x, v = torch.randn(5, dtype=torch.float64), torch.randn(5, dtype=torch.float64)
    beside = torch.diag(torch.ones(4, dtype=torch.float64), 1)
    exact = torch.diag(x**2) + beside + beside.T
    torch.testing.assert_close(matrix.hessian(matrix.quartic, x), exact)
    torch.testing.assert_close(torch.func.hessian(matrix.quartic)(x), exact)
    torch.testing.assert_close(product.hvp(product.quartic, x, v), exact @ v)
    assert not product.hvp(torch.sum, x, v).any()


def test_second_backward_is_refused_in_words_where_once_differentiable_is_silent() -> None:
    module = gallery("second_order/refuses_second_backward")
    x = torch.tensor([0.5], dtype=torch.float64, requires_grad=True)
    assert grad_of(module.SoftplusOnce.apply(x), x).item() == pytest.approx(torch.sigmoid(x).item())
    with pytest.raises(RuntimeError, match=r"only once: drop create_graph=True, or use torch\.nn"):
        torch.autograd.grad(module.SoftplusOnce.apply(x).sum(), x, create_graph=True)

    silent = gallery("memory/selective_saving").RMSNorm  # has once_differentiable alone
    a = leaf(2, 3)
    (first,) = torch.autograd.grad(silent.apply(a, torch.ones(3).double(), 1e-6).sum(), a, create_graph=True)
    (second,) = torch.autograd.grad((first * a).sum(), a)
    torch.testing.assert_close(second, first.detach(), msg="a silent constant, no error")


# gradient control


def control_gradient(name: str, function: str, g: Tensor, x: Tensor, *rest: Any) -> Tensor | None:
    y = getattr(gallery(f"control/{name}"), function).apply(x, *rest)
    return torch.autograd.grad(y, x, g, allow_unused=True)[0]


def test_each_surrogate_has_the_slope_it_claims() -> None:
    x, g = leaf(4, 3), torch.randn(4, 3, dtype=torch.float64)
    inside = x.detach().abs() <= 1
    expected: dict[str, tuple[str, tuple[Any, ...], Tensor | None]] = {
        "StopGradient": ("stop_gradient", (), None),
        "Sign": ("straight_through", (), g * inside),
        "Round": ("straight_through", (), g),
        "ScaleGradient": ("scale_and_reversal", (0.1,), 0.1 * g),
        "ReverseGradient": ("scale_and_reversal", (2.0,), -2 * g),
        "ClipByValue": ("clip", (0.5,), g.clamp(-0.5, 0.5)),
        "ClipByNorm": ("clip", (1.0,), g / g.norm()),
    }
    for function, (name, rest, claimed) in expected.items():
        got = control_gradient(name, function, g, x, *rest)
        if claimed is None:
            assert got is None
        else:
            torch.testing.assert_close(got, claimed, msg=function)


def test_clip_by_norm_leaves_short_and_zero_gradients_alone() -> None:
    x = leaf(4)
    for g in (torch.zeros(4).double(), torch.full((4,), 0.1).double()):
        torch.testing.assert_close(control_gradient("clip", "ClipByNorm", g, x, 1.0), g)


def test_sparsify_keeps_the_largest_quarter() -> None:
    g = torch.tensor([[0.1, -5.0, 2.0, 0.3], [1.0, 0.2, -3.0, 0.0]])
    kept = control_gradient("sparsify", "SparsifyGradient", g, leaf(2, 4, dtype=torch.float32), 0.25)
    assert kept is not None
    assert kept.tolist() == [[0, -5, 0, 0], [0, 0, -3, 0]]


def test_quantiser_passes_straight_inside_and_nothing_outside() -> None:
    apply = gallery("control/quantise").Quantise.apply
    x = torch.tensor([0.3, 0.9, 50.0, -50.0], dtype=torch.float64, requires_grad=True)
    step = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    y = apply(x, step, -4, 3)
    assert y.tolist() == [0.5, 1.0, 1.5, -2.0]
    assert grad_of(y, x).tolist() == [1, 1, 0, 0]
    exact = ((1 - 0.6) + (2 - 1.8) + 3 - 4) / (4 * 3) ** 0.5
    assert grad_of(y, step).item() == pytest.approx(exact)


def test_noise_has_its_size_and_no_bias() -> None:
    x, g = leaf(200, 200), torch.ones(200, 200, dtype=torch.float64)
    noise = control_gradient("noise", "NoisyGradient", g, x, 0.1) - g
    assert noise.std().item() == pytest.approx(0.1, rel=0.05)
    assert abs(noise.mean().item()) < 0.005


def test_routing_is_hard_forward_and_softmax_backward() -> None:
    x, g = leaf(4, 3), torch.randn(4, 3, dtype=torch.float64)
    y = gallery("control/routing").HardRoute.apply(x)
    assert torch.equal(y.detach(), F.one_hot(x.argmax(-1), 3).double())
    torch.testing.assert_close(grad_of(y, x, g), grad_of(x.softmax(-1), x, g))


def test_hooks_act_inside_the_block_and_are_gone_after_it() -> None:
    module = gallery("control/hooks")
    x, norms = torch.tensor([3.0, 0.1], requires_grad=True), []
    with module.hooked(x, module.log_norm(norms), module.clip(1.0), module.log_norm(norms)):
        inside = grad_of((x * x).sum(), x)
    torch.testing.assert_close(inside, torch.tensor([1.0, 0.2]))
    assert norms == pytest.approx([36.04**0.5, 1.04**0.5])
    assert grad_of((x * x).sum(), x).tolist() == pytest.approx([6.0, 0.2])
    assert len(norms) == 2
    with pytest.raises(KeyError), module.hooked(x, module.clip(1.0)):
        raise KeyError
    assert grad_of((x * x).sum(), x).tolist() == pytest.approx([6.0, 0.2])
    generator = torch.Generator().manual_seed(0)
    with module.hooked(x, module.add_noise(0.1, generator)):
        assert 0 < (grad_of(x.sum(), x) - 1).abs().max() < 1


# modern


@pytest.mark.parametrize("name", ["setup_context_vmap", "generated_vmap"])
def test_func_transforms(name: str) -> None:
    apply = gallery(f"modern/{name}").Softsign.apply
    x = torch.randn(4, 3, dtype=torch.float64)
    for dim in (0, 1):
        torch.testing.assert_close(torch.vmap(apply, in_dims=dim, out_dims=dim)(x), F.softsign(x))
    per_sample = torch.vmap(torch.func.grad(lambda row: apply(row).square().sum()))(x)
    torch.testing.assert_close(per_sample, torch.vmap(torch.func.grad(lambda r: F.softsign(r).square().sum()))(x))


def test_forward_mode_agrees_with_reverse() -> None:
    apply = gallery("modern/forward_mode").Softsign.apply
    x, t = torch.randn(4, dtype=torch.float64), torch.randn(4, dtype=torch.float64)
    torch.testing.assert_close(torch.func.jvp(apply, (x,), (t,))[1], t / (1 + x.abs()) ** 2)


def test_custom_op_passes_opcheck() -> None:
    module = gallery("modern/custom_op")
    results = torch.library.opcheck(module.softsign, module.gradsmith_inputs["softsign"]())
    assert set(results.values()) == {"SUCCESS"}


def test_autocast_backward_runs_outside_the_block() -> None:
    module = gallery("modern/autocast")
    a, b = leaf(4, 3, dtype=torch.float32), leaf(3, 5, dtype=torch.float32)
    with torch.autocast(module.DEVICE, torch.bfloat16):
        y = module.MatMul.apply(a, b)
    assert y.dtype == torch.bfloat16
    grad_a, grad_b = torch.autograd.grad(y, [a, b], torch.ones_like(y))
    torch.testing.assert_close(grad_a, b.detach().sum(1).expand(4, 3), rtol=0.02, atol=0.02)
    assert grad_b.dtype == torch.float32


def test_in_place_moves_the_version_counter() -> None:
    apply = gallery("modern/in_place").ExpInPlace.apply
    x = leaf(3)
    base = x * 1
    squared = base.square()  # saves base
    apply(base)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        squared.sum().backward()


# foreign


def test_numpy_sinc_at_zero_and_in_half_precision() -> None:
    apply = gallery("foreign/numpy_analytic").NumpySinc.apply
    x = torch.tensor([0.0, 1e-3, 2.0], dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(grad_of(apply(x), x), grad_of(torch.sinc(x), x), rtol=1e-6, atol=1e-9)
    assert apply(x.detach().bfloat16()).dtype == torch.bfloat16
    assert apply(torch.tensor(0.5)).shape == ()


def test_finite_difference_error_is_as_measured() -> None:
    module = gallery("foreign/numpy_finite_difference")
    x, f = module.gradsmith_inputs["BlackBoxFunction"]()

    def exact(p: Tensor) -> Tensor:
        angle, speed, damping = p
        for _ in range(50):
            speed = speed - 0.02 * (torch.sin(angle) + damping * speed)
            angle = angle + 0.02 * speed
        return torch.stack([angle, speed])

    assert np.allclose(f(x.detach().numpy()), exact(x).detach().numpy())
    g = torch.tensor([1.0, -2.0], dtype=torch.float64)
    true = grad_of(exact(x), x, g)
    error = (grad_of(module.BlackBoxFunction.apply(x, f), x, g) - true).norm() / true.norm()
    assert 0 < error < module.MEASURED_ERROR


def test_c_function() -> None:
    module = gallery("foreign/c_ctypes")
    if not module.AVAILABLE:
        with pytest.raises(RuntimeError, match="install a C compiler"):
            module.CSoftsign.apply(leaf(3))
        pytest.skip("no C compiler")
    x = leaf(4, 3)
    torch.testing.assert_close(module.CSoftsign.apply(x.T), F.softsign(x.T))
    torch.testing.assert_close(grad_of(module.CSoftsign.apply(x.T).sum(), x), grad_of(F.softsign(x).sum(), x))


def test_triton_file_reads_without_triton_and_says_what_it_needs() -> None:
    module = gallery("foreign/triton_kernel")
    if module.AVAILABLE:
        pytest.skip("triton and a GPU are here; gradcheck covers it")
    assert module.gradsmith_inputs == {}
    with pytest.raises(RuntimeError, match=r"needs triton and a GPU: use torch\.nn\.functional\.silu"):
        module.GatedUnit.apply(leaf(3), leaf(3))


# recurrent


def test_five_rnns_same_weights_same_result() -> None:
    makers: dict[str, Callable[[int, int], nn.Module]] = {
        "two_linears": gallery("recurrent/rnn_two_linears").TwoLinearRNN,
        "hoisted": gallery("recurrent/rnn_hoisted").HoistedRNN,
        "unbind": gallery("recurrent/rnn_unbind").UnbindRNN,
        "bptt": gallery("recurrent/rnn_bptt").HandWrittenRNN,
    }
    models = {name: make(3, 5).double() for name, make in makers.items()}
    first = models["two_linears"]
    for model in models.values():
        model.load_state_dict(first.state_dict())
    models["builtin"] = gallery("recurrent/rnn_builtin").BuiltinRNN(3, 5).double()
    models["builtin"].take_weights(first.from_input, first.from_state)
    x = leaf(7, 2, 3)
    g = torch.randn(7, 2, 5, dtype=torch.float64)
    reference = None
    for name, model in models.items():
        y = model(x)
        result = [y.detach(), *torch.autograd.grad(y, [x, *model.parameters()], g)]
        if name == "builtin":  # nn.RNN orders its parameters by kind, the others by layer
            y, dx, w_ih, w_hh, b_ih, b_hh = result
            result = [y, dx, w_ih, b_ih, w_hh, b_hh]
        reference = reference or result
        for a, b in zip(result, reference):
            torch.testing.assert_close(a, b)


def test_unbind_spares_a_full_size_gradient_per_step() -> None:
    written = {}
    for name in ("two_linears", "unbind"):
        make = next(v for k, v in vars(gallery(f"recurrent/rnn_{name}")).items() if k in ("TwoLinearRNN", "UnbindRNN"))
        model, x = make(3, 5), leaf(20, 2, 3, dtype=torch.float32)
        written[name] = count_ops(model(x).sum().backward)["aten::select_backward"]
    assert written == {"two_linears": 20, "unbind": 0}


def test_hand_written_backpropagation_uses_one_product_per_weight() -> None:
    model, x = gallery("recurrent/rnn_bptt").HandWrittenRNN(3, 5), leaf(20, 2, 3, dtype=torch.float32)
    loop = gallery("recurrent/rnn_unbind").UnbindRNN(3, 5)
    products = []
    for rnn in (model, loop):
        calls = count_ops(rnn(x).sum().backward)
        products.append(calls["aten::mm"] + calls["aten::bmm"] + calls["aten::addmm"])
    assert products[0] <= 20 + 3
    assert products[1] >= 2 * 20


def test_nothing_of_the_gallery_outlives_its_graph() -> None:
    """No reference cycle: with the collector off, the graph of every Function dies with its output."""
    gc.collect()
    gc.disable()
    try:
        for case in (c for c in cases() if c.is_function):
            outputs = case.differentiable(*case.inputs())
            watch = [weakref.ref(y) for y in outputs]
            del outputs
            assert [w() for w in watch] == [None] * len(watch), str(case)
    finally:
        gc.enable()
