"""`%load_ext gradsmith`: the magic `%%gradsmith`, and errors of autograd explained below their tracebacks."""

from __future__ import annotations

import argparse
import inspect
import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NoReturn

from gradsmith.explaining import notebook
from gradsmith.findings import GradsmithError, Report

NAME = "gradsmith"


def load(shell: Any) -> None:
    """From now on the shell knows the magic, and explains errors."""
    notebook.load(shell)
    shell.register_magic_function(_magic(shell), magic_kind="line_cell", magic_name=NAME)


def unload(shell: Any) -> None:
    """As it was before."""
    notebook.unload(shell)
    for known in shell.magics_manager.magics.values():
        known.pop(NAME, None)


def _magic(shell: Any) -> Callable[[str, str | None], Report | None]:
    def gradsmith(line: str, cell: str | None = None) -> Report | None:
        """Check custom gradients: `%%gradsmith` those that the cell defines, `%gradsmith Swish` one that is there.

        Options are those of `gradsmith check`: `%%gradsmith --level deep --second-order`. Names restrict what is checked:
        `%%gradsmith Swish`. Inputs are the declared, recorded or guessed ones. The report is the result of the cell.
        """
        from IPython.core.error import UsageError

        try:
            return _checked(shell, line, cell)
        except GradsmithError as error:
            raise UsageError(f"%gradsmith: {error}") from None

    return gradsmith


def _checked(shell: Any, line: str, cell: str | None) -> Report | None:
    from gradsmith.torch_here import need_torch

    need_torch("checking a gradient")
    names, options = _asked(line)
    before = dict(shell.user_ns)
    if cell is not None:
        _run(shell, line, cell)
    now: Mapping[str, Any] = shell.user_ns
    subjects = [_named(name, now) for name in names] or (_defined(before, now) if cell is not None else [])
    if not subjects and cell is None:
        raise GradsmithError("say which Function: %gradsmith Swish; or begin a cell with %%gradsmith.")
    if not subjects:
        print("gradsmith: this cell defines no custom gradient.")
        return None
    return _report(subjects, options)


def _run(shell: Any, line: str, cell: str) -> None:
    """Run the cell where it stands: its lines and its number are those that the reader sees."""
    counter = shell.execution_count  # IPython 9 has counted this cell already, earlier ones have not
    shell.execution_count = len(shell.history_manager.input_hist_raw) - 1
    try:
        # The magic's own line stays as a comment. IPython would drop an empty one.
        ran = shell.run_cell(f"# %%{NAME} {line}".rstrip() + f"\n{cell}", store_history=False)
    finally:
        shell.execution_count = counter
    if not ran.success:
        raise GradsmithError("the cell failed, so nothing was checked.")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise GradsmithError(f"{message}.")


def _asked(line: str) -> tuple[list[str], dict[str, Any]]:
    """Names of subjects, and the options that were given.

    >>> _asked("Swish --level deep --second-order")
    (['Swish'], {'level': 'deep', 'second_order': True})
    """
    from gradsmith.checking.options import on_command_line
    from gradsmith.checking.run import check

    known = inspect.signature(check).parameters
    parser = _Parser(prog="%gradsmith", add_help=False, argument_default=argparse.SUPPRESS)
    parser.add_argument("names", nargs="*", default=[])
    for field in (field for field in on_command_line() if field.name in known):
        option = f"--{field.name.replace('_', '-')}"
        if isinstance(field.default, bool):
            parser.add_argument(option, action="store_true")
        else:
            kind = type(field.default) if isinstance(field.default, int) else str
            parser.add_argument(option, type=kind, choices=field.metadata["choices"] or None)
    try:
        given = vars(parser.parse_args(shlex.split(line)))
    except ValueError as error:  # a quotation that does not end
        raise GradsmithError(f"{error}.") from None
    return given.pop("names"), given


def _named(name: str, now: Mapping[str, Any]) -> Any:
    from gradsmith.nearest import nearest

    if name not in now:
        known = [n for n in now if not n.startswith("_")]
        raise GradsmithError(f"nothing is called {name!r} here; {nearest(name, known)}")
    return now[name]


def _defined(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[Any]:
    """The custom gradients that were written since: classes of this session, and custom ops."""
    from gradsmith.lab.subject.target import is_custom_op

    new = {id(v): v for name, v in now.items() if not name.startswith("_") and before.get(name) is not v}
    return [v for v in new.values() if is_custom_op(v) or _is_written_in(v, now.get("__name__"))]


def _is_written_in(value: Any, module: Any) -> bool:
    """Whether it is a Function class of this module, with a forward that can be run."""
    import torch

    is_function = isinstance(value, type) and issubclass(value, torch.autograd.Function)
    return is_function and value.__module__ == module and value.forward is not torch.autograd.Function.forward


def _report(subjects: list[Any], options: Mapping[str, Any]) -> Report:
    from gradsmith.checking.run import check
    from gradsmith.checking.verdict import once_each
    from gradsmith.folding import together

    total = once_each(together(*(check(subject, **options) for subject in subjects)))
    return replace(total, functions=len(subjects), files=len({subject.path for subject in total.subjects}))
