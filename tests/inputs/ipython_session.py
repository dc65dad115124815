"""A session in a real IPython shell, which `test_ipython.py` runs in a process of its own; prints what happened as JSON."""

from __future__ import annotations

import json

from IPython.core.interactiveshell import InteractiveShell

FUNCTION = """class {name}(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        {forward}
        return x ** 3
    @staticmethod
    def backward(ctx, grad_output):
        x, = ctx.saved_tensors
        {backward}
"""
STATE = "(torch.get_rng_state().tolist(), random.getstate(), dict(vars(Stopped)), torch.is_grad_enabled())"

shell = InteractiveShell.instance()
results = [
    shell.run_cell(text, store_history=True)
    for text in (
        "import os, random, signal, torch, gradsmith as gs",
        FUNCTION.format(name="Cube", forward="pass", backward="grad_output *= 2 * x ** 2; return grad_output"),
        "report = gs.check(Cube, level='quick')",
        "with gs.record() as tape:\n    Cube.apply(torch.randn(3, 2, requires_grad=True))",
        "recorded = tape.check(level='quick')",
        FUNCTION.format(name="Stopped", forward="os.kill(os.getpid(), signal.SIGINT)", backward="return grad_output"),
        f"x = torch.randn(3, requires_grad=True); before = {STATE}",
        "gs.check(Stopped, x)",
        "gs.check(Stopped)",
        f"restored = before == {STATE} and x.grad is None",
    )
]
names = shell.user_ns
shown = {n: shell.display_formatter.format(names[n])[0]["text/plain"] for n in ("report", "tape")}
print(
    json.dumps(
        {
            "verdict": names["report"].subjects[0].verdict,
            "inputs_from": [names[n].subjects[0].inputs_from for n in ("report", "recorded")],
            "findings": [[f.rule, f.cell, f.line, f.lenses] for f in names["report"].findings],
            "shown": shown,
            "raised": {i: type(r.error_in_exec).__name__ for i, r in enumerate(results, 1) if r.error_in_exec},
            "restored": names["restored"],
        }
    )
)
