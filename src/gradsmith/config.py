"""`[tool.gradsmith]` in pyproject.toml.

[tool.gradsmith]
select = ["silent", "GS1"]
ignore = ["extra-none"]
fail-on = "warning"
preview = true
[tool.gradsmith.per-file-ignores]
"tests/*" = ["class-state"]
[tool.gradsmith.assumes]
QuadraticForm = ["matrix is symmetric"]
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from gradsmith.findings import GradsmithError, Severity

if TYPE_CHECKING:
    from pathlib import Path  # 7 ms, which a run without a project's wishes does without

_WORDS = {list: "a list of rules", dict: "a table", str: "a text", bool: "true or false"}


# A field that is a key of [tool.gradsmith], with dashes for underscores, says what stands there.
_LIST, _TABLE, _TEXT, _BOOL = ({"kind": kind} for kind in (list, dict, str, bool))


@dataclass(frozen=True)
class Config:
    """What the project decided; the command line overrides it."""

    select: tuple[str, ...] = field(default=(), metadata=_LIST)
    ignore: tuple[str, ...] = field(default=(), metadata=_LIST)
    per_file_ignores: Mapping[str, tuple[str, ...]] = field(default_factory=dict, metadata=_TABLE)
    fail_on: Severity = field(default="error", metadata=_TEXT)
    preview: bool = field(default=False, metadata=_BOOL)
    assumes: Mapping[str, tuple[str, ...]] = field(default_factory=dict, metadata=_TABLE)  # accepted, by subject
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

    kinds = {f.name.replace("_", "-"): f.metadata["kind"] for f in fields(Config) if "kind" in f.metadata}
    for key, value in table.items():
        if key not in kinds:
            raise GradsmithError(f"{file}: [tool.gradsmith] has no key {key!r}; {nearest(key, kinds)}")
        if not isinstance(value, kinds[key]):
            raise GradsmithError(f"{file}: [tool.gradsmith] {key} must be {_WORDS[kinds[key]]}, not {value!r}")
    fail_on = table.get("fail-on", "error")
    if fail_on not in ("error", "warning"):
        raise GradsmithError(f"{file}: [tool.gradsmith] fail-on must be 'error' or 'warning', not {fail_on!r}")
    tables = {key.replace("-", "_"): _texts(table.get(key, {}), key, file) for key in kinds if kinds[key] is dict}
    for names in (table.get("select", ()), table.get("ignore", ()), *tables["per_file_ignores"].values()):
        try:
            chosen(ignore=tuple(names))
        except GradsmithError as error:
            raise GradsmithError(f"{file}: [tool.gradsmith] {error}") from None
    return Config(
        select=tuple(table.get("select", ())),
        ignore=tuple(table.get("ignore", ())),
        fail_on=fail_on,
        preview=table.get("preview", False),
        root=file.parent,
        **tables,
    )


def _texts(table: Mapping[str, Any], key: str, file: Path) -> dict[str, tuple[str, ...]]:
    """A table from names to texts: one text, or a list of them."""
    found = {name: (value,) if isinstance(value, str) else value for name, value in table.items()}
    for name, value in found.items():
        if not isinstance(value, (list, tuple)) or not all(isinstance(text, str) for text in value):
            raise GradsmithError(f"{file}: [tool.gradsmith.{key}] {name} must be a list of texts, not {value!r}")
    return {name: tuple(texts) for name, texts in found.items()}
