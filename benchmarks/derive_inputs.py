"""Inputs written by hand for harvested forwards where gradsmith's guess failed: what a reader of signature and docstring would write.

By hash of the source, as code with `torch`. All were written before the first run of `derive.py run` on them. WITHOUT names those of
which the same reader sees that there is nothing to derive: no tensor of floating-point numbers goes in, or none comes out.
"""

from __future__ import annotations

_D = ", dtype=torch.float64"

BY_HAND: dict[str, str] = {
    # diffusers _apply_ucpe_transform(feats, matrix)
    "e0dd0f34d302f628": f"(torch.randn(2, 3, 5, 16{_D}, requires_grad=True), torch.randn(2, 5, 4, 4{_D}, requires_grad=True))",
    # torchani map_to_central(coordinates, cell, pbc)
    "7ec6eafc2b62858b": f"(torch.randn(2, 5, 3{_D}, requires_grad=True), 4 * torch.eye(3{_D}) + 0.1 * torch.rand(3, 3{_D}), torch.tensor([True, True, False]))",
    # geoopt block_matrix(blocks)
    "4896a546da11bbc4": f"([[torch.randn(2, 3{_D}, requires_grad=True), torch.randn(2, 4{_D}, requires_grad=True)], "
    f"[torch.randn(5, 3{_D}, requires_grad=True), torch.randn(5, 4{_D}, requires_grad=True)]],)",
    # espnet get_segments(x, start_idxs, segment_size)
    "d2cca04444d828b2": f"(torch.randn(3, 2, 9{_D}, requires_grad=True), torch.tensor([0, 4, 2]), 4)",
    # torchvision _clamp_along_y_axis(bounding_boxes, original_bounding_boxes, canvas_size, clamping_mode)
    "865ae7c6d61363c2": f"((100 * torch.rand(3, 8{_D}) + 5).requires_grad_(), 100 * torch.rand(3, 8{_D}) + 5, (120, 120), 'soft')",
    # kornia _determinant_to_polynomial_jit(A)
    "cf81eef10b3520af": f"(torch.randn(2, 3, 13{_D}, requires_grad=True),)",
    # snntorch stdp_conv2d_single_step(conv, in_spike, out_spike, trace_pre, trace_post, tau_pre, tau_post)
    "153d063ad3cbc056": f"(torch.nn.Conv2d(2, 3, 3).double(), torch.rand(2, 2, 6, 6{_D}, requires_grad=True), "
    f"torch.rand(2, 3, 4, 4{_D}, requires_grad=True), None, None, 2.0, 3.0)",
    # torchmetrics _fowlkes_mallows_index_compute(contingency, n)
    "36ad5b217558a708": f"((5 * torch.rand(4, 4{_D}) + 1).requires_grad_(), 20)",
    # botorch sparse_to_dense_constraints(d, constraints)
    "c43bde8cfb2a46f0": f"(4, [(torch.tensor([0, 2]), torch.randn(2{_D}, requires_grad=True), 1.0), (torch.tensor([1, 3]), torch.randn(2{_D}, requires_grad=True), -0.5)])",
}

WITHOUT: dict[str, str] = {
    "b7faea0af240ca42": "takes a list of counts",
    "c282ec9554ff1662": "takes a configuration, no tensor",
    "857c1c3342439739": "takes lengths, and wants a GPU",
    "4d39af72b1293e53": "takes bytes",
    "8c44498133244c99": "takes lengths",
    "9631b5e183a715ff": "takes sizes",
    "b8a9a55fdb245fcf": "takes ids and modules",
    "badc0dc2a6704e2f": "takes numbers",
    "c8d395f78bd343bb": "takes a name",
    "2fb18ce813b49540": "draws random numbers, and takes a size",
}
