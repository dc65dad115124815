import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
judge(lambda m, x, w: m.CosineLogits.apply(x, w, 16.0), lambda x, w: 16 * F.normalize(x) @ F.normalize(w).t(), (rand(5, 8), rand(3, 8)))
