"""What is fitted if no method is named, and options for reading a graph's files, as given and as recorded."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

# The best on the mean without labels, see docs/methods/auto.md.
DEFAULT_METHOD = "auto"


@dataclass(frozen=True)
class GraphOptions:
    """How a graph's files are read; every command that takes GRAPH takes these."""

    features: Annotated[Path | None, "Node features: .csv, .tsv, .parquet, .npy or .npz."] = None
    columns: Annotated[str | None, "Columns of features to use, a,b,c (default: all but the ids)."] = None
    structural: Annotated[
        Literal["degree", "spectral", "relations"] | None,
        "Compute features from the structure of a graph that has none; relations: those of triples, counted.",
    ] = None
    source: Annotated[str | None, "Column of edge sources (default: the first)."] = None
    target: Annotated[str | None, "Column of edge targets (default: the second)."] = None
    weight: Annotated[
        str | None, "Column of edge weights (default: one called weight); none: no weights."
    ] = None
    attributes: Annotated[str | None, "Node attributes of a GraphML file to use as features, a,b,c."] = None
    id: Annotated[
        str | None, "Column of node ids in features, and in labels that have it (default: the first)."
    ] = None
    memory: Annotated[str | None, "Most memory for a store, as 2GiB (default: half of the machine's)."] = None
    bipartite: Annotated[bool, "Both columns of edges have ids of their own, as users and items do."] = False
    label: Annotated[str | None, "Column of classes in labels (default: the only other one)."] = None
    directed: Annotated[bool, "Keep edge direction (row-normalised propagation)."] = False

    def given(self) -> dict[str, Any]:
        """The options that are set, as plain values; paths are absolute, so that any folder can use them."""
        return {
            name: str(value.absolute()) if isinstance(value, Path) else value
            for name, value in asdict(self).items()
            if value
        }

    @classmethod
    def recorded(cls, given: dict[str, Any]) -> "GraphOptions":
        """The options of a record."""
        features = Path(given["features"]) if "features" in given else None
        return cls(**{**given, "features": features})
