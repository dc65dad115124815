"""An assumption that the user accepts is no finding any more, wherever it is accepted, and still stands in the report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

import gradsmith as gs
from gradsmith.catalog import find
from gradsmith.checking.accepting import comment, is_accepted
from gradsmith.config import Config
from gradsmith.config import load as load_config
from gradsmith.findings import GradsmithError, Report
from gradsmith.source.suppressions import read

SYMMETRIC = find("assumes").bad
MENDED = find("assumes").good
CLASS = "class QuadraticForm(torch.autograd.Function):"
SENTENCE = "'matrix' is symmetric"
Load = Callable[[str], ModuleType]


def checked(module: ModuleType, name: str = "QuadraticForm") -> Report:
    return gs.check(getattr(module, name), select=["wrong-gradient", "value-dependent", "assumes"])


def told(report: Report) -> list[str]:
    return [f.rule for f in report.findings]


def test_what_nobody_accepted_is_a_finding_with_the_words_to_paste(load: Load) -> None:
    (finding,) = checked(load(SYMMETRIC)).findings
    assert finding.severity == "warning"
    assert "`# gradsmith: assumes[matrix is symmetric]` at the end of the class line" in (finding.advice or "")
    assert finding.evidence["accept"] == "# gradsmith: assumes[matrix is symmetric]"


def test_the_words_of_the_finding_accept_it_when_pasted(load: Load) -> None:
    pasted = checked(load(SYMMETRIC)).findings[0].evidence["accept"]
    report = checked(load(SYMMETRIC.replace(CLASS, f"{CLASS}  {pasted}")))
    assert told(report) == []
    assert report.subjects[0].assumptions == (SENTENCE,)
    assert f"assumes: {SENTENCE}" in str(report)


@pytest.mark.parametrize(
    "where",
    [
        f"{CLASS}  # gradsmith: assumes[ MATRIX  is 'symmetric' ]",
        f"# gradsmith: assumes[matrix is symmetric]\n{CLASS}",
        f"{CLASS}\n    # gradsmith: assumes[matrix is symmetric]  it always is",
        f"{CLASS}  # gradsmith: surrogate[scale]  # gradsmith: assumes[matrix is symmetric]",
    ],
)
def test_the_comment_stands_where_a_surrogate_comment_may_stand(load: Load, where: str) -> None:
    assert told(checked(load(SYMMETRIC.replace(CLASS, where)))) == []


def test_a_comment_in_a_docstring_accepts_nothing(load: Load) -> None:
    spoken = SYMMETRIC.replace("x' A x", "`# gradsmith: assumes[matrix is symmetric]`: x' A x")
    assert told(checked(load(spoken))) == ["assumes"]


def test_the_comment_of_another_class_accepts_nothing_here(load: Load) -> None:
    other = f"class Other:  {comment(SENTENCE)}\n    pass\n\n\n{CLASS}"
    assert told(checked(load(SYMMETRIC.replace(CLASS, other)))) == ["assumes"]


def test_a_subclass_inherits_what_its_base_accepts(load: Load) -> None:
    source = SYMMETRIC.replace(CLASS, f"{CLASS}  {comment(SENTENCE)}")
    source += "\n\nclass Form(QuadraticForm):\n    pass\n\n\ngradsmith_inputs['Form'] = example\n"
    assert told(checked(load(source), "Form")) == []


@pytest.mark.parametrize("assumes", ["matrix is symmetric", ["x is sorted", "'Matrix' is symmetric"]])
def test_declared_inputs_accept_it(load: Load, assumes: str | list[str]) -> None:
    module = load(SYMMETRIC)
    gs.example_inputs(module.example, assumes=assumes)(module.QuadraticForm)
    report = checked(module)
    assert told(report) == []
    assert report.subjects[0].assumptions == (SENTENCE,)


CUSTOM_OP = """
import torch


@torch.library.custom_op("gradsmith_assumes::NAME", mutates_args=())
def form(x: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
    return ((x @ matrix) * x).sum(-1)


def setup(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def backward(ctx, grad_output):
    x, matrix = ctx.saved_tensors
    return 2 * grad_output[:, None] * (x @ matrix), x.mT @ (grad_output[:, None] * x)


form.register_autograd(backward, setup_context=setup)
half = torch.randn(3, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
inputs = torch.randn(4, 3, dtype=torch.float64, requires_grad=True), (half + half.mT).requires_grad_()
"""
MODULE = (
    SYMMETRIC
    + """

class Layer(torch.nn.Module):
    def forward(self, x, matrix):
        return QuadraticForm.apply(x, matrix)


inputs = example()
"""
)


@pytest.mark.parametrize(
    ("source", "subject", "line", "word"),
    [
        (CUSTOM_OP.replace("NAME", "plain"), "form", "", "def"),
        (CUSTOM_OP.replace("NAME", "comment"), "form", "def form(x: torch.Tensor, matrix: torch.Tensor)", "def"),
        (MODULE, "Layer", "", "class"),
        (MODULE, "Layer", "class Layer(torch.nn.Module):", "class"),
    ],
)
def test_custom_ops_and_modules_accept_it_at_their_own_line(
    load: Load, source: str, subject: str, line: str, word: str
) -> None:
    lines = [f"{text}  {comment(SENTENCE)}" if line and text.startswith(line) else text for text in source.splitlines()]
    module = load("\n".join(lines))
    made = getattr(module, subject)
    report = gs.check(made() if isinstance(made, type) else made, *module.inputs, select=["wrong-gradient", "assumes"])
    assert report.subjects[0].assumptions == (SENTENCE,)
    assert told(report) == ([] if line else ["assumes"])
    assert all(f"at the end of the {word} line" in (f.advice or "") for f in report.findings)


def test_assumes_alone_leaves_the_mapping_of_inputs_in_charge(load: Load) -> None:
    module = load(SYMMETRIC)
    gs.example_inputs(assumes="matrix is symmetric")(module.QuadraticForm)
    report = checked(module)
    assert told(report) == []
    assert report.subjects[0].inputs_from == "declared"


@pytest.mark.parametrize("wrong", [3, [3], {"matrix": "symmetric"}])
def test_what_is_no_sentence_is_refused_in_words(wrong: object) -> None:
    with pytest.raises(GradsmithError, match="is no sentence; write assumes="):
        gs.example_inputs(assumes=wrong)  # type: ignore[arg-type]


def project(folder: Path, table: str) -> Config:
    (folder / "pyproject.toml").write_text(table, encoding="utf-8")
    return load_config(folder)


@pytest.mark.parametrize("value", ['["matrix is symmetric"]', '"matrix is symmetric"'])
def test_a_project_accepts_it_for_the_command_line(tmp_path: Path, value: str) -> None:
    config = project(tmp_path, f'[tool.gradsmith]\nassumes = {{"QuadraticForm" = {value}}}\n')
    (tmp_path / "form.py").write_text(SYMMETRIC, encoding="utf-8")
    report = gs.check_paths(tmp_path / "form.py", config=config, select=["wrong-gradient", "assumes"])
    assert told(report) == []
    assert report.subjects[0].assumptions == (SENTENCE,)
    assert report.notes == []


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("[tool.gradsmith]\nassumes = 3", "assumes must be a table, not 3"),
        ("[tool.gradsmith.assumes]\nForm = 3", r"\[tool.gradsmith.assumes\] Form must be a list of texts, not 3"),
        ("[tool.gradsmith.assumes]\nForm = [3]", r"Form must be a list of texts, not \[3\]"),
        ("[tool.gradsmith.assume]\nForm = []", "has no key 'assume'; did you mean 'assumes'"),
    ],
)
def test_a_project_that_writes_something_else_is_told(tmp_path: Path, table: str, said: str) -> None:
    with pytest.raises(GradsmithError, match=said):
        project(tmp_path, table)


def test_a_sentence_that_matches_nothing_is_a_note(load: Load) -> None:
    report = checked(load(MENDED.replace(CLASS, f"{CLASS}  {comment(SENTENCE)}")))
    assert report.notes == ["assumes[matrix is symmetric] matches no assumption of QuadraticForm"]


def test_without_exploring_nothing_is_said_about_it(load: Load) -> None:
    module = load(MENDED.replace(CLASS, f"{CLASS}  {comment(SENTENCE)}"))
    assert gs.check(module.QuadraticForm, level="quick", select=["wrong-gradient"]).notes == []


def test_an_accepted_assumption_hides_no_wrong_gradient(load: Load) -> None:
    broken = SYMMETRIC.replace("return 2 *", "return 3 *").replace(CLASS, f"{CLASS}  {comment(SENTENCE)}")
    report = checked(load(broken))
    assert report.subjects[0].verdict == "refuted"


def test_two_assumptions_about_one_input_are_two_findings(load: Load) -> None:
    report = Report.from_dict(checked(load(SYMMETRIC)).to_dict())
    from dataclasses import replace

    from gradsmith.folding import merge

    (one,) = report.findings
    other = replace(one, message="another", evidence={**one.evidence, "assumption": "'matrix' is positive"})
    assert len(merge([one, other])) == 2
    assert len(merge([one, one])) == 1


def test_what_needs_two_things_broken_is_accepted_with_either() -> None:
    assert is_accepted("'a' is sorted; 'b' is positive", ["b is positive"])
    assert not is_accepted("'a' is sorted; 'b' is positive", ["c is positive"])


@pytest.mark.parametrize(
    ("line", "sentences"),
    [
        ("# gradsmith: assumes[x lies in [0, 1]]", ["x lies in [0, 1]"]),
        ("# gradsmith: assumes[x lies in [0, 1)]", ["x lies in [0, 1)"]),
        ("# gradsmith: assumes[a is sorted] # gradsmith: assumes[b, too]", ["a is sorted", "b, too"]),
        ("# gradsmith: assumes[a is sorted], always", ["a is sorted"]),
        ("# gradsmith: assumes[]", []),
        ("# gradsmith: assumes", []),
    ],
)
def test_what_a_comment_says(line: str, sentences: list[str]) -> None:
    assert [one.sentence for one in read([line]).assumed.get(1, [])] == sentences
