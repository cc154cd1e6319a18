"""Every method by name. To add one, write its file and its row here."""

from collections.abc import Iterable, Mapping
from typing import Any

import torch

from spgcl.errors import InputError, unknown
from spgcl.graph.checks import checked_seed
from spgcl.methods.afgrl import AFGRL
from spgcl.methods.auto import Auto
from spgcl.methods.bgrl import BGRL
from spgcl.methods.deepwalk import DeepWalk
from spgcl.methods.dgi import DGI
from spgcl.methods.fastrp import FastRP
from spgcl.methods.gae import GAE, VGAE
from spgcl.methods.gca import GCA
from spgcl.methods.gmi import GMI
from spgcl.methods.grace import GRACE
from spgcl.methods.graphcl import GraphCL
from spgcl.methods.memory import require_room
from spgcl.methods.method import Method, Prepared
from spgcl.methods.mvgrl import MVGRL
from spgcl.methods.node2vec import Node2Vec
from spgcl.methods.parameters import Parameter, checked, parameters
from spgcl.methods.presets import preset
from spgcl.methods.selene import SELENE
from spgcl.methods.smoothed import Raw, Smoothed
from spgcl.methods.spectral import Spectral
from spgcl.methods.spgcl import SPGCL
from spgcl.methods.supervised import SupervisedGCN, SupervisedMLP, Supervision
from spgcl.methods.untrained import Untrained

# The paper's method, the baselines in the order of its tables, then those that train nothing.
METHODS: dict[str, type[Method]] = {
    "spgcl": SPGCL,
    "mlp": SupervisedMLP,
    "gcn": SupervisedGCN,
    "deepwalk": DeepWalk,
    "node2vec": Node2Vec,
    "selene": SELENE,
    "gae": GAE,
    "vgae": VGAE,
    "dgi": DGI,
    "gmi": GMI,
    "mvgrl": MVGRL,
    "grace": GRACE,
    "gca": GCA,
    "graphcl": GraphCL,
    "bgrl": BGRL,
    "afgrl": AFGRL,
    "raw": Raw,
    "smoothed": Smoothed,
    "untrained": Untrained,
    "spectral": Spectral,
    "fastrp": FastRP,
    "auto": Auto,
}

# What a comparison has without a list: two ways to do nothing, two that train nothing, and the paper's.
SHORT_LIST = ("raw", "smoothed", "fastrp", "auto", "spgcl")

__all__ = [
    "METHODS",
    "SHORT_LIST",
    "Method",
    "Parameter",
    "Prepared",
    "Supervision",
    "create",
    "find",
    "parameters",
    "require_settings",
    "resolved_settings",
]


def find(name: str) -> type[Method]:
    """The method of that name."""
    if not isinstance(name, str) or name not in METHODS:
        raise unknown("method", name, METHODS)
    return METHODS[name]


def require_settings(name: str, given: Iterable[str]) -> None:
    """Refuse hyper-parameters that the method lacks and another has, which the error names."""
    known = parameters(find(name))
    for setting in (setting for setting in given if setting not in known):
        having = next((other for other in METHODS if setting in parameters(METHODS[other])), None)
        if having is not None:
            raise InputError(
                f"{name} has no parameter {setting!r}, but {having} has: add --method {having} "
                f"(in Python method={having!r})"
            )


def create(
    name: str,
    num_features: int,
    *,
    num_nodes: int = 0,
    task: tuple[int, int] | None = None,
    seed: int,
    settings: Mapping[str, Any] | None = None,
) -> Method:
    """A method with freshly initialised weights, the same for the same seed on every device.

    Args:
        name: One of METHODS.
        num_features: Width of the graph's features.
        num_nodes: How many nodes the graph has; needed by methods with weights per node.
        task: How many models and classes (see `Supervision.task`); for supervised methods only.
        seed: Decides the weights.
        settings: Hyper-parameters; the others keep the method's defaults.
    """
    method = find(name)
    values = _checked(name, settings or {})
    seed = checked_seed(seed)
    if method.supervised and task is None:
        raise InputError(f"{name} is supervised and needs labels; give them (--labels FILE, fit(graph, y))")
    require_room(method, num_features, num_nodes=num_nodes, values=values)
    # Layers draw their weights from torch's global CPU generator, whose state is restored afterwards.
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        made = method(num_features, *(task or ()) if method.supervised else (), **values)
        made.allocate(num_nodes)
        return made


def resolved_settings(
    name: str, preset_name: str | None, dataset: str, given: Mapping[str, Any], size: tuple[int, int] = (0, 0)
) -> dict[str, Any]:
    """Every hyper-parameter of a method: the given value, else that of the preset, else the default.

    Args:
        name: One of METHODS.
        preset_name: What a preset leaves out has the default for small graphs.
        dataset: The graph that a preset is for.
        given: Named values.
        size: Nodes and edges of the graph; without it, the defaults are those for small graphs.
    """
    method = find(name)
    chosen = preset(preset_name, name, dataset) if preset_name else method.sized_defaults(*size)
    defaults = {parameter.name: parameter.default for parameter in parameters(method).values()}
    return {**defaults, **_checked(name, {**chosen, **given})}


def _checked(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    require_settings(name, given)
    return checked(find(name), given)
