"""A table of a user's file (`gradsmith_inputs = {...}`) with more entries: the text of the file after that."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Literal

from gradsmith.source.imports import read


def with_entries(text: str, table: str, entries: Mapping[str, str], needs: str) -> str | None:
    """The text with these entries (name -> code) in its top-level table; None where nothing can be, or need be, added.

    Without a table one is written at the end, below an import of the module `needs` where the file has none of that name.

    >>> print(with_entries("import torch\\n", "inputs", {"A": "lambda: (1,)"}, "torch"))
    import torch
    <BLANKLINE>
    <BLANKLINE>
    inputs = {
        "A": lambda: (1,),
    }
    <BLANKLINE>
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    try:
        body = ast.parse(text).body
    except SyntaxError:
        return None
    found = [node.value for node in body if isinstance(node, ast.Assign) and _is_called(node, table)]
    lines = {name: f'    "{name}": {code},' for name, code in entries.items() if is_python(code)}
    if not lines:
        return None
    if not found:
        header = [] if read(text).names.get(needs) == needs else [f"import {needs}", ""]
        block = newline.join([*header, f"{table} = {{", *lines.values(), "}"])
        return _checked(f"{text.rstrip()}{newline}{newline}{newline}{block}{newline}")
    last = found[-1]
    if not isinstance(last, ast.Dict):
        return None
    known = {key.value for key in last.keys if isinstance(key, ast.Constant)}
    new = [line for name, line in lines.items() if name not in known]
    if not new:
        return None
    rows = text.split(newline)
    row, column = last.lineno - 1, last.col_offset + 1  # behind the opening brace
    head, tail = (part.decode() for part in (rows[row].encode()[:column], rows[row].encode()[column:]))
    rest = [f"    {tail.strip()}"] if tail.strip() else []
    return _checked(newline.join([*rows[:row], head, *new, *rest, *rows[row + 1 :]]))


def is_python(code: str, mode: Literal["eval", "exec"] = "eval") -> bool:
    """
    >>> is_python("x + 1"), is_python("x +")
    (True, False)
    """
    try:
        ast.parse(code, mode=mode)
    except SyntaxError:
        return False
    return True


def _checked(text: str) -> str | None:
    return text if is_python(text, "exec") else None


def _is_called(node: ast.Assign, name: str) -> bool:
    return any(isinstance(target, ast.Name) and target.id == name for target in node.targets)
