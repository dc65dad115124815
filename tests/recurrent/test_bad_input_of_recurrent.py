"""Bad input to `scan`: each gets one clear sentence."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gradsmith.recurrent import scan

T, B, H = 6, 3, 5


def test_state_that_changes_shape() -> None:
    with pytest.raises(ValueError, match=r"state has shape \(3, 5\), but step returned shape \(3, 10\)"):
        scan(lambda x, h: (x, torch.cat([h, x], -1)), torch.randn(T, B, H), torch.zeros(B, H))


@pytest.mark.parametrize("what", ["state", "y", "structure of y"])
def test_what_changes_late(what: str) -> None:
    class Late(nn.Module):
        calls = 0

        def forward(self, x: Tensor, h: Tensor) -> Any:
            self.calls += 1
            if self.calls < 4:
                return x, h + x
            y: Any = {"state": x, "y": x[:, :2], "structure of y": (x,)}[what]
            return y, torch.cat([h, x], -1) if what == "state" else h

    sentence = {
        "state": r"state has shape \(3, 5\), but step returned shape \(3, 10\)",
        "y": r"returned y of shape \(3, 5\) at first, but \(3, 2\) at step 3; y must keep its shape",
        "structure of y": r"returned y of structure \* at first, but .*tuple.* at step 3",
    }[what]
    with pytest.raises(ValueError, match=sentence):
        scan(Late(), torch.randn(T, B, H), torch.zeros(B, H), backend="loop")


def test_a_dict_filled_anew_is_a_new_state() -> None:
    def step(x: Tensor, state: dict[str, Tensor]) -> Any:
        state["h"] = torch.tanh(x + state["h"])
        return state["h"], state

    x, mine = torch.randn(T, B, H), {"h": torch.zeros(B, H)}
    for backend in ("auto", "loop"):
        y, last = scan(step, x, mine, backend=backend)
        torch.testing.assert_close(y[-1], last["h"])
        assert (mine["h"] == 0).all()


def test_a_step_that_is_none() -> None:
    with pytest.raises(TypeError, match="step must be a function or a module, not NoneType"):
        scan(None, torch.randn(T, B, H), torch.zeros(B, H))  # type: ignore[arg-type]


def test_no_sequences_is_no_error() -> None:
    x = torch.randn(T, 0, H, requires_grad=True)
    y, _ = scan(lambda x, h: (torch.tanh(x + h),) * 2, x, torch.zeros(0, H))
    y.sum().backward()
    assert y.shape == (T, 0, H)


def test_state_that_changes_structure() -> None:
    with pytest.raises(ValueError, match="structure"):
        scan(lambda x, h: (x, (h, h)), torch.randn(T, B, H), torch.zeros(B, H))


def test_mismatched_lengths() -> None:
    with pytest.raises(ValueError, match=r"x\[0\] has 6 time steps but x\[1\] has 4"):
        scan(lambda x, h: (h, h), (torch.randn(6, B, H), torch.randn(4, B, H)), torch.zeros(B, H))


def test_no_time_dimension() -> None:
    with pytest.raises(ValueError, match="no time dimension"):
        scan(lambda x, h: (h, h), torch.tensor(1.0), torch.zeros(B, H))


def test_no_time_steps() -> None:
    with pytest.raises(ValueError, match="T must be at least 1"):
        scan(lambda x, h: (h, h), torch.randn(0, B, H), torch.zeros(B, H))


def test_state_changed_in_place() -> None:
    def step(x: Tensor, h: Tensor) -> Any:
        h += x
        return h, h

    with pytest.raises(ValueError, match="changes state in place"):
        scan(step, torch.randn(T, B, H), torch.zeros(B, H))


def test_input_changed_in_place() -> None:
    def step(x: Tensor, h: Tensor) -> Any:
        x.mul_(2)
        return h + x, h + x

    with pytest.raises(ValueError, match="changes its input x in place"):
        scan(step, torch.randn(T, B, H), torch.zeros(B, H))


def test_step_that_returns_one_thing() -> None:
    with pytest.raises(TypeError, match=r"must return \(y, state\)"):
        scan(lambda x, h: h + x, torch.randn(T, B, H), torch.zeros(B, H))


def test_state_that_is_no_tensor() -> None:
    with pytest.raises(TypeError, match=r"state\[1\] must be a tensor, not float"):
        scan(lambda x, h: (x, h), torch.randn(T, B, H), (torch.zeros(B, H), 1.0))


def test_unknown_backend() -> None:
    with pytest.raises(ValueError, match="backend must be one of"):
        scan(lambda x, h: (h, h), torch.randn(T, B, H), torch.zeros(B, H), backend="cuda")
