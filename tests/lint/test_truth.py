"""What lint must know before it speaks: which file a name comes from, what is a launch, what is a tensor, what ever runs."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from gradsmith import lint, lint_source

HEAD = "import torch\nfrom torch.autograd import Function\n"


def found(text: str, least: str = "warning") -> list[str]:
    """The rules that have something to say about a text."""
    return [f.rule for f in lint_source(HEAD + dedent(text)).at_least(least)]


def function(forward: str, backward: str = "return grad_output", arguments: str = "x", around: str = "") -> str:
    """A file with one Function, of these bodies."""
    bodies = [("forward", arguments, forward), ("backward", "grad_output", backward)]
    methods = "".join(
        f"    @staticmethod\n    def {name}(ctx, {given}):\n"
        + "".join(f"        {line}\n" for line in dedent(body).strip().splitlines())
        for name, given, body in bodies
    )
    return f"{dedent(around)}\nclass Op(Function):\n{methods}"


def project(folder: Path, **files: str) -> list[tuple[str, str]]:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(HEAD + text)
    return [(Path(f.path or "").stem, f.rule) for f in lint(folder).at_least("warning")]


TWO = "class Base(Function):\n    @staticmethod\n    def forward(ctx, x, y):\n        return x * 1\n"
THREE = TWO.replace("x, y", "x, y, z")
SUB = "class Sub(Base):\n    @staticmethod\n    def backward(ctx, grad_output):\n        return grad_output, None\n"


@pytest.mark.parametrize(
    ("imported", "wrong"),
    [
        ("from two import Base\n", []),
        ("from three import Base\n", [("sub", "return-count")]),
        ("from two import Base\nfrom three import Base as Other\n", []),
        ("from two import Base as Other\nfrom three import Base\n", [("sub", "return-count")]),
    ],
)
def test_a_base_class_is_the_one_that_is_imported(tmp_path: Path, imported: str, wrong: list[tuple[str, str]]) -> None:
    assert project(tmp_path, two=TWO, three=THREE, sub=imported + SUB) == wrong


def test_a_base_class_is_known_by_the_name_it_has_at_home(tmp_path: Path) -> None:
    sub = "from three import Base as Other\n" + SUB.replace("(Base)", "(Other)")
    assert project(tmp_path, two=TWO, three=THREE, sub=sub) == [("sub", "return-count")]


def test_a_base_class_that_is_imported_from_elsewhere_is_unknown(tmp_path: Path) -> None:
    assert project(tmp_path, three=THREE, sub="from elsewhere import Base\n" + SUB) == []


def test_a_setup_context_that_stands_elsewhere_may_have_saved_anything() -> None:
    text = """
    from elsewhere import keep

    class Op(Function):
        @staticmethod
        def forward(x, y):
            return x * y
        setup_context = keep
        @staticmethod
        def backward(ctx, grad_output):
            x, y = ctx.saved_tensors
            return grad_output * y, grad_output * x * ctx.scale
    """
    assert found(text) == []


def test_a_function_out_of_a_dict_is_no_kernel_launch() -> None:
    table = "TABLE = {'relu': torch.relu, 'tanh': torch.tanh}\n"
    launched = function("return x * 1", "return TABLE[ctx.mode](grad_output)", around=table)
    assert "kernel-noncontiguous" not in found(launched, "info")


def test_a_dict_is_no_tensor() -> None:
    kept = function(
        "ctx.options = options\nreturn x * options['scale']",
        "return grad_output * ctx.options['scale'], None",
        "x, options",
    )
    assert found(kept) == []


def test_a_class_that_only_holds_functions_together_is_left_alone() -> None:
    held = function("return x * 1", "grad_output.mul_(2)\nreturn grad_output")
    assert found(held) == ["inplace-grad"]
    assert found(held + "\ndef double(x):\n    return Op.forward({}, x), Op.backward({}, x)\n") == []


def test_a_base_whose_methods_are_called_by_a_class_of_another_file_is_no_such_holder(tmp_path: Path) -> None:
    base = function("return x * 1", "grad_output.mul_(2)\nreturn grad_output")
    calls = "        return Op.forward(ctx, x)\n"
    derived = f"from ops import Op\n\n\nclass Sub(Op):\n    @staticmethod\n    def forward(ctx, x):\n{calls}"
    assert project(tmp_path, ops=base, sub=derived) == [("ops", "inplace-grad")]


def test_a_branch_for_old_releases_is_dead_code() -> None:
    text = """
    if torch.__version__ < "1.6":
        class Op(Function):
            @staticmethod
            def forward(ctx, x):
                return x * 1
            @staticmethod
            def backward(ctx, grad_output):
                return grad_output.mul_(2)
    """
    assert found(text) == []
    assert found(text.replace("<", ">=")) == ["inplace-grad"]


PARTS = "import packaging.version\nMAJOR, MINOR = map(int, torch.__version__.split('.')[:2])\nV = packaging.version.parse(torch.__version__)\n"


@pytest.mark.parametrize(
    "test",
    [
        "MAJOR < 1",
        "MAJOR == 1 and MINOR < 8",
        "MAJOR <= 1",
        "V < packaging.version.parse('2.0')",
        "torch.__version__.startswith(('0.', '1.5'))",
        "torch.__version__ == '1.0.0'",
        "hasattr(torch, 'new') and not V >= packaging.version.parse('1.8')",
    ],
)
def test_only_a_branch_that_no_supported_release_takes_is_dead(test: str) -> None:
    old = function("return x * 1", f"if {test}:\n    return grad_output.mul_(2)\nreturn grad_output", around=PARTS)
    assert found(old) == []
    assert found(old.replace(test, f"not ({test})")) == ["inplace-grad"]
    assert found(old.replace(test, f"({test}) or ctx.other")) == ["inplace-grad"]


@pytest.mark.parametrize("test", ["MINOR < 8", "MAJOR <= 2", "V < packaging.version.parse('2.4')", "V == '2.0'"])
def test_a_branch_that_some_supported_release_takes_is_read(test: str) -> None:
    some = function("return x * 1", f"if {test}:\n    return grad_output.mul_(2)\nreturn grad_output", around=PARTS)
    assert found(some) == ["inplace-grad"]


def test_what_stands_behind_a_branch_that_always_returns_is_dead() -> None:
    behind = "if torch.__version__ >= '{}':\n    return grad_output\nreturn grad_output.mul_(2)"
    assert found(function("return x * 1", behind.format("1.8"))) == []
    assert found(function("return x * 1", behind.format("2.4"))) == ["inplace-grad"]


def test_an_input_that_gets_a_gradient_is_a_tensor_also_where_it_is_kept() -> None:
    kept = function("SEEN.append({})\nreturn x * scale", "return grad_output, None", "x, scale", around="SEEN = []\n")
    assert found(kept.format("x")) == ["kept-in-module"]
    assert found(kept.format("scale")) == []


def test_a_branch_that_asks_what_forward_always_sets_is_never_taken() -> None:
    kept = "ctx.empty = {}\nreturn x * 1"
    backward = "if ctx.empty:\n    return grad_output, grad_output, grad_output\nreturn grad_output"
    assert found(function(kept.format("False"), backward)) == []
    assert found(function(kept.format("True"), backward)) == ["return-count"]
    assert found(function(kept.format("x.numel() == 0"), backward)) == ["return-count"]


def test_continue_leaves_what_was_bound_before_it() -> None:
    loop = """
    for part in ctx.parts:
        grad = grad_output * part
        if part is None:
            continue
        grad = grad + 1
    return grad
    """
    assert found(function("ctx.parts = [1, 2]\nreturn x * 1", loop)) == []


EARLY = "{}\n    return x * 1\nctx.a = 1\nctx.b = 2\nctx.c = 3\nctx.d = 4\nreturn x * 2"
READS = "return grad_output * ctx.a * ctx.b * ctx.c * ctx.d{}"


def test_attributes_that_one_return_leaves_out_are_told_once() -> None:
    report = lint_source(HEAD + function(EARLY.format("if x.numel() == 0:"), READS.format("")))
    assert [f.rule for f in report.at_least("warning")] == ["missing-ctx-attribute"]
    assert "ctx.a, ctx.b and 2 more" in report.findings[0].message


@pytest.mark.parametrize(
    "early",
    [
        "if not x.requires_grad:",
        "if not any(ctx.needs_input_grad):",
        "if x.numel() == 0:\n    assert torch.is_inference_mode_enabled()",
        "if in_onnx_export():",
    ],
)
def test_a_return_after_which_no_backward_runs_leaves_nothing_out(early: str) -> None:
    assert "missing-ctx-attribute" not in found(function(EARLY.format(early), READS.format("")))


def test_a_flag_that_says_whether_there_is_a_backward_leaves_nothing_out() -> None:
    kept = "if {}:\n    ctx.scale = 2\nreturn x * 2"
    reads = "return grad_output * ctx.scale, None"
    assert found(function(kept.format("is_grad_enabled"), reads, "x, is_grad_enabled")) == []
    assert found(function(kept.format("training"), reads, "x, training")) == ["missing-ctx-attribute"]
    # Where nothing at all is kept without it, tensors included, its name does not matter.
    both = "if training:\n    ctx.save_for_backward(x)\n    ctx.scale = 2\nreturn x * 2"
    unpacks = "(x,) = ctx.saved_tensors\nreturn grad_output * ctx.scale * x, None"
    assert found(function(both, unpacks, "x, training")) == []
    asked = "wanted = any(ctx.needs_input_grad)\n" + kept.format("wanted")
    assert found(function(asked, "return grad_output * ctx.scale")) == []


@pytest.mark.parametrize(
    ("made", "rules"),
    [("x = x.contiguous()", ["requires-grad-read"]), ("x = gathered(x)[0]", []), ("x = xs[0]", [])],
)
def test_what_an_unknown_function_returns_may_be_the_tensor_itself(made: str, rules: list[str]) -> None:
    text = function(f"{made}\nctx.wanted = x.requires_grad\nreturn x * 2", "return grad_output * 2, None", "x, xs")
    assert found(text) == rules


def test_forward_without_apply_is_meant_by_who_knows_apply() -> None:
    op = function("return x * 1") + "\ndef run(x):\n    return Op.forward(None, x)\n"
    assert found(op) == ["missing-apply"]
    assert found(op + "\ndef train(x):\n    return Op.apply(x)\n") == []


def test_an_instance_that_the_script_calls_is_called_without_apply() -> None:
    assert found(function("return x * 1") + "\nop = Op()\ny = op(torch.ones(3))\n") == ["missing-apply"]
    assert found(function("return x * 1") + "\nop = Op()\ndef run(x):\n    return op(x)\n") == ["missing-apply"]
    assert found(function("return x * 1") + "\nop = Op()\ndef run(x, op):\n    return op(x)\n") == []


STATE = """
class Cell(torch.nn.Module):
    def forward(self, x):
        state = torch.zeros(x.shape[1], x.shape[2])
        for now in x.unbind(0):
            state = 0.9 * {} + now
        return state
"""


def test_a_state_that_is_moved_wherever_it_is_read_is_on_the_right_device() -> None:
    assert found(STATE.format("state")) == ["state-no-device"]
    assert found(STATE.format("state.to(x.device)")) == []


def test_a_saved_tensor_that_only_a_kernel_reads_has_no_second_derivative_to_spoil() -> None:
    kernel = "@pointwise\n@triton.jit\ndef slope(x, g):\n    return x * g\n"
    plain = kernel.partition("def ")[1] + kernel.partition("def ")[2]
    saved = "y = torch.sigmoid(x)\nctx.save_for_backward(y.clone())\nreturn y * 2"
    backward = "(y,) = ctx.saved_tensors\nreturn slope(y, grad_output)"
    assert found(function(saved, backward, around=plain)) == ["intermediate-saved"]
    assert found(function(saved, backward, around=kernel)) == []


def test_what_a_test_defines_may_be_odd_but_not_wrong() -> None:
    odd = function("return x * 1", "return grad_output * torch.rand_like(grad_output)")
    inside = "def test_op():\n" + "".join(f"    {line}\n" for line in odd.strip().splitlines())
    assert found(odd) == ["random-backward"]
    assert found(inside) == [] and "random-backward" in found(inside, "info")
    wrong = inside.replace("return grad_output * torch.rand_like(grad_output)", "return grad_output.mul_(2)")
    assert found(wrong) == ["inplace-grad"]


@pytest.mark.parametrize("told", [False, True])
def test_a_grad_output_is_none_only_where_pytorch_was_told_to_leave_it_so(told: bool) -> None:
    quiet = "ctx.set_materialize_grads(False)\n" if told else ""
    early = "if grad_output is None:\n    return None\nreturn grad_output, grad_output"
    text = function(f"{quiet}return x + y", early, "x, y")
    assert ("return-count" in found(text, "error")) is told
    assert "return-count" in found(text.replace("if grad_output is None", "if grad_output.ndim"), "error")


def _of_data(forward: str, backward: str) -> list[str]:
    text = function(forward, backward)
    return [f.message for f in lint_source(HEAD + text).findings if f.rule == "data-attr"]


@pytest.mark.parametrize("write", ["fill_(1.0)", "zero_()"])
def test_data_of_what_forward_has_made_itself_is_no_matter(write: str) -> None:
    assert not _of_data(
        f"y = x * 2\ntorch.diagonal(y).data.{write}\nctx.save_for_backward(x)\nreturn y", "return grad_output"
    )
    assert _of_data("return x.data.clone() + x.contiguous()", "return grad_output")


def test_data_that_backward_reads_is_missing_from_the_second_derivative_alone() -> None:
    read = "(x,) = ctx.saved_tensors\nreturn grad_output * x.data"
    (told,) = _of_data("ctx.save_for_backward(x)\nreturn x * x", read)
    assert "second derivative lacks" in told
    (told,) = _of_data("ctx.save_for_backward(x)\nreturn x * x", read.replace("x.data", "x.data.mul_(2)"))
    assert "somebody writes" in told


def test_data_in_a_backward_that_is_never_differentiated_is_no_matter() -> None:
    text = function(
        "ctx.save_for_backward(x)\nreturn x * x", "(x,) = ctx.saved_tensors\nreturn 2 * grad_output * x.data"
    )
    once = text.replace("    def backward", "    @torch.autograd.function.once_differentiable\n    def backward")
    assert "data-attr" in found(text) and "data-attr" not in found(once)


def test_data_that_becomes_an_array_at_once_is_no_matter() -> None:
    kept = "ctx.save_for_backward(x)\n{}\nreturn x * 1"
    assert found(function(kept.format("print(x.data.cpu().numpy()[0] * 255)"))) == []
    assert found(function(kept.format("print(x.data.cpu()[0] * 255)"))) == ["data-attr"]


def test_data_that_only_foreign_code_reads_is_no_matter() -> None:
    text = "import scipy.special\n" + function(
        "ctx.save_for_backward(x)\ny = x.data.cpu().numpy()\nreturn torch.from_numpy(scipy.special.ive(1, y))",
        "(x,) = ctx.saved_tensors\nreturn grad_output * x",
    )
    assert "data-attr" not in found(text)


def test_a_tensor_on_ctx_that_is_saved_too_is_not_changed_without_an_error() -> None:
    kept = "ctx.x = x\nctx.save_for_backward({})\nreturn x * y"
    reads = "(a,) = ctx.saved_tensors\nreturn grad_output * a, grad_output * ctx.x"
    assert found(function(kept.format("x"), reads, "x, y")) == []
    assert found(function(kept.format("y"), reads, "x, y")) == ["tensor-on-ctx"]


def test_a_tensor_on_ctx_of_which_only_the_shape_is_read_may_change() -> None:
    kept = "ctx.x = x\nreturn x * 1"
    assert found(function(kept, "return grad_output * ctx.x")) == ["tensor-on-ctx"]
    for read in ("torch.zeros_like(ctx.x)", "grad_output.reshape(ctx.x.shape)"):
        assert found(function(kept, f"return {read}" + (" + grad_output" if "zeros" in read else ""))) == []
    assert found(function(kept, "x = ctx.x\nreturn grad_output.expand(x.size(0), 3)")) == []


WRITE = "grad = grad_output if {} else torch.empty_like(grad_output)\nif {}:\n    grad.mul_(2)\nreturn grad, None"


@pytest.mark.parametrize(
    ("chosen", "written", "rules"),
    [
        ("ctx.reuse", "ctx.reuse", ["inplace-grad"]),
        ("ctx.reuse", "not ctx.reuse", []),
        ("ctx.reuse", "grad_output.dim() > 1 and not ctx.reuse", []),
        ("ctx.n is None", "ctx.n is not None", []),
        ("ctx.reuse", "ctx.other", ["inplace-grad"]),
    ],
)
def test_a_write_where_the_value_is_another_one_is_none(chosen: str, written: str, rules: list[str]) -> None:
    forward = "ctx.reuse, ctx.other, ctx.n = flag, flag, flag\nreturn x * 1"
    assert found(function(forward, WRITE.format(chosen, written), "x, flag")) == rules


def test_branches_of_different_rounds_do_not_exclude_each_other() -> None:
    loop = """
    grad = None
    for i in range(3):
        if i > 0:
            grad.mul_(2)
        else:
            grad = grad_output if ctx.n else grad_output.clone()
    return grad, None
    """
    assert found(function("ctx.n = n\nreturn x * 1", loop, "x, n")) == ["inplace-grad"]


def test_an_output_of_integers_has_no_gradient_to_ignore() -> None:
    made = "index = torch.zeros(3){}.to(x.device)\nreturn x * 2, index"
    backward = "def backward(ctx, grad_output, grad_index)"
    text = function(made.format(".type(torch.IntTensor)"), "return grad_output * 2")
    assert found(text.replace("def backward(ctx, grad_output)", backward)) == []


MODULE = """
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)

    def forward(self, x):
        hidden = self.linear(x)
        {}
"""


@pytest.mark.parametrize(
    ("ending", "wrong"),
    [
        ("return hidden / hidden.norm().item()", True),
        ("scale = hidden.norm().item()\n        return hidden / scale, scale", True),
        ("return hidden, hidden.norm().item()", False),
        ("shown = hidden.norm().item()\n        return hidden, shown", False),
        ("return hidden / hidden.detach().norm().item()", False),
        ("return hidden / hidden.norm().detach().item()", False),
    ],
)
def test_a_number_for_the_log_or_of_what_was_detached_is_meant(ending: str, wrong: bool) -> None:
    assert found(MODULE.format(ending)) == (["item-in-forward"] if wrong else [])


LOOKED_UP = """
moved = points - start
out = {}
ctx.save_for_backward(moved, weight)
return out
"""
BACK = """
moved, weight = ctx.saved_tensors
return None, grad_output * weight * moved, None
"""


@pytest.mark.parametrize(
    ("out", "wrong"),
    [
        ("torch.nn.functional.embedding(moved, weight)", False),
        ("weight.index_select(0, moved)", False),
        ("torch.gather(weight, 0, index=moved)", False),
        ("moved.gather(0, weight)", True),
        ("weight * moved", True),
    ],
)
def test_what_forward_looks_up_with_has_no_derivative(out: str, wrong: bool) -> None:
    back = BACK.replace("None, grad", "grad_output * weight, grad") if wrong else BACK
    saved = function(LOOKED_UP.format(out), back, "points, weight, start")
    assert ("intermediate-saved" in found(saved)) is wrong


def test_gradients_cut_to_the_number_of_inputs_stand_in_their_order() -> None:
    cut = "return ({}, grad_output, None)[: len(ctx.needs_input_grad)]"
    forward = "y = x * 2.0\nctx.save_for_backward(y)\nreturn y * w"
    back = "(y,) = ctx.saved_tensors\ngrad_output = grad_output * y\n"
    assert found(function(forward, back + cut.format("None"), "x, w, n=0")) == []
    assert found(function(forward, back + cut.format("grad_output"), "x, w, n=0")) == ["intermediate-saved"]


def test_without_a_backward_nothing_refers_to_ctx() -> None:
    kept = function("y = torch.exp(x)\nctx.y = y\nreturn y", "return grad_output * ctx.y")
    assert found(kept) == ["tensor-on-ctx"]
    assert found(kept[: kept.index("    @staticmethod\n    def backward")]) == []


NORM = """
total, scale = torch.{}(grad_output, x, mean, mean, None, True, True, True)[:2]
return {}
"""


def test_what_cannot_be_differentiated_again_loses_nothing_silently() -> None:
    forward = "mean = torch.mean(x, 0)\nctx.save_for_backward(x, mean)\nreturn x - mean"
    unpacked = "x, mean = ctx.saved_tensors\n"
    again = unpacked + NORM.format("batch_norm_backward_reduce", "total * 2")
    assert found(function(forward, again)) == []
    assert found(function(forward, again.replace("total * 2", "total + grad_output * mean"))) == ["intermediate-saved"]


@pytest.mark.parametrize(
    ("prepared", "wrong"),
    [
        ("x, w = converted(x, w)", False),
        ("x = converted(x)", False),
        ("x = torch.exp(x)", True),
        ("x = own(x)", True),
    ],
)
def test_an_input_that_strange_code_hands_back_may_be_that_very_input(prepared: str, wrong: bool) -> None:
    around = "from elsewhere import converted\n\n\ndef own(x):\n    return torch.exp(x)\n"
    forward = f"{prepared}\nkept = x if ctx.needs_input_grad[1] else None\nctx.save_for_backward(kept, w)\nreturn x * w"
    back = "x, w = ctx.saved_tensors\nreturn grad_output * w, grad_output * x"
    assert ("intermediate-saved" in found(function(forward, back, "x, w", around))) is wrong


@pytest.mark.parametrize(
    ("made", "meant"), [("torch.rand(x.size(0))", True), ("torch.zeros(n.sum())", True), ("torch.zeros(3) * n", False)]
)
def test_random_gradients_of_a_function_for_shapes_alone_are_left_alone(made: str, meant: bool) -> None:
    forward = f"y = {made}\nctx.save_for_backward(y)\nreturn y"
    back = "(y,) = ctx.saved_tensors\nreturn torch.rand(y.size()), None"
    assert ("random-backward" not in found(function(forward, back, "x, n"))) is meant
    filled = function("y = torch.zeros(n)\nfill(y, x)\nreturn y", "return grad_output * torch.rand(3), None", "x, n")
    assert "random-backward" in found(filled)


@pytest.mark.parametrize(("trainer", "least"), [("from ops import Op", "warning"), ("from other import train", "info")])
def test_a_trainer_under_autocast_trains_what_it_speaks_of(tmp_path: Path, trainer: str, least: str) -> None:
    body = "a, b = ctx.saved_tensors\nreturn grad_output @ b.t(), a.t() @ grad_output"
    files = {
        "ops": function("ctx.save_for_backward(a, b)\nreturn a @ b", body, "a, b"),
        "trainer": f"{trainer}\n\n\ndef step(model, x):\n    with torch.autocast('cuda'):\n        return model(x).backward()\n",
    }
    for name, text in files.items():
        (tmp_path / f"{name}.py").write_text(HEAD + text)
    assert [str(f.severity) for f in lint(tmp_path).findings if f.rule == "no-autocast"] == [least]


def test_a_tensor_on_ctx_that_never_gets_a_gradient_is_a_remark() -> None:
    kept = function("ctx.w = w\nreturn x * w", "return grad_output * ctx.w, {}", "x, w: torch.Tensor")
    assert "tensor-on-ctx" in found(kept.format("grad_output"))
    assert "tensor-on-ctx" not in found(kept.format("None"))
    assert "tensor-on-ctx" in found(kept.format("None"), "info")


def test_a_mark_that_is_lost_is_no_error() -> None:
    text = function(
        "a, b = x > 0, x > 1\nctx.mark_non_differentiable(a)\nctx.mark_non_differentiable(b)\nreturn x * 1, a, b",
        "return grad_output",
    )
    assert "save-overwritten" in found(text)
    assert "save-overwritten" not in found(text, "error")


@pytest.mark.parametrize(("of", "least"), [("self.linear(x)", "warning"), ("x", "info")])
def test_a_number_taken_out_of_an_input_is_a_remark(of: str, least: str) -> None:
    text = f"""
    class Normed(torch.nn.Module):
        def forward(self, x):
            hidden = {of}
            return hidden / hidden.norm().item()
    """
    told = [str(f.severity) for f in lint_source(HEAD + dedent(text)).findings if f.rule == "item-in-forward"]
    assert told == [least]


@pytest.mark.parametrize(("gradient", "wrong"), [("None", False), ("grad_output.sum()", True)])
def test_an_argument_that_was_made_a_tensor_is_that_argument(gradient: str, wrong: bool) -> None:
    saved = "x, scale = ctx.saved_tensors\nreturn grad_output * x / scale, " + gradient
    text = function("ctx.save_for_backward(x, torch.tensor(scale))\nreturn x * x / 2 / scale", saved, "x, scale")
    assert ("intermediate-saved" in found(text)) == wrong


def test_a_class_that_a_test_makes_inside_of_a_function_is_an_example(tmp_path: Path) -> None:
    inside = "def build():\n" + "".join(f"    {line}\n" for line in function("return x * 1", "return x").splitlines())
    odd = inside.replace("return x\n", "return torch.ones(3)\n")
    for name, rules in (("test_ops", []), ("ops", ["creation-no-device"])):
        path = tmp_path.parent / f"{name}.py"
        path.write_text(HEAD + odd)
        assert [f.rule for f in lint(path).at_least("warning")] == rules, name


def test_an_output_without_a_gradient_refers_to_nothing() -> None:
    text = function("y = x.exp()\n{}ctx.y = y\nreturn x * 1, y", "return grad_output * ctx.y.shape[0]")
    assert "tensor-on-ctx" in found(text.format(""))
    assert "tensor-on-ctx" not in found(text.format("ctx.mark_non_differentiable(y)\n        "))


@pytest.mark.parametrize(
    ("out", "least"), [("x * mask", "warning"), ("x.exp()", "info"), ("x.new_ones(mask.shape)", "info")]
)
def test_a_mark_on_what_made_no_output_is_a_remark(out: str, least: str) -> None:
    text = function(
        f"ctx.mark_non_differentiable(mask)\nctx.save_for_backward(mask)\nreturn {out}",
        "(mask,) = ctx.saved_tensors\nreturn grad_output * mask, None",
        "x, mask",
    )
    assert [str(f.severity) for f in lint_source(HEAD + text).findings if f.rule == "mark-not-output"] == [least]


@pytest.mark.parametrize(("taken", "wrong"), [("x.detach().numpy()", False), ("x.detach().cpu().numpy()", True)])
def test_what_takes_arrays_of_its_inputs_is_never_on_a_gpu(taken: str, wrong: bool) -> None:
    text = function(
        f"ctx.n = x.shape[0]\nreturn torch.from_numpy({taken} * 2)",
        "g = torch.zeros(2 * ctx.n)\ng[: ctx.n] = grad_output\nreturn g",
    )
    assert ("creation-no-device" in found(text)) == wrong


def test_a_saved_tensor_that_is_spoilt_in_many_lines_is_told_once() -> None:
    text = function(
        "ctx.save_for_backward(x, x.exp())\nreturn x * 1",
        "x, y = ctx.saved_tensors\ny.mul_(grad_output)\ny.neg_()\ny *= 2\nx += 1\nreturn y",
    )
    assert [f.rule for f in lint_source(HEAD + text).at_least("error")] == ["inplace-saved", "inplace-saved"]
