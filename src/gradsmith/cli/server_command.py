"""`gradsmith server`."""

from __future__ import annotations

import click


@click.command("server")
@click.option("--stdio", is_flag=True, help="Use standard input and output. This is the default.")
@click.option("--debug", is_flag=True, help="Write what happens to standard error.")
def command(stdio: bool, debug: bool) -> None:
    """Serve an editor: findings while you type, quick fixes, and checks at the press of a button.

    Speaks the Language Server Protocol on standard input and output. Nothing that you type is executed; a check runs the saved
    file, in a process of its own. docs/editor.md says how to set up VS Code, Neovim and Emacs.
    """
    from gradsmith.server.main import serve

    serve(debug=debug)
