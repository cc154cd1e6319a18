"""Training from Python, as the command `fit` does it."""

from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal, overload

from spgcl.face.request import Shown, device_of, watching, with_graph
from spgcl.face.run import FittedRun, Retrainings, open_run
from spgcl.io.embeddings import Format
from spgcl.runs.kept import READING, keep
from spgcl.runs.options import DEFAULT_METHOD
from spgcl.runs.plan import Request, Watch, carry_out, plan


@overload
def fit(graph: Any, features: Any = None, *, retrainings: Literal[1] = 1, **options: Any) -> FittedRun: ...
@overload
def fit(graph: Any, features: Any = None, *, retrainings: int, **options: Any) -> FittedRun | Retrainings: ...
def fit(
    graph: Any,
    features: Any = None,
    *,
    out: str | PathLike[str] | None = None,
    method: str = DEFAULT_METHOD,
    preset: str | None = None,
    labels: Any = None,
    seed: int = 0,
    retrainings: int = 1,
    hold_out_edges: float = 0.0,
    format: Format = "parquet",
    observe: int = 0,
    checkpoint_every: float = 60.0,
    device: str = "auto",
    threads: int | None = None,
    precision: str = "auto",
    deterministic: bool = False,
    resume: bool = False,
    overwrite: bool = False,
    progress: Shown = None,
    **settings: Any,
) -> FittedRun | Retrainings:
    """Train on a graph and write the run, as `spgcl fit` does; returns what `spgcl.open` opens.

    Args:
        graph: A data set's name, a path, or anything `Graph.of` reads, which is then kept in the run.
        features: A path or an object, if the graph brings none.
        out: Folder of the run; `runs/GRAPH-METHOD-SEED` by default.
        method: One of `spgcl.METHODS`.
        preset: Settings of a benchmark graph.
        labels: See `FittedRun.evaluate`; kept in the run. Only supervised methods are trained on them.
        seed: Decides every draw.
        retrainings: Several are a sequence of runs, with seeds `seed`, `seed` + 1 and so on.
        hold_out_edges: Fraction of edges left out of training, for link prediction.
        format: "parquet", "npy" or "csv".
        observe: Record health curves every so many steps.
        checkpoint_every: Seconds between checkpoints.
        device: "auto", "cpu", "cuda" or "mps".
        threads: CPU threads.
        precision: Of matrix products on CUDA.
        deterministic: The same bytes on CUDA too.
        resume: Continue a run that was stopped; a finished one is returned.
        overwrite: Replace an earlier run.
        progress: A function of finished steps and loss; False for none (default: as the command shows it).
        settings: Hyper-parameters of the method, and graph options of the command, such as `structural`.
    """
    path = None if out is None else Path(out)
    request = Request("", device_of(device, threads), out=path, resume=resume, overwrite=overwrite)
    request = replace(request, method=method, preset=preset, seed=seed, seeds=retrainings)
    request = replace(request, hold_out_edges=hold_out_edges, embedding_format=format)
    request = replace(request, precision=precision, deterministic=deterministic)
    controls = {"observe_every": observe, "save_every": checkpoint_every}
    return _carried_out(request, (graph, features, labels), settings, watching(progress), **controls)


def _carried_out(
    request: Request,
    given: tuple[Any, Any, Any],
    settings: dict[str, Any],
    watch: Watch,
    **controls: Any,
) -> FittedRun | Retrainings:
    reading = {name: settings.pop(name) for name in READING & settings.keys()}
    planned = plan(with_graph(replace(request, settings=settings), *given, reading))
    for folder, _ in carry_out(planned, watch=watch, **controls):
        keep(folder, planned.loaded)
    found: FittedRun | Retrainings = open_run(planned.folder)
    return found
