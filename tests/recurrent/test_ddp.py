"""Two processes train one layer with DistributedDataParallel."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

from gradsmith.recurrent import Recurrent


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _train(rank: int, port: int, folder: str) -> None:
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", str(port)
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=2)
    torch.manual_seed(0)
    layer = nn.parallel.DistributedDataParallel(Recurrent(nn.LSTMCell(3, 5)))
    x = torch.randn(6, 4, 3, generator=torch.Generator().manual_seed(1))
    y, _ = layer(x[:, 2 * rank : 2 * rank + 2])
    y.square().mean().backward()
    torch.save([p.grad for p in layer.parameters()], Path(folder) / f"{rank}.pt")
    dist.destroy_process_group()


@pytest.mark.deep
def test_gradients_are_averaged_over_ranks(tmp_path: Path) -> None:
    mp.spawn(_train, (_free_port(), str(tmp_path)), nprocs=2)
    first, second = (torch.load(tmp_path / f"{rank}.pt") for rank in range(2))
    torch.testing.assert_close(first, second)
    torch.manual_seed(0)
    layer = Recurrent(nn.LSTMCell(3, 5), backend="loop")
    x = torch.randn(6, 4, 3, generator=torch.Generator().manual_seed(1))
    layer(x)[0].square().mean().backward()
    torch.testing.assert_close(first, [p.grad for p in layer.parameters()])
