"""C on several threads: torch's own where it lends them, else ours; the same numbers either way."""

from __future__ import annotations

import ctypes
import os
import select
import sys
from collections.abc import Iterator

import pytest
import torch

from gradsmith.lab.process.torch_says import openmp_parallel
from gradsmith.native import threads
from gradsmith.native.kernels import Kernels

# Every share notes who it was and what it was given, in a row of its own.
KERNELS = Kernels(r"""
void note(real *out, const real *none, double factor, long wide, long thread, long first, long last) {
  for (long i = first; i < last; i++) {
    out[i * wide] += i * (real)factor; out[i * wide + 1] = thread; out[i * wide + 2] = none == 0;
  }
}
""")


@pytest.fixture(autouse=True)
def _two_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(threads, "_WORTH_A_THREAD", 1)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def noted(rows: int = 7) -> torch.Tensor:
    out = torch.zeros(rows, 3)
    KERNELS.run("note", [out, None], [0.5], [3], rows, rows)
    return out


@pytest.mark.parametrize("own", [False, True], ids=["on torch's threads", "on our own"])
def test_every_share_is_run_once_with_its_arguments(own: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if own:
        monkeypatch.setattr(threads, "team", lambda kinds: None)
    expected = [[i * 0.5, float(i >= 4), 1.0] for i in range(7)]
    assert noted().tolist() == expected


@pytest.mark.skipif(openmp_parallel() is None, reason="torch here has no threads of OpenMP to lend")
def test_torchs_threads_are_used_where_it_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "run_shares", lambda *_: pytest.fail("a thread of ours was used"))
    noted()


def test_more_shares_than_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    function = KERNELS.loaded(torch.float32).note
    function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_double, *[ctypes.c_long] * 4]
    out = torch.zeros(9, 3)
    threads.call_shares(function, lambda *share: (out.data_ptr(), None, 1.0, 3, *share), [(i, i + 1) for i in range(9)])
    assert out[:, 0].tolist() == out[:, 1].tolist() == list(range(9))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing is forked here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_does_not_wait_for_threads_of_its_parent() -> None:
    expected = noted().tolist()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, b"same" if noted().tolist() == expected else b"other")
        os._exit(0)
    try:
        answered = select.select([read], [], [], 30)[0]
        assert answered and os.read(read, 8) == b"same"
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
        os.close(read)
        os.close(write)


@pytest.mark.skipif(sys.platform != "linux", reason="torch's wheels for Linux bring GCC's OpenMP")
def test_a_compiler_that_fails_leaves_our_own_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    from gradsmith.native import team
    from gradsmith.native.refused import Refused

    def refuse(source: str) -> ctypes.CDLL:
        raise Refused("no compiler")

    monkeypatch.setattr(team, "load", refuse)
    team._team.cache_clear()
    try:
        assert team.team([ctypes.c_long]) is None
        assert noted()[6].tolist() == [3.0, 1.0, 1.0]
    finally:
        team._team.cache_clear()
