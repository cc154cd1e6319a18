"""A run disappears only when its replacement is complete; one process at a time works on a folder."""

import errno
import fcntl
import json
import os
import resource
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import answer, output, refusal, settings
from graphs import labelled_ring

from spgcl import files
from spgcl.cli import run
from spgcl.errors import InputError
from spgcl.files import exchange, locked, replacing, steady
from spgcl.runs import folder as run_folder
from spgcl.runs.folder import put_in_place, replacement, settle

SPGCL = [sys.executable, "-m", "spgcl"]
QUICK = ["--method", "spgcl", "--steps", 2, "--threads", 1, *settings(hidden=4)]


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    """A graph, and a run on it with everything that commands add to one."""
    home = tmp_path_factory.mktemp("trained")
    fit = ["fit", *labelled_ring(home), *QUICK]
    assert run([*map(str, fit), "--out", str(home / "prev")]) == 0
    assert run(["eval", str(home / "prev"), "--threads", "1"]) == 0
    return home


@pytest.fixture
def home(trained, tmp_path, monkeypatch) -> Path:
    shutil.copytree(trained, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


FIT = ["fit", "./g.csv", "--structural", "degree", *QUICK, "--out", "prev"]


def contents(folder: Path) -> dict[str, bytes | None]:
    paths = sorted(folder.rglob("*"))
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in paths}


def test_d1_a_name_that_is_not_utf8_is_refused_before_anything_is_written(home, capsys):
    before = contents(home)
    bad = os.fsdecode(b"./bad\xff.csv")
    shutil.copyfile("g.csv", bad)
    assert "UTF-8" in refusal(capsys, "fit", bad, *FIT[2:], "--overwrite")
    assert "UTF-8" in refusal(capsys, *FIT[:-1], os.fsdecode(b"out\xff"))
    Path(bad).unlink()
    assert contents(home) == before


def test_d1_a_full_disk_leaves_the_earlier_run(home):
    """The limit on the size of a file stands for the end of the disk: the system refuses to write more."""
    before = contents(home)

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))

    command = [*SPGCL, *map(str, FIT), "--set", "hidden=512", "--overwrite"]
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=limit)
    assert done.returncode == 2, done.stderr
    line = done.stderr.splitlines()[-1]
    assert line.startswith("spgcl: ") and os.strerror(errno.EFBIG).lower() in line and "prev" in line
    assert contents(home) == before


def test_d1_a_folder_in_the_way_is_refused_before_anything_is_removed(home, capsys):
    for name in ("report.html", "map.parquet"):
        (home / "prev" / name).mkdir()
    before = contents(home)
    line = refusal(capsys, *FIT, "--overwrite")
    assert "prev/map.parquet is a folder" in line or "prev/report.html is a folder" in line
    assert contents(home) == before


def test_d2_a_folder_that_lost_its_record_is_begun_again(home, capsys):
    for option in ("--resume", "--overwrite"):
        shutil.copytree(home / "prev", home / "w")
        (home / "w" / "run.json").unlink()
        assert "not a run" in refusal(capsys, *FIT[:-1], "w")
        answer(capsys, *FIT[:-1], "w", option)
        for name in ("embeddings.parquet", "model.safetensors"):
            assert (home / "w" / name).read_bytes() == (home / "prev" / name).read_bytes()
        shutil.rmtree(home / "w")
    # A folder with anything else in it is a user's.
    shutil.copytree(home / "prev", home / "w")
    (home / "w" / "run.json").rename(home / "w" / "mine.json")
    assert "not a run" in refusal(capsys, *FIT[:-1], "w", "--overwrite")


def test_an_overwritten_run_keeps_files_of_others_and_who_may_read_it(home, capsys):
    (home / "prev" / "mine.txt").write_text("mine")
    (home / "prev" / "notes").mkdir()
    (home / "prev" / "tensorboard").mkdir()
    (home / "prev" / "layers").mkdir()
    (home / "prev" / "layers" / "mine.npy").write_text("mine")
    (home / "prev").chmod(0o700)
    output(capsys, *FIT, "--seed", 1, "--overwrite")
    assert sorted(contents(home / "prev")) == [
        *("embeddings.parquet", "layers", "layers/mine.npy", "mine.txt", "model.safetensors", "notes"),
        "run.json",
    ]
    assert stat.S_IMODE((home / "prev").stat().st_mode) == 0o700
    assert not [path for path in home.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("name", ["embeddings/mine.npy", "tensorboard/mine/events.out.tfevents.1"])
def test_a_user_file_in_a_folder_of_the_run_is_not_removed_with_it(home, capsys, name):
    mine = home / "prev" / name
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    before = contents(home)
    command = ["report", "prev", "--tensorboard"] if "tensorboard" in name else [*FIT, "--overwrite"]
    for given in (command, [*FIT, "--overwrite"]):
        assert name in refusal(capsys, *given)
    assert contents(home) == before
    # Those of the run are replaced with it.
    shutil.rmtree(mine.parent)
    for own in ("embeddings/part-00000.parquet", "tensorboard/00000/embeddings/tensors.tsv"):
        (home / "prev" / own).parent.mkdir(parents=True, exist_ok=True)
        (home / "prev" / own).touch()
    output(capsys, *FIT, "--seed", 1, "--overwrite")
    assert sorted(path.name for path in (home / "prev").iterdir()) == [
        *("embeddings.parquet", "model.safetensors", "run.json")
    ]


def test_the_earlier_run_stays_until_the_new_one_is_finished(home, capsys, monkeypatch):
    before = contents(home / "prev")
    command = [*FIT, "--seed", 1, "--checkpoint-every", 0]
    with monkeypatch.context() as patch:
        patch.setattr("spgcl.cli.watching.stopping", lambda **_: stopped())
        assert run([*map(str, command), "--overwrite"]) == 130
    assert contents(home / "prev") == before and "keeps its earlier run" in capsys.readouterr().err
    # What is in the folder can be continued as well, which leaves it as it is.
    _, noted = output(capsys, *FIT, "--resume")
    assert contents(home / "prev") == before and "another run" in noted
    assert answer(capsys, *command, "--resume")["resumed_from"] == 1
    assert json.loads((home / "prev" / "run.json").read_text())["seed"] == 1
    assert not replacement(home / "prev").exists()


class stopped:  # noqa: N801
    """Ctrl-C after the first step."""

    def __enter__(self):
        return lambda: True

    def __exit__(self, *_):
        return None


@pytest.mark.parametrize("where", ["link", "inside", "mount", "crowd"])
def test_what_cannot_be_replaced_is_refused_first(home, capsys, monkeypatch, where):
    out, words = "prev", "cannot be replaced"
    if where == "link":
        (home / "link").symlink_to(home / "prev")
        output(capsys, *FIT[:-1], "link", "--seed", 1, "--overwrite")
        assert (home / "link").is_symlink() and json.loads(Path("prev/run.json").read_text())["seed"] == 1
        return
    if where == "inside":
        monkeypatch.chdir(home / "prev")
        out, words = ".", "change to another folder"
    elif where == "mount":
        monkeypatch.setattr(Path, "is_mount", lambda path: path.name == "prev")
    else:
        output(capsys, *FIT[:-1], "several", "--seeds", 2)
        shutil.copytree(home / "prev", home / "several" / "other")
        out, words = "several", "another run"
    before = contents(home)
    more = ["--seeds", 2] if where == "crowd" else []
    assert words in refusal(capsys, "fit", home / "g.csv", *FIT[2:-1], out, *more, "--overwrite")
    assert contents(home) == before


def test_half_a_replacement_is_finished_by_the_next_command(home, capsys, monkeypatch):
    """Where folders cannot trade names, the folder may be missing when the process dies."""
    monkeypatch.setattr(run_folder, "exchange", lambda *_: False)
    shutil.copytree(home / "prev", replacement(home / "prev"))
    (home / "prev" / "mine.txt").write_text("mine")
    ready = home / f".prev.ready-{replacement(home / 'prev').stat().st_ino}"
    replacement(home / "prev").rename(ready)
    (home / "prev").rename(home / ".prev.old")
    assert len(answer(capsys, "similar", home / "prev", 0)) == 10
    assert (home / "prev" / "mine.txt").read_text() == "mine"
    assert not [path for path in home.iterdir() if path.name.startswith(".")]
    # Without its replacement, the earlier run is what there is.
    (home / "prev").rename(home / ".prev.old")
    settle(home / "prev")
    assert (home / "prev" / "run.json").exists()


def test_a_user_file_of_the_same_name_survives_too(home):
    (home / "prev" / "mine.txt").write_text("mine")
    new = replacement(home / "prev")
    new.mkdir()
    (new / "mine.txt").write_text("of the new folder")
    put_in_place(home / "prev")
    assert (home / "prev" / "mine.txt").read_text() == "of the new folder"
    assert (home / "prev" / "mine.txt.earlier").read_text() == "mine"


def test_d4_two_fits_into_one_folder_leave_one_run_whole(home):
    command = [*map(str, [*SPGCL, *FIT[:-1], "both", "--set", "hidden=64", "--json"])]
    started = [
        subprocess.Popen(
            [*command, "--steps", "40", "--seed", str(seed)],
            stderr=subprocess.PIPE,
            text=True,
            stdout=subprocess.DEVNULL,
        )
        for seed in (0, 1)
    ]
    said = [process.communicate()[1].splitlines()[-1] for process in started]
    codes = [process.returncode for process in started]
    assert sorted(codes) == [0, 2], said
    winner, loser = codes.index(0), codes.index(2)
    assert "both" in said[loser] and ("in use by process" in said[loser] or "--resume" in said[loser])
    again = ["--steps", "40", "--seed", str(winner), "--out", "alone"]
    alone = subprocess.run([*command, *again], capture_output=True)
    assert alone.returncode == 0
    assert json.loads(Path("both/run.json").read_text())["seed"] == winner
    for name in ("embeddings.parquet", "model.safetensors"):
        assert Path("both", name).read_bytes() == Path("alone", name).read_bytes()


def test_d4_a_folder_in_use_names_the_process(home, capsys):
    with locked(home / "prev"):
        line = refusal(capsys, *FIT, "--overwrite")
    assert f"process {os.getpid()}" in line and str(Path("prev")) in line and "another folder" in line
    with locked(home / "new" / "run"):
        refusal(capsys, *FIT[:-1], "new/run")
    assert not (home / "new").exists()
    output(capsys, *FIT, "--overwrite")


def test_a_dead_process_holds_no_lock(home):
    (home / ".prev.lock").write_text("process 1 on nowhere")
    with locked(home / "prev"):
        assert str(os.getpid()) in (home / ".prev.lock").read_text()
    assert not (home / ".prev.lock").exists()


def test_a_run_that_changes_between_the_check_and_the_training_is_refused(home, capsys, monkeypatch):
    from spgcl.runs import plan

    wait = plan.observer
    monkeypatch.setattr(
        plan,
        "observer",
        lambda *arguments, **more: shutil.copytree("prev", "new") and wait(*arguments, **more),
    )
    line = refusal(capsys, *FIT[:-1], "new")
    assert "holds a run already" in line
    shutil.rmtree(home / "new")
    assert "changed by another process" in refusal(capsys, *FIT[:-1], "new", "--overwrite")


def test_scores_of_a_run_that_was_replaced_meanwhile_are_not_kept(home, capsys, monkeypatch):
    from spgcl.runs import evaluate

    scored = evaluate.cluster

    def replaced(*arguments, **more):
        shutil.rmtree("prev")
        assert run([*map(str, FIT), "--seed", "1"]) == 0
        return scored(*arguments, **more)

    monkeypatch.setattr(evaluate, "cluster", replaced)
    (home / "prev" / "eval.json").unlink()
    command = [*FIT, "--labels", "labels.csv", "--overwrite"]
    output(capsys, *command)
    assert "changed by another process" in refusal_after(capsys, "eval", "prev", "--threads", 1)
    assert not (home / "prev" / "eval.json").exists()


def refusal_after(capsys, *arguments: object) -> str:
    """The last line of a command that fails after other commands have printed."""
    assert run([*map(str, arguments)]) == 2
    return capsys.readouterr().err.splitlines()[-1]


def test_readers_wait_for_a_writer_and_fail_if_it_never_ends(home, monkeypatch):
    monkeypatch.setattr(files, "PATIENCE", 0.05)
    held = os.open("prev", os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    started = time.monotonic()
    with pytest.raises(InputError, match="replaced while it was read"), steady(home / "prev"):
        assert time.monotonic() - started >= 0.05
        (home / "prev").rename(home / "moved")
        (home / "prev").mkdir()
    os.close(held)


def test_folders_trade_names_in_one_operation(tmp_path):
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    if not exchange(tmp_path / "one", tmp_path / "other"):
        pytest.skip("this file system knows no such operation")
    assert (tmp_path / "one" / "other").exists() and (tmp_path / "other" / "one").exists()
    with pytest.raises(FileNotFoundError):
        exchange(tmp_path / "one", tmp_path / "absent")


def test_a_living_process_keeps_its_half_written_file(tmp_path):
    with replacing(tmp_path / "a") as outer, replacing(tmp_path / "b") as inner:
        outer.write_text("a")
        inner.write_text("b")
        other = tmp_path / ".b.1.part"
        other.write_text("of a process that is writing")
        held = os.open(other, os.O_RDWR)
        fcntl.flock(held, fcntl.LOCK_EX)
    assert other.exists()
    os.close(held)
    with replacing(tmp_path / "b") as inner:
        inner.write_text("b")
    assert not other.exists() and sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]
