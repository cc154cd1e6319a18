"""D6: files of a run with parts missing, null or mistyped are refused in one line that names the part."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import safetensors
import safetensors.torch
import torch
from commands import answer, output, refusal, settings
from graphs import labelled_ring

from spgcl.cli import run
from spgcl.runs import record

QUICK = ["--method", "spgcl", "--steps", 3, "--threads", 1, *settings(hidden=4), "--checkpoint-every", 0]


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    home = tmp_path_factory.mktemp("trained")
    given = ["fit", *labelled_ring(home), *QUICK]
    assert run([*map(str, given), "--hold-out-edges", "0.1", "--out", str(home / "run")]) == 0
    assert run(["report", str(home / "run"), "--projection", "pca", "--threads", "1"]) == 0
    return home


@pytest.fixture
def folder(trained, tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(trained)
    return shutil.copytree(trained / "run", tmp_path / "run")


def changed(path: Path, parts: str, value: object) -> None:
    """Give one part of a JSON file another value; "absent" removes it."""
    whole = inner = json.loads(path.read_text())
    *outer, last = parts.split(".")
    for name in outer:
        inner = inner[int(name) if isinstance(inner, list) else name]
    if value == "absent":
        del inner[last]
    else:
        inner[last] = value
    path.write_text(json.dumps(whole))


@pytest.mark.parametrize("command", ["eval", "embed", "similar", "report", "resume"])
@pytest.mark.parametrize(
    ("parts", "value"),
    [
        ("graph", None),
        ("graph", "csbm-heterophilic"),
        ("graph", {}),
        ("graph.options", {"colour": "red"}),
        ("graph.labels", 3),
        ("threads", "x"),
        ("seed", 1.5),
        ("settings.steps", None),
        ("history.loss", ["x"]),
        ("seconds", None),
        ("status", "done"),
        ("embedding_format", "xlsx"),
    ],
)
def test_d6_run_json(folder, tmp_path, capsys, parts, value, command):
    changed(folder / "run.json", parts, value)
    fit = ["fit", "g.csv", "--structural", "degree", *QUICK, "--hold-out-edges", 0.1, "--out", folder]
    line = refusal(
        capsys,
        *{
            "eval": ["eval", folder],
            "embed": ["embed", folder, "g.csv", "--out", tmp_path / "e.csv"],
            "similar": ["similar", folder, 0],
            "report": ["report", folder],
            "resume": [*fit, "--resume"],
        }[command],
    )
    assert f"{folder / 'run.json'}: {parts}" in line


@pytest.mark.parametrize(
    ("parts", "value"),
    [
        ("splits", "absent"),
        ("std_over", "absent"),
        ("splits.0.test", "absent"),
        ("splits.0.validation", "absent"),
        ("splits.0.others", {"macro_f1": "high"}),
        ("mean", "high"),
        ("knn", []),
        ("dataset", "absent"),
        ("method", None),
        ("baselines", {"raw": {}}),
        ("baselines", {"raw": {"mean": 50.0}}),
    ],
)
def test_d6_eval_json(folder, capsys, parts, value):
    changed(folder / "eval.json", parts, value)
    for command in (["report", folder], ["report", folder, folder.parent / "run", "--out", "c.html"]):
        line = refusal(capsys, *command)
        assert str(folder / "eval.json") in line and f"spgcl eval {folder}" in line


@pytest.mark.parametrize(
    ("name", "arrays"),
    [
        (
            "held_out_edges.npz",
            {"positive": np.zeros((2, 3), dtype=int), "negative": np.zeros((2, 2), dtype=int)},
        ),
        ("held_out_edges.npz", {"positive": np.zeros((2, 2)), "negative": np.zeros((2, 2))}),
        (
            "held_out_edges.npz",
            {"positive": np.zeros((0, 2), dtype=int), "negative": np.zeros((0, 2), dtype=int)},
        ),
    ],
)
def test_d6_held_out_edges(folder, capsys, name, arrays):
    np.savez(folder / name, **arrays)
    assert name in refusal(capsys, "eval", folder, "--threads", 1)


def test_d6_baselines_of_the_page(folder, capsys):
    changed(folder / "baselines.json", "rows", None)
    assert "baselines.json: rows" in refusal(capsys, "report", folder, "--projection", "pca")


def resaved(path: Path, change) -> None:
    """Change the tensors and the metadata of a file."""
    with safetensors.safe_open(path, framework="pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        metadata = json.loads(file.metadata()["spgcl"])
    change(tensors, metadata)
    path.write_bytes(safetensors.torch.save(tensors, {"spgcl": json.dumps(metadata)}))


CHANGES = {
    "a tensor less": lambda tensors, _: tensors.pop(sorted(tensors)[-1]),
    "a tensor more": lambda tensors, _: tensors.update(more=torch.zeros(2)),
    "another shape": lambda tensors, _: tensors.update({sorted(tensors)[0]: torch.zeros(7, 7)}),
    "a step as text": lambda _, metadata: metadata.update(step="1", settings=None),
    "no step": lambda _, metadata: (metadata.pop("step", None), metadata.pop("settings", None)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_d6_checkpoint_and_weights(folder, tmp_path, capsys, monkeypatch, change):
    import spgcl.training.loop

    resaved(folder / "model.safetensors", CHANGES[change])
    line = refusal(capsys, "embed", folder, "g.csv", "--out", tmp_path / "e.csv")
    assert str(folder / "model.safetensors") in line

    def fail(*_):
        raise RuntimeError("the power failed")

    fit = ["fit", "g.csv", "--structural", "degree", *QUICK, "--out", tmp_path / "half"]
    with monkeypatch.context() as patch:
        patch.setattr("spgcl.runs.fit._write_results", fail)
        assert run([*map(str, fit)]) == 1
    capsys.readouterr()
    checkpoint = tmp_path / "half" / "checkpoint.safetensors"
    assert checkpoint.exists() and spgcl.training.loop
    resaved(checkpoint, CHANGES[change])
    assert str(checkpoint) in refusal(capsys, *fit, "--resume")
    assert answer(capsys, *fit, "--overwrite")["steps"] == 3


def test_d6_baselines_of_another_name_are_not_shown(folder, capsys):
    rows = json.loads((folder / "baselines.json").read_text())["rows"]
    changed(folder / "baselines.json", "rows", {**rows, "x": rows["raw"]})
    output(capsys, "report", folder, "--projection", "pca", "--threads", 1)
    assert '"x"' not in (folder / "report.html").read_text().partition('"sections"')[2].partition('"map"')[0]


@pytest.mark.parametrize(
    "vectors", [np.float32(1), np.zeros(30, np.float32), np.zeros((30, 0)), np.ones((30, 2), int)]
)
def test_d6_embeddings_that_are_no_vectors(folder, capsys, vectors):
    (folder / "embeddings.parquet").unlink()
    np.save(folder / "embeddings.npy", vectors)
    (folder / "nodes.txt").write_text("".join(f"{node}\n" for node in range(30)))
    assert "embeddings.npy" in refusal(capsys, "similar", folder, 0)


@pytest.mark.parametrize("name", ["generator", "losses"])
def test_d6_a_checkpoint_with_a_right_digest_and_a_tensor_less(trained, tmp_path, capsys, monkeypatch, name):
    monkeypatch.chdir(trained)
    monkeypatch.setattr("spgcl.runs.fit._write_results", lambda *_: 1 / 0)
    fit = ["fit", "g.csv", "--structural", "degree", *QUICK, "--out", tmp_path / "half"]
    assert run([*map(str, fit)]) == 1
    capsys.readouterr()

    def without(tensors, metadata):
        del tensors[name]
        metadata["digest"] = record._digest(tensors)

    resaved(tmp_path / "half" / "checkpoint.safetensors", without)
    assert "no generator, or no list of losses" in refusal(capsys, *fit, "--resume")


def test_d6_a_record_without_what_older_versions_did_not_write_is_read(folder, capsys):
    for part in ("graph.weighted", "graph.feature_names", "history.observations", "findings"):
        changed(folder / "run.json", part, "absent")
    assert len(answer(capsys, "similar", folder, 0)) == 10
    output(capsys, "report", folder, "--projection", "pca", "--threads", 1)
