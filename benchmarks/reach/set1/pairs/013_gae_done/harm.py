import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
done = torch.tensor([0, 0, 1, 0, 1, 0]).bool()
judge(lambda m, v, r: m.GAE.apply(v, r, done, 0.99, 0.95), None, (rand(7), rand(6)))
