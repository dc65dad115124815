"""Where the page of a rule can be read: on this machine, and on the web."""

from __future__ import annotations

import re
from pathlib import Path

from gradsmith.about import FOLDER
from gradsmith.catalog import Rule, rules

# What PyTorch itself says of custom gradients: the page for a rule that cites a measurement instead of a thread.
CRAFT = "https://docs.pytorch.org/docs/stable/notes/extending.html"
_ADDRESS = re.compile(r"https://[^\s),>\]]+")


def page_address(name: str) -> str:
    """The file that holds all that is known of the rule, as an address; empty for rules of other packages."""
    rule = rules().get(name)
    if rule is None or rule.package:
        return ""
    path = Path(FOLDER) / "rules" / rule.family / f"{rule.name.replace('-', '_')}.py"
    return path.as_uri() if path.is_file() else ""


def help_uri(rule: Rule) -> str:
    """A public page about the defect: the first that the rule cites."""
    found = _ADDRESS.search(rule.section("References"))
    return found.group().rstrip(".,;:") if found else CRAFT


def as_markdown(rule: Rule) -> str:
    """The page for services that show markdown: what, why, an example, what to write instead, how to suppress it."""
    parts = [rule.section("What it finds") or rule.title, f"**Why it matters.** {rule.section('Why it matters')}"]
    for title, source in (("Example", rule.bad), ("Write instead", rule.good)):
        if source.strip():
            parts.append(f"**{title}**\n\n```python\n{source.strip()}\n```")
    parts.append(f"Suppress it with `# gradsmith: ignore[{rule.name}]`; `gradsmith explain {rule.name}` says more.")
    return "\n\n".join(parts)
