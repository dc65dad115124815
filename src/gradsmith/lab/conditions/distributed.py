"""DDP and FSDP2 on a real 2-rank gloo group, started by torch.distributed's own launcher.

Each rank gets half of the batch; the averaged gradient has to be the one that a single process gets on the whole batch.
"""

from __future__ import annotations

import copy
import json
import os
import sys
import tempfile
from pathlib import Path

import torch
from torch import Tensor

from gradsmith.findings import Reproduction
from gradsmith.lab.conditions.outcome import Outcome, column, examinable, words
from gradsmith.lab.conditions.ranks import DIFFERENT, NOT_TRIED, WORKS, Layer, WholeModule, joined
from gradsmith.lab.explore.sizes import sizes
from gradsmith.lab.lab import Lab
from gradsmith.lab.once import once
from gradsmith.lab.process.time_limit import finished
from gradsmith.lab.run import forward
from gradsmith.lab.snippet import on_two_ranks
from gradsmith.lab.subject.arguments import Arguments, Leaf

_SECONDS = 120.0  # of CPU time, all three processes together


@column("DDP")
def ddp(lab: Lab) -> Outcome:
    return _outcome(lab, "DDP")


@column("FSDP2")
def fsdp(lab: Lab) -> Outcome:
    return _outcome(lab, "FSDP2")


def _outcome(lab: Lab, name: str) -> Outcome:
    found = _on_two_ranks(lab)
    if isinstance(found, str):
        return Outcome("not tried", found)
    said = found.get(name, "")
    if said.startswith(NOT_TRIED):
        return Outcome("not tried", said.removeprefix(f"{NOT_TRIED}: "))
    if not said or said.startswith(WORKS):
        return Outcome("works", said.removeprefix(f"{WORKS}: "))
    differs = said.removeprefix(f"{DIFFERENT}: ") if said.startswith(DIFFERENT) else ""
    return Outcome("fails", said, differs)


@once
def _on_two_ranks(lab: Lab) -> dict[str, str] | str:
    return unfit(lab) or _launched(lab)


def unfit(lab: Lab) -> str:
    """Why the subject cannot be spread over two processes, if so."""
    if reason := examinable(lab):
        return reason
    if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
        return "this torch has no gloo"
    if lab.stochastic:
        return "forward draws random numbers"
    found = lab.target.function or (type(lab.target.module) if lab.target.module is not None else None)
    if found is None or lab.target.path is None or "<locals>" in found.__qualname__:
        return "only Functions and modules of a file are started in other processes"
    batch = batched(lab)
    if not batch:
        return "no dimension was recognised as the batch"
    return "" if _separable(lab, batch) else "the samples of a batch depend on each other"


def batched(lab: Lab) -> list[int]:
    """Positions of the tensors whose first dimension is the batch: learned from what forward lets be resized."""
    first = _inputs_of(lab)[0].position if _inputs_of(lab) else -1
    for size in sizes(lab):
        if (first, 0, 1) in size.dims and all(dim == 0 and times == 1 for _, dim, times in size.dims):
            return [] if size.numbers or size.ends else [position for position, _, _ in size.dims]
    return []


def _inputs_of(lab: Lab) -> list[Leaf]:
    """The inputs that need a gradient; of a module any floating ones, and not its parameters, which come first."""
    leaves = lab.precise[1].leaves
    if lab.target.module is None:
        return [x for x in leaves if x.differentiable]
    own = len(dict(lab.target.module.named_parameters()))
    return [x for x in leaves if x.position >= own and x.tensor.is_floating_point()]


def doubled(lab: Lab, batch: list[int]) -> Arguments:
    """Two batches as one: the example, and the same a little larger."""
    arguments = lab.precise[1]
    tensors: dict[int, Tensor] = {}
    for leaf in arguments.leaves:
        if leaf.position in batch:
            plain = leaf.tensor.detach()
            other = plain * 1.25 if plain.is_floating_point() else plain.flip(0)
            tensors[leaf.position] = torch.cat([plain, other]).requires_grad_(leaf.differentiable)
    return arguments.replaced(tensors)


def demonstration(lab: Lab) -> Reproduction:
    """A script of plain PyTorch that starts two ranks on the same inputs; of a Function, since a module is an object."""
    if lab.target.function is None:
        return Reproduction(lab.settings.seed)
    batch = batched(lab)
    whole = doubled(lab, batch)
    return on_two_ranks(lab, whole, batch, [x.position for x in whole.differentiable if x.position not in batch])


def _separable(lab: Lab, batch: list[int]) -> bool:
    whole = doubled(lab, batch)
    tensors = {x.position: x.tensor for x in whole.leaves}
    size = tensors[batch[0]].shape[0] // 2
    try:
        together = forward(lab.precise[0], whole, seed=lab.settings.seed, plain=True).outputs
        halves = [
            forward(
                lab.precise[0],
                whole.replaced({p: tensors[p][part] for p in batch}),
                seed=lab.settings.seed,
                plain=True,
            ).outputs
            for part in (slice(None, size), slice(size, None))
        ]
    except Exception:  # forward does not take a doubled batch
        return False
    if any(o.ndim == 0 or o.shape[0] != 2 * size for o in together):
        return False
    return all(lab.close(a, torch.cat([b, c])) for a, b, c in zip(together, *halves))


def _launched(lab: Lab) -> dict[str, str] | str:
    batch = batched(lab)
    assert lab.target.path is not None
    with tempfile.TemporaryDirectory(prefix="gradsmith-") as folder:
        whole = doubled(lab, batch)
        stored, result = Path(folder) / "inputs.pt", Path(folder) / "result.json"
        trained = [x.position for x in whole.differentiable if x.position not in batch]
        values = [v.detach() if isinstance(v, Tensor) else v for v in whole.flat]
        expected = Path(folder) / "expected.pt"
        # Here, not in a rank: what depends on the process group must not be in the measure.
        module = lab.precise[0].module
        if module is None:
            layer: Layer | WholeModule = Layer(lab.precise[0].call, values, batch, trained)
        else:
            module, trained = copy.deepcopy(module), []
            layer = WholeModule(module, values, batch)
        torch.save([values], stored)
        try:
            torch.save(module, Path(folder) / "module.pt")
        except Exception as error:  # an instance with a lambda, a lock, an open file
            return f"the module cannot be sent to another process: {words(error)}"
        torch.save(joined(layer), expected)
        task = {
            "path": lab.target.path,
            "name": (lab.target.function or type(module)).__qualname__,
            "module": str(Path(folder) / "module.pt") if module is not None else "",
            "home": type(module).__module__,
            "batch": batch,
            "trained": trained,
            "names": {x.position: x.name for x in whole.leaves},
            "inputs": str(stored),
            "expected": str(expected),
            "result": str(result),
        }
        (Path(folder) / "task.json").write_text(json.dumps(task), encoding="utf-8")
        launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        try:
            command = [*launcher, "-m", "gradsmith.lab.conditions.ranks", str(Path(folder) / "task.json")]
            done = finished(command, _SECONDS, environment=environment)
        except OSError as error:
            return f"the process group did not come up: {words(error)}"
        if not result.is_file():
            said = [line for line in done.stderr.splitlines() if "Error" in line]
            return f"the process group failed: {said[-1][-160:] if said else done.returncode}"
        found: dict[str, str] = json.loads(result.read_text(encoding="utf-8"))
        return found
