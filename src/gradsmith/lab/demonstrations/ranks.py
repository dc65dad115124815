"""The body that two ranks run, and the script that starts them: one process on the joined batch against DDP and FSDP2."""

from __future__ import annotations

from collections.abc import Mapping

BODIES: Mapping[str, str] = {
    "ranks": """
import os
import torch.distributed as dist

class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        own = {str(p): torch.nn.Parameter(inputs[p].detach().clone()) for p in trained}
        self.trained = torch.nn.ParameterDict(own)
        self.scale = torch.nn.Parameter(torch.ones(4, dtype=inputs[batch[0]].dtype))
    def forward(self, *tensors):
        given = dict(zip(batch, tensors))
        given[batch[0]] = given[batch[0]] * self.scale.mean()
        given.update({int(p): q for p, q in self.trained.items()})
        results = tree_leaves(fn(*[given.get(i, v) for i, v in enumerate(inputs)]))
        used = [o for o in results if isinstance(o, torch.Tensor) and o.requires_grad]
        weighted = [(o * torch.linspace(0.5, 1.5, o[0].numel(), dtype=o.dtype).view_as(o[0])).flatten(1) for o in used]
        return torch.cat(weighted, 1).sum(1)

whole = [inputs[p].detach() for p in batch]
stored = os.path.join(sys.argv[1], "expected.pt")
if "RANK" not in os.environ:  # one process, the joined batch; ranks average, so half of the sum
    model = Layer()
    model(*whole).sum().div(2).backward()
    torch.save({name: p.grad for name, p in model.named_parameters()}, stored)
    sys.exit()

from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group("gloo")
expected, half = torch.load(stored), len(whole[0]) // 2
mine = [x[half * dist.get_rank() : half * (dist.get_rank() + 1)] for x in whole]
for kind in ("DDP", "FSDP2"):
    model = Layer()
    wrapped = DistributedDataParallel(model) if kind == "DDP" else fully_shard(model, mesh=init_device_mesh("cpu", (2,)))
    (wrapped if kind == "DDP" else model)(*mine).sum().backward()
    for name, p in model.named_parameters():
        grad = p.grad.full_tensor() if kind == "FSDP2" and p.grad is not None else p.grad
        assert grad is not None, f"{name} gets no gradient: DDP waits for it"
        assert close([expected[name]], [grad], 1e-6), f"{kind} gives another gradient of {name}"
dist.destroy_process_group()
""",
}
# SCRIPT stands for the whole script of a rank.
LAUNCHER = """# Plain PyTorch: this script raises, or exits with 1, while the defect is there.
import os, subprocess, sys, tempfile

RANK = r'''SCRIPT'''

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "rank.py")
    with open(path, "w") as file:
        file.write(RANK)
    subprocess.run([sys.executable, path, folder], check=True)
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    done = subprocess.run([*launcher, path, folder], env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, "two processes give another gradient than one on the joined batch"
"""
