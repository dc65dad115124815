"""What happens when a rung is missing: no compiler, a torn cache, a plan that fails its check."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from gradsmith.native import cache
from gradsmith.native.compile import load
from gradsmith.native.products import matmul
from gradsmith.native.refused import Refused
from gradsmith.recurrent import TanhRNNCell, plan, scan
from gradsmith.recurrent.engine import Engine
from gradsmith.recurrent.ladder import choose, make_call, verify
from gradsmith.recurrent.structure import flatten

SOURCE = "int answer(void) { return 42; }"


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRADSMITH_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache" / "recurrent"


def test_no_compiler_falls_to_torch_and_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    matmul(torch.ones(1, 1), torch.ones(1, 1))  # what cannot be compiled once is not tried again in this process
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    cell, x = TanhRNNCell(3, 11), torch.randn(5, 2, 3)
    chosen = plan(cell, x, cell.initial_state(2))
    assert chosen.backend == "torch"
    assert "no C compiler" in str(chosen)
    torch.testing.assert_close(
        scan(cell, x, cell.initial_state(2)), scan(cell, x, cell.initial_state(2), backend="loop")
    )


def test_a_compiler_that_fails_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, own_cache: Path) -> None:
    broken = tmp_path / "broken-cc"
    broken.write_text("#!/bin/sh\necho 'no space left on device' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("CC", str(broken))
    with pytest.raises(Refused, match="no space left on device"):
        load(SOURCE)
    assert not list(own_cache.glob("*"))


def test_cache_is_private_and_reused(own_cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert load(SOURCE).answer() == 42
    (file,) = own_cache.glob("*.so")
    assert stat.S_IMODE(os.stat(own_cache).st_mode) == 0o700
    before = file.stat().st_mtime_ns
    assert load(SOURCE).answer() == 42
    assert file.stat().st_mtime_ns == before


@pytest.mark.parametrize(
    "damage", [lambda data: data[: len(data) // 2], lambda data: b"", lambda data: data[:-1] + b"\0"]
)
def test_torn_files_are_compiled_again(own_cache: Path, damage: Any) -> None:
    def build(path: Path) -> None:
        path.write_bytes(b"whole file")

    first = cache.fetch("key", build)
    first.write_bytes(damage(first.read_bytes()))
    assert not cache.is_whole(first)
    assert cache.is_whole(cache.fetch("key", build))
    assert sorted(p.name for p in own_cache.iterdir()) == ["key.so"]


def test_a_failed_build_leaves_nothing(own_cache: Path) -> None:
    def fail(path: Path) -> None:
        path.write_bytes(b"half")
        raise Refused("compiler died")

    with pytest.raises(Refused):
        cache.fetch("key", fail)
    assert list(own_cache.iterdir()) == []


@pytest.mark.deep
def test_many_processes_write_the_same_plan(own_cache: Path) -> None:
    program = (
        "import torch; from gradsmith.recurrent import TanhRNNCell, scan, plan\n"
        "c = TanhRNNCell(3, 9); x = torch.randn(4, 2, 3)\n"
        "print(plan(c, x, c.initial_state(2)).backend)"
    )
    running = [subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) for _ in range(4)]
    assert [child.communicate()[0].strip() for child in running] == ["c"] * 4
    assert all(cache.is_whole(path) for path in own_cache.glob("*.so"))


def test_unwritable_cache_falls_back_to_a_temporary_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("GRADSMITH_CACHE_DIR", str(blocked))
    assert load(SOURCE).answer() == 42


def test_a_wrong_plan_is_refused() -> None:
    cell, x = TanhRNNCell(3, 6), torch.randn(5, 2, 3, requires_grad=True)
    call = make_call(cell, flatten(x, "x", ""), flatten(cell.initial_state(2), "state", ""), flatten((), "params", ""))
    chosen = choose(call, "c")
    assert chosen.engine is not None
    forward = chosen.engine.forward

    def wrong(*args: Any, **kwargs: Any) -> Any:
        kept = forward(*args, **kwargs)
        kept.states[0][-1, 0, 0] += 1e-3
        return kept

    assert isinstance(chosen.engine, Engine)
    chosen.engine.forward = wrong  # type: ignore[method-assign]
    chosen.checked.clear()
    with pytest.raises(Refused, match="self-check failed: output"):
        verify(chosen, call)


def test_a_refused_backend_explains_itself() -> None:
    def step(x: Tensor, h: Tensor) -> Any:
        h = torch.cumsum(x + h, dim=1)
        return h, h

    chosen = plan(step, torch.randn(4, 2, 3), torch.zeros(2, 3))
    assert chosen.backend != "c"
    assert "cumsum" in str(chosen)
    x = torch.randn(4, 2, 3)
    torch.testing.assert_close(scan(step, x, torch.zeros(2, 3)), scan(step, x, torch.zeros(2, 3), backend="loop"))


def test_writing_over_all_of_a_tensor_is_no_work_along_the_batch() -> None:
    """`x[:, a:b]` is two slices in torch 2.6, the first of everything; so is its gradient."""

    def step(x: Tensor, h: Tensor) -> Any:
        h = torch.slice_scatter(torch.zeros_like(h), torch.tanh(x + h), 0)
        return h, h

    x = torch.randn(4, 2, 3)
    chosen = plan(step, x, torch.zeros(2, 3))
    assert chosen.backend == "c", str(chosen)
    torch.testing.assert_close(scan(step, x, torch.zeros(2, 3)), scan(step, x, torch.zeros(2, 3), backend="loop"))


def test_other_devices_do_not_run_c() -> None:
    chosen = plan(lambda x, h: (x + h, x + h), torch.ones(4, 2, 3, device="meta"), torch.zeros(2, 3, device="meta"))
    assert "C runs on the CPU" in str(chosen)


def test_gradients_do_not_share_memory() -> None:
    cell = torch.nn.GRUCell(3, 5)
    step = lambda x, h: (cell(x, h),) * 2  # noqa: E731
    y, _ = scan(step, torch.randn(4, 2, 3), torch.zeros(2, 5))
    y.sum().backward()
    pointers = [p.grad.data_ptr() for p in cell.parameters() if p.grad is not None]
    assert len(set(pointers)) == 4
