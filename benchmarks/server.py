"""How quickly `gradsmith server` answers, and whether it stays right while somebody types.

Run: python benchmarks/server.py start|change|replay [--count N] [--seed N]

`start`: from starting the process to the first diagnostics of a file that was opened, with the CPU seconds that the server and its
linter had used by then: they run side by side, so on an idle machine the larger of the two is what a user waits for. `change`: from sending one typed letter to the
diagnostics of that version, in a file of 1,000 lines. `replay`: random edits (letters, lines, blocks, undoing, characters beyond
ASCII, form feeds), one by one or in bursts; after every 50 the diagnostics have to be those of a fresh `gs.lint_source` of the same
text. The client here speaks the protocol over the standard streams of a real process, and shares no code with the server: it
keeps the text as UTF-16, because that is what the protocol counts.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FILE = Path("/tmp/gradsmith-server-benchmark/ops.py")  # never written: the server lints what is in memory
URI = FILE.as_uri()


class Server:
    """The process, and messages to and from it."""

    def __init__(self) -> None:
        self.started = time.perf_counter()
        command = [sys.executable, "-m", "gradsmith", "server"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.count = 0

    def send(self, method: str, params: Any, *, request: bool = False) -> int:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
        if request:
            self.count += 1
            message["id"] = self.count
        body = json.dumps(message).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self.process.stdin.flush()
        return self.count

    def receive(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        length = 0
        while (header := self.process.stdout.readline().strip()) or not length:
            if not header:
                raise SystemExit(f"the server ended with status {self.process.wait()}")
            if header.lower().startswith(b"content-length:"):
                length = int(header.split(b":")[1])
        message: dict[str, Any] = json.loads(self.process.stdout.read(length))
        return message

    def answer(self, number: int) -> Any:
        while (message := self.receive()).get("id") != number or "method" in message:
            pass
        return message["result"]

    def open(self, text: str) -> None:
        self.answer(self.send("initialize", {"processId": None, "rootUri": None, "capabilities": {}}, request=True))
        self.send("initialized", {})
        document = {"uri": URI, "languageId": "python", "version": 0, "text": text}
        self.send("textDocument/didOpen", {"textDocument": document})

    def shown(self, version: int) -> list[dict[str, Any]]:
        """The diagnostics of one version."""
        while True:
            message = self.receive()
            if message.get("method") == "textDocument/publishDiagnostics" and message["params"]["version"] == version:
                found: list[dict[str, Any]] = message["params"]["diagnostics"]
                return found

    def cpu_seconds(self) -> tuple[float, float]:
        """What the server and the processes it started have used so far; (0, 0) where there is no /proc."""
        own, children = _used(self.process.pid), Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return own, sum(map(_used, map(int, children.read_text().split()))) if children.exists() else 0.0

    def close(self) -> int:
        self.answer(self.send("shutdown", None, request=True))
        self.send("exit", None)
        return self.process.wait()


def _used(pid: int) -> float:
    """CPU seconds of one process, in user mode and in the kernel."""
    stat = Path(f"/proc/{pid}/stat")
    if not stat.exists():
        return 0.0
    ticks = stat.read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Change:
    """Units of UTF-16 from `start` to `end` are replaced by `text`."""

    start: int
    end: int
    text: str


class Text:
    """A text as an editor keeps it: units of UTF-16."""

    def __init__(self, text: str) -> None:
        self.data = text.encode("utf-16-le")

    def __str__(self) -> str:
        return self.data.decode("utf-16-le")

    def place(self, unit: int) -> dict[str, int]:
        before = self.data[: 2 * unit].decode("utf-16-le")
        line = before.count("\n")
        return {"line": line, "character": len(before[before.rfind("\n") + 1 :].encode("utf-16-le")) // 2}

    def apply(self, change: Change) -> dict[str, Any]:
        """The change as the protocol tells it."""
        told = {"range": {"start": self.place(change.start), "end": self.place(change.end)}, "text": change.text}
        new = change.text.encode("utf-16-le")
        self.data = self.data[: 2 * change.start] + new + self.data[2 * change.end :]
        return told


def a_thousand_lines() -> str:
    """Examples of the catalogue, the bad ones and the good ones, one after the other."""
    from gradsmith.catalog import rules

    lines: list[str] = []
    for rule in rules().values():
        for number, example in enumerate((rule.bad, rule.good)):
            lines += example.strip().split("\n")
            lines += ["", "", f"# {rule.code}, {'right' if number else 'wrong'}: größer als 🙂", ""]
            if len(lines) >= 1000:
                return "\n".join([*lines[:1000], ""])
    raise AssertionError("the catalogue has fewer lines than that")


def parsed_thousand_lines() -> str:
    """The same, cut where it is still Python."""
    lines = a_thousand_lines().split("\n")
    while not _is_python("\n".join(lines)):
        lines.pop()
    return "\n".join([*lines, *(["# filled up"] * (1000 - len(lines))), ""])


def expected(text: str) -> list[tuple[Any, ...]]:
    """What a fresh lint finds, with the start counted as the protocol counts."""
    import gradsmith as gs

    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    found = []
    for finding in gs.lint_source(text, str(FILE)).findings:
        line = (finding.line or 1) - 1
        column = len(lines[line][: finding.column or 0].encode("utf-16-le")) // 2
        found.append((line, column, finding.rule, (finding.message + "\n" + (finding.advice or "")).strip()))
    return sorted(found)


def got(diagnostics: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return sorted(
        (d["range"]["start"]["line"], d["range"]["start"]["character"], d["code"], d["message"].strip())
        for d in diagnostics
        if "code" in d
    )


WORDS = (
    "x",
    " ",
    "\n",
    "    ",
    "grad_output",
    "é",
    "🙂",
    "# ",
    "(",
    ")",
    "=",
    ".mul_(2)",
    "\x0c",
    "\u2028",
    "\r\n",
    "ctx.",
)


def random_changes(text: Text, drawn: random.Random) -> Iterator[Change]:
    """Edits as people make them: what is not Python any more is undone by the next one, and some other ones are, too."""
    while True:
        units = len(text.data) // 2
        start = _whole(text, drawn.randint(0, units))
        kind = drawn.random()
        if kind < 0.35:  # letters
            change = Change(start, start, drawn.choice(WORDS))
        elif kind < 0.55:  # a comment behind a line
            end = _line_end(text, start)
            change = Change(end, end, drawn.choice(("  # größer", "  # 🙂", "  # gradsmith: ignore")))
        elif kind < 0.75:  # a line goes
            first = _line_start(text, start)
            change = Change(first, min(_line_end(text, start) + 1, units), "")
        elif kind < 0.9:  # a line is doubled
            first, end = _line_start(text, start), min(_line_end(text, start) + 1, units)
            change = Change(first, first, text.data[2 * first : 2 * end].decode("utf-16-le"))
        else:  # some letters go
            change = Change(start, _whole(text, min(units, start + drawn.randint(1, 40))), "")
        removed = text.data[2 * change.start : 2 * change.end].decode("utf-16-le")
        yield change
        if not _is_python(str(text)) or drawn.random() < 0.2:
            yield Change(change.start, change.start + len(change.text.encode("utf-16-le")) // 2, removed)


def _is_python(text: str) -> bool:
    import ast

    try:
        return bool(ast.parse(text))
    except (SyntaxError, ValueError):
        return False


def _whole(text: Text, unit: int) -> int:
    """Not inside of a pair of surrogates, nor between a carriage return and its newline."""
    here = text.data[2 * unit : 2 * unit + 2]
    inside = len(here) == 2 and 0xDC <= here[1] < 0xE0
    return unit - 1 if inside or (here == b"\n\0" and text.data[2 * unit - 2 : 2 * unit] == b"\r\0") else unit


def _line_start(text: Text, unit: int) -> int:
    return unit - text.place(unit)["character"]


def _line_end(text: Text, unit: int) -> int:
    rest = text.data[2 * unit :].decode("utf-16-le").split("\n", 1)[0].removesuffix("\r")
    return unit + len(rest.encode("utf-16-le")) // 2


def replay(count: int, seed: int, every: int = 50) -> tuple[int, int]:
    """Edits until `count` are made: (comparisons, findings compared). A difference ends the program."""
    drawn = random.Random(seed)
    text = Text(parsed_thousand_lines())
    server = Server()
    server.open(str(text))
    server.shown(0)
    compared = findings = 0
    changes = random_changes(text, drawn)
    for version in range(1, count + 1):
        told = text.apply(next(changes))
        params = {"textDocument": {"uri": URI, "version": version}, "contentChanges": [told]}
        server.send("textDocument/didChange", params)
        if version % every == 0 or version == count:
            shown, fresh = got(server.shown(version)), expected(str(text))
            if shown != fresh:
                more, less = [d for d in shown if d not in fresh], [d for d in fresh if d not in shown]
                raise SystemExit(f"after {version} edits: shown only {more[:3]}, expected only {less[:3]}")
            compared, findings = compared + 1, findings + len(fresh)
        elif drawn.random() < 0.2:  # otherwise the next one comes at once
            server.shown(version)
    status = server.close()
    assert status == 0, f"the server ended with status {status}"
    return compared, findings


@dataclass(frozen=True)
class Taken:
    """Seconds that a user waited, and the CPU seconds that the server and its linter used for it."""

    waited: float
    server: float
    linter: float


def start(count: int) -> list[Taken]:
    """From starting the process to its first diagnostics."""
    text = "import torch\n\n\nclass Double(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n"
    text += "        return 2 * x\n\n    @staticmethod\n    def backward(ctx, g):\n        return g.mul_(2)\n"
    taken = []
    for _ in range(count):
        server = Server()
        server.open(text)
        assert server.shown(0)
        taken.append(Taken(time.perf_counter() - server.started, *server.cpu_seconds()))
        server.close()
    return taken


def change(count: int, seed: int) -> list[Taken]:
    """From one typed letter to the diagnostics of the new text; CPU seconds, which are counted coarsely, are averages."""
    drawn = random.Random(seed)
    text = Text(parsed_thousand_lines())
    server = Server()
    server.open(str(text))
    server.shown(0)
    waited, before = [], server.cpu_seconds()
    for version in range(1, count + 1):
        end = _line_end(text, _whole(text, drawn.randint(0, len(text.data) // 2)))
        told = text.apply(Change(end, end, "  # n"))  # it stays Python, so that every rule has its work
        params = {"textDocument": {"uri": URI, "version": version}, "contentChanges": [told]}
        begin = time.perf_counter()
        server.send("textDocument/didChange", params)
        assert got(server.shown(version)), "nothing is found any more: this measures too little"
        waited.append(time.perf_counter() - begin)
    used = [(after - sooner) / count for after, sooner in zip(server.cpu_seconds(), before)]
    server.close()
    return [Taken(seconds, *used) for seconds in waited]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("start", "change", "replay"))
    parser.add_argument("--count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    if asked.what == "replay":
        count = asked.count or 1000
        compared, findings = replay(count, asked.seed)
        print(f"{count} edits: 0 crashes; {compared} comparisons with a fresh lint, {findings} findings, 0 differences")
        return
    taken = start(asked.count or 10) if asked.what == "start" else change(asked.count or 100, asked.seed)
    what = "first diagnostics after start" if asked.what == "start" else "diagnostics after a change in 1,000 lines"
    waited = sorted(one.waited for one in taken)
    print(f"{what}: median {statistics.median(waited):.3f} s, {waited[0]:.3f} to {waited[-1]:.3f} s, of {len(taken)}")
    server, linter = (statistics.median(getattr(one, who) for one in taken) for who in ("server", "linter"))
    print(
        f"CPU: server {server:.3f} s, linter {linter:.3f} s; load average {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores"
    )


if __name__ == "__main__":
    main()
