"""What TorchFix says of the defects that recall.py plants: the same files, with the defect and without.

    python -m venv /tmp/peers && /tmp/peers/bin/pip install torchfix jax
    python benchmarks/torchfix_recall.py [--torchfix /tmp/peers/bin/torchfix] [--seed 0] [--count 100]

TorchFix has other aims (deprecated calls, unsafe loads, models of torchvision), so most of these defects are not its business.
All its rules are on. A defect counts as found if TorchFix says more of the file with it than of the file without it.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

from recall import patients, plantings


def told(torchfix: str, folder: Path) -> Counter[str]:
    """How many findings TorchFix has for each file of the folder."""
    called = subprocess.run(
        [torchfix, "--select=ALL", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
    )
    return Counter(re.findall(r"^\S*?(\d+)\.py:\d+:\d+: TOR", called.stdout, re.M))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torchfix", default="/tmp/peers/bin/torchfix")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    options = parser.parse_args()
    version = subprocess.run([options.torchfix, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    rules = []
    with tempfile.TemporaryDirectory() as folder:
        clean, broken = Path(folder, "clean"), Path(folder, "broken")
        clean.mkdir()
        broken.mkdir()
        for number, (rule, patient, text) in enumerate(plantings(patients(), options.seed, options.count)):
            rules.append(rule)
            (clean / f"{number}.py").write_text(patient.model.file.text, encoding="utf-8")
            (broken / f"{number}.py").write_text(text, encoding="utf-8")
        before, after = told(options.torchfix, clean), told(options.torchfix, broken)
    found = [rule for number, rule in enumerate(rules) if after[str(number)] > before[str(number)]]
    print(f"TorchFix {version}, all rules: {len(found)} of {len(rules)} planted defects (seed {options.seed}) found")
    print(f"  in the files without a defect: {sum(before.values())} findings")
    for rule, times in sorted(Counter(found).items()):
        print(f"  {rule} {times}/{rules.count(rule)}")


if __name__ == "__main__":
    main()
