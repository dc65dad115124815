"""Which `ignore` comments speak of a finding: those on its lines, and those in the head of the class that it is about.

Both lenses ask here, so that a comment hides the same finding whether the source showed it or a run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradsmith.findings import Finding

if TYPE_CHECKING:
    from gradsmith.source.file import FileModel
    from gradsmith.source.suppressions import Suppression


def head_of(definition: Any) -> range:
    """The lines of a class or function from its first decorator to its first statement: a comment there speaks for all of it."""
    if definition is None:
        return range(0)
    first = min([definition.lineno, *(d.lineno for d in definition.decorator_list)])
    return range(first, max(first + 1, definition.body[0].lineno if definition.body else 0))


def hiding(finding: Finding, stands_in: FileModel, file: FileModel, head: range) -> list[Suppression]:
    """The comments that hide a finding which points into `stands_in`, about a class of `file` with this head."""
    first = finding.line or 0
    on_it = stands_in.comments.hiding(finding.rule, finding.code, [first, finding.end_line or first])
    return [*on_it, *file.comments.hiding(finding.rule, finding.code, (), head)]
