from collections import Counter

import numpy as np
import pytest
import torch
from graphs import CPU, make_graph, seeded
from scipy import sparse

from spgcl.engine import pair_products as pairs
from spgcl.engine.pair_products import entry_products, inner_products, pair_products
from spgcl.engine.tensors import GraphTensors, SparseMatrix
from spgcl.graph import Graph
from spgcl.methods.parts import pools


def naive_neighbourhood(graph, seed, hops):
    """Nodes within `hops` steps along edges, the seed among them, by breadth-first search."""
    reached, frontier = {seed}, {seed}
    for _ in range(hops):
        frontier = {
            int(other)
            for node in frontier
            for other in graph.columns[graph.rows[node] : graph.rows[node + 1]]
        } - reached
        reached |= frontier
    return reached


# Sparse graphs are expanded entry by entry, dense ones by a product over all nodes.
GRAPHS = {
    "sparse": {"num_nodes": 200, "num_edges": 150},
    "dense": {"num_nodes": 40, "num_edges": 500},
    "large": {"num_nodes": 2000, "num_edges": 3000},
}


@pytest.mark.parametrize("hops", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("kind", GRAPHS)
def test_pools_match_breadth_first_search(kind, directed, hops):
    graph = make_graph(**GRAPHS[kind], directed=directed)
    adjacency = GraphTensors.of(graph, CPU).adjacency
    isolated = graph.num_nodes - 1
    seeds = [5, 17, 3, isolated, 11]
    lists = [naive_neighbourhood(graph, seed, hops) for seed in seeds]
    union = pools.neighbourhood_union(adjacency, torch.tensor(seeds), hops)
    assert union.tolist() == sorted(set().union(*lists))
    joined = pools.neighbourhood_lists(adjacency, torch.tensor(seeds), hops)
    assert Counter(joined.tolist()) == Counter(node for found in lists for node in found)
    assert union.dtype == joined.dtype == torch.int64


def test_both_ways_to_gather_lists_are_taken():
    """The graphs above fall on either side of the choice that `neighbourhood_lists` makes."""
    taken = {}
    for kind in GRAPHS:
        adjacency = GraphTensors.of(make_graph(**GRAPHS[kind], directed=True), CPU).adjacency
        pools.neighbourhood_lists(adjacency, torch.tensor([5, 17, 3, 11]), 1)
        # Only the product needs the transpose, which is kept once it was asked for.
        taken[kind] = "_computed_transpose" in vars(adjacency)
    assert taken == {"sparse": False, "dense": True, "large": False}


def test_a_repeated_seed_counts_once_in_the_union_and_twice_in_the_lists():
    graph = make_graph(**GRAPHS["sparse"])
    adjacency = GraphTensors.of(graph, CPU).adjacency
    found = naive_neighbourhood(graph, 5, 2)
    assert set(pools.neighbourhood_union(adjacency, torch.tensor([5, 5]), 2).tolist()) == found
    joined = Counter(pools.neighbourhood_lists(adjacency, torch.tensor([5, 5]), 2).tolist())
    assert joined == Counter(dict.fromkeys(found, 2))


def test_direction_is_followed_from_source_to_target():
    path = Graph.from_edges(np.array([0, 1]), np.array([1, 2]), np.ones((3, 1)), directed=True)
    adjacency = GraphTensors.of(path, CPU).adjacency
    assert pools.neighbourhood_union(adjacency, torch.tensor([0]), 1).tolist() == [0, 1]
    assert pools.neighbourhood_union(adjacency, torch.tensor([2]), 2).tolist() == [2]
    # A walk may take a step along the loop that keeps a node, so two hops from 0 hold 0, 1 and 2.
    assert sorted(pools.neighbourhood_lists(adjacency, torch.tensor([0, 2]), 2).tolist()) == [0, 1, 2, 2]


def naive_top(similarities, count, same):
    chosen = []
    for row in range(similarities.shape[0]):
        allowed = [column for column in range(similarities.shape[1]) if same is None or not same[row, column]]
        chosen.append(set(sorted(allowed, key=lambda column: -similarities[row, column].item())[:count]))
    return chosen


@pytest.mark.parametrize("count", [1, 3, 7])
def test_the_most_similar_with_and_without_the_node_itself(count):
    pool = torch.tensor([4, 2, 7, 4, 1, 9, 3, 8, 5, 0])
    anchors = torch.tensor([4, 1, 6])
    similarities = torch.rand(3, 10, generator=seeded())
    # A node is most like itself: wherever it may count, it comes first.
    similarities[0, 0] = similarities[0, 3] = similarities[1, 4] = 2
    same = anchors[:, None] == pool[None, :]
    for mask in (None, same):
        chosen = pools.top_similar(similarities, count, mask)
        if count > 1 or mask is not None:
            assert [set(row) for row in chosen.tolist()] == naive_top(similarities, count, mask)
        else:
            assert chosen[0].item() in (0, 3)
        best_first = similarities.gather(1, chosen)
        assert (best_first.diff(dim=1) <= 0).all()
    assert not same.gather(1, pools.top_similar(similarities, count, same)).any()
    assert torch.isfinite(similarities).all()


@pytest.mark.parametrize(("num_nodes", "count"), [(10, 4), (10, 10), (10, 50), (1000, 3), (100_000, 64)])
def test_sampled_nodes_are_different_and_as_many_as_asked(num_nodes, count):
    nodes = pools.sample_nodes(num_nodes, count, seeded())
    assert len(set(nodes.tolist())) == len(nodes) == min(count, num_nodes)
    assert nodes.min() >= 0 and nodes.max() < num_nodes
    assert torch.equal(nodes, pools.sample_nodes(num_nodes, count, seeded()))
    if count < num_nodes:
        assert not torch.equal(nodes, pools.sample_nodes(num_nodes, count, seeded(1)))


# 4 of 255 and of 300: either side of the bound from which no permutation is made.
@pytest.mark.parametrize("num_nodes", [255, 300])
def test_every_node_is_drawn_as_often(num_nodes):
    generator = seeded()
    drawn = torch.cat([pools.sample_nodes(num_nodes, 4, generator) for _ in range(5000)])
    counts = torch.bincount(drawn, minlength=num_nodes).double()
    expected = len(drawn) / num_nodes
    statistic = float(((counts - expected) ** 2 / expected).sum())
    # Chi-square with num_nodes - 1 degrees of freedom: mean num_nodes, deviation sqrt(2 num_nodes).
    assert abs(statistic - num_nodes) < 5 * (2 * num_nodes) ** 0.5


def test_a_cut_keeps_entries_without_replacement():
    nodes = torch.tensor([3, 3, 5, 8, 1, 1, 1, 0])
    cut = pools.cut_at_random(nodes, 5, seeded())
    assert len(cut) == 5 and not Counter(cut.tolist()) - Counter(nodes.tolist())
    assert pools.cut_at_random(nodes, None, seeded()) is nodes
    assert pools.cut_at_random(nodes, 8, seeded()) is nodes


def test_a_cut_keeps_every_index_equally_often():
    generator = seeded()
    indices = torch.cat([pools.cut_at_random(torch.arange(20), 5, generator) for _ in range(4000)])
    counts = torch.bincount(indices, minlength=20)
    # Binomial with mean 1000 and deviation below 32.
    assert (counts - 1000).abs().max() < 160


def test_cover_and_overlap_follow_their_definitions():
    num_nodes, generator = 30, np.random.default_rng(0)
    seen: set[int] = set()
    earlier: set[tuple[int, int]] = set()
    covered, earlier_keys = torch.zeros(num_nodes, dtype=torch.bool), torch.empty(0, dtype=torch.int64)
    overlaps = []
    for _ in range(6):
        # Few possible pairs, so that some are drawn twice within a step and some again in the next.
        anchors, positives = generator.integers(0, 4, 12), generator.integers(0, num_nodes, 12) // 5
        pairs = {(int(anchor), int(node)) for anchor, node in zip(anchors, positives, strict=True)}
        seen |= {node for _, node in pairs}
        covered[positives] = True
        keys = torch.from_numpy(anchors * num_nodes + positives)
        assert pools.cover_ratio(covered) == pytest.approx(len(seen) / num_nodes)
        overlaps.append(pools.overlap_ratio(keys, earlier_keys))
        assert overlaps[-1] == pytest.approx(len(pairs & earlier) / len(pairs))
        earlier, earlier_keys = pairs, torch.unique(keys)
    assert overlaps[0] == 0 and 0 < max(overlaps) < 1


def test_no_pairs_overlap_with_nothing():
    assert pools.overlap_ratio(torch.empty(0, dtype=torch.int64), torch.tensor([1])) == 0


@pytest.mark.parametrize("aligned", [False, True])
def test_products_of_pairs_and_their_gradients_are_those_of_gathered_rows(aligned):
    left, right = torch.randn(2, 7, 3, generator=seeded(), dtype=torch.float64, requires_grad=True)
    first, second = torch.randint(7, (2, 7 if aligned else 20), generator=seeded())
    second = None if aligned else second
    others = right if aligned else right[second]
    torch.testing.assert_close(pair_products(left, right, first, second), (left[first] * others).sum(1))
    assert torch.autograd.gradcheck(lambda *rows: pair_products(*rows, first, second), (left, right))
    assert torch.autograd.gradcheck(lambda rows: pair_products(rows, rows, first, second), (left,))


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("block", [1, 7, 2**20])
def test_products_of_entries_and_their_gradients_are_those_of_gathered_rows(symmetric, block, monkeypatch):
    monkeypatch.setitem(pairs._CACHED_NUMBERS, "cpu", block)
    dense = torch.rand(8, 8, generator=seeded()) < 0.3
    dense = dense | dense.T if symmetric else dense
    entries = SparseMatrix.of(sparse.csr_array(dense.numpy()), CPU, symmetric=symmetric)
    vectors = torch.randn(8, 3, generator=seeded(), dtype=torch.float64, requires_grad=True)
    first, second = dense.nonzero().unbind(1)
    found = entry_products(vectors, entries)
    torch.testing.assert_close(found, (vectors[first] * vectors[second]).sum(1))
    # Pairs have weights of their own only if no entry stands for two pairs.
    weights = torch.ones(len(found)) if symmetric else torch.arange(len(found))
    assert torch.autograd.gradcheck(
        lambda rows: (weights * entry_products(rows, entries).square()).sum(), vectors
    )


def test_inner_products_and_their_gradients_are_those_of_the_plain_product():
    rows = torch.randn(6, 4, dtype=torch.float64, generator=seeded(), requires_grad=True)
    torch.testing.assert_close(inner_products(rows), rows @ rows.T)
    # Not symmetric, as gradients of drawn pairs are not.
    weights = torch.randn(6, 6, dtype=torch.float64, generator=seeded(1))
    (found,) = torch.autograd.grad((inner_products(rows) * weights).sum(), rows)
    (wanted,) = torch.autograd.grad(((rows @ rows.T) * weights).sum(), rows)
    torch.testing.assert_close(found, wanted)
