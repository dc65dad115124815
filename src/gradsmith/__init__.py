"""gradsmith: the workbench for people who write their own gradients in PyTorch.

>>> import torch, gradsmith as gs
>>> gs.check(torch.sin, torch.randn(3, dtype=torch.float64, requires_grad=True)).ok
True

Names that need torch load it when they are first used; `import gradsmith` and linting never do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradsmith import showing
from gradsmith.about import VERSION as __version__

if TYPE_CHECKING:
    from gradsmith import ops, recurrent
    from gradsmith.checking.asserting import assert_gradients
    from gradsmith.checking.gradcheck import gradcheck
    from gradsmith.checking.paths import check_paths
    from gradsmith.checking.run import check
    from gradsmith.curvature.derivatives import hessian, hvp, jacobian
    from gradsmith.curvature.support import second_order
    from gradsmith.explaining import Explanation, explain, explain_errors
    from gradsmith.external import PoorGradientError, implicit, wrap
    from gradsmith.findings import Edit, Finding, GradientError, GradsmithError, Report, Subject
    from gradsmith.inputs.declared import example_inputs
    from gradsmith.lab.subject.surrogates import surrogate
    from gradsmith.lab.subject.wrapped import wrapped
    from gradsmith.linting import lint, lint_source
    from gradsmith.linting.fixing import fix, fix_source
    from gradsmith.linting.ignoring import add_ignores
    from gradsmith.profiling import Profile, profile, profile_step
    from gradsmith.recording import record
    from gradsmith.recurrent.layer import Recurrent
    from gradsmith.recurrent.scan import scan
    from gradsmith.writing.derive import derive

__all__ = [
    "Edit",
    "Explanation",
    "Finding",
    "GradientError",
    "GradsmithError",
    "PoorGradientError",
    "Profile",
    "Recurrent",
    "Report",
    "Subject",
    "__version__",
    "add_ignores",
    "assert_gradients",
    "check",
    "check_paths",
    "derive",
    "example_inputs",
    "explain",
    "explain_errors",
    "fix",
    "fix_source",
    "gradcheck",
    "hessian",
    "hvp",
    "implicit",
    "jacobian",
    "lint",
    "lint_source",
    "ops",
    "profile",
    "profile_step",
    "record",
    "recurrent",
    "scan",
    "second_order",
    "surrogate",
    "wrap",
    "wrapped",
]

# Findings, too: pytest loads this file in every project where gradsmith is installed, wanted there or not.
_LAZY = {
    "Edit": "gradsmith.findings",
    "Finding": "gradsmith.findings",
    "GradientError": "gradsmith.findings",
    "GradsmithError": "gradsmith.findings",
    "Report": "gradsmith.findings",
    "Subject": "gradsmith.findings",
    "assert_gradients": "gradsmith.checking.asserting",
    "check": "gradsmith.checking.run",
    "check_paths": "gradsmith.checking.paths",
    "derive": "gradsmith.writing.derive",
    "gradcheck": "gradsmith.checking.gradcheck",
    "example_inputs": "gradsmith.inputs.declared",
    "Explanation": "gradsmith.explaining",
    "explain": "gradsmith.explaining",
    "explain_errors": "gradsmith.explaining",
    "hessian": "gradsmith.curvature.derivatives",
    "hvp": "gradsmith.curvature.derivatives",
    "jacobian": "gradsmith.curvature.derivatives",
    "second_order": "gradsmith.curvature.support",
    "add_ignores": "gradsmith.linting.ignoring",
    "fix": "gradsmith.linting.fixing",
    "fix_source": "gradsmith.linting.fixing",
    "lint": "gradsmith.linting",
    "lint_source": "gradsmith.linting",
    "Profile": "gradsmith.profiling",
    "profile": "gradsmith.profiling",
    "profile_step": "gradsmith.profiling",
    "record": "gradsmith.recording",
    "Recurrent": "gradsmith.recurrent",
    "scan": "gradsmith.recurrent",
    "surrogate": "gradsmith.lab.subject.surrogates",
    "PoorGradientError": "gradsmith.external",
    "implicit": "gradsmith.external",
    "wrap": "gradsmith.external",
    "wrapped": "gradsmith.lab.subject.wrapped",
}
_PACKAGES = ("ops", "recurrent")


def __getattr__(name: str) -> Any:
    import importlib

    if name not in _LAZY and name not in _PACKAGES:
        raise AttributeError(f"module 'gradsmith' has no attribute {name!r}")
    try:
        found = importlib.import_module(_LAZY.get(name, f"gradsmith.{name}"))
    except (ImportError, AttributeError):  # torch is missing, or so old that it lacks a name
        from gradsmith.torch_here import need_torch

        need_torch(f"gradsmith.{name}")
        raise
    return found if name in _PACKAGES else getattr(found, name)


def _render(report: Report, format: str | None, path: str) -> str:
    from gradsmith.report import format_for, render

    return render(report, format or format_for(path))


def _in_notebook(report: Report) -> str:
    from gradsmith.report.in_notebook import report_html

    return report_html(report)


showing.render = _render
showing.in_notebook = _in_notebook


def __dir__() -> list[str]:
    return sorted(__all__)


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext gradsmith`."""
    from gradsmith import ipython_extension

    ipython_extension.load(shell)


def unload_ipython_extension(shell: Any) -> None:
    from gradsmith import ipython_extension

    ipython_extension.unload(shell)
