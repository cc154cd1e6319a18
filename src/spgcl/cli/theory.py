"""`spgcl theory`: the paper's theorems as numbers on a graph."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spgcl.cli.options import GraphArgument, JsonOption, LabelsOption, takes_options
from spgcl.cli.output import note, print_json, print_table
from spgcl.errors import InputError
from spgcl.runs.options import GraphOptions

if TYPE_CHECKING:
    from spgcl.runs.sources import Loaded
    from spgcl.theory.bound import Bound
    from spgcl.theory.concentration import Concentration
    from spgcl.theory.deviations import Level
    from spgcl.theory.factorisation import Factorisation
    from spgcl.theory.similarity import Similarity

app = typer.Typer(help="The paper's theorems as numbers on a graph.", no_args_is_help=True)

DEFAULT = "csbm-heterophilic"
Rows = list[list[Any]]

DeltaOption = Annotated[float, typer.Option("--delta", help="Probability with which a bound may fail.")]
DimensionsOption = Annotated[
    int, typer.Option("--dimensions", min=1, help="Columns of the representations, K in the paper.")
]


@dataclass(frozen=True)
class Asked:
    """What every theorem takes: the random weights of the layer it is about, and where its numbers go."""

    seed: Annotated[int, typer.Option("--seed", help="Decides the random weights.")] = 0
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Also draw the numbers, into an .svg or .png file.")
    ] = None
    json: JsonOption = False


@dataclass(frozen=True)
class OfDegrees(Asked):
    """What the theorem on deviations takes."""

    labels: LabelsOption = None
    delta: DeltaOption = 0.05


@dataclass(frozen=True)
class OfPairs(Asked):
    """What the lemmas on the transformed graph take."""

    positives: Annotated[
        int, typer.Option("--positives", min=1, help="How many nodes each node selects, K_pos in the paper.")
    ] = 5
    dimensions: DimensionsOption = 8


@dataclass(frozen=True)
class OfClasses(OfPairs):
    """What the theorem on classes in the transformed graph takes."""

    dimensions: DimensionsOption = 32
    labels: LabelsOption = None


@dataclass(frozen=True)
class OfErrors(OfClasses):
    """What the theorem on a classifier's error takes."""

    delta: DeltaOption = 0.05


def _add_command(
    theorem: str, takes: type[Asked], print_tables: Callable[[str, Any], None], help_: str
) -> None:
    """Make the command of a theorem: compute it on a graph, draw it and print it as asked."""

    def show(graph: GraphArgument = DEFAULT, *, options: GraphOptions, asked: Asked) -> None:
        from spgcl.experiments.theorems import draw

        settings = {name: value for name, value in asdict(asked).items() if name not in ("plot", "json")}
        loaded = _resolved(graph, options, settings.get("labels"), asked)
        if "labels" in settings:
            settings["labels"] = loaded.labels
            if loaded.labels is None:
                problem = f"{graph} has no labels, which this theorem is about"
                raise InputError(f"{problem}; give them by --labels FILE")
        found = getattr(import_module(f"spgcl.theory.{theorem}"), theorem)(loaded.graph, **settings)
        if asked.plot:
            draw(found, asked.plot, loaded.name)
        if asked.json:
            print_json({"theorem": theorem, "name": loaded.name, **found.as_record()})
        else:
            print_tables(loaded.name, found)
            print(*found.verdict, sep="\n")

    show.__annotations__["asked"] = takes
    app.command(theorem, help=help_)(takes_options(show))


def _resolved(graph: str, options: GraphOptions, labels: Path | None, asked: Asked) -> "Loaded":
    from spgcl.experiments.theorems import require_drawable
    from spgcl.runs.sources import resolve

    if asked.plot:
        require_drawable(asked.plot)
    loaded = resolve(graph, options, labels)
    for remark in loaded.remarks:
        note(remark)
    return loaded


def _print_concentration(name: str, found: "Concentration") -> None:
    columns = ["degree", "nodes", "deviation", "bound", "within", "product", "bound", "within"]
    columns += ["as printed", "within"]
    print_table(f"Theorem 1, nodes drawn with the classes of {name}", columns, _level_rows(found.drawn))
    print_table(f"Theorem 1, the nodes of {name}", columns, _level_rows(found.graph))
    rows: Rows = [
        ["R, the longest feature vector", found.radius],
        ["expectations of one class, least and largest degree apart", found.between_degrees],
        ["expectations of two classes, at least apart", found.between_classes],
        ["mean of a class of the graph, off its expectation", found.class_offset],
    ]
    _print_quantities("expectations", rows)


def _print_factorisation(name: str, found: "Factorisation") -> None:
    print_table(
        f"Lemma 1 on {name}: losses that should be equal, relative difference",
        ["representations", "as printed", "predicted", "by degree", "averaged"],
        [
            [kind, values.printed, values.predicted, values.by_degree, values.averaged]
            for kind, values in (("random", found.random), ("minimiser", found.minimiser))
        ],
    )
    rows: Rows = [
        ["steps of descent", found.descent.steps],
        ["loss above the least, relative", found.descent.excess],
        ["angle to the leading eigenvectors, degrees", found.descent.angle],
        ["angle to those of the undirected graph, degrees", found.descent.printed_angle],
        ["eigengap", found.descent.eigengap],
    ]
    _print_quantities(f"minimiser in {found.dimensions} dimensions", rows)


def _print_similarity(name: str, found: "Similarity") -> None:
    print_table(
        f"Theorem 2 on {name}: inner products of the minimiser",
        ["pairs", "same class", "other", "gap", "difference of sums"],
        [
            [kind, pairs.same, pairs.other, pairs.gap, pairs.difference]
            for kind, pairs in found.by_drawing.items()
        ],
    )
    rows: Rows = [
        ["1 - phi", 1 - found.phi],
        ["phi as printed, over all pairs", found.phi_printed],
        ["loss left, relative to Z = 0", found.loss_fraction],
    ]
    _print_quantities("transformed graph", rows)


def _print_bound(name: str, found: "Bound") -> None:
    rows: Rows = [
        ["phi", found.phi],
        ["lambda_K+1", found.eigenvalue],
        ["parts of the transformed graph", found.components],
        ["C_degree", found.c_degree],
        ["sum of squared weight norms", found.weight_norms],
        ["R", found.radius],
        ["c", found.slope],
        ["tau", found.tau],
        *([quantity, value] for quantity, value in found.compared.items()),
        ["nodes in a wrong class", found.misclassified],
        ["norm of the classifier", found.classifier_norm],
        ["its bound 1 / (1 - lambda_K)", found.norm_bound],
    ]
    _print_quantities(f"Theorem 3 on {name}, {found.dimensions} dimensions", rows)


def _print_quantities(title: str, rows: Rows) -> None:
    print_table(title, ["quantity", "value"], rows)


def _level_rows(levels: Sequence["Level"]) -> Rows:
    return [
        [
            *(level.degree, level.nodes, level.deviation, level.bound, level.within),
            *(level.product_deviation, level.product_bound, level.product_within),
            *(level.printed_bound, level.printed_within),
        ]
        for level in levels
    ]


_THEOREMS: dict[str, tuple[type[Asked], Callable[[str, Any], None], str]] = {
    "concentration": (
        OfDegrees,
        _print_concentration,
        "Theorem 1: deviations from expectations against their bounds, as degrees grow.",
    ),
    "factorisation": (
        OfPairs,
        _print_factorisation,
        "Lemmas 1 and 2: the contrastive loss as a matrix factorisation, and its minimiser.",
    ),
    "similarity": (
        OfClasses,
        _print_similarity,
        "Theorem 2: inner products within and between classes against 1 - phi.",
    ),
    "bound": (
        OfErrors,
        _print_bound,
        "Theorem 3: the bound on the error of a linear classifier, and the error.",
    ),
}
for _theorem, _row in _THEOREMS.items():
    _add_command(_theorem, *_row)
