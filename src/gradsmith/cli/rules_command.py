"""`gradsmith rules`."""

from __future__ import annotations

import json

import click

from gradsmith.catalog import FAMILIES, chosen
from gradsmith.cli.options import split


@click.command("rules", epilog="\b\nExamples:\n  gradsmith rules\n  gradsmith rules --select silent --format json")
@click.option("--select", multiple=True, metavar="RULES", help="Only these rules, codes or families.")
@click.option("--format", "format", type=click.Choice(["text", "json"]), default="text", help="How to print.")
@click.option("--debug", is_flag=True, hidden=True)
def command(select: tuple[str, ...], format: str, debug: bool) -> None:
    """List the rules by family: code, name, severity, and which lens sees the defect."""
    rules = chosen(split(select))
    if format == "json":
        from gradsmith.cli.explain_command import as_dict

        click.echo(json.dumps([as_dict(rule) for rule in rules], indent=2))
        return
    for family, (prefix, meaning) in FAMILIES.items():
        members = [rule for rule in rules if rule.family == family]
        if members:
            click.echo(f"\n{family} ({prefix}xx): {meaning}")
        for rule in members:
            click.echo(f"  {rule.code}  {rule.name:<26} {rule.severity:<8} {'+'.join(rule.lenses):<18} {rule.title}")
