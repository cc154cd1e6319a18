"""What the records of a run look like, see `spgcl.io.records`; parts that are not listed may be there too."""

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from spgcl.runs.options import GraphOptions


class Point(TypedDict):
    """Values observed at a step."""

    step: int


class Curves(TypedDict, total=False):
    """The history of a training."""

    loss: list[float]
    observations: list[Annotated[dict[str, float], Point]]


class Channel(TypedDict):
    """How reliable a channel of a graph is."""

    reliability: float
    deviation: float
    weight: NotRequired[float]


class Findings(TypedDict):
    """What a method found out about its graph."""

    channels: dict[str, Channel]
    verdict: list[str]


class Task(TypedDict):
    """What a supervised method was trained on."""

    models: int
    classes: int
    digest: str


class _Read(TypedDict, total=False):
    """The hyper-parameters that the page and others read."""

    steps: int
    positives: int


Settings = Annotated[dict[str, Any], dict[str, str | int | float | bool | None], _Read]


class Shape(TypedDict):
    """What the weights of a method depend on."""

    num_nodes: int
    num_features: int


class EncodedColumn(TypedDict, total=False):
    """What was learned of a column of features, see `spgcl.io.encoding`."""

    name: str
    kind: Literal["number", "category", "date", "text", "vector", "empty", "relations"]
    mean: float
    deviation: float
    missing: bool
    hours: bool
    width: int
    values: list[str]
    buckets: list[int]
    weights: list[float]
    axes: list[list[float]]


class Encoding(TypedDict):
    """How features were made of a table."""

    columns: list[EncodedColumn]


class Described(Shape):
    """The graph of a run: where it is, how it was read, what it was like."""

    source: str
    options: Annotated[dict[str, Any], GraphOptions]
    labels: str | None
    digest: str
    num_edges: int
    directed: bool
    weighted: NotRequired[bool]
    feature_names: NotRequired[list[str]]
    encoding: NotRequired[Encoding]


class Weights(TypedDict):
    """What is stored with the weights of a run."""

    method: str
    settings: Settings
    graph: Shape
    task: NotRequired[list[int]]


class Progress(TypedDict):
    """What is stored with the tensors of a checkpoint."""

    step: int
    observations: list[Annotated[dict[str, float], Point]]
    digest: str


class SplitTest(TypedDict):
    """One test score."""

    split: int
    start: int
    validation: float
    test: float
    others: NotRequired[dict[str, float]]


class Scored(TypedDict):
    """Scores by labels, over splits or restarts."""

    mean: float
    std: float
    std_over: Literal["splits", "probe starts", "training starts"]
    metric: Literal["accuracy", "roc_auc", "balanced_accuracy", "macro_f1"]
    splits: list[SplitTest]


class LeftOut(TypedDict):
    """Why there is no score."""

    left_out: str


class Means(TypedDict):
    """A score without training beside that of a run."""

    mean: float
    std: float


class Asked(TypedDict, total=False):
    """By which labels and splits a run was scored, if they were named."""

    labels: str
    label: str
    id: str
    metric: Literal["accuracy", "roc_auc", "balanced_accuracy", "macro_f1"]
    splits: str


class Evaluation(TypedDict, total=False):
    """The scores of a run, `eval.json`."""

    asked: Asked
    others: dict[str, float]
    baselines: dict[str, LeftOut | Means]
    split_source: str
    task: str
    knn: Scored
    clustering: dict[str, float]
    link_prediction: dict[str, float]
    held_out: dict[str, float]
    seeds: float
    channels: dict[str, Channel]
    verdict: list[str]


class Labelled(Scored, Evaluation):
    """The scores of a run with labels."""

    dataset: str
    method: str
    protocol: Literal["paper", "tuned", "predictions"]


class Baselines(TypedDict):
    """The scores without training, `baselines.json`."""

    protocol: str
    task: str
    rows: dict[str, LeftOut | Scored]
