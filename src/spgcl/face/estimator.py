"""The scikit-learn interface: fit on a graph, transform this or another graph into embeddings."""

import warnings
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from spgcl.datasets.dataset import Dataset, random_splits
from spgcl.engine.device import choose_device, trained_on
from spgcl.errors import InputError, NoFeaturesError, unknown
from spgcl.graph import Graph
from spgcl.graph.checks import checked_seed
from spgcl.graph.display import facts
from spgcl.io.labels import number_labels
from spgcl.methods import Supervision, find, parameters, require_settings, resolved_settings
from spgcl.runs.estimate import estimating
from spgcl.runs.fit import describe_source
from spgcl.runs.options import DEFAULT_METHOD
from spgcl.runs.record import Run, load_method, read_run, save_method, write_run
from spgcl.training.fitting import Fitted, as_learned, embed, fit
from spgcl.training.loop import Controls, History


class Embedder:
    """Learn node embeddings without labels.

    Every hyper-parameter of the method is a keyword argument and a scikit-learn parameter; one that is left
    out has the preset's value or the method's default.

    Args:
        method: Name of the method, see `spgcl.METHODS`.
        preset: Named settings for a known data set ("published", "paper", "validated").
        seed: Decides initial weights and every draw.
        device: "auto", "cpu", "cuda" or "mps".
        precision: Of matrix products while training on CUDA: "float32", "tf32", or "auto" (tf32).
        deterministic: The same bytes for the same seed on CUDA too, slower.
        settings: Hyper-parameters of the method.

    Attributes:
        method_: The trained method, after `fit`.
        history_: Losses of the training, after `fit`.
        feature_names_in_: Names of the feature columns, empty if they have none, after `fit`.
        classes_: Names of the classes in the order of class scores, after `fit` of a supervised method.
        labels_: Indices into `classes_`, -1 for unlabelled nodes; None for a self-supervised method.

    >>> import spgcl
    >>> vectors = spgcl.Embedder(hidden=8).fit_transform(spgcl.load("csbm-homophilic"))
    >>> vectors.shape[1], vectors.dtype
    (8, dtype('float32'))
    """

    _OWN = ("method", "preset", "seed", "device", "precision", "deterministic")

    def __init__(
        self,
        method: str = DEFAULT_METHOD,
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
        """The estimator's own parameters and the hyper-parameters that were set."""
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

        Labels `y`, one class per node, are read by supervised methods only. Classes are whole numbers or
        text, by the rules of label files: None, NaN, "", "?" mean unlabelled, as does -1 next to two other
        classes. Supervised methods train one model per split of the Dataset, or of ten seeded 10/10/80
        splits; `transform` then returns the class scores of all models side by side, to be scored by
        `spgcl.evaluation.score_predictions` with `labels_`. Do not probe them: the test nodes of one model
        are training nodes of another.
        """
        self._fit(graph, y)
        return self

    def _fit(self, graph: Any, y: Any) -> Fitted:
        source = self._read(graph)
        supervised = find(self.method).supervised and y is not None
        labels, names = number_labels(y, source.num_nodes, origin="y") if supervised else (None, ())
        dataset = graph.name if isinstance(graph, Dataset) else ""
        task = None if labels is None else _supervision(graph, labels, names)
        size = source.num_nodes, source.num_edges
        record = Run(
            dataset=dataset,
            method=self.method,
            preset=self.preset,
            settings=resolved_settings(self.method, self.preset, dataset, self._settings, size),
            seed=checked_seed(self.seed),
            graph={**describe_source("", {}, None, source), "class_names": list(names)},
            device=self.device,
            threads=torch.get_num_threads(),
            precision=self.precision,
            deterministic=self.deterministic,
            supervision=None if task is None else task.record(),
        )
        fitted = fit(
            self.method,
            source,
            settings=record.settings,
            seed=record.seed,
            device=choose_device(self.device),
            supervision=task,
            precision=self.precision,
            deterministic=self.deterministic,
            controls=Controls(progress=estimating(record, None)),
        )
        # Only now: a training that fails leaves the earlier model.
        self.method_, self.history_, self._record = fitted.method, fitted.history, record
        self.labels_, self.classes_ = labels, names
        self.n_features_in_, self.feature_names_in_ = source.num_features, source.feature_names
        record.status, record.steps = "finished", len(fitted.history.losses)
        record.history = {"loss": fitted.history.losses}
        return fitted

    def transform(self, graph: Any) -> NDArray[np.float32]:
        """Embeddings of the nodes of this graph, in row order; it may have new nodes or be another graph."""
        self._require_fitted()
        given, recorded = self._read(graph), self._record.graph
        source = as_learned(
            given,
            digest=recorded["digest"],
            directed=recorded["directed"],
            num_features=self.n_features_in_,
            feature_names=self.feature_names_in_,
        )
        if source is not given:
            warnings.warn(source.notes[-1], stacklevel=2)
        device = choose_device(self.device)
        return embed(self.method, self.method_, source, device, digest=recorded["digest"])

    def fit_transform(self, graph: Any, y: Any = None) -> NDArray[np.float32]:
        """Train on a graph and embed its nodes."""
        return self._fit(graph, y).embed()

    def save(self, folder: str | PathLike[str]) -> Path:
        """Write the trained model as a run without embeddings: `spgcl embed` and `load` read it."""
        self._require_fitted()
        path = Path(folder)
        if path.exists() and any(path.iterdir()):
            raise InputError(f"{path} exists and is not empty; choose another folder")
        path.mkdir(parents=True, exist_ok=True)
        save_method(path, self.method_, self._record)
        write_run(path, self._record)
        return path

    @classmethod
    def load(cls, folder: str | PathLike[str]) -> Self:
        """The trained model of a folder that `save`, `spgcl.fit` or the command `fit` wrote.

        It embeds on the device it was trained on, if this machine has that; `set_params(device=...)` chooses
        another. Labels are not part of it: `labels_` is None.
        """
        path = Path(folder)
        run = read_run(path)
        loaded = cls(
            run.method,
            seed=run.seed,
            device=trained_on(run.device),
            precision=run.precision,
            deterministic=run.deterministic,
            **run.settings,
        )
        loaded.method_ = load_method(path)
        loaded.history_ = History(losses=run.history.get("loss", []), finished=run.status == "finished")
        loaded.labels_, loaded.classes_ = None, tuple(run.graph.get("class_names", ()))
        loaded.n_features_in_ = run.graph["num_features"]
        loaded.feature_names_in_ = tuple(run.graph["feature_names"])
        loaded._record = run
        return loaded

    def _require_fitted(self) -> None:
        if not hasattr(self, "method_"):
            raise InputError("this Embedder is not fitted yet; call fit first")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "method_")

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn asks of a step of a pipeline: a transformer, of graphs, with few checks."""
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type="transformer",
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(),
            input_tags=InputTags(two_d_array=False),
            no_validation=True,
        )

    def _read(self, graph: Any) -> Graph:
        """A graph; features may be missing only if the method ignores them."""
        try:
            return Graph.of(graph)
        except NoFeaturesError:
            if find(self.method).reads_features:
                raise
            return Graph.of(graph, structural="degree")

    def __repr__(self) -> str:
        default = Embedder()
        own = {name: getattr(self, name) for name in self._OWN if name != "method"}
        changed = {name: value for name, value in own.items() if value != getattr(default, name)}
        words = [f"{name}={value!r}" for name, value in (changed | self._settings).items()]
        return f"Embedder({', '.join([repr(self.method), *words])})"

    def _repr_html_(self) -> str:
        state = "fitted" if hasattr(self, "method_") else "not fitted"
        return facts(f"Embedder, {state}", self.get_params())


def _require_known(method: str, settings: Mapping[str, Any]) -> None:
    require_settings(method, settings)
    known = parameters(find(method))
    for name in settings:
        if name not in known:
            raise unknown("parameter", name, [*Embedder._OWN, *known])


def _supervision(graph: Any, labels: NDArray[np.int64], names: tuple[str, ...]) -> Supervision:
    if "-1" in names:
        warnings.warn("y: -1 is taken as a class; give None or NaN for a node without a label", stacklevel=4)
    splits = graph.splits if isinstance(graph, Dataset) else random_splits(labels, seed=0, stratified=True)
    return Supervision.of(labels, splits)
