"""The table of domains: what a row draws lies in it, what a tensor has is kept, and what is broken is broken."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gradsmith.lab.explore.drawing import broken, domains_of, drawn_from, every_domain, redrawn

SHAPES = [(4,), (3, 4), (4, 4), (2, 4, 4)]


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@settings(deadline=None, max_examples=40)
@given(st.sampled_from(SHAPES), st.integers(0, 10_000), st.sampled_from([1e-3, 1.0, 30.0]))
def test_what_a_domain_draws_lies_in_it(shape: tuple[int, ...], seed: int, scale: float) -> None:
    like = torch.randn(shape, dtype=torch.float64, generator=generator(seed)) * scale
    for domain in every_domain(like, differentiable=False):
        assert domain.contains(drawn_from(domain, like, generator(seed + 1))), domain.name


@settings(deadline=None, max_examples=40)
@given(st.sampled_from(SHAPES), st.integers(0, 10_000))
def test_other_values_keep_the_most_special_structure_of_the_example(shape: tuple[int, ...], seed: int) -> None:
    like = torch.randn(shape, dtype=torch.float64, generator=generator(seed))
    for row in every_domain(like, differentiable=False):
        example = drawn_from(row, like, generator(seed + 1))
        for held in domains_of(example, differentiable=False)[:1]:
            other = redrawn(example, example.shape, generator(seed + 2), differentiable=False)
            assert held.contains(other.double()), (row.name, held.name)


def test_random_numbers_have_no_structure() -> None:
    for seed in range(50):
        assert not domains_of(torch.randn(4, 4, dtype=torch.float64, generator=generator(seed)))


@pytest.mark.parametrize("constant", [0.0, 1.0])
def test_a_constant_is_poverty_and_no_structure_of_a_matrix(constant: float) -> None:
    names = [d.name for d in domains_of(torch.full((4, 4), constant, dtype=torch.float64))]
    assert not {"symmetric", "diagonal", "definite", "equal rows", "sorted"} & set(names)


def test_small_numbers_are_no_structure() -> None:
    small = 1e-2 * torch.randn(6, 6, dtype=torch.float64, generator=generator(0))
    assert not domains_of(small)
    assert float(redrawn(30 * small, small.shape, generator(1)).abs().max()) > 0.1


@pytest.mark.parametrize(
    ("example", "name"),
    [
        (torch.rand(3, 5, dtype=torch.float64).softmax(-1), "probability -1"),
        (torch.randn(3, 5, dtype=torch.float64).log_softmax(-1), "log-probability -1"),
        (torch.nn.functional.normalize(torch.randn(3, 5, dtype=torch.float64), dim=0), "unit length -2"),
        (torch.randn(4, 4, dtype=torch.float64).tril(), "lower triangular"),
        (torch.randn(20, dtype=torch.float64).abs(), "not negative"),
        (torch.randn(9, dtype=torch.float64).sort().values, "sorted"),
    ],
)
def test_structure_is_seen_and_can_be_broken(example: torch.Tensor, name: str) -> None:
    domain = next(d for d in domains_of(example) if d.name == name)
    other = broken(example, domain, domains_of(example), generator(3))
    assert other is not None and not domain.contains(other.double())


def test_breaking_definiteness_keeps_symmetry() -> None:
    half = torch.randn(4, 4, dtype=torch.float64, generator=generator(0))
    matrix = half @ half.mT + 4 * torch.eye(4, dtype=torch.float64)
    definite = next(d for d in domains_of(matrix) if d.name == "definite")
    other = broken(matrix, definite, domains_of(matrix), generator(1))
    assert other is not None and torch.allclose(other, other.mT)


def test_zeros_and_ones_are_a_domain_of_what_nobody_differentiates() -> None:
    mask = torch.tensor([0.0, 1.0, 1.0, 0.0])
    assert "binary" in [d.name for d in domains_of(mask, differentiable=False)]
    assert "binary" not in [d.name for d in domains_of(mask, differentiable=True)]


def test_a_permutation_stays_one_and_offsets_keep_their_ends() -> None:
    permutation = torch.tensor([2, 0, 3, 1])
    assert sorted(redrawn(permutation, (6,), generator(0)).tolist()) == [0, 1, 2, 3, 4, 5]
    offsets = torch.tensor([0, 2, 5, 9])
    other = redrawn(offsets, (4,), generator(0))
    assert other[0] == 0 and other[-1] == 9 and bool((other.diff() >= 0).all())
