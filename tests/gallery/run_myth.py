"""Runs the code block of one myth of docs/myths.md: `python tests/gallery/run_myth.py 4`."""

from __future__ import annotations

import contextlib
import io
import re
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "myths.md"
SECTION = re.compile(r"^## (\d+)\. (.+?)\n(.*?)(?=^## |\Z)", re.M | re.S)


@dataclass(frozen=True)
class Myth:
    number: int
    title: str
    code: str
    shown: str

    def output(self) -> str:
        """What the block prints now."""
        import torch

        torch.manual_seed(0)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(self.code, f"myth {self.number}", "exec"), {"__name__": "myth"})
        return printed.getvalue()


def myths() -> list[Myth]:
    found = []
    for number, title, body in SECTION.findall(PAGE.read_text()):
        code, shown = (re.search(rf"^```{kind}\n(.*?)^```$", body, re.M | re.S) for kind in ("python", "text"))
        assert code is not None and shown is not None, f"myth {number} lacks its code or its output"
        found.append(Myth(int(number), title, code.group(1), shown.group(1)))
    return found


if __name__ == "__main__":
    wanted = [int(a) for a in sys.argv[1:]]
    for myth in myths():
        if not wanted or myth.number in wanted:
            print(f"{myth.number}. {myth.title}\n{myth.output()}")
