"""The most similar other nodes of every node."""

import numpy as np
import torch
from numpy.typing import NDArray

from spgcl.engine.similarity import comparable_rows, largest

_BLOCK_ENTRIES = 2**25


def nearest_nodes(
    vectors: NDArray[np.float32], count: int, device: str | torch.device = "cpu"
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The other rows most similar to each row by cosine, and their similarities, in descending order.

    There are `count` of them, or all if there are fewer.
    """
    rows = torch.nn.functional.normalize(comparable_rows(torch.from_numpy(vectors)).to(device), dim=1)
    count = min(count, len(rows) - 1)
    nearest = torch.empty(len(rows), count, dtype=torch.int64)
    similarities = torch.empty(len(rows), count)
    size = max(1, _BLOCK_ENTRIES // len(rows))
    for start in range(0, len(rows), size):
        products = rows[start : start + size] @ rows.T
        products[torch.arange(len(products)), torch.arange(start, start + len(products))] = -torch.inf
        similarities[start : start + size], nearest[start : start + size] = largest(products, count)
    return nearest.numpy(), similarities.clamp(-1, 1).numpy()
