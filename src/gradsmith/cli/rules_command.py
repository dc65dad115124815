"""`gradsmith rules`."""

from __future__ import annotations

import json

import click

from gradsmith.catalog import families, listed, notes
from gradsmith.cli.options import split


@click.command("rules", epilog="\b\nExamples:\n  gradsmith rules\n  gradsmith rules --select silent --format json")
@click.option("--select", multiple=True, metavar="RULES", help="Only these rules, codes or families.")
@click.option("--format", "format", type=click.Choice(["text", "json"]), default="text", help="How to print.")
@click.option("--debug", is_flag=True, hidden=True)
def command(select: tuple[str, ...], format: str, debug: bool) -> None:
    """List the rules by family: code, name, severity, which command finds the defect, and the state unless it is stable."""
    rules = listed(split(select))
    for note in notes():
        click.echo(f"gradsmith: {note}", err=True)
    if format == "json":
        from gradsmith.cli.explain_command import as_dict

        click.echo(json.dumps([as_dict(rule) for rule in rules], indent=2))
        return
    for family, (prefix, meaning) in families().items():
        members = [rule for rule in rules if rule.family == family]
        if members:
            click.echo(f"\n{family} ({prefix}xx): {meaning}")
        for rule in members:
            state = "" if rule.state == "stable" else f" [{rule.state}]"
            seen = "+".join(rule.lenses)
            click.echo(f"  {rule.code}  {rule.name:<26} {rule.severity:<8} {seen:<18} {rule.title}{state}")
