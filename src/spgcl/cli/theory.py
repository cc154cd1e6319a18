"""`spgcl theory`: the paper's theorems as numbers on a graph."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spgcl.cli.options import GraphArgument, JsonOption, LabelsOption, takes_options
from spgcl.cli.output import note, print_json, print_table
from spgcl.errors import InputError
from spgcl.runs.options import GraphOptions

if TYPE_CHECKING:
    from spgcl.runs.sources import Loaded
    from spgcl.theory.concentration import Level

app = typer.Typer(help="The paper's theorems as numbers on a graph.", no_args_is_help=True)

DEFAULT = "csbm-heterophilic"

DeltaOption = Annotated[float, typer.Option("--delta", help="Probability with which a bound may fail.")]
PositivesOption = Annotated[
    int, typer.Option("--positives", min=1, help="How many nodes each node selects, K_pos in the paper.")
]
DimensionsOption = Annotated[
    int, typer.Option("--dimensions", min=1, help="Columns of the representations, K in the paper.")
]
SeedOption = Annotated[int, typer.Option("--seed", help="Decides the random weights.")]


@app.command("concentration")
@takes_options
def show_concentration(
    graph: GraphArgument = DEFAULT,
    *,
    options: GraphOptions,
    labels: LabelsOption = None,
    delta: DeltaOption = 0.05,
    seed: SeedOption = 0,
    json: JsonOption = False,
) -> None:
    """Theorem 1: deviations from expectations against their bounds, as degrees grow."""
    from spgcl.theory.concentration import concentration

    loaded = _labelled(graph, options, labels)
    found = concentration(loaded.graph, loaded.labels, delta=delta, seed=seed)
    if json:
        _print_record("concentration", loaded, found)
        return
    columns = ["degree", "nodes", "deviation", "bound", "within", "product", "bound", "within"]
    columns += ["as printed", "within"]
    print_table(
        f"Theorem 1, nodes drawn with the classes of {loaded.name}", columns, _level_rows(found.drawn)
    )
    print_table(f"Theorem 1, the nodes of {loaded.name}", columns, _level_rows(found.graph))
    rows = [
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
    positives: PositivesOption = 5,
    dimensions: DimensionsOption = 8,
    seed: SeedOption = 0,
    json: JsonOption = False,
) -> None:
    """Lemmas 1 and 2: the contrastive loss as a matrix factorisation, and its minimiser."""
    from spgcl.theory.factorisation import factorisation

    loaded = _resolved(graph, options, None)
    found = factorisation(loaded.graph, positives=positives, dimensions=dimensions, seed=seed)
    if json:
        _print_record("factorisation", loaded, found)
        return
    print_table(
        f"Lemma 1 on {loaded.name}: losses that should be equal, relative difference",
        ["representations", "as printed", "predicted", "by degree", "averaged"],
        [
            [name, values.printed, values.predicted, values.by_degree, values.averaged]
            for name, values in (("random", found.random), ("minimiser", found.minimiser))
        ],
    )
    rows: list[list[Any]] = [
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
    positives: PositivesOption = 5,
    dimensions: DimensionsOption = 32,
    seed: SeedOption = 0,
    json: JsonOption = False,
) -> None:
    """Theorem 2: inner products within and between classes against 1 - phi."""
    from spgcl.theory.similarity import similarity

    loaded = _labelled(graph, options, labels)
    found = similarity(loaded.graph, loaded.labels, positives=positives, dimensions=dimensions, seed=seed)
    if json:
        _print_record("similarity", loaded, found)
        return
    print_table(
        f"Theorem 2 on {loaded.name}: inner products of the minimiser",
        ["pairs", "same class", "other", "gap", "difference of sums"],
        [
            [name, pairs.same, pairs.other, pairs.gap, pairs.difference]
            for name, pairs in (
                ("drawn uniformly", found.uniform),
                ("drawn by degree", found.by_degree),
                ("by degree, at a loss of 0", found.exact),
            )
        ],
    )
    rows: list[list[Any]] = [
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
    positives: PositivesOption = 5,
    dimensions: DimensionsOption = 32,
    delta: DeltaOption = 0.05,
    seed: SeedOption = 0,
    json: JsonOption = False,
) -> None:
    """Theorem 3: the bound on the error of a linear classifier, and the error."""
    from spgcl.theory.bound import bound

    loaded = _labelled(graph, options, labels)
    found = bound(
        loaded.graph, loaded.labels, positives=positives, dimensions=dimensions, delta=delta, seed=seed
    )
    if json:
        _print_record("bound", loaded, found)
        return
    rows: list[list[Any]] = [
        ["phi", found.phi],
        ["lambda_K+1", found.eigenvalue],
        ["parts of the transformed graph", found.components],
        ["C_degree", found.c_degree],
        ["sum of squared weight norms", found.weight_norms],
        ["R", found.radius],
        ["c", found.slope],
        ["tau", found.tau],
        ["phi / lambda_K+1", found.spectral_bound],
        ["second term as printed", found.degree_term],
        ["bound as printed", found.bound],
        ["measured error, by degree", found.error],
        ["measured error, uniform", found.uniform_error],
        ["nodes in a wrong class", found.misclassified],
        ["norm of the classifier", found.classifier_norm],
        ["its bound 1 / (1 - lambda_K)", found.norm_bound],
    ]
    _print_found(f"Theorem 3 on {loaded.name}, {dimensions} dimensions", rows, found.verdict)


def _resolved(graph: str, options: GraphOptions, labels: Path | None) -> "Loaded":
    from spgcl.runs.sources import resolve

    loaded = resolve(graph, options, labels)
    for remark in loaded.graph.notes:
        note(remark)
    return loaded


def _labelled(graph: str, options: GraphOptions, labels: Path | None) -> "Loaded":
    loaded = _resolved(graph, options, labels)
    if loaded.labels is None:
        raise InputError(f"{graph} has no labels, which this theorem is about; give them by --labels FILE")
    return loaded


def _print_record(theorem: str, loaded: "Loaded", found: Any) -> None:
    print_json({"theorem": theorem, "name": loaded.name, **found.as_record()})


def _print_found(title: str, rows: list[list[Any]], verdict: list[str]) -> None:
    print_table(title, ["quantity", "value"], rows)
    print(*verdict, sep="\n")


def _level_rows(levels: Sequence["Level"]) -> list[list[Any]]:
    return [
        [
            *(level.degree, level.nodes, level.deviation, level.bound, level.within),
            *(level.product_deviation, level.product_bound, level.product_within),
            *(level.printed_bound, level.printed_within),
        ]
        for level in levels
    ]
