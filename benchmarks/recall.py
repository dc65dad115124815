"""How many planted defects lint finds: 100 of them, put by script into released Functions that are clean.

    python benchmarks/recall.py [--seed 0] [--count 100] [--misses]

Each defect is a small edit of a real class of the survey's packages (see survey.py), made without looking at what the
rules can see. It counts as found when lint names the defect's own rule in the edited file, and did not before.
"""

from __future__ import annotations

import argparse
import ast
import random
import sys
import textwrap
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from survey import folders

import gradsmith as gs
from gradsmith.source import FileModel, FunctionModel, project, scan
from gradsmith.source.encoding import decoded
from gradsmith.source.method import Method


@dataclass
class Patient:
    """A clean Function, and the lines of its file, which a planter edits."""

    model: FunctionModel
    lines: list[str] = field(default_factory=list)

    @property
    def backward(self) -> Method:
        return self.model.methods["backward"]

    @property
    def forward(self) -> Method:
        return self.model.methods["forward"]

    @property
    def grad(self) -> str:
        return self.backward.params[0].name

    @property
    def tensor(self) -> str | None:
        """An input that is certainly a tensor."""
        sure = [p.name for p in self.forward.params if p.kind == "positional" and self._is_tensor(p.name)]
        return sure[0] if sure else None

    def _is_tensor(self, name: str) -> bool:
        saved = [e for s in self.model.saves for e in s.exprs]
        return any(isinstance(e, ast.Name) and e.id == name and self.forward.param_of(e) for e in saved)

    def inside(self, method: Method, code: str, *, last: bool = False) -> None:
        """Write code at the start of a method's body, or before its last statement."""
        body = method.node.body
        first = 1 if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) and len(body) > 1 else 0
        at = body[-1] if last else body[first]
        line = min([at.lineno, *(d.lineno for d in getattr(at, "decorator_list", ()))])
        self.lines[line - 1 : line - 1] = textwrap.indent(code, " " * at.col_offset).split("\n")

    def after(self, node: ast.stmt, code: str) -> None:
        end = node.end_lineno or node.lineno
        self.lines[end:end] = textwrap.indent(code, " " * node.col_offset).split("\n")

    def indent(self, node: ast.stmt, head: str) -> None:
        """Put a statement under a line that ends in a colon."""
        first, end = node.lineno - 1, node.end_lineno or node.lineno
        inner = [f"    {line}" for line in self.lines[first:end]]
        self.lines[first:end] = [" " * node.col_offset + head, *inner]

    def method(self, code: str) -> None:
        """Write a new method at the end of the class."""
        self.after(self.model.node.body[-1], "\n" + textwrap.dedent(code).strip("\n"))

    def append(self, code: str) -> None:
        self.lines += ["", "", *textwrap.dedent(code).strip("\n").split("\n")]

    def swap(self, node: ast.AST, text: str) -> None:
        """Write text where a node stands."""
        place = self.model.file.place(node)
        before, after = self.lines[place.line - 1][: place.column], self.lines[place.end_line - 1][place.end_column :]
        self.lines[place.line - 1 : place.end_line] = [before + text + after]


Planter = Callable[[Patient], bool | None]
PLANTERS: dict[str, Planter] = {}


def plants(rule: str) -> Callable[[Planter], Planter]:
    """`False` from a planter: this Function offers no place for the defect."""

    def note(planter: Planter) -> Planter:
        PLANTERS[rule] = planter
        return planter

    return note


def returned_tuple(p: Patient) -> ast.Tuple | None:
    found = [r.node.value for r in p.backward.returns]
    last = found[-1] if len(found) == 1 else None
    plain = isinstance(last, ast.Tuple) and not any(isinstance(e, ast.Starred) for e in last.elts)
    fits = plain and len(last.elts) == len(p.forward.params) and not p.forward.vararg  # type: ignore[union-attr]
    return last if fits and isinstance(last, ast.Tuple) else None


def whole_unpack(p: Patient) -> ast.Assign | None:
    """`a, b = ctx.saved_tensors` of one save with as many plain names."""
    if len(p.model.saves) != 1 or len(p.model.unpacks) != 1 or p.model.saves[0].starred:
        return None
    node = p.backward.statement(p.model.unpacks[0].node)
    plain = isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple)
    if not plain or not all(isinstance(e, ast.Name) for e in node.targets[0].elts):  # type: ignore[union-attr]
        return None
    return node if len(node.targets[0].elts) == len(p.model.saves[0].exprs) else None  # type: ignore


def saved_name(p: Patient) -> tuple[ast.Assign, str] | None:
    """An unpack, and a name in it that is an input."""
    unpack = whole_unpack(p)
    if unpack is None:
        return None
    for target, saved in zip(unpack.targets[0].elts, p.model.saves[0].exprs):  # type: ignore[attr-defined]
        if isinstance(saved, ast.Name) and p.forward.param_of(saved) is not None:
            return unpack, target.id
    return None


def calculates_with(p: Patient, saved: str) -> bool:
    """Backward calls the saved tensor by the same name, and a returned gradient has arithmetic with it in its own words."""
    unpack = whole_unpack(p)
    if unpack is None or saved not in [e.id for e in unpack.targets[0].elts]:  # type: ignore[attr-defined]
        return False
    if any(isinstance(n, ast.Call) and isinstance(n.func, ast.Subscript) for n in p.backward.nodes):
        return False
    returned = {n.id for r in p.backward.returns for n in ast.walk(r.node) if isinstance(n, ast.Name)}
    for statement in p.backward.node.body:
        bound = {t.id for t in getattr(statement, "targets", ()) if isinstance(t, ast.Name)}
        if not isinstance(statement, ast.Return) and not bound & returned:
            continue
        for node in ast.walk(statement):
            if isinstance(node, ast.BinOp) and any(
                isinstance(s, ast.Name) and s.id == saved for s in (node.left, node.right)
            ):
                return True
    return False


@plants("return-count")
def _(p: Patient) -> bool | None:
    value = returned_tuple(p)
    if value is None or len(value.elts) < 2 or ast.unparse(value.elts[-1]) == "None":
        return False
    if p.forward.params[-1].default is not None:
        return False  # apply may be called without the last argument, and then one gradient less is right
    p.swap(value, "(" + ", ".join(ast.unparse(e) for e in value.elts[:-1]) + ",)")
    return None


@plants("extra-none")
def _(p: Patient) -> bool | None:
    value = returned_tuple(p)
    if value is None:
        return False
    p.swap(value, "(" + ", ".join(ast.unparse(e) for e in value.elts) + ", None)")
    return None


@plants("unpack-count")
def _(p: Patient) -> bool | None:
    unpack = whole_unpack(p)
    if unpack is None:
        return False
    p.swap(unpack.targets[0], ", ".join([*(ast.unparse(e) for e in unpack.targets[0].elts), "one_more"]))  # type: ignore
    return None


@plants("backward-arity")
def _(p: Patient) -> bool | None:
    returns = p.forward.returns
    one = all(r.elements is not None and len(r.elements) == 1 and not r.is_tuple for r in returns) and returns
    if not one or len(p.backward.params) != 1 or p.backward.params[0].kind != "positional":
        return False
    arguments = p.backward.node.args
    if not isinstance(returns[0].value, ast.Name):
        return False
    p.swap(returns[0].value, f"{returns[0].value.id}, {returns[0].value.id} * 2")
    return None if arguments.args else False


@plants("save-nontensor")
def _(p: Patient) -> bool | None:
    if p.tensor is None or len(p.model.saves) != 1 or p.model.saves[0].method.name != "forward":
        return False
    save = p.model.saves[0]
    p.swap(save.exprs[0], f"{ast.unparse(save.exprs[0])}, {p.tensor}.shape")
    return None


@plants("saved-in-forward")
def _(p: Patient) -> bool | None:
    if p.forward.ctx is None:
        return False
    p.inside(p.forward, f"kept = {p.forward.ctx}.saved_tensors")
    return None


@plants("not-static")
def _(p: Patient) -> bool | None:
    for decorator in p.backward.node.decorator_list:
        if ast.unparse(decorator) == "staticmethod" and len(p.backward.node.decorator_list) == 1:
            del p.lines[decorator.lineno - 1]
            return None
    return False


@plants("vmap-conflict")
def _(p: Patient) -> bool | None:
    p.method("generate_vmap_rule = True\n\n@staticmethod\ndef vmap(info, in_dims, *args):\n    return args[0], 0")


@plants("nested-backward")
def _(p: Patient) -> bool | None:
    p.inside(p.backward, f"{p.grad}.sum().backward()")


@plants("jvp-returns-nothing")
def _(p: Patient) -> bool | None:
    if "jvp" in p.model.methods:
        return False
    p.method("@staticmethod\ndef jvp(ctx, *tangents):\n    result = tangents[0] * 2")
    return None


@plants("save-in-backward")
def _(p: Patient) -> bool | None:
    p.inside(p.backward, f"{p.backward.ctx}.save_for_backward({p.grad})")


@plants("deprecated-api")
def _(p: Patient) -> bool | None:
    unpack = whole_unpack(p)
    if unpack is None:
        return False
    p.swap(unpack.value, f"{p.backward.ctx}.saved_variables")
    return None


@plants("needs-input-grad-index")
def _(p: Patient) -> bool | None:
    if p.forward.vararg or p.forward.kwarg:
        return False
    count = len(p.forward.params)
    p.inside(
        p.backward, f"if not {p.backward.ctx}.needs_input_grad[{count}]:\n    return {', '.join(['None'] * count)}"
    )
    return None


@plants("mark-not-output")
def _(p: Patient) -> bool | None:
    if p.tensor is None or p.forward.ctx is None:
        return False
    p.inside(p.forward, f"{p.forward.ctx}.mark_non_differentiable({p.tensor})")
    return None


@plants("redundant-no-grad")
def _(p: Patient) -> bool | None:
    if p.tensor is None:
        return False
    p.inside(p.forward, f"with torch.no_grad():\n    size = {p.tensor}.abs()")
    return None


@plants("inplace-grad")
def _(p: Patient) -> bool | None:
    p.inside(
        p.backward, random.Random(p.model.name).choice([f"{p.grad}.mul_(2)", f"{p.grad} *= 2", f"{p.grad}[0] = 0"])
    )


@plants("inplace-saved")
def _(p: Patient) -> bool | None:
    found = saved_name(p)
    if found is None:
        return False
    p.after(found[0], f"{found[1]}.add_(1)")
    return None


@plants("inplace-input")
def _(p: Patient) -> bool | None:
    if p.tensor is None or any(m.name == "mark_dirty" for m in p.model.marks):
        return False
    p.inside(p.forward, f"{p.tensor}.mul_(2)")
    return None


@plants("container-output")
def _(p: Patient) -> bool | None:
    found = p.forward.returns[-1].value if p.forward.returns else None
    if found is None or isinstance(found, ast.List):
        return False
    p.swap(found, f"[{ast.unparse(found).strip('()') if isinstance(found, ast.Tuple) else ast.unparse(found)}]")
    return None


@plants("closure-tensor")
def _(p: Patient) -> bool | None:
    if p.tensor is None or "." in p.model.qualname:
        return False
    p.inside(p.forward, f"{p.tensor} = {p.tensor} * hidden_gain")
    p.append("hidden_gain = torch.nn.Parameter(torch.ones(1))")
    return None


@plants("save-overwritten")
def _(p: Patient) -> bool | None:
    if p.tensor is None or not p.model.saves or p.model.saves[0].method.name != "forward":
        return False
    statement = p.forward.statement(p.model.saves[0].node)
    if statement is None or {ast.unparse(e) for e in p.model.saves[0].exprs} <= {p.tensor}:
        return False  # the same again is forgotten by nobody
    p.after(statement, f"{p.forward.ctx}.save_for_backward({p.tensor})")
    return None


@plants("intermediate-saved")
def _(p: Patient) -> bool | None:
    if p.tensor is None or p.model.once_differentiable or len(p.model.saves) != 1:
        return False
    save = p.model.saves[0]
    mine = [e for e in save.exprs if isinstance(e, ast.Name) and e.id == p.tensor]
    statement = p.forward.statement(save.node)
    if not mine or save.method.name != "forward" or statement is None:
        return False
    if not calculates_with(p, p.tensor):
        return False  # what only a kernel reads has no second derivative to spoil
    p.swap(mine[0], "doubled")
    p.lines.insert(statement.lineno - 1, " " * statement.col_offset + f"doubled = {p.tensor} * 2")
    return None


@plants("opaque-backward")
def _(p: Patient) -> bool | None:
    if p.model.once_differentiable or "enable_grad" in ast.unparse(p.backward.node):
        return False  # a backward that reruns forward detaches in any case
    p.inside(p.backward, f"{p.grad} = torch.from_numpy({p.grad}.detach().cpu().numpy() * 2)")
    return None


@plants("none-for-tensor")
def _(p: Patient) -> bool | None:
    value = returned_tuple(p)
    index = next((i for i, x in enumerate(p.forward.params) if x.name == p.tensor), None)
    if value is None or index is None or index >= len(value.elts) or ast.unparse(value.elts[index]) == "None":
        return False
    sure = p.forward.params[index].annotation
    if sure is None or "Tensor" not in ast.unparse(sure):
        return False
    p.swap(value.elts[index], "None")
    return None


@plants("data-attr")
def _(p: Patient) -> bool | None:
    found = saved_name(p)
    if found is None:
        return False
    p.after(found[0], f"{found[1]}.data.mul_(2)")
    return None


@plants("random-backward")
def _(p: Patient) -> bool | None:
    p.inside(p.backward, f"{p.grad} = {p.grad} * torch.rand_like({p.grad})")


@plants("class-state")
def _(p: Patient) -> bool | None:
    if p.tensor is None or p.backward.node.lineno < p.forward.node.lineno:
        return False
    p.inside(p.backward, f"{p.grad} = {p.grad} * {p.model.name}.kept")  # the later place first: lines move
    p.inside(p.forward, f"{p.model.name}.kept = {p.tensor}")
    return None


@plants("requires-grad-read")
def _(p: Patient) -> bool | None:
    if p.forward.ctx is None:
        return False
    p.inside(p.forward, f"{p.forward.ctx}.tracked = torch.is_grad_enabled()")
    return None


@plants("creation-no-device")
def _(p: Patient) -> bool | None:
    p.inside(p.backward, f"{p.grad} = {p.grad} + torch.zeros({p.grad}.shape[-1])")


@plants("grad-view")
def _(p: Patient) -> bool | None:
    if len(p.backward.node.decorator_list) > 1:
        return False  # @ensure_contiguous, @input_guard: the gradient arrives contiguous
    p.inside(p.backward, f"{p.grad} = {p.grad}.view(-1).view({p.grad}.shape)")
    return None


@plants("tensor-on-ctx")
def _(p: Patient) -> bool | None:
    if p.tensor is None or p.forward.ctx is None or p.backward.node.lineno < p.forward.node.lineno:
        return False
    p.inside(p.backward, f"{p.grad} = {p.grad} * {p.backward.ctx}.kept")
    p.inside(p.forward, f"{p.forward.ctx}.kept = {p.tensor}")
    return None


@plants("unused-save")
def _(p: Patient) -> bool | None:
    found = saved_name(p)
    if found is None or p.tensor is None or p.model.saves[0].method.name != "forward":
        return False
    others = [x.name for x in p.forward.params if x.name not in map(ast.unparse, p.model.saves[0].exprs)]
    fresh = f"{p.tensor}.detach()" if not others else None
    if fresh is None:
        return False
    target = found[0].targets[0]
    p.swap(target, ", ".join([*(ast.unparse(e) for e in target.elts), "never_read"]))  # type: ignore[attr-defined]
    save = p.model.saves[0]
    p.swap(save.exprs[-1], f"{ast.unparse(save.exprs[-1])}, {fresh}")
    return None


@plants("saved-twice")
def _(p: Patient) -> bool | None:
    found = saved_name(p)
    save = p.model.saves[0] if p.model.saves else None
    if found is None or save is None or save.method.name != "forward" or p.tensor is None:
        return False
    target = found[0].targets[0]
    p.swap(target, ", ".join([*(ast.unparse(e) for e in target.elts), "again"]))  # type: ignore[attr-defined]
    p.swap(save.exprs[-1], f"{ast.unparse(save.exprs[-1])}, {p.tensor}")
    return None


@plants("host-sync")
def _(p: Patient) -> bool | None:
    p.inside(p.backward, f"largest = {p.grad}.abs().max().item()")


@plants("element-loop")
def _(p: Patient) -> bool | None:
    code = (
        f"rows = []\nfor i in range({p.grad}.shape[0]):\n    rows.append({p.grad}[i] * 2)\n{p.grad} = torch.stack(rows)"
    )
    p.inside(p.backward, code)


@plants("repeated-unpack")
def _(p: Patient) -> bool | None:
    if not p.model.unpacks or not p.model.saves:
        return False
    p.inside(p.backward, f"first = {p.backward.ctx}.saved_tensors[0]\nagain = {p.backward.ctx}.saved_tensors[0]")
    return None


@plants("missing-apply")
def _(p: Patient) -> bool | None:
    if "." in p.model.qualname:
        return False
    p.append(f"def planted_use(x):\n    return {p.model.name}()(x)")
    return None


@plants("ctx-signature")
def _(p: Patient) -> bool | None:
    if p.model.setup_context is not None or p.forward.ctx is None:
        return False
    p.method("@staticmethod\ndef setup_context(ctx, inputs, output):\n    ctx.shape = inputs[0].shape")
    return None


@plants("gradcheck-float32")
def _(p: Patient) -> bool | None:
    p.append(
        _test(
            p,
            "x = torch.randn(3, dtype=torch.float32, requires_grad=True)\nassert torch.autograd.gradcheck({apply}, (x,))",
        )
    )


@plants("gradcheck-unused")
def _(p: Patient) -> bool | None:
    call = "torch.autograd.gradcheck({apply}, (x,), raise_exception=False)"
    p.append(_test(p, f"x = torch.randn(3, dtype=torch.float64, requires_grad=True)\n{call}"))


@plants("gradcheck-nothing")
def _(p: Patient) -> bool | None:
    p.append(_test(p, "x = torch.randn(3, dtype=torch.float64)\nassert torch.autograd.gradcheck({apply}, (x,))"))


@plants("gradcheck-swallowed")
def _(p: Patient) -> bool | None:
    x = "x = torch.randn(3, dtype=torch.float64, requires_grad=True)"
    p.append(_test(p, f"{x}\ntry:\n    torch.autograd.gradcheck({{apply}}, (x,))\nexcept Exception:\n    pass"))


@plants("time-index")
def _(p: Patient) -> bool | None:
    loop = "outs = []\nfor t in range(x.shape[0]):\n    h = torch.tanh(self.w(h) + x[t])\n    outs.append(h)\nreturn torch.stack(outs)"
    p.append(_layer(loop))


@plants("cat-in-loop")
def _(p: Patient) -> bool | None:
    loop = "out = h.new_empty(0, h.shape[-1])\nfor x_t in x.unbind(0):\n    h = torch.tanh(self.w(h) + x_t)\n"
    p.append(_layer(loop + "    out = torch.cat([out, h])\nreturn out"))


@plants("unbound-gradient")
def _(p: Patient) -> bool | None:
    value = returned_tuple(p)
    for index, name in enumerate(value.elts if value is not None else ()):
        bound = [n for n in p.backward.nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        here = [n for n in bound if isinstance(name, ast.Name) and n.id == name.id]
        reads = [n for n in p.backward.nodes if isinstance(n, ast.Name) and n.id == getattr(name, "id", "")]
        statement = p.backward.statement(here[0]) if len(here) == 1 and len(reads) == 2 else None
        if isinstance(statement, ast.Assign) and statement in p.backward.node.body and statement.targets == here:
            p.indent(statement, f"if {p.backward.ctx}.needs_input_grad[{index}]:")
            return None
    return False


@plants("missing-ctx-attribute")
def _(p: Patient) -> bool | None:
    top = [w for w in p.forward.context.writes if w.statement in p.forward.node.body]
    names = [w.attr for w in p.forward.context.writes]
    read = {
        r.attr
        for r in p.backward.context.reads
        if not p.backward.guards(r.node) and isinstance(r.node, ast.Attribute) and not _is_chosen(p.backward, r.node)
    }
    found = [w for w in top if w.attr in read and names.count(w.attr) == 1 and isinstance(w.statement, ast.Assign)]
    if p.tensor is None or not found:
        return False
    p.indent(found[0].statement, f"if {p.tensor}.numel() > 0:")
    return None


@plants("accumulated-grad")
def _(p: Patient) -> bool | None:
    found, value = saved_name(p), returned_tuple(p)
    if found is None or value is None or "grad" in ast.unparse(value.elts[0]):
        return False
    p.swap(value.elts[0], f"{found[1]}.grad")
    p.after(found[0], f"with torch.enable_grad():\n    ({found[1]} * {found[1]}).sum().backward()")
    return None


@plants("ignored-second-output")
def _(p: Patient) -> bool | None:
    returns, output = p.forward.returns, p.forward.returns[0].value if p.forward.returns else None
    plain = len(returns) == 1 and output is not None and not isinstance(output, (ast.Tuple, ast.Starred))
    unknown = returns[0].elements is None if returns else True
    if not plain or unknown or p.tensor is None or len(p.backward.params) != 1 or p.model.marks:
        return False
    if p.model.methods["forward"].node.lineno > p.backward.node.lineno:
        return False
    extra = random.Random(p.model.name).choice([f"{p.tensor} * 2", f"{p.tensor}.exp()", f"torch.tanh({p.tensor})"])
    p.swap(p.backward.params[0].node, f"{ast.unparse(p.backward.params[0].node)}, grad_extra")
    p.swap(output, f"{ast.unparse(output)}, {extra}")  # type: ignore[arg-type]
    return None


@plants("item-in-forward")
def _(p: Patient) -> bool | None:
    scales = ["h.abs().max().item()", "torch.norm(h).item()", "self.w(x).mean().item()"]
    p.append(_layer(f"h = self.w(x + h)\nscale = {random.Random(p.model.name).choice(scales)}\nreturn h / scale"))


@plants("squeeze-all")
def _(p: Patient) -> bool | None:
    value = returned_tuple(p)
    names = [e for e in value.elts if isinstance(e, ast.Name)] if value is not None else []
    if not names:
        return False
    forms = ["{}.sum(0, keepdim=True).squeeze()", "torch.squeeze({}.mean(dim=-1, keepdim=True))"]
    p.swap(names[0], random.Random(p.model.name).choice(forms).format(names[0].id))
    return None


@plants("kept-in-module")
def _(p: Patient) -> bool | None:
    if "." in p.model.qualname:
        return False
    kept = random.Random(p.model.name).choice(["_KEPT.append({0})", "_KEPT_BY_KEY[id({0})] = {0}"])
    p.append("_KEPT = []\n_KEPT_BY_KEY = {}")
    p.inside(p.backward, kept.format(p.grad))
    return None


@plants("batch-first-mismatch")
def _(p: Patient) -> bool | None:
    first, read = random.Random(p.model.name).choice([("", "out[:, -1]"), (", batch_first=True", "out[-1]")])
    init = f"def __init__(self):\n    super().__init__()\n    self.rnn = torch.nn.LSTM(4, 4{first})\n\n"
    body = f"def forward(self, x):\n    out, _ = self.rnn(x)\n    return {read}"
    p.append("class Planted(torch.nn.Module):\n" + textwrap.indent(init + body, "    "))


def _is_chosen(method: Method, node: ast.AST) -> bool:
    return any(isinstance(parent, (ast.IfExp, ast.BoolOp, ast.Try)) for parent in method.ancestors(node))


def _test(p: Patient, body: str) -> str:
    return "def test_planted():\n" + textwrap.indent(body.replace("{apply}", f"{p.model.name}.apply"), "    ")


def _layer(body: str) -> str:
    init = "    def __init__(self):\n        super().__init__()\n        self.w = torch.nn.Linear(4, 4)\n\n"
    return f"class Planted(torch.nn.Module):\n{init}    def forward(self, x, h):\n" + textwrap.indent(body, " " * 8)


def patients() -> list[Patient]:
    """Functions of the survey with a plain forward and backward of their own, about which lint has nothing to say."""
    found = []
    for folder in folders().values():
        sources = [s for s in scan.read_all([folder]) if isinstance(s, scan.SourceFile) and scan.known(s.data).function]
        files = [FileModel(s.path, decoded(s.data)) for s in sources if b"import torch\n" in s.data]
        project.load(files, files)
        for file in files:
            loud = {f.function for f in gs.lint_source(file.text, file.path).at_least("warning")}
            # One file is linted alone: a class that only another file shows to be a Function is not seen in it.
            alone = [m for m in file.functions if all(base.file is file for base in m.bases)]
            found += [Patient(m) for m in alone if m.qualname not in loud and _is_plain(m)]
    return found


def _is_plain(model: FunctionModel) -> bool:
    if model.kind != "function" or not {"forward", "backward"} <= model.methods.keys() or not model.has_gradient:
        return False
    backward = model.methods["backward"]
    return bool(backward.params) and backward.params[0].kind == "positional" and backward.ctx is not None


def planted(patient: Patient, rule: str) -> str | None:
    """The file with the defect in it; None where it does not fit, or breaks the file."""
    patient.lines = list(patient.model.file.lines)
    if PLANTERS[rule](patient) is False:
        return None
    text = "\n".join(patient.lines)
    try:
        ast.parse(text)
    except SyntaxError:
        return None
    return text


def plantings(clean: list[Patient], seed: int, count: int) -> Iterator[tuple[str, Patient, str]]:
    """`count` defects, one kind after the other: the rule, the Function it goes into, and the file with the defect in it."""
    draw = random.Random(seed)
    rules = sorted(PLANTERS)
    draw.shuffle(rules)
    done = 0
    for turn in range(count * 3):
        rule = rules[turn % len(rules)]
        for patient in draw.sample(clean, len(clean)):
            text = planted(patient, rule)
            if text is not None:
                yield rule, patient, text
                done += 1
                break
        if done == count:
            return


def found_in(text: str, path: str, rule: str) -> int:
    report = gs.lint_source(text, path)
    return sum(f.rule == rule or any(s.rule == rule for s in f.symptoms) for f in report.findings)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--misses", action="store_true", help="say where a defect was missed")
    options = parser.parse_args()
    clean = patients()
    hits: dict[str, list[bool]] = defaultdict(list)
    for rule, patient, text in plantings(clean, options.seed, options.count):
        file = patient.model.file
        hit = found_in(text, file.path, rule) > found_in(file.text, file.path, rule)
        hits[rule].append(hit)
        if not hit and options.misses:
            print(f"missed {rule} in {Path(file.path).name}::{patient.model.qualname}")
    done = sum(map(len, hits.values()))
    total = sum(map(sum, hits.values()))
    print(f"{len(clean)} clean Functions, {done} defects of {len(hits)} kinds (seed {options.seed}): {total} found")
    print("  " + ", ".join(f"{rule} {sum(seen)}/{len(seen)}" for rule, seen in sorted(hits.items())))
    sys.exit(0 if total >= 0.95 * done else 1)


if __name__ == "__main__":
    main()
