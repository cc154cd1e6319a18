"""The rooms of the package: imports point up the list, and each room keeps to what it is for."""

import ast
import re
from pathlib import Path

import spgcl
from spgcl.methods import METHODS

SOURCE = Path(spgcl.__file__).parent
ROOMS = [
    *("__init__", "errors", "files", "graph", "io", "datasets", "engine", "methods"),
    *("training", "evaluation", "theory", "scale", "runs", "report", "experiments", "face"),
    *("cli", "__main__"),
]
TREES = {
    path.relative_to(SOURCE).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
    for path in sorted(SOURCE.rglob("*.py"))
}
# `Graph.of` reads anything by the readers below it, when it is called.
LAZY = {("graph", "io")}
# Tensors of other programs, saved or in memory, become arrays here; torch is loaded when they are met.
READERS_OF_TENSORS = {"io/saved.py", "io/objects.py"}
# Names of methods that are words or layers as well, and that of the program.
WORDS = {"gcn", "mlp", "raw", "smoothed", "untrained", "spectral", "auto", "spgcl"}
# An example of a misspelt name, the source of published settings and splits, and the papers' results.
NAMING_PAPERS = {"errors.py", "datasets/entries.toml", "report/paper.toml"}
LABELS = {"label", "labels", "y", "classes"}


def rooms(*names):
    return {path: tree for path, tree in TREES.items() if room_of(path) in names}


def room_of(path):
    return path.split("/")[0].removesuffix(".py")


def imported(tree):
    """Every module that a file imports, wherever in the file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def imports(tree, *packages):
    return any(f"{name}.".startswith(f"{package}.") for name in imported(tree) for package in packages)


def file_of(module):
    return "/".join(module.split(".")[1:]) + ".py"


def test_the_rooms_are_those_listed():
    found = {path.name.removesuffix(".py") for path in SOURCE.iterdir()} - {"__pycache__", "py.typed"}
    assert found == set(ROOMS)


def test_imports_point_up():
    for path, tree in TREES.items():
        used = {name.split(".")[1] for name in imported(tree) if name.startswith("spgcl.")} & set(ROOMS)
        room = room_of(path)
        below = {(room, other) for other in used if ROOMS.index(other) > ROOMS.index(room)}
        assert below <= LAZY, path


def test_torch_begins_at_engine():
    above = rooms(*ROOMS[: ROOMS.index("engine")])
    assert {path for path, tree in above.items() if imports(tree, "torch", "torch_geometric")} == (
        READERS_OF_TENSORS
    )


def asks_for_devices(node):
    """`x.is_cuda`, `device.type`, `x.device.type`, `torch.cuda`, `torch.backends`; not `x.device` alone."""
    if not isinstance(node, ast.Attribute):
        return False
    owner = getattr(node.value, "attr", getattr(node.value, "id", None))
    return node.attr in ("is_cuda", "is_cpu", "is_mps") or (owner, node.attr) in (
        ("device", "type"),
        ("torch", "cuda"),
        ("torch", "backends"),
    )


def test_only_engine_asks_for_devices():
    others = {path: tree for path, tree in TREES.items() if room_of(path) != "engine"}
    assert [path for path, tree in others.items() if any(map(asks_for_devices, ast.walk(tree)))] == []


def test_papers_are_named_only_in_methods():
    papers = re.compile(rf"\b({'|'.join(METHODS.keys() - WORDS)}|SP-GCL)\b", re.IGNORECASE)
    files = (path for end in ("py", "toml", "js", "cu") for path in SOURCE.rglob(f"*.{end}"))
    naming = {path.relative_to(SOURCE).as_posix() for path in files if papers.search(path.read_text("utf-8"))}
    # The plans of experiments, and the paper's figures beside them, are data about methods.
    plans = {path for path in naming if room_of(path) == "experiments" and path.endswith(".toml")}
    assert {path for path in naming if room_of(path) != "methods"} - plans == NAMING_PAPERS


def test_modules_of_papers_are_imported_by_the_table_of_methods_only():
    papers = {method.__module__ for method in METHODS.values()}
    # A step of one paper in a file of its own names the class it belongs to.
    allowed = {"methods/__init__.py", "methods/parts/captured_step.py"}
    others = {path: tree for path, tree in TREES.items() if path not in allowed}
    assert not [path for path, tree in others.items() if papers & set(imported(tree))]


def named(tree):
    """Names of arguments, attributes and fields."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.AnnAssign):
            yield getattr(node.target, "id", None)


def test_labels_are_met_only_where_they_may_be():
    """Nothing takes or holds them from the graph to the loop, and self-supervised methods read none.

    Supervised methods meet them as a `Supervision`, of which training reads the shape of the task only. The
    rooms below may: `evaluation` scores by labels, and `theory` compares nodes of one class with others.
    """
    supervised = {file_of(method.__module__) for method in METHODS.values() if method.supervised}
    supervised.add("methods/supervised.py")
    blind = {
        path: tree for path, tree in rooms("graph", "engine", "methods").items() if path not in supervised
    }
    training = rooms("training")
    for path, tree in {**blind, **training}.items():
        assert not LABELS & set(named(tree)), path
    for path, tree in blind.items():
        loaded = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        assert "supervision" not in loaded, path
    read = {
        node.attr
        for tree in training.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and getattr(node.value, "id", None) == "supervision"
    }
    assert read == {"task"}


def test_commands_parse_and_print():
    """They import no commands; one module starts torch on a device; only `watching` touches training."""
    commands = rooms("cli")
    names = {Path(path).stem for path in commands} - {"__init__", "options", "output", "watching"}
    for path, tree in commands.items():
        if Path(path).stem in names:
            assert not imports(tree, *(f"spgcl.cli.{name}" for name in names)), path
    below = {
        (Path(path).stem, package)
        for path, tree in commands.items()
        for package in ("torch", "spgcl.engine", "spgcl.methods", "spgcl.training")
        if imports(tree, package)
    }
    # `methods` prints the table of methods, `options` completes their names in a shell; `watching` hands
    # progress and Ctrl-C to the loop as `Controls`.
    assert below <= {
        ("options", "torch"),
        ("options", "spgcl.engine"),
        ("options", "spgcl.methods"),
        ("methods", "spgcl.methods"),
        ("watching", "spgcl.training"),
    }


def test_no_function_is_longer_than_sixty_lines():
    long = [
        f"{path}:{node.name}"
        for path, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.end_lineno - node.lineno >= 60
    ]
    assert long == []
