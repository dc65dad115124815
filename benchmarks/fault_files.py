"""Hostile files: each is linted in every text format, beside a file whose finding must not be lost. Nothing may be executed."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import sys
import time
import unicodedata
import xml.etree.ElementTree as xml
from collections.abc import Callable
from pathlib import Path

from fault_runs import Ground, Outcome, ground

FORMATS = ("full", "concise", "json", "sarif", "github", "junit", "html")
_SECONDS = 120
_BODY = """import torch, os
{before}
class {name}(torch.autograd.Function):{comment}
    @staticmethod
    def forward(ctx, x, y):{comment}
        return x * y

    @staticmethod
    def backward(ctx, grad_output):{comment}
        return grad_output{comment}
open("executed", "w").close()
"""
_NEIGHBOUR = _BODY.format(before="", name="Neighbour", comment="")
_EVIL = "\x1b[2J\x1b]0;gone\x07\x9b31m\u202egone\u2066<script>alert(1)</script>&]]>::error::gone##[error]gone%0A"


def body(comment: str = "", before: str = "", name: str = "Hostile") -> str:
    return _BODY.format(before=before, name=name, comment=f"  # {comment}" if comment else "")


Builder = Callable[[Path], object]


def _text(text: str, name: str = "hostile.py") -> Builder:
    return lambda folder: (folder / name).write_text(text, encoding="utf-8", errors="surrogatepass", newline="")


def _bytes(data: bytes, name: str = "hostile.py") -> Builder:
    return lambda folder: (folder / name).write_bytes(data)


def _named(name: str | bytes, text: str | None = None) -> Builder:
    def build(folder: Path) -> None:
        path = os.fsencode(folder) + b"/" + (name if isinstance(name, bytes) else os.fsencode(name))
        with open(path, "wb") as out:
            out.write((body() if text is None else text).encode())

    return build


def _link(target: str, name: str = "hostile.py") -> Builder:
    return lambda folder: (folder / name).symlink_to(target)


def _socket(folder: Path) -> None:
    before = os.getcwd()
    os.chdir(folder)  # a socket's path is short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind("hostile.py")
    finally:
        os.chdir(before)


def _sparse(size: int, name: str = "hostile.py") -> Builder:
    def build(folder: Path) -> None:
        with open(folder / name, "wb") as out:
            out.write(body().encode())
            out.truncate(size)

    return build


def _deep_folders(folder: Path) -> None:
    before = os.getcwd()
    os.chdir(folder)
    for _ in range(1500):
        os.mkdir("d")
        os.chdir("d")
    os.chdir(before)


def _pair(first: str, second: str) -> Builder:
    def build(folder: Path) -> None:
        (folder / "hostile.py").write_text(first)
        (folder / "hostile2.py").write_text(second)

    return build


def _loop(folder: Path) -> None:
    (folder / "hostile.py").symlink_to("hostile2.py")
    (folder / "hostile2.py").symlink_to("hostile.py")


def _folder_loop(folder: Path) -> None:
    (folder / "inner").mkdir()
    (folder / "inner" / "again").symlink_to("..")
    (folder / "inner" / "hostile.py").write_text(body())


def _unreadable(folder: Path) -> None:
    (folder / "hostile.py").write_text(body())
    (folder / "hostile.py").chmod(0)


def _unreadable_folder(folder: Path) -> None:
    (folder / "inner").mkdir()
    (folder / "inner" / "hostile.py").write_text(body())
    (folder / "inner").chmod(0)


def _book(content: object) -> Builder:
    return _text(content if isinstance(content, str) else json.dumps(content), "hostile.ipynb")


def _cells(*sources: object) -> dict[str, object]:
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [
        {"cell_type": "code", "source": source, "outputs": [], "metadata": {}} for source in sources
    ]}  # fmt: skip


def _chain(count: int) -> str:
    first = body(name="C0")
    return first + "\n".join(f"class C{i}(C{i - 1}):\n    pass\n" for i in range(1, count))


HOSTILE: dict[str, Builder] = {
    "a named pipe": lambda folder: os.mkfifo(folder / "hostile.py"),
    "a socket": _socket,
    "a folder with the name of a file": lambda folder: (folder / "hostile.py").mkdir(),
    "a link to nothing": _link("nowhere.py"),
    "a link to itself": _link("hostile.py"),
    "two links to each other": _loop,
    "a folder that holds a link to the one above": _folder_loop,
    "a link to /dev/zero": _link("/dev/zero"),
    "a link to /dev/urandom": _link("/dev/urandom"),
    "a link to /dev/null": _link("/dev/null"),
    "a link to /dev/tty": _link("/dev/tty"),
    "a link to /dev/stdin": _link("/dev/stdin"),
    "a link to the memory of the process": _link("/proc/self/mem"),
    "a link to the kernel's messages": _link("/proc/kmsg"),
    "a link to a file without a size": _link("/proc/self/maps"),
    "a link to a folder": _link("/usr"),
    "a link with a very long target": _link("a" * 255),
    "a file nobody may read": _unreadable,
    "a folder nobody may read": _unreadable_folder,
    "folders 1,500 deep": _deep_folders,
    "a file of a terabyte, mostly nothing": _sparse(1 << 40),
    "a file of 200 MB": _sparse(200_000_000),
    "a notebook of 200 MB": _sparse(200_000_000, "hostile.ipynb"),
    "an empty file": _bytes(b""),
    "null characters only": _bytes(b"\0" * 10_000),
    "a null character inside": _bytes(body().encode().replace(b"return x", b"return \0x")),
    "UTF-16": _bytes(body().encode("utf-16")),
    "UTF-16 without a mark": _bytes(body().encode("utf-16-le")),
    "two byte order marks": _bytes(b"\xef\xbb\xbf" * 2 + body().encode()),
    "latin-1 that does not say so": _bytes(body("\xe9").encode("latin-1")),
    "a coding that nobody knows": _text("# coding: klingon\n" + body()),
    "a coding that is not one of text": _text("# coding: hex\n" + body()),
    "the coding rot13": _text("# coding: rot13\n" + body()),
    "the coding undefined": _text("# coding: undefined\n" + body()),
    "half surrogates": _text(body("\ud800\udfff")),
    "carriage returns as line ends": _bytes(body().replace("\n", "\r").encode()),
    "form feeds and vertical tabs": _text(body("\f\v\x1c\x85\u2028 x")),
    "random bytes": _bytes(bytes((i * 7919 + i * i) % 256 for i in range(50_000)) + b"def backward"),
    "escapes for terminals": _text(body(_EVIL)),
    "bidirectional characters": _text(body("\u202e\u2066\u2067\u2069 if admin")),
    "C1 characters": _text(body("".join(map(chr, range(0x80, 0xA0))).replace("\x85", ""))),
    "all control characters": _text(body("".join(chr(i) for i in range(1, 32) if chr(i) not in "\n\r\f"))),
    "workflow commands": _text(body("::error::gone ::set-output name=a::b ##[add-mask]x")),
    "ends of XML and HTML": _text(body("]]> --> </script><img src=x onerror=alert(1)> <![CDATA[ &lt;")),
    "tags that are not characters": _text(body("\ufffe\uffff\U000e0041\u200b\u00ad")),
    "a line of 5 MB": _text(body("x" * 5_000_000)),
    "a name of 100 kB": _text(body(name="H" * 100_000)),
    "a name in Hebrew": _text(body(name="\u05d0\u05d1")),
    "an integer of a million digits": _text(body(before="x = " + "9" * 1_000_000)),
    "100,000 brackets": _text(body(before="x = " + "(" * 100_000)),
    "1,000 lists in each other": _text(body(before="x = " + "[" * 190 + "]" * 190)),
    "50,000 additions": _text(body(before="x = " + "+".join(["1"] * 50_000))),
    "an attribute 20,000 deep": _text(body(before="x = a" + ".b" * 20_000)),
    "a call 5,000 deep": _text(body(before="x = " + "f(" * 5_000 + ")" * 5_000)),
    "95 blocks in each other": _text(
        body(before="".join(f"{' ' * i}if x:\n" for i in range(95)) + " " * 95 + "pass")
    ),
    "20,000 functions": _text(body(before="\n".join(f"def f{i}(): return f{i + 1}()" for i in range(20_000)))),
    "2,000 subclasses in a chain": _text(_chain(2_000)),
    "classes that derive from each other": _text(body(before="class A(B): pass\nclass B(A): pass", name="C")),
    "a class that derives from itself": _text(body().replace("(torch.autograd.Function)", "(Hostile)")),
    "files that import each other": _pair(
        "from hostile2 import B\n" + body(name="A"), "from hostile import A\n" + body(name="B")
    ),
    "a name that means itself": _text(body(before="a = b\nb = a\nx = x\nFunction = Function")),
    "5,000 decorators": _text(body(before="@a\n" * 5_000 + "def f(): pass")),
    "10,000 comments to us": _text(body("gradsmith: ignore[" * 100, before="# gradsmith: ignore[x]\n" * 10_000)),
    "a comment to us that never ends": _text(body("gradsmith: ignore[")),
    "a declaration of nonsense": _text(body("gradsmith: surrogate[\x1b[31m]")),
    "an unclosed string": _text(body(before="x = '''")),
    "tabs and spaces": _text(body(before="if x:\n\ty\n        z")),
    "a merge conflict": _text(body(before="<<<<<<< HEAD\nx = 1\n=======\nx = 2\n>>>>>>> theirs")),
    "Python 2": _text(body(before="print 'hello'\nexec 'x'")),
    "a name with a line break": _named("hostile\n::error::gone.py"),
    "a name with escapes": _named("hostile\x1b[2J\x1b]0;gone\x07.py"),
    "a name that reads backwards": _named("hostile\u202eyp.gnp.py"),
    "a name that is not UTF-8": _named(b"hostile\xff\xfe\x9b.py"),
    "a notebook's name that is not UTF-8": _named(b"hostile\xff.ipynb", json.dumps(_cells(body()))),
    "a name of tags": _named("<script>alert(1)&amp;'\".py"),
    "a name of a workflow command": _named("::error file=x,line=1::gone##[error].py"),
    "a name with a percent sign": _named("hostile%0A%0D%3A,line=7.py"),
    "a name with a backslash": _named("hostile\\..\\gone.py"),
    "a name like an option": _named("--fix.py"),
    "a name of 255 bytes": _named("h" * 252 + ".py"),
    "a name of a carriage return and a tab": _named("hostile\r\t\b\b.py"),
    "a notebook that is not JSON": _book("{"),
    "a notebook that is a list": _book([1, 2]),
    "a notebook without cells": _book({"cells": 7}),
    "a notebook with strange cells": _book(_cells(7, None, {"a": 1}, [1, 2], body())),
    "a notebook 10,000 lists deep": _book("[" * 10_000 + "]" * 10_000),
    "a notebook of escapes": _book(_cells(body(_EVIL))),
    "a notebook of 20,000 cells": _book(_cells(*["x = 1\n"] * 20_000, body())),
    "a notebook with broken surrogates": _bytes(
        json.dumps(_cells(body("HERE"))).replace("HERE", "\\ud800").encode(), "hostile.ipynb"
    ),
    "a configuration that is not TOML": _text("[tool.gradsmith\n", "pyproject.toml"),
    "a configuration of the wrong types": _text("[tool.gradsmith]\nselect = 7\nignore = {}\n", "pyproject.toml"),
    "a configuration that is a folder": lambda folder: (folder / "pyproject.toml").mkdir(),
    "a configuration that is not UTF-8": _bytes(b"[tool.x]\nname = '\xff'\n", "pyproject.toml"),
    "a configuration that is a named pipe": lambda folder: os.mkfifo(folder / "pyproject.toml"),
    "a configuration of escapes": _text(f"[tool.gradsmith]\nselect = ['{_EVIL.encode('unicode_escape').decode()}']\n".replace("\\x", "\\\\x"), "pyproject.toml"),
}  # fmt: skip


def tried(name: str, formats: tuple[str, ...] = FORMATS) -> list[Outcome]:
    """The file in each format; what a configuration breaks is one sentence, and then there is no neighbour to find."""
    with ground() as place:
        HOSTILE[name](place.files)
        (place.files / "neighbour.py").write_text(_NEIGHBOUR)
        found = [_linted(place, name, format) for format in formats]
        executed = (place.files / "executed").exists()
        place.left(found[-1])
        for outcome in found if executed else ():
            outcome.trouble = "it was executed"
        return found


def _linted(place: Ground, name: str, format: str) -> Outcome:
    outcome = Outcome(f"{name}, {format}")
    out, err = place.folder / "out", place.folder / "err"
    status = _in_fork(place, ["lint", ".", "--format", format], out, err)
    said, errors = out.read_bytes(), err.read_bytes().decode(errors="replace")
    outcome.said = errors[-300:] + said.decode(errors="replace")[-300:]
    if status not in (0, 1) and not (status == 2 and name.startswith("a configuration")):
        outcome.trouble = f"exit status {status}"
    elif "Traceback" in errors or "gradsmith failed" in errors:
        outcome.trouble = "it failed"
    elif status != 2:
        outcome.trouble = _unfit(said, format)
        outcome.lost = int(b"Neighbour" not in said)
    outcome.trouble = outcome.trouble or _commands(errors) or _strange(errors)
    return outcome


def _unfit(said: bytes, format: str) -> str:
    try:
        text = said.decode()
    except UnicodeDecodeError:
        return "what is printed is not UTF-8"
    try:
        if format in ("json", "sarif"):
            json.dumps(json.loads(text), ensure_ascii=False).encode()
        elif format == "junit":
            xml.fromstring(text)
    except (ValueError, xml.ParseError) as error:
        return f"not well-formed: {error}"
    if format == "html" and re.search(r"<script>alert|<img src=x", text):
        return "a tag from a file is a tag of the page"
    if format == "github":
        ours = re.compile(r"::(error|warning|notice) (title=gradsmith \(GS|file=)")
        strange = [line for line in text.splitlines() if "::" in line[:40] and not ours.match(line)]
        return f"a command that is not ours: {strange[0][:80]!r}" if strange else _strange(text)
    return (_commands(text) if format in ("full", "concise") else "") or _strange(text)


def _commands(text: str) -> str:
    found = next((line for line in text.split("\n") if line.lstrip().startswith("::") or "##[" in line), None)
    return f"a workflow command: {found[:80]!r}" if found is not None else ""


def _strange(text: str) -> str:
    bad = next((c for c in text if c not in "\n\t" and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Cn")), None)
    return f"prints {bad!r}" if bad is not None else ""


def _in_fork(place: Ground, words: list[str], out: Path, err: Path) -> int:
    """The command line in a fork of this process, which has loaded what every run would load: 400 starts take too long."""
    import gradsmith.cli
    import gradsmith.cli.lint_command
    from gradsmith import catalog

    catalog.rules()
    pid = os.fork()
    if pid == 0:
        status = 70
        try:
            for path, descriptor in ((out, 1), (err, 2)):
                os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), descriptor)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.chdir(place.files)
            os.environ.clear()
            os.environ.update(place.environment())
            sys.stdout, sys.stderr = os.fdopen(1, "w", encoding="utf-8"), os.fdopen(2, "w", encoding="utf-8")
            sys.argv = ["gradsmith", *words]
            gradsmith.cli.main()
            status = 0
        except SystemExit as leaving:
            status = leaving.code if isinstance(leaving.code, int) else 1
        finally:
            with contextlib.suppress(Exception):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(status)
    until = time.monotonic() + _SECONDS
    while time.monotonic() < until:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return 124
