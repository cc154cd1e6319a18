from dataclasses import replace

import numpy as np
import pytest
import torch
from graphs import CPU, seeded
from hypothesis import given, settings
from hypothesis import strategies as st
from made_methods import dense
from scipy import sparse

from spgcl.engine.tensors import GraphTensors, SparseMatrix
from spgcl.graph import Graph
from spgcl.methods.parts import augment


@pytest.fixture(scope="module", params=["listed", "zeroed"], autouse=True)
def form(request):
    """Views that lack an entry, as on CPU, and such that have it with value 0, as elsewhere."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "zeroed":
            patch.setattr(augment, "list_entries", augment.zero_entries)
        yield request.param


def random_graph(num_nodes=12, num_edges=20, *, directed=False, weighted=False, sparsely=False, seed=0):
    """A graph whose last node is isolated."""
    generator = np.random.default_rng(seed)
    sources = generator.integers(0, num_nodes - 1, num_edges)
    targets = (sources + generator.integers(1, num_nodes - 1, num_edges)) % (num_nodes - 1)
    features = generator.normal(size=(num_nodes, 8 if not sparsely else 40)).astype(np.float32)
    if sparsely:
        features = sparse.csr_array(features * (generator.random(features.shape) < 0.05))
    weights = generator.uniform(0.1, 3, num_edges) if weighted else None
    graph = Graph.from_edges(sources, targets, features, weights=weights, directed=directed)
    return GraphTensors.of(graph, CPU)


def drop_nodes(graph, rate, generator):
    return augment.keep_nodes(graph, augment.random_nodes(graph, 1 - rate, generator))


def random_walk_subgraph(graph, fraction, generator):
    return augment.keep_nodes(graph, augment.walked_nodes(graph, fraction, generator))


GRAPHS = st.builds(
    random_graph,
    st.integers(4, 20),
    st.integers(1, 60),
    directed=st.booleans(),
    weighted=st.booleans(),
    sparsely=st.booleans(),
    seed=st.integers(0, 1000),
)
AUGMENTATIONS = {
    "drop_edges": augment.drop_edges,
    "add_edges": augment.add_edges,
    "drop_nodes": drop_nodes,
    "random_walk_subgraph": random_walk_subgraph,
    "mask_features": augment.mask_features,
    "drop_features": augment.drop_features,
    "shuffle_nodes": lambda graph, _, generator: augment.shuffle_nodes(graph, generator),
}
each_augmentation = pytest.mark.parametrize("name", AUGMENTATIONS)
any_rate = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1))


def features_of(graph):
    return dense(graph.features)


def tensors_of(graph):
    features = graph.features
    parts = (
        [features.rows, features.columns, features.values]
        if isinstance(features, SparseMatrix)
        else [features]
    )
    adjacency = graph.adjacency
    weights = [] if graph.weights is None else [graph.weights]
    return [*parts, adjacency.rows, adjacency.columns, adjacency.values, *weights]


def entries_of(graph):
    """Weight of every entry that is not 0, by its end points."""
    adjacency = graph.adjacency
    ends = zip(adjacency.row_of_entry.tolist(), adjacency.columns.tolist(), strict=True)
    weights = graph.weights if graph.weighted else (adjacency.values != 0).float()
    return {pair: weight for pair, weight in zip(ends, weights.tolist(), strict=True) if weight}


def naive_normalisation(graph):
    """D^-1/2 A D^-1/2, or D^-1 A of a directed graph, from the weights of all entries, loops among them."""
    dense = torch.zeros(graph.num_nodes, graph.num_nodes, dtype=torch.float64)
    for (source, target), weight in entries_of(graph).items():
        dense[source, target] = weight
    degrees = dense.sum(1)
    if graph.adjacency.symmetric:
        return dense / (degrees[:, None] * degrees[None, :]).sqrt()
    return dense / degrees[:, None]


def check_is_a_graph(view, graph):
    adjacency = view.adjacency
    assert view.num_nodes == adjacency.shape[1] == graph.num_nodes
    assert adjacency.symmetric == graph.adjacency.symmetric and view.weighted == graph.weighted
    assert (adjacency.rows.dtype, adjacency.columns.dtype) == (
        graph.adjacency.rows.dtype,
        graph.adjacency.columns.dtype,
    )
    assert adjacency.rows[0] == 0 and adjacency.rows[-1] == len(adjacency.columns)
    keys = adjacency.row_of_entry.long() * graph.num_nodes + adjacency.columns
    assert (keys.diff() > 0).all(), "columns are sorted within a row, none twice"
    entries = entries_of(view)
    assert all(entries[node, node] == 1 for node in range(graph.num_nodes))
    if adjacency.symmetric:
        assert all(entries[target, source] == weight for (source, target), weight in entries.items())
    torch.testing.assert_close(adjacency.dense(), naive_normalisation(view).float(), rtol=1e-5, atol=1e-7)
    assert features_of(view).shape == features_of(graph).shape
    assert features_of(view).dtype == adjacency.values.dtype == torch.float32


@each_augmentation
@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(graph=GRAPHS, rate=any_rate, seed=st.integers(0, 100))
def test_a_view_is_a_valid_graph_and_the_graph_is_as_it_was(name, graph, rate, seed):
    before = [part.clone() for part in tensors_of(graph)]
    view = AUGMENTATIONS[name](graph, rate, seeded(seed))
    check_is_a_graph(view, graph)
    again = AUGMENTATIONS[name](graph, rate, seeded(seed))
    assert all(map(torch.equal, tensors_of(view), tensors_of(again)))
    assert all(map(torch.equal, tensors_of(graph), before))


@pytest.mark.parametrize("name", ["drop_edges", "drop_nodes", "random_walk_subgraph"])
@settings(max_examples=25, deadline=None, derandomize=True, database=None)
@given(graph=GRAPHS, rate=any_rate)
def test_edges_that_stay_keep_their_weights(name, graph, rate):
    known, left = entries_of(graph), entries_of(AUGMENTATIONS[name](graph, rate, seeded()))
    assert all(known[ends] == weight for ends, weight in left.items())


@settings(max_examples=25, deadline=None, derandomize=True, database=None)
@given(graph=GRAPHS, rate=st.floats(0, 3))
def test_added_edges_have_weight_one_and_change_no_other(graph, rate):
    known, view = entries_of(graph), entries_of(augment.add_edges(graph, rate, seeded()))
    assert all(view[ends] == weight for ends, weight in known.items())
    new = {ends: weight for ends, weight in view.items() if ends not in known}
    assert set(new.values()) <= {1.0}
    assert all(source != target for source, target in new)
    assert len(new) <= round(rate * (len(known) - graph.num_nodes) + 1)


@pytest.mark.parametrize("name", [name for name in AUGMENTATIONS if name != "shuffle_nodes"])
def test_a_rate_of_nothing_changes_nothing(name):
    graph = random_graph(weighted=True)
    view = AUGMENTATIONS[name](graph, 1.0 if name == "random_walk_subgraph" else 0.0, seeded())
    assert all(map(torch.equal, tensors_of(view)[:3], tensors_of(graph)[:3]))
    torch.testing.assert_close(view.adjacency.values, graph.adjacency.values)
    assert torch.equal(features_of(view), features_of(graph))


def mean_fraction(count, total, rounds=200):
    """Mean over seeds of a fraction, and how far it may be from its expectation (five deviations)."""
    fractions = [count(seeded(seed)) / total for seed in range(rounds)]
    return sum(fractions) / rounds, 5 * (0.25 / (total * rounds)) ** 0.5


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("rate", [0.1, 0.4])
def test_edges_are_removed_at_the_rate_asked_for(rate, directed):
    graph = random_graph(60, 150, directed=directed)
    edges = len(graph.adjacency.columns) - 60
    step = 1 if directed else 2

    def removed(generator):
        left = len(entries_of(augment.drop_edges(graph, rate, generator))) - 60
        return (edges - left) // step

    fraction, slack = mean_fraction(removed, edges // step)
    assert fraction == pytest.approx(rate, abs=slack)


def test_every_edge_has_its_own_rate_of_removal():
    """A rate that differs between the two directions of an edge is that of the entry above the diagonal."""
    graph = random_graph()
    sources, targets = graph.adjacency.row_of_entry, graph.adjacency.columns
    rates = torch.where(sources < targets, (sources % 3 == 0).float() * 0.5, torch.rand(len(sources)))
    counts = dict.fromkeys(entries_of(graph), 0)
    for seed in range(400):
        view = augment.drop_edges(graph, rates, seeded(seed))
        if not seed:
            check_is_a_graph(view, graph)
        for ends in entries_of(view):
            counts[ends] += 1
    for (source, target), count in counts.items():
        often_removed = source != target and min(source, target) % 3 == 0
        assert count == 400 if not often_removed else 150 < count < 250


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("rate", [0.2, 1.0])
def test_edges_are_added_at_the_rate_asked_for(rate, directed):
    graph = random_graph(2000, 3000, directed=directed)
    edges = len(graph.adjacency.columns) - 2000
    added = len(augment.add_edges(graph, rate, seeded()).adjacency.columns) - 2000 - edges
    # Two in a thousand pairs are edges already; none is lost to loops.
    assert 0.98 * rate < added / edges <= rate


def test_added_edges_go_anywhere():
    graph = random_graph(10, 20, directed=True)
    known, counts = entries_of(graph), {}
    for seed in range(600):
        for ends in entries_of(augment.add_edges(graph, 0.2, seeded(seed))).keys() - known:
            counts[ends] = counts.get(ends, 0) + 1
    others = 10 * 10 - len(known)
    drawn = round(0.2 * (len(known) - 10))
    assert len(counts) == others
    mean = 600 * drawn / 90
    assert all(abs(count - mean) < 6 * mean**0.5 for count in counts.values())


@pytest.mark.parametrize("sparsely", [False, True])
def test_dropped_nodes_lose_edges_and_features_and_the_others_keep_both(sparsely):
    graph = random_graph(60, 150, sparsely=sparsely)
    kept = augment.random_nodes(graph, 0.7, seeded())
    view = drop_nodes(graph, 0.3, seeded())
    expected = {
        (source, target)
        for source, target in entries_of(graph)
        if source == target or (kept[source] and kept[target])
    }
    assert set(entries_of(view)) == expected
    assert torch.equal(features_of(view), features_of(graph) * kept[:, None])


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_nodes_are_dropped_at_the_rate_asked_for(rate):
    graph = random_graph(60, 150)
    fraction, slack = mean_fraction(
        lambda generator: int((~augment.random_nodes(graph, 1 - rate, generator)).sum()), 60
    )
    assert fraction == pytest.approx(rate, abs=slack)


@pytest.mark.parametrize("fraction", [0.0, 0.05, 0.3, 0.8, 1.0])
@pytest.mark.parametrize(("num_nodes", "num_edges"), [(4, 2), (60, 20), (60, 150), (500, 30)])
def test_walks_keep_exactly_the_fraction_asked_for(num_nodes, num_edges, fraction):
    """Also where most nodes are isolated, and where a single walker has to find them all."""
    graph = random_graph(num_nodes, num_edges)
    for seed in range(5):
        kept = augment.walked_nodes(graph, fraction, seeded(seed))
        assert int(kept.sum()) == max(1, round(fraction * num_nodes))


def test_a_walked_subgraph_holds_together_better_than_random_nodes():
    """On a ring a walk visits neighbours; random nodes leave few of them together."""
    ends = np.arange(400)
    graph = GraphTensors.of(Graph.from_edges(ends, (ends + 1) % 400, np.ones((400, 1))), CPU)

    def edges_left(view):
        return int(view.adjacency.values.count_nonzero()) - 400

    walked = sum(edges_left(random_walk_subgraph(graph, 0.3, seeded(seed))) for seed in range(10))
    dropped = sum(edges_left(drop_nodes(graph, 0.7, seeded(seed))) for seed in range(10))
    assert walked > 1.5 * dropped


def test_walks_reach_every_node_alike():
    ends = np.arange(50)
    graph = GraphTensors.of(Graph.from_edges(ends, (ends + 1) % 50, np.ones((50, 1))), CPU)
    counts = sum(augment.walked_nodes(graph, 0.3, seeded(seed)).long() for seed in range(200))
    # Every mask is a random run or two of the ring, so a count is that of coins: 60, deviation 6.5.
    assert counts.min() > 60 - 5 * 6.5 and counts.max() < 60 + 5 * 6.5


@pytest.mark.parametrize("sparsely", [False, True])
def test_masked_columns_are_zero_for_all_nodes_and_the_others_are_kept(sparsely):
    graph = random_graph(60, 150, sparsely=sparsely)
    before, after = features_of(graph), features_of(augment.mask_features(graph, 0.4, seeded()))
    masked = (after == 0).all(dim=0)
    assert 0 < int(masked.sum()) < before.shape[1]
    assert torch.equal(after, before * ~masked)


def test_columns_are_masked_at_their_own_rates():
    graph = random_graph(20, 40)
    rates = torch.tensor([0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0])
    masked = sum(
        (features_of(augment.mask_features(graph, rates, seeded(seed))) == 0).all(dim=0).float()
        for seed in range(1000)
    )
    torch.testing.assert_close(masked / 1000, rates, rtol=0, atol=5 * (0.25 / 1000) ** 0.5)


@pytest.mark.parametrize("sparsely", [False, True])
def test_feature_entries_are_dropped_one_by_one_at_the_rate_asked_for(sparsely):
    graph = random_graph(60, 150, sparsely=sparsely)
    before = features_of(graph)
    total = int((before != 0).sum())

    def dropped(generator):
        after = features_of(augment.drop_features(graph, 0.3, generator))
        gone = (after == 0) & (before != 0)
        assert torch.equal(after, before * ~gone)
        return int(gone.sum())

    fraction, slack = mean_fraction(dropped, total)
    assert fraction == pytest.approx(0.3, abs=slack)


@pytest.mark.parametrize("sparsely", [False, True])
def test_shuffled_nodes_have_the_rows_of_others(sparsely):
    graph = random_graph(60, 150, sparsely=sparsely)
    view = augment.shuffle_nodes(graph, seeded())
    before, after = features_of(graph), features_of(view)
    assert not torch.equal(before, after)
    assert sorted(map(tuple, before.tolist())) == sorted(map(tuple, after.tolist()))
    assert view.adjacency is graph.adjacency


@pytest.mark.parametrize("sparsely", [False, True])
def test_shuffled_features_have_the_products_and_gradients_of_their_dense_matrix(sparsely):
    graph = augment.mask_features(random_graph(60, 150, sparsely=sparsely), 0.3, seeded())
    view = augment.shuffle_nodes(graph, seeded())
    assert isinstance(view.features, SparseMatrix) == sparsely
    expected = features_of(graph)[torch.randperm(60, generator=seeded())]
    assert torch.equal(features_of(view), expected)
    other = torch.randn(expected.shape[1], 5, generator=seeded(1), requires_grad=True)
    weights = torch.randn(60, 5, generator=seeded(2))
    product = view.features @ other
    (gradient,) = torch.autograd.grad((product * weights).sum(), other)
    torch.testing.assert_close(product, expected @ other, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(gradient, expected.T @ weights, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("sparsely", [False, True])
def test_shuffled_nodes_can_be_shuffled_dropped_and_chosen(sparsely):
    graph = random_graph(60, 150, sparsely=sparsely)
    generator = seeded()
    view = augment.shuffle_nodes(augment.shuffle_nodes(graph, generator), generator)
    again = seeded()
    first, second = (torch.randperm(60, generator=again) for _ in range(2))
    expected = features_of(graph)[first][second]
    assert torch.equal(features_of(view), expected)
    kept = torch.rand(60, generator=seeded(1)) < 0.5
    assert torch.equal(features_of(augment.keep_nodes(view, kept)), expected * kept[:, None])
    if sparsely:
        chosen = torch.tensor([40, 3, 3, 59])
        assert torch.equal(view.features.select(chosen).dense(), expected[chosen])


def test_mirrored_entries_are_the_other_direction():
    adjacency = random_graph(30, 70).adjacency
    mirror = adjacency.pattern.transposed[1]
    assert torch.equal(adjacency.row_of_entry[mirror], adjacency.columns)
    assert torch.equal(adjacency.columns[mirror], adjacency.row_of_entry)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_views_of_views_have_no_edge_that_was_removed(directed, weighted):
    """A removed edge is an entry of value 0: it is neither walked, nor kept when others are added."""
    graph = random_graph(60, 150, directed=directed, weighted=weighted)
    view = augment.drop_edges(graph, 0.9, seeded())
    left = entries_of(view)
    added = augment.add_edges(view, 0.5, seeded(1))
    check_is_a_graph(added, graph)
    new = entries_of(added).keys() - left.keys()
    assert 0 < len(new) <= 0.5 * (len(left) - 60) + 1 and left.items() <= entries_of(added).items()
    fewer = entries_of(augment.drop_edges(view, 0.5, seeded(2)))
    assert fewer.items() < left.items()


def test_walks_cross_no_edge_that_was_removed():
    """A path without its middle edge: the walker of one half never gets to the other but by a fresh start."""
    ends = np.arange(19)
    graph = GraphTensors.of(Graph.from_edges(ends, ends + 1, np.ones((20, 1))), CPU)
    sources, targets = graph.adjacency.row_of_entry, graph.adjacency.columns
    view = augment.keep_entries(graph, (sources < 10) == (targets < 10))
    crossed = 0
    for seed in range(300):
        kept = augment.walked_nodes(view, 0.15, seeded(seed))
        crossed += bool(kept[9] and kept[10])
    walked = sum(
        bool(kept[9] and kept[10])
        for kept in (augment.walked_nodes(graph, 0.15, seeded(seed)) for seed in range(300))
    )
    assert walked > 3 * crossed


def test_a_view_does_not_remember_what_was_smoothed_for_its_graph():
    graph = random_graph()
    before = graph.smoothed
    view = augment.drop_edges(augment.mask_features(graph, 0.5, seeded()), 0.5, seeded())
    torch.testing.assert_close(view.smoothed, view.adjacency.dense() @ view.features)
    assert not torch.allclose(view.smoothed, before) and replace(graph).smoothed is not before
