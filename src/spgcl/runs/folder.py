"""The folder of a run: what is in it, and how a run takes the place of an earlier one.

A run is built where nobody reads, in `.NAME.new` beside its folder NAME, and takes its place when it is
complete and on disk:

1. `.NAME.new` becomes `.NAME.ready-INODE`, which says that it is complete and which folder it is.
2. The two trade names, in one operation of the file system. Where it has none, NAME becomes `.NAME.old` and
   `.NAME.ready-INODE` becomes NAME.
3. Files that are not of the earlier run move into the new folder, and the earlier run is removed.

So NAME holds the earlier run or the new one, whole, wherever a process is killed, and the next command goes
on (`settle`): `.NAME.ready-INODE` is a new run if that is its inode, and then step 2 comes next; otherwise it
is the earlier run, as `.NAME.old` is, and step 3 does. Before step 1 there is an unfinished run in
`.NAME.new`, which `--resume` continues and `--overwrite` begins again.
"""

import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from spgcl.errors import InputError
from spgcl.files import exchange, is_part, locked, steady, sync_folder

CHECKPOINT = "checkpoint.safetensors"
# Made with labels; obsolete once there are others.
SCORED_FILES = ("eval.json", "report.html")
# Made from embeddings; obsolete once there are others.
DERIVED_FILES = ("map.parquet", *SCORED_FILES)
# What training leaves behind.
RESULTS = ("model.safetensors", "embeddings.parquet", "embeddings.npy", "embeddings.csv")
# The files of a run; only these, and those in its folders, are removed when it is replaced.
RUN_FILES = (
    "run.json",
    CHECKPOINT,
    *RESULTS,
    "nodes.txt",
    "held_out_edges.npz",
    "baselines.json",
    "graph.npz",
    *DERIVED_FILES,
)
# The folders in it, and the names of the run's files there.
FOLDERS = {
    "tensorboard": re.compile(
        r"events\.out\.tfevents\.[^/]+|projector_config\.pbtxt|\d+/embeddings/(tensors|metadata)\.tsv"
    ),
    "embeddings": re.compile(r"part-\d{5,}\.parquet"),
}
# What is being made, among it the layers of a graph on disk.
_UNFINISHED = re.compile(r"\.(seed-\d+|tensorboard|layers)\.new")
_SEED = re.compile(r"seed-\d+")


def named(folder: Path) -> Path:
    """The folder by a name that another could take: not by `.`, `..` or a link."""
    return folder.resolve() if folder.is_symlink() or folder.name in ("", "..") else folder


def replacement(folder: Path) -> Path:
    """Where a run is built that is to replace the one in a folder."""
    return folder.with_name(f".{folder.name}.new")


def holds_run(folder: Path) -> bool:
    """Whether a folder holds a run or retrainings."""
    return any((path / "run.json").exists() for path in _runs_in(folder))


def _runs_in(folder: Path) -> list[Path]:
    """The folder and the folders of retrainings in it."""
    inside = folder.iterdir() if folder.is_dir() else ()
    return [folder, *(path for path in inside if _SEED.fullmatch(path.name) and path.is_dir())]


def is_broken_run(folder: Path) -> bool:
    """Whether the folder has lost its record but holds nothing except the other files of a run."""
    paths = list(folder.iterdir())
    return all(map(_is_of_run, paths)) and any(
        path.name in ("model.safetensors", CHECKPOINT) for path in paths
    )


def _is_of_run(path: Path) -> bool:
    if path.is_dir() and not path.is_symlink():
        own = path.name in FOLDERS and not _of_others(path)
        return own or _UNFINISHED.fullmatch(path.name) is not None
    return path.name in RUN_FILES or is_part(path)


def _of_others(folder: Path) -> list[Path]:
    """What is not the run's in one of its folders."""
    return [
        path
        for path in folder.rglob("*")
        if (path.is_symlink() or not path.is_dir())
        and not is_part(path)
        and not FOLDERS[folder.name].fullmatch(path.relative_to(folder).as_posix())
    ]


def require_own(folder: Path) -> None:
    """Refuse to replace one of a run's folders if it holds what is not the run's."""
    if others := _of_others(folder):
        raise InputError(f"{folder} cannot be replaced: {others[0]} is not of the run; move it away")


def require_replaceable(folder: Path) -> None:
    """Refuse a folder that another cannot trade places with, or that holds what is no file of a run."""
    reason = ""
    if not os.access(folder.parent, os.W_OK | os.X_OK):
        reason = f"{folder.parent} is read-only"
    elif folder.is_mount():
        reason = "another file system begins there"
    elif Path.cwd().is_relative_to(folder.resolve()):
        reason = "this process was started in it; change to another folder"
    for path in (path for run in _runs_in(folder) for path in run.iterdir()):
        if path.is_dir() and path.name in RUN_FILES:
            reason = f"{path} is a folder; move it away"
        elif path.is_dir() and path.name in FOLDERS and (others := _of_others(path)):
            reason = f"{others[0]} is not of the run; move it away"
        elif path.is_dir() and not _SEED.fullmatch(path.name) and not _is_of_run(path) and holds_run(path):
            reason = f"it holds another run, {path}; move that away"
    if reason:
        raise InputError(f"{folder} cannot be replaced: {reason}, or choose another --out")


@contextmanager
def results_in(folder: Path) -> Iterator[Path]:
    """Where to write the results of the run in a folder: there, or if it has some, into its replacement."""
    if not any((folder / name).exists() for name in RESULTS):
        with steady(folder, change=True):
            yield folder
        return
    require_replaceable(folder)
    new = replacement(folder)
    remove_run(new)
    try:
        new.mkdir()
        yield new
    except BaseException:
        remove_run(new)
        raise
    put_in_place(folder)


def put_in_place(folder: Path) -> None:
    """Let the replacement of a folder, which is complete, take its place; see above."""
    new = replacement(folder)
    if folder.exists():
        shutil.copymode(folder, new)
    for path in _runs_in(new):
        sync_folder(path)
    with steady(folder, change=True):
        new.rename(folder.with_name(f".{folder.name}.ready-{new.stat().st_ino}"))
        _finish(folder)


def settle(folder: Path) -> None:
    """Finish what a killed process left half done; nothing if another process is at it."""
    for path in (folder.absolute(), folder.absolute().parent):
        if _leftovers(path):
            with suppress(InputError, OSError), locked(path), steady(path, change=True):
                _finish(path)


def _leftovers(folder: Path) -> list[Path]:
    """Runs beside a folder that are about to take its place, or did not have it any more."""
    name = re.compile(rf"\.{re.escape(folder.name)}\.(ready-\d+|old)")
    try:
        return [folder.parent / found for found in os.listdir(folder.parent) if name.fullmatch(found)]  # noqa: PTH208
    except OSError:
        return []


def _finish(folder: Path) -> None:
    for path in _leftovers(folder):
        if path.name.endswith(f".ready-{path.stat().st_ino}"):
            _trade(path, folder)
    for path in _leftovers(folder):
        if not folder.exists():
            path.rename(folder)
            continue
        _hand_over(path, folder)
        remove_run(path)


def _trade(new: Path, folder: Path) -> None:
    if not folder.exists():
        new.rename(folder)
    elif not exchange(new, folder):
        folder.rename(folder.with_name(f".{folder.name}.old"))
        new.rename(folder)
    sync_folder(folder.parent)


def _hand_over(earlier: Path, folder: Path) -> None:
    """Move what is not the run's from the earlier folder into the new one."""
    for run in _runs_in(earlier):
        target = folder / run.relative_to(earlier)
        for path in [
            path for path in run.iterdir() if path not in _runs_in(earlier) and not _is_of_run(path)
        ]:
            target.mkdir(exist_ok=True)
            name = path.name
            while (target / name).exists():
                name += ".earlier"
            path.rename(target / name)
        if target.exists():
            sync_folder(target)


def remove_run(folder: Path) -> None:
    """Remove a run's files or those of retrainings, and each folder if nothing else is in it."""
    for run in reversed(_runs_in(folder)):
        if not run.is_dir():
            continue
        for path in [path for path in run.iterdir() if _is_of_run(path)]:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        with suppress(OSError):
            run.rmdir()


def remove_files(folder: Path, names: Iterable[str]) -> None:
    """Remove those of the files that exist."""
    for name in names:
        (folder / name).unlink(missing_ok=True)


def tidy(folder: Path) -> None:
    """Remove what only an unfinished run needs, and files that a killed process left half-written."""
    parts = [path.name for path in folder.iterdir() if is_part(path) and path.suffix == ".part"]
    remove_files(folder, [CHECKPOINT, *parts])
    shutil.rmtree(folder / ".layers.new", ignore_errors=True)
