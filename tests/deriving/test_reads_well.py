"""What is derived reads, and runs, as a person would write it."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from gradsmith.deriving.deriving import derived
from gradsmith.deriving.trying import kept_by_autograd


def r(*shape: int) -> torch.Tensor:
    return torch.rand(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()


def backward_of(fn: Any, *inputs: Any, fast: bool = False) -> str:
    return derived(fn, inputs, {}, fast=fast).source.split("def backward", 1)[1].split("\ndef ", 1)[0]


def forward_of(fn: Any, *inputs: Any) -> str:
    return derived(fn, inputs, {}).source.split("def forward", 1)[1].split("@staticmethod", 1)[0]


def test_small_factors_come_before_large_ones() -> None:
    def loss(x: Any, target: Any) -> Any:
        return ((x - target) ** 2).mean()

    assert "(2 * grad_output / x_minus_target.numel() * x_minus_target)" in backward_of(loss, r(3, 4), r(3, 4).detach())


def test_a_quotient_of_numbers_is_not_computed_where_its_value_would_say_nothing() -> None:
    def linearised(x: Any) -> Any:
        return ((x + 0.055) / 1.055) ** 2.4

    assert "2.4 / 1.055 * grad_output" in backward_of(linearised, r(3, 4))


def test_signs_are_written_once() -> None:
    def difference(x: Any, y: Any) -> Any:
        return -(x * torch.exp(-y)).sum(-1)

    assert " - -" not in backward_of(difference, r(3, 4), r(3, 4)) and "--" not in backward_of(
        difference, r(3, 4), r(3, 4)
    )


def test_like_terms_are_added() -> None:
    def ratio(x: Any, y: Any) -> Any:
        shared = (x * y).sum(-1)
        return shared / (x.sum(-1) + y.sum(-1) - 2 * shared + shared)

    assert "2 *" not in backward_of(ratio, r(3, 4), r(3, 4).detach())


def test_a_call_of_torch_stays_one_call_in_forward() -> None:
    def loss(logits: Any, target: Any) -> Any:
        return F.binary_cross_entropy_with_logits(logits, target, reduction="none").sum(-1)

    target = r(3, 4).detach()
    assert 'F.binary_cross_entropy_with_logits(logits, target, reduction="none")' in forward_of(loss, r(3, 4), target)
    assert "torch.sigmoid(logits) - target" in backward_of(loss, r(3, 4), target)


def test_sizes_have_the_names_of_the_source() -> None:
    def pooled(x: Any) -> Any:
        b, c, h, w = x.shape
        return x.reshape(b, c, h * w).mean(-1) * h

    assert "b, c, h, w = x.shape" in forward_of(pooled, r(2, 3, 4, 5))


def test_gradients_that_are_added_up_by_index_go_into_the_same_zeros() -> None:
    def edges(x: Any, i: Any, j: Any) -> Any:
        return x[i] * x[j]

    text = backward_of(edges, r(5, 3), torch.tensor([0, 1, 1]), torch.tensor([2, 2, 4]))
    assert text.count("new_zeros") == 1 and text.count("index_put_(") == 2


def test_places_that_do_not_overlap_are_assigned() -> None:
    def turned(x: Any) -> Any:
        return torch.stack((x[..., 0::2] * 2, -x[..., 1::2]), -1)

    assert "+=" not in backward_of(turned, r(3, 4))


def test_fast_uses_the_kernels_of_autograd() -> None:
    def gated(x: Any) -> Any:
        return torch.softmax(F.silu(x), -1)

    assert "aten._softmax_backward_data" in backward_of(gated, r(3, 4), fast=True)
    assert "aten" not in backward_of(gated, r(3, 4))


def test_fast_keeps_no_more_than_autograd() -> None:
    def chain(x: Any, y: Any) -> Any:
        return (torch.tanh(x * y) * torch.exp(x) + torch.sin(y)).cos()

    made = derived(chain, (r(3, 4), r(3, 4)), {}, fast=True)
    assert made.plan.nbytes <= kept_by_autograd(chain, made.example, {"x", "y"})


def test_an_input_may_be_called_grad_output() -> None:
    def backward_of_square(x: Any, grad_output: Any) -> Any:
        return 2 * grad_output * x

    assert "def backward(ctx, grad_result)" in derived(backward_of_square, (r(3), r(3)), {}).source


def test_the_places_of_a_condition() -> None:
    def chosen(x: Any, mask: Any) -> Any:
        i, j = torch.where(mask > 0)
        return x[i, j] ** 2

    assert "torch.nonzero(mask" in derived(chosen, (r(3, 4), r(3, 4).detach()), {}).source


def test_multiples_of_one_value_are_one_term() -> None:
    def gaussian(x: Any, log_sigma: Any) -> Any:
        z = x * torch.exp(-log_sigma)
        return -0.5 * z * z - log_sigma

    text = backward_of(gaussian, r(3, 4), r(3, 4))
    assert "0.5" not in text and "grad_z = -grad_output * z" in text
    assert "grad_z * z" in text  # x * exp(-log_sigma) is z


def test_a_factor_that_cancels_is_not_written() -> None:
    def rounded(x: Any, scale: Any) -> Any:
        q = x / scale
        return torch.clamp(q, -1, 1) * scale

    text = backward_of(rounded, r(3, 4), r())
    assert "grad_x = grad_output * slope" in text


def test_parts_that_are_copies_are_computed_once() -> None:
    def mixed(image: Any, i: Any, weight: Any) -> Any:
        return torch.sin(image[i] * weight) * image[i]

    text = backward_of(mixed, r(5, 3), torch.tensor([0, 1, 1, 2, 4, 3]), r(6, 3))
    assert text.count("image[i]") <= 1


def test_states_that_forward_stacks_are_not_kept_a_second_time() -> None:
    def recurrent(x: Any, h: Any, w: Any) -> Any:
        states = []
        for t in range(x.shape[0]):
            h = torch.tanh(x[t] + h @ w)
            states.append(h)
        return torch.stack(states)

    source = derived(recurrent, (r(6, 2, 3), r(2, 3), r(3, 3)), {}).source
    assert "torch.cat((h.unsqueeze(0), output[:-1]))" in source and "mark_non_differentiable" not in source


def test_what_does_nothing_is_not_written() -> None:
    def shifted(x: Any) -> Any:
        y = torch.empty_like(x)
        y[:, :-1] = x[:, 1:].reshape(x.shape[0], -1)
        y[:, -1] = 1.0
        return y

    text = backward_of(shifted, r(3, 4))
    assert "sum_to_size" not in text and ".reshape(" not in text
    assert "full_like" not in forward_of(shifted, r(3, 4))


def test_a_sum_does_not_keep_a_dimension_to_drop_it() -> None:
    def spread(x: Any, y: Any) -> Any:
        return x.unsqueeze(-1) * y

    assert "(grad_output * y).sum(-1)" in backward_of(spread, r(3), r(3, 4))


def test_sizes_that_are_written_often_have_a_name_in_backward() -> None:
    def halves(x: Any, y: Any) -> Any:
        half = x.shape[-1] // 2
        n = y.shape[-1]
        return torch.cat((x[..., :half] * n, x[..., half:] * n / (n + 1)), -1) * y

    assert "    n = y.shape[-1]" in backward_of(halves, r(3, 4), r(3, 4))


def test_pi_is_written_by_name() -> None:
    import math

    assert "math.pi / 2 * " in backward_of(lambda_of_pi, r(3)) and math.pi


def lambda_of_pi(x: Any) -> Any:
    import math

    return torch.sin(x * (math.pi / 2))


def test_halves_are_derived_for_even_sizes_not_for_one_shape() -> None:
    def rotated(x: Any) -> Any:
        a, b = x.chunk(2, -1)
        return torch.cat((-b, a), -1)

    assert "if x.shape[-1] % 2 != 0:" in derived(rotated, (r(3, 4),), {}).source


def test_long_lines_are_broken_at_commas() -> None:
    from gradsmith.deriving.wrapping import wrapped

    line = "    out = torch.stack((torch.cat((first, second, third), -1), 'a, b', torch.cat((fourth, fifth), -1)), -2)"
    broken = wrapped(line, 60)
    assert len(broken) > 1 and max(map(len, broken)) <= 60 and "".join(broken).count("'a, b'") == 1
    compile("if True:\n" + "\n".join(broken), "broken", "exec")
