"""A run on disk: weights, record, checkpoint. Nothing in these files is executed when they are read."""

import hashlib
import json
import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import safetensors
import safetensors.torch
import torch
from numpy.typing import NDArray
from torch import Tensor

from spgcl import __version__
from spgcl.errors import InputError
from spgcl.files import replacing, steady
from spgcl.io.embeddings import Format, has_embeddings, read_embeddings
from spgcl.io.opening import opening
from spgcl.io.records import read_record, require, require_part
from spgcl.methods import create
from spgcl.methods.method import Method
from spgcl.runs.folder import settle
from spgcl.runs.schema import Curves, Described, Findings, Progress, Settings, Task, Weights
from spgcl.runs.sources import HeldOut
from spgcl.training.step import Checkpoint

# Increased when earlier records can no longer be read.
FORMAT = 1
# The same for checkpoints, which only unfinished runs have. Format 1 held the state of torch's optimisers,
# format 2 no digest.
CHECKPOINT_FORMAT = 3
# The single metadata entry of a tensor file; its value is JSON.
_METADATA = "spgcl"
_AGAIN = "fit it again with --overwrite"
Status = Literal["running", "interrupted", "finished"]


@dataclass
class Run:
    """The record of a run, `run.json`: its inputs and its outcome.

    Attributes:
        graph: Path or name, options it was read with, digest and shape.
        settings: Every hyper-parameter, defaults included.
        precision: Of products in training, see `spgcl.engine.device.arithmetic`.
        deterministic: Whether gradients are summed in a fixed order on CUDA too.
        workers: Processes that trained together.
        supervision: Models, classes and digest of the labels that a supervised method was trained on.
        seconds: Wall-clock time of prepare, train and embed.
        findings: What the method found out about the graph: reliability of its channels, and a verdict.
    """

    dataset: str
    method: str
    preset: str | None
    settings: Settings
    seed: int
    graph: Annotated[dict[str, Any], Described]
    device: str
    threads: int
    precision: str = "auto"
    deterministic: bool = False
    workers: int = 1
    command: list[str] = field(default_factory=list)
    embedding_format: Format = "parquet"
    hold_out_edges: float = 0.0
    supervision: Annotated[dict[str, Any], Task] | None = None
    status: Status = "running"
    steps: int = 0
    resumed_from: int | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    peak_memory_mib: float = 0.0
    history: Annotated[dict[str, Any], Curves] = field(default_factory=dict)
    findings: Annotated[dict[str, Any], Findings, None] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=lambda: versions())
    format: int = FORMAT

    @property
    def trains(self) -> bool:
        """Whether its method has anything to train."""
        return "steps" in self.settings

    def summary(self, folder: Path) -> dict[str, Any]:
        """The record that `spgcl fit --json` prints."""
        return {
            "run": str(folder),
            "dataset": self.dataset,
            "method": self.method,
            "steps": self.steps,
            "resumed_from": self.resumed_from,
            "seconds": self.seconds,
            "peak_memory_mib": self.peak_memory_mib,
        }


def versions() -> dict[str, str]:
    """Versions that a result may depend on."""
    return {
        "spgcl": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
    }


def write_run(folder: Path, run: Run) -> None:
    """Write `run.json`, whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(folder / "run.json") as path:
        path.write_text(to_json(asdict(run)), encoding="utf-8")


def to_json(record: Any) -> str:
    """A record as text, the same for the same record."""
    return json.dumps(record, indent=1, ensure_ascii=False) + "\n"


def require_writable_text(record: Any) -> None:
    """Refuse names that a record, which is UTF-8, cannot hold."""
    try:
        to_json(asdict(record)).encode("utf-8")
    except UnicodeEncodeError as error:
        before, after = error.object[: error.start], error.object[error.start :]
        name = before.rpartition('"')[2] + after.partition('"')[0]
        raise InputError(f"{name!r} is not UTF-8; give files and folders names that are") from None


def read_run(folder: Path) -> Run:
    """Read `run.json`; one of another format is refused with the version that wrote it."""
    path = folder / "run.json"
    try:
        record = read_record(path, Any, _AGAIN)
    except FileNotFoundError:
        retrainings = sorted(path.parent.name for path in folder.glob("seed-*/run.json"))
        if retrainings:
            raise InputError(
                f"{folder} holds several runs; name one, such as {folder / retrainings[0]}"
            ) from None
        raise InputError(f"{folder} is not a run: it has no run.json (spgcl fit writes one)") from None
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        named = record.get("versions") if isinstance(record, dict) else None
        written = named.get("spgcl", "unknown") if isinstance(named, dict) else "unknown"
        raise InputError(
            f"{path} was written by spgcl {written} in another format; read it with that version"
        )
    require_part(path, record, Run, _AGAIN)
    return Run(**record)


@contextmanager
def deriving(folder: Path, run: Run) -> Iterator[None]:
    """Write what is made from a run into its folder; refused if another run is there by now."""
    with steady(folder, change=True):
        require_unchanged(folder, run)
        yield


def require_unchanged(folder: Path, run: Run) -> None:
    """Refuse to go on if the folder holds another record than it did."""
    if to_json(asdict(read_run(folder))) != to_json(asdict(run)):
        raise InputError(f"{folder} was changed by another process; run the command again")


def read_vectors(folder: Path, run: Run) -> tuple[NDArray[np.float32], NDArray[Any]]:
    """The embeddings of a run and their node ids."""
    if run.status == "running" and not has_embeddings(folder, run.embedding_format):
        raise InputError(
            f"{folder} has no embeddings yet: training was interrupted; continue with spgcl fit --resume"
        )
    return read_embeddings(folder)


def read_results(folder: Path) -> tuple[Run, NDArray[np.float32], NDArray[Any]]:
    """The record of a run, its embeddings and their node ids."""
    settle(folder)
    with steady(folder):
        run = read_run(folder)
        return run, *read_vectors(folder, run)


def unfinished(folder: Path, run: Run) -> str:
    """A note on a run that has results but is not finished; empty for a finished one."""
    if run.status == "finished":
        return ""
    if run.status == "running":
        return f"{folder} has results of an earlier step only; spgcl fit --resume continues it"
    steps = f"step {run.steps:,} of {run.settings.get('steps', 0):,}"
    return f"{folder} was interrupted at {steps}; spgcl fit --resume continues it"


def save_method(folder: Path, method: Method, run: Run) -> None:
    """Write the weights, with the metadata that rebuilds their method."""
    metadata = {
        "spgcl": __version__,
        "method": run.method,
        "settings": run.settings,
        "graph": {key: run.graph[key] for key in ("num_nodes", "num_edges", "num_features")},
    }
    if run.supervision:
        metadata["task"] = [run.supervision["models"], run.supervision["classes"]]
    _save_tensors(folder / "model.safetensors", method.state_dict(), metadata)


def load_method(folder: Path) -> Method:
    """Rebuild the method of a run with its weights."""
    path = folder / "model.safetensors"
    tensors, metadata = _load_tensors(path)
    try:
        require(metadata, Weights)
        method = create(
            metadata["method"],
            metadata["graph"]["num_features"],
            num_nodes=metadata["graph"]["num_nodes"],
            task=tuple(metadata["task"]) if "task" in metadata else None,
            seed=0,
            settings=metadata["settings"],
        )
        method.load_state_dict(tensors)
    except (TypeError, ValueError, RuntimeError, MemoryError, OverflowError) as error:
        writer = f"spgcl {metadata['spgcl']}" if "spgcl" in metadata else "another program"
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise InputError(
            f"{path} was written by {writer} and does not fit spgcl {__version__} ({reason}); fit it again"
        ) from None
    return method


def save_checkpoint(folder: Path, checkpoint: Checkpoint) -> None:
    """Replace the last checkpoint, whole or not at all."""
    tensors = {f"weights/{name}": value for name, value in checkpoint.weights.items()}
    tensors |= {f"memory/{name}": value for name, value in checkpoint.memory.items()}
    tensors |= {f"optimiser/{name}": value for name, value in checkpoint.optimiser.items()}
    tensors["generator"] = checkpoint.generator
    tensors["losses"] = torch.tensor(checkpoint.losses, dtype=torch.float64)
    metadata = {
        "spgcl": __version__,
        "format": CHECKPOINT_FORMAT,
        "digest": _digest(tensors),
        "step": checkpoint.step,
        "observations": checkpoint.observations,
    }
    _save_tensors(folder / "checkpoint.safetensors", tensors, metadata)


def load_checkpoint(folder: Path) -> Checkpoint | None:
    """The last checkpoint of a run, or None if there is none."""
    path = folder / "checkpoint.safetensors"
    if not path.exists():
        return None
    tensors, metadata = _load_tensors(path)
    if metadata.get("format") != CHECKPOINT_FORMAT:
        raise InputError(
            f"{path} was written by spgcl {metadata.get('spgcl')} in another format and cannot be continued; "
            "start over with --overwrite"
        )
    try:
        require(metadata, Progress)
        if _digest(tensors) != metadata["digest"]:
            raise InputError("its tensors are not those that were written")
        if "generator" not in tensors or "losses" not in tensors or len(tensors["losses"].shape) != 1:
            raise InputError("it has no generator, or no list of losses")
    except InputError as error:
        raise InputError(f"{path} is damaged ({error}); start over with --overwrite") from None
    return Checkpoint(
        step=metadata["step"],
        weights=_under("weights/", tensors),
        optimiser=_under("optimiser/", tensors),
        generator=tensors["generator"],
        memory=_under("memory/", tensors),
        losses=tensors["losses"].tolist(),
        observations=metadata["observations"],
    )


def save_held_out(folder: Path, held_out: HeldOut) -> None:
    """Write the edges and pairs that a run does not train on."""
    positive, negative = held_out
    with replacing(folder / "held_out_edges.npz") as path, path.open("wb") as file:
        np.savez(file, positive=positive, negative=negative)


def load_held_out(folder: Path) -> HeldOut | None:
    """The held-out edges and non-edges of a run, or None if it was trained on all edges."""
    path = folder / "held_out_edges.npz"
    if not path.exists():
        return None
    with (
        opening(path, "list of held-out edges"),
        path.open("rb") as file,
        np.load(file, allow_pickle=False) as stored,
    ):
        positive, negative = stored["positive"], stored["negative"]
        for pairs in (positive, negative):
            if pairs.dtype.kind != "i" or pairs.ndim != 2 or pairs.shape[1] != 2 or not len(pairs):
                raise InputError(f"expected pairs of nodes, found {pairs.dtype} of shape {pairs.shape}")
        return positive, negative


def _digest(tensors: Mapping[str, Tensor]) -> str:
    """A digest of tensors with their names, types and shapes."""
    state = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        state.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        state.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return state.hexdigest()


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def _save_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: dict[str, Any]) -> None:
    on_host = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    with replacing(path) as temporary:
        # `save_file` would make the file readable by its owner only, unlike every other file of a run.
        # Several metadata entries would be written in an order that differs between processes.
        content = safetensors.torch.save(on_host, metadata={_METADATA: json.dumps(metadata)})
        temporary.write_bytes(content)


def _load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            metadata = json.loads((file.metadata() or {}).get(_METADATA, "{}"))
            return tensors, metadata if isinstance(metadata, dict) else {}
    except FileNotFoundError:
        raise InputError(
            f"{path} is missing; the run did not finish (spgcl fit --resume continues it)"
        ) from None
    except (OSError, ValueError, safetensors.SafetensorError) as error:
        raise InputError(f"{path} is damaged ({error}); fit the run again with --overwrite") from None
