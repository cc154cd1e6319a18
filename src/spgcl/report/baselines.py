"""Scores without training, by the same probe: the baselines that training has to beat."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import torch

from spgcl.errors import InputError
from spgcl.evaluation.checks import task_digest
from spgcl.evaluation.linear_probe import probe
from spgcl.evaluation.tuned import tuned_probe
from spgcl.files import replacing
from spgcl.io.records import read_record
from spgcl.methods import find, parameters
from spgcl.report.material import Material
from spgcl.runs.record import deriving, to_json
from spgcl.runs.schema import Baselines
from spgcl.training.fitting import fit

WITHOUT_TRAINING = {
    "raw": "raw features, no training",
    "smoothed": "smoothed features, no training",
    "untrained": "encoder before training",
}


def baselines(material: Material, say: Callable[[str], None]) -> dict[str, dict[str, Any]]:
    """Scores of each baseline, or why it is left out; computed once and kept in the run."""
    protocol = (material.evaluation or {}).get("protocol", "paper")
    assert material.labels is not None and material.splits is not None
    task = task_digest(material.graph, material.labels, material.splits)
    key = {"protocol": protocol if protocol == "tuned" else "paper", "task": task}
    path = material.folder / "baselines.json"
    if path.exists():
        record = read_record(path, Baselines, "remove it; it is computed again")
        if {name: record.get(name) for name in key} == key:
            return {name: record["rows"][name] for name in WITHOUT_TRAINING if name in record["rows"]}
    rows = {}
    for name in WITHOUT_TRAINING:
        if name == material.run.method:
            continue
        say(f"scoring {name}")
        try:
            rows[name] = _score(name, material, key["protocol"])
        except InputError as error:
            rows[name] = {"left_out": str(error)}
    # A page can also be made of a run in a read-only folder.
    with suppress(InputError), deriving(material.folder, material.run), replacing(path) as temporary:
        temporary.write_text(to_json({**key, "rows": rows}), encoding="utf-8")
    return rows


def _score(name: str, material: Material, protocol: str) -> dict[str, Any]:
    graph, run = material.graph, material.run
    # The encoder has the settings of the run, as far as the run has them.
    own = {key: value for key, value in run.settings.items() if key in parameters(find(name))}
    settings = own if name == "untrained" else {}
    fitted = fit(name, graph, settings=settings, seed=run.seed, device=torch.device(material.device))
    vectors = fitted.embed()
    score = tuned_probe if protocol == "tuned" else probe
    assert material.splits is not None
    return score(
        vectors, material.labels, material.splits, metric=material.metric, device=material.device
    ).as_record()
