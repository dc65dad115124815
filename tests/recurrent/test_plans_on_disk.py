"""A plan on disk is found by the next process, and never by a step that could behave otherwise."""

from __future__ import annotations

import json
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gradsmith.native import cache
from gradsmith.recurrent import LayerNormLSTMCell, TanhRNNCell, plan, scan, store
from gradsmith.recurrent.ladder import Call, make_call
from gradsmith.recurrent.portable import Unportable, digest
from gradsmith.recurrent.structure import flatten

from .test_user_cells import build, outcome
from .user_cells import CELLS

T, B, H = 5, 3, 4

CELL = """
import torch, settings
from torch import nn
BIAS = 0.5
def activation(x):
    return torch.tanh(x) + BIAS
class Parent(nn.Module):
    gain = 2.0
class Cell(Parent):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.eye(4))
        self.leak = 0.9
    def forward(self, x, h):
        h = activation(self.gain * x + settings.shift * h @ self.weight) * self.leak
        if self.training:
            h = 2 * h
        return h, h
"""


def call_of(step: Any) -> Call:
    flat = [flatten(tree, "x", "") for tree in (torch.ones(T, B, H), torch.zeros(B, H), ())]
    return make_call(step, *flat)


def key_of(step: Any) -> str:
    call = call_of(step)
    return digest(call.key("auto"), call.around.held)


def module_with(source: str = CELL, shift: float = 1.0) -> Any:
    """The cell's module as another process would have it: executed anew."""
    made: Any = types.ModuleType("cell_of_a_user")
    settings: Any = types.ModuleType("settings")
    settings.shift = shift
    sys.modules.update({"settings": settings, "cell_of_a_user": made})
    try:
        exec(compile(source, "somewhere.py", "exec"), vars(made))
    finally:
        del sys.modules["settings"], sys.modules["cell_of_a_user"]
    return made


def forget() -> None:
    """What a new process does not have."""
    module: Any = sys.modules["gradsmith.recurrent.scan"]
    module._plans.clear()
    module._families.clear()


def test_the_same_source_has_the_same_key() -> None:
    assert key_of(module_with().Cell()) == key_of(module_with().Cell())
    assert key_of(module_with(CELL.replace("import torch,", "\n\nimport torch,")).Cell()) == key_of(
        module_with().Cell()
    )


def changed_attribute() -> nn.Module:
    cell: nn.Module = module_with().Cell()
    cell.leak = 0.8
    return cell


def changed_method() -> nn.Module:
    module = module_with()
    original = module.Cell.forward
    module.Cell.forward = lambda self, x, h: original(self, x, h + 1)
    return module.Cell()  # type: ignore[no-any-return]


def own_forward() -> nn.Module:
    cell: nn.Module = module_with().Cell()
    cell.forward = lambda x, h: (x, h)  # type: ignore[method-assign]
    return cell


def hooked() -> nn.Module:
    cell: nn.Module = module_with().Cell()
    cell.register_forward_hook(lambda module, args, out: (2 * out[0], out[1]))
    return cell


CHANGES = {
    "self.training": lambda: module_with().Cell().eval(),
    "a global": lambda: module_with(CELL.replace("BIAS = 0.5", "BIAS = 0.6")).Cell(),
    "a function it calls": lambda: module_with(CELL.replace("tanh(x)", "sin(x)")).Cell(),
    "a constant in a function": lambda: module_with(CELL.replace("2 * h", "3 * h")).Cell(),
    "an attribute of the parent class": lambda: module_with(CELL.replace("gain = 2.0", "gain = 3.0")).Cell(),
    "a value of another module": lambda: module_with(shift=2.0).Cell(),
    "dtype of a parameter": lambda: module_with().Cell().double(),
    "an attribute": changed_attribute,
    "a method replaced": changed_method,
    "forward of one object": own_forward,
    "a hook": hooked,
}


@pytest.mark.parametrize("change", CHANGES)
def test_whatever_can_change_the_result_changes_the_key(change: str) -> None:
    assert key_of(CHANGES[change]()) != key_of(module_with().Cell())


SETTINGS = """
import dataclasses, functools, types
from torch import nn
@dataclasses.dataclass
class Settings:
    leak: float = LEAK
class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.settings = Settings()
        self.space = types.SimpleNamespace(gain=2.0)
    @functools.cached_property
    def power(self):
        return 2
    def forward(self, x, h):
        return x, h * self.settings.leak * self.space.gain ** self.power
"""


def test_settings_objects_are_seen_by_content() -> None:
    keys = [key_of(module_with(SETTINGS.replace("LEAK", leak)).Cell()) for leak in ("0.5", "0.5", "0.6")]
    assert keys[0] == keys[1] != keys[2]


FUNCTION = "import torch, os, sys, time\nimport torch.distributed as dist\nfrom os import getenv\n"
UNPORTABLE = {
    "environment": "def step(x, h):\n    return x, h * float(os.environ.get('GAIN', 1))",
    "getenv": "def step(x, h):\n    return x, h * float(getenv('GAIN', 1))",
    "a file": "def step(x, h):\n    return x, h * float(open('gain').read())",
    "rank": "def step(x, h):\n    return x, h * dist.get_rank()",
    "rank in full": "def step(x, h):\n    return x, h * torch.distributed.get_rank()",
    "import inside": "def step(x, h):\n    import settings\n    return x, h * settings.gain",
    "threads": "def step(x, h):\n    return x, h * torch.get_num_threads()",
    "a closed function": "def step(x, h, clock=time.time):\n    return x, h * clock()",
    "a generator": "numbers = iter([1.0, 2.0])\ndef step(x, h):\n    return x, h * next(numbers)",
}


@pytest.mark.parametrize("what", UNPORTABLE)
def test_what_differs_between_processes_stays_off_the_disk(what: str) -> None:
    space: dict[str, Any] = {"__name__": "user"}
    exec(FUNCTION + UNPORTABLE[what], space)
    call = call_of(space["step"])
    with pytest.raises(Unportable):
        digest(call.key("auto"), call.around.held)
    assert store.address(call, "auto") is None


def test_a_replaced_torch_function_stays_off_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = TanhRNNCell(H, H)
    assert store.address(call_of(cell), "auto") is not None
    monkeypatch.setattr(torch.nn.functional, "softmax", lambda x, dim: x)
    assert store.address(call_of(cell), "auto") is None


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRADSMITH_CACHE_DIR", str(tmp_path / "cache"))
    forget()
    return tmp_path / "cache" / "recurrent"


def test_a_plan_comes_back_as_it_was(own_cache: Path) -> None:
    cell, x = LayerNormLSTMCell(3, 6), torch.randn(T, B, 3, requires_grad=True)
    results, pages = [], []
    for _ in range(2):
        found = plan(cell, x, cell.initial_state(B))
        y, last = scan(cell, x, cell.initial_state(B))
        results.append((y, last, torch.autograd.grad(y.sin().sum(), [x, *cell.parameters()])))
        pages.append((found.from_disk, str(found).partition("planned in")[0]))
        forget()
    assert [from_disk for from_disk, _ in pages] == [False, True]
    assert pages[0][1] == pages[1][1]
    torch.testing.assert_close(results[0], results[1], rtol=0, atol=0)


def test_a_new_batch_size_is_checked_and_remembered(own_cache: Path) -> None:
    cell = TanhRNNCell(3, 6)
    for batch in (2, 5):
        plan(cell, torch.randn(T, batch, 3), cell.initial_state(batch))
        forget()
    found = plan(cell, torch.randn(T, 2, 3), cell.initial_state(2))
    assert found.from_disk
    assert found.checked == {2, 5}


@pytest.mark.parametrize("damage", [lambda data: data[:99], lambda data: b"", lambda data: b"{}" + data])
def test_a_torn_plan_is_made_again(own_cache: Path, damage: Any) -> None:
    cell, x = TanhRNNCell(3, 6), torch.randn(T, B, 3)
    plan(cell, x, cell.initial_state(B))
    (file,) = own_cache.glob("*.plan")
    file.write_bytes(damage(file.read_bytes()))
    forget()
    assert not plan(cell, x, cell.initial_state(B)).from_disk
    forget()
    assert plan(cell, x, cell.initial_state(B)).from_disk


def test_a_missing_library_is_compiled_again(own_cache: Path) -> None:
    cell, x = TanhRNNCell(3, 6), torch.randn(T, B, 3)
    want, _ = scan(cell, x, cell.initial_state(B))
    for file in own_cache.glob("*.so"):
        file.unlink()
    forget()
    assert plan(cell, x, cell.initial_state(B)).from_disk
    torch.testing.assert_close(scan(cell, x, cell.initial_state(B))[0], want)


def test_a_plan_on_disk_is_json(own_cache: Path) -> None:
    plan(TanhRNNCell(3, 6), torch.randn(T, B, 3), torch.zeros(B, 6))
    (file,) = own_cache.glob("*.plan")
    content = cache.read(file.name)
    assert content is not None
    assert json.loads(content)["checked"] == [B]


@pytest.mark.deep
@pytest.mark.parametrize("name", [name for name in CELLS if CELLS[name].backend == "c"])
def test_every_cell_comes_back(name: str) -> None:
    cell, x, state = build(name, (4, 3, 5, 8))
    first = outcome(cell, x, state, "c")
    forget()
    torch.testing.assert_close(outcome(cell, x, state, "c"), first, rtol=0, atol=0)


PROGRAM = """
import sys, torch
from gradsmith.recurrent import plan, scan
GAIN = float(sys.argv[1])
def activation(x: torch.Tensor) -> torch.Tensor:
    return torch.tanh(GAIN * x)
class Cell(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)
    def forward(self, x, h):
        h = activation(x + self.layer(h))
        return h, h
torch.manual_seed(0)
cell, x = Cell(), torch.randn(5, 2, 4)
y, _ = scan(cell, x, torch.zeros(2, 4))
want, _ = scan(cell, x, torch.zeros(2, 4), backend="loop")
found = plan(cell, x, torch.zeros(2, 4))
print(found.from_disk, found.backend, torch.allclose(y, want, atol=1e-6), "torch._dynamo" in sys.modules)
"""


@pytest.mark.deep
def test_the_next_process_neither_traces_nor_compiles(own_cache: Path) -> None:
    said = []
    for gain in ("1.0", "1.0", "0.5"):
        done = subprocess.run([sys.executable, "-c", PROGRAM, gain], capture_output=True, text=True, check=True)
        said.append(done.stdout.split())
    assert said[0] == ["False", "c", "True", "True"]
    assert said[1] == ["True", "c", "True", "False"]
    assert said[2] == ["False", "c", "True", "True"]


def test_tensors_are_not_part_of_a_plan(own_cache: Path) -> None:
    cell, x = TanhRNNCell(3, 6), torch.randn(T, B, 3)
    scan(cell, x, cell.initial_state(B))
    forget()
    other: Tensor
    twin = TanhRNNCell(3, 6)
    assert plan(twin, x, twin.initial_state(B)).from_disk
    other, _ = scan(twin, x, twin.initial_state(B))
    torch.testing.assert_close(other, scan(twin, x, twin.initial_state(B), backend="loop")[0])
