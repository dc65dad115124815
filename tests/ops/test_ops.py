"""What every op promises: the values and gradients of plain PyTorch, whatever the dtype, the layout and who is watching."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

import gradsmith as gs
from gradsmith import ops
from gradsmith.native.kernels import Kernels

from .op_cases import CASES, Case

every = pytest.mark.parametrize("case", CASES, ids=str)
HALF = {torch.float16: 2e-2, torch.bfloat16: 1e-1}


def gradients(y: Tensor, inputs: list[Tensor]) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(1)
    return torch.autograd.grad(y, inputs, torch.randn(y.shape, generator=generator, dtype=torch.float64).to(y.dtype))


def assert_same(case: Case, inputs: list[Tensor], **close: float) -> None:
    ours, plain = case.ours(*inputs), case.plain(*inputs)
    torch.testing.assert_close(ours, plain, **close)
    torch.testing.assert_close(gradients(ours, inputs), gradients(plain, inputs), **close)


@every
def test_gradsmith_verifies_its_own_op(case: Case) -> None:
    report = gs.check(case.ours, *case.inputs(), reference=case.plain, level="quick")
    assert report.ok, str(report)


@every
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_values_and_gradients_are_those_of_torch(case: Case, dtype: torch.dtype) -> None:
    assert_same(case, case.inputs(dtype), rtol=2e-5, atol=2e-5)


@every
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e30, 0.0], ids=str)
def test_what_is_not_finite_or_too_large_is_what_torch_makes_of_it(case: Case, value: float) -> None:
    inputs = case.inputs(torch.float32)
    with torch.no_grad():
        inputs[0].flatten()[0] = value
    assert_same(case, inputs, rtol=2e-5, atol=2e-5, equal_nan=True)


@every
def test_without_a_compiler_nothing_changes(case: Case, without_compiler: None) -> None:
    assert_same(case, case.inputs())


@every
@pytest.mark.parametrize("dtype", HALF, ids=str)
def test_half_precision_is_close_to_the_truth_and_keeps_its_dtype(case: Case, dtype: torch.dtype) -> None:
    inputs = case.inputs(dtype)
    exact = [x.detach().double().requires_grad_() for x in inputs]
    ours, truth = case.ours(*inputs), case.plain(*exact)
    assert ours.dtype in (dtype, torch.float32)
    torch.testing.assert_close(ours.double(), truth, rtol=HALF[dtype], atol=HALF[dtype])
    for own, true in zip(gradients(ours, inputs), gradients(truth, exact)):
        assert own.dtype == dtype
        torch.testing.assert_close(own.double(), true, rtol=HALF[dtype], atol=2 * HALF[dtype])


@every
def test_strides_do_not_matter(case: Case) -> None:
    def spread(x: Tensor) -> Tensor:
        wide = x.detach().new_full((*x.shape, 2), float("nan"))
        wide[..., 0] = x.detach()
        return wide[..., 0].requires_grad_()

    inputs = [spread(x) for x in case.inputs()]
    ours, plain = case.ours(*inputs), case.plain(*inputs)
    torch.testing.assert_close(ours, plain)
    other = torch.full((*ours.shape, 3), float("nan"), dtype=ours.dtype)
    other[..., 1] = torch.linspace(-1, 1, ours.numel(), dtype=ours.dtype).reshape(ours.shape)
    for given in (other[..., 1], torch.ones((), dtype=ours.dtype).expand(ours.shape)):
        torch.testing.assert_close(
            torch.autograd.grad(ours, inputs, given, retain_graph=True),
            torch.autograd.grad(plain, inputs, given, retain_graph=True),
        )


@every
def test_second_derivatives_are_right(case: Case) -> None:
    inputs = case.inputs()

    def twice(function: object) -> tuple[Tensor, ...]:
        y = function(*inputs)  # type: ignore[operator]
        weights = torch.linspace(1, 2, y.numel(), dtype=y.dtype).reshape(y.shape)
        first = torch.autograd.grad((y * weights).sum(), inputs, create_graph=True)
        total = sum((g.sin() * torch.linspace(1, 2, g.numel(), dtype=g.dtype).reshape(g.shape)).sum() for g in first)
        return torch.autograd.grad(total, inputs, allow_unused=True, materialize_grads=True)

    torch.testing.assert_close(twice(case.ours), twice(case.plain))


@every
def test_compiles_as_one_graph(case: Case) -> None:
    torch._dynamo.reset()
    inputs = case.inputs()
    compiled = torch.compile(case.ours, fullgraph=True, backend="aot_eager")
    ours, plain = compiled(*inputs), case.plain(*inputs)
    torch.testing.assert_close(ours, plain)
    torch.testing.assert_close(gradients(ours, inputs), gradients(plain, inputs))


@every
def test_vmap_and_func_grad_give_what_a_loop_gives(case: Case) -> None:
    sets = [case.inputs(seed=seed) for seed in range(3)]
    stacked = [torch.stack([one[i].detach() for one in sets]) for i in range(len(sets[0]))]
    slope = torch.func.grad(lambda *xs: case.ours(*xs).sin().sum(), argnums=tuple(range(len(stacked))))
    torch.testing.assert_close(torch.func.vmap(case.ours)(*stacked), torch.stack([case.ours(*one) for one in sets]))
    loop = [torch.autograd.grad(case.plain(*one).sin().sum(), one) for one in sets]
    torch.testing.assert_close(torch.func.vmap(slope)(*stacked), tuple(torch.stack(column) for column in zip(*loop)))


@every
def test_a_batch_of_grad_outputs_gives_what_a_loop_gives(case: Case) -> None:
    inputs = case.inputs()
    y = case.ours(*inputs)
    many = torch.randn(3, *y.shape, dtype=y.dtype)
    together = torch.autograd.grad(y, inputs, many, is_grads_batched=True, retain_graph=True)
    loop = [torch.autograd.grad(y, inputs, one, retain_graph=True) for one in many]
    torch.testing.assert_close(together, tuple(torch.stack(column) for column in zip(*loop)))


@every
def test_forward_mode_works(case: Case) -> None:
    inputs = [x.detach() for x in case.inputs()]
    tangents = tuple(torch.ones_like(x) for x in inputs)
    if case.name.startswith("checkpoint"):
        pytest.skip("torch's own checkpoint")
    torch.testing.assert_close(
        torch.func.jvp(case.ours, tuple(inputs), tangents), torch.func.jvp(case.plain, tuple(inputs), tangents)
    )


@every
def test_autocast_gives_the_dtype_and_values_of_torch(case: Case) -> None:
    inputs = case.inputs(torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        ours, plain = case.ours(*inputs), case.plain(*inputs)
    assert ours.dtype == plain.dtype
    torch.testing.assert_close(ours, plain, rtol=3e-2, atol=3e-2)
    torch.testing.assert_close(gradients(ours, inputs), gradients(plain, inputs), rtol=5e-2, atol=1e-1)


@every
def test_two_threads_give_the_same(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradsmith.native.threads._WORTH_A_THREAD", 1)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert_same(case, case.inputs())
    finally:
        torch.set_num_threads(before)


def test_kernels_are_compiled_on_this_machine() -> None:
    """Otherwise all tests of C above test PyTorch."""
    from gradsmith.ops import bits, cross_entropy_rows, layer_norm, logsumexp, rms_norm, swiglu, swish  # noqa: F401

    for name in ("bits", "cross_entropy_rows", "layer_norm", "logsumexp", "rms_norm", "swiglu", "swish"):
        kernels: Kernels = sys.modules[f"gradsmith.ops.{name}"].KERNELS
        assert kernels.ready(torch.float32) and kernels.ready(torch.float64), name


def test_a_machine_without_a_compiler_uses_torch(tmp_path: object) -> None:
    code = (
        "import torch; from gradsmith import ops\n"
        "x = torch.randn(4, 8, requires_grad=True)\n"
        "ops.rms_norm(x, 8).sum().backward(); ops.dropout(x).sum().backward(); print(ops.rms_norm.__name__)"
    )
    environment = {"PATH": "/nowhere", "CC": "", "GRADSMITH_CACHE_DIR": str(tmp_path), "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "rms_norm", done.stderr


class TestEdges:
    def test_logsumexp_at_infinity_is_torch_s(self) -> None:
        inf, nan = float("inf"), float("nan")
        x = torch.tensor([[-inf, -inf], [inf, 1.0], [-inf, 2.0], [nan, 1.0], [1e4, -1e4]], requires_grad=True)
        ours, plain = ops.logsumexp(x), torch.logsumexp(x, -1)
        torch.testing.assert_close(ours, plain, equal_nan=True)
        torch.testing.assert_close(
            torch.autograd.grad(ours.sum(), x), torch.autograd.grad(plain.sum(), x), equal_nan=True
        )

    def test_nothing_in_nothing_out(self) -> None:
        for y in (
            ops.rms_norm(torch.zeros(0, 3, requires_grad=True), 3), ops.swish(torch.zeros(0, requires_grad=True)),
            ops.logsumexp(torch.zeros(0, 3, requires_grad=True)), ops.layer_norm(torch.zeros(0, 3, requires_grad=True), 3),
            ops.dropout(torch.zeros(0, requires_grad=True)),
        ):  # fmt: skip
            y.sum().backward()

    def test_a_size_of_zero_in_the_last_dimension(self) -> None:
        x, w = torch.zeros(4, 0, requires_grad=True), torch.zeros(3, 0, requires_grad=True)
        for y in (ops.linear_relu(x, w), ops.linear_cross_entropy(x, w, torch.zeros(4, dtype=torch.int64))):
            assert torch.autograd.grad(y.sum(), w)[0].shape == w.shape

    def test_shapes_can_be_had_on_the_meta_device(self) -> None:
        x, w = torch.zeros(4, 3, device="meta", requires_grad=True), torch.zeros(3, device="meta")
        for y in (ops.layer_norm(x, 3, w), ops.rms_norm(x, 3, w), ops.linear_relu(x, x), ops.swiglu(x, x)):
            assert y.device.type == "meta"

    def test_an_infinite_input_is_as_in_torch(self) -> None:
        x = torch.tensor([float("-inf"), float("inf"), float("nan"), -100.0, 1.0])
        torch.testing.assert_close(ops.swish(x, torch.tensor(2.0)), x * torch.sigmoid(2 * x), equal_nan=True)
        torch.testing.assert_close(ops.swiglu(x, torch.ones(5)), F.silu(x), equal_nan=True)

    @pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
    def test_the_compiled_loss_makes_no_logits(self, reduction: str) -> None:
        torch._dynamo.reset()
        x, w = torch.randn(6, 4, requires_grad=True), torch.randn(7, 4, requires_grad=True)
        target = torch.tensor([0, 6, -100, 2, 3, 3])
        seen: list[torch.fx.Node] = []

        def looks(graph: torch.fx.GraphModule, inputs: object) -> object:
            seen.extend(graph.graph.nodes)
            return make_boxed_func(graph.forward)

        from functorch.compile import make_boxed_func
        from torch._dynamo.backends.common import aot_autograd

        step = torch.compile(
            lambda: ops.linear_cross_entropy(x, w, target, chunk=4, reduction=reduction).sum(),
            fullgraph=True, backend=aot_autograd(fw_compiler=looks, bw_compiler=looks),
        )  # fmt: skip
        plain = F.cross_entropy(x @ w.t(), target, reduction=reduction).sum()
        torch.testing.assert_close(torch.autograd.grad(step(), [x, w]), torch.autograd.grad(plain, [x, w]))
        shapes = [n.meta["val"].shape for n in seen if isinstance(n.meta.get("val"), Tensor)]
        assert shapes and not any(shape.numel() >= 6 * 7 and 7 in shape and 4 not in shape for shape in shapes)

    def test_a_second_derivative_of_the_compiled_loss_is_refused(self) -> None:
        torch._dynamo.reset()
        x, w = torch.randn(6, 4, requires_grad=True), torch.randn(7, 4)
        loss = torch.compile(lambda x: ops.linear_cross_entropy(x, w, torch.arange(6)), backend="aot_eager")(x)
        (first,) = torch.autograd.grad(loss, x, create_graph=True)
        with pytest.raises(RuntimeError, match="does not currently support double backward"):
            first.sum().backward()

    def test_all_rows_ignored_is_nan_as_in_torch(self) -> None:
        x, w = torch.randn(2, 3, requires_grad=True), torch.randn(4, 3, requires_grad=True)
        target = torch.tensor([-100, -100])
        assert ops.linear_cross_entropy(x, w, target).isnan() and F.cross_entropy(x @ w.t(), target).isnan()
        assert ops.linear_cross_entropy(x, w, target, reduction="sum") == 0

    def test_layer_norm_with_a_weight_of_zero(self) -> None:
        x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
        w, b = torch.tensor([0.0, 1, 1], dtype=torch.float64, requires_grad=True), torch.ones(3, dtype=torch.float64)
        ours, plain = ops.layer_norm(x, 3, w, b), F.layer_norm(x, (3,), w, b)
        torch.testing.assert_close(
            torch.autograd.grad(ours.sin().sum(), [x, w]), torch.autograd.grad(plain.sin().sum(), [x, w])
        )

    @pytest.mark.parametrize("count", [1, 7, 8, 9, 4096 * 8 + 3])
    def test_masks_take_one_bit_per_element(self, count: int) -> None:
        saved: list[Tensor] = []
        with torch.autograd.graph.saved_tensors_hooks(lambda t: (saved.append(t), t)[1], lambda t: t):
            y = ops.dropout(torch.ones(count, requires_grad=True), 0.4)
        assert [(t.dtype, t.numel()) for t in saved] == [(torch.uint8, -(-count // 8))]
        assert set(y.unique().tolist()) <= {0.0, y.max().item()}

    def test_dropout_drops_as_often_as_asked_and_backward_where_forward_did(self) -> None:
        x = torch.ones(100_000, requires_grad=True)
        y = ops.dropout(x, 0.3)
        (grad,) = torch.autograd.grad(y.sum(), x)
        torch.testing.assert_close(grad, y.detach())
        assert abs((y == 0).float().mean().item() - 0.3) < 0.01
        assert ops.dropout(x, 0.3, training=False) is x and (ops.dropout(x, 1.0) == 0).all()

    def test_masks_packed_in_c_and_in_torch_are_the_same(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from gradsmith.ops.bits import pack, select, unpack

        mask, x = torch.rand(1003) > 0.5, torch.randn(1003)
        bits, chosen = pack(mask), select(x, pack(mask), 2.0)
        monkeypatch.setattr(Kernels, "ready", lambda self, dtype: False)
        assert torch.equal(pack(mask), bits) and torch.equal(unpack(bits, mask.shape), mask)
        torch.testing.assert_close(select(x, bits, 2.0), chosen)

    def test_checkpoint_replays_dropout_and_reaches_parameters(self) -> None:
        block = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.5), torch.nn.Tanh())
        x = torch.randn(6, 4)
        found = []
        for run in (
            block,
            lambda t: ops.checkpoint(block, t),
            lambda t: ops.checkpoint_sequence(block, t, 2),
            ops.Checkpoint(block),
        ):
            torch.manual_seed(3)
            found.append(torch.autograd.grad(run(x).square().sum(), list(block.parameters())))
        for other in found[1:]:
            torch.testing.assert_close(other, found[0])

    def test_modules_do_what_functions_do(self) -> None:
        x = torch.randn(5, 4)
        torch.testing.assert_close(ops.RMSNorm(4)(x), torch.nn.RMSNorm(4)(x))
        torch.testing.assert_close(ops.LayerNorm(4)(x), torch.nn.LayerNorm(4)(x))
        torch.testing.assert_close(ops.Swish(4)(x), F.silu(x))
        head, target = ops.LinearCrossEntropy(4, 9, label_smoothing=0.1), torch.arange(5)
        torch.testing.assert_close(head(x, target), F.cross_entropy(head.logits(x), target, label_smoothing=0.1))
        layer = ops.LinearReLU(4, 3)
        torch.testing.assert_close(layer(x), F.linear(x, layer.weight, layer.bias).relu())
        ffn = ops.SwiGLU(4, 8)
        torch.testing.assert_close(ffn(x), ffn.down(F.silu(ffn.gate(x)) * ffn.up(x)))
        assert torch.equal(ops.Dropout(0.5).eval()(x), x)


X, W, T = torch.randn(2, 3), torch.randn(4, 3), torch.tensor([0, 1])
BAD = [
    (lambda: ops.rms_norm(X, 4), ValueError, r"x has shape \(2, 3\), which does not end with normalized_shape \(4,\)"),
    (lambda: ops.rms_norm(X, ()), ValueError, "normalized_shape is empty"),
    (lambda: ops.rms_norm(X, 3, torch.ones(2)), ValueError, r"weight has shape \(2,\), expected \(3,\)"),
    (lambda: ops.rms_norm(torch.ones(3, dtype=torch.int64), 3), TypeError, "x has dtype torch.int64"),
    (lambda: ops.layer_norm(X, 3, torch.ones(3), torch.ones(4)), ValueError, r"bias has shape \(4,\)"),
    (lambda: ops.swish([1.0]), TypeError, "x must be a tensor, not list"),
    (lambda: ops.swish(X, torch.ones(2)), ValueError, r"beta of shape \(2,\) does not broadcast to x of \(2, 3\)"),
    (lambda: ops.logsumexp(X, 2), IndexError, "x has 2 dimension"),
    (lambda: ops.logsumexp(X, (0, 1)), TypeError, "torch.logsumexp takes several"),
    (lambda: ops.swiglu(X, W), ValueError, r"gate has shape \(2, 3\) and up \(4, 3\)"),
    (lambda: ops.linear_relu(X, torch.ones(4, 2)), ValueError, r"does not fit weight of shape \(4, 2\)"),
    (lambda: ops.linear_relu(X, W, torch.ones(3)), ValueError, r"bias has shape \(3,\), expected \(4,\)"),
    (lambda: ops.linear_relu(X, W.double()), TypeError, "x has dtype torch.float32 but weight torch.float64"),
    (lambda: ops.linear_relu(X, W[0]), ValueError, r"expected \(outputs, inputs\)"),
    (lambda: ops.dropout(X, 1.5), ValueError, "p must be between 0 and 1; it is 1.5"),
    (lambda: ops.Dropout(-1), ValueError, "p must be between 0 and 1"),
    (lambda: ops.linear_cross_entropy(X, W, T[:1]), ValueError, r"target has shape \(1,\), expected \(2,\)"),
    (lambda: ops.linear_cross_entropy(X, W, T.float()), TypeError, "class numbers .int64., not torch.float32"),
    (lambda: ops.linear_cross_entropy(X, W, T + 9), IndexError, "target 9 is not a class; there are 4"),
    (lambda: ops.linear_cross_entropy(X, W, T, reduction="avg"), ValueError, "reduction must be"),
    (lambda: ops.linear_cross_entropy(X, W, T, label_smoothing=2), ValueError, "label_smoothing must be between"),
    (lambda: ops.linear_cross_entropy(X, W, T, softcap=0.0), ValueError, "softcap must be above 0"),
    (lambda: ops.linear_cross_entropy(X, W, T, z_loss=-1.0), ValueError, "z_loss must be 0 or more"),
    (lambda: ops.linear_cross_entropy(X, W, T, chunk=0), ValueError, "chunk must be at least 1"),
    (lambda: ops.linear_cross_entropy(X, W, T, class_weight=torch.ones(3)), ValueError, r"expected \(4,\)"),
    (lambda: ops.linear_cross_entropy(X, W, T, class_weight=torch.ones(4, requires_grad=True)), ValueError, "detach it"),
    (lambda: ops.checkpoint_sequence([], X), ValueError, "there are no layers"),
    (lambda: ops.checkpoint_sequence([torch.sin], X, 2), ValueError, "between 1 and 1"),
    (lambda: ops.checkpoint(3, X), TypeError, "not int"),
    (lambda: ops.bits.pack(X), TypeError, "expected torch.bool"),
    (lambda: ops.bits.unpack(torch.zeros(1, dtype=torch.uint8), torch.Size([9])), ValueError, "expected 2 bytes"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "sentence"), BAD, ids=[sentence[:40] for _, _, sentence in BAD])
def test_bad_input_gets_a_sentence(call: object, error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=sentence):
        call()  # type: ignore[operator]
