"""Numerics, memory, speed and transforms: what the source shows, and what must stay silent."""

from __future__ import annotations

import textwrap

import pytest

from gradsmith.linting import lint_source

TEMPLATE = """
import torch
import triton
import my_ext


class Fn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
{forward}

    @staticmethod{decorator}
    def backward(ctx, g):
{backward}
"""
SAVE = "ctx.save_for_backward(x, w)\nreturn x * w"
TAKE = "x, w = ctx.saved_tensors\n"


def rules_of(forward: str, backward: str, decorator: str = "", after: str = "") -> set[str]:
    def indented(text: str) -> str:
        return textwrap.indent(text, " " * 8)

    text = TEMPLATE.format(forward=indented(forward), backward=indented(backward), decorator=decorator) + after
    chosen = [
        "creation-no-device", "grad-view", "kernel-noncontiguous", "unreduced-broadcast", "unused-save", "saved-twice",
        "host-sync", "element-loop", "repeated-unpack", "no-autocast", "no-setup-context",
    ]  # fmt: skip
    return {f.rule for f in lint_source(text, select=chosen, debug=True).findings}


FOUND = {
    "a gradient on the default device": (
        SAVE,
        TAKE + "gw = torch.zeros(w.shape)\nreturn g * w * x, gw",
        "creation-no-device",
    ),
    "added to a gradient that is bound anew": (
        SAVE,
        TAKE + "g = g + torch.zeros(g.shape[-1])\nreturn g * w, g * x",
        "creation-no-device",
    ),
    "a mask of random numbers": (
        "mask = (torch.rand(x.shape) < 0.5).float() / 0.5\nctx.save_for_backward(mask)\nreturn x.mul(mask)",
        "(mask,) = ctx.saved_tensors\nreturn g * mask, None",
        "creation-no-device",
    ),
    "filled from a gradient": (
        SAVE,
        TAKE + "gw = torch.zeros(3, 4)\nreturn gw.scatter_(-1, w, g), None",
        "creation-no-device",
    ),
    "view(-1)": (SAVE, TAKE + "f = g.view(-1)\nreturn f * w * x, None", "grad-view"),
    "view that joins": (SAVE, TAKE + "f = g.view(x.shape[0] * 2, 3)\nreturn f * w * x, None", "grad-view"),
    "a kernel": (SAVE, TAKE + "o = torch.empty_like(x)\nk[(1,)](g, x, w, o)\nreturn o, None", "kernel-noncontiguous"),
    "an unread tensor": (SAVE, TAKE + "return g * w, None", "unused-save"),
    "twice": (
        "ctx.save_for_backward(x, x)\nreturn x * w",
        "a, b = ctx.saved_tensors\nreturn g * a, g * b",
        "saved-twice",
    ),
    "item": (SAVE, TAKE + "s = g.sum().item()\nreturn s * w * x, None", "host-sync"),
    "a branch on a value": (SAVE, TAKE + "if g.abs().sum() > 0:\n    g = g * 2\nreturn g * w * x, None", "host-sync"),
    "rows": (
        SAVE,
        TAKE + "o = torch.zeros_like(x)\nfor i in range(g.shape[0]):\n    o[i] = g[i] * w[i]\nreturn o, x",
        "element-loop",
    ),
    "two reads": (SAVE, "x = ctx.saved_tensors[0]\nw = ctx.saved_tensors[1]\nreturn g * w, g * x", "repeated-unpack"),
}
SILENT = {
    "new_zeros": (SAVE, TAKE + "return g * w * x, g.new_zeros(w.shape)", ""),
    "a device": (SAVE, TAKE + "z = torch.zeros(3, device=g.device)\nreturn g * w * x + z, None", ""),
    "a scalar": (SAVE, TAKE + "return g * w * x * torch.tensor(2.0), None", ""),
    "moved": (SAVE, TAKE + "z = torch.zeros(3).to(g)\nreturn g * w * x + z, None", ""),
    "a mask that is moved": (
        "mask = (torch.rand(x.shape) < 0.5).to(x.device)\nctx.save_for_backward(mask)\nreturn x.mul(mask)",
        "(mask,) = ctx.saved_tensors\nreturn g * mask, None",
        "",
    ),
    "one number per sample": (SAVE, TAKE + "return g.view(-1, 1, 1) * w * x, None", ""),
    "filled with a constant": (SAVE, TAKE + "o = torch.ones(3).scatter_(0, 1, 2)\nprint(o)\nreturn g * w, g * x", ""),
    "reshape": (SAVE, TAKE + "return g.reshape(-1) * w * x, None", ""),
    "contiguous before view": (SAVE, TAKE + "return g.contiguous().view(-1) * w * x, None", ""),
    "view that splits": (SAVE, TAKE + "return g.view(*g.shape[:-1], 2, -1) * w * x, None", ""),
    "a decorator that may make it contiguous": (SAVE, TAKE + "return g.view(-1) * w * x, None", "\n    @input_guard"),
    "strides passed": (SAVE, TAKE + "k[(1,)](g, x, w, g.stride(0))\nreturn x, None", ""),
    "reads in two branches": (
        SAVE,
        (
            "if ctx.flag:\n    x, w = ctx.saved_tensors\n    return g * w, g * x\nelse:\n    x, w = ctx.saved_tensors\n"
            "    return g * w, g * x"
        ),
        "",
    ),
    "a recurrence": (SAVE, TAKE + "h = g[0]\nfor i in range(g.shape[0]):\n    h = h * w[i] + g[i]\nreturn h, x", ""),
    "an assertion": (SAVE, TAKE + "assert g.abs().sum() > 0\nreturn g * w, g * x", ""),
    "a missing bias": (SAVE, TAKE + "if w is not None:\n    g = g * w\nreturn g, g * x", ""),
}


@pytest.mark.parametrize("name", FOUND)
def test_found(name: str) -> None:
    forward, backward, rule = FOUND[name]
    assert rule in rules_of(forward, backward)


@pytest.mark.parametrize("name", SILENT)
def test_silent(name: str) -> None:
    forward, backward, decorator = SILENT[name]
    assert rules_of(forward, backward, decorator) == set()


PRODUCT = ("ctx.save_for_backward(x, w)\nreturn x @ w", TAKE + "return g @ w.t(), x.t() @ g")


def test_autocast_counts_only_where_it_is_used() -> None:
    assert rules_of(*PRODUCT) == set()
    assert rules_of(*PRODUCT, after="\nwith torch.autocast('cuda'):\n    pass\n") == {"no-autocast"}


def test_torch_func_counts_only_where_it_is_used() -> None:
    assert rules_of(*PRODUCT, after="\ny = torch.func.vmap(Fn.apply)\n") == {"no-setup-context"}
