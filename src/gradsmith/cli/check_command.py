"""`gradsmith check`."""

from __future__ import annotations

from typing import Any

import click

from gradsmith.cli.options import Output, configured, finish, report_options, split
from gradsmith.cli.progress import Progress
from gradsmith.path_checking import linted_and_run, recorded_file
from gradsmith.running import Running
from gradsmith.subjects import files_of, wanted


@click.command(
    "check",
    epilog="\b\nExamples:\n  gradsmith check my_ops.py\n  gradsmith check my_ops.py::Swish\n"
    '  gradsmith check my_ops.py::Swish --inputs "randn(4, 3), tensor(1.5)"\n'
    "  gradsmith check my_package.ops:Swish --level deep\n"
    "\b\nInputs come from --inputs, or are declared in the file:\n"
    '  gradsmith_inputs = {"Swish": lambda: (torch.randn(4, 3, requires_grad=True),)}',
)
@click.argument("targets", nargs=-1, required=True)
@click.option("--inputs", metavar="CODE", help="Inputs as Python, evaluated in the user's module.")
@click.option("--recorded", metavar="FILE", help="Inputs from `gradsmith record --save FILE`.")
@click.option("--gradient", type=click.Choice(["exact", "surrogate", "approximate"]), help="What it is meant to be.")
@click.option("--level", type=click.Choice(["quick", "standard", "deep"]), default="standard", help="How thoroughly.")
@click.option("--steps", is_flag=True, help="Walk through it step by step, with what to try at each.")
@click.option("--second-order", is_flag=True, help="Demand that the second derivative is right, too.")
@click.option("--device", metavar="NAME", help="Where to run: cpu, cuda, ... (declared inputs are moved there).")
@click.option("--seed", type=int, default=0, help="Seed of inputs and directions. [0]")
@click.option("--jobs", "-j", type=click.IntRange(1), default=1, help="Files checked at the same time. [1]")
@click.option("--stub", multiple=True, metavar="MODULE", help="Replace a missing module by a stand-in.")
@click.option("--timeout", type=float, default=120.0, metavar="SECONDS", help="Limit for one subject. [120]")
@click.option("--memory-limit", type=float, default=8.0, metavar="GIB", help="Limit for one subject. [8]")
@click.option("--allow-unverified", is_flag=True, help="Exit 0 although some subjects could not be verified.")
@report_options
def command(
    targets: tuple[str, ...],
    inputs: str | None,
    recorded: str | None,
    gradient: str | None,
    level: str,
    steps: bool,
    second_order: bool,
    device: str | None,
    seed: int,
    jobs: int,
    stub: tuple[str, ...],
    timeout: float,
    memory_limit: float,
    allow_unverified: bool,
    format: str | None,
    output: str | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    fail_on: str | None,
    exit_zero: bool,
    isolated: bool,
    debug: bool,
) -> None:
    """Run custom gradients and say whether they are right.

    TARGETS are files, folders, file.py::Class or package.module:Class. Each subject runs in a process of its own.
    """
    work = wanted(targets)
    config = configured(isolated, files_of(targets)[0] if files_of(targets) else None)
    options: dict[str, Any] = {
        "gradient": gradient,
        "level": level,
        "seed": seed,
        "steps": steps,
        "second_order": second_order,
    }
    options |= {"recorded": recorded_file(recorded), "debug": debug}
    options |= {"select": split(select) or config.select, "ignore": (*split(ignore), *config.ignore)}
    how = Running(options, timeout, int(memory_limit * 2**30), stub, inputs, device, jobs)
    shown = Output.of(format, output, fail_on, config, exit_zero=exit_zero, allow_unverified=allow_unverified)
    total = sum(len(item.subjects) for item in work)
    with Progress(total, tell=total > 1 and shown.format == "full") as progress:
        report = linted_and_run(targets, work, how, config, progress.advance)
    finish(report, shown)
