"""Every command and every piece of Python in README.md and docs/ is run, in order, in an empty folder.

A document that names a benchmark in them needs its files. In a block whose fence says `quick`,
trainings are cut short, and of the benchmarks only Cora, the smallest, is evaluated.
"""

import os
import re
import shlex
import subprocess
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

import pytest
from graphs import write_csv

import spgcl
from spgcl.cli import run
from spgcl.datasets.entries import entries
from spgcl.errors import Note
from spgcl.methods import find, parameters
from spgcl.runs.options import DEFAULT_METHOD

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(?P<language>\w+)(?P<info>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
BENCHMARKS = re.compile(rf"(?<![\w-])({'|'.join(map(re.escape, entries()))})(?![\w-])")


@dataclass(frozen=True)
class Block:
    language: str
    text: str
    place: str
    quick: bool = False


def blocks_of(path: Path) -> list[Block]:
    content = path.read_text(encoding="utf-8")
    return [
        Block(
            match["language"],
            match["text"],
            f"{path.relative_to(ROOT)}:{content.count(chr(10), 0, match.start()) + 1}",
            "quick" in match["info"],
        )
        for match in FENCE.finditer(content)
        if match["language"] in ("bash", "console", "python")
    ]


RUNNABLE = {path: blocks for path in DOCUMENTS if path.exists() and (blocks := blocks_of(path))}


def test_blocks_are_found_in_the_guide():
    languages = {block.language for block in RUNNABLE[ROOT / "docs" / "guide.md"]}
    assert {"bash", "python"} <= languages


@pytest.mark.parametrize("path", RUNNABLE, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_blocks_of_a_document_run(path, tmp_path, monkeypatch, use_threads):
    use_threads(1)
    blocks = RUNNABLE[path]
    named = {name for block in blocks for name in BENCHMARKS.findall(block.text)}
    data = os.environ.get("SPGCL_DATA")
    absent = [name for name in sorted(named) if not data or not (Path(data) / name).is_dir()]
    if absent:
        pytest.skip(f"SPGCL_DATA names no folder with the files of {', '.join(absent)}")
    monkeypatch.chdir(tmp_path)
    if path.name == "README.md":
        write_own_graph()
    namespace: dict[str, object] = {}
    for block in blocks:
        if block.quick:
            run_quickly(block)
        elif block.language == "python":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", Note)
                exec(compile(block.text, block.place, "exec"), namespace)
        else:
            run_shell(block)


def write_own_graph() -> None:
    """The reader's own files, which README.md takes as given."""
    graph = spgcl.load("csbm-homophilic")
    edges = zip(*graph.graph.adjacency.nonzero(), strict=True)
    write_csv("edges.csv", "source,target", [(source, target) for source, target in edges if source < target])
    features = graph.graph.features
    rows = features.toarray() if hasattr(features, "toarray") else features
    header = ",".join(["node", *(f"f{number}" for number in range(rows.shape[1]))])
    lines = [(node, *(f"{value:.4g}" for value in row)) for node, row in enumerate(rows)]
    write_csv("features.csv", header, lines)
    write_csv("labels.csv", "node,label", enumerate(graph.labels))


# What cuts a training short, for methods that have it: steps, and the walks that those are spread over.
SHORT = {"steps": "1", "walks": "1", "walk_length": "12"}


def run_quickly(block: Block) -> None:
    """Run the commands of a block, shortened: one that trains, then what is done with its run."""
    made = ""
    for line in block.text.splitlines():
        words = shlex.split(line)[1:]
        if words[0] == "fit":
            method = words[words.index("--method") + 1] if "--method" in words else DEFAULT_METHOD
            made = words[words.index("--out") + 1] if "--out" in words else f"runs/{words[1]}-{method}-0"
            known = parameters(find(method))
            short = [word for name in SHORT if name in known for word in ("--set", f"{name}={SHORT[name]}")]
            assert run([*words, *short]) == 0, f"{block.place}: {line}"
        else:
            assert words[1] == made, f"{block.place}: {line} is not about {made}"
            if made.startswith(("runs/cora", "runs/mine")) and "tuned" not in words:
                assert run(words) == 0, f"{block.place}: {line}"


def run_shell(block: Block) -> None:
    lines = block.text.splitlines()
    if block.language == "console":
        lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    script = "\n".join(lines)
    plain = [line for line in lines if line.strip() and not line.lstrip().startswith("#")]
    # Bare commands need no shell, and in this process torch is loaded already.
    if all(re.fullmatch(r"spgcl [\w ./=:,+-]+(#.*)?", line) for line in plain):
        for line in plain:
            assert run(shlex.split(line, comments=True)[1:]) == 0, f"{block.place}: {line}"
        return
    folder = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
    command = ["bash", "-euo", "pipefail", "-c", script]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{block.place}: exit code {done.returncode}\n{done.stdout}{done.stderr}"


def test_a_block_that_fails_is_reported_with_its_place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AssertionError, match=r"guide\.md:3: exit code 1"):
        run_shell(Block("bash", "false | true\n", "guide.md:3"))
    with pytest.raises(AssertionError, match=r"guide\.md:9: spgcl similar absent 1"):
        run_shell(Block("console", "$ spgcl similar absent 1\nno node\n", "guide.md:9"))
