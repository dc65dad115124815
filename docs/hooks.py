"""What mkdocs is told beyond the pages in this folder: pages made from the code itself, and links to files of the repository.

mkdocs calls the functions whose names begin with `on_`. Made here, so that nothing generated has to be committed: one page for
each command (its own help), for each rule, for each module of the public API, and for each file of the repository that a page
links to. The navigation names the groups (`COMMANDS`, `RULES`, `API`).
"""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

DOCS = Path(__file__).parent
ROOT = DOCS.parent
LINK = re.compile(r"(?P<text>\]\()(?P<target>(?!https?:|#|mailto:)[^)\s#]+)(?P<anchor>#[^)]*)?\)")
LANGUAGES = {".py": "python", ".toml": "toml", ".json": "json", ".yaml": "yaml", ".yml": "yaml", ".txt": "text"}


def _generate() -> ModuleType:
    """docs/generate.py, which is a script and not part of the package."""
    if "gradsmith_docs_generate" not in sys.modules:
        spec = importlib.util.spec_from_file_location("gradsmith_docs_generate", DOCS / "generate.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
    return sys.modules["gradsmith_docs_generate"]


def made() -> dict[str, dict[str, str]]:
    """Group -> path of a page -> its text."""
    generate = _generate()
    return {
        "COMMANDS": generate.command_pages(),
        "RULES": {
            "rules.md": generate.listing(),
            **{f"rules/{r.name}.md": generate.page(r) for r in generate.members_of()},
        },
        "API": generate.api_pages(),
    }


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    groups = made()
    config["made"] = groups
    config.nav = [_named(entry, groups) for entry in config.nav or []]
    return config


def _named(entry: Any, groups: dict[str, dict[str, str]]) -> Any:
    """An entry of the navigation, with the name of a group replaced by its pages."""
    if not isinstance(entry, dict):
        return entry
    ((title, value),) = entry.items()
    return {title: list(groups[value]) if isinstance(value, str) and value in groups else value}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for pages in config["made"].values():
        for path, text in pages.items():
            if (known := files.get_file_from_path(path)) is not None:
                files.remove(known)
            files.append(File.generated(config, path, content=text))
    for path in sorted(_linked(files)):
        shown = File.generated(config, _source_page(path), content=_shown(path), inclusion=InclusionLevel.NOT_IN_NAV)
        files.append(shown)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links that lead out of docs/ lead to the page that shows that file."""
    here = PurePosixPath(page.file.src_uri).parent

    def turned(match: re.Match[str]) -> str:
        outside = _outside(here, match["target"])
        if outside is None:
            return match[0]
        up = "../" * len(here.parts)
        return f"]({up}{_source_page(outside)})"

    return LINK.sub(turned, markdown)


def _linked(files: Files) -> set[str]:
    """Files of the repository, outside docs/, that pages link to."""
    found = set()
    for file in files.documentation_pages():
        here = PurePosixPath(file.src_uri).parent
        for match in LINK.finditer(file.content_string):
            if (outside := _outside(here, match["target"])) is not None:
                found.add(outside)
    return found


def _outside(here: PurePosixPath, target: str) -> str | None:
    """The path from the root of the repository, if a link leads out of docs/ to something that exists."""
    path = (DOCS / here / target).resolve()
    if not path.is_relative_to(ROOT) or path.is_relative_to(DOCS) or not path.is_file():
        return None
    return path.relative_to(ROOT).as_posix()


def _source_page(path: str) -> str:
    """Where the page of a file stands: pages of their own folder, which no page written by hand can be in."""
    return f"source/{path}" if path.endswith(".md") else f"source/{path}.md"


def _shown(path: str) -> str:
    text = (ROOT / path).read_text(encoding="utf-8")
    quiet = "---\nsearch:\n  exclude: true\n---\n"
    if path.endswith(".md"):
        # Its own links start elsewhere; the words are what counts here.
        return quiet + LINK.sub("](#)", text)
    language = LANGUAGES.get(Path(path).suffix, "text")
    return f"{quiet}# {path}\n\n````{language}\n{text.rstrip()}\n````\n"


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    return _searching_from_disk(output)


def on_post_template(output_content: str, template_name: str, config: MkDocsConfig) -> str:
    return _searching_from_disk(output_content)


def _searching_from_disk(text: str) -> str:
    """The theme would load a script for searching from the network; ours stands in the page."""
    script = (DOCS / "search_from_disk.js").read_text(encoding="utf-8")
    return text.replace('<script src="https://unpkg.com/iframe-worker/shim"></script>', f"<script>\n{script}</script>")
