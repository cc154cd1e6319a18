"""A run for TensorBoard: its curves as scalars, its embeddings for the projector."""

import shutil
import warnings
from pathlib import Path
from typing import Any

from spgcl.errors import InputError
from spgcl.report.material import Material
from spgcl.report.points import all_columns
from spgcl.runs.plane import principal_components
from spgcl.runs.record import Run

# The projector reads text and slows down with more; the leading components keep what it can show.
_MOST_NODES = 10_000
_MOST_COMPONENTS = 50


def require_tensorboard() -> None:
    """Say how to install TensorBoard's writer, before any work is done."""
    _writer()


def write_tensorboard(folder: Path, run: Run, material: Material | None = None) -> Path:
    """Write the folder `tensorboard` of a run anew and return it.

    Args:
        folder: The run.
        run: Its record.
        material: Embeddings and columns for the projector; only scalars without it.
    """
    place = folder / "tensorboard"
    shutil.rmtree(place, ignore_errors=True)
    with _writer()(str(place)) as writer:
        for step, loss in enumerate(run.history.get("loss", []), 1):
            writer.add_scalar("loss", loss, step)
        for look in run.history.get("observations", []):
            for name, value in look.items():
                if name != "step":
                    writer.add_scalar(f"health/{name}", value, look["step"])
        if material is not None:
            _add_embeddings(writer, material)
    return place


def _add_embeddings(writer: Any, material: Material) -> None:
    shown = material.shown[:: -(-len(material.shown) // _MOST_NODES)]
    vectors = material.vectors[shown]
    if vectors.shape[1] > _MOST_COMPONENTS:
        vectors = principal_components(vectors, _MOST_COMPONENTS)
    columns = [column for column in all_columns(material) if column.categories is not None]
    rows = [
        [_cell(node), *[_cell(_named(column, place)) for column in columns]]
        for node, place in zip(material.graph.node_ids[shown].tolist(), shown.tolist(), strict=True)
    ]
    header = ["node", *[_cell(column.name) for column in columns]]
    writer.add_embedding(vectors, metadata=rows, metadata_header=header, tag="embeddings")


def _named(column: Any, place: int) -> str:
    code = int(column.values[place])
    return column.categories[code] if code >= 0 else "unknown"


def _cell(value: Any) -> str:
    """Text for a table whose cells end at tabs and rows at line breaks."""
    return " ".join(str(value).split())[:80] or "-"


def _writer() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise InputError(
            "TensorBoard is not installed; install it with pip install 'spgcl[tensorboard]'"
        ) from None
    return SummaryWriter
