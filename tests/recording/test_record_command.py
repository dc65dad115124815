"""`gradsmith record`: the script behaves as without it, and the report follows."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from forks import Forks

HERE = Path(__file__).parent
TRAIN = """
import os, sys
sys.path.insert(0, {here!r})
import functions_that_run as ops
import torch

class Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x
    @staticmethod
    def backward(ctx, grad_output):
        return 2 * grad_output

ops.Layer()(Own.apply(torch.randn(4, 3, requires_grad=True)))
print("argv", sys.argv[1:], __name__)
{ending}
"""


@pytest.fixture
def record(tmp_path: Path, forks: Forks) -> Callable[..., subprocess.CompletedProcess[str]]:
    """At the quickest level, unless another is among the options: what is tested here does not depend on it."""

    def run(ending: str, *options: str, args: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        (tmp_path / "train.py").write_text(TRAIN.format(here=str(HERE), ending=ending))
        return forks.run("-m", "gradsmith", "record", "--level", "quick", *options, "train.py", *args, cwd=tmp_path)

    return run


@pytest.mark.parametrize(
    ("ending", "status"),
    [
        ("", 0),
        ("sys.exit(7)", 7),
        ("raise ValueError('mine')", 1),
        ("import signal; os.kill(os.getpid(), signal.SIGINT)", 130),
        ("import signal; os.kill(os.getpid(), signal.SIGTERM)", 143),
        ("if os.fork() == 0: sys.exit(9)\nos.wait()", 0),
    ],
    ids=["ends", "exits", "raises", "interrupted", "terminated", "forks"],
)
def test_status_is_kept_and_what_was_seen_is_reported_once(record, ending, status):
    done = record(ending)
    assert done.returncode == status, done.stderr
    assert done.stdout.count("2 verified, 1 refuted") == 1
    assert "3 Functions ran: Own once (train.py:15)" in done.stdout


def test_the_script_is_main_gets_its_arguments_and_its_traceback_shows_no_frame_of_ours(record):
    done = record("raise ValueError('mine')", args=("--", "--epochs", "1"))
    assert "argv ['--epochs', '1'] __main__" in done.stdout
    assert "ValueError: mine" in done.stderr
    assert "gradsmith" not in done.stderr


def test_findings_change_the_status_only_when_asked(record):
    assert record("", "--level", "standard", "--fail-on", "error").returncode == 1


def test_saved_calls_can_be_checked_later_and_another_format_is_refused(tmp_path, record):
    assert record("", "--save", "calls.json").returncode == 0
    saved = json.loads((tmp_path / "calls.json").read_text())
    assert [call["function"] for call in saved["calls"]] == ["Own", "Swish", "Scale"]
    call = [sys.executable, "-m", "gradsmith", "check", "train.py::Own", "--level", "quick"]
    call += ["--recorded", "calls.json"]
    done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)
    assert "Own [recorded inputs]" in done.stdout, done.stderr
    (tmp_path / "calls.json").write_text(json.dumps({**saved, "schema": 99, "gradsmith": "9.0"}))
    done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("gradsmith: calls.json was recorded by gradsmith 9.0 (format 99)")
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.deep
def test_every_ddp_rank_reports(record):
    ending = """
def work(rank):
    import torch.distributed as dist
    dist.init_process_group("gloo", init_method="file://" + os.getcwd() + "/meet", rank=rank, world_size=2)
    model = torch.nn.parallel.DistributedDataParallel(ops.Layer())
    model(torch.randn(4, 3)).sum().backward()
    dist.destroy_process_group()

if __name__ == "__main__":
    import torch.multiprocessing as mp
    mp.spawn(work, nprocs=2)
"""
    done = record(ending)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("2 Functions ran: Swish once") == 2


@pytest.mark.deep
def test_torchrun_gives_one_report_for_each_rank(tmp_path):
    ending = """
import torch.distributed as dist
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(ops.Layer())
for _ in range(4):
    model(torch.randn(4, 3)).sum().backward()
dist.barrier()
dist.destroy_process_group()
"""
    (tmp_path / "train.py").write_text(TRAIN.format(here=str(HERE), ending=ending))
    run = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    call = [*run, "-m", "gradsmith", "record", "--level", "quick", "--save", "calls.json", "train.py"]
    done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    for rank in (0, 1):
        assert f"note: rank {rank}: 3 Functions ran: Own once (train.py:15), Swish 5 times" in done.stdout
        assert json.loads((tmp_path / f"calls.rank{rank}.json").read_text())["calls"]
    assert done.stdout.count("2 verified, 1 refuted") == 2
