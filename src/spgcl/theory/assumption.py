"""Assumption 1 fitted to a graph: a node's class decides its features and its neighbours' classes."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spgcl.theory.layer import Layer

Matrix = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Assumption:
    """Assumption 1 for a graph: which nodes' features a node and its neighbours have.

    Attributes:
        members: Labelled nodes, class by class.
        offsets: Where each class begins in `members`, and the end.
        mixing: P_y: the probabilities of a neighbour's class, a row per class.
        projected: x^T W of every node.
    """

    members: NDArray[np.int64]
    offsets: NDArray[np.int64]
    mixing: Matrix
    projected: Matrix

    def draw(self, classes: NDArray[np.int64], generator: np.random.Generator) -> Matrix:
        """Projected features of a random node of each class, shape (classes, width)."""
        sizes = np.diff(self.offsets)[classes]
        rows = self.members[self.offsets[classes] + generator.integers(sizes)]
        return np.asarray(self.projected[rows])

    def running(
        self, label: int, degrees: Iterable[int], draws: int, generator: np.random.Generator
    ) -> Iterator[tuple[int, Matrix]]:
        """Z of `draws` nodes of one class at ascending degrees, while their neighbours become more.

        Nodes are independent of each other; the same node at two degrees is not.
        """
        total, reached = self.draw(np.full(draws, label), generator), 1
        for degree in degrees:
            for _ in range(degree - reached):
                classes = generator.choice(len(self.mixing), size=draws, p=self.mixing[label])
                total = total + self.draw(classes, generator)
            reached = int(degree)
            yield reached, np.maximum(total / reached, 0)


def fitted(layer: Layer, mixing: Matrix, labels: NDArray[np.int64]) -> Assumption:
    """Assumption 1 with a graph's features and mixing.

    A class without labelled neighbours gets neighbours of all classes.
    """
    members = np.argsort(labels, kind="stable")[np.count_nonzero(labels < 0) :]
    counts = np.bincount(labels[members], minlength=len(mixing))
    lonely = mixing.sum(axis=1, keepdims=True) == 0
    return Assumption(
        members=members,
        offsets=np.concatenate([[0], np.cumsum(counts)]),
        mixing=np.where(lonely, counts / counts.sum(), mixing),
        projected=layer.projected,
    )
