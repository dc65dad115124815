"""Recurrent layers from a user's own step: capture, split, emit, run."""

from .plan import Plan
from .scan import plan, scan

__all__ = ["Plan", "plan", "scan"]
