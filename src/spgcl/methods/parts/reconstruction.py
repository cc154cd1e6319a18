"""The likelihood of the adjacency that GAE and VGAE maximise."""

import torch
from torch import Tensor
from torch.nn.functional import softplus

from spgcl.engine.all_pairs import summed_softplus
from spgcl.engine.pair_products import entry_products, pair_products
from spgcl.engine.tensors import SparseMatrix
from spgcl.methods.parts.edge_keys import PreparedPairs, is_entry


def reconstruction(
    vectors: Tensor, prepared: PreparedPairs, ratio: int, generator: torch.Generator
) -> Tensor:
    """The reconstruction term over all pairs when `ratio` is 0, else over the entries and drawn pairs."""
    entries = prepared.graph.adjacency
    if ratio:
        return sampled_reconstruction(vectors, entries, prepared.keys, ratio, generator)
    return full_reconstruction(vectors, entries)


def sampled_reconstruction(
    vectors: Tensor, entries: SparseMatrix, keys: Tensor, ratio: int, generator: torch.Generator
) -> Tensor:
    """The re-weighted likelihood of A + I, with randomly drawn non-edges.

    Half the mean cross-entropy over the entries of A + I and half that over the drawn pairs that are no
    entries.

    Args:
        vectors: One row per node (Z).
        entries: A + I; its values are not used.
        keys: The entries, from `entry_keys`.
        ratio: Pairs drawn per entry.
        generator: Decides which.
    """
    num_nodes = len(vectors)
    drawn = torch.randint(num_nodes**2, (ratio * len(keys),), generator=generator, device=keys.device)
    absent = ~is_entry(drawn, keys)
    scores = pair_products(vectors, vectors, drawn // num_nodes, drawn % num_nodes)
    error = (absent * softplus(scores)).sum() / absent.sum().clamp(min=1)
    return (softplus(-entry_products(vectors, entries)).mean() + error) / 2


def full_reconstruction(vectors: Tensor, entries: SparseMatrix) -> Tensor:
    """The re-weighted likelihood of A + I over all pairs of nodes, in blocks.

    Half the mean cross-entropy over the entries of A + I and half that over all other pairs.

    Args:
        vectors: One row per node (Z).
        entries: A + I; its values are not used.
    """
    scores = entry_products(vectors, entries)
    total = summed_softplus(vectors)
    num_absent = max(1, len(vectors) ** 2 - len(scores))
    return (softplus(-scores).mean() + (total - softplus(scores).sum()) / num_absent) / 2
