"""`spgcl report` and `spgcl fit --report` from the command line: what is written, kept and refused."""

import json
import re
import sys

import pytest
from commands import answer, output, refusal, settings
from pyarrow import parquet

from spgcl.io import read_coordinates

QUICK = ["--threads", "1", "--method", "spgcl", "--steps", "3", *settings(hidden=8, seeds=16, pool_size=64)]


def content_of(path) -> dict:
    """The data of a page, as its script reads it."""
    found = re.search(
        r'<script type="application/json" id="data">(.*?)</script>', path.read_text(), re.DOTALL
    )
    return json.loads(found[1])


@pytest.fixture
def small(people, tmp_path, capsys):
    """A run without labels: nothing to evaluate, so that a page takes no time."""
    out = tmp_path / "small"
    answer(capsys, "fit", *people.graph, "--out", out, *QUICK)
    return out


def test_the_page_is_recorded_and_loads_nothing(small, capsys):
    record = answer(capsys, "report", small, "--projection", "pca")
    page = small / "report.html"
    assert record == {
        "report": str(page),
        "runs": [str(small)],
        "nodes": 60,
        "shown": 60,
        "projection": "pca",
        "bytes": page.stat().st_size,
    }
    markup = re.sub(r"<script>.*?</script>", "", page.read_text(), flags=re.DOTALL)
    assert not re.search(r"""(src|href)=["'](?!#|data:,)""", markup)
    assert "default-src 'none'" in markup
    assert [section["id"] for section in content_of(page)["sections"]] == [
        *("verdict", "map", "evaluation", "signal", "homophily", "training", "run")
    ]
    assert f" {page} " in output(capsys, "report", small, "--projection", "pca")[0]


def test_umap_is_computed_once_and_kept_in_the_run(small, people, tmp_path, capsys):
    pytest.importorskip("umap", reason="no UMAP: pip install '.[report]'")
    embeddings, positions = small / "embeddings.parquet", small / "map.parquet"
    fitted = embeddings.read_bytes()
    assert answer(capsys, "report", small)["projection"] == "umap"
    table = parquet.read_table(positions)
    assert table.column_names == ["node", "x", "y"] and table["node"].to_pylist() == people.ids
    assert read_coordinates(positions).projection == "umap"
    written = positions.stat().st_mtime_ns
    answer(capsys, "report", small)
    assert positions.stat().st_mtime_ns == written
    # The vectors of the run stay as they are, and its graph is embedded to the same bytes.
    answer(capsys, "embed", small, *people.graph, "--out", tmp_path / "again.parquet")
    assert embeddings.read_bytes() == fitted == (tmp_path / "again.parquet").read_bytes()
    assert answer(capsys, "report", small, "--projection", "pca")["projection"] == "pca"
    assert (read_coordinates(positions).points == read_coordinates(embeddings).points).all()


def test_a_map_that_cannot_be_kept_is_shown(small, capsys, monkeypatch):
    def fail_to_write(*_):
        raise PermissionError(13, "permission denied", str(small))

    monkeypatch.setattr("spgcl.report.projected.write_map", fail_to_write)
    assert answer(capsys, "report", small, "--projection", "pca")["shown"] == 60
    assert not (small / "map.parquet").exists()


@pytest.mark.parametrize("format_", ["parquet", "npy", "csv"])
def test_new_embeddings_drop_the_map_and_the_page(people, tmp_path, capsys, format_):
    out = tmp_path / "run"
    fit = ["fit", *people.graph, "--out", out, "--format", format_, *QUICK]
    made = {"map.parquet", "report.html"}
    answer(capsys, *fit)
    before = (out / f"embeddings.{format_}").read_bytes()
    answer(capsys, "report", out, "--projection", "pca")
    assert (out / f"embeddings.{format_}").read_bytes() == before
    assert made <= {path.name for path in out.iterdir()}
    answer(capsys, *fit, "--overwrite")
    assert not made & {path.name for path in out.iterdir()}


def test_a_run_that_was_not_evaluated_is_evaluated(people, tmp_path, capsys):
    out = tmp_path / "run"
    answer(capsys, "fit", *people.graph, *people.labels, "--out", out, "--seed", 1, *QUICK)
    answer(capsys, "report", out, "--projection", "pca", "--threads", 1)
    scores = json.loads((out / "eval.json").read_text())
    assert scores["protocol"] == "paper" and len(scores["splits"]) == 10
    content = content_of(out / "report.html")
    assert f"ccuracy {scores['mean']:.2f}" in content["sections"][0]["text"]
    rows = content["sections"][0]["items"][0]["rows"]
    assert rows[0]["text"] == f"{scores['mean']:.2f} ± {scores['std']:.2f}"
    stored = json.loads((out / "baselines.json").read_text())["rows"]
    assert [row["mean"] for row in rows[2:]] == pytest.approx(
        [row["mean"] for row in stored.values()], rel=1e-5
    )


def test_labels_too_few_to_split_are_no_reason_for_no_page(tmp_path, capsys):
    (tmp_path / "edges.csv").write_text("a,b\nb,c\nc,d\nd,a\n")
    (tmp_path / "labels.csv").write_text("a,0\nb,1\nc,0\nd,1\n")
    out = tmp_path / "run"
    graph = [tmp_path / "edges.csv", "--structural", "degree", "--labels", tmp_path / "labels.csv"]
    answer(capsys, "fit", *graph, "--out", out, "--set", "positives=1", *QUICK)
    assert f"{out} is not evaluated" in output(capsys, "report", out, "--projection", "pca")[1]
    assert content_of(out / "report.html")["map"]["views"][0]["listed"] == 3


def test_fit_makes_the_page_on_request(people, tmp_path, capsys):
    fit = ["fit", *people.graph, "--report", *QUICK]
    for name, more, title in (("one", [], "spgcl on edges"), ("two", ["--seeds", 2], "2 runs compared")):
        page = tmp_path / name / "report.html"
        assert answer(capsys, *fit, "--out", tmp_path / name, *more)["report"] == str(page)
        assert content_of(page)["title"] == title
    shown, _ = output(capsys, *fit, "--out", tmp_path / "one", "--overwrite")
    assert shown.splitlines()[-1] == f"page: {tmp_path / 'one' / 'report.html'}"


def test_a_changed_graph_is_noted(small, people, capsys):
    path = people.folder / "edges.csv"
    original = path.read_text()
    try:
        path.write_text("\n".join(original.splitlines()[:-1]) + "\n")
        assert f"{path} has changed" in output(capsys, "report", small, "--projection", "pca")[1]
    finally:
        path.write_text(original)


def test_what_cannot_be_written_or_read_is_refused_before_any_work(small, people, tmp_path, capsys):
    diary = tmp_path / "diary.html"
    diary.write_text("<html>mine</html>")
    message = refusal(capsys, "report", small, "--out", diary)
    assert str(diary) in message and "--out" in message
    assert diary.read_text() == "<html>mine</html>"
    assert "is a folder" in refusal(capsys, "report", small, "--out", tmp_path)
    assert "there is no folder" in refusal(capsys, "report", small, "--out", tmp_path / "no" / "page.html")
    assert "is not a run" in refusal(capsys, "report", tmp_path)
    assert "no such file" in refusal(capsys, "report", small, "--nodes", tmp_path / "absent.csv")
    (small / "eval.json").write_text("{")
    assert "eval.json cannot be read" in refusal(capsys, "report", small)


def test_what_is_not_installed_is_named_with_its_installation(small, people, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "umap", None)
    message = refusal(capsys, "report", small, "--projection", "umap")
    assert "UMAP" in message and "pip install 'spgcl[report]'" in message
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    message = refusal(capsys, "report", small, "--projection", "pca", "--tensorboard")
    assert "pip install 'spgcl[tensorboard]'" in message
    monkeypatch.setitem(sys.modules, "plotly", None)
    for command in (["report", small], ["fit", *people.graph, "--out", tmp_path / "not", "--report", *QUICK]):
        message = refusal(capsys, *command)
        assert "Plotly" in message and "pip install 'spgcl[report]'" in message
    assert not (tmp_path / "not").exists()
