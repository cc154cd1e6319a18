"""A graph with labels, splits and a metric to evaluate embeddings by."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from spgcl.errors import InputError
from spgcl.graph import Graph
from spgcl.graph.checks import checked_seed
from spgcl.graph.display import facts

Metric = Literal["accuracy", "roc_auc", "balanced_accuracy", "macro_f1"]


@dataclass(frozen=True, eq=False)
class Splits:
    """Train, validation and test nodes of several splits, as boolean masks of shape (num_splits, num_nodes).

    Attributes:
        source: Where they come from, for display ("published", "seeded 10/10/80").
    """

    train: NDArray[np.bool_]
    validation: NDArray[np.bool_]
    test: NDArray[np.bool_]
    source: str

    def __post_init__(self) -> None:
        for part in ("train", "validation", "test"):
            masks = getattr(self, part)
            if masks.ndim != 2 or masks.shape != self.train.shape:
                raise InputError(
                    f"the {part} masks have shape {masks.shape}, the training masks {self.train.shape}"
                )
            empty = ~masks.any(axis=1)
            if empty.any():
                raise InputError(f"split {int(np.flatnonzero(empty)[0])} has an empty {part} part")
        if (self.train & self.validation | self.train & self.test | self.validation & self.test).any():
            raise InputError("a node is in two parts of one split")

    def __len__(self) -> int:
        return len(self.train)

    def __repr__(self) -> str:
        return f"Splits({len(self)} {self.source} splits of {self.train.shape[1]:,} nodes)"

    @property
    def restarts(self) -> int:
        """Restarts of a classifier per split in the paper's protocol: ten if there is one split."""
        return 10 if len(self) == 1 else 1


@dataclass(frozen=True, eq=False)
class Dataset:
    """A named benchmark: its label-free graph, labels (0 ... num_classes - 1) and splits."""

    name: str
    graph: Graph
    labels: NDArray[np.int64]
    splits: Splits
    metric: Metric = "accuracy"
    class_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.labels.shape != (self.graph.num_nodes,):
            raise InputError(f"{self.graph.num_nodes} nodes but labels of shape {self.labels.shape}")
        if self.splits.train.shape[1] != self.graph.num_nodes:
            raise InputError(f"{self.graph.num_nodes} nodes but splits over {self.splits.train.shape[1]}")

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return int(self.labels.max()) + 1

    def __repr__(self) -> str:
        return f"Dataset({self.name!r}, {self.graph!r}, {self.num_classes} classes, {self.splits!r})"

    def _repr_html_(self) -> str:
        splits = f"{len(self.splits)} {self.splits.source}"
        pairs = {"graph": repr(self.graph), "classes": self.num_classes, "splits": splits}
        return facts(self.name, {**pairs, "metric": self.metric})


def random_splits(
    labels: NDArray[Any],
    *,
    seed: int,
    fractions: tuple[float, float, float] = (0.1, 0.1, 0.8),
    count: int = 10,
    stratified: bool = False,
) -> Splits:
    """Seeded splits, the same on every machine, like NumPy's PCG64 and `permutation`.

    Nodes without a label, marked by a negative number, are in no part.
    """
    labels = np.asarray(labels)
    generator = np.random.default_rng(checked_seed(seed))
    known = np.flatnonzero(labels >= 0) if labels.dtype.kind in "if" else np.arange(len(labels))
    groups = [known]
    if stratified:
        groups = [np.flatnonzero(labels == value) for value in np.unique(labels[known])]
    masks = np.zeros((3, count, len(labels)), dtype=np.bool_)
    for split in range(count):
        for group in groups:
            ends = np.cumsum(_part_sizes(len(group), fractions))[:2]
            for mask, nodes in zip(
                masks[:, split], np.split(generator.permutation(group), ends), strict=True
            ):
                mask[nodes] = True
    percent = "/".join(f"{100 * fraction:.0f}" for fraction in fractions)
    if not masks.any(axis=2).all():
        _refuse_few(max(map(len, groups), default=0), fractions, f"{percent} splits", stratified=stratified)
    source = f"seeded{' stratified' if stratified else ''} {percent}"
    return Splits(train=masks[0], validation=masks[1], test=masks[2], source=source)


def k_fold_splits(labels: NDArray[Any], folds: int, *, seed: int) -> Splits:
    """Seeded, stratified folds: each is the test part once, the next one validates, the others train."""
    labels = np.asarray(labels)
    if folds < 3:
        raise InputError(f"{folds}-fold leaves no training part; give 3 folds or more, such as 5-fold")
    generator = np.random.default_rng(checked_seed(seed))
    fold = np.full(len(labels), -1)
    dealt = 0
    for value in np.unique(labels[labels >= 0]):
        nodes = generator.permutation(np.flatnonzero(labels == value))
        # Classes continue where the last one ended, so that folds are equally large.
        fold[nodes] = (dealt + np.arange(len(nodes))) % folds
        dealt += len(nodes)
    if dealt < folds:
        raise InputError(f"{dealt} labelled nodes are too few for {folds} folds; give fewer folds")
    test = fold == np.arange(folds)[:, None]
    validation = np.roll(test, -1, axis=0)
    return Splits(
        (fold >= 0) & ~test & ~validation, validation, test, source=f"seeded stratified {folds}-fold"
    )


def _part_sizes(count: int, fractions: tuple[float, float, float]) -> tuple[int, int, int]:
    train, validation = (round(fraction * count) for fraction in fractions[:2])
    return train, validation, count - train - validation


def _refuse_few(
    largest: int, fractions: tuple[float, float, float], splits: str, *, stratified: bool
) -> None:
    """Report how many nodes the largest group needs, unless that is thousands."""
    sizes = range(largest + 1, 10_000) if min(fractions) > 0 else ()
    for needed in sizes:
        if min(_part_sizes(needed, fractions)) > 0:
            raise InputError(
                f"no class has the {needed} labelled nodes that {splits} need, the largest has {largest}; "
                "label more nodes or join classes"
                if stratified
                else f"{largest} labelled nodes are too few for {splits}; label at least {needed}"
            )
