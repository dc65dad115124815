"""What holds the house together, counted: cycles, rule names outside their files, readers of source, torch modes, lists of
names, and places that set a verdict.

Run: python benchmarks/house.py [--list]

`tests/test_house.py` keeps the figures true. Packages are the folders of src/gradsmith and the single files beside them;
imports inside functions count as imports, imports for the type checker do not. Rules are plugins that the catalogue finds
in their folder (and those of other packages by entry point): finding is not importing, and no edge.
"""

from __future__ import annotations

import ast
import builtins
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent / "src" / "gradsmith"
# Those whose job is to watch every operation: one tape; the profiler's, the recurrent engine's and the deriver's own.
OWN_MODES = ("profiling/", "recurrent/", "deriving/")
# Files with lists of operations of their own, and what is said of the operations there that no other file asks.
OWN_LISTS = {
    "deriving/calls.py": "how arguments are brought to the form of the table of derivatives",
    "deriving/table.py": "which of that table take sizes one by one",
    "deriving/expressions.py": "how calls are written down",
    "deriving/naming.py": "what of that table may stand between a name and what is named after it",
    "deriving/printing.py": "which of that table are cheap enough to be written twice",
    "deriving/graph.py": "which of that table are linear in their tensor",
    "deriving/memory.py": "how a view of that table is put back into what it looks at",
    "deriving/reader.py": "what of a tensor may be asked while forward is read, and what gives back its operand",
    "lab/explore/coverage/choices.py": "what is asked of each choice (tests/explore/test_coverage.py: of every piecewise one)",
    "lab/triton/libdevice.py": "functions of libdevice that NumPy has by the same name",
    "recurrent/capture.py": "what a tensor without data answers like the real one",
    "recurrent/decompositions.py": "what torch is to take apart, and what is one expression in C",
}


# What reads source: by inspect, by linecache, by the parser, by the tokenizer.
_READING = ("linecache.", "tokenize.", "ast.parse")
_READING_NAMES = ("getsource", "getsourcelines", "getsourcefile", "findsource", "getcomments", "getblock")
# What a pattern holds that looks for Python: `class X`, `def f`, `import m`, `Fn.apply`.
_SYNTAX = ("class\\s", "def\\s", "import", "\\.apply")


@dataclass(frozen=True)
class Place:
    """Where something stands: `lab/run.py:12 what`."""

    path: str
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.what}"


@dataclass
class House:
    """The source of gradsmith, parsed once."""

    root: Path = ROOT
    trees: dict[str, ast.Module] = field(init=False)

    def __post_init__(self) -> None:
        self.trees = {
            str(path.relative_to(self.root)): ast.parse(path.read_text(encoding="utf-8"))
            for path in sorted(self.root.rglob("*.py"))
        }

    @cached_property
    def modules(self) -> dict[str, str]:
        """Dotted name of every module, and its path."""
        found = {}
        for path in self.trees:
            parts = ["gradsmith", *Path(path).with_suffix("").parts]
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
        return found

    @cached_property
    def rules(self) -> set[str]:
        return {
            Path(path).stem.replace("_", "-")
            for path in self.trees
            if path.startswith("rules/") and path.count("/") == 2 and not path.endswith("__init__.py")
        }

    def imports(self, path: str) -> Iterator[tuple[int, str]]:
        """(line, module of ours) for every import in the file that runs."""
        tree = self.trees[path]
        unseen = {
            id(inner)
            for node in ast.walk(tree)
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
            for inner in ast.walk(node)
        }
        for node in ast.walk(tree):
            if id(node) in unseen:
                continue
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "gradsmith":
                for name in node.names:
                    full = f"{node.module}.{name.name}"
                    yield node.lineno, full if full in self.modules else str(node.module)
            elif isinstance(node, ast.Import):
                yield from ((node.lineno, n.name) for n in node.names if n.name in self.modules)

    def graph(self) -> dict[str, dict[str, list[Place]]]:
        """package -> package it imports -> where."""
        edges: dict[str, dict[str, list[Place]]] = defaultdict(lambda: defaultdict(list))
        for path in self.trees:
            here = _package(path)
            for line, name in self.imports(path):
                there = _package(self.modules[name])
                if there != here and (here, there) != ("catalog", "rules"):
                    edges[here][there].append(Place(path, line, name))
        return edges

    def cycles(self) -> list[list[str]]:
        """Packages that import each other, directly or by way of others."""
        edges = self.graph()
        reach = {package: _reachable(package, edges) for package in edges}
        found = {
            tuple(sorted(other for other in reach[p] if p in reach.get(other, ()))) for p in edges if p in reach[p]
        }
        return [list(group) for group in sorted(found)]

    def rule_names(self) -> list[Place]:
        """Names of rules, as string literals outside rules/."""
        return [
            Place(path, node.lineno, repr(node.value))
            for path, node in self._outside_rules(ast.Constant)
            if node.value in self.rules and not _is_docstring(self.trees[path], node)
        ]

    def own_walks(self) -> list[Place]:
        """Loops and recursions of rules that follow names back by themselves: `source.behind.made_of` does it for all."""
        found = []
        for path, tree in self.trees.items():
            for function in ast.walk(tree) if path.startswith("rules/") else ():
                if not isinstance(function, (ast.While, ast.FunctionDef)):
                    continue
                called = [n.func for n in ast.walk(function) if isinstance(n, ast.Call)]
                follows = any(isinstance(f, ast.Attribute) and f.attr == "definitions" for f in called)
                again = isinstance(function, ast.While) or any(
                    isinstance(f, ast.Name) and f.id == function.name for f in called
                )
                if follows and again:
                    found.append(Place(path, function.lineno, getattr(function, "name", "while")))
        return found

    def readers(self) -> list[Place]:
        """Calls that read or parse the source of user code, and patterns of Python's syntax, outside source/."""
        found = []
        for path, tree in self.trees.items():
            if path.startswith("source/"):
                continue
            read_as_data = _inside_calls(tree, ("loads",))
            for node in ast.walk(tree):
                if not isinstance(node, ast.Call):
                    continue
                called = ast.unparse(node.func)
                text = called.endswith(".read_text") and node not in read_as_data
                reads = called.startswith(_READING) or called.rpartition(".")[2] in _READING_NAMES
                if reads or (text and "/proc/" not in called) or (called.startswith("re.") and _is_syntax(node)):
                    found.append(Place(path, node.lineno, called))
        return found

    def modes(self) -> list[Place]:
        """Classes that watch torch's operations, outside those rooms whose job it is."""
        return [
            Place(path, node.lineno, node.name)
            for path, node in self._outside_rules(ast.ClassDef, also_rules=True)
            if not path.startswith(OWN_MODES)
            and any(
                ast.unparse(base).rpartition(".")[2] in ("TorchFunctionMode", "TorchDispatchMode")
                for base in node.bases
            )
        ]

    def lists_of_names(self) -> list[Place]:
        """Lists of the names that users give, and patterns over them: outside source/lexicon.py there are none.

        A list is one of names if half of its words have a role there and fewer than half are words of somebody else:
        operations and attributes of torch, builtins, modules, our own kinds and fields.
        """
        from gradsmith.source.lexicon import roles

        found = []
        for path, line, words, pattern in self._word_lists():
            if path in ("source/lexicon.py", "lab/process/torch_says.py"):
                continue
            # A single letter may be anything, and what is no dimension in a docstring is a common word.
            named = sum(len(word) > 1 and bool(roles(word) - {"no dimension"}) for word in words)
            # Our own words are never alternatives of a pattern.
            others = _libraries() if pattern else _libraries() | self._own_words
            foreign = sum(word in others or not word.islower() for word in words)
            if 2 * named >= len(words) >= 2 * foreign and len(words) > 2:
                found.append(Place(path, line, " ".join(words)))
        return found

    def lists_of_operations(self) -> list[Place]:
        """Lists of torch's operations outside source/: the table is generated, and what is added stands in knowledge.py."""
        return [
            Place(path, line, " ".join(words))
            for path, line, words, pattern in self._word_lists()
            if not pattern and not path.startswith("source/") and path not in OWN_LISTS and _are_operations(words)
        ]

    def known_twice(self) -> list[Place]:
        """Lists of operations, in any file, that say again what a set of source/knowledge.py says: most of the list stands in the
        set, and half of the set in the list.
        """
        from gradsmith.source import knowledge

        sets = {name: found for name, found in vars(knowledge).items() if isinstance(found, frozenset)}
        found = []
        for path, line, words, pattern in self._word_lists():
            listed = set(words)
            if pattern or path.startswith("source/") or not _are_operations(words):
                continue
            again = [
                n for n, s in sets.items() if 4 * len(listed & s) >= 3 * len(listed) and 2 * len(listed & s) >= len(s)
            ]
            if again:
                found.append(Place(path, line, f"{' '.join(words)} (knowledge.{again[0]})"))
        return found

    def _word_lists(self) -> Iterator[tuple[str, int, list[str], bool]]:
        """(path, line, words, whether they are alternatives of a pattern) of every literal list of three or more."""
        for path, tree in self.trees.items():
            typed = {id(n) for a in ast.walk(tree) if _is_literal_type(a) for n in ast.walk(a)}
            for node in ast.walk(tree):
                if isinstance(node, (ast.Set, ast.Tuple, ast.List)) and id(node) not in typed:
                    words = [e.value for e in node.elts if isinstance(e, ast.Constant) and isinstance(e.value, str)]
                    if len(words) == len(node.elts) > 2 and all(re.fullmatch(r"\w+", word) for word in words):
                        yield path, node.lineno, words, False
                elif isinstance(node, ast.Call) and (words := _in_one_string(node)):
                    yield path, node.lineno, words, False
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    # A pattern, wherever it is compiled: alternatives that are words, and nothing of Python's syntax.
                    bare = re.sub(r"\\[a-zA-Z]|[(){}\[\]^$?*+\\:]", "", node.value)
                    if re.fullmatch(r"[\w|.]+", bare) and bare.count("|") > 1:
                        yield path, node.lineno, [word for word in re.split(r"[|.]", bare) if len(word) > 1], True

    @cached_property
    def _own_words(self) -> set[str]:
        """Names of fields, kinds and functions of this house."""
        fields = {
            node.target.id
            for _, node in self._outside_rules(ast.AnnAssign, also_rules=True)
            if isinstance(node.target, ast.Name)
        }
        kinds = {
            constant.value
            for tree in self.trees.values()
            for node in ast.walk(tree)
            if _is_literal_type(node)
            for constant in ast.walk(node)
            if isinstance(constant, ast.Constant)
        }
        defined = {
            n.name for t in self.trees.values() for n in ast.walk(t) if isinstance(n, (ast.FunctionDef, ast.ClassDef))
        }
        return {*fields, *kinds, *defined}

    def names_twice(self) -> list[Place]:
        """Public classes that another file has by the same name. Rules, errors and ops are named after what they are about."""
        places: dict[str, list[Place]] = defaultdict(list)
        for path, tree in self.trees.items():
            if not path.startswith(("rules/", "errors/", "ops/")):
                for node in tree.body:
                    if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                        places[node.name].append(Place(path, node.lineno, node.name))
        return [one for name in sorted(places) if len(places[name]) > 1 for one in places[name]]

    def verdicts(self) -> list[Place]:
        """Places that give a subject its verdict."""
        words = {"verified", "refuted", "unverified", "skipped"}
        found = []
        for path, node in self._outside_rules(ast.Call, also_rules=True):
            name = ast.unparse(node.func).rpartition(".")[2]
            given = [k.value for k in node.keywords if k.arg == "verdict"]
            given += node.args[1:2] if name == "Subject" else []
            if any(isinstance(c, ast.Constant) and c.value in words for g in given for c in ast.walk(g)):
                found.append(Place(path, node.lineno, ast.unparse(node.func)))
        return found

    def severities(self) -> list[Place]:
        """Places that give a finding its severity, but the rules and lint, which judges source alone."""
        found = []
        for path, node in self._outside_rules(ast.Call):
            given = [k.value for k in node.keywords if k.arg == "severity"]
            chosen = [v for g in given for v in ((g.body, g.orelse) if isinstance(g, ast.IfExp) else (g,))]
            if any(isinstance(v, ast.Constant) and v.value for v in chosen) and not path.startswith("linting/"):
                found.append(Place(path, node.lineno, ast.unparse(node.func)))
        return found

    def _outside_rules(self, kind: type, *, also_rules: bool = False) -> Iterator[tuple[str, ast.AST]]:
        for path, tree in self.trees.items():
            if also_rules or not path.startswith("rules/"):
                yield from ((path, node) for node in ast.walk(tree) if isinstance(node, kind))


def _inside_calls(tree: ast.Module, names: tuple[str, ...]) -> set[ast.AST]:
    """Every node among the arguments of calls of these names: `json.loads(...)`, `tomllib.loads(...)`."""
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and ast.unparse(n.func).rpartition(".")[2] in names]
    return {inner for call in calls for arg in call.args for inner in ast.walk(arg)}


def _is_syntax(call: ast.Call) -> bool:
    """Whether a pattern, as far as it is written in the call, looks for Python's own syntax."""
    written = [n.value for a in call.args[:1] for n in ast.walk(a) if isinstance(n, ast.Constant)]
    texts = [part.decode() if isinstance(part, bytes) else part for part in written]
    return any(isinstance(part, str) and mark in part for part in texts for mark in _SYNTAX)


def _package(path: str) -> str:
    first = Path(path).parts[0]
    return first.removesuffix(".py")


def _reachable(start: str, edges: dict[str, dict[str, list[Place]]]) -> set[str]:
    seen: set[str] = set()
    waiting = list(edges.get(start, ()))
    while waiting:
        package = waiting.pop()
        if package not in seen:
            seen.add(package)
            waiting.extend(edges.get(package, ()))
    return seen


def _in_one_string(call: ast.Call) -> list[str]:
    """The words of `"add sub mul".split()` and of `frozenset("add sub mul".split())`, which are lists as well."""
    holder = call.func.value if isinstance(call.func, ast.Attribute) and call.func.attr == "split" else None
    words = holder.value.split() if isinstance(holder, ast.Constant) and isinstance(holder.value, str) else []
    return words if len(words) > 2 and all(re.fullmatch(r"\w+", word) for word in words) else []


def _are_operations(words: list[str]) -> bool:
    return 3 * sum(word.rstrip("_") in _operations() for word in words) >= 2 * len(words) > 6


def _is_literal_type(node: ast.AST) -> bool:
    return isinstance(node, ast.Subscript) and ast.unparse(node.value) == "Literal"


@cache
def _libraries() -> set[str]:
    """Names that Python and torch have given: a list of them is not one of names that users give."""
    import inspect
    import keyword
    import typing

    import torch

    holders = [builtins, typing, list, dict, torch, torch.jit, torch.library, torch.autograd, torch.autograd.function]
    holders += [
        torch.autograd.graph,
        torch.nn.Module,
        torch.nn.Linear(1, 1),
        torch.nn.LSTMCell(1, 1),
        torch.autograd.Function,
    ]
    options = inspect.signature(torch.autograd.gradcheck).parameters
    names = {name for holder in holders for name in dir(holder)}
    return names | {*keyword.kwlist, *keyword.softkwlist, *sys.stdlib_module_names, *options, *_operations()}


@cache
def _operations() -> set[str]:
    """Operations, methods and attributes of torch."""
    from gradsmith.source import knowledge, torch_ops

    return {
        *torch_ops.OPERATIONS,
        *torch_ops.METHODS,
        *knowledge.MEASURED,
        *knowledge.TENSOR_OPS,
        *knowledge.OTHER_METHODS,
    }


def _is_docstring(tree: ast.Module, node: ast.Constant) -> bool:
    return any(
        isinstance(holder, (ast.Module, ast.ClassDef, ast.FunctionDef))
        and holder.body
        and isinstance(holder.body[0], ast.Expr)
        and holder.body[0].value is node
        for holder in ast.walk(tree)
    )


def main() -> None:
    house = House()
    rows: list[tuple[str, list[object]]] = [
        ("cycles between packages", list(house.cycles())),
        ("walks of rules' own", house.own_walks()),
        ("rule names outside rules/", list(house.rule_names())),
        ("files that read user source outside source/", sorted({p.path for p in house.readers()})),
        ("torch modes but those of profiling/, recurrent/ and deriving/", list(house.modes())),
        ("lists of names outside source/lexicon.py", list(house.lists_of_names())),
        (
            "lists of torch operations outside source/, and the files that need their own",
            list(house.lists_of_operations()),
        ),
        ("lists that say again what source/knowledge.py says", list(house.known_twice())),
        ("names of classes that mean several things", list(dict.fromkeys(p.what for p in house.names_twice()))),
        ("files that set a verdict", sorted({p.path for p in house.verdicts()})),
        ("files that set a severity, rules and lint apart", sorted({p.path for p in house.severities()})),
    ]
    for what, found in rows:
        print(f"{len(found):4d}  {what}")
        if "--list" in sys.argv:
            for place in found:
                print(f"        {place}")


if __name__ == "__main__":
    main()
