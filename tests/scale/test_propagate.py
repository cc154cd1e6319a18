"""Products block by block equal those of the whole graph in memory."""

import numpy as np
import pytest
import torch
from graphs import CPU, refusing, seeded
from stores import graph_and_store

from spgcl.engine.sampling import sampled_rows
from spgcl.engine.tensors import GraphTensors
from spgcl.files import locked
from spgcl.graph.propagate import normalised_adjacency, smooth, transitions
from spgcl.scale.derived import Here
from spgcl.scale.mapped import MappedAdjacency, mapped_tensors
from spgcl.scale.propagate import hop, matrix_rows, smoothed

KINDS = [{}, {"directed": True}, {"weighted": True}, {"weighted": True, "directed": True}]


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_the_matrices_are_those_in_memory(tmp_path, kind):
    graph, store = graph_and_store(tmp_path, **kind)
    for name, whole in (("smoothing", normalised_adjacency(graph)), ("transitions", transitions(graph))):
        for block in store.bounds:
            np.testing.assert_array_equal(
                matrix_rows(store, name, *block).toarray(), whole[slice(*block)].toarray()
            )


@pytest.mark.parametrize("kind", KINDS)
def test_hops_are_those_in_memory(tmp_path, kind):
    graph, store = graph_and_store(tmp_path, **kind)
    np.testing.assert_allclose(smoothed(store, 3, Here()).mapped, smooth(graph, 3), rtol=1e-5, atol=1e-6)
    tensors = GraphTensors.of(graph, CPU, normalise_features=True)
    np.testing.assert_array_equal(smoothed(store, 1, Here(), normalised=True).mapped, tensors.smoothed)
    near = hop(store, "transitions", store.arrays["features"], "near", Here())
    np.testing.assert_allclose(near.mapped, transitions(graph) @ graph.features, rtol=1e-5, atol=1e-6)


def test_float16_is_added_up_in_float32(tmp_path):
    graph, store = graph_and_store(tmp_path, half=True)
    found = smoothed(store, 1, Here()).mapped
    assert found.dtype == np.float16
    np.testing.assert_allclose(found, smooth(graph, 1).astype(np.float16), rtol=1e-3, atol=1e-6)


class KilledError(Exception):
    pass


class Stopping(Here):
    """Ends after some blocks, and counts them."""

    def __init__(self, most=10**9):
        self.most, self.done = most, []

    def map(self, task, indices):
        for index in indices:
            if len(self.done) == self.most:
                raise KilledError
            self.done.append(index)
            yield index, task(index)


def test_a_stopped_product_continues_with_the_missing_blocks(tmp_path):
    graph, store = graph_and_store(tmp_path)
    with pytest.raises(KilledError):
        smoothed(store, 1, Stopping(3))
    file = store.folder / "derived" / "plain-hop-1.npy"
    content = bytearray(file.read_bytes())
    # A block that the journal has, but not the disk, as after a loss of power.
    content[128] ^= 1
    file.write_bytes(bytes(content))
    rest = Stopping()
    found = smoothed(store, 1, rest)
    assert rest.done == [0, 3, 4, 5, 6]
    again = Stopping()
    assert smoothed(store, 1, again) == found and again.done == []
    np.testing.assert_allclose(found.mapped, smooth(graph, 1), rtol=1e-5, atol=1e-6)


def test_two_writers_of_a_product(tmp_path):
    _, store = graph_and_store(tmp_path)
    (store.folder / "derived").mkdir()
    with locked(store.folder / "derived" / "plain-hop-1.npy"), refusing("plain-hop-1"):
        smoothed(store, 1, Here())


@pytest.mark.parametrize("kind", KINDS)
def test_rows_on_disk_are_those_in_memory(tmp_path, kind):
    graph, store = graph_and_store(tmp_path, **kind)
    whole, mapped = GraphTensors.of(graph, CPU).adjacency, MappedAdjacency.of_store(store)
    chosen = torch.tensor([99, 3, 3, 0, 42])
    for one, other in [
        (whole.select(chosen), mapped.select(chosen)),
        (sampled_rows(whole, chosen, 3, seeded()), sampled_rows(mapped, chosen, 3, seeded())),
    ]:
        np.testing.assert_array_equal(one.dense(), other.dense())
        np.testing.assert_array_equal(one.columns, other.columns)


def test_tensors_of_a_store_read_features_on_disk(tmp_path):
    graph, store = graph_and_store(tmp_path)
    whole = GraphTensors.of(graph, CPU, normalise_features=True)
    mapped = mapped_tensors(store, Here(), normalise_features=True)
    np.testing.assert_array_equal(mapped.features, whole.features)
    np.testing.assert_array_equal(mapped.smoothed, whole.smoothed)
