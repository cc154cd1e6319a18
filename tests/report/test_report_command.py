"""`spgcl report` and `spgcl fit --report` from the command line: what is written, kept and refused."""

import json
import re
import subprocess
import sys

import pytest
from pyarrow import parquet

from spgcl.cli import run
from spgcl.io import read_coordinates

QUICK = ["--threads", "1", "--steps", "3", "--set", "hidden=8", "--set", "seeds=16", "--set", "pool_size=64"]


def answer(capsys, *arguments: object):
    code = run([*map(str, arguments), "--json"])
    captured = capsys.readouterr()
    assert code == 0, captured.err
    return json.loads(captured.out)


def refusal(capsys, *arguments: object) -> str:
    assert run([*map(str, arguments)]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1
    return captured.err


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
    assert run(["fit", *people.graph, "--out", str(out), *QUICK]) == 0
    capsys.readouterr()
    return out


def test_the_page_says_where_it_is_and_loads_nothing(small, capsys):
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
        *("summary", "training", "map", "homophily", "evaluation")
    ]
    assert run(["report", str(small), "--projection", "pca"]) == 0
    assert capsys.readouterr().out.startswith(f"page written to {page} (")


def test_umap_is_computed_once_kept_in_the_run_and_repeated_by_embed(small, people, tmp_path, capsys):
    pytest.importorskip("umap", reason="no UMAP: pip install '.[report]'")
    file = small / "embeddings.parquet"
    fitted, vectors = read_coordinates(file), parquet.read_table(file)["embedding"]
    assert answer(capsys, "report", small)["projection"] == "umap"
    stored = file.read_bytes()
    table = parquet.read_table(file)
    assert table.column_names == ["node", "embedding", "x", "y"] and table["embedding"].equals(vectors)
    assert (read_coordinates(file).points != fitted.points).any()
    answer(capsys, "report", small)
    assert file.read_bytes() == stored
    answer(capsys, "embed", small, *people.graph, "--out", tmp_path / "again.parquet")
    assert (tmp_path / "again.parquet").read_bytes() == stored
    assert answer(capsys, "report", small, "--projection", "pca")["projection"] == "pca"
    assert (read_coordinates(file).points == fitted.points).all()


@pytest.mark.parametrize("format_", ["npy", "csv"])
def test_runs_in_other_formats_keep_their_map_in_a_file_of_its_own(people, tmp_path, capsys, format_):
    out = tmp_path / "run"
    answer(capsys, "fit", *people.graph, "--out", out, "--format", format_, *QUICK)
    before = (out / f"embeddings.{format_}").read_bytes()
    assert not (out / "map.parquet").exists()
    answer(capsys, "report", out, "--projection", "pca")
    table = parquet.read_table(out / "map.parquet")
    assert table.column_names == ["node", "x", "y"] and table["node"].to_pylist() == people.ids
    assert (out / f"embeddings.{format_}").read_bytes() == before
    answer(capsys, "fit", *people.graph, "--out", out, "--format", format_, "--overwrite", *QUICK)
    assert not (out / "map.parquet").exists() and not (out / "report.html").exists()


def test_a_run_that_was_not_evaluated_is_evaluated(people, tmp_path, capsys):
    out = tmp_path / "run"
    answer(capsys, "fit", *people.graph, *people.labels, "--out", out, "--seed", 1, *QUICK)
    answer(capsys, "report", out, "--projection", "pca", "--threads", 1)
    scores = json.loads((out / "eval.json").read_text())
    assert scores["protocol"] == "paper" and len(scores["splits"]) == 10
    content = content_of(out / "report.html")
    score = dict(content["sections"][0]["items"][0]["pairs"])["Score"]
    assert score.startswith(f"{scores['mean']:.2f} ± {scores['std']:.2f} % accuracy")
    rows = content["sections"][4]["items"][0]["rows"]
    stored = json.loads((out / "baselines.json").read_text())["rows"]
    assert [row["mean"] for row in rows[1:]] == pytest.approx(
        [row["mean"] for row in stored.values()], rel=1e-5
    )


def test_labels_too_few_to_split_are_no_reason_for_no_page(tmp_path, capsys):
    (tmp_path / "edges.csv").write_text("a,b\nb,c\nc,d\nd,a\n")
    (tmp_path / "labels.csv").write_text("a,0\nb,1\nc,0\nd,1\n")
    out = tmp_path / "run"
    graph = [tmp_path / "edges.csv", "--structural", "degree", "--labels", tmp_path / "labels.csv"]
    answer(capsys, "fit", *graph, "--out", out, "--set", "positives=1", *QUICK)
    assert run(["report", str(out), "--projection", "pca"]) == 0
    assert (
        "is not evaluated: no class has the 6 labelled nodes that 10/10/80 splits need"
        in capsys.readouterr().err
    )
    assert content_of(out / "report.html")["map"]["listed"] == 3


def test_fit_makes_the_page_on_request(people, tmp_path, capsys):
    single = answer(capsys, "fit", *people.graph, "--out", tmp_path / "one", "--report", *QUICK)
    assert single["report"] == str(tmp_path / "one" / "report.html")
    assert content_of(tmp_path / "one" / "report.html")["title"] == "spgcl on edges"
    several = answer(
        capsys, "fit", *people.graph, "--out", tmp_path / "two", "--report", "--seeds", 2, *QUICK
    )
    assert several["report"] == str(tmp_path / "two" / "report.html")
    assert content_of(tmp_path / "two" / "report.html")["title"] == "2 runs compared"
    assert run(["fit", *people.graph, "--out", str(tmp_path / "one"), "--overwrite", "--report", *QUICK]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"page: {tmp_path / 'one' / 'report.html'}"


def test_a_changed_graph_is_said(small, people, capsys):
    path = people.folder / "edges.csv"
    original = path.read_text()
    try:
        path.write_text("\n".join(original.splitlines()[:-1]) + "\n")
        assert run(["report", str(small), "--projection", "pca"]) == 0
        assert "has changed since" in capsys.readouterr().err
    finally:
        path.write_text(original)


def test_what_cannot_be_written_or_read_is_refused_before_any_work(small, people, tmp_path, capsys):
    diary = tmp_path / "diary.html"
    diary.write_text("<html>mine</html>")
    assert "is no page of spgcl; choose another --out" in refusal(capsys, "report", small, "--out", diary)
    assert diary.read_text() == "<html>mine</html>"
    assert "is a folder" in refusal(capsys, "report", small, "--out", tmp_path)
    assert "there is no folder" in refusal(capsys, "report", small, "--out", tmp_path / "no" / "page.html")
    assert "is not a run" in refusal(capsys, "report", tmp_path)
    assert "no such file" in refusal(capsys, "report", small, "--nodes", tmp_path / "absent.csv")
    (small / "eval.json").write_text("{")
    assert "eval.json cannot be read" in refusal(capsys, "report", small)


def test_what_is_not_installed_is_named_with_the_way_to_install_it(
    small, people, tmp_path, capsys, monkeypatch
):
    monkeypatch.setitem(sys.modules, "umap", None)
    message = refusal(capsys, "report", small, "--projection", "umap")
    assert "UMAP is not installed" in message and "pip install 'spgcl[report]'" in message
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    message = refusal(capsys, "report", small, "--projection", "pca", "--tensorboard")
    assert "pip install 'spgcl[tensorboard]'" in message
    monkeypatch.setitem(sys.modules, "plotly", None)
    message = refusal(capsys, "report", small)
    assert "needs Plotly" in message and "pip install 'spgcl[report]'" in message
    message = refusal(capsys, "fit", *people.graph, "--out", tmp_path / "not", "--report", *QUICK)
    assert "needs Plotly" in message and not (tmp_path / "not").exists()


def test_help_loads_nothing_heavy():
    script = (
        "import sys\nfrom spgcl.cli import run\nassert run(['report', '--help']) == 0\n"
        "heavy = 'plotly umap numba sklearn pyarrow matplotlib tensorboard torch_geometric'\n"
        "sys.exit(', '.join(set(heavy.split()) & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
