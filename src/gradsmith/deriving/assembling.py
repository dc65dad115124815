"""The text of a whole Function: forward, setup_context, backward, and the function that calls it."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from gradsmith.deriving.expressions import counted
from gradsmith.deriving.guarding import Test, of_values, test_of
from gradsmith.deriving.naming import label, unique
from gradsmith.deriving.node import Node
from gradsmith.deriving.printing import Printer, Statement, serving
from gradsmith.deriving.reading import Reading
from gradsmith.deriving.refusal import Refused
from gradsmith.deriving.saving import Plan
from gradsmith.deriving.wrapping import wrapped

_DOCSTRING = 100
_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass
class Text:
    """Everything the printed Function is made of."""

    reading: Reading
    plan: Plan
    gradients: dict[Node, Node]  # of an input: its gradient
    grads: dict[Node, Node]  # of an output: the leaf that backward receives
    conditions: list[Test] = field(default_factory=list)
    without: tuple[
        str, ...
    ] = ()  # inputs that forward is differentiable in, and that get no gradient: the example wanted none

    def __post_init__(self) -> None:
        self.reading.graph.once = not self.plan.twice
        self.arguments = list(self.reading.inputs)
        self.taken = set(self.arguments)
        self.outputs = self._output_names()
        self.extra = [n for n in self.plan.saved if n.op != "input" and n not in self.outputs]
        self.saved = {n: self._saved_name(n) for n in self.plan.saved}
        self.attributes: dict[str, str] = {}  # of ctx: what setup_context stores there
        self.conditions = list(dict.fromkeys([*self.conditions, *self._turns()]))

    @property
    def class_name(self) -> str:
        words = self.reading.name.strip("_").split("_")
        name = "".join(word[:1].upper() + word[1:] for word in words if word) or "Derived"
        return f"{name}Function" if name in ("F", self.reading.name) else name

    def _output_names(self) -> dict[Node, str]:
        names: dict[Node, str] = {}
        for i, out in enumerate(self.reading.outputs):
            base = out.name if out.name and out.op != "input" and out.name not in self.arguments else None
            names[out] = unique(base or ("output" if self.reading.single else f"output{i}"), self.taken)
        return names

    def _saved_name(self, node: Node) -> str:
        if node.op == "input":
            return str(node.name)
        return self.outputs[node] if node in self.outputs else unique(label(node), self.taken)

    def _turns(self) -> Iterator[Test]:
        """A loop without a turn would leave a view of an input, which autograd does not let us mark as without gradient."""
        graph = self.reading.graph
        printer = Printer({node: name for name, node in self.reading.inputs.items()})
        for node in self.extra:
            if node.op != "item" or node.args[0].op != "loop":
                continue
            loop = node.args[0].args[0]
            states = [s for i, s in enumerate(loop.states) if loop.position("state", i) == node.args[1]]
            first = states[0].init if states else None
            moved = isinstance(first, Node) and first.op in graph.operations and graph.operations[first.op].kind == "v"
            if isinstance(first, Node) and (first.op == "input" or moved):
                yield test_of(f"{printer.text(loop.count)} > 0", True)

    # ---- the parts

    def source(self) -> str:
        backward, forward = self._backward(), self._forward()
        setup = self._setup()
        body = "\n".join((*forward, *setup, *backward, *self._wrapper()))
        imports = ["import math"] if re.search(r"\bmath\.", body) else []
        imports += ["", "import torch"] if imports else ["import torch"]
        if re.search(r"\bF\.", body) and "F" not in self.taken:
            imports.append("import torch.nn.functional as F")
        if not self.plan.twice:
            imports.append("from torch.autograd.function import once_differentiable")
        once = [] if self.plan.twice else ["    @once_differentiable"]
        lines = [
            *imports,
            *("", ""),
            f"class {self.class_name}(torch.autograd.Function):",
            *_indented(self._docstring(), 1),
            "",
            "    @staticmethod",
            f"    def forward({', '.join(self.arguments)}):",
            *_indented(forward, 2),
            "",
            "    @staticmethod",
            f"    def setup_context(ctx, {', '.join(self._given())}):",
            *_indented(setup or ["pass"], 2),
            "",
            "    @staticmethod",
            *once,
            f"    def backward(ctx, {', '.join(self._grad_names())}):",
            *_indented(backward, 2),
            *("", ""),
            *self._wrapper(),
        ]
        return "\n".join(part for line in lines for part in wrapped(line)) + "\n"

    def _docstring(self) -> list[str]:
        once = "" if self.plan.twice else " Not differentiable twice."
        names = ", ".join(self.saved.values()) or "nothing"
        first, second = f"`{self.reading.name}` with its derivative written out.", f"Saves {names}.{once}"
        one = f'"""{first} {second}"""'
        return [one] if len(one) < _DOCSTRING else [f'"""{first}', "", second, '"""']

    def _without_zeros(self) -> bool:
        """Would autograd make zeros for gradients that backward never reads? Then it gets None, for grad_output as well."""
        return bool(self.extra) and len(self.grads) == 1

    def _grad_names(self) -> list[str]:
        names = [
            str(self.grads[out].name) if out in self.grads else f"_{i}" for i, out in enumerate(self.reading.outputs)
        ]
        return names + (["*_"] if self.extra else [])

    def _forward(self) -> list[str]:
        graph = self.reading.graph
        graph.backward = False
        given: dict[Node, str] = {node: name for name, node in self.reading.inputs.items()}
        printer = Printer(given, taken=set(self.arguments) | set(self.outputs.values()))
        targets = {**self.outputs, **{n: self.saved[n] for n in self.extra}}
        targets = {n: name for n, name in targets.items() if n.op != "input"}
        sizes = self._named_sizes(printer)
        statements = printer.statements(targets)
        # torch refuses to save an input that is returned as it is.
        returned = [f"{o.name}.view_as({o.name})" if o.op == "input" else self.outputs[o] for o in self.reading.outputs]
        returned += [self.saved[n] for n in self.extra]
        lines = [line for s in statements for line in s.lines]
        one = self.reading.single and not self.extra
        if one and statements and not statements[-1].block and statements[-1].name == returned[0]:
            lines[-1] = f"return {statements[-1].text}"
        else:
            lines.append("return " + ", ".join(returned) + ("," if len(returned) == 1 and not one else ""))
        lines = [*_unpacked(sizes, "\n".join(lines)), *lines]
        tests = [line for test in self.conditions for line in test.lines(self.reading.name)]
        later = [line for test in of_values(self.reading, printer) for line in test.lines(self.reading.name)]
        if later:
            returning = lines.pop()
            if returning == f"return {statements[-1].text}":
                lines.append(f"{statements[-1].name} = {statements[-1].text}")
                returning = f"return {returned[0]}"
            lines += [*later, returning]
        return tests + lines

    def _named_sizes(self, printer: Printer) -> dict[Node, str]:
        """Sizes of inputs under the names that they have in the source, as far as no value has the same name."""
        values = {n.name for n in self.reading.graph.pool.values() if n.op != "size"}
        found: dict[Node, str] = {}
        for size, name in self.reading.graph.size_names.items():
            free = name not in values and name not in printer.taken and name not in found.values()
            if size.args[0].op == "input" and free and not name.startswith("_"):
                found[size] = name
        printer.names |= found
        printer.taken |= set(found.values())
        return found

    def _given(self) -> tuple[str, str]:
        """What setup_context calls the inputs and the result: nothing that it unpacks may have these names."""
        made = {*self.saved.values(), *self.outputs.values()} - set(self.arguments)
        return "given" if "inputs" in made else "inputs", "result" if "output" in self.arguments else "output"

    def _setup(self) -> list[str]:
        lines = []
        inputs, result = self._given()
        stored = [f"ctx.{name} = {text}" for name, text in self.attributes.items()]
        used = set(_WORD.findall(" ".join(self.attributes.values()))) | {
            self.saved[n] for n in self.saved if n.op == "input"
        }
        if used & set(self.arguments):
            unpacked = ", ".join(a if a in used else "_" for a in self.arguments)
            lines.append(f"({unpacked},) = {inputs}" if len(self.arguments) == 1 else f"{unpacked} = {inputs}")
        inert = [self.outputs[o] for o in self.reading.outputs if o not in self.grads] + [
            self.saved[n] for n in self.extra
        ]
        wanted = {self.saved[n] for n in self.saved if n.op != "input"} | set(inert)
        if wanted:
            names = [self.outputs[o] for o in self.reading.outputs] + [self.saved[n] for n in self.extra]
            if len(names) > 1 or not self.reading.single:
                shown = ", ".join(n if n in wanted else "_" for n in names) + ("," if len(names) == 1 else "")
                lines.append(f"{shown} = {result}")
            elif names[0] != result:
                lines.append(f"{names[0]} = {result}")
        if inert:
            lines.append(f"ctx.mark_non_differentiable({', '.join(inert)})")
        if self._without_zeros():
            lines.append("ctx.set_materialize_grads(False)")
        if self.saved:
            lines.append(f"ctx.save_for_backward({', '.join(self.saved.values())})")
        return lines + stored

    def _backward(self) -> list[str]:
        """The lines; a size that is written twice or more has its name of forward."""
        free = {n.name for n in self.reading.graph.pool.values() if n.op != "size"} | {*self.arguments, "ctx"}
        sizes: dict[Node, str] = {}
        for size, name in self.reading.graph.size_names.items():
            if size.args[0].op == "input" and not name.startswith("_") and name not in {*free, *sizes.values()}:
                sizes[size] = name
        if sizes:
            words = Counter(_WORD.findall("\n".join(self._backward_lines(sizes))))
            sizes = {size: name for size, name in sizes.items() if words[name] > 2}  # once where it is made
        return self._backward_lines(sizes)

    def _backward_lines(self, sizes: dict[Node, str]) -> list[str]:
        graph = self.reading.graph
        graph.backward = True
        self.attributes = {}
        names = {**{g: str(g.name) for g in self.grads.values()}, **self.saved}
        taken = set(names.values()) | {"ctx", *sizes.values()}
        plain = Printer(dict(names), self._outside)
        made = {name: plain.text(size) for size, name in sizes.items()}
        printer = Printer({**names, **sizes}, self._outside, taken)
        targets: dict[Node, str] = {}
        aliases: dict[str, Node] = {}
        for node, gradient in self.gradients.items():
            name = f"grad_{node.name}"
            if gradient in targets or gradient in names:
                aliases[name] = gradient
                printer.taken.add(name)
            else:
                targets[gradient] = unique(name, printer.taken) if name in taken else name
        statements = printer.statements(targets)
        statements += [Statement(name, printer.text(node), node) for name, node in aliases.items()]
        final = {
            node: next((t for g, t in targets.items() if g is gradient), f"grad_{node.name}")
            for node, gradient in self.gradients.items()
        }
        final |= {node: f"grad_{node.name}" for node in self.gradients if f"grad_{node.name}" in aliases}
        statements, final = _without_aliases(statements, final)
        lines = []
        if self._without_zeros():
            nothing = ", ".join(["None"] * len(self.arguments))
            lines += [f"if {next(iter(self.grads.values())).name} is None:", f"    return {nothing}"]
        if self.saved:
            shown = ", ".join(self.saved.values())
            lines.append(f"{shown if len(self.saved) > 1 else f'({shown},)'} = ctx.saved_tensors")
        for number in sorted(printer.numbers, key=lambda n: n.serial):
            self.attributes[str(number.name)] = str(number.name)
            lines.append(f"{number.name} = ctx.{number.name}")
        lines += [f"{name} = {text}" for name, text in made.items()]
        lines += self._guarded(statements, final) if len(final) > 1 else [line for s in statements for line in s.lines]
        returned = [final.get(node, "None") if node.is_tensor else "None" for node in self.reading.inputs.values()]
        only = [s for s in statements if s.name in final.values()]
        if (
            len(final) == 1
            and only
            and lines[-1] == f"{only[-1].name} = {only[-1].text}"
            and only[-1].text.isidentifier()
        ):
            lines.pop()
            returned = [only[-1].text if name == only[-1].name else name for name in returned]
        if (
            len(returned) == 1
            and statements
            and lines
            and lines[-1] == f"{statements[-1].name} = {statements[-1].text}"
        ):
            lines[-1] = f"return {statements[-1].text}"
        else:
            lines.append("return " + ", ".join(returned))
        return lines

    def _outside(self, node: Node, what: str) -> str:
        """The shape or dtype of an input that is not saved: kept on ctx."""
        bare = what.removesuffix("()")
        tail = ".numel()" if bare == "numel" else ""
        kept = "shape" if bare == "numel" else bare
        self.attributes[f"{node.name}_{kept}"] = f"{node.name}.{kept}"
        return f"ctx.{node.name}_{kept}{tail}"

    def _guarded(self, statements: list[Statement], final: dict[Node, str]) -> list[str]:
        """What serves one gradient alone is computed only if that gradient is wanted."""
        served = serving(statements, final.values())
        lines = [line for s, names in served if len(names) > 1 for line in s.lines]
        order = list(self.reading.inputs.values())
        guarded: list[str] = []
        for node, name in final.items():
            own = [line for s, names in served if names == {name} for line in s.lines]
            if own:
                guarded.append(name)
                lines += [f"if ctx.needs_input_grad[{order.index(node)}]:", *_indented(own, 1)]
        return [" = ".join(guarded) + " = None", *lines] if guarded else lines

    def _wrapper(self) -> list[str]:
        parameters = self.reading.signature.parameters.values()
        signature = ", ".join(_parameter(p) for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD))
        lines = [f"def {self.reading.name}({signature}):"]
        for name, value in self.reading.options.items():
            shown = _value(value)
            if not _is_written(value):
                told = f"`{name}` is a {type(value).__name__}, for which forward cannot test."
                raise Refused(told, f"Write a function without `{name}` that uses it by its name, and derive that.")
            fails = f"{name} is not {shown}" if value is None or isinstance(value, bool) else f"{name} != {shown}"
            lines += _indented(Test(fails, f"derived for {name}={shown}").lines(self.reading.name), 1)
        for text, length in self.reading.containers.lengths():
            lines += _indented(
                Test(f"len({text}) != {length}", f"derived for len({text}) == {length}").lines(self.reading.name), 1
            )
        for name, parameter in self.reading.signature.parameters.items():
            if parameter.default is None and name in self.reading.inputs:
                lines += _indented(Test(f"{name} is None", f"derived for a {name}").lines(self.reading.name), 1)
        for name in map(self.reading.containers.written, self.without):
            fails = f"{name}.requires_grad and torch.is_grad_enabled()"
            lines += _indented(Test(fails, f"derived without a gradient for {name}").lines(self.reading.name), 1)
        call = f"{self.class_name}.apply({', '.join(self.reading.containers.passed(self.arguments))})"
        if self.extra:
            call += "[0]" if self.reading.single else f"[:{len(self.reading.outputs)}]"
        return [*lines, f"    return {call}"]


def _unpacked(sizes: dict[Node, str], text: str) -> list[str]:
    """`b, c, h, w = x.shape`, or `n = x.shape[-1]` where the source asks for it so, for the sizes that the text uses."""
    words = set(_WORD.findall(text))
    used = {size: name for size, name in sizes.items() if name in words}
    lines = []
    for tensor in dict.fromkeys(size.args[0] for size in used):
        rank = len(tensor.dims)
        own = {size: name for size, name in used.items() if size.args[0] is tensor}
        unpacked = {size.args[1]: name for size, name in own.items() if size not in size.graph.counted}
        if unpacked:
            lines.append(f"{', '.join(unpacked.get(i, '_') for i in range(rank))} = {tensor.name}.shape")
        for size, name in own.items():
            if size in size.graph.counted:
                lines.append(f"{name} = {tensor.name}.shape[{counted(size, size.args[1], rank)}]")
    return lines


def _without_aliases(statements: list[Statement], final: dict[Node, str]) -> tuple[list[Statement], dict[Node, str]]:
    """A gradient that a loop leaves behind is returned under the name it has there."""
    made = {name for s in statements if s.block for name in s.name.split(", ")}
    same = {s.name: s.text for s in statements if not s.block and s.text in made and s.name in final.values()}
    kept = [s for s in statements if s.name not in same]
    return kept, {node: same.get(name, name) for node, name in final.items()}


def _parameter(parameter: inspect.Parameter) -> str:
    if parameter.default is parameter.empty:
        return parameter.name
    return f"{parameter.name}={_value(parameter.default)}"


def _value(value: Any) -> str:
    if isinstance(value, str):
        return repr(value).replace("'", '"')
    if isinstance(value, torch.device):
        return f'torch.device("{value}")'
    if isinstance(value, (torch.Size, list)):
        return repr(list(value) if isinstance(value, list) else tuple(value))
    return f'float("{value}")' if _infinite(value) else repr(value)


def _is_written(value: Any) -> bool:
    """Is the value told in full by its text?"""
    if isinstance(value, (tuple, list)):
        return all(map(_is_written, value))
    return value is None or isinstance(value, (str, bool, int, float, torch.dtype, torch.device))


def _infinite(value: Any) -> bool:
    return isinstance(value, float) and value in (float("inf"), float("-inf"))


def _indented(lines: Iterable[str], depth: int) -> list[str]:
    return ["    " * depth + line if line else line for line in lines]
