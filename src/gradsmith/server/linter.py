"""The process that reads source for the server: one JSON object per line comes in, one goes out.

A process of its own, because it starts while the server is still importing its library, and because a text that ends it (a
nesting that is too deep for Python's parser) costs one answer and not the editor's session. Never imports torch.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any, BinaryIO

from gradsmith import bundle


def answer(task: dict[str, Any]) -> Any:
    """What a task asks for: `lint`, `actions`, `fix all` or `page`."""
    from gradsmith.server import offers, pages, reading

    if task["do"] == "lint":
        return reading.linted(task["path"], task["text"], task["checked"])
    if task["do"] == "actions":
        return offers.offered(task["path"], task["text"], task["findings"])
    if task["do"] == "fix all":
        return offers.all_fixed(task["path"], task["text"])
    return pages.page_at(task["text"], task["line"], task["column"], task["rules"])


def main() -> None:
    """Answer until the server closes its end."""
    bundle.serve()
    incoming, outgoing = _channel()
    # What the first answer needs is loaded while the server is still starting.
    answer({"do": "lint", "path": "<string>", "text": "", "checked": []})
    for line in incoming:
        task = json.loads(line)
        try:
            reply = {"id": task["id"], "answer": answer(task)}
        except Exception as error:  # told to the user by the server; the next text may be read again
            reply = {"id": task["id"], "error": f"{type(error).__name__}: {error}"}
        outgoing.write(json.dumps(reply).encode() + b"\n")
        outgoing.flush()


def _channel() -> tuple[BinaryIO, BinaryIO]:
    """The streams to the server, out of reach of anything that prints."""
    outgoing = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return sys.stdin.buffer, outgoing


if __name__ == "__main__":
    main()
