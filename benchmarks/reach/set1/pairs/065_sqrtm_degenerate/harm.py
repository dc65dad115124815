import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
a = (2 * torch.eye(4).double()).requires_grad_()
judge(lambda m, a: m.SqrtPSD.apply(a), None, (a,))
