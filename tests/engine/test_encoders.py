import numpy as np
import pytest
import torch
from graphs import CPU, make_graph
from made_methods import dense, doubled
from torch import nn
from torch_geometric.nn import GATConv, GCNConv, GINConv, SAGEConv

from spgcl.engine import encoders
from spgcl.engine.encoders import Encoder, drop
from spgcl.engine.tensors import GraphTensors, SparseMatrix
from spgcl.errors import InputError

KINDS = ("gcn", "gat", "gin", "sage", "mlp")
NUM_NODES, WIDTH = 40, 12
ISOLATED = NUM_NODES - 1


def small_graph(**options):
    return make_graph(NUM_NODES, WIDTH, **options)


def in_double(graph):
    """The graph's tensors in float64; the adjacency follows the type of what it is multiplied with."""
    return doubled(GraphTensors.of(graph, CPU))


def make_encoder(kind="gcn", *, seed=0, **changes):
    settings = {"kind": kind, "hidden": 8, "batch_norm": "none", **changes}
    torch.manual_seed(seed)
    encoder = Encoder(WIDTH, **settings).double()
    for name, weight in encoder.named_parameters():
        if name.endswith("bias"):
            nn.init.normal_(weight)
    return encoder


def geometric_gcn(encoder, graph, tensors):
    """The same encoder made of PyTorch Geometric's GCNConv with the same weights."""
    adjacency = graph.adjacency.tocoo()
    sources, targets = (torch.from_numpy(np.array(end, dtype=np.int64)) for end in adjacency.coords)
    # Row i of the adjacency reads i's (out-)neighbours, so messages go from column to row.
    edges, weights = torch.stack([targets, sources]), torch.from_numpy(adjacency.data.astype(np.float64))
    if graph.directed:
        loops = torch.arange(graph.num_nodes)
        edges = torch.cat([edges, torch.stack([loops, loops])], dim=1)
        weights = torch.cat([weights, torch.ones(graph.num_nodes, dtype=torch.float64)])
        sums = torch.zeros(graph.num_nodes, dtype=torch.float64).index_add_(0, edges[1], weights)
        weights = weights / sums[edges[1]]
    hidden = dense(tensors.features)
    for layer in encoder.convolutions:
        reference = GCNConv(*layer.weight.shape, normalize=not graph.directed).double()
        reference.load_state_dict({"bias": layer.bias.detach(), "lin.weight": layer.weight.detach().T})
        hidden = encoder.activation(reference(hidden, edges, weights))
    return hidden


@pytest.mark.parametrize(("layers", "widening"), [(1, 1), (2, 1), (3, 1), (1, 2), (2, 3), (3, 2)])
@pytest.mark.parametrize("sparse_features", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("directed", [False, True])
def test_gcn_is_that_of_pytorch_geometric(directed, weighted, sparse_features, layers, widening):
    graph = small_graph(directed=directed, weighted=weighted, sparse_features=sparse_features)
    tensors = in_double(graph)
    assert isinstance(tensors.features, SparseMatrix) == sparse_features
    encoder = make_encoder(layers=layers, widening=widening)
    widths = [layer.weight.shape[1] for layer in encoder.convolutions]
    assert widths == [8 * widening] * (layers - 1) + [8]
    expected = geometric_gcn(encoder, graph, tensors)
    # The adjacency is kept in float32, so the two agree to its precision.
    torch.testing.assert_close(encoder(tensors, None, None), expected, rtol=1e-5, atol=1e-6)
    rows = torch.tensor([ISOLATED, 3, 17])
    torch.testing.assert_close(encoder(tensors, rows, None), expected[rows], rtol=1e-5, atol=1e-6)


def geometric_layer(kind):
    if kind == "gat":
        return GATConv(WIDTH, 8)
    if kind == "sage":
        return SAGEConv(WIDTH, 8)
    return GINConv(nn.Sequential(nn.Linear(WIDTH, 8), nn.ReLU(), nn.Linear(8, 8)))


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("kind", ["gat", "gin", "sage"])
def test_message_passing_is_that_of_pytorch_geometric(kind, directed):
    graph = small_graph(directed=directed)
    tensors = in_double(graph)
    encoder = make_encoder(kind, layers=1)
    sources, targets = (torch.from_numpy(np.array(end, dtype=np.int64)) for end in graph.adjacency.nonzero())
    reference = geometric_layer(kind).double()
    reference.load_state_dict(encoder.convolutions[0].convolution.state_dict())
    # PyTorch Geometric adds its own loops to attention, and none to the others.
    expected = encoder.activation(reference(tensors.features, torch.stack([targets, sources])))
    torch.testing.assert_close(encoder(tensors, None, None), expected)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("sparse_features", [False, True])
@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_chosen_rows_are_those_of_the_whole_graph(kind, layers, sparse_features, directed):
    tensors = in_double(small_graph(sparse_features=sparse_features, directed=directed))
    encoder = make_encoder(kind, layers=layers)
    whole = encoder(tensors, None, None)
    for rows in ([ISOLATED], [30, 2, 5, 19], list(range(NUM_NODES))):
        torch.testing.assert_close(encoder(tensors, torch.tensor(rows), None), whole[rows])
    torch.testing.assert_close(encoder.embed(tensors), whole.detach())


def naive_layers(encoder, tensors, rows):
    """Layers over all nodes as dense products, batch norm in training written out."""
    adjacency = torch.eye(NUM_NODES, dtype=torch.float64)
    if encoder.kind == "gcn":
        adjacency = tensors.adjacency.dense().double()
    hidden = dense(tensors.features)
    for index, layer in enumerate(encoder.convolutions):
        hidden = adjacency @ hidden @ layer.weight + layer.bias
        if len(encoder.norms):
            norm, variance = encoder.norms[index], hidden.var(dim=0, correction=0)
            hidden = (hidden - hidden.mean(dim=0)) / (variance + norm.eps).sqrt()
            hidden = hidden if norm.weight is None else hidden * norm.weight + norm.bias
        hidden = encoder.activation(hidden)
    return hidden if rows is None else hidden[rows]


@pytest.mark.parametrize(
    ("rows", "by_covariance"),
    [(None, False), ([30, 2, 5, ISOLATED], False), ([30, 2, 5, ISOLATED], True)],
    ids=["all-rows", "some-rows", "some-rows-by-covariance"],
)
@pytest.mark.parametrize("batch_norm", ["none", "plain", "affine"])
@pytest.mark.parametrize("sparse_features", [False, True])
@pytest.mark.parametrize(("layers", "widening"), [(1, 1), (2, 1), (3, 1), (2, 2)])
@pytest.mark.parametrize("kind", ["gcn", "mlp"])
def test_slices_of_columns_give_the_numbers_and_gradients_of_whole_layers(
    kind, layers, widening, sparse_features, batch_norm, rows, by_covariance, monkeypatch
):
    monkeypatch.setattr(encoders, "MANY_ROWS", 0 if by_covariance else NUM_NODES + 1)
    monkeypatch.setattr(encoders, "CACHED_FLOATS", 1)
    monkeypatch.setattr(encoders, "DENSE_COLUMNS", 32)
    tensors = in_double(small_graph(sparse_features=sparse_features))
    # Three slices, the last one narrower; or as many of a wider layer.
    settings = {"layers": layers, "widening": widening, "hidden": 80 // widening}
    encoder = make_encoder(kind, batch_norm=batch_norm, **settings).train()
    chosen = None if rows is None else torch.tensor(rows)
    outcome = encoder(tensors, chosen, None, every_row=rows is not None)
    expected = naive_layers(encoder, tensors, rows)
    torch.testing.assert_close(outcome, expected, rtol=1e-5, atol=1e-6)
    weights = torch.randn(expected.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(4))
    parameters = {name: weight for name, weight in encoder.named_parameters() if weight.requires_grad}
    found, wanted = (
        torch.autograd.grad((result * weights).sum(), list(parameters.values()))
        for result in (outcome, expected)
    )
    for name, one, other in zip(parameters, found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5, msg=name)
    assert [int(norm.num_batches_tracked) for norm in encoder.norms] == [1] * len(encoder.norms)


@pytest.mark.parametrize("sparse_features", [False, True])
def test_dropout_differs_from_slice_to_slice(sparse_features, monkeypatch):
    monkeypatch.setattr(encoders, "CACHED_FLOATS", 1)
    monkeypatch.setattr(encoders, "DENSE_COLUMNS", 32)
    tensors = in_double(small_graph(sparse_features=sparse_features))
    encoder = make_encoder(layers=1, hidden=64, dropout=0.5).train()
    dropped = encoder(tensors, None, torch.Generator().manual_seed(0)) == 0
    assert 0.4 < float(dropped.double().mean()) < 0.6
    assert not torch.equal(dropped[:, :32], dropped[:, 32:])


@pytest.mark.parametrize("kind", ["gat", "gin", "sage"])
def test_embedding_block_by_block_gives_the_same(kind, monkeypatch):
    tensors = in_double(small_graph())
    encoder = make_encoder(kind)
    whole = encoder.embed(tensors)
    monkeypatch.setattr(encoders, "ROWS_PER_BLOCK", 7)
    torch.testing.assert_close(encoder.embed(tensors), whole)


@pytest.mark.parametrize("kind", ["gat", "gin", "sage"])
def test_edge_weights_are_refused_where_they_cannot_be_used(kind):
    tensors = in_double(small_graph(weighted=True))
    with pytest.raises(InputError, match=kind):
        make_encoder(kind)(tensors, None, None)


@pytest.mark.parametrize("layers", [0, 4])
def test_an_encoder_has_one_to_three_layers(layers):
    with pytest.raises(InputError, match=f"layers is {layers}"):
        make_encoder(layers=layers)


def naive_normalised(rows):
    result = torch.empty_like(rows)
    for column in range(rows.shape[1]):
        values = rows[:, column].tolist()
        mean = sum(values) / len(values)
        variance = sum((value - mean) ** 2 for value in values) / len(values)
        for row, value in enumerate(values):
            result[row, column] = (value - mean) / (variance + 1e-5) ** 0.5
    return result


@pytest.mark.parametrize("rows", [None, [4, 9, 21, 33, ISOLATED]])
def test_batch_norm_sees_the_rows_it_is_evaluated_for(rows):
    tensors = in_double(small_graph())
    encoder = make_encoder(layers=1, batch_norm="plain").train()
    chosen = None if rows is None else torch.tensor(rows)
    nodes = list(range(NUM_NODES)) if rows is None else rows
    convolved = tensors.smoothed[nodes] @ encoder.convolutions[0].weight + encoder.convolutions[0].bias
    expected = encoder.activation(naive_normalised(convolved.detach()))
    torch.testing.assert_close(encoder(tensors, chosen, None), expected)
    running = encoder.norms[0].running_mean
    torch.testing.assert_close(running, 0.1 * convolved.detach().mean(dim=0))


def test_batch_norm_is_plain_affine_or_absent():
    choices = ("none", "plain", "affine")
    names = {kind: {name for name, _ in make_encoder(batch_norm=kind).named_parameters()} for kind in choices}
    assert names["plain"] == names["none"]
    assert names["affine"] - names["plain"] == {
        f"norms.{layer}.{part}" for layer in (0, 1) for part in ("weight", "bias")
    }
    assert len(make_encoder(batch_norm="none").norms) == 0 < len(make_encoder(batch_norm="plain").norms)


def test_embedding_uses_running_statistics_and_leaves_training_mode():
    tensors = in_double(small_graph())
    encoder = make_encoder(batch_norm="affine", dropout=0.5).train()
    before = {name: value.clone() for name, value in encoder.state_dict().items()}
    first, second = encoder.embed(tensors), encoder.embed(tensors)
    assert torch.equal(first, second) and encoder.training and not first.requires_grad
    for name, value in encoder.state_dict().items():
        assert torch.equal(value, before[name]), name
    encoder(tensors, None, torch.Generator().manual_seed(0))
    assert not torch.equal(encoder.embed(tensors), first)


@pytest.mark.parametrize("activation", ["prelu", "relu"])
@pytest.mark.parametrize("batch_norm", ["none", "plain", "affine"])
@pytest.mark.parametrize("sparse_features", [False, True])
@pytest.mark.parametrize("kind", ["gcn", "mlp"])
def test_embedding_is_what_the_layers_give_one_after_the_other(
    kind, sparse_features, batch_norm, activation, monkeypatch
):
    monkeypatch.setattr(encoders, "CACHED_FLOATS", 1)
    monkeypatch.setattr(encoders, "DENSE_COLUMNS", 32)
    tensors = in_double(small_graph(sparse_features=sparse_features))
    settings = {"batch_norm": batch_norm, "activation": activation, "hidden": 80}
    encoder = make_encoder(kind, **settings).train()
    for weight in (norm.weight for norm in encoder.norms if norm.affine):
        nn.init.normal_(weight)
    # Running statistics of their own; with gradients, every operation stands by itself.
    encoder(tensors, None, None)
    expected = encoder.eval()(tensors, None, None)
    assert expected.requires_grad
    embeddings = encoder.embed(tensors)
    torch.testing.assert_close(embeddings, expected.detach())
    assert torch.equal(encoder.embed(tensors), embeddings)


def test_all_layers_share_one_activation():
    assert sum(isinstance(module, nn.PReLU) for module in make_encoder(layers=3).modules()) == 1
    assert sum(isinstance(module, nn.ReLU) for module in make_encoder(activation="relu").modules()) == 1


@pytest.mark.parametrize("rate", [0.1, 0.6])
def test_dropout_keeps_the_expectation(rate):
    values = torch.full((400, 500), 3.0)
    dropped = drop(values, rate, torch.Generator().manual_seed(0))
    fraction = float((dropped == 0).double().mean())
    # 200,000 draws: five deviations are below 0.0056.
    assert fraction == pytest.approx(rate, abs=0.0056)
    assert dropped[dropped != 0].unique().tolist() == pytest.approx([3 / (1 - rate)])
    assert float(dropped.mean()) == pytest.approx(3, abs=0.06)


def test_dropout_is_decided_by_its_generator():
    values = torch.ones(50, 20)
    first, again = (drop(values, 0.5, torch.Generator().manual_seed(3)) for _ in range(2))
    assert torch.equal(first, again)
    assert not torch.equal(first, drop(values, 0.5, torch.Generator().manual_seed(4)))
    assert drop(values, 0, torch.Generator()) is values


def test_dropout_follows_every_layer_in_training_only():
    tensors = in_double(small_graph())
    encoder = make_encoder(dropout=0.5)
    whole = encoder.eval()(tensors, None, torch.Generator().manual_seed(0))
    assert (whole != 0).all()
    encoder.train()
    dropped = encoder(tensors, None, torch.Generator().manual_seed(0))
    assert 0.3 < float((dropped == 0).double().mean()) < 0.7
    # Were only the last layer followed by dropout, what is left would be the double of the whole.
    left = dropped != 0
    assert not torch.allclose(dropped[left], 2 * whole[left])


@pytest.mark.parametrize("kind", KINDS)
def test_weight_norms_are_sums_of_squares(kind):
    encoder = make_encoder(kind)
    for layer, norm in zip(encoder.convolutions, encoder.weight_norms(), strict=True):
        total = 0.0
        for weight in layer.parameters():
            if weight.ndim == 2:
                total += sum(value**2 for row in weight.tolist() for value in row)
        assert norm == pytest.approx(total) and norm > 0


@pytest.mark.parametrize("kind", ["gcn", "gat", "gin", "sage", "mlp"])
@pytest.mark.parametrize("batch_norm", ["none", "plain", "affine"])
def test_a_bias_that_batch_norm_takes_away_is_not_trained(kind, batch_norm):
    encoder = make_encoder(kind, layers=2, batch_norm=batch_norm, hidden=4)

    trained = [layer.last_bias.requires_grad for layer in encoder.convolutions]
    assert trained == [batch_norm == "none"] * 2
    assert all(layer.last_bias.shape == (4,) for layer in encoder.convolutions)
