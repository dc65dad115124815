"""`gradsmith profile`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import click

from gradsmith.checking.subjects import Wanted, files_of, wanted
from gradsmith.cli.options import _color, split
from gradsmith.cli.profile_process import profiled, status
from gradsmith.findings import GradsmithError, Report
from gradsmith.lab.process.household import household
from gradsmith.lab.process.stopping import Stopped, leave_at_once
from gradsmith.linting import lint
from gradsmith.report import FORMATS, format_for, render
from gradsmith.report.html_format import render_profiles
from gradsmith.report.layout import PLAIN, terminal_width, wrapped
from gradsmith.report.profile_table import render as table
from gradsmith.torch_here import need_torch


@click.command(
    "profile",
    epilog="\b\nExamples:\n  gradsmith profile my_ops.py::Swish\n"
    '  gradsmith profile my_ops.py::Swish --inputs "randn(512, 512)" --try\n'
    "  gradsmith profile my_ops.py::Swish --compare other_ops.py::Swish\n"
    "  gradsmith profile my_ops.py::Swish --trace swish.trace.json    (open it at ui.perfetto.dev)",
)
@click.argument("targets", nargs=-1, required=True)
@click.option(
    "--inputs",
    metavar="CODE",
    help="The arguments of forward as Python code; names of the file and of torch can be used.",
)
@click.option("--recorded", metavar="FILE", help="Inputs from `gradsmith record --save FILE`.")
@click.option(
    "--reference", metavar="NAME", help="A callable of the same file that computes the same in plain PyTorch."
)
@click.option("--try", "try_remedies", is_flag=True, help="Run the remedies, too: plain, compiled, built-in layer.")
@click.option("--compare", metavar="TARGET", help="Time against another subject, file.py::Name, on the same inputs.")
@click.option("--budget", type=float, default=4.0, metavar="SECONDS", help="About how long to measure. [4]")
@click.option("--no-growth", is_flag=True, help="Do not run at other sizes.")
@click.option("--device", metavar="NAME", help="Where to run: cpu, cuda, ...")
@click.option("--threads", type=int, default=0, help="Threads for torch; by default what torch chooses.")
@click.option("--seed", type=int, default=0, help="Seed of the inputs. [0]")
@click.option("--timeout", type=float, default=300.0, metavar="SECONDS", help="CPU time for one subject. [300]")
@click.option("--trace", type=click.Path(dir_okay=False), help="Write a Chrome trace that Perfetto opens.")
@click.option("--flame", type=click.Path(dir_okay=False), help="Write nested data for a flame chart.")
@click.option("--format", "format", type=click.Choice(FORMATS), default=None, help="How to print. [full]")
@click.option("--output", type=click.Path(dir_okay=False), help="Write the profile to a file instead.")
@click.option("--select", multiple=True, metavar="RULES", help="Only these rules, codes or families.")
@click.option("--ignore", multiple=True, metavar="RULES", help="Leave these rules out.")
@click.option("--preview", is_flag=True, help="Run rules in preview, too.")
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning"]),
    default="error",
    help="From which severity on the exit status is 1. [error]",
)
@click.option("--exit-zero", is_flag=True, help="Exit 0 whatever was found.")
@click.option("--debug", is_flag=True, help="Show tracebacks of gradsmith's own errors.")
def command(
    targets: tuple[str, ...],
    timeout: float,
    trace: str | None,
    flame: str | None,
    format: str | None,
    output: str | None,
    fail_on: str,
    exit_zero: bool,
    debug: bool,
    **wishes: Any,
) -> None:
    """Measure custom gradients and say why they are slow and where the memory goes.

    TARGETS are files (their Functions and modules), file.py::Name or package.module:Name. Each subject runs in a process of
    its own.
    """
    need_torch("gradsmith profile")
    _possible(wishes["compare"], trace, flame, output)
    task = _task(wishes, trace)
    results: list[dict[str, Any]] = []
    left_out: list[str] = []
    unread = [f"{each.path}: {each.reason}" for each in lint(files_of(targets)).skipped]
    stopped: Stopped | None = None
    try:
        with household():
            _profile_all(targets, task, timeout, results, left_out)
    except Stopped as error:
        if not results:
            raise
        stopped = error
        leave_at_once()
        left_out.append(f"{error.words}: this is what was profiled until then")
    left_out += unread
    if not results:
        raise GradsmithError(
            "; ".join(left_out) or f"nothing to profile in {' '.join(targets)}: no custom gradient found"
        )
    shown = format or (format_for(output) if output else "full")
    if shown == "html":
        text = render_profiles([result["profile"] for result in results])
    elif shown == "json":
        text = _json(results)
    elif shown == "full":
        width = PLAIN if output else terminal_width()
        told = [_text(r, color=_color() and not output, width=width) for r in results]
        told += ["".join(f"{line}\n" for note in left_out for line in wrapped(f"note: {note}", width, indent="  "))]
        text = "\n".join(filter(None, told))
    else:
        text = render(_report(results, left_out), shown)
    for name, key in ((trace, "trace"), (flame, "flame")):
        if name:
            _write(name, json.dumps(results[0][key]))
    if output:
        _write(output, text)
    else:
        click.echo(text, nl=False)
    levels = {"error"} if fail_on == "error" else {"error", "warning"}
    failing = bool(unread) or any(f["severity"] in levels for r in results for f in r["profile"]["findings"])
    if stopped is not None:
        raise click.exceptions.Exit(stopped.status)
    raise click.exceptions.Exit(1 if failing and not exit_zero else 0)


def _profile_all(
    targets: tuple[str, ...], task: dict[str, Any], timeout: float, results: list[dict[str, Any]], left_out: list[str]
) -> None:
    """Fill in the profiles, and why a module that nobody named is not among them: it may need arguments that only its users know."""
    with status() as say:
        work = wanted(targets)
        known = {job.path for job in work}
        work += [Wanted(target, None, (), True) for target in targets if os.path.isfile(target) and target not in known]
        for job in work:
            named = [name for name, _ in job.subjects] or _declared(job.path)
            found = [name for name in _modules(job.path) if name not in named] if job.whole else []
            for name in (*named, *found):
                try:
                    results.append(
                        profiled({**task, "path": job.path, "module": job.module, "name": name}, timeout, say)
                    )
                except GradsmithError as error:
                    if name in named:
                        raise
                    left_out.append(f"{name} is not profiled: {error}")


def _report(results: list[dict[str, Any]], notes: list[str]) -> Report:
    """The findings of all profiles as a Report, for every format that reports have."""
    findings = [finding for result in results for finding in result["profile"]["findings"]]
    told = [*(note for result in results for note in result["profile"]["notes"]), *notes]
    paths = {result["profile"]["subject"]["path"] for result in results}
    counts = {"files": len(paths), "functions": len(results), "notes": told}
    return Report.from_dict({"findings": findings, "subjects": [], "skipped": [], **counts})


def _modules(path: str | None) -> list[str]:
    """The nn.Modules at the top level of a file; read from its text."""
    from gradsmith.source.loaded import file_named

    file = file_named(path) if path is not None else None
    if file is None:
        return []
    heads = [h for h in file.headers if not h.indent and not file.in_docstring(h.offset)]
    return [h.name for h in heads if any(file.imports.dotted(base) == "torch.nn.Module" for base in h.bases)]


def _possible(compare: str | None, *files: str | None) -> None:
    """What can only fail at the end is looked at before the work begins."""
    if compare is not None:
        path, _, name = compare.partition("::")
        if not name:
            raise GradsmithError(f"--compare {compare}: write file.py::Name")
        if not Path(path).is_file():
            raise GradsmithError(f"no such file: {path}")
    for file in files:
        if file is not None and not Path(file).absolute().parent.is_dir():
            raise GradsmithError(f"cannot write {file}: there is no such folder")


def _task(wishes: dict[str, Any], trace: str | None) -> dict[str, Any]:
    task = {**wishes, "growth": not wishes["no_growth"], "trace": bool(trace)}
    return {**task, "select": split(wishes["select"]), "ignore": split(wishes["ignore"])}


def _declared(path: str | None) -> list[str]:
    """Names that a file without any Function declares inputs for; read from its text, never by running it here."""
    import ast

    from gradsmith.source.loaded import file_named

    file = file_named(path) if path is not None else None
    table = file.value_of("gradsmith_inputs") if file is not None else None
    if not isinstance(table, ast.Dict):
        return []
    return [key.value for key in table.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)]


def _text(result: dict[str, Any], *, color: bool, width: int) -> str:
    text = table(result["profile"], color=color, width=width)
    return text + (f"\n{result['comparison']}\n" if "comparison" in result else "")


def _json(results: list[dict[str, Any]]) -> str:
    shown = [{**r["profile"], **({"comparison": r["comparison"]} if "comparison" in r else {})} for r in results]
    return json.dumps(shown[0] if len(shown) == 1 else shown, indent=2) + "\n"


def _write(name: str, text: str) -> None:
    try:
        Path(name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise GradsmithError(f"cannot write {name}: {error.strerror}") from None
