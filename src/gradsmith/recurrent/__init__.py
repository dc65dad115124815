"""Recurrent layers from a user's own step: capture, split, emit, run."""

from .cells import GRUCell, LayerNormLSTMCell, LSTMCell, MinGRUCell, PeepholeLSTMCell, ReluRNNCell, TanhRNNCell
from .layer import Recurrent
from .linear_recurrence import linear_recurrence
from .plan import Plan
from .scan import plan, scan
from .selective_scan import selective_scan
from .spiking import AdaptiveLIFCell, LIFCell

__all__ = [
    "AdaptiveLIFCell",
    "GRUCell",
    "LIFCell",
    "LSTMCell",
    "LayerNormLSTMCell",
    "MinGRUCell",
    "PeepholeLSTMCell",
    "Plan",
    "Recurrent",
    "ReluRNNCell",
    "TanhRNNCell",
    "linear_recurrence",
    "plan",
    "scan",
    "selective_scan",
]
