"""A check in process never reads memory that the user's code freed: that is no exception, it ends their process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from forks import Forks

from gradsmith.findings import Report
from gradsmith.lab.measure.memory import whole

SCRIPT = Path(__file__).parent / "functions_that_free.py"


def in_a_process_of_its_own(forks: Forks, name: str, inputs: str) -> Report:
    done = forks.run(SCRIPT, name, inputs)
    assert done.returncode == 0, f"{name} ended the process ({done.returncode}): {done.stderr[-500:]}"
    return Report.from_dict(json.loads(done.stdout))


SAID = [
    ("FreesInput", "inplace-input", "frees the memory of its input 'x'"),
    ("FreesConstant", "inplace-input", "frees the memory of its input 'weight'"),
    ("ReadsWhatItFreed", "backward-raised", "reads memory that was freed"),
    ("FreesSavedInput", "inplace-saved", "frees the memory of 'x'"),
    ("FreesSavedOutput", "inplace-saved", "belongs to the caller"),
    ("FreesItsOwn", "not-repeatable", "works once"),
    ("FreesAttribute", "not-repeatable", "works once"),
    ("FreesGradOutput", "inplace-grad", "freed the memory of the grad_output"),
    ("ReturnsFreedGradient", "backward-raised", "whose memory was freed"),
    ("ReturnsFreedOutput", "forward-raised", "whose memory was freed"),
]
# On guessed inputs the same is said: three of them, the rest is deep.
GUESSED = ("FreesInput", "FreesSavedInput", "ReturnsFreedOutput")


@pytest.mark.parametrize(
    ("name", "rule", "words", "inputs"),
    [
        pytest.param(*row, inputs, marks=[pytest.mark.deep] if inputs == "guess" and row[0] not in GUESSED else [])
        for row in SAID
        for inputs in ("given", "guess")
    ],
)
def test_who_frees_what_is_said(name: str, rule: str, words: str, inputs: str, forks: Forks) -> None:
    report = in_a_process_of_its_own(forks, name, inputs)
    (subject,) = report.subjects
    if name == "ReturnsFreedOutput" and inputs == "guess":
        assert subject.verdict == "unverified"
        return
    told = [f for finding in report.findings for f in (finding, *finding.symptoms) if f.rule == rule]
    assert any(words in f.message for f in told), report
    assert subject.verdict != "verified" or all(f.severity != "error" for f in told)
    assert subject.conditions.get("compile", "not tried").startswith("not tried")


def test_a_tensor_is_whole_while_its_storage_holds_its_last_element() -> None:
    x = torch.zeros(4, 3)
    rows = x[:2], x.t()[:, :1], x[3:], torch.zeros(0), torch.eye(2).to_sparse()
    assert all(map(whole, (x, *rows)))
    x.untyped_storage().resize_(6 * 4)
    assert [whole(t) for t in (x, *rows)] == [False, True, True, False, True, True]


def test_the_inputs_of_the_user_keep_their_memory(forks: Forks) -> None:
    report = in_a_process_of_its_own(forks, "FreesSavedInput", "given")
    assert report.subjects[0].verdict == "refuted"
