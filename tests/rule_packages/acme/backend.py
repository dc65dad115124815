"""The smallest build backend: a wheel of the files as they are."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).parent


def build_wheel(folder: str, config_settings: object = None, metadata_directory: object = None) -> str:
    project = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
    stem = f"{project['name'].replace('-', '_')}-{project['version']}"
    info = f"{stem}.dist-info"
    points = [f"{name} = {value}" for name, value in project["entry-points"]["gradsmith.rules"].items()]
    files = {path.relative_to(HERE).as_posix(): path.read_text() for path in sorted(HERE.glob("acme/**/*.py"))}
    files[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    files[f"{info}/WHEEL"] = "Wheel-Version: 1.0\nGenerator: backend\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files[f"{info}/entry_points.txt"] = "\n".join(["[gradsmith.rules]", *points, ""])
    files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    wheel = f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(Path(folder) / wheel, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return wheel
