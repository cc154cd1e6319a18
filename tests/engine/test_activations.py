"""The fused operations on CPU against modules of torch: the same values and gradients in float64."""

import pytest
import torch
from graphs import seeded
from torch import nn

from spgcl.engine.activations import activate, dropout_factors, gram, normalise, normalised_product


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
    outcome = activate(values, activation, rate, seeded(0))
    factors = dropout_factors(values.shape, rate, seeded(0), values.dtype)
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
    # 50,000 draws per entry: five deviations are below 0.009.
    assert (dropped.double().mean(0) - 0.2).abs().max() < 0.009
    together = dropped.double().T @ dropped.double() / len(dropped)
    off_diagonal = together[~torch.eye(4, dtype=torch.bool)]
    assert (off_diagonal - 0.04).abs().max() < 0.005


def two_norms(affine, training=True):
    """Two modules of batch norm that are alike, with parameters and statistics drawn at random."""
    norms = [nn.BatchNorm1d(11, affine=affine).double().train(training) for _ in range(2)]
    for norm in norms:
        norm.running_mean.add_(torch.arange(11))
        for seed, parameter in enumerate(norm.parameters()):
            nn.init.normal_(parameter, generator=seeded(seed))
    return norms


def assert_same_statistics(norms, columns=slice(None)):
    for name in ("running_mean", "running_var"):
        ours, theirs = (getattr(norm, name)[columns] for norm in norms)
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("columns", [slice(None), slice(3, 8)], ids=["all-columns", "some-columns"])
@pytest.mark.parametrize("rows", [None, [4, 0, 29, 13]], ids=["all-rows", "some-rows"])
@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("training", [False, True])
def test_batch_norm_of_some_columns_and_rows_is_that_of_torch(training, affine, rows, columns):
    norms = two_norms(affine, training)
    values = inputs()
    chosen = None if rows is None else torch.tensor(rows)
    outcome = normalise(values[:, columns], norms[0], columns, chosen)
    expected = norms[1](values)[:, columns]
    expected = expected if rows is None else expected[rows]
    sources = [[values, *norm.parameters()] for norm in norms]
    compare(outcome, expected, *sources)
    assert_same_statistics(norms, columns)


@pytest.mark.parametrize("rows", [None, [4, 0, 29, 13]], ids=["all-rows", "some-rows"])
def test_a_bias_that_is_left_out_moves_the_running_mean_alone(rows):
    norms = two_norms(affine=True)
    values, bias = inputs(), torch.arange(11.0, dtype=torch.float64)
    chosen = None if rows is None else torch.tensor(rows)
    outcome = normalise(values, norms[0], slice(None), chosen, bias)
    expected = norms[1](values + bias)
    expected = expected if rows is None else expected[rows]
    compare(outcome, expected, [values], [values])
    assert_same_statistics(norms)


@pytest.mark.parametrize("affine", [False, True])
def test_batch_norm_by_the_covariance_of_the_inputs_is_that_of_torch(affine):
    norms = two_norms(affine)
    values = inputs(width=7)
    weight = torch.randn(7, 11, dtype=torch.float64, generator=seeded(6)).requires_grad_()
    bias, rows = torch.arange(11.0, dtype=torch.float64), [4, 0, 29, 13]
    # What comes in is centred where it is.
    outcome = normalised_product(values.clone(), weight, bias, norms[0], torch.tensor(rows))
    expected = norms[1](values @ weight + bias)[rows]
    sources = [[values, weight, *norm.parameters()] for norm in norms]
    compare(outcome, expected, *sources)
    assert_same_statistics(norms)


def test_statistics_by_covariance_lose_little_where_means_are_large_and_columns_alike():
    common = torch.randn(2000, 1, dtype=torch.float64, generator=seeded(1))
    own = torch.randn(2000, 300, dtype=torch.float64, generator=seeded(2))
    values = 50 + 10 * common + own
    weight = torch.randn(300, 40, dtype=torch.float64, generator=seeded(3))
    rows = torch.arange(100)
    outcomes = [
        normalised_product(
            values.to(dtype, copy=True),
            weight.to(dtype),
            torch.zeros(40, dtype=dtype),
            nn.BatchNorm1d(40, affine=False, dtype=dtype),
            rows,
        )
        for dtype in (torch.float32, torch.float64)
    ]
    torch.testing.assert_close(outcomes[0].double(), outcomes[1], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("width", [3, 256, 600])
def test_products_of_all_pairs_of_columns(width):
    values = torch.randn(20, width, dtype=torch.float64, generator=seeded(4))
    torch.testing.assert_close(gram(values), values.T @ values)
