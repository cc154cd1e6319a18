"""Several methods on one graph from Python, as the command `compare` does it."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from spgcl.face.request import Shown, device_of, watching, with_graph
from spgcl.face.run import FittedRun
from spgcl.graph.display import aligned, rows
from spgcl.methods import SHORT_LIST
from spgcl.report.words import comparison_rows, comparison_words
from spgcl.report.write import write_comparison
from spgcl.runs.compare import Contest
from spgcl.runs.compare import compare as train_and_compare
from spgcl.runs.evaluate import Asked
from spgcl.runs.plan import Request


class Comparison(dict[str, Any]):
    """Methods side by side: `chosen`, and one record per method."""

    def __getitem__(self, name: str) -> Any:
        """An entry of the record, or the run of a method."""
        folders = {row["method"]: row["run"] for row in self.get("methods", []) if "left_out" not in row}
        return FittedRun(folders[name]) if name in folders else super().__getitem__(name)

    def __str__(self) -> str:
        columns, lines = comparison_rows(self)
        return "\n".join([*aligned([columns, *lines]), *comparison_words(self)])

    def __repr__(self) -> str:
        names = ", ".join(row["method"] for row in self["methods"])
        return f"Comparison({names}; chosen: {self.get('chosen') or 'none'})"

    def _repr_html_(self) -> str:
        columns, lines = comparison_rows(self)
        return rows(" ".join(comparison_words(self)), columns, lines)


def compare(
    graph: Any,
    features: Any = None,
    *,
    methods: Sequence[str] = SHORT_LIST,
    labels: Any = None,
    protocol: str = "tuned",
    metric: str | None = None,
    splits: Any = None,
    out: str | PathLike[str] | None = None,
    seed: int = 0,
    retrainings: int = 1,
    hold_out_edges: float = 0.0,
    device: str = "auto",
    threads: int | None = None,
    overwrite: bool = False,
    progress: Shown = None,
    settings: dict[str, Any] | None = None,
    **reading: Any,
) -> Comparison:
    """Train several methods on one graph and compare them, as `spgcl compare` does.

    With labels, validation chooses and the test part is read once. What is trained already is not trained
    again.

    Args:
        graph: As for `spgcl.fit`; so are features, labels, out, seed and so on.
        features: A path or an object, if the graph brings none.
        methods: Names.
        labels: For scores; see `FittedRun.evaluate`.
        protocol: "tuned" or "paper".
        metric: What validation chooses by.
        splits: See `FittedRun.evaluate`.
        out: Folder of the runs; `runs/GRAPH-compared` by default.
        seed: Of the first training.
        retrainings: How many trainings per method.
        hold_out_edges: Fraction of edges left out of training, for link prediction.
        device: Where to compute.
        threads: CPU threads.
        overwrite: Train again.
        progress: As for `spgcl.fit`, for every training.
        settings: Hyper-parameters by name, for every method that has it, or by "METHOD.NAME".
        reading: How the graph is read, see `spgcl.fit`.
    """
    request = Request(
        "",
        device_of(device, threads),
        out=None if out is None else Path(out),
        seed=seed,
        seeds=retrainings,
        hold_out_edges=hold_out_edges,
        resume=not overwrite,
        overwrite=overwrite,
    )
    request = with_graph(request, graph, features, labels, reading)
    contest = Contest(request, methods, settings or {}, Asked(protocol, metric=metric, splits=splits))
    record = train_and_compare(contest, watching(progress))
    return Comparison({**record, "report": write_comparison(record)})
