"""Whatever changes what a step sees: the result is that of a plain Python loop, in this process and in the next."""

from __future__ import annotations

import dataclasses
import functools
import math
import os
import subprocess
import sys
import threading
import types
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
import torch.nn.functional as F

from gradsmith.recurrent import plan, scan
from gradsmith.recurrent.layer import step_of

from .test_plans_on_disk import forget
from .ways_to_change import WAYS, source

T, B, H = 3, 2, 3


@pytest.fixture(autouse=True)
def _as_in_a_new_process() -> None:
    """Steps of the same code that differ in what they see count as versions of one step, and 16 versions are enough."""
    forget()


def inputs() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(T, B, H, generator=generator, dtype=torch.float32)
    return x.requires_grad_(), torch.ones(B, H, dtype=torch.float32)


def loop(step: Any, x: torch.Tensor, h: Any) -> tuple[torch.Tensor, Any]:
    outputs = []
    for x_t in x.unbind(0):
        y, h = step(x_t, h)
        outputs.append(y)
    return torch.stack(outputs), h


def outcome(run: Any, step: Any) -> list[torch.Tensor]:
    x, h = inputs()
    y, last = run(step, x, h)
    gradient = torch.autograd.grad(y.sin().sum(), [x])[0] if y.requires_grad else torch.zeros(())
    return [y.detach().float(), last.detach().float(), gradient]


@pytest.mark.parametrize("way", WAYS)
def test_a_change_is_noticed_in_the_same_process(way: str) -> None:
    want = [outcome(loop, step) for step in WAYS[way]()]
    got = [outcome(scan, step) for step in WAYS[way]()]
    for ours, theirs in zip(got, want, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-2 if way == "autocast" else 1e-5, rtol=1e-5)


@pytest.mark.parametrize("way", WAYS)
def test_a_change_is_noticed_by_the_next_process(way: str) -> None:
    """The next process sees the changed value from its beginning, and has only the disk to remember."""
    for step in WAYS[way]():
        outcome(scan, step)
        break
    forget()
    results = []
    for run in (loop, scan):
        for number, step in enumerate(WAYS[way]()):
            if number > 0:
                results.append(outcome(run, step))
                break
    torch.testing.assert_close(results[1], results[0], atol=1e-2 if way == "autocast" else 1e-5, rtol=1e-5)


TWO_PROCESSES = """
import sys
import torch
from gradsmith.recurrent import scan
from tests.recurrent.test_no_stale_plan import loop, outcome
from tests.recurrent.ways_to_change import WAYS

after = sys.argv[1] == "after"
for way, make in WAYS.items():
    results = []
    for run in (loop, scan):
        for number, step in enumerate(make()):
            if number == int(after):
                results.append(outcome(run, step))
                break
    torch.testing.assert_close(
        results[1], results[0], atol=1e-2 if way == "autocast" else 1e-5, rtol=1e-5, msg=lambda text: f"{way}: {text}"
    )
print(len(WAYS), "ways")
"""


@pytest.mark.deep
def test_a_change_is_noticed_by_a_process_that_finds_the_plans_of_another_on_disk(tmp_path: Path) -> None:
    """All ways, in two processes that share a cache and nothing else: the second begins with what was changed."""
    root = Path(__file__).parents[2]
    paths = os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "GRADSMITH_CACHE_DIR": str(tmp_path), "PYTHONPATH": paths}
    for when in ("before", "after"):
        command = [sys.executable, "-c", TWO_PROCESSES, when]
        done = subprocess.run(command, env=environment, cwd=root, capture_output=True, text=True, timeout=1800)
        assert done.returncode == 0, done.stderr[-2000:]
        assert f"{len(WAYS)} ways" in done.stdout


def test_there_are_more_than_a_hundred_ways() -> None:
    assert len(WAYS) > 100


def test_every_change_matters() -> None:
    """A way whose two results are the same would show nothing."""
    for way, make in WAYS.items():
        results = [outcome(loop, step) for step in make()]
        same = all(torch.equal(a, b) for a, b in zip(results[0], results[-1]))
        assert not same, way


def test_an_attribute_is_not_taken_for_a_global_of_the_same_name() -> None:
    """A script that counts with `t` and whose step says `w.t()` plans once."""
    user = source("def step(x, h):\n    h = torch.tanh(x + h @ w.t())\n    return h, h\n", torch=torch, w=torch.eye(H))
    plans = []
    for user.t in range(3):
        plans.append(plan(user.step, *inputs()))
    assert plans[0].backend == "c"
    assert plans[0] is plans[1] is plans[2]


def closed_over(gain: float) -> Any:
    weight = torch.eye(H, requires_grad=True)
    settings = types.SimpleNamespace(gain=gain, names=["a", "b"], table={"k": (1, 2.0)})
    return lambda x, h: (torch.tanh(x + settings.gain * F.linear(h, weight)),) * 2


@dataclasses.dataclass
class Settings:
    gain: float = 0.5
    mode: str = "fast"


class Ordinary(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.norm = torch.nn.Linear(H, H), torch.nn.LayerNorm(H)
        self.settings, self.activation = Settings(), torch.tanh
        self.register_buffer("mask", torch.ones(H))

    def forward(self, x: torch.Tensor, h: torch.Tensor) -> Any:
        h = self.activation(self.norm(self.inner(h))) * self.mask + x * self.settings.gain / math.sqrt(H)
        return h, h


class Careful(Ordinary):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(int(os.environ.get("SEED", "0")))

    def save(self, path: str) -> None:
        with open(path, "wb") as file:
            torch.save(self.state_dict(), file)


ORDINARY = {
    "a module with methods that the step does not call": Careful,
    "a function": lambda: closed_over(0.5),
    "a module": Ordinary,
    "a cell of torch": lambda: step_of(torch.nn.GRUCell(H, H)),
    "a partial": lambda: functools.partial(lambda gain, x, h: (x + gain * h,) * 2, 0.5),
    "a method": lambda: Ordinary().forward,
    "a function found by its name": lambda: named_activation("tanh"),
}


def named_activation(name: str) -> Any:
    return lambda x, h: (getattr(F, name)(x + h),) * 2


@pytest.mark.parametrize("kind", ORDINARY)
def test_ordinary_steps_are_planned_once(kind: str) -> None:
    step = ORDINARY[kind]()
    first = plan(step, *inputs())
    assert first.backend == "c", str(first)
    assert plan(step, *inputs()) is first


def test_a_plan_says_what_it_cannot_read() -> None:
    lock = threading.local()
    lock.gain = 0.5
    said = str(plan(lambda x, h: (lock.gain * h + x,) * 2, *inputs()))
    assert "backend: loop" in said
    assert "not planned: lock is a _thread._local, whose content cannot be read" in said


def test_planning_leaves_no_trace_in_what_a_step_changes() -> None:
    kept: dict[str, torch.Tensor] = {}

    def step(x: torch.Tensor, h: torch.Tensor) -> Any:
        if "mask" not in kept:
            kept["mask"] = torch.ones(H)
        h = h * kept["mask"] + x
        return h, h

    assert plan(step, *inputs()).backend == "loop"
    assert not kept
    scan(step, *inputs())
    assert type(kept["mask"]) is torch.Tensor
    assert plan(step, *inputs()).backend == "c"


def test_the_class_of_a_state_is_part_of_what_a_step_sees() -> None:
    class State(NamedTuple):
        h: torch.Tensor

        def next(self, x: torch.Tensor) -> Any:
            return State(0.5 * self.h + x)

    def step(x: torch.Tensor, state: State) -> Any:
        return x, state.next(x)

    x, h = inputs()
    scan(step, x, State(h))
    State.next = lambda self, x: State(2.0 * self.h + x)  # type: ignore[method-assign]
    torch.testing.assert_close(scan(step, x, State(h))[1].h, loop(step, x, State(h))[1].h)


def test_a_frozen_dataclass_is_read_in_full() -> None:
    @dataclasses.dataclass(frozen=True)
    class Config:
        gain: float = 0.5

    config = Config()

    def step(x: torch.Tensor, h: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        h = torch.tanh(x + config.gain * h)
        return h, h

    x, h = inputs()
    assert "not planned" not in str(plan(step, x, h))
