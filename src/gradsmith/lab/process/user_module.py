"""Import the user's file or module as a request names it, and say what is in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gradsmith.lab.process.channel import Message


def opened(request: Message) -> tuple[Any, Message]:
    """(the module, what to tell about it); None for a module that cannot be had in any way."""
    from gradsmith.lab.subject.declaration import declared_names
    from gradsmith.lab.subject.importing import ImportFailed, import_dotted
    from gradsmith.lab.subject.opening import Opening, open_file
    from gradsmith.lab.subject.standins import hide
    from gradsmith.lab.triton.importing import watch

    watch(request.get("path"))
    try:
        if request.get("module"):
            opening = Opening(import_dotted(request["module"], request["stubs"]))
        else:
            opening = open_file(Path(request["path"]), request["stubs"], request["subjects"])
    except ImportFailed as error:
        return None, {"imported": False, "error": str(error)}
    hide()
    declared, malformed = declared_names(opening.module)
    told = {"declared": declared, "malformed": malformed, "trouble": opening.trouble, "instead": opening.instead}
    return opening.module, {"imported": True, **told}
