"""Building blocks whose gradients gradsmith verifies: gradient control, and operations that save memory or time."""

from .checkpointing import Checkpoint, checkpoint, checkpoint_sequence
from .control.clipping import GradClip, grad_clip
from .control.noising import GradNoise, grad_noise
from .control.scaling import GradReverse, GradScale, grad_reverse, grad_scale
from .control.stopping import StopGradient, stop_gradient
from .control.tapping import GradStats, GradTap, grad_tap
from .control.through import (
    StraightThrough,
    clamp_through,
    round_through,
    sign_through,
    straight_through,
    threshold_through,
)
from .dropout import Dropout, dropout
from .layer_norm import LayerNorm, layer_norm
from .linear_cross_entropy import LinearCrossEntropy, linear_cross_entropy
from .linear_relu import LinearReLU, linear_relu
from .logsumexp import logsumexp
from .rms_norm import RMSNorm, rms_norm
from .swiglu import SwiGLU, swiglu
from .swish import Swish, swish

__all__ = [
    "Checkpoint",
    "Dropout",
    "GradClip",
    "GradNoise",
    "GradReverse",
    "GradScale",
    "GradStats",
    "GradTap",
    "LayerNorm",
    "LinearCrossEntropy",
    "LinearReLU",
    "RMSNorm",
    "StopGradient",
    "StraightThrough",
    "SwiGLU",
    "Swish",
    "checkpoint",
    "checkpoint_sequence",
    "clamp_through",
    "dropout",
    "grad_clip",
    "grad_noise",
    "grad_reverse",
    "grad_scale",
    "grad_tap",
    "layer_norm",
    "linear_cross_entropy",
    "linear_relu",
    "logsumexp",
    "rms_norm",
    "round_through",
    "sign_through",
    "stop_gradient",
    "straight_through",
    "swiglu",
    "swish",
    "threshold_through",
]
