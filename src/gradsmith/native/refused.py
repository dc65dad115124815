"""Why compiled C cannot serve a call: one sentence, shown to whoever asks (`.plan()`, `gs.ops.backend()`)."""

from __future__ import annotations


class Refused(Exception):
    """This way cannot run the call; the next one will."""
