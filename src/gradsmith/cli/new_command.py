"""`gradsmith new`."""

from __future__ import annotations

import click

from gradsmith.cli.derive_command import may_write, write
from gradsmith.torch_here import need_torch


@click.command(
    "new",
    epilog='\b\nExamples:\n  gradsmith new swish --formula "x * sigmoid(beta * x)"\n'
    "  gradsmith new my_loss --pattern loss --output my_loss.py\n\b\n"
    "Patterns: elementwise, matrix, broadcasting, reduction, loss, module, recompute, surrogate, triton, custom-op",
)
@click.argument("name")
@click.option("--pattern", metavar="NAME", help="What kind of Function to start from; see below.")
@click.option("--formula", metavar="TEXT", help="A formula of tensors; backward is derived from it.")
@click.option("--output", type=click.Path(dir_okay=False), help="Write to a file instead.")
@click.option("--force", is_flag=True, help="Write over a file that exists.")
@click.option("--debug", is_flag=True, help="Show tracebacks of gradsmith's own errors.")
def command(name: str, pattern: str | None, formula: str | None, output: str | None, force: bool, debug: bool) -> None:
    """Start a Function: forward, backward, wrapper, inputs, test and a benchmark to fill in."""
    need_torch("gradsmith new")
    if output:
        may_write(output, force=force)
    from gradsmith.writing.new import new

    source = new(name, pattern=pattern, text=formula)
    if output:
        write(output, source)
        click.echo(f"{output}: {name}, with inputs and a test; run `gradsmith check {output}`")
    else:
        click.echo(source, nl=False)
