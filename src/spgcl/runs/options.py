"""Options for reading a graph's files, as given and as recorded."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal


@dataclass(frozen=True)
class GraphOptions:
    """How a graph's files are read; every command that takes GRAPH takes these."""

    features: Path | None = None
    structural: Literal["degree", "spectral"] | None = None
    source: str | None = None
    target: str | None = None
    weight: str | None = None
    attributes: str | None = None
    id: str | None = None
    directed: bool = False

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
