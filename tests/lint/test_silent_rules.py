"""Source lenses of the family silent: the defects in the clothes users give them, and the idioms that are right."""

from __future__ import annotations

import textwrap

import pytest

from gradsmith.findings import Finding
from gradsmith.linting import lint_source
from gradsmith.source.edits import apply


def in_file(text: str, rule: str) -> list[Finding]:
    report = lint_source(text, select=[rule], debug=True)
    assert report.skipped == []
    return report.findings


def fn(forward: str, backward: str, inputs: str = "x", grads: str = "g", above: str = "") -> str:
    def lines(text: str) -> str:
        return textwrap.indent(textwrap.dedent(text).strip("\n"), " " * 8)

    return (
        f"import numpy as np\nimport torch\nfrom torch import nn\n\n{above}\n\nclass Fn(torch.autograd.Function):\n"
        f"    @staticmethod\n    def forward(ctx, {inputs}):\n{lines(forward)}\n\n"
        f"    @staticmethod\n    def backward(ctx, {grads}):\n{lines(backward)}\n"
    )


SAVED = "ctx.save_for_backward(x)\nreturn x * x"
CALLED = """
def over_ranks(t, group=None):
    if torch.distributed.get_world_size(group) == 1:
        return t
    torch.distributed.all_reduce(t, group=group)
    return t


def passed_on(t):
    return over_ranks(t)


def on_demand(t, inplace=False):
    return t.mul_(2) if inplace else t * 2


def of_a_copy(t):
    t = t.clone()
    t *= 2
    return t


@torch.library.custom_op("a::b", mutates_args=("t",))
def declared(t: torch.Tensor) -> None:
    t.mul_(2)
"""
DEFECTS = {
    "written through the array": (
        "inplace-saved",
        fn(SAVED, "(x,) = ctx.saved_tensors\nx.numpy()[0] = 0\nreturn g * x"),
    ),
    "the array scaled": (
        "inplace-saved",
        fn(SAVED, "(x,) = ctx.saved_tensors\na = np.asarray(x)\na *= 2\nreturn g * x"),
    ),
    "an array as out=": ("inplace-grad", fn(SAVED, "a = g.numpy()\nnp.multiply(a, 2, out=a)\nreturn g")),
    "copied into the array": ("inplace-grad", fn(SAVED, "np.copyto(g.numpy(), 0)\nreturn g")),
    "reduced by a function of the file": ("inplace-grad", fn(SAVED, "return over_ranks(g)", above=CALLED)),
    "by a function that a function calls": ("inplace-grad", fn(SAVED, "return passed_on(t=g)", above=CALLED)),
    "a saved tensor, by a function": (
        "inplace-saved",
        fn(SAVED, "(x,) = ctx.saved_tensors\nreturn g * over_ranks(x)", above=CALLED),
    ),
    "a list that grew": (
        "container-output",
        fn("out = []\nfor i in range(2):\n    out.append(x[i])\nreturn out", "return g"),
    ),
    "a dict": ("container-output", fn("return {'y': x * 2}", "return g * 2")),
    "a list inside the tuple": (
        "container-output",
        fn("y = x.exp()\nreturn y, [x.sin(), x.cos()]", "return g", grads="g, h"),
    ),
    "a list of gradients": ("container-input", fn("return sum(xs)", "return g, [g * 2, g]", "x, xs")),
    "a typed list beside a tensor": (
        "container-input",
        fn("return x * xs[0]", "return g, g * 2", "x, xs: tuple[torch.Tensor, ...]"),
    ),
    "requires_grad=True at the top": (
        "closure-tensor",
        fn("return x * w", "return g * w", above="w = torch.ones(3, requires_grad=True)"),
    ),
    "saved one by one": (
        "save-overwritten",
        fn("ctx.save_for_backward(x)\ny = x.exp()\nctx.save_for_backward(y)\nreturn y", "return g"),
    ),
    "marked one by one": (
        "save-overwritten",
        fn(
            "a, b = x > 0, x < 0\nctx.mark_non_differentiable(a)\nctx.mark_non_differentiable(b)\nreturn x, a, b",
            "return g",
            grads="g, h, i",
        ),
    ),
    "a detached grad_output": ("opaque-backward", fn(SAVED, "(x,) = ctx.saved_tensors\nreturn 2 * x * g.detach()")),
    "a flag of something computed": (
        "requires-grad-read",
        fn("y = x * 2\nctx.train = y.requires_grad\nreturn y", "return g * 2 if ctx.train else None"),
    ),
    "gradients are never on": (
        "requires-grad-read",
        fn("if torch.is_grad_enabled():\n    ctx.save_for_backward(x)\nreturn x * x", "return g"),
    ),
    "a flag of a saved copy": (
        "requires-grad-read",
        fn(
            "x = x.reshape(-1)\nctx.save_for_backward(x)\nreturn x * x",
            "(x,) = ctx.saved_tensors\nreturn g * 2 * x if x.requires_grad else None",
        ),
    ),
    "a saved tensor by index": ("inplace-saved", fn(SAVED, "x = ctx.saved_tensors[0]\nx *= 2\nreturn g * x")),
    "a saved tensor as out": ("inplace-saved", fn(SAVED, "(x,) = ctx.saved_tensors\nreturn torch.mul(g, x, out=x)")),
    "a slice of the input": ("inplace-input", fn("x[0] = 0\nreturn x * 2", "return g * 2")),
    "an input whose maximum was taken": (
        "inplace-input",
        fn("top, _ = x.max(-1, keepdim=True)\nx -= top\nreturn x.exp()", "return g"),
    ),
    "a collective on grad_output": ("inplace-grad", fn("return x", "torch.distributed.all_reduce(g)\nreturn g")),
    "augmented input": ("inplace-input", fn("x = x.view(-1)\nx += 1\nreturn x * 2", "return g * 2")),
    "a class attribute": (
        "class-state",
        fn("Fn.scale = scale\nreturn x * scale", "return g * Fn.scale, None", "x, scale"),
    ),
    "a global": (
        "class-state",
        fn("global last\nlast = x.exp()\nreturn last * 1", "return g * last", above="last = None"),
    ),
    "dropout again": (
        "random-backward",
        fn("return nn.functional.dropout(x)", "return nn.functional.dropout(g)"),
    ),
    "a loss without grad_output": (
        "ignored-grad-output",
        fn("ctx.save_for_backward(x)\nreturn x.square().sum()", "(x,) = ctx.saved_tensors\nreturn 2 * x"),
    ),
    "a gradient computed and thrown away": (
        "none-for-tensor",
        fn(
            "ctx.save_for_backward(x, k)\nreturn x * k",
            "x, k = ctx.saved_tensors\ndx, dk = g * k, g * x\ndk = dk * 1\nreturn dx, None",
            "x, k",
        ),
    ),
    "a typed module": ("hidden-parameter", fn("return layer(x)", "return g, None", "x, layer: nn.Module")),
}

RIGHT = {
    "an array of its own": (
        "inplace-saved",
        fn(SAVED, "(x,) = ctx.saved_tensors\na = x.numpy().copy()\na *= 2\na[0] = 1\nreturn g * torch.from_numpy(a)"),
    ),
    "an array that was computed": (
        "inplace-grad",
        fn(SAVED, "a = g.numpy() * 2\na.sort()\nreturn torch.from_numpy(a)"),
    ),
    "a function writes where it is asked to": ("inplace-grad", fn(SAVED, "return on_demand(g)", above=CALLED)),
    "a function writes into its own copy": ("inplace-grad", fn(SAVED, "return of_a_copy(g)", above=CALLED)),
    "a copy is reduced": ("inplace-grad", fn(SAVED, "return over_ranks(g.clone())", above=CALLED)),
    "an operator that declares what it writes": (
        "inplace-saved",
        fn(SAVED, "(x,) = ctx.saved_tensors\ndeclared(x)\nreturn g", above=CALLED),
    ),
    "a tuple": ("container-output", fn("parts = x.unbind(0)\nreturn tuple(parts)", "return torch.stack(gs)", grads="*gs")),
    "a list of numbers in the tuple": ("container-output", fn("return x * 2, [1, 2]", "return g * 2", grads="g, h")),
    "indices in a list": ("container-input", fn("return x * 2", "return g * 2, None", "x, masks: list[torch.Tensor]")),
    "a constant at the top": (
        "closure-tensor",
        fn("return x * w", "return g * w", above="w = torch.ones(3)"),
    ),
    "filled in by backward": (
        "closure-tensor",
        fn("return x * w", "w.grad = g\nreturn g * w", above="w = nn.Parameter(torch.ones(3))"),
    ),
    "one save per branch": (
        "save-overwritten",
        fn("if b is None:\n    ctx.save_for_backward(x)\nelse:\n    ctx.save_for_backward(x, b)\nreturn x", "return g, g", "x, b"),
    ),
    "saved again with more": (
        "save-overwritten",
        fn("ctx.save_for_backward(x)\ny = x.exp()\nctx.save_for_backward(x, y)\nreturn y", "return g"),
    ),
    "detached for a log": ("opaque-backward", fn(SAVED, "(x,) = ctx.saved_tensors\nlog(g.detach())\nreturn 2 * x * g")),
    "recomputed": (
        "opaque-backward",
        fn(
            SAVED,
            """
            x = ctx.saved_tensors[0].detach().requires_grad_()
            with torch.enable_grad():
                y = x * x
            return torch.autograd.grad(y, x, g.detach())[0]
            """,
        ),
    ),
    "a stand-in needs no gradient": (
        "requires-grad-read",
        fn("if b is None:\n    b = torch.zeros(3)\nctx.t = b.requires_grad\nreturn x + b", "return g, g if ctx.t else None", "x, b"),
    ),
    "create_graph is asked for": ("requires-grad-read", fn(SAVED, "return g * 2 if g.requires_grad else g")),
    "a cloned saved tensor": ("inplace-saved", fn(SAVED, "x = ctx.saved_tensors[0].clone()\nx *= 2\nreturn g * x")),
    "a mask computed anew": ("inplace-saved", fn(SAVED, "(x,) = ctx.saved_tensors\nx = x * 2\nx.mul_(g)\nreturn x")),
    "a number that is counted up": ("inplace-input", fn("n += 1\nreturn x * n", "return g, None", "x, n")),
    "marked dirty": ("inplace-input", fn("x.mul_(2)\nctx.mark_dirty(x)\nreturn x", "return g * 2")),
    "output += bias": ("inplace-input", fn("out = x * 2\nout += 1\nreturn out", "return g * 2")),
    "running statistics": (
        "inplace-input",
        fn("mean.mul_(0.9)\nreturn x * 2", "return g * 2, None", "x, mean"),
    ),
    "a cache made once": (
        "class-state",
        fn("if Fn.table is None:\n    Fn.table = make(x.device)\nreturn x * 2", "return g * Fn.table"),
    ),
    "a counter": ("class-state", fn("Fn.calls = 0\nreturn x * 2", "return g * 2 + Fn.calls")),
    "the generator is restored": (
        "random-backward",
        fn("ctx.state = torch.get_rng_state()\nreturn x * torch.rand_like(x)", "torch.set_rng_state(ctx.rng_state)\nreturn g * torch.rand_like(g)"),
    ),
    "gradients are stopped": ("ignored-grad-output", fn("return x * 2", "return None")),
    "zeros on purpose": ("ignored-grad-output", fn("ctx.shape = x.shape\nreturn x > 0", "return torch.zeros(ctx.shape)")),
    "said to be unused": ("ignored-grad-output", fn("return x * 2", "return ctx.arrived", grads="*unused")),
    "a gradient that is read": (
        "none-for-tensor",
        fn("ctx.save_for_backward(x)\nreturn x * k", "dk = g * 2\ndx = dk + g\nreturn dx, None", "x, k"),
    ),
    "a gradient on one path": (
        "none-for-tensor",
        fn("return x * k", "dk = None\nif ctx.flag:\n    dk = g * 2\nreturn g, dk", "x, k"),
    ),
    "no gradient was meant": ("none-for-tensor", fn("return x * k", "dx, dk = g * 2, None\nreturn dx, None", "x, k")),
    "a function is no module": ("hidden-parameter", fn("return act(x)", "return g, None", "x, act")),
    "recomputation reaches the parameters": (
        "hidden-parameter",
        fn("return layer(x)", "torch.autograd.backward(ctx.layer(x), g)\nreturn g, None", "x, layer: nn.Module"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("rule", "text"), DEFECTS.values(), ids=DEFECTS.keys())
def test_a_defect_is_named(rule: str, text: str) -> None:
    assert {f.rule for f in in_file(text, rule) if f.severity != "info"} == {rule}


@pytest.mark.parametrize(("rule", "text"), RIGHT.values(), ids=RIGHT.keys())
def test_a_right_idiom_is_left_alone(rule: str, text: str) -> None:
    assert [f.message for f in in_file(text, rule) if f.severity != "info"] == []


FILES = {
    "retain-graph": {
        "def f(x):\n    loss = x.sum()\n    loss.backward()\n    loss.backward()\n": 1,
        "def f(x):\n    loss = x.sum()\n    loss.backward(retain_graph=True)\n    loss.backward()\n": 0,
        "def f(x):\n    loss = x.sum()\n    loss.backward()\n    loss = x.mean()\n    loss.backward()\n": 0,
        "def f(x, late):\n    loss = x.sum()\n    if late:\n        loss.backward()\n    else:\n        loss.backward()\n": 0,
        "def f(robot):\n    robot = make()\n    robot.backward()\n    robot.backward()\n": 0,
        "def f(x, w):\n    h = torch.tanh(x @ w)\n    a = h.sum()\n    b = h.mean()\n    a.backward()\n    b.backward()\n": 1,
        "def f(x, w):\n    h = torch.tanh(x @ w)\n    a = h.sum()\n    b = h.detach().mean()\n    a.backward()\n    b.backward()\n": 0,
        "def f(x, w):\n    a = (x @ w).sum()\n    b = (x @ w).mean()\n    a.backward()\n    b.backward()\n": 0,
    },
    "inplace-hook": {
        "x.register_hook(lambda g: g.clamp_(-1, 1))\n": 1,
        "def hook(g):\n    g *= 2\n\n\nx.register_hook(hook)\n": 1,
        "def hook(g):\n    g = g.clone()\n    g *= 2\n    return g\n\n\nx.register_hook(hook)\n": 0,
        "x.register_hook(lambda g: g.clamp(-1, 1))\n": 0,
        "p.register_post_accumulate_grad_hook(lambda p: p.grad.mul_(2))\n": 0,
    },
    "dropped-hook": {
        "class M(torch.nn.Module):\n    def forward(self, x):\n        self.a.register_forward_hook(h)\n        return self.a(x)\n": 1,
        "class M(torch.nn.Module):\n    def forward(self, x):\n        self.h = self.a.register_forward_hook(h)\n        return self.a(x)\n": 0,
        "class M(torch.nn.Module):\n    def forward(self, x):\n        if not self.done:\n            self.a.register_forward_hook(h)\n        return self.a(x)\n": 0,
        "class M(torch.nn.Module):\n    def forward(self, x):\n        y = self.a(x)\n        y.register_hook(h)\n        return y\n": 0,
    },
    "graph-cut": {
        "class M(torch.nn.Module):\n    def forward(self, x):\n        h = self.a(x)\n        c = np.tanh(h.detach().cpu().numpy())\n        return h * torch.from_numpy(c)\n": 1,
        "class M(torch.nn.Module):\n    def forward(self, x):\n        h = self.a(x)\n        i = np.argmax(h.detach().numpy())\n        return h * torch.tensor(i)\n": 0,
        "class M(torch.nn.Module):\n    def forward(self, x):\n        return torch.from_numpy(np.log(x.numpy()))\n": 0,
        "class M(torch.nn.Module):\n    @torch.no_grad()\n    def forward(self, x):\n        h = self.a(x)\n        return torch.from_numpy(h.numpy())\n": 0,
        "def step(loss):\n    loss = torch.tensor(loss.item(), requires_grad=True)\n    loss.backward()\n": 1,
        "def start(v):\n    return torch.tensor(v.item(), requires_grad=True)\n": 0,
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "text", "count"), [(rule, text, n) for rule, texts in FILES.items() for text, n in texts.items()]
)
def test_whole_files(rule: str, text: str, count: int) -> None:
    assert len(in_file("import numpy as np\nimport torch\n\n\n" + text, rule)) == count


def test_a_closure_of_a_factory_and_of_a_module() -> None:
    inner = textwrap.indent(fn("return x * w", "return g * w").partition("\n\n\n")[2], "    ")
    factory = f"import torch\n\n\ndef make():\n    w = torch.nn.Parameter(torch.ones(3))\n\n{inner}\n    return Fn\n"
    assert [f.argument for f in in_file(factory, "closure-tensor")] == ["w"]
    constant = factory.replace("torch.nn.Parameter(torch.ones(3))", "torch.ones(3)")
    assert in_file(constant, "closure-tensor") == []


@pytest.mark.parametrize(
    ("returned", "mended"),
    [("[a, b]", "(a, b)"), ("[a]", "(a,)"), ("[t * 2 for t in (a, b)]", "tuple([t * 2 for t in (a, b)])")],
)
def test_lists_become_tuples(returned: str, mended: str) -> None:
    text = fn(f"a, b = x.exp(), x.sin()\nreturn {returned}", "return g", grads="*g")
    edits = [e for f in in_file(text, "container-output") for e in f.edits]
    assert f"return {mended}\n" in apply(text, edits)
