"""Lint must survive everything: every Python file there is, and thousands of sources damaged on purpose.

    python benchmarks/robustness.py [--mutants 5000] [--seed 0]

A crash is an exception out of lint, or a rule that failed (which lint reports as skipped). Files that Python itself cannot
parse are no crash. Everything is linted, fixed (unsafe edits too) and rendered in every format.
"""

from __future__ import annotations

import argparse
import random
import sys
import sysconfig
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from survey import PACKAGES, folders

import gradsmith as gs
from gradsmith.catalog import rules
from gradsmith.report import FORMATS, render
from gradsmith.source import scan

ENCODINGS = ("latin-1", "utf-16", "utf-8-sig", "cp1252", "shift_jis", "utf-32")


def mutants(count: int, seed: int, sources: list[str]) -> Iterator[bytes]:
    """Real sources with lines deleted, tokens swapped, ends cut off, and bytes of other encodings."""
    draw = random.Random(seed)
    for _ in range(count):
        text = draw.choice(sources)
        for _ in range(draw.randint(1, 4)):
            text = draw.choice((_deleted, _swapped, _truncated, _doubled, _indented, _odd))(text, draw)
        yield _encoded(text, draw)


def _deleted(text: str, draw: random.Random) -> str:
    lines = text.split("\n")
    at = draw.randrange(len(lines))
    del lines[at : at + draw.randint(1, 5)]
    return "\n".join(lines)


def _swapped(text: str, draw: random.Random) -> str:
    words = text.split(" ")
    for _ in range(draw.randint(1, 3)):
        a, b = draw.randrange(len(words)), draw.randrange(len(words))
        words[a], words[b] = words[b], words[a]
    return " ".join(words)


def _truncated(text: str, draw: random.Random) -> str:
    return text[: draw.randrange(len(text) + 1)]


def _doubled(text: str, draw: random.Random) -> str:
    lines = text.split("\n")
    lines.insert(draw.randrange(len(lines)), draw.choice(lines))
    return "\n".join(lines)


def _indented(text: str, draw: random.Random) -> str:
    lines = text.split("\n")
    at = draw.randrange(len(lines))
    lines[at] = draw.choice(["    ", "\t", "  ", ""]) + lines[at].lstrip()
    return "\n".join(lines)


def _odd(text: str, draw: random.Random) -> str:
    at = draw.randrange(len(text) + 1)
    return (
        text[:at]
        + draw.choice(["\x00", "\r", "\f", "\u2028", "é", "\U0001f600", "(", '"""', "\\", "\ufeff", "λ"])
        + text[at:]
    )


def _encoded(text: str, draw: random.Random) -> bytes:
    if draw.random() < 0.8:
        return text.encode("utf-8", "replace")
    encoding = draw.choice(ENCODINGS)
    cookie = f"# -*- coding: {encoding} -*-\n" if draw.random() < 0.5 else ""
    return (cookie + text).encode(encoding, "replace")


def crash(data: bytes, path: str) -> str | None:
    """What went wrong, or None."""
    try:
        report = gs.lint_source(data, path)
        failed = [s.reason for s in report.skipped if " failed on " in s.reason]
        if failed:
            return failed[0]
        if any(f.edits for f in report.findings):
            gs.fix_source(data, path, unsafe=True)
        for format in FORMATS if report.findings else ():
            render(report, format)
    except Exception:
        return traceback.format_exc(limit=-2).strip().replace("\n", " | ")
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutants", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    troubles: Counter[str] = Counter()
    folders()
    files = 0
    sources = [text for rule in rules().values() for text in (rule.bad, rule.good)]
    for folder in (sysconfig.get_paths()["purelib"], str(PACKAGES)):
        report = gs.lint([*_children(Path(folder))])
        files += report.files
        troubles.update(s.reason for s in report.skipped if " failed on " in s.reason)
        for source in scan.read_all(_children(Path(folder))):
            if isinstance(source, scan.SourceFile) and scan.known(source.data).function and len(source.data) < 20_000:
                sources.append(source.data.decode("utf-8", "replace"))
    print(f"{files} files: {sum(troubles.values())} crashes", flush=True)
    for number, data in enumerate(mutants(options.mutants, options.seed, sources)):
        if (trouble := crash(data, "mutant.py")) is not None:
            troubles[f"mutant {number}: {trouble}"] += 1
    print(
        f"{options.mutants} mutants of {len(sources)} sources (seed {options.seed}); {sum(troubles.values())} crashes in all"
    )
    for trouble, count in troubles.most_common(20):
        print(f"  {count} x {trouble}")
    sys.exit(1 if troubles else 0)


def _children(folder: Path) -> list[str]:
    """site-packages itself is left out when it lies under a named folder; what is in it is not when named."""
    return [str(path) for path in sorted(folder.iterdir()) if path.is_dir() or path.suffix == ".py"]


if __name__ == "__main__":
    main()
