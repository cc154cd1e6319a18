"""Any bad input: exit code 2, one line with the value and what to do, and nothing half-written."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import torch
from commands import SPGCL, refusal, settings

from spgcl.cli import run

QUICK = [
    "--threads",
    "1",
    "--method",
    "spgcl",
    *settings(hidden=8, pool_size=32, seeds=8, hops=1, negatives=10),
]


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("trained") / "run"
    assert run(["fit", "--out", str(out), "--steps", "3", *QUICK]) == 0
    return out


@pytest.fixture
def earlier(trained, tmp_path) -> Path:
    """A run of one's own that nothing below may harm."""
    return shutil.copytree(trained, tmp_path / "earlier")


@pytest.fixture
def files(tmp_path) -> Path:
    """A ring of 40 nodes with 2 features, and labels that are right or wrong in some way."""
    lines = {
        "edges": ["source,target", *(f"{node},{(node + 1) % 40}" for node in range(40))],
        "features": ["id,a,b", *(f"{node},{node % 2},{node / 40}" for node in range(40))],
        "some": ["id,label", *(f"{node},{node % 2}" for node in range(39))],
        "one": ["id,label", *(f"{node},same" for node in range(40))],
        "foreign": ["id,label", *(f"{node},{node % 2}" for node in range(41))],
        "rare": ["id,label", *(f"{node},{node // 2}" for node in range(40))],
    }
    for name, rows in lines.items():
        (tmp_path / f"{name}.csv").write_text("\n".join(rows) + "\n")
    return tmp_path


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["--method", "spgc"], "'spgc'"),
        (["--set", "hiden=8"], "'hiden'"),
        (["--preset", "publised"], "'publised'"),
        (["--method", "raw", "--preset", "published"], "'published'"),
    ],
)
def test_options_that_fit_no_graph_are_refused_before_one_is_read(tmp_path, capsys, arguments, part):
    unreadable = tmp_path / "edges.csv"
    unreadable.write_bytes(b"\xff\x00")
    assert part in refusal(capsys, "fit", unreadable, "--out", tmp_path / "run", *arguments)


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["--preset", "published"], ["'csbm-heterophilic'", "--preset"]),
        (["--set", "hiden=8"], ["'hiden'", "'hidden'"]),
        (["--set", "encoder=gnc"], ["encoder", "'gnc'", "'gcn'"]),
        (["--set", "hidden"], ["--set 'hidden'", "name=value"]),
        (["--set", "hidden=wide"], ["hidden is 'wide'"]),
        (["--steps", "0"], ["steps is 0", "above 0"]),
        (["--set", "layers=9"], ["layers is 9", "1 to 3"]),
        (["--set", "positives=33"], ["positives is 33", "32", "pool_size"]),
        (
            ["--set", "pool_size=0", "--set", "seeds=1", "--set", "hops=0", "--set", "pool=set"],
            ["positives is 5", "1 nodes", "seeds or hops"],
        ),
        (["--seed", "-1"], ["--seed"]),
        (["--seed", str(2**70)], ["--seed"]),
        pytest.param(
            ["--seed", str(2**63 - 1), "--seeds", "2"], ["seed is 9223372036854775808"], id="item-6-seed"
        ),
        pytest.param(["--threads", "100000"], ["100000", "--threads"], id="item-6-threads"),
        (["--seeds", "0"], ["--seeds"]),
        (["--format", "xlsx"], ["'xlsx'", "parquet"]),
        (["--set", "hidden=1000000"], ["out of memory", "bytes", "hidden"]),
        (["--set", "hidden=4611686018427387904"], ["out of memory", "hidden"]),
        (["--resume", "--overwrite"], ["--resume and --overwrite"]),
        (["--device", "tpu"], ["tpu", "cuda"]),
        (["--nonsense"], ["--nonsense", "spgcl fit --help"]),
    ],
)
@pytest.mark.parametrize("folder", ["new", "overwritten"])
def test_impossible_settings(tmp_path, earlier, capsys, arguments, parts, folder):
    out = tmp_path / "new" if folder == "new" else earlier
    before = snapshot(tmp_path)
    more = ["--overwrite"] if folder == "overwritten" and "--resume" not in arguments else []
    line = refusal(capsys, "fit", "--out", out, *QUICK, *more, *arguments)
    for part in parts:
        assert part in line
    assert snapshot(tmp_path) == before and not (tmp_path / "new").exists()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device here")
def test_cuda_that_is_not_there(earlier, tmp_path, capsys):
    before = snapshot(tmp_path)
    for arguments in (["fit", "--out", earlier, "--overwrite"], ["eval", earlier]):
        line = refusal(capsys, *arguments, "--device", "cuda")
        assert "'cuda'" in line and "--device cpu" in line
    assert snapshot(tmp_path) == before


def test_paths_that_cannot_hold_a_run(earlier, tmp_path, capsys):
    file, folder = tmp_path / "file", tmp_path / "folder"
    file.write_text("mine")
    folder.mkdir()
    (folder / "mine.txt").write_text("mine")
    before = snapshot(tmp_path)
    for out, parts in (
        (earlier, ["--resume", "--overwrite"]),
        (file, ["is a file", "--out"]),
        (file / "below", [f"{file} is a file", "--out"]),
        (folder, ["not a run", "--out"]),
    ):
        for option in ([], ["--overwrite"], ["--resume"]):
            if out == earlier and option:
                continue
            line = refusal(capsys, "fit", "--out", out, *option, *QUICK)
            assert str(out) in line and all(part in line for part in parts)
    assert snapshot(tmp_path) == before


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="nothing is read-only here")
def test_a_folder_without_permission_to_write(tmp_path, capsys):
    tmp_path.chmod(0o500)
    line = refusal(capsys, "fit", "--out", tmp_path / "run", *QUICK)
    tmp_path.chmod(0o700)
    assert str(tmp_path / "run") in line and f"{tmp_path} is read-only" in line and "--out" in line


def test_a_loss_that_explodes_leaves_the_last_good_checkpoint(tmp_path, earlier, capsys):
    before = snapshot(earlier)
    exploding = ["--set", "learning_rate=1e38", "--set", "batch_norm=none", *QUICK]
    line = refusal(capsys, "fit", "--out", earlier, "--overwrite", *exploding)
    assert "nan" in line and "learning_rate (now 1e+38)" in line
    assert snapshot(earlier) == before
    # A step small enough for a while: overflow comes after the first checkpoint.
    out = tmp_path / "out"
    growing = ["--set", "learning_rate=1e9", "--set", "batch_norm=none", "--set", "weight_decay=1", *QUICK]
    line = refusal(capsys, "fit", "--out", out, "--checkpoint-every", "0", "--steps", "50", *growing)
    assert "learning_rate (now 1e+09)" in line
    assert sorted(path.name for path in out.iterdir()) == ["checkpoint.safetensors", "run.json"]
    line = refusal(capsys, "eval", out)
    assert "no embeddings" in line and "spgcl fit --resume" in line
    assert "no embeddings" in refusal(capsys, "similar", out, "0")
    line = refusal(capsys, "embed", out, "csbm-heterophilic", "--out", tmp_path / "e.csv")
    assert "model.safetensors" in line


def test_graphs_and_labels_that_do_not_fit(files, earlier, capsys):
    graph = [files / "edges.csv", "--features", files / "features.csv"]
    out = files / "run"
    assert run([*map(str, ["fit", *graph, "--out", out, "--steps", "2", *QUICK])]) == 0
    before = snapshot(files)
    for name, parts in (
        ("some", ["some.csv", "node 39 (1 missing)"]),
        ("one", ["one.csv", "'same'", "two classes"]),
        ("foreign", ["foreign.csv, row 42", "node 40"]),
        ("rare", ["no class", "6 labelled nodes", "10/10/80"]),
        ("absent", ["absent.csv"]),
    ):
        line = refusal(capsys, "eval", out, "--labels", files / f"{name}.csv")
        assert all(part in line for part in parts), line
    line = refusal(capsys, "embed", earlier, *graph, "--out", files / "other.parquet")
    assert f"does not fit {earlier}" in line and "2 features, but 64" in line
    line = refusal(capsys, "embed", out, *graph, "--out", files / "other.xlsx")
    assert "'.xlsx'" in line and ".parquet, .npy or .csv" in line
    line = refusal(capsys, "fit", files / "edges.csv", "--out", files / "no", *QUICK)
    assert "no features" in line and "--structural degree|spectral" in line
    line = refusal(capsys, "fit", *graph, "--preset", "paper", "--out", files / "no", *QUICK)
    assert str(files / "edges.csv") in line and "--preset" in line
    assert "'40'" in refusal(capsys, "similar", out, "40")
    assert snapshot(files) == before


def test_nodes_that_changed_since_the_run(files, capsys):
    graph = [files / "edges.csv", "--features", files / "features.csv"]
    assert run([*map(str, ["fit", *graph, "--out", files / "run", "--steps", "2", *QUICK])]) == 0
    with (files / "features.csv").open("a") as file:
        file.write("40,1,1\n")
    line = refusal(capsys, "eval", files / "run", "--labels", files / "foreign.csv")
    assert str(files / "edges.csv") in line and str(files / "run") in line and "fit" in line


def test_data_sets_by_a_wrong_name_or_not_on_disk(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SPGCL_DATA", str(tmp_path / "data"))
    line = refusal(capsys, "fit", "corra", "--out", tmp_path / "run")
    assert "'corra'" in line and "'cora'" in line
    line = refusal(
        capsys, "fit", "cora", "--method", "spgcl", "--preset", "published", "--out", tmp_path / "run"
    )
    assert "spgcl datasets fetch cora" in line
    line = refusal(capsys, "fit", "./absent.csv", "--out", tmp_path / "run")
    assert "absent.csv: no such file" in line
    assert list(tmp_path.iterdir()) == []


def test_folders_that_are_no_runs(tmp_path, capsys):
    for command in (["eval"], ["similar", "0"], ["embed", "csbm-homophilic", "--out", tmp_path / "e.csv"]):
        for folder in (tmp_path, tmp_path / "absent"):
            line = refusal(capsys, command[0], folder, *command[1:])
            assert str(folder) in line and "run.json" in line
    assert list(tmp_path.iterdir()) == []


def test_damaged_files_of_a_run(earlier, tmp_path, capsys):
    file = tmp_path / "e.csv"
    embed = ["embed", earlier, "csbm-heterophilic", "--out", file]
    model = earlier / "model.safetensors"
    content = model.read_bytes()
    model.write_bytes(content[:-8])
    line = refusal(capsys, *embed)
    assert f"{model} is damaged" in line and "--overwrite" in line
    record = json.loads((earlier / "run.json").read_text())
    for changed, part in (
        ("{", "run record"),
        (json.dumps({**record, "format": 0}), f"spgcl {record['versions']['spgcl']}"),
        (json.dumps({**record, "surprise": 1}), "fit it again"),
    ):
        (earlier / "run.json").write_text(changed)
        line = refusal(capsys, "similar", earlier, "0")
        assert str(earlier / "run.json") in line and part in line
    assert not file.exists()


def test_a_damaged_checkpoint_is_not_continued(tmp_path, earlier, capsys):
    record = json.loads((earlier / "run.json").read_text())
    (earlier / "run.json").write_text(json.dumps({**record, "status": "running"}))
    (earlier / "checkpoint.safetensors").write_bytes(b"half a checkpoint")
    before = snapshot(tmp_path)
    line = refusal(capsys, "fit", "--out", earlier, "--steps", "3", "--resume", *QUICK)
    assert "checkpoint.safetensors is damaged" in line and "--overwrite" in line
    assert snapshot(tmp_path) == before


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_item_6_special_files_are_refused_at_once(files, earlier, tmp_path, capsys):
    os.mkfifo(files / "pipe.csv")
    (files / "link.csv").symlink_to("/dev/zero")
    for name in ("pipe.csv", "link.csv"):
        assert "pipe, a device" in refusal(capsys, "inspect", files / name, "--structural", "degree")
        edges = [files / "edges.csv", "--features", files / name]
        assert "pipe, a device" in refusal(capsys, "inspect", *edges)
    (tmp_path / "run").mkdir()
    os.mkfifo(tmp_path / "run" / "run.json")
    assert "run.json: is a pipe" in refusal(capsys, "eval", tmp_path / "run")
    os.mkfifo(tmp_path / "page.html")
    assert "page.html: is a pipe" in refusal(capsys, "report", earlier, "--out", tmp_path / "page.html")


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["eval"], "'run' (see spgcl eval --help)"),
        (["similar", "run"], "'node' (see spgcl similar --help)"),
        (["embed", "run", "cora"], "'--out' (see spgcl embed --help)"),
        (["similar", "run", "0", "-k", "0"], "see spgcl similar --help"),
        (["eval", "run", "--protocol", "best"], "'best'"),
        (["evaluate"], "'evaluate'"),
        (["fit", "one", "two"], "two"),
        (["fit", "--threads", "0"], "--threads"),
        (["fit", "--checkpoint-every", "-1"], "--checkpoint-every"),
        (["datasets", "fetch"], "--all"),
        (["datasets", "fetch", "cora", "--all"], "--all"),
        (["datasets", "fetch", "corra"], "unknown data set 'corra'; did you mean 'cora'"),
        (["datasets", "fetch", "cora", "--mirror", "/no/where"], "--mirror /no/where"),
        (["datasets", "fetch", "csbm-homophilic"], "csbm-homophilic is generated"),
        (["datasets", "stats", "corra"], "unknown data set 'corra'"),
        (["datasets", "stats", "cora"], "run `spgcl datasets fetch cora`"),
        (["datasets", "stats", "--nonsense"], "No such option"),
        (
            ["inspect", "csbm-heterophilc"],
            "unknown data set 'csbm-heterophilc'; did you mean 'csbm-heterophilic'",
        ),
        (["inspect", "csbm-heterophilic", "--structural", "degree"], "--structural"),
        (["inspect", "csbm-heterophilic", "--directed"], "--directed"),
        (["inspect", "./absent.csv"], "absent.csv"),
        (["inspect"], "Missing argument"),
    ],
)
def test_usage_errors(tmp_path, monkeypatch, capsys, arguments, part):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPGCL_DATA", str(tmp_path / "data"))
    assert part.lower() in refusal(capsys, *arguments).lower()
    assert list(tmp_path.iterdir()) == []


def test_an_internal_error_is_one_line_and_code_1(earlier, monkeypatch, capsys):
    def fail(*_):
        raise KeyError("labels")

    monkeypatch.setattr("spgcl.runs.evaluate.read_vectors", fail)
    monkeypatch.delenv("SPGCL_DEBUG", raising=False)
    line = refusal(capsys, "eval", earlier, code=1)
    assert "KeyError: 'labels'" in line and "SPGCL_DEBUG=1" in line
    monkeypatch.setenv("SPGCL_DEBUG", "1")
    with pytest.raises(KeyError):
        run(["eval", str(earlier)])


def test_a_real_process_prints_one_line_too(earlier, tmp_path):
    before = snapshot(tmp_path)
    done = subprocess.run(
        [SPGCL, "fit", "--out", str(earlier)], capture_output=True, text=True, timeout=60, cwd=tmp_path
    )
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("spgcl: ") and done.stderr.count("\n") == 1
    assert str(earlier) in done.stderr and "--resume" in done.stderr and "--overwrite" in done.stderr
    assert snapshot(tmp_path) == before
