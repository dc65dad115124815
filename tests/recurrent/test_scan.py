"""`scan`: the interface, what it accepts, and what it says to bad input."""

from __future__ import annotations

import sys
from collections import deque
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from gradsmith.recurrent import plan, scan

T, B, H = 6, 3, 5


def tanh_step(x: Tensor, h: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    h = torch.tanh(x + h @ w)
    return h, h


def by_hand(step: Any, x: Tensor, state: Any, *params: Tensor) -> tuple[Tensor, Any]:
    outputs = []
    for t in range(x.shape[0]):
        y, state = step(x[t], state, *params)
        outputs.append(y)
    return torch.stack(outputs), state


@pytest.mark.parametrize("backend", ["auto", "c", "torch", "loop"])
def test_every_backend_is_the_loop(backend: str) -> None:
    x, h, w = (
        torch.randn(T, B, H, requires_grad=True),
        torch.randn(B, H, requires_grad=True),
        torch.randn(H, H, requires_grad=True),
    )
    y, last = scan(tanh_step, x, h, (w,), backend=backend)
    want_y, want_last = by_hand(tanh_step, x, h, w)
    torch.testing.assert_close((y, last), (want_y, want_last))
    got = torch.autograd.grad(y.square().sum() + last.sum(), [x, h, w])
    want = torch.autograd.grad(want_y.square().sum() + want_last.sum(), [x, h, w])
    torch.testing.assert_close(got, want)


def test_structures_come_back_as_they_went_in() -> None:
    class State(NamedTuple):
        fast: Tensor
        slow: dict[str, Tensor]

    def step(x: Any, state: State) -> Any:
        fast = torch.tanh(x["a"] + state.fast + x["b"][0])
        slow = {"v": 0.9 * state.slow["v"] + 0.1 * fast}
        return [fast, {"slow": slow["v"]}], State(fast, slow)

    x = {"a": torch.randn(T, B, H), "b": (torch.randn(T, B, H),)}
    y, last = scan(step, x, State(torch.zeros(B, H), {"v": torch.zeros(B, H)}))
    assert isinstance(last, State)
    assert y[0].shape == y[1]["slow"].shape == (T, B, H)
    torch.testing.assert_close(y[1]["slow"][-1], last.slow["v"])


def test_batch_and_time_sizes_need_no_new_code() -> None:
    w = torch.randn(H, H, requires_grad=True)
    first = plan(tanh_step, torch.randn(4, 3, H), torch.zeros(3, H), (w,))
    second = plan(tanh_step, torch.randn(9, 7, H), torch.zeros(7, H), (w,))
    assert first is second
    assert first.checked == {3, 7}


def test_reverse_runs_from_the_end() -> None:
    x, w = torch.randn(T, B, H), torch.randn(H, H)
    y, last = scan(tanh_step, x, torch.zeros(B, H), (w,), reverse=True)
    want, want_last = by_hand(tanh_step, x.flip(0), torch.zeros(B, H), w)
    torch.testing.assert_close((y.flip(0), last), (want, want_last))


@pytest.mark.parametrize("backend", ["c", "loop"])
def test_checkpoint_every_changes_memory_not_results(backend: str) -> None:
    x, w = torch.randn(11, B, H, requires_grad=True), torch.randn(H, H, requires_grad=True)
    results = []
    for every in (None, 4):
        y, last = scan(tanh_step, x, torch.zeros(B, H), (w,), checkpoint_every=every, backend=backend)
        results.append((y, last, *torch.autograd.grad(y.sin().sum() + last.sum(), [x, w])))
    torch.testing.assert_close(results[0], results[1])


def test_unbatched_and_scalar_steps_work() -> None:
    y, last = scan(lambda x, h: (x * h, h + x), torch.arange(4.0), torch.tensor(1.0))
    torch.testing.assert_close(last, torch.tensor(7.0))
    assert y.shape == (4,)


class TestClosures:
    def test_parameters_in_a_closure_get_gradients(self) -> None:
        w = torch.randn(H, H, requires_grad=True)
        x = torch.randn(T, B, H)
        y, _ = scan(lambda x, h: (torch.tanh(x + h @ w),) * 2, x, torch.zeros(B, H))
        want, _ = by_hand(lambda x, h: (torch.tanh(x + h @ w),) * 2, x, torch.zeros(B, H))
        torch.testing.assert_close(torch.autograd.grad(y.sum(), w), torch.autograd.grad(want.sum(), w))

    def test_a_tensor_computed_from_parameters_passes_its_gradient_on(self) -> None:
        v = torch.randn(H, H, requires_grad=True)
        w = 0.5 * v.tanh()
        y, _ = scan(lambda x, h: (torch.tanh(x + h @ w),) * 2, torch.randn(T, B, H), torch.zeros(B, H))
        (gradient,) = torch.autograd.grad(y.sum(), v)
        assert gradient.abs().sum() > 0

    def test_a_closure_tensor_is_read_anew_at_every_call(self) -> None:
        x, h = torch.randn(T, B, H), torch.zeros(B, H)
        scale = {"w": torch.ones(H)}

        def step(x: Tensor, h: Tensor) -> Any:
            h = torch.tanh(x + h * scale["w"])
            return h, h

        first, _ = scan(step, x, h)
        scale["w"] = 2 * torch.ones(H)
        second, _ = scan(step, x, h)
        torch.testing.assert_close(second, by_hand(step, x, h)[0])
        assert not torch.equal(first, second)

    @pytest.mark.parametrize("where", ["attribute", "global", "closure"])
    def test_a_changed_python_value_is_noticed(self, where: str) -> None:
        class Cell(nn.Module):
            leak = 0.9

            def forward(self, x: Tensor, h: Tensor) -> Any:
                h = self.leak * h + leak * x + LEAK
                return h, h

        global LEAK
        LEAK = 0.1
        leak = 0.3
        cell, x, h = Cell(), torch.randn(T, B, H), torch.zeros(B, H)
        scan(cell, x, h)
        if where == "attribute":
            cell.leak = 0.5
        elif where == "global":
            LEAK = 0.7
        else:
            leak = 0.6
        torch.testing.assert_close(scan(cell, x, h)[0], by_hand(cell, x, h)[0])

    def test_numpy_arrays_and_queues_are_seen_by_value(self) -> None:
        numbers, queue = np.array([0.5, 0.25]), deque([0.5])

        def step(x: Tensor, h: Tensor) -> Any:
            h = float(numbers[0]) * h + x * queue[-1]
            return h, h

        x, h = torch.randn(T, B, H), torch.ones(B, H)
        for change in (lambda: None, lambda: numbers.__setitem__(0, 0.75), lambda: queue.append(2.0)):
            change()
            torch.testing.assert_close(scan(step, x, h), by_hand(step, x, h))

    def test_a_number_read_from_a_closure_tensor_is_not_baked_in(self) -> None:
        scale = torch.tensor(0.5)

        def step(x: Tensor, h: Tensor) -> Any:
            h = float(scale) * h + x
            return h, h

        x, h = torch.randn(T, B, H), torch.ones(B, H)
        torch.testing.assert_close(scan(step, x, h), by_hand(step, x, h))
        scale.fill_(2.0)
        torch.testing.assert_close(scan(step, x, h), by_hand(step, x, h))

    def test_a_constant_that_changes_all_the_time_is_not_compiled_all_the_time(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
    ) -> None:
        from gradsmith.recurrent import scan as module

        monkeypatch.setenv(
            "GRADSMITH_CACHE_DIR", str(tmp_path)
        )  # a plan that an earlier run left on disk is not counted
        monkeypatch.setattr(sys.modules[module.__module__], "MOST_VERSIONS", 2)
        x, h = torch.randn(T, B, H), torch.zeros(B, H)
        for leak in (0.1, 0.2, 0.3):
            step = lambda x, h, leak=leak: (leak * h + x,) * 2  # noqa: E731
            torch.testing.assert_close(scan(step, x, h)[0], by_hand(step, x, h)[0])
        assert "pass it as a tensor" in str(plan(step, x, h))

    def test_a_function_that_takes_a_closure_tensor_keeps_its_gradient(self) -> None:
        class Scale(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Tensor, w: Tensor) -> Tensor:
                ctx.save_for_backward(x, w)
                return x * w

            @staticmethod
            def backward(ctx: Any, g: Tensor) -> Any:
                x, w = ctx.saved_tensors
                return g * w, (g * x).sum(0)

        w = torch.randn(H, requires_grad=True)

        def step(x: Tensor, h: Tensor) -> Any:
            h = torch.tanh(x + Scale.apply(h, w))
            return h, h

        x = torch.randn(T, B, H)
        y, _ = scan(step, x, torch.ones(B, H))
        want, _ = by_hand(step, x, torch.ones(B, H))
        torch.testing.assert_close(torch.autograd.grad(y.sum(), w), torch.autograd.grad(want.sum(), w))
        assert plan(step, x, torch.ones(B, H)).backend == "c"

    def test_a_memory_with_a_row_per_sequence_is_attended_to_in_c(self) -> None:
        memory = torch.randn(B, 4, H, requires_grad=True)

        def step(x: Tensor, h: Tensor) -> Any:
            weights = torch.softmax((memory @ h.unsqueeze(-1)).squeeze(-1), -1)
            h = torch.tanh(x + torch.bmm(weights.unsqueeze(1), memory).squeeze(1))
            return h, h

        x, h = torch.randn(T, B, H), torch.randn(B, H)
        assert plan(step, x, h).backend == "c", str(plan(step, x, h))
        got = torch.autograd.grad(scan(step, x, h)[0].sin().sum(), memory)
        want = torch.autograd.grad(by_hand(step, x, h)[0].sin().sum(), memory)
        torch.testing.assert_close(got, want)


class TestSteps:
    def test_a_step_with_a_counter_is_run_step_by_step(self) -> None:
        class Counting(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.count = 0

            def forward(self, x: Tensor, h: Tensor) -> Any:
                self.count += 1
                h = h + x * self.count
                return h, h

        cell = Counting()
        x = torch.ones(T, B, H)
        assert plan(cell, x, torch.zeros(B, H)).backend == "loop"
        cell.count = 0
        _, last = scan(cell, x, torch.zeros(B, H))
        assert last[0, 0] == sum(range(1, T + 1))

    def test_random_steps_draw_anew(self) -> None:
        def step(x: Tensor, h: Tensor) -> Any:
            h = nn.functional.dropout(h + x, 0.5)
            return h, h

        y, _ = scan(step, torch.ones(T, 50, H), torch.zeros(50, H))
        assert not torch.equal(y[0] == 0, y[1] == 0)

    @pytest.mark.parametrize("every", [None, 2])
    def test_random_numbers_are_the_same_in_backward(self, every: int | None) -> None:
        def step(x: Tensor, h: Tensor) -> Any:
            y = nn.functional.dropout(x, 0.5)
            return y, h + y

        x = torch.ones(T, 50, H, requires_grad=True)
        y, _ = scan(step, x, torch.zeros(50, H), checkpoint_every=every)
        (gradient,) = torch.autograd.grad(y.sum(), x)
        torch.testing.assert_close(gradient, y.detach())
        assert "draws random numbers" in str(plan(step, x, torch.zeros(50, H)))

    def test_a_data_dependent_if_is_run_step_by_step(self) -> None:
        def step(x: Tensor, h: Tensor) -> Any:
            h = torch.tanh(x + h) if h.mean() > 0 else x - h
            return h, h

        x, h = torch.randn(T, B, H, requires_grad=True), torch.randn(B, H)
        y, want = scan(step, x, h)[0], by_hand(step, x, h)[0]
        torch.testing.assert_close(torch.autograd.grad(y.sin().sum(), x), torch.autograd.grad(want.sin().sum(), x))
        chosen = plan(step, x, h)
        assert chosen.backend == "loop"
        assert "looks at values" in str(chosen)

    def test_numpy_inside_the_step_is_not_baked_in(self) -> None:
        def step(x: Tensor, h: Tensor) -> Any:
            h = torch.tanh(x + h * float(h.detach().numpy().mean()))
            return h, h

        x, h = torch.randn(T, B, H), torch.randn(B, H)
        torch.testing.assert_close(scan(step, x, h)[0], by_hand(step, x, h)[0])

    def test_dividing_by_the_batch_size_is_not_baked_in(self) -> None:
        def step(x: Tensor, h: Tensor) -> Any:
            h = torch.tanh(x + h / x.shape[0])
            return h, h

        for batch in (2, 5):
            x, h = torch.randn(T, batch, H), torch.randn(batch, H)
            torch.testing.assert_close(scan(step, x, h)[0], by_hand(step, x, h)[0])

    def test_token_ids_are_embedded_once(self) -> None:
        table = nn.Embedding(10, H)

        def step(ids: Tensor, h: Tensor) -> Any:
            h = torch.tanh(table(ids) + h)
            return h, h

        ids, h = torch.randint(0, 10, (T, B)), torch.zeros(B, H)
        got = torch.autograd.grad(scan(step, ids, h)[0].sin().sum(), table.weight)
        want = torch.autograd.grad(by_hand(step, ids, h)[0].sin().sum(), table.weight)
        torch.testing.assert_close(got, want)
        assert plan(step, ids, h).backend == "c", str(plan(step, ids, h))

    def test_nan_is_passed_on(self) -> None:
        x = torch.randn(T, B, H)
        x[2, 1, 3] = float("nan")
        step = lambda x, h: (torch.clamp(torch.relu(x + torch.tanh(h)), max=1.0).exp(),) * 2  # noqa: E731
        y, _ = scan(step, x, torch.zeros(B, H))
        torch.testing.assert_close(y, by_hand(step, x, torch.zeros(B, H))[0], equal_nan=True)


LEAK = 0.1
