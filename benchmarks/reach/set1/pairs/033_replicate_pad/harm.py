import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
judge(lambda m, x: m.ReplicatePad1d.apply(x, 3, 2), lambda x: F.pad(x, (3, 2), mode="replicate"), (rand(2, 3, 5),))
