"""`gradsmith record`."""

from __future__ import annotations

import os
import sys
import time

import click

from gradsmith.checking.allowed import FREE, SHARE
from gradsmith.cli.adoption import from_config
from gradsmith.cli.options import Output, configured, finish, report_options, split
from gradsmith.torch_here import need_torch


@click.command(
    "record",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    epilog="\b\nExamples:\n  gradsmith record train.py\n  gradsmith record train.py -- --epochs 1\n"
    "  gradsmith record -m my_package.train\n  gradsmith record --save calls.json train.py\n"
    "  torchrun --nproc-per-node 2 -m gradsmith record train.py\n"
    "\b\nThe exit status is the script's own; with --fail-on a script that ends well exits 1 for findings.",
)
@click.option("-m", "module", metavar="MODULE", help="Run a module instead of a script.")
@click.option("--save", type=click.Path(dir_okay=False), help="Write the recorded calls as JSON.")
@click.option(
    "--budget", type=float, metavar="SECONDS", help=f"For all checks together. [{FREE:g} s + {SHARE:g}x the script]"
)
@click.option("--third-party", is_flag=True, help="Check Functions of installed packages, too.")
@click.option("--level", type=click.Choice(["quick", "standard", "deep"]), default="standard", help="How thoroughly.")
@click.option("--seed", type=int, default=0, help="Seed of the directions. [0]")
@report_options
@click.argument("script", nargs=-1, type=click.UNPROCESSED)
def command(
    module: str | None,
    save: str | None,
    budget: float | None,
    third_party: bool,
    level: str,
    seed: int,
    script: tuple[str, ...],
    format: str | None,
    output: str | None,
    also: tuple[str, ...],
    baseline: str | None,
    verbose: bool,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    preview: bool,
    fail_on: str | None,
    exit_zero: bool,
    isolated: bool,
    debug: bool,
) -> None:
    """Run a script, note every custom Function that really runs, and check each on its real inputs."""
    need_torch("gradsmith record")
    name, arguments = _called(module, script)
    config = configured(isolated, name if module is None else None)
    from gradsmith.recording.ranks import rank
    from gradsmith.recording.script import play

    start = time.monotonic()
    with play(name, arguments, as_module=module is not None) as played:
        sys.stdout.flush()
        if played.child:
            os._exit(played.status)  # a fork that ran on to the end of the script: the report is its parent's
        if save:
            played.tape.save(_ranked(save, rank()))
        took = time.monotonic() - start
        report = played.tape.check(
            budget=FREE + SHARE * took if budget is None else budget,
            third_party=third_party,
            **from_config({"level": level, "seed": seed}, config),
            select=split(select) or config.select,
            ignore=(*split(ignore), *config.ignore),
            preview=preview or config.preview,
            assumes=config.assumes,
            surrogates=config.surrogates,
            debug=debug,
        )
    report.notes[:] = [f"{rank()}: {note}" if rank() else note for note in report.notes]
    chosen = Output.of(
        format, _ranked(output, rank()) if output else None, fail_on, config, exit_zero=exit_zero, verbose=verbose
    ).known_from(baseline, config, also)
    try:
        finish(report, chosen)
    except click.exceptions.Exit as leaving:
        findings = leaving.exit_code if fail_on else 0
        raise click.exceptions.Exit(0 if exit_zero else played.status or findings) from None


def _called(module: str | None, script: tuple[str, ...]) -> tuple[str, list[str]]:
    rest = list(script)
    if module is not None:
        return module, rest[1:] if rest[:1] == ["--"] else rest
    if not rest:
        raise click.UsageError("which script? write: gradsmith record train.py")
    name, *rest = rest
    return name, rest[1:] if rest[:1] == ["--"] else rest


def _ranked(path: str, rank: str) -> str:
    """`calls.json` is `calls.rank1.json` on rank 1: ranks must not write over one another."""
    if not rank:
        return path
    stem, ending = os.path.splitext(path)
    return f"{stem}.{rank.replace(' ', '')}{ending}"
