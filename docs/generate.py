"""Write the rule pages from the catalogue: rules.md (the list) and rules/*.md (one page each).

make docs                                            our own, into docs/
python docs/generate.py --of acme --into FOLDER      those of an installed package, by the name of its entry point
"""

from __future__ import annotations

import argparse
from pathlib import Path

from gradsmith.catalog import HEADINGS, Rule, families, rules, status

HERE = Path(__file__).parent


def members_of(package: str = "") -> list[Rule]:
    """The rules of one package, by the name of its entry point; our own, whatever else is installed, without one."""
    return [rule for rule in rules().values() if (rule.family == package if package else not rule.package)]


def listing(package: str = "") -> str:
    """rules.md: every rule in one line, by family."""
    source = f"the rules of `{package}`" if package else "`src/gradsmith/rules/`"
    how = "" if package else "by `make docs` "
    lines = [
        "# Rules",
        "",
        f"Generated {how}from {source}. `gradsmith explain RULE` shows the whole page of a rule.",
    ]
    chosen = members_of(package)
    for family, (prefix, meaning) in families().items():
        members = [rule for rule in chosen if rule.family == family]
        if members:
            lines += [
                "",
                f"## {family} ({prefix}xx): {meaning}",
                "",
                "| code | rule | severity | seen by | what |",
                "| --- | --- | --- | --- | --- |",
            ]
        for rule in members:
            what = rule.title.replace("|", "\\|") + ("" if rule.state == "stable" else f" ({rule.state})")
            lines.append(f"| {rule.code} | {rule.name} | {rule.severity} | {', '.join(rule.lenses)} | {what} |")
    return "\n".join(lines) + "\n"


def page(rule: Rule) -> str:
    """docs/rules/NAME.md."""
    lines = [
        f"# {rule.name} ({rule.code})",
        "",
        f"{rule.title}. Severity: {rule.severity}; seen by: {', '.join(rule.lenses)}.",
        *([] if rule.state == "stable" else ["", f"State: {status(rule)}."]),
    ]
    for heading in HEADINGS:
        lines += ["", f"## {heading}", "", rule.section(heading)]
    lines += [
        "",
        "## Example",
        "",
        "```python",
        rule.bad.strip(),
        "```",
        "",
        "## Use instead",
        "",
        "```python",
        rule.good.strip(),
        "```",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    asked = argparse.ArgumentParser(description="Write the pages of rules.")
    asked.add_argument(
        "--of", default="", metavar="NAME", help="the entry point of an installed package; default: ours"
    )
    asked.add_argument("--into", type=Path, default=HERE, metavar="FOLDER")
    given = asked.parse_args()
    chosen = members_of(given.of)
    if not chosen:
        asked.error(f"no installed package has the entry point {given.of!r} in the group gradsmith.rules")
    (given.into / "rules").mkdir(parents=True, exist_ok=True)
    (given.into / "rules.md").write_text(listing(given.of), encoding="utf-8")
    for rule in chosen:
        (given.into / "rules" / f"{rule.name}.md").write_text(page(rule), encoding="utf-8")
    print(f"{len(chosen)} pages in {given.into / 'rules'}")


if __name__ == "__main__":
    main()
