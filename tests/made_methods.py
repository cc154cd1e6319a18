"""Methods on small graphs, in double precision, and what a short training adds."""

from dataclasses import replace

import numpy as np
import torch
from graphs import CPU, seeded
from torch.autograd import gradcheck

from spgcl.engine.tensors import SparseMatrix
from spgcl.evaluation import probe
from spgcl.face.estimator import Embedder
from spgcl.training.loop import train

# Sizes for graphs of some forty nodes.
TINY_POOLS = {"hidden": 8, "seeds": 6, "hops": 1, "pool_size": 20, "positives": 3, "negatives": 4}
TINY_WALKS = {
    "hidden": 8,
    "walks": 3,
    "walk_length": 6,
    "window": 2,
    "negatives": 3,
    "steps": 12,
    "learning_rate": 0.05,
}


def fresh(kind, graph, *, seed=0, **settings):
    """A method of a class, and what it prepared of a graph; unlike `create`, settings are not checked."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        method = kind(graph.num_features, **settings)
    return method, method.prepare(graph, CPU)


def trained_bytes(method, prepared, *, seed=0, **controls):
    """Losses and embeddings of a training, as bytes."""
    history = train(method, prepared, seed=seed, **controls)
    return np.array(history.losses).tobytes(), method.embed(prepared).numpy().tobytes()


def doubled(graph):
    """A graph on a device with features in double precision."""
    features = graph.features
    if isinstance(features, SparseMatrix):
        return replace(graph, features=features.revalued(features.values.double()))
    return replace(graph, features=features.double())


def in_double(method, prepared):
    """A method and what it prepared in double precision."""
    prepared.graph = doubled(prepared.graph)
    return method.double(), prepared


def gradients_are_right(method, prepared):
    """Whether the gradients of the loss, in double precision, match central differences."""
    weights = [weight for weight in method.parameters() if weight.requires_grad]
    # Entries of the weights are shifted in place, where the method reads them.
    return gradcheck(lambda *_: method.loss(prepared, 0, seeded()), weights, atol=1e-7, fast_mode=True)


def dense(matrix):
    return matrix.dense() if isinstance(matrix, SparseMatrix) else matrix


def two_convolutions(state, name, adjacency, features):
    """Two convolutions that share a PReLU, from the equations; `name` is the encoder's."""
    hidden = features
    for layer in range(2):
        hidden = adjacency @ hidden @ state[f"{name}.convolutions.{layer}.weight"]
        hidden = hidden + state[f"{name}.convolutions.{layer}.bias"]
        hidden = torch.where(hidden > 0, hidden, state[f"{name}.activation.weight"] * hidden)
    return hidden


def split_score(dataset, name, *, splits=2, score=probe, scoring=None, **settings):
    """Mean accuracy of a method over the first splits; by default under the paper's probe."""
    parts = {part: getattr(dataset.splits, part)[:splits] for part in ("train", "validation", "test")}
    vectors = Embedder(name, device="cpu", **settings).fit_transform(dataset)
    scoring = {"starts": 1} if scoring is None else scoring
    return score(vectors, dataset.labels, replace(dataset.splits, **parts), **scoring).mean


def standardised_score(method, prepared, dataset, *, epochs=200, learning_rate=0.01):
    """Accuracy of a short probe.

    Columns are standardised: training also makes embeddings larger, which a probe of fixed rate favours.
    """
    vectors = method.embed(prepared)
    vectors = ((vectors - vectors.mean(dim=0)) / vectors.std(dim=0)).numpy()
    return probe(vectors, dataset.labels, dataset.splits, epochs=epochs, learning_rate=learning_rate).mean
