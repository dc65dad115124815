"""A pytest file from a report: each test fails while what was found is there, and passes once it is mended."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator

from gradsmith.findings import Finding, Report

_HEAD = '''"""Examples on which `gradsmith check` found something wrong. Each test passes once that is fixed."""

import importlib.util
import sys
from pathlib import Path

import torch
from torch.utils._pytree import tree_map


def load(path):
    """The module in a file, named relative to this one."""
    where = (Path(__file__).parent / path).resolve()
    sys.path.insert(0, str(where.parent))
    spec = importlib.util.spec_from_file_location(where.stem, where)
    module = sys.modules[where.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def precise(inputs):
    """The inputs in float64, in which differences can be told from rounding."""

    def cast(t):
        floating = isinstance(t, torch.Tensor) and t.is_floating_point()
        return t.detach().double().requires_grad_(t.requires_grad) if floating else t

    return tree_map(cast, inputs)
'''
_INPUTS = "inputs, keywords = "


def render(report: Report, path: str) -> tuple[str, int]:
    """The text of a test file that will stand at `path`, and how many tests it has: one for each error that a script shows."""
    taken: set[str] = set()
    tests = []
    for finding in report.findings:
        if finding.severity == "error" and finding.reproduce is not None and finding.reproduce.snippet:
            tests.append("\n".join(_test(finding, os.path.dirname(os.path.abspath(path)), taken)))
    return "\n\n\n".join([_HEAD.rstrip("\n"), *tests]) + "\n", len(tests)


def _test(finding: Finding, folder: str, taken: set[str]) -> Iterator[str]:
    assert finding.reproduce is not None
    yield f"def {_name(finding, taken)}():"
    yield _docstring(finding.message)
    given = next((line for line in finding.reproduce.snippet.splitlines() if line.startswith(_INPUTS)), "")
    if _is_about_numbers(finding) and given and finding.path and "subject.gradsmith_inputs" not in given:
        # The example that was shrunk: PyTorch's own test says whether the gradient is right there.
        where = os.path.relpath(os.path.abspath(finding.path), folder)
        yield f"    fn = load({where!r}).{finding.function}.apply"
        yield from textwrap.wrap(f"inputs, keywords = {given.removeprefix(_INPUTS)}", 110, initial_indent="    ",
                                 subsequent_indent="        ", break_long_words=False, break_on_hyphens=False)  # fmt: skip
        yield "    assert torch.autograd.gradcheck(lambda *given: fn(*given, **keywords), precise(inputs))"
    else:
        yield f"    script = {_quoted(finding.reproduce.snippet)}"
        yield '    exec(compile(script, "<script>", "exec"), {"__name__": "script"})'


def _is_about_numbers(finding: Finding) -> bool:
    """Whether the gradient itself is wrong at one example: not in a second call, another layout or another mode."""
    return "moves" in finding.evidence or "element" in finding.evidence


def _name(finding: Finding, taken: set[str]) -> str:
    parts = [finding.function or "subject", finding.rule, *([finding.argument] if finding.argument else [])]
    base = "test_" + "".join(c if c.isalnum() else "_" for c in "_".join(parts)).lower()
    name, number = base, 1
    while name in taken:
        number += 1
        name = f"{base}_{number}"
    taken.add(name)
    return name


def _docstring(message: str) -> str:
    text = message.replace("\\", "\\\\").replace('"""', "'''")
    return textwrap.fill(f'"""{text}"""', 110, initial_indent="    ", subsequent_indent="    ")


def _quoted(script: str) -> str:
    return "r'''\n" + script.replace("'''", '"""') + "'''"
