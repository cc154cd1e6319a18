"""Small runs with pages, and a browser that opens them."""

import random
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from commands import settings
from graphs import write_csv

from spgcl.cli import run
from spgcl.graph import Graph
from spgcl.io import write_embeddings
from spgcl.methods import resolved_settings
from spgcl.report.material import Material
from spgcl.runs.fit import describe_source
from spgcl.runs.record import Run, write_run

QUICK = ["--threads", "1", "--method", "spgcl", *settings(hidden=8, seeds=16, pool_size=64, hops=1)]
SIZE = 60
CLASSES = ("red", "green", "blue")
# Ids and labels that a page must show and never obey.
HOSTILE_IDS = (
    "<script>window.hacked = 1</script>",
    '<img src="x" onerror="window.hacked = 1">',
    "</script><script>window.hacked = 1</script>",
    "\"><b>bold</b> ' onmouseover='window.hacked = 1",
    '<a href="javascript:window.hacked = 1">link</a>',
    "%{x} ${window.hacked = 1} {{DATA}} \\u003cb>",
    "&lt;b&gt; &amp; --> <!-- ]]>",
    "emoji 👩‍👩‍👧 \u2028 ü \u202e txet",
    "long " + "a" * 10_000,
)
HOSTILE_CLASSES = ("<b>one</b>", '"two" <script>window.hacked = 1</script>', "three " + "x" * 10_000)


@dataclass(frozen=True)
class Files:
    """A graph of people in files."""

    folder: Path
    ids: list[str]

    @property
    def graph(self) -> list[str]:
        return [str(self.folder / "edges.csv"), "--features", str(self.folder / "features.csv")]

    @property
    def labels(self) -> list[str]:
        return ["--labels", str(self.folder / "labels.csv")]

    @property
    def nodes(self) -> list[str]:
        return ["--nodes", str(self.folder / "nodes.csv")]


def make_files(folder: Path, ids: list[str], classes: tuple[str, ...], name: str) -> Files:
    draw = random.Random(0)
    folder.mkdir(exist_ok=True)
    pairs = sorted({tuple(sorted(draw.sample(range(len(ids)), 2))) for _ in range(4 * len(ids))})
    write_csv(folder / "edges.csv", "from,to", [[ids[a], ids[b]] for a, b in pairs])
    features = [
        [node, *[draw.gauss(2 * (index % 3 == column), 1) for column in range(3)]]
        for index, node in enumerate(ids)
    ]
    write_csv(folder / "features.csv", "id,a,b,c", features)
    labels = [[node, classes[index % 3]] for index, node in enumerate(ids)]
    write_csv(folder / "labels.csv", "id,class", labels)
    # One node has no row and one an empty cell: both are unknown to the map.
    rows = [[node, 10 * index, classes[index % 2]] for index, node in enumerate(ids)][:-1]
    rows[0][1] = ""
    write_csv(folder / "nodes.csv", f"id,age,{name}", rows)
    return Files(folder, ids)


@pytest.fixture(scope="session")
def people(tmp_path_factory) -> Files:
    ids = [f"p{number}" for number in range(SIZE)]
    return make_files(tmp_path_factory.mktemp("people"), ids, CLASSES, "town")


@pytest.fixture(scope="session")
def hostile(tmp_path_factory) -> Files:
    ids = [*HOSTILE_IDS, *[f"n{number}" for number in range(SIZE - len(HOSTILE_IDS))]]
    folder = tmp_path_factory.mktemp("hostile") / "<i>h"
    return make_files(folder, ids, HOSTILE_CLASSES, "</script><i>town</i>")


def succeed(*arguments: object) -> None:
    assert run([*map(str, arguments)]) == 0


def make_run(files: Files, *, report: bool = True) -> Path:
    out = files.folder / "run"
    succeed("fit", *files.graph, *files.labels, "--steps", 6, "--observe", 2, "--out", out, *QUICK)
    # The quicker of the two probes: rows of the page are then scored by it, too.
    succeed("eval", out, "--protocol", "tuned", "--threads", 1)
    if report:
        succeed("report", out, *files.nodes, "--projection", "pca", "--threads", 1)
    return out


@pytest.fixture(scope="session")
def fitted(people) -> Path:
    """A run on people with a page; tests read it and change nothing."""
    return make_run(people)


@pytest.fixture(scope="session")
def hostile_run(hostile) -> Path:
    return make_run(hostile)


@pytest.fixture
def make_material(tmp_path):
    """Material from arrays: a random graph, vectors around one centre per class, nothing evaluated."""

    def make(num_nodes=40, *, width=6, num_classes=3, degree=3, labelled=True, directed=False, **more):
        generator = np.random.default_rng(0)
        labels = np.arange(num_nodes) % num_classes
        centres = generator.standard_normal((num_classes, width))
        vectors = (centres[labels] + generator.standard_normal((num_nodes, width))).astype(np.float32)
        ends = generator.integers(0, num_nodes, (2, degree * num_nodes))
        graph = Graph.from_edges(*ends, vectors, directed=directed)
        described = describe_source("toy", {}, None, graph)
        settings = {**resolved_settings("spgcl", None, "toy", {}), "hidden": 8, "steps": 2}
        record = Run("toy", "spgcl", None, settings, 0, described, "cpu", 1)
        write_run(tmp_path, record)
        write_embeddings(tmp_path, vectors, graph.node_ids, "parquet")
        given = {"labels": labels} if labelled else {}
        return Material(tmp_path, record, graph, vectors, **{**given, **more})

    return make


@pytest.fixture(scope="session")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="no Playwright: pip install '.[dev]'")
    names = ("chromium", "chromium-browser", "google-chrome")
    path = next((found for name in names if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip("no Chromium here; .ci/run installs it from Debian's packages")
    with playwright.sync_playwright() as driver:
        # Without its sandbox it also starts for root, as in containers; it only opens our own files.
        started = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def visit(browser):
    """Open a file at a width and in a colour scheme; the end of the test asks whether anything went wrong."""
    visits = []

    def open_page(path: Path, *, width: int = 1200, scheme: str = "light"):
        page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
        problems: list[str] = []
        # Drivers may warn about their speed; the page itself never writes to the console.
        page.on("console", lambda line: line.type == "error" and problems.append(f"console: {line.text}"))
        page.on("pageerror", lambda error: problems.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (problems.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: problems.append(f"request: {request.url}"))
        page.goto(path.absolute().as_uri())
        visits.append((page, path.absolute().as_uri(), problems))
        return page

    yield open_page
    for page, address, problems in visits:
        assert page.evaluate("window.hacked") is None
        page.close()
        assert [problem for problem in problems if problem != f"request: {address}"] == []
