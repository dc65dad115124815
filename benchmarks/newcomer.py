"""The README followed word for word by somebody who has nothing: every command of it, in an empty venv and an empty folder.

python benchmarks/newcomer.py [venv]

Without a venv one is made, and gradsmith is installed into it from this clone as the README says (torch 2.13.0 first, so that
no CUDA is fetched). The folder holds my_ops.py (the README's own Function, and a plain forward) and train.py, which runs it.
A surprise is an exit status other than 0 and 1, a traceback, or a command that takes more than 90 s.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
LONGEST = 90.0  # s
NEEDS_MORE = ("my_kernels.py", "--open", "gradsmith server", "...")  # Triton, a browser, an extra, a text of one's own


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
        (work / "src" / "ops.py").write_text((work / "my_ops.py").read_text())
        commands = dict.fromkeys(re.findall(r"`(gradsmith [a-z][^`]*)`", readme))
        surprises = [c for c in commands if not any(word in c for word in NEEDS_MORE) and _surprises(c, venv, work)]
    print(f"{len(surprises)} surprises in {len(commands)} commands of the README")
    return 1 if surprises else 0


def _installed(venv: Path) -> Path:
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    for what in (["torch==2.13.0"], [".[torch,html]"]):
        subprocess.run([str(venv / "bin" / "pip"), "install", "-q", *what], cwd=ROOT, check=True)
    return venv


def _surprises(command: str, venv: Path, work: Path) -> bool:
    words = shlex.split(command)
    where = ROOT if any(word.startswith("examples/") for word in words) else work
    environment = {"PATH": f"{venv / 'bin'}:/usr/bin:/bin", "HOME": str(work.parent), "COLUMNS": "80"}
    start = time.perf_counter()
    try:
        done = subprocess.run(
            words,
            cwd=where,
            env=environment,
            executable=str(venv / "bin" / words[0]),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LONGEST,
            check=False,
        )
    except subprocess.TimeoutExpired:
        print(f"  more than {LONGEST:.0f} s: {command}")
        return True
    wrong = done.returncode not in (0, 1) or "Traceback" in done.stderr
    last = (done.stdout + done.stderr).strip().splitlines()[-1:]
    print(
        f"{'! ' if wrong else '  '}exit {done.returncode}, {time.perf_counter() - start:.1f} s: {command}: {' '.join(last)[:90]}"
    )
    return wrong


if __name__ == "__main__":
    sys.exit(main())
