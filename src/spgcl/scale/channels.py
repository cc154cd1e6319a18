"""Channels of a graph on disk, computed block by block, and their weighted join."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spgcl.graph.propagate import looped_rows
from spgcl.methods.method import Prepared
from spgcl.methods.parts.channels import OWN_IN_REGION, REGION_HOPS, degree_centres, nearness, unit
from spgcl.scale.arrays import DiskArray
from spgcl.scale.derived import Block, Derived, Workers
from spgcl.scale.embed import weights_digest
from spgcl.scale.propagate import Matrix, product_block
from spgcl.scale.sample import sampled_graph
from spgcl.scale.store import Store


@runtime_checkable
class JoinsChannels(Protocol):
    """A method that learns from part of a graph how to join the channels of all of it."""

    centres: Tensor
    degree_means: Tensor

    def prepare(self, graph: Any, device: torch.device, supervision: Any = None) -> Any:
        """Learn from a graph in memory."""
        ...

    def scaled_rows(self, features: NDArray[np.float32]) -> Tensor:
        """What channels begin with."""
        ...

    def combined(self, channels: Iterable[Tensor], num_rows: int) -> Tensor:
        """Vectors from rows of the channels."""
        ...


def scaled_block(method: JoinsChannels, store: Store, index: int) -> Tensor:
    """A block of features as channels begin with them."""
    start, stop = store.bounds[index]
    return method.scaled_rows(np.array(store.features[start:stop], dtype=np.float32))


def degree_block(centres: Tensor, store: Store, index: int) -> Tensor:
    """A block of degrees, as nearness to the centres."""
    return nearness(_log_degrees(store, *store.bounds[index]), centres)


def sum_block(one: DiskArray, other: DiskArray, store: Store, index: int) -> NDArray[Any]:
    """A block of the sum of two arrays."""
    block = slice(*store.bounds[index])
    return np.asarray(one.mapped[block] + other.mapped[block])


@dataclass(frozen=True)
class Join:
    """A block of the vectors."""

    method: JoinsChannels
    features: tuple[DiskArray, ...]
    region: DiskArray
    degrees: tuple[DiskArray, ...]

    def __call__(self, store: Store, index: int) -> Tensor:
        """The rows of the block."""
        block = slice(*store.bounds[index])
        own, *near = (torch.from_numpy(np.array(part.mapped[block])) for part in self.features)
        region = torch.from_numpy(self.region.mapped[block] / np.float32(REGION_HOPS))
        degrees = torch.from_numpy(np.hstack([part.mapped[block] for part in self.degrees]))
        parts = [own, *near, region.add_(own, alpha=OWN_IN_REGION), degrees - self.method.degree_means]
        return self.method.combined(map(unit, parts), len(own))


def learned(store: Store, method: JoinsChannels) -> Prepared:
    """Let a method learn from a part of the graph; degrees are those of the whole."""
    prepared: Prepared = method.prepare(sampled_graph(store), torch.device("cpu"))
    log_degrees = torch.cat([_log_degrees(store, *block) for block in store.bounds])
    method.centres.copy_(degree_centres(log_degrees))
    return prepared


def joined(store: Store, method: JoinsChannels, folder: Path, workers: Workers) -> tuple[Block, str]:
    """What computes blocks of the vectors, and their origin; channels are computed now, into the folder."""
    origin = f"{store.digest} {weights_digest(method)}"  # type: ignore[arg-type]

    def made(name: str, block: Block, width: int) -> DiskArray:
        return Derived(folder, name, f"{origin} {name}", "<f4", width).compute(store, block, workers)

    def product(name: str, matrix: Matrix, factor: DiskArray) -> DiskArray:
        return made(name, partial(product_block, matrix, factor), factor.described.shape[1])

    first = partial(scaled_block, method)
    own = made("own", first, first(store, 0).shape[1])
    hops = [product("hop-1", "smoothing", own)]
    hops.append(product("hop-2", "smoothing", hops[0]))
    near = product("near", "transitions", own)
    far = product("far", "transitions", near)
    total, current = hops[0], hops[0]
    for number in range(2, REGION_HOPS + 1):
        current = hops[1] if number == 2 else product(f"hop-{number}", "smoothing", current)
        total = made(f"sum-{number}", partial(sum_block, total, current), total.described.shape[1])
        if workers.leads:
            _forget(folder, f"hop-{number - 1}" if number > 3 else None, f"sum-{number - 1}")
    degrees = [made("degrees", partial(degree_block, method.centres), len(method.centres))]
    degrees += [product("near-degrees", "transitions", degrees[0])]
    degrees += [product("far-degrees", "transitions", degrees[1])]
    means = [_column_means(store, part) for part in degrees]
    method.degree_means.copy_(torch.from_numpy(np.concatenate(means)))
    return Join(method, (own, *hops, near, far), total, tuple(degrees)), origin


def _log_degrees(store: Store, start: int, stop: int) -> Tensor:
    sums = looped_rows(store, start, stop).sum(axis=1, dtype=np.float64)
    return torch.from_numpy(np.log1p(sums - 1).astype(np.float32))


def _column_means(store: Store, array: DiskArray) -> NDArray[np.float32]:
    sums = sum(array.mapped[start:stop].sum(axis=0, dtype=np.float64) for start, stop in store.bounds)
    return np.asarray(sums / store.num_nodes, dtype=np.float32)


def _forget(folder: Path, *names: str | None) -> None:
    for name in names:
        for suffix in (".npy", ".json"):
            (folder / f"{name}{suffix}").unlink(missing_ok=True)
