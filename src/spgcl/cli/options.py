"""Options that several commands share, declared once."""

import inspect
from collections.abc import Callable
from dataclasses import Field, dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from spgcl.errors import InputError

if TYPE_CHECKING:
    import torch


def data_set_names(incomplete: str) -> list[str]:
    """The names that a word may become in a shell, which completes paths if there are none."""
    from spgcl.datasets import names

    return [name for name in names() if name.startswith(incomplete)]


def method_names(incomplete: str) -> list[str]:
    """The methods that a word may become in a shell."""
    from spgcl.methods import METHODS

    return [name for name in METHODS if name.startswith(incomplete)]


GraphArgument = Annotated[
    str, typer.Argument(help="A data set's name, or a path to a graph.", autocompletion=data_set_names)
]
RunArgument = Annotated[Path, typer.Argument(help="A run folder.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON value instead of tables.")]
ThreadsOption = Annotated[int | None, typer.Option("--threads", min=1, help="CPU threads (default: all).")]
DeviceOption = Annotated[
    Literal["auto", "cpu", "cuda", "mps"], typer.Option("--device", help="Where to compute.")
]
LabelsOption = Annotated[
    Path | None, typer.Option("--labels", help="Labels by node id: .csv, .tsv, .parquet or .npy.")
]
SplitsOption = Annotated[
    str | None,
    typer.Option("--splits", help="60/20/20 (percent), 5-fold, or a file: parts by node id, .npz masks."),
]
MetricOption = Annotated[
    Literal["accuracy", "balanced_accuracy", "macro_f1", "roc_auc"] | None,
    typer.Option("--metric", help="What validation chooses by and test is scored by (default: accuracy)."),
]
HoldOutOption = Annotated[
    float,
    typer.Option("--hold-out-edges", help="Fraction of edges left out of training, for link prediction."),
]
SetOption = Annotated[list[str] | None, typer.Option("--set", help="A hyper-parameter, name=value.")]


@dataclass(frozen=True)
class Running:
    """Where a command computes, and how it answers."""

    device: DeviceOption = "auto"
    threads: ThreadsOption = None
    json: JsonOption = False

    def start(self) -> "torch.device":
        """Set the threads and choose the device."""
        from spgcl.engine.device import choose_device, use_threads

        if self.threads:
            use_threads(self.threads)
        return choose_device(self.device)


@dataclass(frozen=True)
class LabelOptions:
    """A file of labels, and its column of classes."""

    labels: LabelsOption = None
    label: Annotated[
        str | None, typer.Option("--label", help="Column of classes in labels (default: the only other one).")
    ] = None


def takes_options(command: Callable[..., None]) -> Callable[..., None]:
    """A command in which every parameter that is a record becomes one option for each of its fields."""
    parameters: list[inspect.Parameter] = []
    records: dict[str, Any] = {}
    for name, parameter in inspect.signature(command).parameters.items():
        if is_dataclass(parameter.annotation):
            records[name] = parameter.annotation
            parameters += map(_parameter, fields(parameter.annotation))
        else:
            parameters.append(parameter)

    @wraps(command)
    def wrapped(**given: Any) -> None:
        for name, record in records.items():
            given[name] = record(**{field.name: given.pop(field.name) for field in fields(record)})
        command(**given)

    # Typer reads both.
    wrapped.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    vars(wrapped)["__signature__"] = inspect.Signature(parameters)
    return wrapped


def _parameter(field: Field[Any]) -> inspect.Parameter:
    annotation: Any = field.type
    (option,) = annotation.__metadata__
    if isinstance(option, str):
        # The library, which knows no Typer, only says what a field means.
        annotation = Annotated[annotation.__origin__, typer.Option(f"--{field.name}", help=option)]
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(field.name, kind, default=field.default, annotation=annotation)


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
