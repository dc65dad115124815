"""What the package says about itself: its version, and how to get what it lacks."""

from __future__ import annotations

import os

VERSION = "0.2.0"
MISSING_TORCH = "{what} needs PyTorch, which is not installed here; run: pip install torch"
WRONG_INPUTS = "--inputs "  # begins the reason of a subject that cannot run because the call is wrong
FOLDER = os.path.dirname(os.path.abspath(__file__))  # no pathlib: lint starts in 0.2 s
