"""What somebody pastes: a message, a part of one, or a whole traceback."""

from __future__ import annotations

import re
from dataclasses import dataclass

# `torch._dynamo.exc.Unsupported: text`, at the beginning of a line as Python prints it.
_RAISED = re.compile(
    r"^(?:E\s+)?(?P<type>(?:[a-zA-Z_]\w*\.)*\w*(?:Error|Exception|Unsupported|Warning))(?::\s*|$)", re.M
)
_FRAME = re.compile(r'^\s*File "(?P<path>[^"\n]+)", line (?P<line>\d+)(?:, in (?P<function>\S+))?', re.M)
# pytest ends a part of its traceback with `ops.py:12: RuntimeError`, IPython begins one with `File ~/ops.py:12, in f(x)`.
_SHORT_FRAME = re.compile(r"^(?:File )?(?P<path>[^\s:]+\.py):(?P<line>\d+)(?:: |, in (?P<function>\w+))", re.M)
_BACKWARD = re.compile(r"\b(\w+?)Backward\b")


@dataclass(frozen=True)
class TracebackLine:
    """One line of a traceback: where, and in which function."""

    path: str
    line: int
    function: str


@dataclass(frozen=True)
class Pasted:
    """A text taken apart. `messages` are those of a chain of exceptions, the last one first."""

    text: str
    messages: tuple[str, ...]
    frames: tuple[TracebackLine, ...]

    @property
    def functions(self) -> list[str]:
        """Names of Functions in the messages: PyTorch calls the backward of `Scale` `ScaleBackward`."""
        return [name for message in self.messages for name in _BACKWARD.findall(message)]


def read(text: str) -> Pasted:
    """Messages and frames of a text.

    >>> read('  File "ops.py", line 3, in f\\nValueError: too much').messages
    ('too much',)
    """
    starts = list(_RAISED.finditer(text))
    ends = [match.start() for match in starts[1:]] + [len(text)]
    messages = [_without_traceback(text[match.end() : end]) for match, end in zip(starts, ends)]
    frames = [
        TracebackLine(m["path"], int(m["line"]), m["function"] or "")
        for pattern in (_FRAME, _SHORT_FRAME)
        for m in pattern.finditer(text)
    ]
    return Pasted(text, tuple(reversed(messages)) if messages else (text.strip(),), tuple(frames))


def _without_traceback(text: str) -> str:
    """A message, without the traceback of the next exception in the chain."""
    return re.split(r"\n\s*\n(?:During handling|The above exception)|\nTraceback ", text)[0].strip()
