"""Scores without training, by the same probe: the baselines that training has to beat."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from spgcl.errors import InputError
from spgcl.evaluation import majority_class, probe, tuned_probe
from spgcl.evaluation.checks import task_digest
from spgcl.evaluation.scores import Scores
from spgcl.files import replacing
from spgcl.io.records import read_record
from spgcl.methods import find, parameters
from spgcl.runs.record import Run, deriving, to_json
from spgcl.runs.schema import Baselines
from spgcl.runs.sources import Loaded
from spgcl.scale.store import Store
from spgcl.training.fitting import fit

WITHOUT_TRAINING = {
    "raw": "raw features, no training",
    "smoothed": "smoothed features, no training",
    "untrained": "encoder before training",
}


def baselines(
    folder: Path,
    run: Run,
    loaded: Loaded,
    protocol: str,
    *,
    names: Sequence[str] = tuple(WITHOUT_TRAINING),
    device: str | torch.device = "cpu",
    say: Callable[[str], None] | None = None,
) -> dict[str, dict[str, Any]]:
    """Scores of each baseline, or why it is left out; computed once per task and kept in the run."""
    assert loaded.labels is not None and loaded.splits is not None
    # Supervised runs predict classes themselves: beside them stands the paper's probe.
    protocol = protocol if protocol == "tuned" else "paper"
    task = task_digest(loaded.graph, loaded.labels, loaded.splits)
    key = {"protocol": protocol, "metric": loaded.metric, "task": task}
    path = folder / "baselines.json"
    rows = _kept(path, key)
    absent = [name for name in names if name != run.method and name not in rows]
    for name in absent:
        if say:
            say(f"scoring {name}")
        try:
            rows[name] = _score(name, run, loaded, protocol, device)
        except InputError as error:
            rows[name] = {"left_out": str(error)}
    if absent:
        # A folder that cannot be written only costs the time to compute them again.
        with suppress(InputError), deriving(folder, run), replacing(path) as temporary:
            temporary.write_text(to_json({**key, "rows": rows}), encoding="utf-8")
    return {name: rows[name] for name in names if name in rows}


def _kept(path: Path, key: dict[str, str]) -> dict[str, dict[str, Any]]:
    """Rows computed before for the same task."""
    try:
        record = read_record(path, Baselines, "remove it; it is computed again")
    except FileNotFoundError:
        # Not `exists` before: a command that replaces the run may remove it in between.
        return {}
    return dict(record["rows"]) if {name: record.get(name) for name in key} == key else {}


def _score(name: str, run: Run, loaded: Loaded, protocol: str, device: str | torch.device) -> dict[str, Any]:
    # The encoder has the settings of the run, as far as the run has them.
    own = {key: value for key, value in run.settings.items() if key in parameters(find(name))}
    settings = own if name == "untrained" else {}
    fitted = fit(name, loaded.graph, settings=settings, seed=run.seed, device=torch.device(device))
    vectors = fitted.embed()
    score = tuned_probe if protocol == "tuned" else probe
    assert loaded.splits is not None
    scores: Scores = score(vectors, loaded.labels, loaded.splits, metric=loaded.metric, device=device)
    return scores.as_record()


def beside(
    folder: Path, run: Run, loaded: Loaded, protocol: str, device: str | torch.device
) -> dict[str, dict[str, Any]]:
    """What stands beside every score: the majority class, raw and smoothed features."""
    assert loaded.labels is not None and loaded.splits is not None
    majority = majority_class(loaded.labels, loaded.splits, metric=loaded.metric)
    rows = {"majority": majority.as_record()}
    # Features of a graph on disk do not fit into memory.
    names = () if isinstance(loaded.graph, Store) else ("raw", "smoothed")
    rows |= baselines(folder, run, loaded, protocol, names=names, device=device)
    kept = ("mean", "std", "std_over", "left_out")
    return {name: {key: row[key] for key in kept if key in row} for name, row in rows.items()}
