"""What a Function asks for is given: by its annotations, its operations, its errors, and the process it runs in."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent, indent
from typing import Any

import functions_without_inputs
import pytest
import torch

import gradsmith as gs
from gradsmith.inputs.guess import Guess, guess
from gradsmith.lab.explore.tape import OperationTape
from gradsmith.lab.subject.importing import import_file
from gradsmith.lab.subject.opening import open_file
from gradsmith.lab.subject.target import resolve


def module(folder: Path, forward: str, names: str = "x", before: str = "", returns: str = "grad") -> Any:
    """A module with a Function `Op` of this forward, whose first input gets a gradient."""
    head = f"from __future__ import annotations\nimport enum\nimport torch\n\n{dedent(before)}\n\n"
    count = names.count(",")
    text = (
        f"class Op(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, {names}):\n"
        f"{indent(dedent(forward), ' ' * 8)}\n"
        f"    @staticmethod\n    def backward(ctx, grad):\n        return {returns}{', None' * count}\n"
    )
    path = folder / f"asked_for_{abs(hash(forward + before))}.py"
    path.write_text(head + text)
    return import_file(path)


def guessed(*args: Any, **kwargs: Any) -> Guess:
    return guess(resolve(module(*args, **kwargs).Op))


def test_an_annotation_names_the_class_of_an_object(tmp_path: Path) -> None:
    scale = """
        class Scale:
            def __init__(self, by: float):
                self.by = by
        """
    found = guessed(tmp_path, "return x * scale.by * 0 + x", "x, scale: Scale", scale)
    assert found.works and type(found.args[1]).__name__ == "Scale"
    assert "Scale(by=" in found.code


def test_what_a_module_keeps_under_a_name_is_taken_before_anything_is_built(tmp_path: Path) -> None:
    formats = """
        class Format:
            def __init__(self, name, width):
                self.name, self.width = name, width

        narrow = Format("narrow", 4)
        """
    found = guessed(tmp_path, "assert f.name == 'narrow'\nreturn x + f.width", "x, f: Format", formats)
    assert found.works and found.code.endswith("narrow)")


def test_members_of_an_enumeration_are_tried(tmp_path: Path) -> None:
    modes = """
        class Mode(enum.Enum):
            UP = 1
            DOWN = 2
        """
    found = guessed(tmp_path, "return x + mode.value", "x, mode: Mode", modes)
    assert found.works and "Mode.UP" in found.code


def test_a_dict_has_the_keys_that_are_read(tmp_path: Path) -> None:
    found = guessed(tmp_path, "return x + table['shift'] * table.get('width', 1)", "x, table")
    assert found.works and set(found.args[1]) == {"shift", "width"}


def test_operations_of_torch_say_how_many_dimensions_they_take(tmp_path: Path) -> None:
    found = guessed(
        tmp_path,
        "ctx.shape, ctx.w = a.shape, b\nreturn torch.nn.functional.conv2d(a, b, c, padding=p)",
        "a, b, c, p",
        returns="torch.nn.grad.conv2d_input(ctx.shape, ctx.w, grad)",
    )
    assert found.works and [t.ndim for t in found.args[:3]] == [4, 4, 1]
    assert found.attempts < 200


def test_a_word_is_one_of_those_that_a_helper_compares_with(tmp_path: Path) -> None:
    helper = """
        def shifted(x, how):
            if how == "reflexive":
                return x.flip(0)
            elif how in ("periodic", "circular"):
                return x.roll(1)
            else:
                raise ValueError(f"unknown {how}")
        """
    found = guessed(tmp_path, "return shifted(x, border)", "x, border", helper, returns="grad.flip(0)")
    assert found.works and found.args[1] in ("reflexive", "periodic", "circular")


def test_a_word_is_one_of_the_keys_it_is_looked_up_in(tmp_path: Path) -> None:
    table = "TABLE = {'tanh': torch.tanh, 'erf': torch.erf}"
    found = guessed(tmp_path, "return TABLE[kind](x)", "x, kind", table)
    assert found.works and found.args[1] in ("tanh", "erf")


def test_sizes_that_have_to_be_equal_change_together(tmp_path: Path) -> None:
    forward = """
        m, n = a.shape[-1], b.shape[-1]
        assert m == n
        assert n in {16, 32}
        return a * b
        """
    found = guessed(tmp_path, forward, "a, b")
    assert found.works and {found.args[0].shape[-1], found.args[1].shape[-1]} == {16}


def test_a_dtype_that_is_asserted_is_given_to_that_input_alone(tmp_path: Path) -> None:
    found = guessed(tmp_path, "assert w.dtype == torch.bfloat16\nreturn x * w.sum().item()", "x, w")
    assert found.works and found.args[1].dtype == torch.bfloat16
    assert found.args[0].dtype == torch.float64


def test_a_half_precision_that_an_error_names_is_tried(tmp_path: Path) -> None:
    forward = """
        if "bfloat16" not in str(x.dtype):
            raise TypeError("only bf16 inputs are supported")
        return x * 2
        """
    found = guessed(tmp_path, forward, "x", returns="grad * 2")
    assert found.works and found.args[0].dtype == torch.bfloat16


def test_what_nothing_here_can_be_is_said_and_not_searched_for(tmp_path: Path) -> None:
    found = guessed(tmp_path, "return solver.factorise(x)", "x, solver")
    assert not found.works
    assert found.needs == "'solver' must have factorise, and nothing that has it could be built"
    assert found.attempts < 1000


def test_code_that_communicates_runs_in_a_group_of_one(tmp_path: Path) -> None:
    forward = """
        parts = [torch.empty_like(x) for _ in range(torch.distributed.get_world_size())]
        torch.distributed.all_gather(parts, x)
        return torch.cat(parts)
        """
    subject = resolve(module(tmp_path, forward).Op)
    assert not guess(subject).works, "nobody said that this process may join a group"
    try:
        assert guess(subject, may_join=True).works
        part = torch.ones(2)
        with pytest.raises(RuntimeError, match="list of size 1"):
            torch.distributed.all_gather([torch.empty(2), torch.empty(2)], part)
    finally:
        torch.distributed.destroy_process_group()


@pytest.mark.deep
def test_a_verdict_in_a_group_of_one_says_so(tmp_path: Path) -> None:
    import json
    import subprocess
    import sys

    text = "torch.distributed.all_reduce(x.clone())\nreturn x * torch.distributed.get_world_size()"
    path = module(tmp_path, text).__file__
    call = [sys.executable, "-m", "gradsmith", "check", f"{path}::Op", "--format", "json"]
    (subject,) = json.loads(subprocess.run(call, capture_output=True, text=True).stdout)["subjects"]
    assert subject["verdict"] == "verified"
    assert any("group of one process" in sentence for sentence in subject["assumptions"])


def test_a_decorator_that_is_not_installed_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "compiled.py"
    path.write_text(
        dedent(
            """
            import torch
            import no_such_compiler as nsc

            @nsc.jit(nopython=True)
            def doubled(x):
                return x * 2

            @nsc.kernel
            def launched(x):
                return x

            class Op(torch.autograd.Function):
                @staticmethod
                def forward(ctx, x):
                    return doubled(x)

                @staticmethod
                def backward(ctx, grad):
                    return grad * 2

            class Launch(torch.autograd.Function):
                @staticmethod
                def forward(ctx, x):
                    return launched[(1,)](x)

                @staticmethod
                def backward(ctx, grad):
                    return grad
            """
        )
    )
    opened = open_file(path, (), ["Op", "Launch"]).module
    assert guess(resolve(opened.Op)).works
    assert "without its decorator" in guess(resolve(opened.Launch)).errors[0]


def test_exchanging_two_equal_gradients_is_no_cause() -> None:
    class AddedRounded(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            return (x + y) ** 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad.float().double(), grad.float().double()

    inputs = [torch.randn(3, 4, dtype=torch.float64, requires_grad=True) for _ in range(2)]
    found = [f for f in gs.check(AddedRounded, *inputs).findings if f.severity == "error"]
    assert found and not any(f.cause == "swapped" for f in found)


def test_the_tape_reads_a_property_that_stands_for_one_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    where: Any = torch._C.TensorBase.device

    def device(self: Any) -> Any:
        return where.__get__(self)

    monkeypatch.setattr(torch.Tensor, "device", property(device))
    with OperationTape(calls_only=True) as tape:
        assert torch.ones(2).device.type == "cpu"
    assert any(call.name == ".device" for call in tape.operations)


def test_a_default_of_the_caller_counts_behind_a_conversion(tmp_path: Path) -> None:
    after = """
        def op(x, cutoff=25.0):
            return Op.apply(x, float(cutoff))
        """
    made = module(tmp_path, "return x * 1 if cutoff > 20 else x.round()", "x, cutoff", after)
    found = guess(resolve(made.Op))
    assert found.args[1] == 25.0


@pytest.mark.parametrize("where", ["forward a step away", "backward"])
def test_coverage_is_told_where_no_gradient_could_be_judged(where: str) -> None:
    class OnlyHere(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            if where != "backward" and x.sum() != 3:
                raise RuntimeError("not nearby")
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            assert where != "backward", "not ready"
            return grad * 2

    report = gs.check(OnlyHere, torch.ones(3, dtype=torch.float64, requires_grad=True), coverage=True)
    assert report.subjects[0].verdict in ("unverified", "refuted") and report.subjects[0].coverage


def test_a_documented_range_and_a_named_default_are_kept_to(tmp_path: Path) -> None:
    after = """
        LIMIT = 12

        def op(a, limit=LIMIT):
            return Op.apply(a, limit)
        """
    forward = '"""a: the shape parameter (must be positive)"""\nreturn a.detach() * (2 if (a > 0).all() else 0 * limit)'
    found = guess(resolve(module(tmp_path, forward, "a, limit", after, returns="2 * grad").Op))
    assert found.works and bool((found.args[0] > 0).all()) and found.args[1] == 12


@pytest.mark.parametrize(
    "forward",
    [
        "return x[:, 0] + x[:, 7]",
        "y = x * 2\nreturn y[:, :, 6] - y[:, :, 0]",
        "b, c, d, h = x.shape\nreturn x[:, 5].sum((1, 2)) + x[:, 8, :, :].sum((1, 2))",
        "return x.select(1, -8)",
    ],
)
def test_an_element_that_is_read_is_there(tmp_path: Path, forward: str) -> None:
    returns = "torch.ones(ctx.shape, dtype=grad.dtype) * grad.sum()"
    found = guessed(tmp_path, f"ctx.shape = x.shape\n{forward}", returns=returns)
    assert found.works and max(found.args[0].shape) >= 6


@pytest.mark.parametrize("bound", ["x < 0", "x < -0.25", "x > 0", "(x > 0) & (x < 1)"])
def test_what_all_elements_have_to_be(tmp_path: Path, bound: str) -> None:
    assert guessed(tmp_path, f"assert torch.all({bound})\nreturn x * 2", returns="grad * 2").works


@pytest.mark.parametrize(
    "forward",
    [
        "return x.sum() + torch.zeros(torch.Size([n, n])).sum()",
        "return x.sum() + torch.ones(n).sum()",
        "return x.sum() * [1.0, 2.0, 3.0][n]",
        "return sum(x.sum() for _ in range(n))",
    ],
)
def test_a_size_is_a_whole_number(tmp_path: Path, forward: str) -> None:
    found = guessed(tmp_path, forward, "x, n", returns="grad.expand(3, 4) * 3")
    assert found.works and type(found.args[1]) is int


@pytest.mark.parametrize("name", ["fn", "act", "loss_fn"])
def test_a_name_that_sounds_like_a_function_may_be_a_number(tmp_path: Path, name: str) -> None:
    found = guessed(tmp_path, f"nyquist = 0.5 * {name}\nreturn x / nyquist", f"x, {name}")
    assert found.works and not callable(found.args[1])


def test_a_malformed_sparse_tensor_is_refused_and_not_computed_with(tmp_path: Path) -> None:
    forward = """
        at = torch.full((2, 3), n + 1)
        return torch.sparse_coo_tensor(at, torch.ones(3), (n, n)).to_dense().sum() + x.sum()
        """
    found = guessed(tmp_path, forward, "x, n: int", returns="grad.expand(3, 4)")
    assert not found.works
    assert any("found index" in error for error in found.errors)


def test_a_package_that_backward_needs_is_not_searched_for(tmp_path: Path) -> None:
    path = tmp_path / "needs.py"
    path.write_text(
        "import a_package_nobody_has\nimport torch\n\n\nclass Op(torch.autograd.Function):\n"
        "    @staticmethod\n    def forward(ctx, x):\n        return x * 2\n\n"
        "    @staticmethod\n    def backward(ctx, grad):\n        return a_package_nobody_has.twice(grad)\n"
    )
    target = resolve(open_file(path, (), ["Op"]).module.Op)
    with_it = guess(target)
    assert with_it.works and with_it.attempts < 64
    (told,) = [f for f in gs.check_paths(f"{path}::Op", level="quick").findings if f.rule == "backward-raised"]
    assert told.severity == "info" and "not installed" in told.message


def test_what_forward_reshapes_gets_the_dimensions_that_backward_returns(tmp_path: Path) -> None:
    before = """
        class Op(torch.autograd.Function):
            @staticmethod
            def forward(ctx, q, k):
                b, h, s, d = q.shape
                ctx.save_for_backward(q, k)
                return q.reshape(b * h * s, d) * k.reshape(b * h * s, d)

            @staticmethod
            def backward(ctx, grad):
                q, k = ctx.saved_tensors
                flat = (-1, q.shape[-1])
                return (grad * k.reshape(flat)).reshape(q.shape), (grad * q.reshape(flat)).reshape(q.shape)
        """
    path = tmp_path / "reshapes.py"
    path.write_text(f"import torch\n\n{dedent(before)}")
    report = gs.check_paths(f"{path}::Op", level="quick")
    assert report.subjects[0].verdict == "verified"


def test_as_many_values_as_the_function_wants_that_they_go_on_to(tmp_path: Path) -> None:
    path = tmp_path / "handed_on.py"
    path.write_text(
        "import torch\n\n\ndef affine(a, b, c, d, e):\n    return a * b + c * d + e\n\n\n"
        "class Op(torch.autograd.Function):\n"
        "    @staticmethod\n    def forward(ctx, *args):\n        ctx.save_for_backward(*args)\n        return affine(*args)\n\n"
        "    @staticmethod\n    def backward(ctx, grad):\n        a, b, c, d, e = ctx.saved_tensors\n"
        "        return grad * b, grad * a, grad * d, grad * c, grad\n"
    )
    found = guess(resolve(open_file(path, (), ["Op"]).module.Op))
    assert found.works and len(found.args) == 5


def test_a_sparse_matrix_is_given_where_backward_asks_for_one():
    found = guess(resolve(functions_without_inputs.SparseProduct))
    assert found.works and not found.trouble
    assert "to_sparse_csr" in found.code
    assert gs.check(functions_without_inputs.SparseProduct, level="quick").subjects[0].verdict == "verified"
    wrong = gs.check(functions_without_inputs.SparseProductDoubled, level="quick")
    assert "wrong-gradient" in {f.rule for f in wrong.findings}
    assert wrong.subjects[0].verdict != "verified"
