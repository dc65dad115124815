"""False alarms on right code of our own: every gallery file and the GOOD example of every rule, explored.

    python benchmarks/explored_right.py [--only PART] [--level standard] [--jobs 2]

Every subject is checked in a worker of its own, at its declared inputs and wherever the level looks beyond them. Prints each
error and each warning, the verdicts, and the time. The goal is 0 errors. (torch's own operators: `verify.py operators`.)
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from pathlib import Path

from apart import checked_apart

from gradsmith.catalog import rules
from gradsmith.checking.isolated import Job
from gradsmith.checking.subjects import wanted

GALLERY = Path(__file__).parent.parent / "examples" / "gallery"


def jobs_in(folder: Path, only: str) -> list[Job]:
    """One job for each file that has subjects."""
    return [
        Job(item.path, None, list(item.subjects), whole=item.whole)
        for item in wanted([str(folder)])
        if item.path is not None and only in item.path
    ]


def good_examples(folder: Path, only: str) -> list[Job]:
    """The GOOD of every rule as a file that bears the rule's name."""
    for rule in rules().values():
        (folder / f"{rule.name.replace('-', '_')}.py").write_text(rule.good, encoding="utf-8")
    return jobs_in(folder, only)


def examined(title: str, jobs: list[Job], level: str, workers: int) -> int:
    """Check them, print what was said, and return the number of errors."""
    start = time.perf_counter()
    found = [report for reports in checked_apart(jobs, level, workers) for report in reports]
    seconds = time.perf_counter() - start
    verdicts = Counter(s.verdict for report in found for s in report.subjects)
    severities = Counter(f.severity for report in found for f in report.findings)
    told = ", ".join(f"{count} {word}" for word, count in verdicts.most_common())
    print(f"\n## {title}: {len(jobs)} files, {told}; {seconds:.0f} s")
    print(f"errors {severities['error']} (goal 0), warnings {severities['warning']}, remarks {severities['info']}")
    for report in found:
        for finding in report.at_least("warning"):
            print(f"  {finding.severity} {Path(finding.path or '').stem} {finding.rule}: {finding.message}")
        for subject in report.subjects:
            if subject.verdict not in ("verified", "skipped"):
                print(f"  {subject.verdict} {Path(subject.path or '').stem} {subject.name}: {subject.reason}")
    return severities["error"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="part of a path")
    parser.add_argument("--level", default="standard")
    parser.add_argument("--jobs", type=int, default=2)
    chosen = parser.parse_args()
    errors = examined("gallery", jobs_in(GALLERY, chosen.only), chosen.level, chosen.jobs)
    with tempfile.TemporaryDirectory(prefix="gradsmith-good-") as folder:
        errors += examined("GOOD examples", good_examples(Path(folder), chosen.only), chosen.level, chosen.jobs)
    raise SystemExit(errors > 0)


if __name__ == "__main__":
    main()
