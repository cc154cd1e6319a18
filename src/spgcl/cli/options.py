"""Options that several commands share, declared once."""

import inspect
from collections.abc import Callable
from dataclasses import fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from spgcl.errors import InputError
from spgcl.runs.options import GraphOptions

if TYPE_CHECKING:
    import torch

GraphArgument = Annotated[str, typer.Argument(help="A data set's name, or a path to a graph.")]
RunArgument = Annotated[Path, typer.Argument(help="A run folder.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON value instead of tables.")]
ThreadsOption = Annotated[int | None, typer.Option("--threads", min=1, help="CPU threads (default: all).")]
DeviceOption = Annotated[
    Literal["auto", "cpu", "cuda", "mps"], typer.Option("--device", help="Where to compute.")
]
LabelsOption = Annotated[
    Path | None, typer.Option("--labels", help="Labels by node id: .csv, .tsv, .parquet or .npy.")
]
SetOption = Annotated[list[str] | None, typer.Option("--set", help="A hyper-parameter, name=value.")]
_GRAPH_OPTIONS = {
    "features": "Node features: .csv, .tsv, .parquet, .npy or .npz.",
    "structural": "Compute features from the structure of a graph that has none.",
    "source": "Column of edge sources (default: the first).",
    "target": "Column of edge targets (default: the second).",
    "weight": "Column of edge weights (default: one called weight); none: no weights.",
    "attributes": "Node attributes of a GraphML file to use as features, a,b,c.",
    "id": "Column of node ids in features, and in labels that have it (default: the first).",
    "directed": "Keep edge direction (row-normalised propagation).",
}


def takes_graph_options(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose parameter `options`, a `GraphOptions`, becomes one option for each of its fields."""
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        parameters += _graph_parameters() if parameter.name == "options" else [parameter]

    @wraps(command)
    def wrapped(**given: Any) -> None:
        options = GraphOptions(**{name: given.pop(name) for name in _GRAPH_OPTIONS})
        command(options=options, **given)

    # Typer reads both.
    wrapped.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    vars(wrapped)["__signature__"] = inspect.Signature(parameters)
    return wrapped


def _graph_parameters() -> list[inspect.Parameter]:
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=Annotated[
                field.type, typer.Option(f"--{field.name}", help=_GRAPH_OPTIONS[field.name])
            ],
        )
        for field in fields(GraphOptions)
    ]


def given_settings(pairs: list[str] | None, steps: int | None = None) -> dict[str, Any]:
    """Hyper-parameters as given by --set, the last of a name, and by --steps, which must not contradict."""
    given: dict[str, Any] = {}
    for pair in pairs or []:
        name, equals, value = pair.partition("=")
        if not equals:
            raise InputError(f"--set {pair!r} is not name=value, for example --set hidden=256")
        given[name] = value
    if steps is None:
        return given
    if given.get("steps", str(steps)) != str(steps):
        raise InputError(
            f"--steps {steps} and --set steps={given['steps']} contradict each other; leave one out"
        )
    return {**given, "steps": steps}


def start_on(device: str, threads: int | None) -> "torch.device":
    """Set the threads and choose the device."""
    import torch

    from spgcl.engine.device import choose_device

    if threads:
        torch.set_num_threads(threads)
    return choose_device(device)
