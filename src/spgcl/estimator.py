"""The scikit-learn face: fit on a graph, transform this or another one into vectors."""

import warnings
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from spgcl.datasets.dataset import Dataset, random_splits
from spgcl.engine.device import choose_device
from spgcl.errors import InputError, NoFeaturesError, unknown
from spgcl.graph import Graph
from spgcl.graph.checks import checked_seed
from spgcl.graph.matching import match_features, require_comparable, require_same_direction
from spgcl.io.labels import number_labels
from spgcl.methods import Prepared, Supervision, find, parameters, resolved_settings
from spgcl.methods.memory import explained_memory
from spgcl.training.fitting import embed, fit, require_embeddable


class Embedder:
    """Learn node embeddings without labels.

    Every hyper-parameter of the method is a keyword argument and a parameter in scikit-learn's sense;
    those left out take the preset's value, or the method's default.

    Args:
        method: Name of the method, see `spgcl.METHODS`.
        preset: Named settings for a known data set ("published", "paper", "validated").
        seed: Decides initial weights and every draw.
        device: "auto", "cpu", "cuda" or "mps".
        precision: Of products while training on CUDA: "float32", "tf32", or "auto", which takes the latter.
        deterministic: Give the same bytes for the same seed on CUDA too, at some cost.
        settings: Hyper-parameters of the method.

    Attributes:
        method_: The trained method, after `fit`.
        history_: Losses of the training, after `fit`.
        feature_names_in_: Names of the feature columns, where they have any, after `fit`.
        classes_: Names of the classes in the order of class scores, after `fit` of a supervised method.
        labels_: Labels that number these classes, -1 for none, or None for a method that looks at none.

    >>> import spgcl
    >>> vectors = spgcl.Embedder(steps=2, hidden=8).fit_transform(spgcl.load("csbm-homophilic"))
    >>> vectors.shape[1], vectors.dtype
    (8, dtype('float32'))
    """

    _OWN = ("method", "preset", "seed", "device", "precision", "deterministic")

    def __init__(
        self,
        method: str = "spgcl",
        *,
        preset: str | None = None,
        seed: int = 0,
        device: str = "auto",
        precision: str = "auto",
        deterministic: bool = False,
        **settings: Any,
    ) -> None:
        self.method = method
        self.preset = preset
        self.seed = seed
        self.device = device
        self.precision = precision
        self.deterministic = deterministic
        _require_known(method, settings)
        self._settings = settings

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Own parameters and the hyper-parameters that were set."""
        del deep
        return {name: getattr(self, name) for name in self._OWN} | self._settings

    def set_params(self, **params: Any) -> Self:
        """Change parameters; an unknown name is an error that lists the known ones."""
        own = {name: params.pop(name) for name in self._OWN if name in params}
        _require_known(own.get("method", self.method), {**self._settings, **params})
        for name, value in own.items():
            setattr(self, name, value)
        self._settings.update(params)
        return self

    def fit(self, graph: Any, y: Any = None) -> Self:
        """Train on a Dataset, a Graph, or anything `Graph.of` reads.

        Labels `y`, one class a node, are looked at by supervised methods only. Classes are whole numbers or
        text, by the rules of label files: None, NaN, "" and "?" are no label, nor is -1 beside two others.
        Supervised methods train one model a split of the Dataset, or of ten seeded 10/10/80 ones, and
        transform into class scores of all models side by side: for `spgcl.evaluation.score_predictions` with
        `labels_`, not for a probe, as one model's test nodes are among those that another was trained on.
        """
        seed, source = checked_seed(self.seed), self._read(graph)
        supervised = find(self.method).supervised and y is not None
        labels, names = number_labels(y, source.num_nodes, origin="y") if supervised else (None, ())
        supervision = None if labels is None else _supervision(graph, labels, names)
        settings = resolved_settings(
            self.method, self.preset, graph.name if isinstance(graph, Dataset) else "", self._settings
        )
        device = choose_device(self.device)
        fitted = fit(
            self.method,
            source,
            settings=settings,
            seed=seed,
            device=device,
            supervision=supervision,
            precision=self.precision,
            deterministic=self.deterministic,
        )
        # Only now: a training that fails leaves what was learned before.
        self.method_, self.history_ = fitted.method, fitted.history
        self.labels_, self.classes_ = labels, names
        self.n_features_in_ = source.num_features
        self.feature_names_in_ = source.feature_names
        self._fitted_on, self._directed = source.digest, source.directed
        return self

    def transform(self, graph: Any) -> NDArray[np.float32]:
        """Embeddings of a graph's nodes in row order, new nodes and other graphs included."""
        if not hasattr(self, "method_"):
            raise InputError("this Embedder is not fitted yet; call fit first")
        given = self._read(graph)
        require_same_direction(given, directed=self._directed)
        require_comparable(given.feature_names, same_graph=given.digest == self._fitted_on)
        source = match_features(given, self.feature_names_in_)
        if source is not given:
            warnings.warn(source.notes[-1], stacklevel=2)
        require_embeddable(self.method, self.method_.inductive, source.digest == self._fitted_on)
        if source.num_features != self.n_features_in_:
            raise InputError(
                f"the graph has {source.num_features} features, but {self.n_features_in_} were learned from"
            )
        return embed(self.method_, self._prepared(source))

    def fit_transform(self, graph: Any, y: Any = None) -> NDArray[np.float32]:
        """Train on a graph and embed its nodes."""
        return self.fit(graph, y).transform(graph)

    def _prepared(self, graph: Graph) -> Prepared:
        with explained_memory(type(self.method_), {}):
            return self.method_.prepare(graph, choose_device(self.device))

    def _read(self, graph: Any) -> Graph:
        """A graph; one without features only where the method looks at none."""
        try:
            return Graph.of(graph)
        except NoFeaturesError:
            if find(self.method).reads_features:
                raise
            return Graph.of(graph, structural="degree")

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items())
        return f"Embedder({given})"


def _require_known(method: str, settings: Mapping[str, Any]) -> None:
    known = parameters(find(method))
    for name in settings:
        if name not in known:
            raise unknown("parameter", name, [*Embedder._OWN, *known])


def _supervision(graph: Any, labels: NDArray[np.int64], names: tuple[str, ...]) -> Supervision:
    if "-1" in names:
        warnings.warn("y: -1 is taken as a class; give None or NaN for a node without a label", stacklevel=3)
    splits = graph.splits if isinstance(graph, Dataset) else random_splits(labels, seed=0, stratified=True)
    return Supervision.of(labels, splits)
