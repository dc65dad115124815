"""The engine among everything else that autograd is used with."""

from __future__ import annotations

import copy
import threading
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from gradsmith.recurrent import LayerNormLSTMCell, LIFCell, Recurrent, TanhRNNCell, plan, scan

T, B, I, H = 7, 4, 3, 6  # noqa: E741


def gradients(y: Tensor, cell: nn.Module) -> Any:
    return torch.autograd.grad(y.sin().sum(), list(cell.parameters()))


@pytest.mark.parametrize("backend", ["c", "torch"])
def test_double_backward(backend: str) -> None:
    cell = TanhRNNCell(I, H).double()
    x = torch.randn(3, 2, I, dtype=torch.float64, requires_grad=True)
    h = torch.randn(2, H, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda x, h: scan(cell, x, h, backend=backend)[0], (x, h))


def test_gradient_penalty_reaches_the_parameters() -> None:
    cell, x = LayerNormLSTMCell(I, H), torch.randn(T, B, I, requires_grad=True)
    found = []
    for backend in ("c", "loop"):
        y, _ = scan(cell, x, cell.initial_state(B), backend=backend)
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        found.append(torch.autograd.grad(g.square().sum(), cell.weight_hh))
    torch.testing.assert_close(found[0], found[1], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("backend", ["c", "torch"])
def test_gradcheck_in_float64(backend: str) -> None:
    cell = LayerNormLSTMCell(2, 3).double()
    x = torch.randn(3, 2, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: scan(cell, x, cell.initial_state(2), backend=backend)[0], (x,))


def test_no_grad_keeps_nothing() -> None:
    cell, x = TanhRNNCell(I, H), torch.randn(T, B, I, requires_grad=True)
    packed = []
    with torch.no_grad(), torch.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t):
        y, last = scan(cell, x, cell.initial_state(B))
    assert not packed
    assert not y.requires_grad
    assert y.grad_fn is last.grad_fn is None
    torch.testing.assert_close(y, scan(cell, x, cell.initial_state(B), backend="loop")[0])


def test_any_subset_of_inputs_may_require_gradients() -> None:
    w = torch.randn(H, H)

    def step(x: Tensor, h: Tensor, w: Tensor) -> Any:
        h = torch.tanh(x + h @ w)
        return h, h

    for wanted in range(8):
        leaves = [torch.randn(T, B, H), torch.randn(B, H), w.clone()]
        leaves = [leaf.requires_grad_(bool(wanted >> i & 1)) for i, leaf in enumerate(leaves)]
        sources = [leaf for leaf in leaves if leaf.requires_grad]
        y, _ = scan(step, leaves[0], leaves[1], (leaves[2],))
        want, _ = scan(step, leaves[0], leaves[1], (leaves[2],), backend="loop")
        assert y.requires_grad == want.requires_grad == bool(sources)
        if sources:
            torch.testing.assert_close(
                torch.autograd.grad(y.sin().sum(), sources), torch.autograd.grad(want.sin().sum(), sources)
            )


def test_only_the_last_state_is_used() -> None:
    cell, x = LIFCell(I, H), torch.randn(T, B, I, requires_grad=True)
    found = []
    for backend in ("c", "loop"):
        _, (v, _) = scan(cell, x, cell.initial_state(B), backend=backend)
        found.append(torch.autograd.grad(v.sum(), [x, cell.weight_ih]))
    torch.testing.assert_close(found[0], found[1])


def test_backward_twice_with_retain_graph() -> None:
    cell, x = TanhRNNCell(I, H), torch.randn(T, B, I)
    y, _ = scan(cell, x, cell.initial_state(B))
    first = torch.autograd.grad(y.sum(), cell.weight_ih, retain_graph=True)
    scan(cell, 2 * x, cell.initial_state(B))
    torch.testing.assert_close(torch.autograd.grad(y.sum(), cell.weight_ih), first)


def test_outputs_changed_in_place_are_noticed() -> None:
    cell, x = TanhRNNCell(I, H), torch.randn(T, B, I)
    y, _ = scan(cell, x, cell.initial_state(B))
    with pytest.raises(RuntimeError, match=r"inplace|in-place|modified"):
        y.mul_(2).sum().backward()


def test_strided_inputs_and_gradients() -> None:
    cell = TanhRNNCell(I, H)
    base = torch.randn(B, I, T, requires_grad=True)
    x = base.permute(2, 0, 1)
    found = []
    for backend in ("c", "loop"):
        y, _ = scan(cell, x, torch.zeros(1, H).expand(B, H), backend=backend)
        found.append(torch.autograd.grad(y.transpose(0, 2)[::2].sum(), [base, *cell.parameters()]))
    torch.testing.assert_close(found[0], found[1])


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_dtypes_in_and_out(dtype: torch.dtype) -> None:
    cell = TanhRNNCell(I, H).to(dtype)
    x = torch.randn(T, B, I, dtype=dtype, requires_grad=True)
    chosen = plan(cell, x, cell.initial_state(B))
    assert chosen.backend == "c", str(chosen)
    y, last = scan(cell, x, cell.initial_state(B))
    want, _ = scan(cell, x, cell.initial_state(B), backend="loop")
    assert y.dtype == last.dtype == dtype
    g, want_g = gradients(y, cell), gradients(want, cell)
    assert g[0].dtype == dtype
    tolerance = {"rtol": 5e-2, "atol": 5e-2} if dtype is not torch.float64 else {"rtol": 1e-10, "atol": 1e-10}
    torch.testing.assert_close((y, g), (want, want_g), **tolerance)


def test_autocast_returns_what_the_loop_returns() -> None:
    cell, x = nn.LSTMCell(I, H), torch.randn(T, B, I, requires_grad=True)
    layer, loop = Recurrent(cell), Recurrent(cell, backend="loop")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y, (h, c) = layer(x)
        want, (want_h, want_c) = loop(x)
    assert (y.dtype, h.dtype, c.dtype) == (want.dtype, want_h.dtype, want_c.dtype)
    torch.testing.assert_close(y, want, rtol=5e-2, atol=5e-2)
    (g,) = torch.autograd.grad(y.float().sum(), cell.weight_hh)
    (want_g,) = torch.autograd.grad(want.float().sum(), cell.weight_hh)
    assert g.dtype == torch.float32
    torch.testing.assert_close(g, want_g, rtol=1e-1, atol=1e-1)


def test_checkpoint() -> None:
    cell, x = LayerNormLSTMCell(I, H), torch.randn(T, B, I, requires_grad=True)
    plain = scan(cell, x, cell.initial_state(B))[0]
    for reentrant in (True, False):
        y = checkpoint(lambda x: scan(cell, x, cell.initial_state(B))[0], x, use_reentrant=reentrant)
        y.sum().backward()
        got = cell.weight_hh.grad
        cell.weight_hh.grad = None
        torch.testing.assert_close(got, torch.autograd.grad(plain.sum(), cell.weight_hh, retain_graph=True)[0])


def test_deepcopy_has_parameters_of_its_own() -> None:
    layer = Recurrent(TanhRNNCell(I, H))
    x = torch.randn(T, B, I)
    layer(x)
    twin = copy.deepcopy(layer)
    with torch.no_grad():
        twin.cell.weight_ih.zero_()
    y, _ = layer(x)
    y.sum().backward()
    assert twin.cell.weight_ih.grad is None
    assert layer.cell.weight_ih.grad is not None
    assert not torch.equal(twin(x)[0], y)


def test_many_threads_at_once() -> None:
    cell, x = LayerNormLSTMCell(I, H), torch.randn(T, B, I)
    want = gradients(scan(cell, x, cell.initial_state(B), backend="loop")[0], cell)
    found: list[Any] = []

    def work() -> None:
        for _ in range(5):
            found.append(gradients(scan(cell, x, cell.initial_state(B))[0], cell))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 30
    for gradient in found:
        torch.testing.assert_close(gradient, want, rtol=1e-4, atol=1e-5)


def test_one_graph_and_many_threads_in_backward() -> None:
    cell, x = LIFCell(I, H), torch.randn(T, B, I, requires_grad=True)
    y, _ = scan(cell, x, cell.initial_state(B))
    want = torch.autograd.grad(y.sum(), [x, *cell.parameters()], retain_graph=True)
    found: list[Any] = []

    def work() -> None:
        found.append(torch.autograd.grad(y.sum(), [x, *cell.parameters()], retain_graph=True))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6
    for gradients_of_thread in found:
        torch.testing.assert_close(gradients_of_thread, want, rtol=0, atol=0)


def test_inference_mode() -> None:
    cell, x = TanhRNNCell(I, H), torch.randn(T, B, I)
    with torch.inference_mode():
        y, _ = scan(cell, x, cell.initial_state(B))
    assert y.is_inference()
    torch.testing.assert_close(y.clone(), scan(cell, x, cell.initial_state(B), backend="loop")[0])


def test_results_do_not_depend_on_the_number_of_threads() -> None:
    cell, x = LayerNormLSTMCell(64, 64), torch.randn(60, 9, 64)
    before = torch.get_num_threads()
    found = []
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            y, _ = scan(cell, x, cell.initial_state(9))
            found.append((y, gradients(y, cell)))
    finally:
        torch.set_num_threads(before)
    torch.testing.assert_close(found[0], found[1], rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(found[0], found[2], rtol=1e-3, atol=1e-4)


def test_functorch_transforms_take_the_loop() -> None:
    cell, x = TanhRNNCell(I, H), torch.randn(T, B, I)

    def loss(x: Tensor) -> Tensor:
        return scan(cell, x, cell.initial_state(B))[0].sin().sum()

    y = x.clone().requires_grad_()
    torch.testing.assert_close(torch.func.grad(loss)(x), torch.autograd.grad(loss(y), y)[0])
    assert torch.func.vmap(lambda x: scan(cell, x, torch.zeros(B, H))[0])(torch.stack([x, x])).shape == (2, T, B, H)


@pytest.mark.deep
def test_torch_compile_around_it() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.head = Recurrent(nn.GRUCell(I, H)), nn.Linear(H, 2)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.layer(x.tanh())[0]).relu()

    model, x = Model(), torch.randn(T, B, I, requires_grad=True)
    compiled = torch.compile(model, backend="aot_eager")
    torch.testing.assert_close(compiled(x), model(x))
    got = torch.autograd.grad(compiled(x).sum(), [x, *model.parameters()])
    torch.testing.assert_close(got, torch.autograd.grad(model(x).sum(), [x, *model.parameters()]))
