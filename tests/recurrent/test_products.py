"""Our own matrix products agree with torch's, whatever the sizes, the layout and the number of threads."""

from __future__ import annotations

import ctypes

import pytest
import torch

from gradsmith.native.kernels import Kernels
from gradsmith.native.products import _kernels, add_matmul, matmul

# Around the edges of tiles (12 rows), panels (32 columns), blocks (512 deep, 1024 wide) and chunks (96 rows); the last two have
# rows so long, and so many panels, that blocks of A are copied.
SIZES = [
    (1, 1, 1),
    (13, 300, 33),
    (97, 7, 600),
    (5, 513, 31),
    (96, 256, 512),
    (25, 64, 64),
    (2, 3, 0),
    (0, 3, 2),
    (2, 0, 3),
    (101, 1030, 1060),
    (530, 600, 513),
]


@pytest.fixture(params=["C", "oneDNN", "MKL"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Who multiplies: the next one where the one before cannot be had."""
    if request.param != "C":
        monkeypatch.setattr(Kernels, "ready", lambda self, dtype: False)
    if request.param == "MKL":
        monkeypatch.setattr("gradsmith.native.products.onednn_product", lambda a, b: None)
    return str(request.param)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("transposed_a", [False, True])
@pytest.mark.parametrize("transposed_b", [False, True])
def test_products_of_all_layouts(way: str, dtype: torch.dtype, transposed_a: bool, transposed_b: bool) -> None:
    for m, k, n in SIZES:
        a = torch.randn(k, m, dtype=dtype).t() if transposed_a else torch.randn(m, k, dtype=dtype)
        b = torch.randn(n, k, dtype=dtype).t() if transposed_b else torch.randn(k, n, dtype=dtype)
        exact = (a.double() @ b.double()).to(dtype)
        close = {"rtol": 1e-5, "atol": 1e-5 * max(k, 1) ** 0.5}
        torch.testing.assert_close(matmul(a, b), exact, **close)
        out, total, spread = torch.full_like(exact, 7.0), torch.ones_like(exact), exact.new_zeros(m, 2 * n)[:, ::2]
        assert matmul(a, b, out) is out and matmul(a, b, spread) is spread
        torch.testing.assert_close(out, exact, **close)
        torch.testing.assert_close(spread, exact, **close)
        torch.testing.assert_close(add_matmul(total, a, b), exact + 1, **close)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rows_and_columns_that_are_expanded_lie_nowhere_apart(way: str, dtype: torch.dtype) -> None:
    for m, k, n in SIZES:
        b = torch.randn(k, n, dtype=dtype)
        for a in (torch.randn(1, k, dtype=dtype).expand(m, k), torch.randn(m, 1, dtype=dtype).expand(m, k)):
            exact = (a.double() @ b.double()).to(dtype)
            torch.testing.assert_close(matmul(a, b), exact, rtol=1e-5, atol=1e-5 * max(k, 1) ** 0.5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_products_with_packed_weights_near_and_far(dtype: torch.dtype) -> None:
    """Beyond 512 KB of weights the next panel is fetched while one is used."""
    library = _kernels.loaded(dtype)
    for rows, inner, columns in [(7, 20, 40), (13, 513, 300), (128, 600, 520)]:
        a, b = torch.randn(rows, inner, dtype=dtype), torch.randn(inner, columns, dtype=dtype)
        result, packed = a.new_empty(rows, columns), a.new_empty(inner * (columns + 32))
        library.pack(*map(ctypes.c_void_p, (b.data_ptr(), packed.data_ptr())), *map(ctypes.c_long, (inner, columns)))
        pointers = map(ctypes.c_void_p, (a.data_ptr(), packed.data_ptr(), result.data_ptr()))
        library.product(*map(ctypes.c_long, (rows, columns, inner)), *pointers)
        torch.testing.assert_close(result, (a.double() @ b.double()).to(dtype), rtol=1e-5, atol=1e-4)


def test_two_threads_give_the_same_bits_as_one() -> None:
    a, b = torch.randn(300, 400), torch.randn(400, 300)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        one = matmul(a, b)
        torch.set_num_threads(2)
        two = matmul(a, b)
    finally:
        torch.set_num_threads(before)
    torch.testing.assert_close(one, two, rtol=0, atol=0)


def test_strides_without_a_unit_and_other_dtypes_go_to_torch() -> None:
    a, b = torch.randn(6, 8)[:, ::2], torch.randn(4, 3)
    torch.testing.assert_close(matmul(a, b), a @ b)
    whole = torch.arange(6).reshape(2, 3)
    assert matmul(whole, whole.t()).tolist() == (whole @ whole.t()).tolist()
