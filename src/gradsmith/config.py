"""`[tool.gradsmith]` in pyproject.toml.

[tool.gradsmith]
select = ["silent", "GS1"]
ignore = ["extra-none"]
exclude = ["vendor", "*_generated.py"]
fail-on = "warning"
preview = true
level = "quick"
seed = 1
surrogates = ["pkg.surrogate.*", "pkg.reverse.Reverse[reversal]"]
baseline = "gradsmith-baseline.json"
[tool.gradsmith.per-file-ignores]
"tests/*" = ["class-state"]
[tool.gradsmith.assumes]
QuadraticForm = ["matrix is symmetric"]
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from gradsmith.findings import GradsmithError, Severity

if TYPE_CHECKING:
    from pathlib import Path  # 7 ms, which a run without a project's wishes does without

_WORDS = {list: "a list of texts", dict: "a table", str: "a text", bool: "true or false", int: "a whole number"}


# A field that is a key of [tool.gradsmith], with dashes for underscores, says what stands there.
_LIST, _TABLE, _TEXT, _BOOL, _INT = ({"kind": kind} for kind in (list, dict, str, bool, int))


@dataclass(frozen=True)
class Config:
    """What the project decided; the command line overrides it."""

    select: tuple[str, ...] = field(default=(), metadata=_LIST)
    ignore: tuple[str, ...] = field(default=(), metadata=_LIST)
    per_file_ignores: Mapping[str, tuple[str, ...]] = field(default_factory=dict, metadata=_TABLE)
    fail_on: Severity = field(default="error", metadata=_TEXT)
    preview: bool = field(default=False, metadata=_BOOL)
    assumes: Mapping[str, tuple[str, ...]] = field(default_factory=dict, metadata=_TABLE)  # accepted, by subject
    exclude: tuple[str, ...] = field(default=(), metadata=_LIST)
    level: str | None = field(default=None, metadata=_TEXT)
    seed: int | None = field(default=None, metadata=_INT)
    surrogates: tuple[str, ...] = field(default=(), metadata=_LIST)  # `package.module.Class`, with * and [kind]
    baseline: str | None = field(default=None, metadata=_TEXT)
    root: Path | None = None

    @property
    def excluded(self) -> Callable[[str], bool] | None:
        """Whether a file that was found in a folder is left out; None where nothing is."""
        return self._excludes if self.exclude else None

    def _excludes(self, path: str) -> bool:
        name = self._relative(path)
        parts = [name, *name.parents]  # `vendor` means everything in it
        return any(fnmatch.fnmatch(p.as_posix(), e.rstrip("/")) for p in parts for e in self.exclude) or any(
            fnmatch.fnmatch(name.name, pattern) for pattern in self.exclude
        )

    def _relative(self, path: str) -> Path:
        """The path as the project writes it: from the folder of its pyproject.toml."""
        from pathlib import Path

        name = Path(path)
        if self.root is None:
            return name
        full = name if name.is_absolute() else Path.cwd() / name
        return full.relative_to(self.root) if full.is_relative_to(self.root) else name

    def ignored_in(self, path: str) -> tuple[str, ...]:
        """Rules that per-file-ignores switch off for this file."""
        if not self.per_file_ignores:
            return ()
        name = self._relative(path)
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
    from gradsmith.catalog import chosen
    from gradsmith.nearest import nearest
    from gradsmith.rule_shape import LEVELS

    kinds = {f.name.replace("_", "-"): f.metadata["kind"] for f in fields(Config) if "kind" in f.metadata}
    for key, value in table.items():
        if key not in kinds:
            raise GradsmithError(f"{file}: [tool.gradsmith] has no key {key!r}; {nearest(key, kinds)}")
        if not isinstance(value, kinds[key]) or (kinds[key] is int and isinstance(value, bool)):
            raise GradsmithError(f"{file}: [tool.gradsmith] {key} must be {_WORDS[kinds[key]]}, not {value!r}")
    fail_on = table.get("fail-on", "error")
    if fail_on not in ("error", "warning"):
        raise GradsmithError(f"{file}: [tool.gradsmith] fail-on must be 'error' or 'warning', not {fail_on!r}")
    for key in (key for key in kinds if kinds[key] is list):
        if wrong := [text for text in table.get(key, ()) if not isinstance(text, str)]:
            raise GradsmithError(f"{file}: [tool.gradsmith] {key} must be a list of texts, not of {wrong[0]!r}")
    if "level" in table and table["level"] not in LEVELS:
        raise GradsmithError(f"{file}: [tool.gradsmith] level: {nearest(table['level'], LEVELS)}")
    for pattern in table.get("surrogates", ()):
        _known_kind(pattern, file)
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
        exclude=tuple(table.get("exclude", ())),
        level=table.get("level"),
        seed=table.get("seed"),
        surrogates=tuple(table.get("surrogates", ())),
        baseline=str(file.parent / table["baseline"]) if "baseline" in table else None,
        root=file.parent,
        **tables,
    )


def _known_kind(pattern: str, file: Path) -> None:
    from gradsmith.surrogate_kinds import known, split_kind

    try:
        known(split_kind(pattern)[1])
    except GradsmithError as error:
        raise GradsmithError(f"{file}: [tool.gradsmith] surrogates: {error}") from None


def _texts(table: Mapping[str, Any], key: str, file: Path) -> dict[str, tuple[str, ...]]:
    """A table from names to texts: one text, or a list of them."""
    found = {name: (value,) if isinstance(value, str) else value for name, value in table.items()}
    for name, value in found.items():
        if not isinstance(value, (list, tuple)) or not all(isinstance(text, str) for text in value):
            raise GradsmithError(f"{file}: [tool.gradsmith.{key}] {name} must be a list of texts, not {value!r}")
    return {name: tuple(texts) for name, texts in found.items()}
