"""`gradsmith explain RULE`, `gradsmith explain "RuntimeError: ..."`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from gradsmith.catalog import HEADINGS, Rule, families, find, status
from gradsmith.explaining import Explanation, explain
from gradsmith.explaining.entries import entries
from gradsmith.findings import GradsmithError
from gradsmith.report.escaping import PROSE, escaped


@click.command(
    "explain",
    epilog="\b\nExamples:\n  gradsmith explain inplace-grad\n  gradsmith explain GS201 --format json\n"
    '  gradsmith explain "RuntimeError: grad can be implicitly created only for scalar outputs"\n'
    "  python train.py 2>&1 | gradsmith explain -\n"
    "\b\nExit status: 0 explained, 1 unknown, 2 the call was wrong.",
)
@click.argument("what", required=False)
@click.option("--format", "format", type=click.Choice(["text", "json"]), default="text", help="How to print.")
@click.option(
    "--check/--no-check",
    default=True,
    help="Run the Function that a traceback names, too. [check, where torch is there]",
)
@click.option("--debug", is_flag=True, hidden=True)
def command(what: str | None, format: str, check: bool, debug: bool) -> None:
    """Everything known about a rule, or about an error that PyTorch raised.

    WHAT is a rule (a name or a code), the name of an error, or its text: a message, a part of one, or a whole traceback.
    Without it, or with "-", the text is read from standard input. Where a traceback names a Function of yours, gradsmith
    also says what lint and check find in it.
    """
    text = _read_input() if what in (None, "-") else str(what)
    if any(char.isspace() or char == ":" for char in text.strip()):
        _explain_error(text, format, check)
        return
    if "/" in text:
        click.echo(cause_page(text))
        return
    entry = entries().get(text.lower().replace("_", "-"))
    if entry is not None:
        shown = Explanation(entry, 1.0)
        click.echo(escaped(str(shown), PROSE) if format == "text" else json.dumps(shown.to_dict(), indent=2))
        return
    known = find(text)
    click.echo(page(known) if format == "text" else json.dumps(as_dict(known), indent=2))


def _read_input() -> str:
    text = sys.stdin.read()
    if not text.strip():
        raise GradsmithError(
            'nothing to explain; write: gradsmith explain RULE, or gradsmith explain "RuntimeError: ..."'
        )
    return text


def _explain_error(text: str, format: str, check: bool) -> None:
    explained = explain(text, check=check)
    click.echo(escaped(str(explained), PROSE) if format == "text" else json.dumps(explained.to_dict(), indent=2))
    raise click.exceptions.Exit(0 if explained.known else 1)


def cause_page(path: str) -> str:
    """The page of one kind of wrong gradient: `wrong-gradient/transposed`."""
    import ast
    from importlib.util import find_spec

    from gradsmith.catalog import find
    from gradsmith.nearest import nearest
    from gradsmith.source.loaded import file_named

    name, _, cause = path.partition("/")
    rule = find(name)
    # Read, not imported: causes need torch to measure, and a page does not.
    folder = find_spec(rule.causes) if rule.causes else None
    if folder is None or folder.origin is None:
        raise GradsmithError(f"{rule.name} has no causes of its own; write: gradsmith explain {rule.name}")
    files = {each.stem.replace("_", "-"): file_named(str(each)) for each in Path(folder.origin).parent.glob("*.py")}
    pages = {name: file for name, file in sorted(files.items()) if file is not None and {"RANK", "BAD"} <= {*file.tops}}
    if cause not in pages:
        raise GradsmithError(f"no cause is called {path!r}; {nearest(cause, pages)}")
    bad = pages[cause].value_of("BAD")
    assert bad is not None
    title, _, text = (ast.get_docstring(pages[cause].tree) or "").partition("\n")
    return "\n".join(
        [
            f"{rule.name}/{cause}",
            "",
            title,
            "",
            text.strip(),
            "",
            "Example",
            "-------",
            _indented(ast.literal_eval(bad)),
        ]
    )


def page(rule: Rule) -> str:
    """The rule's page as text."""
    meaning = families()[rule.family][1]
    lines = [f"{rule.name} ({rule.code}, {rule.severity})", "", rule.title, ""]
    lines += [f"Family: {rule.family} ({meaning})", f"Seen by: {', '.join(rule.lenses)}", f"Fix: {_fix(rule)}"]
    lines += [f"State: {status(rule)}", *([f"From: {rule.package}"] if rule.package else []), ""]
    for heading in HEADINGS:
        lines += [heading, "-" * len(heading), rule.section(heading), ""]
    lines += ["Example", "-------", _indented(rule.bad), "", "Use instead", "-----------", _indented(rule.good), ""]
    if rule.explains:
        lines.append(f"Where this is found, these are its symptoms: {', '.join(rule.explains)}.")
    lines.append(f"Suppress it with: # gradsmith: ignore[{rule.name}]")
    return "\n".join(lines)


def as_dict(rule: Rule) -> dict[str, object]:
    sections = {heading: rule.section(heading) for heading in HEADINGS}
    return {
        "name": rule.name,
        "code": rule.code,
        "family": rule.family,
        "severity": rule.severity,
        "title": rule.title,
        "lenses": list(rule.lenses),
        "fixable": rule.fixable,
        "state": rule.state,
        "replaced_by": rule.replaced_by,
        "package": rule.package,
        "explains": list(rule.explains),
        "sections": sections,
        "bad": rule.bad.strip(),
        "good": rule.good.strip(),
    }


def _fix(rule: Rule) -> str:
    return "gradsmith lint --fix" if rule.fixable else "by hand"


def _indented(source: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in source.strip().splitlines())
