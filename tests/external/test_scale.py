"""Many evaluations elsewhere: worker processes, executors, clusters; and what happens when one of them is lost."""

from __future__ import annotations

import os
import signal
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import gradsmith as gs
from gradsmith.external import EvaluationLost, ExternalError


def _x(n: int = 4) -> torch.Tensor:
    return torch.linspace(0.5, 1.5, n, dtype=torch.float64).requires_grad_()


def bowl(x: Any) -> Any:
    return np.abs(x) ** 3


def _gradient(wrapped: Any) -> torch.Tensor:
    x = _x()
    wrapped(x).sum().backward()
    assert x.grad is not None
    return x.grad


@pytest.fixture
def expected() -> torch.Tensor:
    return _gradient(gs.wrap(bowl, method="central"))


def test_workers_inherit_closures_and_give_the_same_gradient(expected: torch.Tensor) -> None:
    power = 3
    wrapped = gs.wrap(lambda x: np.abs(x) ** power, method="central", workers=2)
    torch.testing.assert_close(_gradient(wrapped), expected, rtol=0, atol=0)
    wrapped.close()


def test_a_process_pool_of_the_users_own(expected: torch.Tensor) -> None:
    with ProcessPoolExecutor(2) as executor:
        wrapped = gs.wrap(bowl, method="central", executor=executor)
        torch.testing.assert_close(_gradient(wrapped), expected, rtol=0, atol=0)
        with pytest.raises(ExternalError, match="cannot be sent to the executor"):
            _gradient(gs.wrap(lambda x: x * 2, executor=executor))


def test_a_local_dask_cluster(expected: torch.Tensor) -> None:
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None, silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        wrapped = gs.wrap(lambda x: np.abs(x) ** 3, method="central", executor=client.get_executor())
        torch.testing.assert_close(_gradient(wrapped), expected, rtol=0, atol=0)


@pytest.mark.deep
def test_a_dask_cluster_of_processes_loses_a_worker(tmp_path: Path, expected: torch.Tensor) -> None:
    distributed = pytest.importorskip("distributed")
    mark = tmp_path / "died"

    def dies_once(x: Any) -> Any:
        if not mark.exists() and abs(x[0] - 0.5) > 1e-9:
            mark.write_text("x")
            os.kill(os.getpid(), signal.SIGKILL)
        return np.abs(x) ** 3

    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50) as cluster,
        distributed.Client(cluster) as client,
    ):
        wrapped = gs.wrap(dies_once, method="central", executor=client.get_executor())
        torch.testing.assert_close(_gradient(wrapped), expected, rtol=0, atol=0)
    assert mark.exists()


def test_a_worker_that_dies_is_replaced_and_its_evaluation_repeated(tmp_path: Path, expected: torch.Tensor) -> None:
    mark = tmp_path / "died"

    def dies_once(x: Any) -> Any:
        if not mark.exists() and x[0] > 0.5:
            mark.write_text("x")
            os.kill(os.getpid(), signal.SIGKILL)
        return np.abs(x) ** 3

    wrapped = gs.wrap(dies_once, method="central", workers=2)
    torch.testing.assert_close(_gradient(wrapped), expected, rtol=0, atol=0)
    assert mark.exists()


def test_an_evaluation_that_always_kills_its_worker_is_an_error_and_no_gradient() -> None:
    def deadly(x: Any) -> Any:
        if x[0] > 0.5:
            os.kill(os.getpid(), signal.SIGKILL)
        return x * 2

    x = _x()
    with pytest.raises(EvaluationLost, match="killed by SIGKILL"):
        gs.wrap(deadly, method="central", workers=2)(x).sum().backward()
    assert x.grad is None


def test_a_broken_pool_of_the_users_own_is_named() -> None:
    x = _x()
    with ProcessPoolExecutor(1) as executor, pytest.raises(EvaluationLost, match="workers=N"):
        gs.wrap(_kills, method="central", executor=executor)(x).sum().backward()
    assert x.grad is None


def _kills(x: Any) -> Any:
    if x[0] != 0.5:
        os._exit(3)
    return x * 2


def test_a_function_that_never_returns_is_stopped() -> None:
    def stuck(x: Any) -> Any:
        while x[0] != 0.5:
            time.sleep(0.01)
        return x * 2

    with pytest.raises(EvaluationLost, match=r"did not return within 0\.5 s"):
        gs.wrap(stuck, method="central", timeout=0.5)(_x()).sum().backward()
    with pytest.raises(EvaluationLost, match=r"did not return within 0\.5 s"):
        gs.wrap(stuck, timeout=0.5)(_x() + 1)


def test_a_function_that_is_not_thread_safe_is_found_out_and_processes_do_it(expected: torch.Tensor) -> None:
    shared = np.zeros(4)
    together = threading.Barrier(2)

    def careless(x: Any) -> Any:
        shared[:] = x
        if threading.current_thread() is not threading.main_thread():
            try:
                together.wait(0.2)
            except threading.BrokenBarrierError:
                together.reset()
            shared[:] += 1
        return np.abs(shared) ** 3

    with ThreadPoolExecutor(2) as executor, pytest.raises(ExternalError, match="not thread-safe"):
        gs.wrap(careless, method="central", executor=executor)(_x()).sum().backward()
    torch.testing.assert_close(_gradient(gs.wrap(careless, method="central", workers=2)), expected, rtol=0, atol=0)


def test_a_progress_bar_counts_evaluations(capsys: pytest.CaptureFixture[str]) -> None:
    _gradient(gs.wrap(bowl, method="central", progress=True, name="bowl"))
    assert "gradient of bowl" in capsys.readouterr().err
