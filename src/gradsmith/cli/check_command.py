"""`gradsmith check`."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import click

from gradsmith.checking.fixing import Fixes, fixed, fixes, read_before
from gradsmith.checking.jobs import Running
from gradsmith.checking.narrowing import remember_failed
from gradsmith.checking.options import Options
from gradsmith.checking.paths import linted_and_run, recorded_file, with_config
from gradsmith.checking.subjects import files_of, wanted
from gradsmith.cli.adoption import adoption_options, from_config, narrowed, write_wanted
from gradsmith.cli.check_profiles import with_profiles_of
from gradsmith.cli.options import Output, check_options, configured, finish, finish_early, report_options, split
from gradsmith.cli.progress import Progress
from gradsmith.findings import GradsmithError, Report, plural
from gradsmith.lab.process.household import household
from gradsmith.lab.process.stopping import Stopped


@click.command(
    "check",
    epilog="\b\nExamples:\n  gradsmith check my_ops.py\n  gradsmith check my_ops.py::Swish\n"
    '  gradsmith check my_ops.py::Swish --inputs "randn(4, 3), tensor(1.5)"\n'
    "  gradsmith check my_package.ops:Swish --level deep\n"
    "\b\nInputs come from --inputs, or are declared in the file:\n"
    '  gradsmith_inputs = {"Swish": lambda: (torch.randn(4, 3, requires_grad=True),)}',
)
@click.argument("targets", nargs=-1, required=True)
@click.option(
    "--inputs",
    metavar="CODE",
    help="The arguments of forward as Python code; names of the file and of torch can be used.",
)
@click.option("--device", metavar="NAME", help="Where to run: cpu, cuda, ... (declared inputs are moved there).")
@click.option("--jobs", "-j", type=click.IntRange(1), default=1, help="Files checked at the same time. [1]")
@click.option("--stub", multiple=True, metavar="MODULE", help="Replace a missing module by a stand-in.")
@click.option("--timeout", type=float, default=120.0, metavar="SECONDS", help="CPU time for one subject. [120]")
@click.option("--memory-limit", type=float, default=8.0, metavar="GIB", help="Memory for one subject. [8]")
@click.option("--fix", is_flag=True, help="Write the proved repairs into the files, and check them again.")
@click.option(
    "--unsafe-fixes", is_flag=True, help="With --fix or --diff: also where inputs were guessed, or forward changes."
)
@click.option("--diff", is_flag=True, help="Show what --fix would change; write nothing.")
@click.option("--write-test", metavar="FILE", help="Write a pytest file with the failing examples.")
@click.option("--force", is_flag=True, help="With --write-test: also over a file that exists.")
@click.option(
    "--profile", is_flag=True, help="Profile what ran, too: time by line, growth, memory, in the same report."
)
@click.option("--allow-unverified", is_flag=True, help="Exit 0 although some subjects could not be verified.")
@adoption_options
@check_options
@report_options
def command(
    targets: tuple[str, ...],
    inputs: str | None,
    device: str | None,
    jobs: int,
    stub: tuple[str, ...],
    timeout: float,
    memory_limit: float,
    fix: bool,
    unsafe_fixes: bool,
    diff: bool,
    write_test: str | None,
    force: bool,
    profile: bool,
    allow_unverified: bool,
    declare_surrogates: bool,
    write_inputs: bool,
    no_cache: bool,
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
    **chosen: Any,
) -> None:
    """Run custom gradients and say whether they are right.

    TARGETS are files, folders, file.py::Class or package.module:Class. Each subject runs in a process of its own.
    """
    _read_as_python(inputs)
    config = configured(isolated, files_of(targets)[0] if files_of(targets) else None)
    everything = wanted(targets, config)
    work = narrowed(everything, chosen)
    files = files_of(targets) if work == everything else [item.path for item in work if item.path is not None]
    chosen["recorded"] = recorded_file(chosen["recorded"])
    chosen |= {"select": split(select), "ignore": split(ignore), "preview": preview, "debug": debug}
    options = Options.of(from_config(chosen, config))
    limit = int(memory_limit * 2**30)
    how = Running(with_config(options, config).as_json(), timeout, limit, stub, inputs, device, jobs)
    shown = Output.of(format, output, fail_on, config, exit_zero=exit_zero, verbose=verbose)
    shown = shown._replace(allow_unverified=allow_unverified).known_from(baseline, config, also)
    total = sum(len(item.subjects) for item in work)

    def checked() -> Report:
        with household(), Progress(total) as progress:
            watched = replace(how, on_stage=progress.trying)
            return linted_and_run(files, work, watched, config, progress.advance, cache=not no_cache, verbose=verbose)

    if write_test is not None and not force and os.path.exists(write_test):
        raise GradsmithError(f"{write_test} exists; --force writes over it")
    before = read_before(files_of(targets)) if fix or diff else {}
    try:
        report = checked()
        remember_failed(work, report)
        if write_test is not None:
            _write_test(report, write_test)
        if declare_surrogates or write_inputs:
            write_wanted(report, declare=declare_surrogates, inputs=write_inputs)
        if (fix or diff) and options.level == "quick":
            click.echo("level quick searches for no repair of a gradient: use --level standard", err=True)
        if fix or diff:
            held = sum(bool(f.edits) and f.applicability == "unsafe" for f in report.findings)
            if held and not unsafe_fixes:
                told = f"{plural(held, 'repair')} held back: inputs were guessed, or forward changes"
                click.echo(f"{told} (--unsafe-fixes takes them, too)", err=True)
            report = _mended(fixes(report, before, unsafe=unsafe_fixes), checked, shown, write=not diff)
        if profile:
            rules = {name: chosen[name] for name in ("select", "ignore", "preview", "seed", "recorded")}
            with household():
                report = with_profiles_of(report, work, {**rules, "inputs": inputs, "device": device}, timeout)
    except Stopped as stopped:
        finish_early(stopped, shown)
    finish(report, shown)


def _mended(found: Fixes, again: Callable[[], Report], shown: Output, *, write: bool) -> Report:
    """Write and check again, or show the diff, fit for `git apply`, and end."""
    done = fixed(found, again) if write else found
    for sentence in done.left:
        click.echo(sentence, err=True)
    amount = f"{plural(done.count, 'finding')} in {plural(len(done.files), 'file')}"
    if not write:
        click.echo(done.diff(), nl=False)
        click.echo(f"would fix {amount}", err=True)
        raise click.exceptions.Exit(1 if done.count and not shown.exit_zero else 0)
    if done.count:
        click.echo(f"fixed {amount}", err=True)
    return done.report


def _write_test(report: Report, path: str) -> None:
    from gradsmith.report.failing_tests import render

    text, count = render(report, path)
    if not count:
        click.echo("no finding can be shown by a script of its own: no test was written", err=True)
        return
    try:
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)
    except OSError as error:
        raise GradsmithError(f"cannot write {path}: {error.strerror}") from None
    click.echo(f"wrote {plural(count, 'test')} to {path}", err=True)


def _read_as_python(inputs: str | None) -> None:
    """A wrong call is known before anything runs."""
    try:
        compile("None" if inputs is None else f"({inputs},)", "--inputs", "eval")
    except (SyntaxError, ValueError) as error:
        raise GradsmithError(f"--inputs {inputs!r} is not Python: {getattr(error, 'msg', error)}") from None
