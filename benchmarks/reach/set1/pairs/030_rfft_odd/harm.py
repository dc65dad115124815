import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harmlib import judge, rand, start

start(__file__)
judge(lambda m, x: m.PowerSpectrum.apply(x), lambda x: torch.fft.rfft(x).abs().square(), (rand(3, 9),))
