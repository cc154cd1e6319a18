"""Embeddings of a graph on disk: layer by layer over blocks of rows, the last one into Parquet files."""

import hashlib
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn

from spgcl.engine.convolutions import MESSAGE_PASSING, Convolution
from spgcl.engine.encoders import Encoder
from spgcl.errors import InputError
from spgcl.io.shards import is_written, shard, write_shard
from spgcl.scale.arrays import DiskArray
from spgcl.scale.derived import Block, Derived, Here, Workers, opened
from spgcl.scale.mapped import mapped_tensors
from spgcl.scale.propagate import features_of, matrix_rows, smoothed, times
from spgcl.scale.store import Store


def layer_block(
    encoder: Encoder, layer: int, inputs: DiskArray, propagates: bool, store: Store, index: int
) -> Tensor:
    """A block of the output of a layer.

    Args:
        encoder: Has the layer.
        layer: Which one.
        inputs: All rows of the layer before; of the first layer of a GCN, features propagated once.
        propagates: Whether the inputs are still to be propagated.
        store: The graph.
        index: Of the block.
    """
    start, stop = store.bounds[index]
    if propagates:
        rows = times(matrix_rows(store, "smoothing", start, stop), inputs)
    else:
        rows = torch.from_numpy(np.array(inputs.mapped[start:stop], dtype=np.float32))
    return encoder.layer_output(layer, rows)


@torch.no_grad()
def neighbourhood_block(encoder: Encoder, normalised: bool, store: Store, index: int) -> Tensor:
    """A block of the embeddings of a message-passing encoder, from all rows that it depends on."""
    tensors = mapped_tensors(store, Here(), normalise_features=normalised)
    parts = torch.split(torch.arange(*store.bounds[index]), 4096)
    return torch.cat([encoder(tensors, rows, None) for rows in parts])


def encoded(
    store: Store, encoder: Encoder, layers: Path, workers: Workers, *, normalised: bool
) -> tuple[Block, str]:
    """What computes blocks of an encoder's embeddings, and the origin of the result.

    All layers but the last are computed now, into the folder.
    """
    encoder = encoder.eval()
    origin = f"{store.digest} {weights_digest(encoder)} {normalised}"
    if encoder.kind in MESSAGE_PASSING:
        # What all blocks read is made before they are computed, perhaps elsewhere.
        mapped_tensors(store, workers, normalise_features=normalised)
        return partial(neighbourhood_block, encoder, normalised), origin
    if encoder.kind == "mlp":
        current = features_of(store, workers, normalised=normalised)
    else:
        current = smoothed(store, 1, workers, normalised=normalised)
    widths = [len(cast(Convolution, layer).bias) for layer in encoder.convolutions]
    block: Block = partial(layer_block, encoder, 0, current, False)
    for index in range(1, len(widths)):
        made = Derived(layers, f"layer-{index}", f"{origin} {index}", "<f4", widths[index - 1])
        current = made.compute(store, block, workers)
        block = partial(layer_block, encoder, index, current, encoder.kind != "mlp")
    return block, origin


@dataclass(frozen=True)
class _WriteShard:
    """The task of computing a block and writing it into its file."""

    folder: Path
    digest: str
    target: Path
    block: Block
    origin: str

    def __call__(self, index: int) -> int:
        store = opened(self.folder, self.digest)
        rows = np.asarray(self.block(store, index))
        if not np.isfinite(rows).all():
            raise InputError("the embeddings are not finite; lower learning_rate or check the features")
        start, stop = store.bounds[index]
        write_shard(shard(self.target, index), store.ids_of(start, stop), rows, self.origin)
        return 0


def write_shards(store: Store, block: Block, origin: str, target: Path, workers: Workers) -> None:
    """Compute and write the files that are missing."""
    count, missing = len(store.bounds), []
    if workers.leads:
        target.mkdir(exist_ok=True)
        missing = [index for index in range(count) if not is_written(shard(target, index), origin)]
    for _ in workers.map(_WriteShard(store.folder, store.digest, target, block, origin), missing):
        pass
    workers.wait()
    for path in set(target.glob("part-*.parquet")) - {shard(target, index) for index in range(count)}:
        path.unlink(missing_ok=True)


def weights_digest(module: nn.Module) -> str:
    """SHA-256 of the weights and buffers of a module."""
    state = hashlib.sha256()
    for name, value in module.state_dict().items():
        state.update(f"{name} {tuple(value.shape)}".encode() + value.detach().cpu().numpy().tobytes())
    return state.hexdigest()
