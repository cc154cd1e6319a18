"""What is done in few passes on CPU against modules of torch: the same values and gradients in float64."""

import pytest
import torch
from torch import nn

from spgcl.activations import activate, dropout_factors, normalise


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def inputs(height=30, width=11):
    return torch.randn(height, width, dtype=torch.float64, generator=seeded(5)).requires_grad_()


def compare(outcome, expected, sources, other_sources):
    """Both have the same numbers and, weighted at random, the same gradients."""
    torch.testing.assert_close(outcome, expected)
    weights = torch.randn(expected.shape, dtype=expected.dtype, generator=seeded(9))
    found = torch.autograd.grad((outcome * weights).sum(), sources)
    wanted = torch.autograd.grad((expected * weights).sum(), other_sources)
    for one, other in zip(found, wanted, strict=True):
        assert other.abs().max() > 0
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("rate", [0.0, 0.3])
@pytest.mark.parametrize("slope", [0.25, 0.0, -0.4, None])
def test_activation_and_dropout_are_those_of_torch(slope, rate):
    activation = nn.ReLU() if slope is None else nn.PReLU(init=slope).double()
    values = inputs()
    outcome = activate(values, activation, rate, seeded())
    factors = dropout_factors(values.shape, rate, seeded(), values.dtype)
    sources = [values, *activation.parameters()]
    compare(outcome, activation(values) * factors, sources, sources)


def test_a_value_of_zero_has_the_gradient_that_torch_gives_it():
    activation = nn.PReLU().double()
    values = torch.zeros(2, 3, dtype=torch.float64, requires_grad=True)
    (found,) = torch.autograd.grad(activate(values, activation).sum(), values)
    (wanted,) = torch.autograd.grad(activation(values).sum(), values)
    torch.testing.assert_close(found, wanted)


def test_nothing_is_dropped_without_a_generator():
    values = inputs().detach()
    assert torch.equal(activate(values, nn.ReLU(), 0.9), values.clamp(min=0))


@pytest.mark.parametrize("count", [1, 3, 4, 10_007])
def test_every_entry_is_decided_for(count):
    factors = dropout_factors(torch.Size([count]), 0.5, seeded(1), torch.float32)
    assert factors.shape == (count,)
    assert set(factors.tolist()) <= {0.0, 2.0}


def test_the_four_entries_that_a_word_decides_for_are_independent_and_alike():
    dropped = dropout_factors(torch.Size([50_000, 4]), 0.2, seeded(2), torch.float32) == 0
    # 50,000 coins an entry: five deviations are below 0.009.
    assert (dropped.double().mean(0) - 0.2).abs().max() < 0.009
    together = dropped.double().T @ dropped.double() / len(dropped)
    off_diagonal = together[~torch.eye(4, dtype=torch.bool)]
    assert (off_diagonal - 0.04).abs().max() < 0.005


@pytest.mark.parametrize("columns", [slice(None), slice(3, 8)], ids=["all-columns", "some-columns"])
@pytest.mark.parametrize("rows", [None, [4, 0, 29, 13]], ids=["all-rows", "some-rows"])
@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("training", [False, True])
def test_batch_norm_of_some_columns_and_rows_is_that_of_torch(training, affine, rows, columns):
    norms = [nn.BatchNorm1d(11, affine=affine).double().train(training) for _ in range(2)]
    for norm in norms:
        norm.running_mean.add_(torch.arange(11))
        for place, parameter in enumerate(norm.parameters()):
            nn.init.normal_(parameter, generator=seeded(place))
    values = inputs()
    chosen = None if rows is None else torch.tensor(rows)
    outcome = normalise(values[:, columns], norms[0], columns, chosen)
    expected = norms[1](values)[:, columns]
    expected = expected if rows is None else expected[rows]
    sources = [[values, *norm.parameters()] for norm in norms]
    compare(outcome, expected, *sources)
    for name in ("running_mean", "running_var"):
        ours, theirs = (getattr(norm, name)[columns] for norm in norms)
        torch.testing.assert_close(ours, theirs)
