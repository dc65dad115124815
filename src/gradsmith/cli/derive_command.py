"""`gradsmith derive`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gradsmith.findings import GradsmithError
from gradsmith.torch_here import need_torch


@click.command(
    "derive",
    epilog='\b\nExamples:\n  gradsmith derive my_ops.py::swish --inputs "randn(4, 3), tensor(1.5)"\n'
    "  gradsmith derive my_ops.py::swish --output swish_op.py --test",
)
@click.argument("target")
@click.option(
    "--inputs",
    metavar="CODE",
    help="The arguments of forward as Python code; names of the file and of torch can be used.",
)
@click.option(
    "--fast", is_flag=True, help="Save more tensors and recompute less. By default as few bytes as possible are saved."
)
@click.option("--test", is_flag=True, help="Add a test to the source.")
@click.option("--output", type=click.Path(dir_okay=False), help="Write the source to a file instead.")
@click.option("--force", is_flag=True, help="Write over a file that exists.")
@click.option("--debug", is_flag=True, help="Show tracebacks of gradsmith's own errors.")
def command(
    target: str, inputs: str | None, fast: bool, test: bool, output: str | None, force: bool, debug: bool
) -> None:
    """Write backward for a plain forward, and prove it before it is shown.

    TARGET is file.py::name or package.module:name: a function of tensors, or a Function whose backward is missing or wrong.
    """
    need_torch("gradsmith derive")
    if output:
        may_write(output, force=force)
    from gradsmith.writing.derive import written

    fn, module = _found(target)
    args: tuple[Any, ...] = ()
    if inputs:
        from gradsmith.inputs.declared import built, from_text

        args, _ = built(from_text(inputs, module))
    made = written(fn, args, {}, fast=fast, test=test)
    if output:
        write(output, made.source)
        click.echo(
            f"{output}: {made.derivation.function.__name__}, verified ({made.report.subjects[0].reason or 'first order'})"
        )
    else:
        click.echo(made.source, nl=False)


def may_write(path: str, *, force: bool) -> None:
    """Looked at before the work begins: a file of the user's is never written over unasked."""
    if Path(path).exists() and not force:
        raise GradsmithError(f"{path} exists; --force writes over it")
    if not Path(path).absolute().parent.is_dir():
        raise GradsmithError(f"cannot write {path}: there is no such folder")


def write(path: str, text: str) -> None:
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise GradsmithError(f"cannot write {path}: {error.strerror}") from None


def _found(target: str) -> tuple[Any, Any]:
    from gradsmith.lab.subject.importing import import_dotted, import_file

    path, double, name = target.partition("::")
    if double:
        if not Path(path).is_file():
            raise GradsmithError(f"no such file: {path}")
        module = import_file(Path(path))
    else:
        dotted, _, name = target.partition(":")
        if not name:
            raise GradsmithError(f"{target}: write file.py::name or package.module:name")
        module = import_dotted(dotted)
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
        if found is None:
            from gradsmith.nearest import nearest

            raise GradsmithError(
                f"{path} has no {name!r}; {nearest(name, [n for n, v in vars(module).items() if callable(v) and not n.startswith('_')])}"
            )
    return found, module
