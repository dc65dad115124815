"""Packages on the index that no file of this repository mentions, and the Functions in them.

Nothing is installed and no setup.py is run: a wheel or sdist is fetched, held to the hash that the index gives, unpacked.
"""

from __future__ import annotations

import ast
import hashlib
import html
import io
import re
import subprocess
import tarfile
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from packaging.version import InvalidVersion, Version

ROOT = Path(__file__).parent.parent
HERE = Path(__file__).parent / "fresh"
PLACE = Path("/tmp/trust/packages")
INDEX = "https://pypi.org/simple"
TOPICS = ("torch", "spik", "snn", "neural", "quantiz", "autograd", "attention", "transformer", "loss")
LARGEST = 25 << 20  # bytes; a larger file brings compiled code or weights, not Functions


@dataclass(frozen=True)
class Package:
    """One released file, as the index names it, and how many Functions stand in it."""

    name: str
    version: str
    url: str
    sha256: str
    functions: int = 0

    @property
    def folder(self) -> Path:
        return PLACE / f"{self.name}-{self.version}"


def candidates() -> list[str]:
    """The names in candidates.txt that no other file of the repository mentions."""
    text = repository_text()
    return [name for name in sorted(set((HERE / "candidates.txt").read_text().split())) if not mentioned(name, text)]


def index_names() -> list[str]:
    """All names of the index that have one of the words in it by which such packages call themselves."""
    with urllib.request.urlopen(f"{INDEX}/", timeout=120) as answer:
        names = re.findall(r'href="(?:/simple/)?([^"/]+)/"', answer.read().decode())
    return sorted(name for name in set(names) if any(word in name for word in TOPICS))


def repository_text() -> str:
    """The words of every tracked file but those of this benchmark, in lower case, with a hyphen between any two."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    paths = [ROOT / p for p in listed.stdout.split("\0") if p and "fresh" not in p and p != "docs/found.md"]
    return "-".join(_words(p.read_text(errors="replace")) for p in paths if p.is_file())


def mentioned(name: str, text: str) -> bool:
    return f"-{_words(name)}-" in text


def newest(name: str) -> Package | None:
    """The newest release: its wheel for any platform, else its sdist, else a wheel for this platform."""
    try:
        with urllib.request.urlopen(f"{INDEX}/{name}/", timeout=60) as answer:
            page = answer.read().decode()
    except urllib.error.URLError:
        return None
    found = []
    for link in re.findall(r'href="([^"]+)"', page):
        address, _, digest = html.unescape(link).partition("#sha256=")
        file = urllib.parse.unquote(address.rpartition("/")[2])
        version = _version(file)
        if version is not None and not version.is_prerelease and digest:
            found.append((version, _preference(file), urllib.parse.urljoin(f"{INDEX}/{name}/", address), digest))
    if not found:
        return None
    version, _, url, digest = max(found, key=lambda f: f[:2])
    return Package(name, str(version), url, digest)


def fetched(package: Package) -> Path | None:
    """The folder it is unpacked in; None where the file is too large."""
    folder = package.folder
    if folder.is_dir():
        return folder
    with urllib.request.urlopen(package.url, timeout=180) as answer:
        if int(answer.headers.get("Content-Length") or 0) > LARGEST:
            return None
        data = answer.read(LARGEST + 1)
    if len(data) > LARGEST:
        return None
    if hashlib.sha256(data).hexdigest() != package.sha256:
        raise RuntimeError(f"{package.url} is not what the index says")
    folder.mkdir(parents=True)
    if package.url.endswith((".whl", ".zip")):
        zipfile.ZipFile(io.BytesIO(data)).extractall(folder)
    else:
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            archive.extractall(folder, filter="data")
    return folder


def compiled(folder: Path) -> bool:
    """Whether a package brings code of its own that has to be compiled first."""
    return any(path.suffix in (".so", ".cu", ".cpp", ".cc", ".c", ".pyd", ".pyx") for path in folder.rglob("*"))


def functions(folder: Path) -> Iterator[tuple[str, str, str]]:
    """(path, qualified name, hash of its code) of every Function with a forward and a backward, tests left out."""
    from gradsmith.checking.subjects import functions_in

    for function in functions_in([folder]):
        path = Path(function.file.path).relative_to(folder)
        if function.kind == "function" and not any(p in ("tests", "test", "build") for p in path.parts):
            own = re.sub(r"\s+", "", ast.unparse(function.node))
            yield str(path), function.qualname, hashlib.sha256(own.encode()).hexdigest()[:16]


def _version(file: str) -> Version | None:
    parts = file.split("-") if file.endswith(".whl") else re.sub(r"\.(tar\.\w+|zip)$", "", file).rsplit("-", 1)
    try:
        return Version(parts[1])
    except (InvalidVersion, IndexError):
        return None


def _preference(file: str) -> int:
    if file.endswith("none-any.whl"):
        return 3
    return 2 if not file.endswith(".whl") else int("manylinux" in file)


def _words(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower())
