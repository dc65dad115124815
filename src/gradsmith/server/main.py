"""Start the server on standard input and output."""

from __future__ import annotations

import importlib.util
import logging
import os
import sys

from gradsmith.findings import GradsmithError
from gradsmith.server.lint_process import LintProcess

MISSING = "gradsmith server needs pygls 2, which is not installed here; run: pip install 'pygls>=2,<3'"


def serve(*, debug: bool = False) -> None:
    """Answer an editor until it says goodbye, or closes the stream."""
    if importlib.util.find_spec("pygls") is None or importlib.util.find_spec("pygls.lsp") is None:
        raise GradsmithError(MISSING)
    linter = LintProcess()  # before the library is imported: both take a third of a second
    try:
        from gradsmith.server.app import Server
        from gradsmith.server.handlers import register

        if debug:
            logging.basicConfig(level=logging.INFO)
        else:
            logging.getLogger("pygls").addHandler(logging.NullHandler())
            logging.getLogger("pygls").propagate = False
        server = Server(linter)
        register(server)
        # The stream to the editor is out of reach of anything that prints.
        outgoing = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        server.start_io(sys.stdin.buffer, outgoing)
    finally:
        linter.close()
