"""Building blocks whose gradients gradsmith verifies: gradient control, and operations that save memory or time."""

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

__all__ = [
    "GradClip",
    "GradNoise",
    "GradReverse",
    "GradScale",
    "GradStats",
    "GradTap",
    "StopGradient",
    "StraightThrough",
    "clamp_through",
    "grad_clip",
    "grad_noise",
    "grad_reverse",
    "grad_scale",
    "grad_tap",
    "round_through",
    "sign_through",
    "stop_gradient",
    "straight_through",
    "threshold_through",
]
