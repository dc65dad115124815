"""A command and all that runs below it: when the command is done, or stopped, nothing of it is left."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from gradsmith.lab.process import bond, run_folder, tree
from gradsmith.lab.process.stopping import undisturbed


@contextlib.contextmanager
def household() -> Iterator[None]:
    """Orphans below this process come to it, and whatever runs below it ends with the block."""
    spared = tree.children(os.getpid())
    outer = run_folder.in_use()  # a caller in the same process may have a folder there, too
    bond.adopt_orphans()
    try:
        yield
    finally:
        with undisturbed():
            tree.end_below(os.getpid(), spared)
            if not outer:
                run_folder.clear()


def environment(folder: Path) -> Mapping[str, str]:
    """The environment of a process that runs user code: its temporary files, a compiler's and torch's go with `folder`.

    The cache of compiled code that torch keeps between runs stays where torch would have put it.
    """
    import tempfile

    temporary = folder / "t"
    temporary.mkdir(mode=0o700)
    cache = os.path.join(tempfile.gettempdir(), f"torchinductor_{os.getuid() if hasattr(os, 'getuid') else ''}")
    kept = os.environ.get("TORCHINDUCTOR_CACHE_DIR") or cache
    return {**os.environ, "TMPDIR": str(temporary), "TORCHINDUCTOR_CACHE_DIR": kept}
