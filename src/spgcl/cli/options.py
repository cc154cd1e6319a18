"""Options that several commands share, declared once."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from spgcl.errors import InputError

if TYPE_CHECKING:
    import torch

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON value instead of tables.")]
ThreadsOption = Annotated[int | None, typer.Option("--threads", min=1, help="CPU threads (default: all).")]
DeviceOption = Annotated[
    Literal["auto", "cpu", "cuda", "mps"], typer.Option("--device", help="Where to compute.")
]
FeaturesOption = Annotated[
    Path | None, typer.Option("--features", help="Node features: .csv, .tsv, .parquet, .npy or .npz.")
]
StructuralOption = Annotated[
    Literal["degree", "spectral"] | None,
    typer.Option("--structural", help="Make features from the structure when there are none."),
]
SourceOption = Annotated[
    str | None, typer.Option("--source", help="Column of edge sources (default: the first).")
]
TargetOption = Annotated[
    str | None, typer.Option("--target", help="Column of edge targets (default: the second).")
]
IdOption = Annotated[
    str | None,
    typer.Option("--id", help="Column of node ids in features, and in labels that have it (else the first)."),
]
DirectedOption = Annotated[
    bool, typer.Option("--directed", help="Keep edge direction (row-normalised propagation).")
]
LabelsOption = Annotated[
    Path | None, typer.Option("--labels", help="Labels by node id: .csv, .tsv, .parquet or .npy.")
]
WeightOption = Annotated[
    str | None,
    typer.Option("--weight", help="Column of edge weights (default: one called weight); none: no weights."),
]
AttributesOption = Annotated[
    str | None,
    typer.Option("--attributes", help="Node attributes of a GraphML file to use as features, a,b,c."),
]
SetOption = Annotated[list[str] | None, typer.Option("--set", help="A hyper-parameter, name=value.")]


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
