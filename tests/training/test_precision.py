"""Precision and determinism: what may be asked for, that it is undone, and that a run remembers it."""

import gc
import json
import threading
from pathlib import Path

import pytest
import torch
from graphs import CPU

import spgcl
from spgcl.cli import run
from spgcl.engine import recording
from spgcl.engine.device import arithmetic
from spgcl.errors import InputError

TINY = ["--method", "spgcl", "--set", "hidden=8", "--steps", "2"]


def test_an_unknown_precision_names_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"'half'.*auto, float32, tf32"), arithmetic(CPU, "half"):
        pass
    with pytest.raises(InputError, match="precision 'half'"):
        spgcl.Embedder("spgcl", steps=1, hidden=8, precision="half").fit(spgcl.load("csbm-homophilic"))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
def test_what_was_set_is_undone() -> None:
    before = torch.get_float32_matmul_precision()
    with arithmetic(torch.device("cuda"), "tf32", deterministic=True):
        assert torch.get_float32_matmul_precision() == "high"
        assert torch.are_deterministic_algorithms_enabled()
    assert torch.get_float32_matmul_precision() == before
    assert not torch.are_deterministic_algorithms_enabled()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
def test_trainings_one_after_another_leave_no_memory_behind() -> None:
    graph = spgcl.load("csbm-homophilic")
    left = []
    for hidden in (64, 256, 512, 1024, 64, 64):
        vectors = spgcl.Embedder("spgcl", steps=6, hidden=hidden, device="cuda").fit_transform(graph)
        spgcl.probe(vectors, graph.labels, graph.splits, epochs=60, device="cuda")
        gc.collect()
        torch.cuda.empty_cache()
        left.append(torch.cuda.memory_reserved())
    assert left[-1] <= left[1]


def test_the_cpu_has_no_choice_and_gives_the_same() -> None:
    graph = spgcl.load("csbm-homophilic")
    settings = {"steps": 2, "hidden": 8, "device": "cpu"}
    plain = spgcl.Embedder("spgcl", **settings).fit_transform(graph)
    asked = spgcl.Embedder("spgcl", precision="tf32", deterministic=True, **settings).fit_transform(graph)
    assert plain.tobytes() == asked.tobytes()


def test_a_run_records_its_precision_and_is_continued_with_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "run")
    assert run(["fit", "csbm-homophilic", "--out", out, *TINY, "--precision", "float32"]) == 0
    record = json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))
    assert (record["precision"], record["deterministic"]) == ("float32", False)
    capsys.readouterr()
    assert run(["fit", "csbm-homophilic", "--out", out, *TINY, "--resume"]) == 2
    message = capsys.readouterr().err
    assert all(part in message for part in ("precision", "'float32'", "'auto'"))


class FailedError(Exception):
    pass


def test_a_device_that_cannot_be_woken_stops_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    woken: list[torch.device] = []

    def fail(device: torch.device) -> None:
        woken.append(device)
        raise FailedError

    monkeypatch.setattr(recording, "_first_products", fail)
    with recording.initialising(torch.device("cuda")):
        done = True
    assert done and woken == [torch.device("cuda")]
    with recording.initialising(CPU):
        pass
    assert len(woken) == 1


def test_an_error_does_not_wait_for_a_device_that_is_being_woken(monkeypatch: pytest.MonkeyPatch) -> None:
    reported = threading.Event()
    monkeypatch.setattr(recording, "_first_products", lambda _: reported.wait(timeout=30))
    with pytest.raises(FailedError), recording.initialising(torch.device("cuda")):
        raise FailedError
    # Still being woken when the error was here.
    waiting = [one for one in threading.enumerate() if one.name.startswith("ThreadPoolExecutor")]
    reported.set()
    assert waiting
    for thread in waiting:
        thread.join()
