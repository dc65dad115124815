"""Write docs/rule_outputs.json: what the commands print for the BAD example of every rule.

    python docs/rule_outputs.py [RULE ...]     all rules, or only these

The pages of the rules show it, so that a reader sees the finding as it comes. It is kept in the repository because checking every
example takes minutes, and the site is built in seconds. tests/test_docs_site.py (deep) holds it to what the commands say now.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import gradsmith as gs
from gradsmith.catalog import Rule, rules
from gradsmith.report import render

KEPT = Path(__file__).parent / "rule_outputs.json"
WIDTH = 100


def said(rule: Rule) -> tuple[str, str]:
    """(command, what it prints) for the example of a rule; the verdicts are left out, they are about the example's file."""
    file = f"{rule.name.replace('-', '_')}.py"
    Path(file).write_text(rule.bad, encoding="utf-8")
    if "lint" in rule.lenses:
        command, report = f"gradsmith lint {file}", gs.lint(file, select=[rule.name])
    elif "check" in rule.lenses:
        level = "deep" if rule.level == "deep" else "standard"  # what the command does without --level
        command = f"gradsmith check {file}{' --level deep' if level == 'deep' else ''}"
        report = gs.check_paths(file, select=[rule.name], level=level)
    else:
        command = f"gradsmith profile {file}"
        (subject,) = _subjects(file)
        report = gs.Report(findings=[f for f in gs.profile(subject).findings if f.rule == rule.name])
    found = [finding for finding in report.findings if finding.rule == rule.name]
    remark = bool(found) and found[0].severity == "info"  # shown with its source only by -v
    text = (
        render(gs.Report(findings=found[:1]), "full", width=WIDTH, verbose=remark).rpartition("\n\n")[0]
        if found
        else ""
    )
    return f"{command} -v" if remark else command, text


def _subjects(file: str) -> list[object]:
    """What the example declares inputs for."""
    names: dict[str, object] = {"__name__": Path(file).stem, "__file__": file}
    exec(compile(Path(file).read_text(encoding="utf-8"), file, "exec"), names)
    declared = names.get("gradsmith_inputs", {})
    assert isinstance(declared, dict)
    return [names[name] for name in list(declared)[:1]]


@contextlib.contextmanager
def _aside() -> Iterator[None]:
    with tempfile.TemporaryDirectory() as folder:
        before = os.getcwd()
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def main() -> None:
    chosen = sys.argv[1:] or [rule.name for rule in rules().values() if not rule.package]
    kept = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.is_file() else {}
    with _aside():
        for name in chosen:
            command, output = said(rules()[name])
            if output:
                kept[name] = {"command": command, "output": output}
            else:
                kept.pop(name, None)
            print(f"{name}: {'kept' if output else 'nothing is said'}", flush=True)
    ordered = {name: kept[name] for name in sorted(kept) if name in rules()}
    KEPT.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
