import errno
import json
import pickle
from dataclasses import asdict, fields
from pathlib import Path

import numpy as np
import pytest
import safetensors
import safetensors.torch
import torch
from graphs import CPU, make_graph
from made_methods import TINY_POOLS

import spgcl
from spgcl.errors import InputError
from spgcl.files import replacing
from spgcl.methods import create
from spgcl.runs.fit import describe_source, tidy
from spgcl.runs.record import (
    CHECKPOINT_FORMAT,
    Run,
    load_checkpoint,
    load_held_out,
    load_method,
    read_run,
    save_checkpoint,
    save_held_out,
    save_method,
    unfinished,
    write_run,
)
from spgcl.training.loop import train

SETTINGS = {**TINY_POOLS, "steps": 3}


def make_run(**changes):
    described = describe_source("edges.csv", {"directed": False}, None, make_graph())
    run = Run(
        dataset="grünes netz",
        method="spgcl",
        preset=None,
        settings=SETTINGS,
        seed=3,
        graph=described,
        device="cpu",
        threads=2,
        command=["spgcl", "fit"],
        history={"loss": [1.5, -0.25], "observations": [{"step": 0, "weight_norm_1": 2.0}]},
    )
    for name, value in changes.items():
        setattr(run, name, value)
    return run


def refused(load, folder):
    """The one line by which loading is refused."""
    with pytest.raises(InputError) as caught:
        load(folder)
    message = str(caught.value)
    assert message and "\n" not in message
    return message


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_record_comes_back_as_it_was(tmp_path):
    run = make_run(status="finished", steps=2, seconds={"train": 0.1}, peak_memory_mib=12.5, resumed_from=1)
    folder = tmp_path / "new" / "run"
    write_run(folder, run)
    assert asdict(read_run(folder)) == asdict(run)
    assert names(folder) == ["run.json"]
    assert read_run(folder).versions["spgcl"] == spgcl.__version__
    first = (folder / "run.json").read_bytes()
    write_run(folder, run)
    assert (folder / "run.json").read_bytes() == first


@pytest.mark.parametrize(
    ("status", "parts"),
    [
        ("finished", []),
        ("interrupted", ["folder ", "1,039 of 5,000", "--resume"]),
        ("running", ["folder ", "an earlier step", "--resume"]),
    ],
)
def test_an_unfinished_run_is_noted(status, parts):
    text = unfinished(Path("folder"), make_run(status=status, steps=1039, settings={"steps": 5000}))
    assert bool(text) == bool(parts) and all(part in text for part in parts)


def test_a_folder_without_a_record_is_no_run(tmp_path):
    assert "no run.json" in refused(read_run, tmp_path)


@pytest.mark.parametrize("content", [b"", b"{", b'{"format": 1', b"\xff\xfe\x00", b"\x80\x04K\x01."])
def test_a_record_that_is_not_json_is_refused(tmp_path, content):
    (tmp_path / "run.json").write_bytes(content)
    assert str(tmp_path / "run.json") in refused(read_run, tmp_path)


@pytest.mark.parametrize(
    ("record", "written"),
    [
        ({"format": 2, "versions": {"spgcl": "9.1"}}, "9.1"),
        ({"versions": {"spgcl": "0.0.7"}}, "0.0.7"),
        ({"format": 0}, "unknown"),
        ({"format": 2, "versions": "9.1"}, "unknown"),
        ([1, 2], "unknown"),
        (None, "unknown"),
    ],
)
def test_a_record_of_another_format_says_who_wrote_it(tmp_path, record, written):
    (tmp_path / "run.json").write_text(json.dumps(record))
    assert f"spgcl {written} in another format" in refused(read_run, tmp_path)


def test_unknown_and_missing_fields_are_named(tmp_path):
    record = asdict(make_run())
    (tmp_path / "run.json").write_text(json.dumps({**record, "colour": "red"}))
    assert "colour" in refused(read_run, tmp_path)
    del record["seed"]
    (tmp_path / "run.json").write_text(json.dumps(record))
    message = refused(read_run, tmp_path)
    assert "seed" in message and "fit it again" in message


def test_a_record_without_optional_fields_is_read(tmp_path):
    """An older run that lacks what has a default today is no obstacle."""
    record = {name: value for name, value in asdict(make_run()).items() if name != "hold_out_edges"}
    (tmp_path / "run.json").write_text(json.dumps(record))
    assert read_run(tmp_path).hold_out_edges == 0.0
    assert {field.name for field in fields(Run)} == {*record, "hold_out_edges"}


def saved_method(folder):
    method = create("spgcl", 6, seed=3, settings=SETTINGS)
    save_method(folder, method, make_run())
    return method


def test_weights_and_what_builds_their_method_travel_together(tmp_path):
    method = saved_method(tmp_path)
    loaded = load_method(tmp_path)
    assert loaded.steps == 3 and loaded.positives == 3
    for name, value in method.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], value)
    assert names(tmp_path) == ["model.safetensors"]
    first = (tmp_path / "model.safetensors").read_bytes()
    save_method(tmp_path, method, make_run())
    assert (tmp_path / "model.safetensors").read_bytes() == first


def damaged(content):
    return {
        "empty": b"",
        "cut in the header": content[:40],
        "cut in the tensors": content[:-10],
        "longer than it says": content + b"more",
        "a pickle": pickle.dumps({"weights": [1, 2]}),
        "noise": bytes(range(256)) * 8,
        "a header that is no JSON": (16).to_bytes(8, "little") + b"{" * 16,
        "a header of another length": (2**40).to_bytes(8, "little") + content[8:],
    }


def test_missing_weights_say_how_to_go_on(tmp_path):
    assert "--resume" in refused(load_method, tmp_path)


def unfit(tensors, metadata):
    """Readable files that do not hold the weights of a run."""
    text = metadata["spgcl"]
    return {
        "no metadata": (tensors, None),
        "metadata that is no JSON": (tensors, {"spgcl": "{"}),
        "metadata of another kind": (tensors, {"spgcl": "[]"}),
        "no weights": ({}, metadata),
        "more weights": ({**tensors, "extra": torch.ones(2)}, metadata),
        "other shapes": ({name: value[None] for name, value in tensors.items()}, metadata),
        "unknown method": (tensors, {"spgcl": text.replace('"method": "spgcl"', '"method": "other"')}),
        "unknown parameter": (tensors, {"spgcl": text.replace("hidden", "hiden")}),
    }


@pytest.mark.parametrize("kind", unfit({}, {"spgcl": ""}))
def test_weights_that_do_not_fit_their_method_are_refused(tmp_path, kind):
    saved_method(tmp_path)
    path = tmp_path / "model.safetensors"
    with safetensors.safe_open(path, framework="pt") as file:
        tensors, metadata = {name: file.get_tensor(name) for name in file.keys()}, file.metadata()  # noqa: SIM118
    path.write_bytes(safetensors.torch.save(*unfit(tensors, metadata)[kind]))
    assert str(path) in refused(load_method, tmp_path)


class Planted:
    """Unpickled, this would write a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


@pytest.mark.parametrize(
    "name", ["run.json", "model.safetensors", "checkpoint.safetensors", "held_out_edges.npz"]
)
def test_nothing_in_a_run_is_executed(tmp_path, name):
    trap = tmp_path / "trap"
    if name.endswith("npz"):
        np.savez(tmp_path / name, positive=np.array([Planted(trap)], dtype=object), negative=np.zeros((1, 2)))
    else:
        (tmp_path / name).write_bytes(pickle.dumps(Planted(trap)))
    load = {"run.json": read_run, "model.safetensors": load_method, "held_out_edges.npz": load_held_out}
    assert name in refused(load.get(name, load_checkpoint), tmp_path) and not trap.exists()


def checkpoint_of(folder, *, observe=False):
    method = create("spgcl", 6, seed=3, settings=SETTINGS)
    observing = {"observe": lambda method, prepared: method.observe(prepared), "observe_every": 1}
    train(
        method,
        method.prepare(make_graph(), CPU),
        seed=3,
        save=lambda checkpoint: save_checkpoint(folder, checkpoint),
        stop=lambda: True,
        **(observing if observe else {}),
    )
    return method


@pytest.mark.parametrize("observe", [False, True])
def test_a_checkpoint_comes_back_as_it_was(tmp_path, observe):
    method = checkpoint_of(tmp_path, observe=observe)
    found = load_checkpoint(tmp_path)
    assert found.step == len(found.losses) == 1
    assert {name: value.tolist() for name, value in found.weights.items()} == {
        name: value.tolist() for name, value in method.state_dict().items()
    }
    assert set(found.memory) == ({"covered", "pairs", "earlier_pairs"} if observe else set())
    assert [entry["step"] for entry in found.observations] == ([0, 1] if observe else [])
    indices = range(len(method.trained_weights()))
    assert {*found.optimiser} == {f"{i}/{name}" for i in indices for name in ("updates", "first", "second")}
    assert all(found.optimiser[f"{index}/updates"] == 1 for index in indices)
    assert names(tmp_path) == ["checkpoint.safetensors"]
    tidy(tmp_path)
    assert load_checkpoint(tmp_path) is None and names(tmp_path) == []


@pytest.mark.parametrize("kind", damaged(b""))
@pytest.mark.parametrize(
    ("name", "save", "load"),
    [
        ("model.safetensors", saved_method, load_method),
        ("checkpoint.safetensors", checkpoint_of, load_checkpoint),
    ],
    ids=["weights", "checkpoint"],
)
def test_damaged_tensors_are_refused(tmp_path, name, save, load, kind):
    save(tmp_path)
    path = tmp_path / name
    path.write_bytes(damaged(path.read_bytes())[kind])
    assert str(path) in refused(load, tmp_path)


@pytest.mark.parametrize("number", [CHECKPOINT_FORMAT - 1, CHECKPOINT_FORMAT + 1])
def test_a_checkpoint_of_another_format_says_who_wrote_it(tmp_path, number):
    metadata = {"spgcl": json.dumps({"spgcl": "9.1", "format": number})}
    (tmp_path / "checkpoint.safetensors").write_bytes(
        safetensors.torch.save({"losses": torch.zeros(1)}, metadata)
    )
    message = refused(load_checkpoint, tmp_path)
    assert "spgcl 9.1 in another format" in message and "--overwrite" in message


def test_held_out_edges_come_back_as_they_were(tmp_path):
    assert load_held_out(tmp_path) is None
    positive, negative = np.array([[0, 1], [2, 3]]), np.array([[0, 3], [1, 2]])
    save_held_out(tmp_path, (positive, negative))
    found = load_held_out(tmp_path)
    np.testing.assert_array_equal(found[0], positive)
    np.testing.assert_array_equal(found[1], negative)
    assert names(tmp_path) == ["held_out_edges.npz"]


@pytest.mark.parametrize("kind", ["empty", "cut", "noise", "other names"])
def test_damaged_held_out_edges_are_refused(tmp_path, kind):
    path = tmp_path / "held_out_edges.npz"
    save_held_out(tmp_path, (np.array([[0, 1]]), np.array([[1, 2]])))
    if kind == "other names":
        np.savez(path, something=np.zeros(2))
    else:
        content = path.read_bytes()
        path.write_bytes({"empty": b"", "cut": content[:-30], "noise": b"noise" * 40}[kind])
    assert str(path) in refused(load_held_out, tmp_path)


def test_a_failing_write_leaves_the_old_file_and_no_other(tmp_path):
    path = tmp_path / "run.json"
    path.write_text("old")

    def write_half():
        with replacing(path) as temporary:
            temporary.write_text("half")
            assert path.read_text() == "old"
            raise OSError(errno.ENOSPC, "whatever")

    with pytest.raises(InputError, match=r"run\.json cannot be written: no space left.*make room"):
        write_half()
    assert path.read_text() == "old" and names(tmp_path) == ["run.json"]
    with replacing(path) as temporary:
        temporary.write_text("new")
    assert path.read_text() == "new" and names(tmp_path) == ["run.json"]


def test_a_record_that_cannot_be_written_leaves_the_old_one(tmp_path):
    write_run(tmp_path, make_run())
    with pytest.raises(TypeError):
        write_run(tmp_path, make_run(history={"loss": [object()]}))
    assert read_run(tmp_path).history["loss"] == [1.5, -0.25] and names(tmp_path) == ["run.json"]


def test_what_a_killed_write_left_is_no_obstacle(tmp_path):
    for name in (".run.json.part", ".run.json.4242.part"):
        (tmp_path / name).write_text("half of a rec")
    write_run(tmp_path, make_run())
    assert read_run(tmp_path).seed == 3 and names(tmp_path) == ["run.json"]
