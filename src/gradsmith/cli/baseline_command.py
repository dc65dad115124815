"""`gradsmith baseline`."""

from __future__ import annotations

import os
from typing import Any

import click

from gradsmith import baseline
from gradsmith.cli.adoption import from_config
from gradsmith.cli.options import configured
from gradsmith.findings import plural


@click.command(
    "baseline",
    epilog="\b\nExamples:\n  gradsmith baseline src/\n  gradsmith baseline src/ --lint-only\n"
    '\b\nThen write into pyproject.toml:\n  [tool.gradsmith]\n  baseline = "gradsmith-baseline.json"\n'
    "and only what is new makes lint and check fail. Findings are known by rule, Function and the text of\n"
    "their line: they stay known when lines move.",
)
@click.argument("targets", nargs=-1, required=True)
@click.option(
    "--output", type=click.Path(dir_okay=False), help=f"Where to write. [what pyproject.toml says, {baseline.FILE}]"
)
@click.option("--lint-only", is_flag=True, help="Read the source only; run nothing.")
@click.option("--level", type=click.Choice(["quick", "standard", "deep"]), default="standard", help="How thoroughly.")
@click.option("--seed", type=int, default=0, help="Seed of inputs and directions. [0]")
@click.option("--isolated", is_flag=True, help="Do not read pyproject.toml.")
@click.option("--debug", is_flag=True, help="Show tracebacks of gradsmith's own errors.")
def command(
    targets: tuple[str, ...], output: str | None, lint_only: bool, isolated: bool, debug: bool, **chosen: Any
) -> None:
    """Write down all that lint and check say of TARGETS today, so that only new findings count."""
    from gradsmith.checking.paths import check_paths
    from gradsmith.checking.subjects import files_of
    from gradsmith.linting import lint

    files = files_of(targets)
    config = configured(isolated, files[0] if files else None)
    if lint_only:
        report = lint(files, config=config, debug=debug)
    else:
        report = check_paths(*targets, config=config, cache=True, debug=debug, **from_config(chosen, config))
    path = output or config.baseline or baseline.FILE
    written = baseline.write(report, path)
    known = f"{plural(sum(written.findings.values()), 'finding')} and {plural(len(written.subjects), 'subject')} that are not verified"
    click.echo(f"{os.path.relpath(path)}: {known}")
    if config.baseline is None:
        click.echo(
            f'write `baseline = "{os.path.relpath(path, config.root)}"` into [tool.gradsmith] of pyproject.toml',
            err=True,
        )
