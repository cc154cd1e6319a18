"""Which graphs a benchmark runs on, and with which settings."""

from collections.abc import Mapping
from typing import Any

from spgcl.datasets import Dataset, contextual_block_model, load, names
from spgcl.errors import unknown
from spgcl.methods import resolved_settings
from spgcl.methods.presets import known_graphs
from timing.reference import RULES

# As many nodes, edges and features as the two large graphs of the paper's memory table. Degrees are even here
# and skewed there, which matters to pools but not to matrices over all nodes.
SIZES: dict[str, tuple[int, int, int]] = {
    "genius-size": (421_961, 984_979, 12),
    "twitch-gamers-size": (168_114, 6_797_557, 7),
}


def load_graph(name: str) -> Dataset:
    """A data set, or a synthetic graph of a named size."""
    require_known(name)
    if name not in SIZES:
        return load(name)
    num_nodes, num_edges, num_features = SIZES[name]
    return synthetic(num_nodes, 2 * num_edges / num_nodes, num_features, name)


def require_known(name: str) -> None:
    """Refuse an unknown name before anything is measured."""
    if name not in SIZES and name not in names():
        raise unknown("graph", name, [*names(), *SIZES])


def synthetic(num_nodes: int, average_degree: float, num_features: int, name: str) -> Dataset:
    """A block model of a size; its classes do not change the cost of a step."""
    return contextual_block_model(
        num_nodes=num_nodes,
        num_classes=2,
        average_degree=average_degree,
        homophily=0.5,
        num_features=num_features,
        signal=1.0,
        seed=0,
        name=name,
    )


def settings_of(method: str, graph: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings published for the graph, else the defaults with the published rules; then those given."""
    published = graph in known_graphs("published", method)
    rules = RULES if method == "spgcl" and not published else {}
    return resolved_settings(method, "published" if published else None, graph, {**rules, **given})
