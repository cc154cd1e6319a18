"""A page shows scores of the run, the labels and the probe that it is about, and none from before."""

import json

import pytest
from commands import output, refusal, settings

from spgcl.report.comparison import Entry, compare_runs
from spgcl.report.write import silent
from spgcl.runs.record import read_run

QUICK = ["--threads", "1", "--method", "spgcl", *settings(hidden=8, seeds=16, pool_size=64)]


@pytest.fixture
def labelled(people, tmp_path, capsys):
    out = tmp_path / "run"
    output(capsys, "fit", *people.graph, *people.labels, "--steps", 3, "--out", out, *QUICK)
    return out


@pytest.fixture
def other_labels(people, tmp_path):
    """The same classes, dealt out to other nodes."""
    lines = (people.folder / "labels.csv").read_text().splitlines()
    classes = [line.split(",")[1] for line in lines[1:]]
    rows = [f"{node},{name}" for node, name in zip(people.ids, classes[20:] + classes[:20], strict=True)]
    path = tmp_path / "other.csv"
    path.write_text("\n".join([lines[0], *rows]))
    return path


def stored(folder) -> dict:
    return json.loads((folder / "eval.json").read_text())


def report(capsys, folder, *arguments: object) -> str:
    return output(capsys, "report", folder, "--projection", "pca", "--threads", 1, *arguments)[1]


def test_scores_of_other_labels_are_not_shown_beside_those_of_the_run(labelled, other_labels, capsys):
    output(capsys, "eval", labelled, "--protocol", "tuned", "--threads", 1)
    own = stored(labelled)
    output(capsys, "eval", labelled, "--labels", other_labels, "--protocol", "tuned", "--threads", 1)
    assert stored(labelled)["task"] != own["task"]
    assert f"{labelled / 'eval.json'} is of other labels" in report(capsys, labelled)
    assert stored(labelled) == own


def test_labels_given_again_are_scored_by_the_probe_that_was_chosen(labelled, people, capsys):
    output(capsys, "eval", labelled, *people.labels, "--protocol", "tuned", "--threads", 1)
    before = stored(labelled)
    report(capsys, labelled, *people.labels)
    assert stored(labelled) == before and before["protocol"] == "tuned"


def test_new_embeddings_leave_no_scores_of_the_old_ones(people, tmp_path, capsys):
    out = tmp_path / "seeds"
    given = [*people.graph, *people.labels, *QUICK, "--out", out, "--seeds", 2]
    output(capsys, "fit", *given, "--steps", 2)
    output(capsys, "eval", out, "--protocol", "tuned", "--threads", 1)
    assert (out / "eval.json").exists() and (out / "seed-0" / "eval.json").exists()
    output(capsys, "fit", *given, "--steps", 2, "--resume")
    assert (out / "eval.json").exists()
    output(capsys, "fit", *given, "--steps", 3, "--overwrite")
    assert not [*out.rglob("eval.json")]


def test_retrainings_of_different_graphs_are_refused(people, tmp_path, capsys):
    out = tmp_path / "seeds"
    output(capsys, "fit", *people.graph, *people.labels, *QUICK, "--steps", 2, "--out", out / "seed-0")
    edges = tmp_path / "fewer.csv"
    edges.write_text("\n".join((people.folder / "edges.csv").read_text().splitlines()[:-3]))
    others = [edges, *people.graph[1:], *people.labels, *QUICK, "--seed", 1]
    output(capsys, "fit", *others, "--steps", 2, "--out", out / "seed-1")
    assert str(out / "seed-1") in refusal(capsys, "eval", out)


def test_scores_by_other_probes_or_of_other_labels_have_charts_of_their_own(labelled, capsys):
    output(capsys, "eval", labelled, "--protocol", "tuned", "--threads", 1)
    tuned = stored(labelled)
    records = [tuned, {**tuned, "protocol": "paper"}, {**tuned, "task": "another"}, tuned]
    folders = [labelled / name for name in "abcd"]
    run = read_run(labelled)
    entries = [Entry(folder, run, record) for folder, record in zip(folders, records, strict=True)]
    *charts, table = compare_runs(entries, "pca", silent)["sections"][0]["items"]
    rows = [[row["name"] for row in chart["rows"]] for chart in charts]
    # The second chart has the difference of the last run from the first.
    assert rows == [["a", "d"], ["d"], ["b"], ["c"]]
    assert [row[2] for row in table["rows"]] == [
        f"{probe} probe, 10 splits" for probe in ("tuned", "paper's", "tuned", "tuned")
    ]
