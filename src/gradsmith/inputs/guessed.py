"""Check a subject on guessed inputs, and say so; where nothing worked, say what was tried and what to write."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gradsmith.checking import Options, declaration, examine, unverified
from gradsmith.findings import Report
from gradsmith.inputs.guess import Guess, guess
from gradsmith.lab.target import Target


def examine_guessed(target: Target, options: Options, device: Any = None) -> Report:
    """The report on guessed inputs, with the declaration that would keep them."""
    found = guess(target, seed=options.seed, device=device)
    if found.args is None:
        return unverified(target, f"no inputs worked ({_tried(found)}); write {declaration(target)}")
    report = examine(target, [(found.args, found.kwargs)], "guessed", options)
    subjects = [replace(s, inputs_code=found.code) for s in report.subjects]
    note = f'{target.name}: inputs were guessed; keep or correct them: gradsmith_inputs = {{"{target.name}": lambda: {found.code}}}'
    return replace(report, subjects=subjects, notes=[*report.notes, note])


def _tried(found: Guess) -> str:
    if not found.attempts:
        return found.errors[0] if found.errors else "nothing could be proposed"
    most = f", most often {found.errors[0][:120]}" if found.errors else ""
    return f"{found.attempts} guesses tried{most}"
