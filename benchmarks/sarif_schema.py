"""SARIF held to the full schema of 2.1.0, which the tests have a part of: reports of lint, check and profile.

python benchmarks/sarif_schema.py [schema.json]

Without a path the schema is taken from the source distribution of sarif-pydantic on PyPI, which ships the
published text (its wheel does not). Needs the network then, which is why no test does it.
"""

from __future__ import annotations

import io
import json
import re
import sys
import tarfile
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import jsonschema
import torch

import gradsmith as gs
from gradsmith.findings import Report
from gradsmith.report import render

ROOT = Path(__file__).parents[1]
PACKAGE = "https://pypi.org/simple/sarif-pydantic/"


def main() -> int:
    schema = json.loads(Path(sys.argv[1]).read_text()) if len(sys.argv) > 1 else _published()
    validator = jsonschema.validators.validator_for(schema)(schema)
    wrong = 0
    for name, report in _reports().items():
        log = json.loads(render(report, "sarif"))
        errors = list(validator.iter_errors(log))
        wrong += len(errors)
        print(f"{name}: {len(log['runs'][0]['results'])} results, {len(errors)} errors")
        for error in errors[:5]:
            print(f"  {error.json_path}: {error.message[:120]}")
    print(f"schema {schema.get('$id') or schema.get('id')}, {len(schema['definitions'])} definitions: {wrong} errors")
    return 1 if wrong else 0


def _published() -> dict[str, Any]:
    with urllib.request.urlopen(PACKAGE, timeout=60) as answer:
        links = re.findall(r'href="([^"#]+\.tar\.gz)', answer.read().decode())
    with (
        urllib.request.urlopen(urljoin(PACKAGE, links[-1]), timeout=60) as answer,
        tarfile.open(fileobj=io.BytesIO(answer.read())) as archive,
    ):
        name = next(name for name in archive.getnames() if name.endswith("sarif-schema-2.1.0.json"))
        text = archive.extractfile(name)
        assert text is not None
        schema: dict[str, Any] = json.load(text)
    return schema


def _reports() -> dict[str, Report]:
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad_output: torch.Tensor) -> torch.Tensor:
            return grad_output * 3

    x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    return {
        "nothing": Report(),
        "lint of examples/broken": gs.lint([str(ROOT / "examples" / "broken")]),
        "check, refuted": gs.check(Scale, x),
        "check, not verified": gs.check(Scale, torch.zeros(0)),
        "profile": gs.profile(Scale, x).report(),
    }


if __name__ == "__main__":
    sys.exit(main())
