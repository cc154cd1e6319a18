"""AFGRL's search for neighbours and clusters on CUDA, in float16 if TF32 is allowed."""

from collections.abc import Callable
from types import ModuleType

import pytest
import torch
from torch.nn.functional import normalize

from spgcl.engine.device import arithmetic
from spgcl.engine.kernels import nearest
from spgcl.methods import afgrl
from spgcl.methods.afgrl import k_means, nearest_nodes

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")

CUDA = torch.device("cuda")


def drawn(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator(CUDA).manual_seed(0), device=CUDA)


@pytest.mark.parametrize("width", [1, 5, 255, 256, 257, 5000])
@pytest.mark.parametrize("count", [1, 4, 16])
def test_largest_columns_are_those_of_a_stable_sort(width: int, count: int) -> None:
    # Many entries are equal; rows are part of wider ones.
    values = drawn(7, width + 3).mul(4).round()[:, :width]
    values[2, : width // 2] = torch.inf
    values[3] = -torch.inf
    count = min(count, width)
    expected = values.sort(dim=1, descending=True, stable=True).indices[:, :count]
    assert torch.equal(nearest.largest_columns(values, count), expected)


def test_columns_stay_in_range_where_nothing_is_a_number() -> None:
    values = torch.full((3, 300), torch.nan, device=CUDA)
    values[1, 70] = 1.0
    found = nearest.largest_columns(values, 4)
    assert found[1, 0] == 70 and found.min() >= 0 and found.max() < 300
    places = nearest.best_places(values, torch.zeros(3, 100, device=CUDA))
    assert places[1].tolist()[0] == 70 and places.min() >= 0 and places.max() < 100


@pytest.mark.parametrize("size", [1, 20, 32, 100])
@pytest.mark.parametrize("rows", [1, 13, 400])
def test_best_places_are_those_of_the_largest_sums(size: int, rows: int) -> None:
    values, offsets = drawn(rows, 5 * size), drawn(5, size)
    expected = (values.view(rows, 5, size) + offsets).argmax(dim=2)
    assert torch.equal(nearest.best_places(values, offsets).long(), expected)


@pytest.fixture
def launched(launches: Callable[[ModuleType], list[str]]) -> list[str]:
    return launches(nearest)


def test_neighbours_in_float16_are_those_of_float64(
    launched: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(afgrl, "BLOCK_BYTES", 100 * 320 * 4)
    # Eighths: exact in float16, and so are the sums of their products.
    vectors, others = drawn(2, 301, 6).mul(8).round().div(8)
    others[:, 0] += torch.arange(301, device=CUDA) / 64
    with arithmetic(CUDA, "tf32"):
        found = nearest_nodes(vectors, others, 5)
    assert launched == ["largest_columns"] * 4
    exact = vectors.double() @ others.double().T
    exact.fill_diagonal_(torch.inf)
    assert torch.equal(found[:, 0], torch.arange(301, device=CUDA))
    # Which of equals comes first is for the search to say.
    torch.testing.assert_close(exact.gather(1, found), exact.topk(5, dim=1).values)


def test_clusters_in_float16_are_nearly_those_of_float64(
    launched: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(afgrl, "BLOCK_BYTES", 128 * 16 * 4)
    vectors = normalize(drawn(500, 24) + 4 * drawn(8, 24)[torch.arange(500, device=CUDA) % 8], dim=1)
    centres = vectors[torch.arange(16, device=CUDA).view(2, 8)]
    with arithmetic(CUDA, "tf32"):
        found = k_means(vectors, centres, 4)
    assert launched == ["best_places"] * 5 * 4
    expected = k_means(vectors.double(), centres.double(), 4)
    assert (found == expected).double().mean() > 0.99


def test_float32_stays_float32(launched: list[str]) -> None:
    vectors = normalize(drawn(50, 6), dim=1)
    with arithmetic(CUDA, "float32"):
        nearest_nodes(vectors, vectors, 3)
        k_means(vectors, vectors[:8].view(2, 4, 6), 2)
    assert not launched
