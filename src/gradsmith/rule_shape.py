"""What a module must hold to be a rule. The catalogue asks it of other packages' rules, the tests of our own."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType

from gradsmith import codes

LEVELS = ("quick", "standard", "deep")
STATES = ("preview", "stable", "deprecated")
HOOKS = ("lint", "lint_layer", "lint_file", "probe", "profile")

_NEEDED = ("CODE", "SEVERITY", "BAD", "GOOD")
_CHOICES: Mapping[str, tuple[str, ...]] = {
    "SEVERITY": ("error", "warning", "info"),
    "LEVEL": LEVELS,
    "STATE": STATES,
    "STOPS": ("measuring", "everything"),
}
_TEXTS = (
    "CODE",
    "BAD",
    "GOOD",
    "EVENT",
    "OUTCOME",
    "UNPROVEN",
    "DEMONSTRATION",
    "CAUSES",
    "REPLACED_BY",
    "FIXED_IN",
    "IN_PATHS",
)
_LISTS = ("EXPLAINS", "TRIGGERS", "ASKS", "ASKS_NAMES_IN", "WAIVED_BY")


def fault(module: ModuleType) -> str:
    """What keeps a module from being a rule, as half a sentence; nothing where it is one."""
    given = vars(module)
    if not (module.__doc__ or "").strip():
        return "it has no docstring, which is its page"
    if missing := [name for name in _NEEDED if name not in given]:
        return f"it has no {' and no '.join(missing)}"
    for name in _TEXTS:
        if not isinstance(given.get(name, ""), str):
            return f"{name} must be a text, not {given[name]!r}"
    for name, choices in _CHOICES.items():
        if name in given and given[name] not in choices:
            return f"{name} must be {' or '.join(map(repr, choices))}, not {given[name]!r}"
    for name in _LISTS:
        value = given.get(name, ())
        if not isinstance(value, (tuple, list)) or not all(isinstance(item, str) for item in value):
            return f"{name} must be a tuple of texts, not {value!r}"
    beside = given.get("BESIDE", {})
    if not isinstance(beside, (str, Mapping)):
        return f"BESIDE must be a text, or one for each of some triggers, not {beside!r}"
    for name in (*HOOKS, "absorbs"):
        if not callable(given.get(name, fault)):
            return f"{name} must be a function, not {given[name]!r}"
    if "EVENT" not in given and not any(name in given for name in HOOKS):
        return f"it has none of the functions {', '.join(HOOKS)}"
    if "lint_file" in given and not given.get("TRIGGERS"):
        return "lint_file runs only in files with one of the words in TRIGGERS, and it has none"
    code = codes.read(given["CODE"])
    if code is None or not code.digits or given["CODE"] != "".join(code):
        return f"its code must be capital letters and then digits, not {given['CODE']!r}"
    return ""
