"""What each of the two ranks does: half of the batch through DDP and through FSDP2, compared with the whole batch.

Run by `python -m torch.distributed.run --nproc-per-node=2 -m gradsmith.lab.conditions.ranks TASK`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from gradsmith.lab.conditions.outcome import far
from gradsmith.lab.run import flat_outputs
from gradsmith.lab.subject.importing import import_file

Gradients = dict[str, Tensor | None]
Names = dict[int, str]
WORKS = "works"  # and yet there is something to say
NOT_TRIED = "not tried"
DIFFERENT = "a different result"


class Layer(nn.Module):
    """The Function as a layer: inputs without a batch dimension are its parameters or buffers; one scale all have."""

    def __init__(self, apply: Callable[..., Any], values: list[Any], batch: list[int], trained: list[int]) -> None:
        super().__init__()
        self.apply_function, self.values, self.batch = apply, values, batch
        self.trained = nn.ParameterDict({str(p): nn.Parameter(values[p].clone()) for p in trained})
        self.kept = [i for i, v in enumerate(values) if isinstance(v, Tensor) and i not in (*batch, *trained)]
        for i in self.kept:
            self.register_buffer(f"buffer_{i}", values[i].clone())
        first = values[batch[0]]
        self.scale = nn.Parameter(torch.ones(4, dtype=first.dtype))  # FSDP2 shards the first dimension

    def forward(self, *tensors: Tensor) -> Tensor:
        given = dict(zip(self.batch, tensors))
        if given[self.batch[0]].is_floating_point():
            given[self.batch[0]] = given[self.batch[0]] * self.scale.mean()
        given.update({int(p): parameter for p, parameter in self.trained.items()})
        given.update({i: self.get_buffer(f"buffer_{i}") for i in self.kept})
        outputs, _ = flat_outputs(self.apply_function(*[given.get(i, v) for i, v in enumerate(self.values)]))
        weighted = _weighted(outputs)
        return weighted if weighted is not None else tensors[0].sum() * self.scale.sum()


class WholeModule(nn.Module):
    """A module of the user's, as it is: DDP and FSDP2 have its own parameters and buffers."""

    def __init__(self, module: nn.Module, values: list[Any], batch: list[int]) -> None:
        super().__init__()
        self.module, self.values, self.batch = module, values, batch
        self.own = len(dict(module.named_parameters()))  # values that are its parameters, and come first
        self.kept: list[int] = []

    def forward(self, *tensors: Tensor) -> Tensor:
        given = dict(zip(self.batch, tensors))
        args = [given.get(i, v) for i, v in enumerate(self.values)][self.own :]
        weighted = _weighted(flat_outputs(self.module(*args))[0])
        return weighted if weighted is not None else tensors[0].sum()


def _weighted(outputs: list[Tensor]) -> Tensor | None:
    """One number for each sample. The weights differ from element to element, so that no error cancels in the sum."""
    used = [o for o in outputs if o.requires_grad]
    weights = [torch.linspace(0.5, 1.5, o[0].numel(), dtype=o.dtype) for o in used]  # a sample may be one number
    weighted = [o.reshape(len(o), w.numel()) * w for o, w in zip(used, weights)]
    return torch.cat(weighted, 1).sum(1) if weighted else None


def joined(model: Layer | WholeModule) -> dict[str, Tensor | None]:
    """The gradients that one process gets on the whole batch; ranks average theirs, so it is halved."""
    model(*[model.values[p] for p in model.batch]).sum().div(2).backward()
    return {name: p.grad for name, p in model.named_parameters()}


def main() -> None:
    task = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    home = import_file(Path(task["path"]))
    (values,) = torch.load(task["inputs"], weights_only=True)
    batch, trained, names = task["batch"], task["trained"], {int(p): name for p, name in task["names"].items()}

    def layer() -> Layer | WholeModule:
        if not task["module"]:
            return Layer(attrgetter(task["name"])(home).apply, values, batch, trained)
        sys.modules[task["home"]] = home  # where pickle looks for its class
        return WholeModule(torch.load(task["module"], weights_only=False), values, batch)  # written by us, a moment ago

    expected = torch.load(task["expected"], weights_only=True)
    size = values[batch[0]].shape[0] // 2
    mine = [values[p][rank * size : (rank + 1) * size] for p in batch]
    found = {"DDP": _ddp(layer(), mine, expected, names), "FSDP2": _fsdp(layer(), mine, expected, names)}
    if rank == 0:
        Path(task["result"]).write_text(json.dumps(found), encoding="utf-8")
    dist.barrier()
    dist.destroy_process_group()


def _ddp(model: Layer | WholeModule, mine: list[Tensor], expected: Gradients, names: Names) -> str:
    from torch.nn.parallel import DistributedDataParallel

    try:
        wrapped = DistributedDataParallel(model)
        wrapped(*mine).sum().backward()
        if unused := _unused(wrapped, mine, expected, names):
            return unused
    except Exception as error:  # the user's Function, or DDP's own complaint
        return f"raises {type(error).__name__}: {str(error).splitlines()[0][:160]}"
    return _compare({name: p.grad for name, p in model.named_parameters()}, expected, names) or _scattered(model, names)


def _unused(wrapped: nn.Module, mine: list[Tensor], expected: Gradients, names: Names) -> str:
    """A parameter without a gradient: DDP waits for it, or, where backward returned None, makes it zeros.

    Measured on torch 2.13: zeros, which an optimizer does not skip; in one process the gradient stays None.
    """
    name = next((_argument(name, names) for name, grad in expected.items() if grad is None), None)
    if name is None:
        return ""
    try:
        wrapped(*mine)  # what the first step leaves unfinished, the next forward complains about
    except RuntimeError as error:
        return (
            f"'{name}' gets no gradient, and DDP waits for it ({str(error).partition('. ')[0]}): pass "
            "find_unused_parameters=True, or do not register it as a parameter"
        )
    return (
        f"{WORKS}: '{name}' gets None from backward, of which DDP makes zeros: an optimizer with weight decay or momentum "
        "then moves it, though in one process it would skip it"
    )


def _scattered(model: Layer | WholeModule, names: Names) -> str:
    """Buffers that forward writes: each process writes its own, and DDP then keeps those of rank 0 alone."""
    for i in model.kept:
        own = model.get_buffer(f"buffer_{i}").detach()
        theirs = [torch.empty_like(own) for _ in range(dist.get_world_size())]
        dist.all_gather(theirs, own)
        if not torch.equal(theirs[0], theirs[1]):
            return (
                f"forward writes into the buffer '{names.get(i, i)}', and each process writes another value; before the "
                "next forward DDP overwrites them all with that of rank 0 (broadcast_buffers=True): average it with "
                "dist.all_reduce, or pass broadcast_buffers=False"
            )
    return ""


def _fsdp(model: Layer | WholeModule, mine: list[Tensor], expected: Gradients, names: Names) -> str:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    try:
        fully_shard(model, mesh=init_device_mesh("cpu", (dist.get_world_size(),)))
        model(*mine).sum().backward()
        # With FSDP2 every gradient is a DTensor, which torch's stubs do not know of a parameter.
        sharded: dict[str, Any] = {name: p.grad for name, p in model.named_parameters()}
        grads = {name: g.full_tensor() if g is not None else None for name, g in sharded.items()}
    except Exception as error:
        if not _shards_linear_layers():
            return f"{NOT_TRIED}: FSDP2 of this torch does not run on a CPU"
        return f"raises {type(error).__name__}: {str(error).splitlines()[0][:160]}"
    return _compare(grads, expected, names)


def _shards_linear_layers() -> bool:
    """Whether FSDP2 works here at all: in torch 2.6 it asks a CPU's stream for what only a GPU's has."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    try:
        plain = nn.Linear(4, 4)
        fully_shard(plain, mesh=init_device_mesh("cpu", (dist.get_world_size(),)))
        plain(torch.ones(2, 4)).sum().backward()
    except Exception:  # whatever it is, it is not the user's
        return False
    return True


def _compare(got: Gradients, expected: Gradients, names: Names) -> str:
    for name, wanted in expected.items():
        grad = got.get(name)
        if wanted is None and grad is None:
            continue  # FSDP2 leaves a parameter without a gradient alone
        if wanted is None or grad is None or not torch.allclose(wanted, grad, rtol=1e-6, atol=1e-9):
            return f"{DIFFERENT}: the gradient of '{_argument(name, names)}' {far(wanted, grad)}"
    return ""


def _argument(parameter: str, names: Names) -> str:
    """The user's name for a parameter of the layer; its scale multiplies the first input of the batch."""
    number = parameter.rpartition(".")[2]
    if parameter.startswith("module."):
        return parameter.removeprefix("module.")
    return (
        names.get(int(number), parameter)
        if number.isdigit()
        else "the first input"
        if parameter == "scale"
        else parameter
    )


if __name__ == "__main__":
    main()
