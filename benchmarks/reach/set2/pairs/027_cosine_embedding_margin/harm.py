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


lab = torch.tensor([1, -1, -1, -1])


def ref(a, b):
    return torch.nn.functional.cosine_embedding_loss(a, b, lab, margin=0.2)


judge(__file__, lambda m, a, b: m.CosineMarginLoss.apply(a, b, lab, 0.2), ref, (R(4, 5), R(4, 5)))
