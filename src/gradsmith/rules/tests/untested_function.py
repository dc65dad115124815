"""a custom gradient that no test mentions

What it finds
-------------
When the linted paths contain tests: a Function whose name, and whose wrappers (functions, classes and names of its file that
use it), occur in none of them. It is told once per file, with the number of Functions that it holds for.

Why it matters
--------------
Nothing in PyTorch checks a hand-written backward. Without a test a wrong one shows as a model that trains a little worse.

Known problems
--------------
A Function that is reached only through wrappers in other files is reported. Tests are looked for in files with "test" in
their path, and in those that hold custom gradients themselves. Lint sources and tests together, or nothing is
said. `gradsmith check` verifies every Function of a file without a line of test code.

References
----------
https://docs.pytorch.org/docs/stable/notes/gradcheck.html
Of 161 public failures of custom gradients (survey of threads up to 2026-09), about a fifth would have been caught by one
default gradcheck; a Function that no test names is not even that lucky.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradsmith.findings import Finding, plural
from gradsmith.source.file import has_word
from gradsmith.source.walk import once

if TYPE_CHECKING:
    from gradsmith.source import FileModel, FunctionModel

CODE = "GS907"
SEVERITY = "info"
EXPLAINS = ()
FIXABLE = False
# Test files must be read although they define no Function; pytest looks for tests in files that are called so.
IN_PATHS = "test"
TRIGGERS = ASKS = ASKS_NAMES_IN = ("def test_",)
BAD = """
import torch


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 3 * x * x


def test_something_else():
    assert torch.ones(2).sum() == 2


gradsmith_inputs = {"Cube": lambda: (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),)}
"""
GOOD = BAD.replace(
    "def test_something_else():\n    assert torch.ones(2).sum() == 2",
    "def test_cube():\n    x = torch.randn(4, dtype=torch.float64, requires_grad=True)\n"
    "    assert torch.autograd.gradcheck(Cube.apply, (x,))",
)
_TEST = r"(?m)^[ \t]*def test_"


def lint(function: FunctionModel) -> Iterator[Finding]:
    """Told once per file, at its first untested Function, with their number."""
    own = function.file
    untested = _untested(own)
    if not untested or untested[0] is not function:
        return
    rest = len(untested) - 1
    others = (
        f", and neither {'is' if rest == 1 else 'are'} {plural(rest, 'other Function')} of this file" if rest else ""
    )
    yield function.at(
        function.node,
        f"{function.name} is mentioned in no test{others}.",
        advice=f"Write a test in this project: `gs.check({function.name}, x).raise_if_failed()`, with `import gradsmith as gs` and your own "
        f"inputs in place of x. `gradsmith check {os.path.basename(own.path)}{'' if rest else '::' + function.qualname}` checks it once.",
    )


@once
def _untested(own: FileModel) -> list[FunctionModel]:
    """The Functions of a file that no test mentions; none where there are no tests, or the file is one."""
    if own.project is None or own.is_test:
        return []
    with_tests = own.project.matching(_TEST, *ASKS)
    tests = [file for file in with_tests if file is not own]
    inside = _test_functions(own.text) if own in with_tests else []

    def mentioned(name: str) -> bool:
        return any(file.uses(name) for file in tests) or any(has_word(text, name) for text in inside)

    def tested(each: FunctionModel) -> bool:
        # The plain name first: following wrappers costs a search of the file.
        return mentioned(each.name) or any(mentioned(name) for name in _names(each))

    return [each for each in own.functions if _is_asked(each) and not tested(each)] if tests or inside else []


def _is_asked(function: FunctionModel) -> bool:
    return function.kind == "function" and function.has_gradient


def _names(function: FunctionModel) -> set[str]:
    """The Function and every name at the top of its file that leads to it."""
    text, starts = function.file.text, function.file.tops
    ends = [*list(starts.values())[1:], len(text)]
    blocks = {
        name: text[start:end]
        for (name, start), end in zip(starts.items(), ends)
        if name != "gradsmith_inputs" and not name.startswith("test_")
    }
    names, newest = {function.name}, [function.name]
    while newest:
        newest = [n for n, block in blocks.items() if n not in names and any(has_word(block, new) for new in newest)]
        names.update(newest)
    return names


def _test_functions(text: str) -> list[str]:
    """The bodies of the test functions of a file that holds Functions as well."""
    parts = re.split(r"(?m)^(?=\S)", text)
    return [part for part in parts if re.search(_TEST, part)]
