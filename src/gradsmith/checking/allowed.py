"""How long checks may take after what they are added to, a script or a test suite, unless somebody says otherwise."""

from __future__ import annotations

FREE = 30.0  # s
SHARE = 0.5  # of the time that the script or suite took
