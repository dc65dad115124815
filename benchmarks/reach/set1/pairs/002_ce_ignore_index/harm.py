import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
lab = torch.tensor([0, -100, 2, -100, 1, -100])
judge(lambda m, x: m.CrossEntropyIgnore.apply(x, lab), lambda x: F.cross_entropy(x, lab), (rand(6, 5),))
