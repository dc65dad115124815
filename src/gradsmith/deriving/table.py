"""The table of operations, read from rules.txt: how each is printed, what kind it is, and its derivative as text."""

from __future__ import annotations

import inspect
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

import torch
import torch.nn.functional as F

# Sign, precedence in Python, what computes it.
INFIX: dict[str, tuple[str, int, Callable[..., Any]]] = {
    "or": ("|", 3, operator.or_),
    "xor": ("^", 4, operator.xor),
    "and": ("&", 5, operator.and_),
    "add": ("+", 7, operator.add),
    "sub": ("-", 7, operator.sub),
    "mul": ("*", 8, operator.mul),
    "div": ("/", 8, operator.truediv),
    "floor_divide": ("//", 8, operator.floordiv),
    "remainder": ("%", 8, operator.mod),
    "matmul": ("@", 8, operator.matmul),
    "pow": ("**", 10, operator.pow),
    "lt": ("<", 2, operator.lt),
    "le": ("<=", 2, operator.le),
    "gt": (">", 2, operator.gt),
    "ge": (">=", 2, operator.ge),
    "eq": ("==", 2, operator.eq),
    "ne": ("!=", 2, operator.ne),
}
PREFIX: dict[str, tuple[str, Callable[..., Any]]] = {"neg": ("-", operator.neg), "invert": ("~", operator.invert)}
# Take sizes, dimensions or counts one by one as well as in a tuple.
SIZES_APART = (
    "reshape",
    "permute",
    "expand",
    "flip",
    "repeat",
    "tile",
    "new_zeros",
    "new_ones",
    "new_empty",
    "sum_to_size",
)
_SIGNS = {sign: name for name, (sign, _, _) in INFIX.items()}
_LINE = re.compile(r"^(.*) \|([esrvxo])(z?)\|(.*)$")
_INFIX_FORM = re.compile(r"^a (\S+) b$")
_CALL_FORM = re.compile(r"^([\w.]+)\.(\w+)\((.*)\)$")


@dataclass(frozen=True)
class Operation:
    """One line of the table."""

    name: str
    style: str  # "infix", "prefix", "method", "attribute", "item", or the module of a function: "torch", "F", ...
    params: tuple[str, ...]
    defaults: dict[str, Any]
    kind: str
    zero: bool
    rules: dict[str, str] = field(default_factory=dict)
    keyword: frozenset[str] = frozenset()  # parameters that torch takes by keyword only

    @property
    def structured(self) -> str | None:
        """The name of the structured rule that gives all gradients at once."""
        whole = self.rules.get("")
        return whole[1:] if whole is not None and whole.startswith("@") else None

    def argument(self, args: tuple[Any, ...], name: str) -> Any:
        return args[self.params.index(name)]

    def keeps_all(self, args: tuple[Any, ...]) -> bool:
        """A reduction over all dimensions that keeps them."""
        named = dict(zip(self.params, args))
        return self.kind == "r" and "dim" in named and named["dim"] is None and bool(named.get("keepdim"))

    def run(self, *args: Any) -> Any:
        """The operation on real values."""
        if self.style == "infix":
            return INFIX[self.name][2](*args)
        if self.style == "prefix":
            return PREFIX[self.name][1](*args)
        if self.style == "item":
            return args[0][args[1]]
        if self.style == "statement":
            result = args[0].clone()
            if self.name == "assign":
                result[args[1]] = args[2]
            for index, value in args[1] if self.name == "placed" else ():
                result[index] += value
            return result
        if self.style == "attribute":
            return getattr(args[0], self.name)
        if self.name == "einsum":
            return torch.einsum(args[0], *args[1])
        named = dict(zip(self.params, args))
        given = {p: a for p, a in named.items() if p not in self.defaults or not _same(a, self.defaults[p])}
        if self.keeps_all(args):
            given["dim"] = None  # torch takes no keepdim without dim
        plain = [p for p in self.params if p in given and p not in self.defaults and p not in self.keyword]
        positional = [given.pop(p) for p in plain]
        if self.style == "method":
            return getattr(positional[0], self.name)(*positional[1:], **given)
        module = {"torch": torch, "F": F, "torch.linalg": torch.linalg, "torch.special": torch.special}[self.style]
        return getattr(module, self.name)(*positional, **given)


def _same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and not isinstance(a, torch.Tensor) and bool(a == b)


@cache
def operations() -> dict[str, Operation]:
    """Every operation of the table, by name."""
    with (files("gradsmith.deriving") / "rules.txt").open(encoding="utf-8") as stream:
        lines = [line.strip() for line in stream]
    found = [_read(line) for line in lines if line and not line.startswith("#")]
    known = {operation.name: operation for operation in found}
    # `x[index] = value` and `x[index] += value` as values of their own: statements in Python, so no lines of the table.
    known["assign"] = Operation("assign", "statement", ("x", "index", "value"), {}, "v", False, {"": "@assign"})
    known["placed"] = Operation("placed", "statement", ("x", "places"), {}, "v", False, {"": "@placed"})
    # The method of a tensor, which is not the function F.unfold of the table.
    windows = ("x", "dimension", "size", "step")
    known["unfold_dimension"] = Operation("unfold", "method", windows, {}, "v", False, {"": "@vjp"})
    return known


def _read(line: str) -> Operation:
    match = _LINE.match(line)
    if match is None:
        raise ValueError(f"rules.txt: cannot read {line!r}")
    form, kind, zero, rules = match.groups()
    name, style, params, defaults, keyword = _form(form)
    return Operation(name, style, params, defaults, kind, bool(zero), _rules(rules.strip(), params), keyword)


def _form(form: str) -> tuple[str, str, tuple[str, ...], dict[str, Any], frozenset[str]]:
    none: frozenset[str] = frozenset()
    if infix := _INFIX_FORM.match(form):
        return _SIGNS[infix[1]], "infix", ("a", "b"), {}, none
    if form in ("-x", "~x"):
        return {"-x": "neg", "~x": "invert"}[form], "prefix", ("x",), {}, none
    if form == "x[index]":
        return "getitem", "item", ("x", "index"), {}, none
    if "(" not in form:
        return form.partition(".")[2], "attribute", ("x",), {}, none
    match = _CALL_FORM.match(form)
    if match is None:
        raise ValueError(f"rules.txt: cannot read {form!r}")
    owner, name, signature = match.groups()
    inner = inspect.signature(eval(f"lambda {signature}: 0"))  # our own table, never anything of the user's
    params = tuple(inner.parameters)
    defaults = {p.name: p.default for p in inner.parameters.values() if p.default is not p.empty}
    keyword = frozenset(p.name for p in inner.parameters.values() if p.kind is p.KEYWORD_ONLY)
    if owner == "x":
        return name, "method", ("x", *params), defaults, keyword
    return name, owner, params, defaults, keyword


def _rules(text: str, params: tuple[str, ...]) -> dict[str, str]:
    """`a: g ; b: -g` by parameter; one rule without a name is that of the first; `@name` alone stands for all."""
    if not text:
        return {}
    found = {}
    for part in text.split(" ; "):
        name, colon, rule = part.partition(": ")
        found[name if colon and name in params else "" if part.startswith("@") else params[0]] = rule if colon else part
    return found


@cache
def compiled(rule: str) -> Any:
    return compile(rule, "<rule>", "eval")
