"""The README followed word for word by somebody who has nothing: every command of it, in an empty venv and an empty folder.

python benchmarks/newcomer.py [venv]

Without a venv one is made, and gradsmith is installed into it from this clone as the README says (torch 2.13.0 first, so that
no CUDA is fetched; pytest for `pytest --gradsmith`). The folder is a git repository with my_ops.py (the README's own Function, and a plain
forward), train.py, which runs it, and a test that does. The browser is a program that writes down what it is asked to open.
A surprise is an exit status other than 0 and 1, a traceback, or a command that takes more than 60 s of processor time.
"""

from __future__ import annotations

import re
import resource
import shlex
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
LONGEST = 60.0  # s of processor time
PATIENCE = 900.0  # s on the clock: the machine may be busy
NEEDS_MORE = ("my_kernels.py",)  # Triton


def main() -> int:
    readme = (ROOT / "README.md").read_text()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        venv = Path(sys.argv[1]).absolute() if len(sys.argv) > 1 else _installed(home / "venv")
        work = home / "work"
        (work / "src").mkdir(parents=True)
        swish = re.findall(r"^```python\n(class Swish.*?)^```", readme, re.M | re.S)[0]
        plain = "def swish(x, beta):\n    return x * torch.sigmoid(beta * x)\n"
        (work / "my_ops.py").write_text(f"import torch\n\n\n{swish}\n\n{plain}")
        run = "x, beta = torch.randn(4, 3, requires_grad=True), torch.tensor(1.5, requires_grad=True)\nSwish.apply(x, beta).sum().backward()\n"
        (work / "train.py").write_text(f"import torch\nfrom my_ops import Swish\n\n{run}")
        (work / "test_ops.py").write_text(
            f"import torch\nfrom my_ops import Swish\n\n\ndef test_swish():\n{textwrap.indent(run, '    ')}"
        )
        (work / "src" / "ops.py").write_text((work / "my_ops.py").read_text())
        (home / "browser").write_text(f'#!/bin/sh\necho "$1" > {home}/opened\n')
        (home / "browser").chmod(0o755)
        subprocess.run(["git", "init", "-q"], cwd=work, check=True)
        subprocess.run(["git", "add", "-A"], cwd=work, check=True)
        who = ["-c", "user.name=me", "-c", "user.email=me@here"]
        subprocess.run(["git", *who, "commit", "-qm", "all"], cwd=work, check=True)
        commands = _commands(readme)
        tried = [c for c in commands if not any(word in c for word in NEEDS_MORE)]
        surprises = [c for c in tried if _surprises(c, venv, work)]
        if (
            not (home / "opened").exists()
            or not Path((home / "opened").read_text().strip()[len("file://") :]).is_file()
        ):
            surprises.append("--open opened nothing")
    print(f"{len(surprises)} surprises; {len(tried)} of {len(commands)} commands of the README tried")
    return 1 if surprises else 0


def _commands(readme: str) -> list[str]:
    """What stands in code and in blocks without a language: each command once, in the order of the page."""
    blocks = [text for language, text in re.findall(r"^```(\w*)\n(.*?)^```$", readme, re.M | re.S) if not language]
    lines = [line.partition("#")[0].strip() for block in blocks for line in block.splitlines()]
    written = re.findall(r"`((?:gradsmith [a-z]|pytest --)[^`]*)`", readme)
    found = [*(line for line in lines if line.startswith("gradsmith ")), *(" ".join(text.split()) for text in written)]
    return list(dict.fromkeys(found))


def _installed(venv: Path) -> Path:
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    for what in (["torch==2.13.0"], [".[torch,html]"], [".[server]"], ["pytest"]):
        subprocess.run([str(venv / "bin" / "pip"), "install", "-q", *what], cwd=ROOT, check=True)
    return venv


def _surprises(command: str, venv: Path, work: Path) -> bool:
    words = shlex.split(command)
    where = ROOT if any(word.startswith("examples/") for word in words) else work
    environment = {"PATH": f"{venv / 'bin'}:/usr/bin:/bin", "HOME": str(work.parent), "COLUMNS": "80"}
    environment |= {"BROWSER": f"{work.parent / 'browser'} %s"}
    start, used = time.perf_counter(), _processor_time()
    try:
        done = subprocess.run(
            words,
            cwd=where,
            env=environment,
            executable=str(venv / "bin" / words[0]),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        print(f"! more than {PATIENCE:.0f} s: {command}")
        return True
    took = _processor_time() - used
    wrong = done.returncode not in (0, 1) or "Traceback" in done.stderr or took > LONGEST
    last = (done.stdout + done.stderr).strip().splitlines()[-1:]
    print(
        f"{'! ' if wrong else '  '}exit {done.returncode}, {took:.1f} s ({time.perf_counter() - start:.0f} s on the clock): {command}: "
        f"{' '.join(last)[:90]}"
    )
    return wrong


def _processor_time() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())
