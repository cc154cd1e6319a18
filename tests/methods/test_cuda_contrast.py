"""The objective over all pairs of nodes on CUDA, in float16 if TF32 is allowed."""

from collections.abc import Callable
from types import ModuleType

import pytest
import torch

from spgcl.engine.device import arithmetic
from spgcl.engine.kernels import tiles
from spgcl.methods.parts import node_contrast as module
from spgcl.methods.parts.node_contrast import node_contrast

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")

CUDA = torch.device("cuda")


def two_views(num_nodes: int, width: int, likeness: float) -> list[torch.Tensor]:
    """Two views of nodes that have a direction in common, the more so the larger `likeness`."""
    generator = torch.Generator(CUDA).manual_seed(0)
    shared = torch.randn(num_nodes, width, generator=generator, device=CUDA) + likeness
    noise = torch.randn(2, num_nodes, width, generator=generator, device=CUDA)
    return [(shared + part).requires_grad_() for part in noise]


def value_and_gradients(
    views: list[torch.Tensor], temperature: float, precision: str = "tf32"
) -> tuple[torch.Tensor, torch.Tensor]:
    with arithmetic(CUDA, precision):
        loss = node_contrast(*views, temperature=temperature)
        return loss.detach(), torch.cat(torch.autograd.grad(loss, views))


@pytest.fixture
def launched(launches: Callable[[ModuleType], list[str]]) -> list[str]:
    return launches(tiles)


# Nodes and sides of tiles: one block and several, whole and broken ones; multiples of eight and others.
SIZES = [(5, 16384), (100, 64), (803, 16384), (1501, 1024), (1280, 512)]


@pytest.mark.parametrize(("num_nodes", "side"), SIZES)
@pytest.mark.parametrize("width", [24, 20])
@pytest.mark.parametrize("temperature", [0.1, 0.4, 1.0])
@pytest.mark.parametrize("likeness", [0.0, 3.0], ids=["unlike", "alike"])
def test_float16_has_the_value_and_gradient_of_float64(
    num_nodes: int,
    side: int,
    width: int,
    temperature: float,
    likeness: float,
    launched: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "HALVED_TILE", side)
    views = two_views(num_nodes, width, likeness)
    loss, gradients = value_and_gradients(views, temperature)
    spans = -(-2 * num_nodes // side)
    tile_count = spans * (spans + 1) // 2
    assert launched == ["exponential_sums"] * tile_count + ["exponential_shares"] * tile_count
    exact, expected = value_and_gradients(
        [view.detach().double().requires_grad_() for view in views], temperature
    )
    assert loss.item() == pytest.approx(exact.item(), abs=1e-3 / temperature)
    assert (gradients - expected).norm() < 2e-3 / temperature * expected.norm()


def test_the_same_input_gives_the_same_bytes() -> None:
    views = two_views(3000, 32, 1.0)
    first, second = (value_and_gradients(views, 0.3) for _ in range(2))
    assert torch.equal(first[0], second[0]) and torch.equal(first[1], second[1])


@pytest.mark.parametrize(("precision", "temperature"), [("float32", 0.4), ("tf32", 0.09)])
def test_float32_and_low_temperatures_stay_in_float32(
    precision: str, temperature: float, launched: list[str]
) -> None:
    loss, gradients = value_and_gradients(two_views(50, 24, 0.0), temperature, precision)
    assert not launched and loss.isfinite() and gradients.isfinite().all()


def test_no_tile_is_larger_than_half_a_gibibyte() -> None:
    views = two_views(20000, 16, 0.0)
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    value_and_gradients(views, 0.4)
    assert torch.cuda.max_memory_allocated() - before < 2 * module.HALVED_TILE**2 + 64 * 2**20
