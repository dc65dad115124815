"""The commands, and what becomes of errors: one sentence, and an exit status."""

from __future__ import annotations

import contextlib
import gc
import importlib
import io
import os
import sys
import threading
from typing import Any, NoReturn

import click

from gradsmith import bundle
from gradsmith.about import VERSION
from gradsmith.findings import GradsmithError
from gradsmith.lab.process.stopping import Stopped, orderly
from gradsmith.nearest import nearest

COMMANDS = {
    "check": "Is the gradient right? Runs it and names what is wrong.",
    "lint": "Is it written right? Reads source, runs nothing.",
    "profile": "Why is it slow, where did the memory go? Measures it and names line and remedy.",
    "derive": "What should backward be? Writes it for a plain forward, and proves it.",
    "new": "Start a Function: from a pattern, or from a formula.",
    "record": "Run a script, then check every custom Function that ran in it.",
    "baseline": "Write down what is known today, so that only new findings count.",
    "explain": "Everything known about a rule, or about an error that PyTorch raised.",
    "rules": "List the rules.",
    "server": "Serve an editor: findings while you type, fixes, checks (language server).",
    "completion": "Print the shell completion script.",
}

EPILOG = """\b
Examples:
  gradsmith lint src/                         every red flag, in a fraction of a second
  gradsmith check my_ops.py                   every Function of a file, on its declared inputs
  gradsmith check my_ops.py::Swish --inputs "randn(4, 3), tensor(1.5)"
  gradsmith record train.py                   every Function that your script runs, on its real inputs
  gradsmith explain wrong-gradient            what a finding means and what to do
\b
Exit status: 0 no error and everything verified; 1 an error (with --fail-on warning also a warning),
or something is not verified; 2 the command line was wrong.
"""


class Commands(click.Group):
    """Loads a command's file when the command is used; offers the nearest name for a typing mistake."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        gc.disable()
        command = _loaded(cmd_name)
        gc.freeze()  # what was loaded stays
        if cmd_name != "lint":
            # lint ends with its report: collecting a million syntax nodes, now or at exit, would be a fifth of its time.
            gc.enable()
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            raise click.UsageError(f"no command is called {args[0]!r}; {nearest(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # Written from the table above: asking each command for its help would import them all.
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.command(
    cls=Commands,
    invoke_without_command=True,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(VERSION, prog_name="gradsmith")
@click.pass_context
def cli(context: click.Context) -> None:
    """The workbench for people who write their own gradients in PyTorch."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def main() -> None:
    """Entry point: every foreseeable trouble is one sentence and exit status 2, never a traceback."""
    debug = "--debug" in sys.argv
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # what a terminal's encoding lacks is shown by its number
            stream.reconfigure(errors="backslashreplace")
    # A recorded script answers signals itself.
    signals = contextlib.nullcontext() if "record" in sys.argv[1:2] else orderly()
    try:
        with signals:
            status = cli.main(standalone_mode=False)
            _end(status if isinstance(status, int) else 0)
    except (click.Abort, Stopped) as abort:
        stopped = abort if isinstance(abort, Stopped) else abort.__cause__
        _say(stopped.words if isinstance(stopped, Stopped) else "interrupted")
        sys.exit(stopped.status if isinstance(stopped, Stopped) else 130)
    except click.UsageError as error:
        _say(_usage(error))
        sys.exit(2)
    except click.ClickException as error:
        _say(error.format_message())
        sys.exit(2)
    except GradsmithError as error:
        if debug:
            raise
        _say(str(error))
        sys.exit(2)
    except BrokenPipeError:
        # The reader (head, less) has gone; Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:  # ours to fix; a user gets one sentence and the way to show us
        if debug:
            raise
        _say(f"gradsmith failed: {type(error).__name__}: {error} (run again with --debug and send us the traceback)")
        sys.exit(2)


def _end(status: int) -> NoReturn:
    """Leave; where nothing but syntax trees is left behind, without taking them apart one by one (30 ms)."""
    if "torch" in sys.modules or threading.active_count() > 1:
        sys.exit(status)
    bundle.keep()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _usage(error: click.UsageError) -> str:
    if not isinstance(error, click.NoSuchOption) or error.ctx is None:
        return error.format_message()
    option, command = error.option_name, error.ctx.command
    elsewhere = [name for name in COMMANDS if name != command.name and option in _options(_loaded(name))]
    if elsewhere:
        return f"{command.name} has no option {option}; {' and '.join(elsewhere[:3])} {'has' if len(elsewhere) == 1 else 'have'} it"
    return f"{command.name} has no option {option}; {nearest(option, _options(command))}"


def _options(command: click.Command) -> list[str]:
    return [name for parameter in command.params for name in parameter.opts if name.startswith("-")]


def _loaded(name: str) -> click.Command:
    command: click.Command = importlib.import_module(f"gradsmith.cli.{name}_command").command
    return command


def _say(text: str) -> None:
    from gradsmith.report.escaping import escaped, without_commands

    click.echo(without_commands(f"gradsmith: {escaped(text)}"), err=True)
