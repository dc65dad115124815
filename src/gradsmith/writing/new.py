"""`gradsmith new`: a file to start from, that passes lint, check and its own test as written."""

from __future__ import annotations

import linecache
from typing import Any

import torch

from gradsmith.deriving.wrapping import wrapped
from gradsmith.findings import GradsmithError
from gradsmith.writing.derive import written
from gradsmith.writing.formula import formula, named
from gradsmith.writing.patterns import FORWARDS, NAMES, WHOLE

_DOUBLE = ", dtype=torch.float64"


def new(name: str, *, pattern: str | None = None, text: str | None = None) -> str:
    """The source of a new Function called `name`: from one of the patterns, or from a formula."""
    named(name)
    if (pattern is None) == (text is None):
        raise GradsmithError(f"write one of --pattern ({', '.join(NAMES)}) and --formula")
    if text is not None:
        made = formula(name, text)
        return _finished(name, made.function, made.arguments(), made.inputs)
    if pattern in WHOLE:
        source = WHOLE[pattern].format(name=name, cls=class_name(name))
        return source + _rest(
            name,
            name if pattern == "custom-op" else class_name(name),
            f"(torch.randn(3, 4{_DOUBLE}, requires_grad=True),)",
        )
    if pattern not in FORWARDS:
        raise GradsmithError(f"there is no pattern {pattern!r}; there are {', '.join(NAMES)}")
    parameters, body, inputs = FORWARDS[pattern]
    function = _defined(name, f"def {name}({parameters}):\n    {body}\n")
    code = f"({inputs.format(d=_DOUBLE)})"
    torch.manual_seed(0)
    return _finished(name, function, eval(code, {"torch": torch}), code)  # our own text


def class_name(name: str) -> str:
    return "".join(word[:1].upper() + word[1:] for word in name.strip("_").split("_") if word)


def _defined(name: str, source: str) -> Any:
    path = f"<pattern {name}>"
    linecache.cache[path] = (len(source), None, source.splitlines(keepends=True), path)
    scope: dict[str, Any] = {"torch": torch}
    exec(compile(source, path, "exec"), scope)
    return scope[name]


def _finished(name: str, function: Any, arguments: tuple[Any, ...], inputs: str) -> str:
    made = written(function, arguments, {})
    parameters = list(made.derivation.reading.inputs)
    module = _module(name, parameters) if len(parameters) > 1 and parameters[0] == "x" else ""
    return made.source + module + _rest(name, class_name(name), inputs)


def _module(name: str, parameters: list[str]) -> str:
    """A module that owns what is not the first argument."""
    cls, own = f"{class_name(name)}Layer", parameters[1:]
    shapes = ", ".join(f"{p}_shape" for p in own)
    lines = [f"\n\nclass {cls}(torch.nn.Module):", f"    def __init__(self, {shapes}):", "        super().__init__()"]
    lines += [f"        self.{p} = torch.nn.Parameter(torch.randn({p}_shape))" for p in own]
    lines += ["", "    def forward(self, x):", f"        return {name}(x, {', '.join(f'self.{p}' for p in own)})", ""]
    return "\n".join(lines)


def _rest(name: str, subject: str, inputs: str) -> str:
    """Declared inputs, the test of one line, and a benchmark to fill in."""
    declared = "\n".join(wrapped(f'gradsmith_inputs = {{"{subject}": lambda: {inputs}}}'))
    return (
        f"\n\n{declared}\n"
        f"\n\ndef test_{name.strip('_')}():\n"
        f"    import gradsmith as gs\n\n"
        f"    gs.check({subject}).raise_if_failed()\n"
        f'\n\nif __name__ == "__main__":\n'
        f"    import gradsmith as gs\n\n"
        f'    print(gs.profile({subject}, *gradsmith_inputs["{subject}"]()))\n'
    )
