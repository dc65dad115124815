"""Which dimensions of an example can be resized together, as PyTorch and one real forward say."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gradsmith.lab.explore.sizes import Size, parted_sizes, resized, sizes
from gradsmith.lab.lab import Lab
from gradsmith.lab.measure.gradient import Settings
from gradsmith.lab.subject.binding import bound
from gradsmith.lab.subject.target import resolve


def lab_of(subject: Any, *args: Any) -> Lab:
    target, arguments = bound(resolve(subject), args, {})
    return Lab(target, arguments, Settings())


def leaf(*shape: int) -> Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(*shape, dtype=torch.float64, generator=generator).requires_grad_()


def free(lab: Lab) -> set[str]:
    """Each free size in words: `x.1 w.0`, `x.2*2`, `number 3`."""
    names = {x.position: x.name for x in lab.precise[1].leaves}

    def times(n: int) -> str:
        return f"*{n}" if n > 1 else ""

    return {
        " ".join(
            [f"{names[p]}.{dim}{times(n)}" for p, dim, n in size.dims]
            + [f"number {p}{times(n)}" for p, n in size.numbers]
        )
        for size in sizes(lab)
    }


def one(lab: Lab, words: str) -> Size:
    """The size that resizes this dimension of this input."""
    name, _, dim = words.rpartition(".")
    position = next(x.position for x in lab.precise[1].leaves if x.name == name)
    return next(s for s in sizes(lab) if any((p, d) == (position, int(dim)) for p, d, _ in s.dims))


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Tensor) -> Tensor:
        ctx.save_for_backward(x, w)
        return x @ w

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        x, w = ctx.saved_tensors
        return grad_output @ w.T, x.T @ grad_output


def test_a_square_example_of_a_product_has_three_free_sizes() -> None:
    assert free(lab_of(Product, leaf(3, 3), leaf(3, 3))) == {"x.0", "x.1 w.0", "w.1"}


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1) @ v


def test_in_attention_the_width_of_values_is_free_of_that_of_queries() -> None:
    found = free(lab_of(attention, leaf(2, 4, 4), leaf(2, 4, 4), leaf(2, 4, 4)))
    assert found == {"q.0 k.0 v.0", "q.1", "q.2 k.2", "k.1 v.1", "v.2"}


def heads(x: Tensor, n_heads: int) -> Tensor:
    batch, time, width = x.shape
    return x.view(batch, time, n_heads, width // n_heads).transpose(1, 2)


def test_a_width_that_is_cut_into_heads_stays_a_multiple_of_their_number() -> None:
    lab = lab_of(heads, leaf(2, 3, 8), 4)
    assert free(lab) == {"x.0", "x.1", "x.2"}
    assert one(lab, "x.2").multiple_of == 4


def grouped(x: Tensor, w: Tensor) -> Tensor:
    return torch.nn.functional.conv2d(x, w, groups=2)


def test_channels_of_a_grouped_convolution_follow_those_of_the_kernel() -> None:
    lab = lab_of(grouped, leaf(1, 4, 5, 5), leaf(6, 2, 3, 3))
    assert free(lab) == {"x.0", "x.1*2 w.1", "x.2", "x.3", "w.0", "w.2", "w.3"}
    assert one(lab, "w.0").multiple_of == 2
    assert one(lab, "x.2").least == 3


def test_a_pixel_shuffle_needs_channels_divisible_by_the_square_of_the_factor() -> None:
    lab = lab_of(lambda x: torch.nn.functional.pixel_shuffle(x, 2), leaf(1, 8, 3, 3))
    assert free(lab) == {"x.0", "x.1", "x.2", "x.3"}
    assert one(lab, "x.1").multiple_of == 4


def summed_by(x: Tensor, index: Tensor, n: int) -> Tensor:
    return torch.zeros(n, x.shape[1], dtype=x.dtype).index_add(0, index, x)


def test_an_index_is_resized_with_the_rows_that_it_belongs_to() -> None:
    lab = lab_of(summed_by, leaf(4, 3), torch.tensor([0, 1, 1, 3]), 4)
    assert free(lab) == {"x.0 index.0", "x.1"}


def test_rows_of_which_a_gather_takes_as_many_belong_to_it() -> None:
    lab = lab_of(lambda x, index: x.gather(1, index), leaf(4, 3), torch.tensor([[0, 2]] * 4))
    assert free(lab) == {"x.0 index.0", "x.1", "index.1"}


def test_indices_stay_inside_a_dimension_that_shrinks() -> None:
    lab = lab_of(lambda x, index: x[index], leaf(5, 3), torch.tensor([0, 4, 3, -1]))
    smaller = resized(lab.arguments, one(lab, "x.0"), 2, 0)
    assert smaller.leaves[1].tensor.tolist() == [0, 0, 1, -1]
    assert smaller.leaves[0].tensor.shape == (2, 3)


def segments(x: Tensor, offsets: Tensor) -> Tensor:
    return torch.stack([x[int(a) : int(b)].sum(0) for a, b in itertools.pairwise(offsets)])


def test_offsets_that_end_at_a_size_end_there_again() -> None:
    lab = lab_of(segments, leaf(5, 3), torch.tensor([0, 2, 4, 5]))
    size = one(lab, "x.0")
    assert resized(lab.arguments, size, 7, 0).leaves[1].tensor.tolist() == [0, 2, 4, 7]
    assert resized(lab.arguments, size, 3, 0).leaves[1].tensor.tolist() == [0, 2, 3, 3]


def test_a_bias_follows_the_columns_it_is_added_to() -> None:
    assert free(lab_of(lambda x, b: x + b, leaf(3, 4), leaf(4))) == {"x.0", "x.1 b.0"}


def test_a_dimension_that_is_broadcast_can_become_what_it_is_broadcast_against() -> None:
    lab = lab_of(lambda x, b: x + b, leaf(3, 4), leaf(1, 4))
    size = one(lab, "b.0")
    assert (size.value, size.least, size.learned) == (1, 3, "broadcast")


def test_a_batch_of_one_grows_in_all_inputs() -> None:
    assert free(lab_of(lambda x, y: x * y, leaf(1, 4), leaf(1, 4))) == {"x.0 y.0", "x.1 y.1"}


def test_what_has_to_fit_the_parameters_of_a_module_is_not_resized() -> None:
    assert free(lab_of(nn.Linear(3, 3).double(), leaf(3, 3, 3))) == {"input.0", "input.1"}


class Numpy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Tensor) -> Tensor:
        ctx.save_for_backward(x, w)
        return torch.from_numpy(x.detach().numpy() @ w.detach().numpy())

    backward = Product.backward


def test_where_forward_leaves_torch_all_equal_sizes_move_together() -> None:
    lab = lab_of(Numpy, leaf(2, 3), leaf(3, 3))
    assert free(lab) == {"x.0", "x.1 w.0 w.1"}
    assert {s.learned for s in sizes(lab)} == {"together"}


def picky(x: Tensor) -> Tensor:
    assert x.shape[0] % 2 == 0 and x.shape[1] > 2
    first, second = x.chunk(2, 0)
    return first * second


def test_an_assert_on_a_size_is_respected() -> None:
    lab = lab_of(picky, leaf(4, 4))
    assert (one(lab, "x.0").multiple_of, one(lab, "x.1").least) == (2, 3)


def test_a_size_that_an_assert_fixes_is_not_free() -> None:
    def three(x: Tensor) -> Tensor:
        assert x.shape[1] == 3
        return x * x

    assert free(lab_of(three, leaf(3, 3))) == {"x.0"}


def joined(*parts: Tensor) -> Tensor:
    return torch.cat(parts)


def test_parts_of_different_sizes_are_free_of_each_other() -> None:
    assert free(lab_of(joined, leaf(2, 3), leaf(2, 3))) == {"parts[0].0", "parts[0].1 parts[1].1", "parts[1].0"}


def branching(x: Tensor, w: Tensor) -> Tensor:
    return x @ w if bool(x.sum() > 0) else 2 * x @ w


def recurrence(x: Tensor, w: Tensor) -> Tensor:
    state = x[0]
    for t in range(x.shape[0]):
        state = torch.tanh(state @ w + x[t])
    return state


def counted(x: Tensor, mask: Tensor, n: int) -> Tensor:
    total = torch.zeros_like(x[0])
    for t in range(n):
        total = total + x[t] * mask[t]
    return total


@pytest.mark.parametrize(
    ("forward", "inputs", "expected"),
    [
        (branching, (leaf(3, 3), leaf(3, 3)), {"x.0", "x.1 w.0", "w.1"}),
        (recurrence, (leaf(4, 3, 3), leaf(3, 3)), {"x.0", "x.1", "x.2 w.0 w.1"}),
        (counted, (leaf(4, 3), leaf(4, 3), 4), {"x.0 mask.0 number 2", "x.1 mask.1"}),
        (lambda x, y: x.reshape(-1) * y, (leaf(4, 4), leaf(16)), {"x.0 y.0*4", "x.1 y.0*4"}),
        (lambda x, g: x[:, : x.shape[1] // 2] * g, (leaf(5, 8), leaf(5, 4)), {"x.0 g.0", "x.1*2 g.1"}),
        (lambda x, n: torch.split(x, n)[0], (leaf(5, 3), [2, 3]), {"x.0*5 number 1*2 number 2*3", "x.1"}),
        (lambda x: torch.fft.fft2(x).abs(), (leaf(4, 4),), {"x.0", "x.1"}),
    ],
    ids=[
        "branch on values",
        "loop over time",
        "loop over a number",
        "flattened",
        "half",
        "parts by number",
        "two sides",
    ],
)
def test_sizes_are_learned_through(forward: Callable[..., Any], inputs: tuple[Any, ...], expected: set[str]) -> None:
    assert free(lab_of(forward, *inputs)) == expected


def test_a_number_that_may_only_be_a_number_follows_the_size_that_it_states() -> None:
    def rows(x: Tensor, n: int) -> Tensor:
        assert isinstance(n, int)
        return x.view(n, 3) * 2

    assert free(lab_of(rows, leaf(4, 3), 4)) == {"x.0 number 1"}


def test_a_tensor_that_is_passed_twice_stays_one() -> None:
    x = leaf(3, 3)
    lab = lab_of(Product, x, x)
    assert free(lab) == {"x.0 x.1 w.0 w.1"}
    larger = resized(lab.arguments, one(lab, "x.0"), 4, 0)
    assert larger.leaves[0].tensor is larger.leaves[1].tensor


def test_the_same_seed_gives_the_same_values() -> None:
    lab = lab_of(Product, leaf(3, 3), leaf(3, 3))
    size = one(lab, "x.0")
    first, second, other = (resized(lab.arguments, size, 5, seed).leaves[0].tensor for seed in (0, 0, 1))
    assert torch.equal(first, second) and not torch.equal(first, other)


def test_nothing_of_the_example_is_changed() -> None:
    x, index = leaf(5, 3), torch.tensor([0, 4])
    before = x.detach().clone()
    lab = lab_of(lambda x, index: x[index], x, index)
    resized(lab.arguments, one(lab, "x.0"), 2, 0)
    assert torch.equal(x, before) and index.tolist() == [0, 4]


_ROWS: dict[int, Tensor] = {}


class Keeps(torch.autograd.Function):
    """Writes to its class, to a global and to a container at every call."""

    mean = torch.zeros((), dtype=torch.float64)
    seen: list[Tensor] = []

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        Keeps.mean = 0.9 * Keeps.mean + 0.1 * x.detach().mean()
        Keeps.seen.append(x.detach())
        return x * _ROWS.setdefault(int(x.shape[0]), torch.ones(x.shape[0], 1, dtype=x.dtype))

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        return grad_output


class Running(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(3, dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        self.mean = 0.9 * self.mean + 0.1 * x.detach().mean(0)
        return x - self.mean


def test_what_forward_keeps_for_itself_is_never_a_stand_in() -> None:
    module = Running()
    assert free(lab_of(Keeps, leaf(4, 3))) and free(lab_of(module, leaf(4, 3)))
    kept = [Keeps.mean, *Keeps.seen, *_ROWS.values(), module.mean]
    assert {type(tensor) for tensor in kept} == {Tensor}


def no_more_than_and_equal(a: Tensor, b: Tensor) -> Tensor:
    if a.shape[0] > b.shape[0]:
        raise ValueError("too long")
    return a + b


def no_more_than(a: Tensor, b: Tensor) -> Tensor:
    if a.shape[0] > b.shape[0]:
        raise ValueError("too long")
    return a.sum(0) + b.sum(0)


def test_sizes_part_where_only_an_order_is_asked_for_and_stay_together_where_they_must_be_equal() -> None:
    parted = parted_sizes(lab_of(no_more_than, leaf(4, 3), leaf(4, 3)))
    assert [(size.dims, size.beside) for size in parted] == [(((1, 0, 1),), (0, 0))]
    assert parted_sizes(lab_of(no_more_than_and_equal, leaf(4, 3), leaf(4, 3))) == []
