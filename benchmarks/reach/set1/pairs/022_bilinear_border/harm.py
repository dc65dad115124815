import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
c = torch.tensor([[-1.3, 2.4], [1.7, 7.9], [2.2, 3.3], [5.5, -0.4]]).double().requires_grad_()
judge(lambda m, *a: m.SampleBilinear.apply(*a), None, (rand(5, 6), c))
