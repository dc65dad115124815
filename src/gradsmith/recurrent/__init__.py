"""Recurrent layers from a user's own step: capture, split, emit, run."""

from .scan import scan

__all__ = ["scan"]
