"""A method on a graph larger than memory: trained by pools of rows, embedded block by block."""

import shutil
from pathlib import Path

import torch

from spgcl.errors import InputError
from spgcl.io.shards import FOLDER
from spgcl.methods.method import Method, Prepared
from spgcl.scale.channels import JoinsChannels, joined, learned
from spgcl.scale.derived import Here, Workers
from spgcl.scale.embed import encoded, write_shards
from spgcl.scale.mapped import mapped_tensors, warm
from spgcl.scale.store import Store

# In the folder of a run, under a name that no user gives.
_LAYERS = ".layers.new"


def prepare(store: Store, method: Method, *, memory: int, workers: Workers | None = None) -> Prepared:
    """What the method's steps read of a store, after the leader compared every block with its checksum."""
    workers = workers or Here()
    if problem := method.needs_memory():
        raise InputError(f"{store.folder} is larger than --memory; {problem}")
    if workers.leads:
        store.verify()
    if isinstance(method, JoinsChannels):
        return learned(store, method)
    tensors = mapped_tensors(store, workers, normalise_features=method.normalise_features)
    warm(store, memory)
    return Prepared(tensors)


def embed(store: Store, method: Method, run: Path, *, workers: Workers | None = None) -> None:
    """Write the embeddings into the folder of a run; files that a killed process has written stay."""
    workers, layers = workers or Here(), run / _LAYERS
    normalised = method.normalise_features
    with torch.no_grad():
        if isinstance(method, JoinsChannels):
            block, origin = joined(store, method, layers, workers)
        else:
            block, origin = encoded(store, method.encoder, layers, workers, normalised=normalised)
        write_shards(store, block, origin, run / FOLDER, workers)
    workers.wait()
    if workers.leads:
        shutil.rmtree(layers, ignore_errors=True)
