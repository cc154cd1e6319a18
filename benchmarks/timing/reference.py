"""The reference that timings are compared with: SP-GCL as published, as a good engineer writes it first.

FROZEN. Speed-ups are multiples of this code, so it must never be slowed down or sped up, and nothing of the
package's own fast path may be used in it. It is full-graph training on PyTorch Geometric's layers:
dense features, both layers for all nodes at every step, no loop over nodes or seeds inside a step.

Choices that could be made either way are made in its favour: the adjacency is normalised once (what
`cached=True` does) and is a sparse matrix, which PyTorch Geometric advises instead of one message per edge;
the head sees the pool's rows only; losses stay on the device until training ends.
"""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import dropout, normalize

from spgcl.errors import InputError

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from spgcl.datasets import Dataset

# The rules of the preset `published`, which this code has and no others.
RULES: Mapping[str, Any] = {
    "encoder": "gcn",
    "layers": 2,
    "head_input": "relu",
    "pool": "lists",
    "anchors": "pool",
    "own_positive": True,
    "negatives_from": "pool",
}


def require_rules(settings: Mapping[str, Any]) -> None:
    """Refuse settings that this code does not have."""
    for name, value in RULES.items():
        if settings[name] != value:
            raise InputError(
                f"{name} is {settings[name]!r}, but the reference has {value!r} only; "
                f"set {name}={str(value).lower()} or leave the reference out with --no-reference"
            )


def load(dataset: "Dataset") -> "Data":
    """A data set as PyTorch Geometric holds it: dense features, a list of edges, labels."""
    from scipy import sparse
    from torch_geometric.data import Data

    graph = dataset.graph
    stored: Any = graph.features
    features = stored.toarray() if sparse.issparse(stored) else np.array(stored)
    sources = np.repeat(np.arange(graph.num_nodes), np.diff(graph.rows))
    edges = np.stack([sources, graph.columns]).astype(np.int64)
    return Data(
        x=torch.from_numpy(features), edge_index=torch.from_numpy(edges), y=torch.from_numpy(dataset.labels)
    )


def prepare(data: "Data", settings: Mapping[str, Any], device: torch.device) -> "Data":
    """Normalise features, if asked, and adjacency, once for all steps."""
    from torch_geometric.data import Data
    from torch_geometric.nn.conv.gcn_conv import gcn_norm
    from torch_geometric.utils import to_torch_csr_tensor

    features = data.x
    if settings["normalise_features"]:
        features = features / features.abs().sum(dim=1, keepdim=True).clamp(min=1e-12)
    edges, weights = gcn_norm(data.edge_index, None, data.num_nodes, dtype=features.dtype)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse ")
        adjacency = to_torch_csr_tensor(edges, weights, size=(data.num_nodes, data.num_nodes))
        return Data(x=features.to(device), adjacency=adjacency.to(device))


class Reference(nn.Module):
    """Encoder, head and loss of the published method.

    Args:
        num_features: Width of the features.
        settings: Hyper-parameters of `spgcl.methods.spgcl.SPGCL`; `batch_norm_rows` is always "all".
    """

    def __init__(self, num_features: int, settings: Mapping[str, Any]) -> None:
        super().__init__()
        from torch_geometric.nn import GCNConv

        require_rules(settings)
        self.settings = dict(settings)
        hidden = settings["hidden"]
        self.first = GCNConv(num_features, hidden, normalize=False)
        self.second = GCNConv(hidden, hidden, normalize=False)
        self.first_norm = _norm(settings["batch_norm"], hidden)
        self.second_norm = _norm(settings["batch_norm"], hidden)
        self.activation = _activation(settings["activation"])
        self.head = nn.Sequential(
            nn.Linear(hidden, hidden), _activation(settings["head_activation"]), nn.Linear(hidden, hidden)
        )

    def encode(self, data: "Data") -> Tensor:
        """H of all nodes, shape (nodes, hidden)."""
        hidden: Tensor = data.x
        for convolution, norm in ((self.first, self.first_norm), (self.second, self.second_norm)):
            hidden = self.activation(norm(convolution(hidden, data.adjacency)))
            hidden = dropout(hidden, self.settings["dropout"], training=self.training)
        return hidden

    def draw(self, data: "Data", generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """The pool's nodes, one entry per seed that reaches them, and the negatives' indices in it."""
        settings, device = self.settings, data.x.device
        seeds = torch.randperm(data.num_nodes, generator=generator, device=device)[: settings["seeds"]]
        reach = torch.zeros(data.num_nodes, len(seeds), device=device, dtype=data.x.dtype)
        reach[seeds, torch.arange(len(seeds), device=device)] = 1
        for _ in range(settings["hops"]):
            reach = data.adjacency @ reach
        pool = reach.nonzero()[:, 0]
        if 0 < settings["pool_size"] < len(pool):
            kept = torch.randperm(len(pool), generator=generator, device=device)[: settings["pool_size"]]
            pool = pool[kept]
        shape = (len(pool), settings["negatives"])
        return pool, torch.randint(len(pool), shape, generator=generator, device=device)

    def loss(self, data: "Data", pool: Tensor, negatives: Tensor) -> Tensor:
        """The loss of one step: the most similar of the pool attract, the drawn ones repel."""
        projected = normalize(self.head(self.encode(data)[pool].relu()), dim=1)
        similarities = projected @ projected.T
        positive = similarities.topk(self.settings["positives"], dim=1).values
        repelled = similarities.gather(1, negatives).square().mean()
        weight: float = self.settings["negative_weight"]
        return -2 * positive.mean() + weight * repelled


def train(model: Reference, data: "Data", steps: int, seed: int) -> list[float]:
    """Plain full-graph training; returns the losses."""
    optimiser = torch.optim.AdamW(
        model.parameters(), lr=model.settings["learning_rate"], weight_decay=model.settings["weight_decay"]
    )
    generator = torch.Generator(data.x.device).manual_seed(seed)
    model.train()
    losses = []
    for _ in range(steps):
        loss = model.loss(data, *model.draw(data, generator))
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        losses.append(loss.detach())
    return torch.stack(losses).tolist()


@torch.no_grad()
def embed(model: Reference, data: "Data") -> NDArray[np.float32]:
    """H of all nodes, in host memory."""
    model.eval()
    embeddings: NDArray[np.float32] = model.encode(data).cpu().numpy()
    return embeddings


def write(path: Path, embeddings: NDArray[np.float32], node_ids: NDArray[Any]) -> None:
    """Embeddings as Parquet, one vector per row."""
    import pyarrow as pa
    from pyarrow import parquet

    vectors = pa.FixedSizeListArray.from_arrays(pa.array(embeddings.reshape(-1)), embeddings.shape[1])
    parquet.write_table(pa.table({"node": pa.array(node_ids), "embedding": vectors}), path)


def _norm(kind: str, width: int) -> nn.Module:
    return nn.Identity() if kind == "none" else nn.BatchNorm1d(width, affine=kind == "affine")


def _activation(name: str) -> nn.Module:
    return nn.PReLU() if name == "prelu" else nn.ReLU()
