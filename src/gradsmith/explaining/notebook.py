"""`%load_ext gradsmith`: errors of autograd are explained below the traceback of the cell."""

from __future__ import annotations

from typing import Any

from gradsmith.explaining.explanation import explain


def load(shell: Any) -> None:
    """From now on, every error that a cell raises is explained where it is known."""
    shell.set_custom_exc((Exception,), _show)


def unload(shell: Any) -> None:
    """Tracebacks as they were."""
    shell.set_custom_exc((), None)


def _show(
    shell: Any, kind: type[BaseException], error: BaseException, trace: Any, tb_offset: int | None = None
) -> None:
    shell.showtraceback((kind, error, trace), tb_offset=tb_offset)
    try:
        text = explain(error).short()
    except Exception:  # the user's own error must be seen, whatever happens to us
        return
    if text:
        print(text)
