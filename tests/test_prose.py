"""Plain English wherever a user reads: documents, pages of rules and errors, messages, help texts.

The list holds habits that cost readers time, each with what to write instead. It grows; nothing is exempt.
"""

from __future__ import annotations

import ast
import functools
import re
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from gradsmith.catalog import HEADINGS, rules
from gradsmith.cli.group import COMMANDS, cli

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "gradsmith"

# pattern -> what to write instead
AVOID = {
    r"(?<![Tt]here )\b(is|are|was|were) no (?!longer|more|less|fewer)\w+": "'not a'",
    r"\banother \w+ than\b": "'different from'",
    r"\banother (result|gradient)\b": "'a different ...'",
    r"\bother \w+ than\b(?! the one)": "'different from'",
    r"\b(overheard|wiretap|excuses?|excused|flavours?|bent)\b": "the name of the mechanism",
    r"\b(cotangents?|kinks?|kinky)\b": "grad_output, corner",
    r"\bhunger\b|\bhungry\b": "memory",
    r"\bgives? \w+ away\b": "passes",
    r"\baccuses? nobody\b": "reports nothing",
    r"\bbackward says\b": "backward returned",
    r"\bconcerns nobody\b": "does not matter",
    r"\bthe matter of\b": "is reported by",
    r"\bnone of (its|their) business\b": "does not matter",
    r"\bnobody means\b": "is not meant",
    r"\bis spoken of\b|\bspeaks of\b": "mentions",
    r"\bmiddle of nowhere\b|\bin good company\b": "plain words",
    # What the first outside reader stumbled over.
    r"(?<!<)\b[Mm]end(ed|s|ing)?\b": "fix, fixed",
    r"\b[Ll]ens(es)?\b": "lint or check",
    r"\b[Bb]ehind (the (class|def)|it\b|autograd)": "at the end of the class line; after",
    r"\b[Tt]he engine\b(?! (and|for))": "autograd",
    r"\b(refused?|refuses|said|told) in words\b": "raises an error that says so",
    r"\bheld (to|against)\b": "checked for, compared with",
    r"\b(if|If) it is meant[:,;]": "if you do this on purpose",
    r"\bbinds only\b|\bit binds\b": "assigns",
    r"\bwaive[sd]?\b": "turns off the check of",
    r"\bgets? away\b": "is missed",
    r"\ba different result: the\b": "what gives a different result from what",
    r"\bnobody knows\b|\bnobody (asks|asked) for\b": "is not measured, is not needed",
    r"^Named `|\. Named\b": "gradsmith reports",
    r"\bof its size, \d": "times the largest correct element",
    r"\bnot on an index\b|\bpackages? on the index\b": "PyPI",
}
# Files whose strings reach a user as sentences.
ROOMS = (
    "rules",
    "errors",
    "diagnosis",
    "checking",
    "cli",
    "report",
    "explaining",
    "external",
    "ops",
    "writing",
    "linting",
    "profiling",
)


@dataclass(frozen=True)
class Text:
    """Something that a user may read, and where it stands."""

    place: str
    words: str


def documents() -> Iterator[Text]:
    for page in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]):
        if page.name == "CHANGELOG.md" or "rules" in page.parts[-2:-1]:
            continue  # history keeps its words; the pages of rules are made from what is read below
        without_code = re.sub(
            r"^```.*?^```$|<!--.*?-->|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.M | re.S
        )
        yield from (Text(f"{page.relative_to(ROOT)}:{n}", line) for n, line in enumerate(without_code.splitlines(), 1))


def messages() -> Iterator[Text]:
    """String constants that look like sentences, and the docstrings that are pages; docstrings of functions are ours."""
    for room in ROOMS:
        for path in sorted((SOURCE / room).rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            where = path.relative_to(ROOT).as_posix()
            inner = {id(node.body[0].value) for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.body and isinstance(node.body[0], ast.Expr)}  # fmt: skip
            if room not in ("rules", "errors"):
                inner |= {id(node.value) for node in tree.body[:1] if isinstance(node, ast.Expr)}
            for node in ast.walk(tree):
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
                    text = re.sub(r"`[^`\n]*`", "", node.value)
                    if " " in text and not text.lstrip().startswith(("import ", "from ")):
                        yield Text(f"{where}:{node.lineno}", " ".join(text.split()))


def helps() -> Iterator[Text]:
    import click

    group = click.Context(cli, info_name="gradsmith")
    for name in COMMANDS:
        command = cli.get_command(group, name)  # type: ignore[attr-defined]
        assert command is not None
        yield Text(f"gradsmith {name} --help", command.get_help(click.Context(command, info_name=name, parent=group)))


@functools.cache
def all_of_it() -> tuple[Text, ...]:
    return (*documents(), *messages(), *helps())


@pytest.mark.parametrize("pattern", AVOID)
def test_users_do_not_meet(pattern: str) -> None:
    met = [f"{text.place}: {text.words.strip()[:120]}" for text in all_of_it() if re.search(pattern, text.words)]
    assert not met, f"write {AVOID[pattern]} instead:\n" + "\n".join(met)


def sentences(text: str) -> list[str]:
    return [s for s in re.split(r"(?<=[.!?:])\s+", " ".join(text.split())) if len(s.split()) > 2]


def test_sentences_of_rule_pages_are_short() -> None:
    lengths = [
        len(s.split())
        for rule in rules().values()
        for heading in HEADINGS[:3]
        for s in sentences(rule.section(heading))
    ]
    assert statistics.median(lengths) < 25
    assert len(lengths) > 500
