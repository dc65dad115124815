"""Under which name Python imports a file: by the packages it stands in, read from the folders alone."""

from __future__ import annotations

from pathlib import Path


def package_name(path: Path) -> tuple[Path, str]:
    """(folder to put on sys.path, dotted module name), by walking up while there is an `__init__.py`.

    >>> package_name(Path("/nowhere/ops.py"))[1]
    'ops'
    """
    parts = [] if path.name == "__init__.py" else [path.stem]
    folder = path.parent
    while (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    return folder, ".".join(parts)


def dotted_name(path: str, qualname: str) -> str:
    """`package.module.Class`, as `[tool.gradsmith]` names a class.

    >>> dotted_name("/nowhere/ops.py", "Round")
    'ops.Round'
    """
    return f"{package_name(Path(path).resolve())[1]}.{qualname}"
