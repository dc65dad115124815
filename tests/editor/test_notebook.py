"""Notebooks in a real kernel: what a cell shows, and the magic `%%gradsmith`."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import pytest

from tests.editor.sources import CUBE

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

FUNCTION = CUBE.split("\n\n\n")[1]
RECURRENT = """
class Step(torch.nn.Module):
    def forward(self, x, h):
        h = torch.tanh(x + h)
        return h, h

layer = gs.Recurrent(Step(), backend="loop")
layer(torch.randn(2, 1, 3), torch.zeros(1, 3))
layer.plan()
"""
CELLS = {
    "load": "%load_ext gradsmith\nimport torch, gradsmith as gs\ntorch.set_num_threads(1)",
    "define": f"# A comment.\n{FUNCTION}",
    "check": "report = gs.check(Cube, level='quick')\nreport",
    "repr": "report, report.subjects, report.findings[:1]",
    "magic": f"%%gradsmith --level quick\n{FUNCTION.replace('Cube', 'Again')}",
    "result": "_.subjects[0].name",
    "line": "%gradsmith Cube --level quick",
    "imports": "%%gradsmith\nfrom torch.autograd import Function\nnumber = 3",
    "misspelled": "%gradsmith Cubes",
    "fails": "%%gradsmith\nnumber = 4\n1 / 0",
    "profile": "profile = gs.profile(Cube, torch.randn(8, 8, requires_grad=True))\nprofile",
    "plan": RECURRENT.strip(),
    "short": "print(repr(profile), repr(layer.plan()))",
    "explained": "torch.ones(3, requires_grad=True).exp().backward()",
    "unload": "%unload_ext gradsmith\n%gradsmith Cube",
}


class Outline(HTMLParser):
    """The tags, the words, and whether every tag is closed in its turn."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.words = ""
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data


@pytest.fixture(scope="module")
def shown() -> dict[str, dict[str, str]]:
    """What each cell shows, by the kind of output: `text/plain`, `text/html`, `stream`, `error`."""
    cells = [nbformat.v4.new_code_cell(source) for source in CELLS.values()]
    book = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(book, timeout=600, kernel_name="python3", allow_errors=True).execute()
    return {name: _outputs(cell.outputs) for name, cell in zip(CELLS, book.cells)}


def _outputs(outputs: list[Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for output in outputs:
        kinds = output.get("data") or {"stream": output.get("text") or "\n".join(output.get("traceback", ()))}
        for kind, text in kinds.items():
            found[kind] = found.get(kind, "") + text
    return found


def test_a_report_is_html_that_folds_and_names_the_cell(shown: dict[str, dict[str, str]]) -> None:
    page = Outline(shown["check"]["text/html"])
    assert page.open == [] and page.tags.count("details") == page.tags.count("summary") >= 3
    assert not {"script", "style", "iframe", "link"} & set(page.tags)
    assert "cell 2, line 11" in page.words and "  11 > " in page.words and "ipykernel" not in page.words
    assert "background:#b3141b" in shown["check"]["text/html"] and "refuted" in page.words
    assert "--> cell 2, line 11" in shown["check"]["text/plain"]


def test_what_lists_show_is_short(shown: dict[str, dict[str, str]]) -> None:
    text = shown["repr"]["text/plain"]
    assert "<Subject Cube: refuted (wrong-gradient)>" in text and "<error wrong-gradient at line 11: " in text
    assert shown["short"]["stream"].startswith("<Profile of Cube: forward ")
    assert (
        shown["short"]["stream"].rstrip().endswith("<Plan: loop (the step itself, unbound over time, under autograd)>")
    )


def test_the_magic_runs_a_cell_and_checks_what_it_defines(shown: dict[str, dict[str, str]]) -> None:
    text = shown["magic"]["text/plain"]
    assert "Again.backward" in text and "Cube" not in text and "--> cell 5, line 11" in text
    assert "<details" in shown["magic"]["text/html"] and shown["result"]["text/plain"] == "'Again'"
    assert "Cube.backward" in shown["line"]["text/plain"]
    assert shown["imports"] == {"stream": "gradsmith: this cell defines no custom gradient.\n"}


def test_what_the_magic_cannot_do_is_one_sentence(shown: dict[str, dict[str, str]]) -> None:
    assert shown["misspelled"]["stream"].strip().endswith("nothing is called 'Cubes' here; did you mean 'Cube'?")
    failed = _plain(shown["fails"]["stream"])
    assert failed.count("ZeroDivisionError: division by zero") == 1 and "In[10], line 3" in failed
    assert "the cell failed, so nothing was checked" in failed
    assert "gradsmith: " in shown["explained"]["stream"] and "not found" in shown["unload"]["stream"]


def test_profiles_and_plans_are_html_too(shown: dict[str, dict[str, str]]) -> None:
    profile, plan = Outline(shown["profile"]["text/html"]), Outline(shown["plan"]["text/html"])
    assert profile.open == plan.open == []
    assert "cell 2, line 11  return 2 * x**2 * grad_output" in profile.words and "table" in profile.tags
    assert "cell 2, line 11" in shown["profile"]["text/plain"]
    assert "loop: the step itself" in plan.words and shown["plan"]["text/plain"].startswith("backend: loop")


def _plain(text: str) -> str:
    import re

    return re.sub(r"\x1b\[[0-9;]*m", "", text)
