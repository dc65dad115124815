import pathlib
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge  # noqa: E402

torch.manual_seed(0)
f64 = torch.float64


def R(*shape):
    return torch.randn(*shape, dtype=f64).requires_grad_()


def T(*values):
    return torch.tensor(*values, dtype=f64, requires_grad=True)


i, o = torch.tensor([0, 1, 1, 3]), torch.tensor([0, 1])
judge(__file__, lambda m, t: m.EmbeddingBagMean.apply(t, i, o),
      lambda t: torch.nn.functional.embedding_bag(i, t, o, mode="mean"), (R(4, 3),))
