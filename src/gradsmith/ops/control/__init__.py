"""Gradient control: the value passes unchanged (or through a step), the gradient is changed on purpose."""
