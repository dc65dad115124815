"""The wheel as a user gets it: built, installed into empty environments without and with torch, and tried.

    python tools/test_wheel.py [--torch VERSION] [--python INTERPRETER ...]

One line for each thing that was tried; exit status 1 if one did not come out as it should. The counts go to
docs/compatibility.md, for each Python. Environments and wheels of torch are removed after use.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from compatibility import ROOT, keep

LONGEST_IMPORT = 0.1  # seconds of CPU time
RUNS = 5

SQUARE = """import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return {slope} * grad_output * x


gradsmith_inputs = {{"Square": lambda: (torch.randn(3, requires_grad=True),)}}
"""
SCRIPT = "import torch, right\nright.Square.apply(torch.randn(3, requires_grad=True)).sum().backward()\n"
TEST = "import torch, right\n\ndef test_it():\n    right.Square.apply(torch.randn(3, requires_grad=True)).sum().backward()\n"
LAYER = """
import torch, gradsmith as gs
cell = torch.nn.GRUCell(3, 4)
layer, x = gs.Recurrent(cell), torch.randn(7, 2, 3)
print(layer.plan(x).backend)
layer(x)[0].sum().backward()
"""
TIMED = "import time; start = time.process_time(); import gradsmith; print(time.process_time() - start)"


def built(folder: Path) -> str:
    call = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT)]
    subprocess.run([*call, "--disable-pip-version-check"], check=True)
    (wheel,) = folder.glob("*.whl")
    return str(wheel)


class Place:
    """An environment with the wheel in it, and a folder with files to try."""

    def __init__(self, folder: Path, python: str, *packages: str) -> None:
        self.python, self.files = str(folder / "venv" / "bin" / "python"), folder / "files"
        subprocess.run([python, "-m", "venv", "--without-pip", str(folder / "venv")], check=True)
        pip = [sys.executable, "-m", "pip", "--python", self.python]  # some distributions of Python bring none
        subprocess.run([*pip, "install", "--quiet", "--disable-pip-version-check", *packages], check=True)
        self.files.mkdir()
        for name, slope in (("right", 2), ("wrong", 3)):
            (self.files / f"{name}.py").write_text(SQUARE.format(slope=slope), encoding="utf-8")
        (self.files / "train.py").write_text(SCRIPT, encoding="utf-8")
        (self.files / "test_right.py").write_text(TEST, encoding="utf-8")

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        hidden = {"PYTHONPATH", "PYTHONHOME"}  # nothing of the repository
        own = {name: value for name, value in os.environ.items() if name not in hidden}
        return subprocess.run(
            [self.python, *words], cwd=self.files, env=own, capture_output=True, text=True, check=False
        )

    def gives(self, status: int, said: str, *words: str) -> tuple[str, str]:
        """(what was tried, what is wrong with it)."""
        done = self.run(*words)
        told = f"{done.stdout}\n{done.stderr}"
        trouble = (
            ""
            if done.returncode == status and said in told
            else f"exit status {done.returncode}: {told.strip()[-300:]}"
        )
        return "gs.Recurrent" if words[0] == "-c" else " ".join(words[1:]), trouble


def without_torch(place: Place) -> Iterator[tuple[str, str]]:
    times = [float(place.run("-c", TIMED).stdout or "inf") for _ in range(RUNS)]
    slow = f"takes {min(times):.3f} s" if min(times) > LONGEST_IMPORT else ""
    yield f"import gradsmith ({min(times):.3f} s)", slow
    yield place.gives(0, "gradsmith check my_ops.py", "-m", "gradsmith")
    yield place.gives(0, "wrong-gradient", "-m", "gradsmith", "explain", "wrong-gradient")
    yield place.gives(0, "custom gradient", "-m", "gradsmith", "lint", "right.py")
    for command in ("check", "profile"):
        yield place.gives(2, "needs PyTorch, which is not installed here", "-m", "gradsmith", command, "right.py")


def with_torch(place: Place) -> Iterator[tuple[str, str]]:
    yield place.gives(0, "1 verified", "-m", "gradsmith", "check", "right.py")
    yield place.gives(1, "1 refuted", "-m", "gradsmith", "check", "wrong.py")
    yield place.gives(0, "Square", "-m", "gradsmith", "profile", "right.py", "--budget", "0.1", "--no-growth")
    yield place.gives(0, "1 verified", "-m", "gradsmith", "record", "train.py")
    yield place.gives(0, "1 custom gradient checked", "-m", "pytest", "--gradsmith", "test_right.py")
    yield place.gives(0, "c\n", "-c", LAYER)


def tried(name: str, place: Place, questions: Callable[[Place], Iterator[tuple[str, str]]]) -> bool:
    """Whether all came out as it should; each is said, and the counts are kept."""
    version = place.run("-c", "import platform; print(platform.python_version())").stdout.strip()
    asked = list[tuple[str, str]]()
    for what, trouble in questions(place):
        print(f"Python {version}, {name}: {what}: {trouble or 'as it should'}", flush=True)
        asked.append((what, trouble))
    failed = [what for what, trouble in asked if trouble]
    counts = {"passed": len(asked) - len(failed), "failed": failed, "skipped": 0}
    keep("python", version, tests={f"the wheel {name}": counts})
    return not failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch", default="2.13.0", help="which torch [2.13.0]")
    parser.add_argument("--python", nargs="+", default=[sys.executable], help="interpreters [this one]")
    asked = parser.parse_args()
    right = True
    for python in asked.python:
        with tempfile.TemporaryDirectory(prefix="gradsmith-wheel-") as made:
            folder = Path(made)
            wheel = built(folder)
            for name, questions, packages in (
                ("without torch", without_torch, (wheel,)),
                (f"with torch {asked.torch}", with_torch, (wheel, f"torch=={asked.torch}", "numpy", "pytest")),
            ):
                own = folder / "-".join(name.split()[:2])
                own.mkdir()
                right = tried(name, Place(own, python, *packages), questions) and right
    return 0 if right else 1


if __name__ == "__main__":
    raise SystemExit(main())
