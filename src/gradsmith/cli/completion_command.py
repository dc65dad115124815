"""`gradsmith completion SHELL`."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command("completion", epilog='\b\nExamples:\n  eval "$(gradsmith completion bash)"')
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.option("--debug", is_flag=True, hidden=True)
def command(shell: str, debug: bool) -> None:
    """Print the script that completes gradsmith's commands and options in SHELL."""
    from gradsmith.cli.group import cli

    completion = get_completion_class(shell)
    assert completion is not None
    click.echo(completion(cli, {}, "gradsmith", "_GRADSMITH_COMPLETE").source())
