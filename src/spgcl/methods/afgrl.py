"""AFGRL: augmentation-free graph representation learning (Lee, Lee and Park, AAAI 2022)."""

import copy

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize, pad

from spgcl.engine.all_pairs import extended
from spgcl.engine.device import is_accelerator
from spgcl.engine.encoders import BatchNorm, Encoder
from spgcl.engine.kernels import nearest
from spgcl.engine.patterns import Pattern
from spgcl.engine.similarity import largest
from spgcl.engine.tensors import SparseMatrix
from spgcl.methods.method import Method
from spgcl.methods.parts.edge_keys import PreparedPairs, is_entry, prepare_pairs
from spgcl.methods.parts.schedules import cosine_schedule, move_average
from spgcl.methods.ranges import Count, Factor, Fraction, Positive, Size, Width

# Largest block of similarities of rows with all nodes, or with all centres.
BLOCK_BYTES = 64 * 2**20


def neighbour_loss(predictions: Tensor, targets: Tensor, pairs: SparseMatrix) -> Tensor:
    """The paper's loss in both directions, averaged over pairs: 4 - 2 cos(z_i, h_j) - 2 cos(z_j, h_i).

    The sum over pairs is one sparse product, so that memory grows with nodes and not with pairs.

    Args:
        predictions: The predictor's output for the online embeddings (Z), shape (nodes, width).
        targets: The target encoder's embeddings (H), same shape, without gradient.
        pairs: Entries of 1 where j is a positive of i; on CUDA equally many per row, some of them 0.
    """
    known = normalize(targets, dim=1)
    wanted = (
        partner_sums(known, pairs)
        if is_accelerator(known.device)
        else pairs @ known + pairs.transposed @ known
    )
    return 4 - 2 * (normalize(predictions, dim=1) * wanted).sum() / pairs.values.sum()


def partner_sums(vectors: Tensor, pairs: SparseMatrix) -> Tensor:
    """Summed vectors of every node's partners in pairs; all rows have equally many entries."""
    shape = (len(vectors), -1)
    sums = torch.zeros_like(vectors)
    for nodes, values in zip(pairs.columns.view(shape).T, pairs.values.view(shape).T, strict=True):
        sums += values[:, None] * vectors[nodes]
        sums.index_add_(0, nodes, values[:, None] * vectors)
    return sums


def nearest_nodes(vectors: Tensor, others: Tensor, count: int) -> Tensor:
    """The `count` nodes with the most similar row of `others`, always with the node itself (B_i).

    Args:
        vectors: Normalised rows, shape (nodes, width).
        others: Normalised rows of the same nodes.
        count: How many, including the node itself.
    """
    found = []
    count, columns = min(count, len(vectors)), extended(others)
    blocks = _row_blocks(len(vectors), len(columns), vectors)
    in_half = nearest.serve(vectors)
    if in_half:
        vectors, columns = vectors.half(), columns.half()
    for rows in blocks:
        similarities = _products(vectors[rows], columns)
        similarities[:, len(others) :] = -torch.inf
        similarities.diagonal(rows.start).fill_(torch.inf)
        found.append(
            nearest.largest_columns(similarities, count) if in_half else largest(similarities, count)[1]
        )
    return torch.cat(found)


def k_means(vectors: Tensor, centres: Tensor, iterations: int) -> Tensor:
    """Lloyd's algorithm from several sets of centres at once; the centre of an empty cluster stays.

    Args:
        vectors: One row per node, of length around 1, so that products may be taken in float16.
        centres: Initial centres, shape (clusterings, clusters, width).
        iterations: How often centres move to the mean of their nodes.

    Returns:
        Cluster of every node, shape (clusterings, nodes).
    """
    means = marked_means if is_accelerator(vectors.device) else sorted_means
    rows = extended(vectors)
    if nearest.serve(vectors):
        rows = rows.half()
        vectors = rows[: len(vectors)]
    for _ in range(iterations):
        clusters = _nearest_centres(vectors, centres)
        centres = means(rows, pad(clusters, (0, len(rows) - len(vectors)), value=-1), centres)
    return _nearest_centres(vectors, centres)


def shared_clusters(clusters: Tensor, chosen: Tensor) -> Tensor:
    """Whether a node shares a cluster with its chosen ones in any clustering, shape of `chosen` (C_i)."""
    together = torch.zeros(chosen.shape, dtype=torch.bool, device=chosen.device)
    for labels in clusters:
        together |= labels[:, None] == labels[chosen]
    return together


def _nearest_centres(vectors: Tensor, centres: Tensor) -> Tensor:
    flat = centres.flatten(0, 1)
    # The nearest centre maximises x . c - |c|^2 / 2, as the norm of the row is the same for all centres.
    offsets = -centres.square().sum(dim=2) / 2
    closest = []
    for rows in _row_blocks(len(vectors), len(flat), centres):
        if vectors.dtype == torch.half:
            closest.append(nearest.best_places(_products(vectors[rows], flat.half()), offsets))
        else:
            sums = torch.addmm(offsets.flatten(), vectors[rows], flat.T)
            closest.append(sums.view(-1, *offsets.shape).argmax(dim=2))
    return torch.cat(closest).T.contiguous()


def marked_means(vectors: Tensor, clusters: Tensor, centres: Tensor) -> Tensor:
    """Mean row of every cluster, or its centre if it is empty, by dense products of fixed shapes.

    Rows of cluster -1 belong to none.
    """
    num_clusters = centres.shape[1]
    numbers = torch.arange(num_clusters, dtype=clusters.dtype, device=clusters.device)[:, None]
    # As many clusterings at a time as fit into a block.
    together = max(1, BLOCK_BYTES // (num_clusters * len(vectors) * vectors.element_size()))
    means = []
    for labels, before in zip(*(torch.split(one, together) for one in (clusters, centres)), strict=True):
        members = (labels[:, None] == numbers).to(vectors.dtype)
        counts = members.sum(dim=2, keepdim=True, dtype=before.dtype)
        sums = _products(members.flatten(0, 1), vectors.T).view_as(before)
        means.append(torch.where(counts > 0, sums / counts.clamp(min=1), before))
    return torch.cat(means)


def sorted_means(vectors: Tensor, clusters: Tensor, centres: Tensor) -> Tensor:
    """The same by sorting the nodes, which is far less work."""
    num_clusterings, num_clusters, _ = centres.shape
    shifts = torch.arange(num_clusterings, device=clusters.device)[:, None] * num_clusters
    nodes = torch.arange(len(vectors), device=clusters.device).expand_as(clusters)
    members = SparseMatrix.from_entries(
        (clusters + shifts).flatten(),
        nodes.flatten(),
        vectors.new_ones(clusters.numel()),
        (num_clusterings * num_clusters, len(vectors)),
    )
    counts = members.counts.view(num_clusterings, num_clusters, 1)
    sums = (members @ vectors).view_as(centres)
    return torch.where(counts > 0, sums / counts.clamp(min=1), centres)


def _products(rows: Tensor, others: Tensor) -> Tensor:
    """Products of all rows with all others; in float32 if they are float16."""
    if rows.dtype == torch.half:
        return torch.mm(rows, others.T, out_dtype=torch.float32)
    return rows @ others.T


def _row_blocks(num_rows: int, width: int, like: Tensor) -> list[slice]:
    size = max(1, BLOCK_BYTES // (like.element_size() * width))
    return [slice(start, start + size) for start in range(0, num_rows, size)]


class AFGRL(Method[PreparedPairs]):
    """Positives are near in embedding space and either neighbours or in the same cluster; no augmentation.

    Args:
        predictor_width: Hidden width of the predictor.
        neighbours: Nearest nodes in embedding space, including the node itself (k).
        clusters: Clusters of a k-means clustering (K); no more than there are nodes.
        clusterings: Independent clusterings; two nodes count as joined if one of them joins them (M).
        cluster_steps: Iterations of a clustering.
        decay: Decay of the target's moving average at the start; it rises to 1 along a cosine.
    """

    static = True
    prepare = prepare_pairs

    def __init__(
        self,
        num_features: int,
        *,
        layers: Factor = 2,
        hidden: Width = 1024,
        predictor_width: Width = 2048,
        batch_norm: BatchNorm = "affine",
        normalise_features: bool = True,
        neighbours: Factor = 8,
        clusters: Size = 50,
        clusterings: Factor = 5,
        cluster_steps: int = 20,
        decay: Fraction = 0.9,
        steps: Count = 200,
        learning_rate: Positive = 1e-4,
        weight_decay: float = 1e-5,
    ) -> None:
        super().__init__(steps, learning_rate, weight_decay, normalise_features)
        self.online = Encoder(num_features, hidden=hidden, layers=layers, batch_norm=batch_norm)
        self.target = copy.deepcopy(self.online).requires_grad_(False)
        self.predictor = nn.Sequential(
            _linear(hidden, predictor_width),
            nn.BatchNorm1d(predictor_width),
            nn.PReLU(),
            _linear(predictor_width, hidden),
        )
        self.neighbours, self.clusters, self.clusterings = neighbours, clusters, clusterings
        self.cluster_steps, self.decay = cluster_steps, decay
        self.products_per_pair = hidden

    def loss(self, prepared: PreparedPairs, step: int, generator: torch.Generator) -> Tensor:
        """Find the positives of all nodes with both encoders, then the loss over them."""
        embeddings = self.online(prepared.graph, None, None)
        with torch.no_grad():
            targets = self.target(prepared.graph, None, None)
            pairs = self.positives(embeddings, targets, prepared.keys, generator)
        return neighbour_loss(self.predictor(embeddings), targets, pairs)

    def positives(
        self, embeddings: Tensor, targets: Tensor, keys: Tensor, generator: torch.Generator
    ) -> SparseMatrix:
        """P_i of every node: itself, and those of the nearest that are neighbours or share a cluster."""
        known = normalize(targets, dim=1)
        # Sorted, as a sparse matrix needs its rows.
        chosen = nearest_nodes(normalize(embeddings, dim=1), known, self.neighbours).sort(dim=1).values
        num_nodes = len(known)
        draws = torch.rand(self.clusterings, num_nodes, generator=generator, device=known.device)
        starts = draws.topk(min(self.clusters, num_nodes), dim=1).indices
        clusters = k_means(known, known[starts], self.cluster_steps)
        rows = torch.arange(num_nodes, device=chosen.device)[:, None]
        kept = is_entry(rows * num_nodes + chosen, keys) | shared_clusters(clusters, chosen)
        if is_accelerator(kept.device):
            # Zeros instead of missing entries: shapes are the same at every step, which can be captured.
            ends = torch.arange(0, kept.numel() + 1, kept.shape[1], device=chosen.device)
            pattern = Pattern(ends, chosen.reshape(-1), num_nodes)
            return SparseMatrix(pattern, kept.reshape(-1).to(known.dtype))
        pointers = torch.zeros(num_nodes + 1, dtype=torch.int64, device=chosen.device)
        torch.cumsum(kept.sum(dim=1), 0, out=pointers[1:])
        columns = chosen[kept]
        ones = torch.ones(len(columns), device=columns.device)
        return SparseMatrix(Pattern(pointers, columns, num_nodes), ones)

    def after_step(self, step: int) -> None:
        """Move the target towards the online encoder."""
        move_average(self.target, self.online, 1 - (1 - self.decay) * cosine_schedule(step, self.steps))

    def embed(self, prepared: PreparedPairs) -> Tensor:
        """The output of the online encoder."""
        return self.online.embed(prepared.graph)


def _linear(width: int, out_width: int) -> nn.Linear:
    """A linear layer initialised as in the authors' code."""
    layer = nn.Linear(width, out_width)
    nn.init.xavier_uniform_(layer.weight)
    nn.init.constant_(layer.bias, 0.01)
    return layer
