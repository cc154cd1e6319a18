"""The rooms of the package: imports point up the list, and each room keeps to what it is for."""

import ast
import re
from pathlib import Path

import pytest

import spgcl
from spgcl.methods import METHODS

SOURCE = Path(spgcl.__file__).parent
ROOMS = [
    *("__init__", "errors", "files", "graph", "io", "datasets", "engine", "methods", "training"),
    *("evaluation", "runs", "estimator", "report", "cli", "__main__"),
]
# `Graph.of` reads anything by the readers below it, when it is called.
LAZY = {("graph", "io")}
# Names of methods that are words or layers as well.
WORDS = {"gcn", "mlp", "raw", "smoothed", "untrained", "spectral"}
MODULES = sorted(SOURCE.rglob("*.py"))


def room_of(path):
    part = path.relative_to(SOURCE).parts[0]
    return part.removesuffix(".py")


def imported(path):
    """Every module that a file imports, wherever in the file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_the_rooms_are_those_listed():
    found = {path.name.removesuffix(".py") for path in SOURCE.iterdir()} - {"__pycache__", "py.typed"}
    assert found == set(ROOMS)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_imports_from_rooms_above_it(path):
    room = room_of(path)
    used = {name.split(".")[1] for name in imported(path) if name.startswith("spgcl.")} & set(ROOMS)
    below = {other for other in used if ROOMS.index(other) > ROOMS.index(room)}
    assert {(room, other) for other in below} <= LAZY


@pytest.mark.parametrize("room", ["errors", "files", "graph"])
def test_torch_begins_below(room):
    modules = [path for path in MODULES if room_of(path) == room]
    assert modules
    assert [path for path in modules if any(name.split(".")[0] == "torch" for name in imported(path))] == []


def test_commands_do_not_import_commands():
    commands = {"datasets", "embed", "evaluate", "fit", "inspect", "methods", "report", "similar"}
    for path in MODULES:
        if room_of(path) == "cli" and path.stem in commands:
            assert not {name for name in imported(path) if name.removeprefix("spgcl.cli.") in commands}


def test_the_engine_names_no_paper():
    papers = re.compile(rf"\b({'|'.join(set(METHODS) - WORDS)}|SP-GCL)\b", re.IGNORECASE)
    for path in MODULES:
        if room_of(path) == "engine":
            text = path.read_text(encoding="utf-8").replace("spgcl.", "")
            assert not papers.findall(text), path


def test_no_function_is_longer_than_sixty_lines():
    long = [
        f"{path.relative_to(SOURCE)}:{node.name}"
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef) and node.end_lineno - node.lineno >= 60
    ]
    assert long == []
