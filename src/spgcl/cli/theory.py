"""`spgcl theory`: the paper's theorems as numbers on a graph."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spgcl.cli.options import GraphArgument, JsonOption, LabelsOption, takes_options
from spgcl.cli.output import note, print_json, print_table
from spgcl.errors import InputError
from spgcl.runs.options import GraphOptions

if TYPE_CHECKING:
    from spgcl.runs.sources import Loaded
    from spgcl.theory.deviations import Level

app = typer.Typer(help="The paper's theorems as numbers on a graph.", no_args_is_help=True)

DEFAULT = "csbm-heterophilic"
Rows = list[list[Any]]

DeltaOption = Annotated[float, typer.Option("--delta", help="Probability with which a bound may fail.")]
DimensionsOption = Annotated[
    int, typer.Option("--dimensions", min=1, help="Columns of the representations, K in the paper.")
]


@dataclass(frozen=True)
class Shown:
    """What every theorem takes besides the graph."""

    plot: Annotated[
        Path | None, typer.Option("--plot", help="Also draw the numbers, into an .svg or .png file.")
    ] = None
    json: JsonOption = False


@dataclass(frozen=True)
class Random:
    """The random weights of the layer that theorems are about."""

    seed: Annotated[int, typer.Option("--seed", help="Decides the random weights.")] = 0


@dataclass(frozen=True)
class Selecting(Random):
    """The transformed graph."""

    positives: Annotated[
        int, typer.Option("--positives", min=1, help="How many nodes each node selects, K_pos in the paper.")
    ] = 5


@app.command("concentration")
@takes_options
def show_concentration(
    graph: GraphArgument = DEFAULT,
    *,
    options: GraphOptions,
    labels: LabelsOption = None,
    delta: DeltaOption = 0.05,
    layer: Random,
    shown: Shown,
) -> None:
    """Theorem 1: deviations from expectations against their bounds, as degrees grow."""
    from spgcl.theory.concentration import concentration

    loaded = _labelled(graph, options, labels, shown)
    found = concentration(loaded.graph, loaded.labels, delta=delta, **asdict(layer))
    if _is_passed_on("concentration", loaded, found, shown):
        return
    columns = ["degree", "nodes", "deviation", "bound", "within", "product", "bound", "within"]
    columns += ["as printed", "within"]
    print_table(
        f"Theorem 1, nodes drawn with the classes of {loaded.name}", columns, _level_rows(found.drawn)
    )
    print_table(f"Theorem 1, the nodes of {loaded.name}", columns, _level_rows(found.graph))
    rows: Rows = [
        ["R, the longest feature vector", found.radius],
        ["expectations of one class, least and largest degree apart", found.between_degrees],
        ["expectations of two classes, at least apart", found.between_classes],
        ["mean of a class of the graph, off its expectation", found.class_offset],
    ]
    _print_found("expectations", rows, found.verdict)


@app.command("factorisation")
@takes_options
def show_factorisation(
    graph: GraphArgument = DEFAULT,
    *,
    options: GraphOptions,
    dimensions: DimensionsOption = 8,
    layer: Selecting,
    shown: Shown,
) -> None:
    """Lemmas 1 and 2: the contrastive loss as a matrix factorisation, and its minimiser."""
    from spgcl.theory.factorisation import factorisation

    loaded = _resolved(graph, options, None, shown)
    found = factorisation(loaded.graph, dimensions=dimensions, **asdict(layer))
    if _is_passed_on("factorisation", loaded, found, shown):
        return
    print_table(
        f"Lemma 1 on {loaded.name}: losses that should be equal, relative difference",
        ["representations", "as printed", "predicted", "by degree", "averaged"],
        [
            [name, values.printed, values.predicted, values.by_degree, values.averaged]
            for name, values in (("random", found.random), ("minimiser", found.minimiser))
        ],
    )
    rows: Rows = [
        ["steps of descent", found.descent.steps],
        ["loss above the least, relative", found.descent.excess],
        ["angle to the leading eigenvectors, degrees", found.descent.angle],
        ["angle to those of the undirected graph, degrees", found.descent.printed_angle],
        ["eigengap", found.descent.eigengap],
    ]
    _print_found(f"minimiser in {dimensions} dimensions", rows, found.verdict)


@app.command("similarity")
@takes_options
def show_similarity(
    graph: GraphArgument = DEFAULT,
    *,
    options: GraphOptions,
    labels: LabelsOption = None,
    dimensions: DimensionsOption = 32,
    layer: Selecting,
    shown: Shown,
) -> None:
    """Theorem 2: inner products within and between classes against 1 - phi."""
    from spgcl.theory.similarity import similarity

    loaded = _labelled(graph, options, labels, shown)
    found = similarity(loaded.graph, loaded.labels, dimensions=dimensions, **asdict(layer))
    if _is_passed_on("similarity", loaded, found, shown):
        return
    print_table(
        f"Theorem 2 on {loaded.name}: inner products of the minimiser",
        ["pairs", "same class", "other", "gap", "difference of sums"],
        [
            [name, pairs.same, pairs.other, pairs.gap, pairs.difference]
            for name, pairs in found.by_drawing.items()
        ],
    )
    rows: Rows = [
        ["1 - phi", 1 - found.phi],
        ["phi as printed, over all pairs", found.phi_printed],
        ["loss left, relative to Z = 0", found.loss_fraction],
    ]
    _print_found("transformed graph", rows, found.verdict)


@app.command("bound")
@takes_options
def show_bound(
    graph: GraphArgument = DEFAULT,
    *,
    options: GraphOptions,
    labels: LabelsOption = None,
    dimensions: DimensionsOption = 32,
    delta: DeltaOption = 0.05,
    layer: Selecting,
    shown: Shown,
) -> None:
    """Theorem 3: the bound on the error of a linear classifier, and the error."""
    from spgcl.theory.bound import bound

    loaded = _labelled(graph, options, labels, shown)
    found = bound(loaded.graph, loaded.labels, dimensions=dimensions, delta=delta, **asdict(layer))
    if _is_passed_on("bound", loaded, found, shown):
        return
    rows: Rows = [
        ["phi", found.phi],
        ["lambda_K+1", found.eigenvalue],
        ["parts of the transformed graph", found.components],
        ["C_degree", found.c_degree],
        ["sum of squared weight norms", found.weight_norms],
        ["R", found.radius],
        ["c", found.slope],
        ["tau", found.tau],
        *([name, value] for name, value in found.compared.items()),
        ["nodes in a wrong class", found.misclassified],
        ["norm of the classifier", found.classifier_norm],
        ["its bound 1 / (1 - lambda_K)", found.norm_bound],
    ]
    _print_found(f"Theorem 3 on {loaded.name}, {dimensions} dimensions", rows, found.verdict)


def _resolved(graph: str, options: GraphOptions, labels: Path | None, shown: Shown) -> "Loaded":
    from spgcl.runs.sources import resolve

    if shown.plot:
        from spgcl.experiments.theorems import require_drawable

        require_drawable(shown.plot)
    loaded = resolve(graph, options, labels)
    for remark in loaded.graph.notes:
        note(remark)
    return loaded


def _labelled(graph: str, options: GraphOptions, labels: Path | None, shown: Shown) -> "Loaded":
    loaded = _resolved(graph, options, labels, shown)
    if loaded.labels is None:
        raise InputError(f"{graph} has no labels, which this theorem is about; give them by --labels FILE")
    return loaded


def _is_passed_on(theorem: str, loaded: "Loaded", found: Any, shown: Shown) -> bool:
    """Draw the plot if there is to be one, and print JSON if that is asked for; whether it was."""
    if shown.plot:
        from spgcl.experiments.theorems import draw

        draw(found, shown.plot, loaded.name)
    if shown.json:
        print_json({"theorem": theorem, "name": loaded.name, **found.as_record()})
    return shown.json


def _print_found(title: str, rows: Rows, verdict: list[str]) -> None:
    print_table(title, ["quantity", "value"], rows)
    print(*verdict, sep="\n")


def _level_rows(levels: Sequence["Level"]) -> Rows:
    return [
        [
            *(level.degree, level.nodes, level.deviation, level.bound, level.within),
            *(level.product_deviation, level.product_bound, level.product_within),
            *(level.printed_bound, level.printed_within),
        ]
        for level in levels
    ]
