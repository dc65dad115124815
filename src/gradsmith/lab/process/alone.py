"""A group of one process, for code that communicates: what it sends to all comes back to itself.

Nothing is started: no thread, no socket, so a fork of this process can go on with it. Only for processes of our own, because
a group stays for as long as the process does.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist

_NAME = "gradsmith_alone"
WORDS = "a group of one process: what other processes would send was not tested"


def join_alone() -> bool:
    """Make this process a group of its own; False where it is in one already, or torch knows no groups."""
    if not dist.is_available() or dist.is_initialized():
        return False
    if not hasattr(dist.Backend, _NAME.upper()):
        dist.Backend.register_backend(_NAME, _created, devices=["cpu"])
    dist.init_process_group(_NAME, store=torch._C._distributed_c10d.HashStore(), rank=0, world_size=1)
    return True


def joined_alone() -> bool:
    return dist.is_available() and dist.is_initialized() and dist.get_backend() == _NAME


def _created(_store: Any, rank: int, size: int, _timeout: Any) -> Any:
    return _Alone(rank, size)


def _done(result: Any) -> Any:
    future: torch.futures.Future[Any] = torch.futures.Future()
    future.set_result(result)
    made: Any = torch._C._distributed_c10d
    return made._create_work_from_future(future)


def _only(parts: Any) -> Any:
    """The one part of a list with a part for each process; a list for more processes is refused, as any group does."""
    if len(parts) != 1:
        raise RuntimeError(f"a group of one process takes a list of size 1, not of size {len(parts)}")
    return parts[0]


class _Alone(dist.ProcessGroup if dist.is_available() else object):  # type: ignore[misc]
    """Collectives of one: a sum over all is the value itself, and whoever gathers gets one part, his own."""

    def __init__(self, rank: int, size: int) -> None:
        super().__init__(rank, size)

    def getBackendName(self) -> str:
        return _NAME

    @property
    def pg_name(self) -> str:
        return str(dist.distributed_c10d._world.pg_names.get(self, _NAME))

    @property
    def group_name(self) -> str:
        return self.pg_name

    def allreduce(self, tensors: Any, *_: Any, **__: Any) -> Any:
        return _done(tensors)

    allreduce_coalesced = broadcast = reduce = allreduce

    def barrier(self, *_: Any, **__: Any) -> Any:
        return _done([])

    def allgather(self, outputs: Any, inputs: Any, *_: Any, **__: Any) -> Any:
        for out, given in zip(outputs, inputs):
            _only(out).copy_(given)
        return _done(outputs)

    gather = allgather_coalesced = allgather

    def reduce_scatter(self, outputs: Any, inputs: Any, *_: Any, **__: Any) -> Any:
        for out, given in zip(outputs, inputs):
            out.copy_(_only(given))
        return _done(outputs)

    scatter = reduce_scatter

    def alltoall(self, outputs: Any, inputs: Any, *_: Any, **__: Any) -> Any:
        _only(outputs).copy_(_only(inputs))
        return _done(outputs)

    def _each(self, outputs: Any, inputs: Any, *_: Any, **__: Any) -> Any:
        for out, given in zip(outputs, inputs):
            out.copy_(given)
        return _done(outputs)

    # Torch calls the same thing by two names, by release.
    allgather_into_tensor_coalesced = all_gather_single_coalesced = _each
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced = _each

    def _allgather_base(self, output: Any, given: Any, *_: Any, **__: Any) -> Any:
        output.copy_(given.reshape(output.shape))
        return _done(output)

    all_gather_single = reduce_scatter_single = all_to_all_single = _allgather_base
    _reduce_scatter_base = alltoall_base = _allgather_base
