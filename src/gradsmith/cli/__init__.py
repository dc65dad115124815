"""The command line: one command per file, loaded when it is called. Whatever it does, the Python API can do."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point. `lint` starts from the bundle of its modules, which is read before anything else is imported."""
    if sys.argv[1:2] == ["lint"]:
        from gradsmith import bundle

        bundle.serve()
    from gradsmith.cli import group

    group.main()
