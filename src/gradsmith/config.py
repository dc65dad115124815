"""`[tool.gradsmith]` in pyproject.toml.

[tool.gradsmith]
select = ["silent", "GS1"]
ignore = ["extra-none"]
fail-on = "warning"
preview = true
[tool.gradsmith.per-file-ignores]
"tests/*" = ["class-state"]
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gradsmith.findings import GradsmithError, Severity

if TYPE_CHECKING:
    from pathlib import Path  # 7 ms, which a run without a project's wishes does without

_KEYS = {"select": list, "ignore": list, "per-file-ignores": dict, "fail-on": str, "preview": bool}
_WORDS = {list: "a list of rules", dict: "a table", str: "a text", bool: "true or false"}


@dataclass(frozen=True)
class Config:
    """What the project decided; the command line overrides it."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    per_file_ignores: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    fail_on: Severity = "error"
    preview: bool = False
    root: Path | None = None

    def ignored_in(self, path: str) -> tuple[str, ...]:
        """Rules that per-file-ignores switch off for this file."""
        if not self.per_file_ignores:
            return ()
        from pathlib import Path

        name = Path(path)
        if self.root is not None and name.is_absolute() and name.is_relative_to(self.root):
            name = name.relative_to(self.root)
        hits: list[str] = []
        for pattern, rules in self.per_file_ignores.items():
            if fnmatch.fnmatch(name.as_posix(), pattern) or fnmatch.fnmatch(name.name, pattern):
                hits.extend(rules)
        return tuple(hits)


def load(start: Path | None = None) -> Config:
    """The nearest pyproject.toml at or above `start` that has a [tool.gradsmith] table; else the defaults."""
    from pathlib import Path

    folder = (start or Path.cwd()).resolve()
    folder = folder if folder.is_dir() else folder.parent
    for candidate in (folder, *folder.parents):
        file = candidate / "pyproject.toml"
        if file.is_file() and b"gradsmith" in file.read_bytes():
            table = _toml(file).get("tool", {}).get("gradsmith")
            if table is not None:
                return _config(table, file)
    return Config()


def _toml(file: Path) -> dict[str, Any]:
    import sys

    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise GradsmithError(f"{file} is not valid TOML: {error}") from None


def _config(table: Mapping[str, Any], file: Path) -> Config:
    from gradsmith.catalog import chosen, nearest

    for key, value in table.items():
        if key not in _KEYS:
            raise GradsmithError(f"{file}: [tool.gradsmith] has no key {key!r}; {nearest(key, _KEYS)}")
        if not isinstance(value, _KEYS[key]):
            raise GradsmithError(f"{file}: [tool.gradsmith] {key} must be {_WORDS[_KEYS[key]]}, not {value!r}")
    fail_on = table.get("fail-on", "error")
    if fail_on not in ("error", "warning"):
        raise GradsmithError(f"{file}: [tool.gradsmith] fail-on must be 'error' or 'warning', not {fail_on!r}")
    per_file = {pattern: tuple(names) for pattern, names in table.get("per-file-ignores", {}).items()}
    for names in (table.get("select", ()), table.get("ignore", ()), *per_file.values()):
        try:
            chosen(ignore=tuple(names))
        except GradsmithError as error:
            raise GradsmithError(f"{file}: [tool.gradsmith] {error}") from None
    return Config(
        select=tuple(table.get("select", ())),
        ignore=tuple(table.get("ignore", ())),
        per_file_ignores=per_file,
        fail_on=fail_on,
        preview=table.get("preview", False),
        root=file.parent,
    )
