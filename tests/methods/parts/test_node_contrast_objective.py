import pytest
import torch
from contrast_oracle import naive_loss
from torch.nn.functional import normalize
from torch.utils.flop_counter import FlopCounterMode

from spgcl.errors import InputError
from spgcl.methods.parts import node_contrast as module
from spgcl.methods.parts.node_contrast import node_contrast


def two_views(num_nodes=7, width=4, *, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(2, num_nodes, width, generator=generator, dtype=torch.float64).unbind(0)


def unblocked(first, second, temperature):
    """The same by autograd through whole matrices."""
    first, second = normalize(first), normalize(second)

    def one_way(own, others):
        between, within = own @ others.T / temperature, own @ own.T / temperature
        own_entry = torch.eye(len(own), dtype=torch.bool)
        joined = torch.cat([between, within.masked_fill(own_entry, -torch.inf)], dim=1)
        return joined.logsumexp(1) - between.diagonal()

    return (one_way(first, second) + one_way(second, first)).mean() / 2


@pytest.mark.parametrize("temperature", [0.2, 0.7, 3.0])
@pytest.mark.parametrize("num_nodes", [1, 2, 7])
def test_the_objective_is_that_of_naive_loops(num_nodes, temperature):
    first, second = two_views(num_nodes)
    loss = node_contrast(first, second, temperature=temperature)
    assert loss.item() == pytest.approx(naive_loss(first, second, temperature), rel=1e-12, abs=1e-12)


# One entry, some that do not divide the number of rows, half of them, all of them, more than there are.
@pytest.mark.parametrize("tile", [1, 3, 4, 7, 14, 100])
@pytest.mark.parametrize("kept_bytes", [0, 10**6], ids=["computed-twice", "kept"])
def test_tiles_give_the_value_and_gradient_of_the_whole_matrix(tile, kept_bytes, monkeypatch):
    monkeypatch.setattr(module, "KEPT_BYTES", kept_bytes)
    first, second = (view.requires_grad_() for view in two_views())
    # Another function follows, so that the incoming gradient is not 1.
    expected = 3 * unblocked(first, second, 0.4)
    wanted = torch.autograd.grad(expected, (first, second))
    loss = 3 * node_contrast(first, second, temperature=0.4, tile=tile)
    torch.testing.assert_close(loss, expected)
    for gradient, other in zip(torch.autograd.grad(loss, (first, second)), wanted, strict=True):
        torch.testing.assert_close(gradient, other, rtol=1e-9, atol=1e-12)
        assert gradient.abs().max() > 1e-3


def test_gradients_match_finite_differences():
    first, second = (view.requires_grad_() for view in two_views(5, 3))
    assert torch.autograd.gradcheck(
        lambda one, other: node_contrast(one, other, temperature=0.5, tile=3), (first, second)
    )


def test_a_low_temperature_neither_overflows_nor_vanishes():
    first, second = (view.float().requires_grad_() for view in two_views(20))
    loss = node_contrast(first, second, temperature=0.005)
    assert loss.item() == pytest.approx(naive_loss(first.double(), second.double(), 0.005), rel=1e-4)
    (gradient,) = torch.autograd.grad(loss, first)
    assert gradient.isfinite().all() and gradient.abs().max() > 0


def test_a_temperature_whose_exponentials_overflow_is_refused():
    with pytest.raises(InputError, match=r"temperature is 0\.001"):
        node_contrast(*two_views(), temperature=0.001)


def test_the_order_of_nodes_makes_no_difference():
    first, second = two_views(30)
    order = torch.randperm(30, generator=torch.Generator().manual_seed(1))
    loss = node_contrast(first, second, temperature=0.4)
    torch.testing.assert_close(node_contrast(first[order], second[order], temperature=0.4), loss)
    assert not torch.isclose(node_contrast(first[order], second, temperature=0.4), loss)


def test_half_of_the_similarities_are_computed_and_those_kept_only_once(monkeypatch):
    first, second = (view.requires_grad_() for view in two_views(40))
    work = []
    for kept_bytes in (0, 10**6):
        monkeypatch.setattr(module, "KEPT_BYTES", kept_bytes)
        with FlopCounterMode(display=False) as counter:
            node_contrast(first, second, temperature=0.4, tile=10).backward()
        work.append(counter.get_total_flops())
    # 80 rows are 8 tiles per side: those on and above the diagonal, for the sums and for the gradient.
    half = (8 * 9 // 2) * 2 * 10 * 10 * 4
    assert work == [2 * half, half]


def test_without_a_gradient_only_the_sums_are_computed(monkeypatch):
    monkeypatch.setattr(module, "_repulsion", None)
    assert node_contrast(*two_views(), temperature=0.4).isfinite()
