"""`gradsmith explain RULE`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from gradsmith.catalog import HEADINGS, Rule, families, find, status


@click.command(
    "explain", epilog="\b\nExamples:\n  gradsmith explain inplace-grad\n  gradsmith explain GS201 --format json"
)
@click.argument("rule")
@click.option("--format", "format", type=click.Choice(["text", "json"]), default="text", help="How to print.")
@click.option("--debug", is_flag=True, hidden=True)
def command(rule: str, format: str, debug: bool) -> None:
    """Everything known about RULE (a name or a code): what it finds, why it matters, a bad and a good example."""
    if "/" in rule:
        click.echo(cause_page(rule))
        return
    known = find(rule)
    click.echo(page(known) if format == "text" else json.dumps(as_dict(known), indent=2))


def cause_page(path: str) -> str:
    """The page of one kind of wrong gradient: `wrong-gradient/transposed`."""
    import ast
    from importlib.util import find_spec

    from gradsmith.catalog import find, nearest
    from gradsmith.findings import GradsmithError
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
