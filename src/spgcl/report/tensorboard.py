"""A run for TensorBoard: its curves as scalars, its embeddings for the projector."""

import shutil
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from spgcl.errors import InputError
from spgcl.files import exchange, unwritable
from spgcl.report.material import Material
from spgcl.report.points import all_columns, run_columns
from spgcl.runs.plane import principal_components
from spgcl.runs.record import Run, deriving

# The projector reads text and slows down with more than this.
_MOST_NODES = 10_000
_MOST_COMPONENTS = 50


def require_tensorboard() -> Any:
    """TensorBoard's writer, or an error that says how to install it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise InputError(
            "TensorBoard is not installed; install it with pip install 'spgcl[tensorboard]'"
        ) from None
    return SummaryWriter


def write_tensorboard(folder: Path, run: Run, material: Material | None = None) -> Path:
    """Write the folder `tensorboard` of a run, replacing an earlier one, and return it.

    Without material, from which the projector gets its vectors and columns, only scalars are written.
    """
    target, new = folder / "tensorboard", folder / ".tensorboard.new"
    shutil.rmtree(new, ignore_errors=True)
    with _writing(new) as writer:
        for step, loss in enumerate(run.history.get("loss", []), 1):
            writer.add_scalar("loss", loss, step)
        for point in run.history.get("observations", []):
            for name, value in point.items():
                if name != "step":
                    writer.add_scalar(f"health/{name}", value, point["step"])
        if material is not None:
            _add_embeddings(writer, material)
    with deriving(folder, run):
        if target.exists() and not exchange(new, target):
            shutil.rmtree(target)
        if not target.exists():
            new.rename(target)
    shutil.rmtree(new, ignore_errors=True)
    return target


@contextmanager
def _writing(folder: Path) -> Iterator[Any]:
    """TensorBoard's writer; its thread reports an error to the next call, not to a user."""
    before = threading.excepthook

    def of_others(failure: threading.ExceptHookArgs) -> None:
        if not type(failure.thread).__module__.startswith("tensorboard"):
            before(failure)

    threading.excepthook = of_others
    try:
        with require_tensorboard()(str(folder)) as writer:
            yield writer
    except OSError as error:
        raise unwritable(folder, error) from None
    finally:
        threading.excepthook = before


def _add_embeddings(writer: Any, material: Material) -> None:
    shown = material.shown[:: -(-len(material.shown) // _MOST_NODES)]
    vectors = material.vectors[shown]
    if vectors.shape[1] > _MOST_COMPONENTS:
        vectors = principal_components(vectors, _MOST_COMPONENTS)
    header, columns = ["node"], [material.graph.node_ids[shown].tolist()]
    for column in all_columns(material, run_columns(material)):
        if column.categories is not None:
            header.append(column.name)
            # The code -1 is the last one.
            names = [*column.categories, "unknown"]
            columns.append([names[code] for code in column.values[shown].tolist()])
    rows = [[_cell(value) for value in row] for row in zip(*columns, strict=True)]
    writer.add_embedding(vectors, metadata=rows, metadata_header=list(map(_cell, header)), tag="embeddings")


def _cell(value: Any) -> str:
    """Text for a table whose cells end at tabs and rows at line breaks."""
    return " ".join(str(value).split())[:80] or "-"
