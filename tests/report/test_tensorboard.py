"""What TensorBoard's own reader finds in the export."""

import threading

import pytest
from commands import answer, output, settings

from spgcl.report.tensorboard import _writing
from spgcl.runs.record import read_run

event_accumulator = pytest.importorskip(
    "tensorboard.backend.event_processing.event_accumulator",
    reason="no TensorBoard: pip install '.[tensorboard]'",
)


def scalars(folder):
    reader = event_accumulator.EventAccumulator(str(folder), size_guidance={"scalars": 0})
    reader.Reload()
    return {
        tag: [(event.step, event.value) for event in reader.Scalars(tag)] for tag in reader.Tags()["scalars"]
    }


def test_scalars_and_projector_hold_the_run(hostile_run, hostile, capsys):
    folder = hostile_run / "tensorboard"
    record = answer(capsys, "report", hostile_run, "--projection", "pca", "--tensorboard")
    assert record["tensorboard"] == [str(folder)]
    history = read_run(hostile_run).history
    found = scalars(folder)
    assert [step for step, _ in found["loss"]] == [1, 2, 3, 4, 5, 6]
    assert [value for _, value in found["loss"]] == pytest.approx(history["loss"], rel=1e-6)
    curve = [(point["step"], point["transformed_homophily"]) for point in history["observations"]]
    assert found["health/transformed_homophily"] == [(step, pytest.approx(value)) for step, value in curve]
    (vectors,) = folder.glob("*/embeddings/tensors.tsv")
    (metadata,) = folder.glob("*/embeddings/metadata.tsv")
    header, *rows = metadata.read_text(encoding="utf-8").splitlines()
    assert header.split("\t") == ["node", "label", "cluster"]
    assert len(rows) == len(vectors.read_text().splitlines()) == len(hostile.ids)
    assert all(row.count("\t") == 2 for row in rows) and rows[9].startswith("n0\t")
    assert "projector_config.pbtxt" in {path.name for path in folder.iterdir()}


def test_a_second_export_replaces_the_first_and_an_overwritten_run_has_none(people, tmp_path, capsys):
    out = tmp_path / "run"
    fit = [
        "fit",
        *people.graph,
        "--threads",
        1,
        "--method",
        "spgcl",
        "--steps",
        2,
        *settings(hidden=64),
        "--out",
        out,
    ]
    answer(capsys, *fit)
    for _ in range(2):
        shown, _ = output(capsys, "report", out, "--projection", "pca", "--tensorboard")
        assert f"tensorboard --logdir {out / 'tensorboard'}" in shown
        assert len(list((out / "tensorboard").glob("events.*"))) == 1
    (vectors,) = (out / "tensorboard").glob("*/embeddings/tensors.tsv")
    # The projector gets the leading components of wide embeddings.
    assert vectors.read_text().splitlines()[0].count("\t") == 49
    answer(capsys, *fit, "--overwrite")
    assert not (out / "tensorboard").exists()


def test_other_threads_report_their_errors_meanwhile(tmp_path, monkeypatch):
    failures = []
    monkeypatch.setattr(threading, "excepthook", failures.append)
    with _writing(tmp_path):
        for kind in (threading.Thread, type("Quiet", (threading.Thread,), {"__module__": "tensorboard.x"})):
            thread = kind(target=lambda: 1 / 0, name=kind.__name__)
            thread.start()
            thread.join()
    assert [failure.thread.name for failure in failures] == ["Thread"]
    assert threading.excepthook == failures.append
