"""Kills a command at every file operation, or lets the operation fail, and looks at what is left.

A process imports everything once and forks for each trial, so that a trial takes a fraction of a second.
`python tests/crash_points.py NAME... --every N` prints one line of JSON per command.
"""

import argparse
import builtins
import errno
import gc
import hashlib
import io
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

FAULTS = ("kill", "ENOSPC", "EIO")
# Exit code of a trial that found something.
_FOUND = 98
# A full disk lets no process write; names can still be removed and changed.
WRITING = ("open", "write", "mkdir", "pwrite", "posix_fallocate")


@dataclass
class Shim:
    """Numbers the file operations below a folder; at one of them the process dies or the system refuses."""

    root: str
    at: int = 0
    fault: str = ""
    reads: bool = False
    count: int = 0
    done: list[str] = field(default_factory=list)

    def point(self, name: str, path: object, half: Callable[[], object] = lambda: None) -> None:
        if not isinstance(path, int) and not Path(os.fsdecode(path)).absolute().is_relative_to(self.root):
            return
        self.count += 1
        self.done.append(name)
        if self.fault == "kill" and self.count == self.at:
            half()
            os.kill(os.getpid(), signal.SIGKILL)
        if self.fault == "EIO" and self.count == self.at:
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        if self.fault == "ENOSPC" and self.count >= self.at and name in WRITING:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)


def watched_file(shim: Shim) -> type[io.FileIO]:
    """Files whose every write is an operation."""

    class File(io.FileIO):
        def write(self, data):
            first = bytes(data)[: len(data) // 2]
            shim.point("write", self.name, half=lambda: super(File, self).write(first))
            return super().write(data)

    return File


def watched_open(shim: Shim) -> Callable[..., object]:
    """`open`, for writing an operation."""
    opened, file_type = io.open, watched_file(shim)

    def open_(file, mode="r", buffering=-1, encoding=None, errors=None, newline=None, *more):
        if isinstance(file, int) or not set(mode) & set("wax+"):
            if shim.reads and not isinstance(file, int):
                shim.point("read", file)
            return opened(file, mode, buffering, encoding, errors, newline, *more)
        shim.point("open", file)
        raw = file_type(file, mode.replace("b", "").replace("t", ""))
        stream = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
        return stream if "b" in mode else io.TextIOWrapper(stream, encoding, errors, newline)

    return open_


def watched_call(shim: Shim, name: str, function: Callable[..., object]) -> Callable[..., object]:
    """A function of `os` as an operation; opening counts if something is written."""

    def called(path, *arguments, **options):
        if name != "open" or arguments[0] & (os.O_CREAT | os.O_WRONLY | os.O_RDWR):
            shim.point(name, 0 if options.get("dir_fd") is not None else path)
        return function(path, *arguments, **options)

    return called


@contextmanager
def watched(shim: Shim, *, trades: bool = True) -> Iterator[None]:
    """Pass every operation that changes files to the shim; without `trades`, folders cannot trade names."""
    import spgcl.files
    import spgcl.report.tensorboard
    import spgcl.runs.folder
    import spgcl.scale.ingest

    exchange, open_ = spgcl.files.exchange, watched_open(shim)

    def trade(one: Path, other: Path) -> bool:
        if trades:
            shim.point("exchange", other)
        return trades and exchange(one, other)

    calls = (
        "open",
        "rename",
        "replace",
        "unlink",
        "remove",
        "mkdir",
        "rmdir",
        "fsync",
        "ftruncate",
        "pwrite",
        "posix_fallocate",
    )
    patches = [(os, name, watched_call(shim, name, getattr(os, name))) for name in calls]
    patches += [(io, "open", open_), (builtins, "open", open_), (shutil, "_USE_CP_SENDFILE", False)]
    modules = (spgcl.files, spgcl.runs.folder, spgcl.scale.ingest, spgcl.report.tensorboard)
    patches += [(module, "exchange", trade) for module in modules]
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in patches]
    for owner, name, value in patches:
        setattr(owner, name, value)
    try:
        yield
    finally:
        for owner, name, value in before:
            setattr(owner, name, value)


def spgcl(*arguments: object) -> int:
    """A command in this process."""
    from spgcl.cli import run

    return run([*map(str, arguments)])


def forked(work: Callable[[], int], log: Path) -> tuple[int, str]:
    """The exit code of work done in a fork, negative if it was killed, and what it wrote."""
    child = os.fork()
    if not child:
        code = 99
        try:
            output = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
            os.dup2(output, 1)
            os.dup2(output, 2)
            code = work()
        except BaseException as error:
            os.write(2, repr(error).encode())
        finally:
            sys.stdout.flush()
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), log.read_text(errors="replace")


def stopped(*arguments: object) -> int:
    """A fit that is asked to stop after its first step, as by Ctrl-C."""
    from spgcl.cli import watching

    @contextmanager
    def stopping(*, trains: bool) -> Iterator[Callable[[], bool]]:
        yield lambda: trains

    watching.stopping = stopping
    return run_command(*arguments)


run_command = spgcl
State = dict[str, object]
# Of a record, these differ from run to run, or say how it came about.
_PASSING = ("seconds", "peak_memory_mib", "command", "resumed_from")


def state_of(folder: Path) -> State:
    """What a run and its retrainings are, whatever command made them; empty if no record is there."""
    state: State = {}
    for record in sorted(folder.rglob("run.json")):
        if any(part.startswith(".") for part in record.relative_to(folder).parts):
            continue
        content = json.loads(record.read_text())
        inside = str(record.parent.relative_to(folder))
        state[inside] = {name: value for name, value in content.items() if name not in _PASSING}
        for path in record.parent.rglob("*"):
            part = path.relative_to(record.parent)
            # The time is in the names of events.
            others = (".", "mine", "seed-", "checkpoint", "events.out")
            if path.is_file() and path != record and not any(name.startswith(others) for name in part.parts):
                state[f"{inside}/{part}"] = path.read_bytes()
    return state


def is_unfinished(state: State, new: State) -> bool:
    """Whether every run either does not claim to be finished, or is the new one, whole."""
    finished = {
        name for name, value in state.items() if isinstance(value, dict) and value["status"] == "finished"
    }
    parts = [name for name in new if finished & {name, *map(str, Path(name).parents)}]
    return all(state.get(name) == new[name] for name in parts)


@dataclass(frozen=True)
class Row:
    """A command, what is there before it, and the command that is to succeed after it was killed.

    Attributes:
        before: Makes the folder of a trial.
        command: Run under the shim.
        after: Has to succeed after that; the same command by default.
        outcome: The file or folder that is old or new.
        fresh: Whether an unfinished run is as good as none.
        steps: Whether the command writes several files, one after the other, each of which is old or new.
        trades: Whether the file system can let two folders trade names.
    """

    before: Callable[[], object]
    command: tuple[object, ...]
    after: tuple[object, ...] = ()
    outcome: str = "run"
    fresh: bool = False
    steps: bool = False
    trades: bool = True


class Scenes:
    """What is there before a command, made once and copied."""

    def __init__(self, inputs: Path) -> None:
        self.inputs = inputs
        self.graph = (inputs / "edges.csv", "--structural", "degree", "--threads", 1)
        small = ("--method", "spgcl", "--steps", 2, "--set", "hidden=4", "--checkpoint-every", 0)
        self.small = (*small, "--out", "run", "--json")
        self.fit = ("fit", *self.graph, "--labels", inputs / "labels.csv", *self.small)
        self.disk = ("fit", "./store", "--memory", "1KiB", *self.small, "--set", "batch_norm_rows=pool")
        self.other = (*self.fit, "--seed", 7, "--hold-out-edges", 0.1, "--format", "npy")

    def nothing(self) -> None:
        """An empty folder."""

    def old(self) -> None:
        """A finished run with scores, a page and a user's files."""
        kept = self.inputs / "old"
        if not kept.exists():
            assert run_command(*self.fit) == 0
            assert run_command("report", "run", "--projection", "pca", "--threads", 1) == 0
            Path("run/mine.txt").write_text("mine")
            Path("run/mine").mkdir()
            Path("run").rename(kept)
        shutil.copytree(kept, "run")

    def without_page(self) -> None:
        """A run with scores and without a page."""
        self.old()
        Path("run/report.html").unlink()

    def store(self) -> None:
        """A store of another graph."""
        Path("edges.csv").write_text("source,target\n0,1\n1,2\n")
        assert run_command("ingest", "edges.csv", "--structural", "degree", "--out", "store") == 0

    def on_disk(self) -> None:
        """A store in several blocks, which is not loaded."""
        from spgcl.scale.ingest import LEAST_MEMORY, Sources, ingest

        kept = self.inputs / "disk.store"
        if not kept.exists():
            sources = Sources([str(self.inputs / "edges.csv")], structural="degree")
            ingest(sources, kept, memory=LEAST_MEMORY, block_rows=16)
        shutil.copytree(kept, "store")

    def old_on_disk(self) -> None:
        """A run of a store, with a user's file."""
        self.on_disk()
        assert run_command(*self.disk) == 0
        Path("run/mine.txt").write_text("mine")

    def several(self) -> None:
        """Three retrainings, with scores and a user's file."""
        assert run_command(*self.fit, "--seeds", 3) == 0
        Path("run/eval.json").write_text("{}")
        Path("run/seed-2/mine.txt").write_text("mine")

    def interrupted(self) -> None:
        """A run stopped by Ctrl-C after its first step."""
        code, said = forked(lambda: stopped(*self.fit), self.inputs / "log")
        assert code == 130, said

    def killed(self, *command: object, after: Callable[[], None] | None = None) -> None:
        """What a command leaves that is killed at the end of its second checkpoint."""
        if after:
            after()
        shim = Shim(str(Path.cwd()))

        def until_checkpoint(name: str, path: object, half: object = None) -> None:
            if name == "replace" and "checkpoint" in str(path):
                shim.count += 1
                if shim.count == 2:
                    os.kill(os.getpid(), signal.SIGKILL)

        shim.point = until_checkpoint

        def work() -> int:
            with watched(shim):
                return run_command(*command)

        code, said = forked(work, self.inputs / "log")
        assert code == -signal.SIGKILL, said


def rows(inputs: Path) -> dict[str, Row]:
    """Every command, in a folder of its own; a new command is one row."""
    scenes = Scenes(inputs)
    fit, other, old, disk = scenes.fit, scenes.other, scenes.old, scenes.disk
    resume, overwrite, longer = (*fit, "--resume"), (*other, "--overwrite"), ("--steps", 4)
    report = ("report", "run", "--projection", "pca", "--threads", 1, "--json")
    embed = ("embed", "run", inputs / "edges.csv", "--out", "vectors.parquet", "--overwrite")
    fetch = ("datasets", "fetch", "toy", "--mirror", inputs / "mirror")
    ingest = ("ingest", inputs / "edges.csv", "--structural", "degree", "--out", "store")
    half = partial(scenes.killed, *fit, *longer)
    half_overwritten = partial(scenes.killed, *overwrite, *longer, after=old)
    return {
        "fit": Row(scenes.nothing, fit, resume, fresh=True),
        "fit --seeds": Row(scenes.nothing, (*fit, "--seeds", 2), (*resume, "--seeds", 2), fresh=True),
        "fit --resume": Row(half, (*resume, *longer), fresh=True),
        "fit --resume, interrupted": Row(scenes.interrupted, resume),
        "fit --overwrite": Row(old, overwrite),
        "fit --overwrite, without trades": Row(old, overwrite, trades=False),
        "fit --overwrite --seeds": Row(scenes.several, (*overwrite, "--seeds", 2)),
        "fit --overwrite, then --resume": Row(half_overwritten, (*other, *longer, "--resume")),
        "fit on disk": Row(scenes.on_disk, disk, (*disk, "--resume"), fresh=True),
        "fit on disk --overwrite": Row(scenes.old_on_disk, (*disk, "--seed", 7, "--overwrite")),
        "eval": Row(old, ("eval", "run", "--protocol", "tuned", "--threads", 1, "--json"), steps=True),
        "report": Row(scenes.without_page, report, steps=True),
        "report --tensorboard": Row(old, (*report, "--tensorboard"), steps=True),
        "embed": Row(old, embed, outcome="vectors.parquet"),
        "ingest": Row(scenes.nothing, ingest, (*ingest, "--overwrite"), outcome="store"),
        "ingest --overwrite": Row(scenes.store, (*ingest, "--overwrite"), outcome="store"),
        "fetch": Row(scenes.nothing, fetch, outcome="data", steps=True),
    }


def make_inputs(inputs: Path) -> None:
    """A graph, its labels, and a data set `toy` in a mirror."""
    from spgcl.datasets.entries import Entry, File, Form, entries
    from spgcl.face import progress

    # However slow the machine is, only what a command says in the end counts.
    progress.EVERY = float("inf")
    nodes = range(30)
    edges = "".join(f"{node},{(7 * node + 3) % 30}\n{node},{(node + 1) % 30}\n" for node in nodes)
    (inputs / "edges.csv").write_text(f"source,target\n{edges}")
    (inputs / "labels.csv").write_text("node,label\n" + "".join(f"{node},{node % 2}\n" for node in nodes))
    (inputs / "mirror" / "toy").mkdir(parents=True)
    files = {}
    for name in ("a.bin", "b.bin"):
        content = name.encode() * 50_000
        (inputs / "mirror" / "toy" / name).write_bytes(content)
        form = Form(name, len(content), hashlib.sha256(content).hexdigest())
        files[name] = File("http://127.0.0.1:9/never", form)
    entries()["toy"] = Entry("toy", "planetoid", "accuracy", "", 1, "", "", files)


class Trials:
    """Trials of one row, each in the same folder, made anew."""

    def __init__(self, inputs: Path, name: str, row: Row) -> None:
        self.inputs, self.name, self.row = inputs, name, row
        self.trial, self.template = inputs / "trial", inputs / "template"
        self.failures: list[str] = []
        shutil.rmtree(self.template, ignore_errors=True)
        self._fresh()
        row.before()
        os.chdir(inputs)
        shutil.copytree(self.trial, self.template, symlinks=True)
        self.old = self._state()
        self._fresh()
        shim = Shim(str(self.trial))
        with watched(shim, trades=row.trades):
            assert run_command(*row.command) == 0
        self.operations, self.new = shim.count, self._state()

    def _fresh(self) -> None:
        shutil.rmtree(self.trial, ignore_errors=True)
        if self.template.exists():
            shutil.copytree(self.template, self.trial, symlinks=True)
        else:
            self.trial.mkdir()
        os.chdir(self.trial)

    def _state(self) -> State:
        path = self.trial / self.row.outcome
        if self.row.outcome == "run":
            return state_of(path)
        files = [path] if path.is_file() else path.rglob("*") if path.is_dir() else []
        names = {str(file.relative_to(self.trial)): file for file in files if file.is_file()}
        return {name: file.read_bytes() for name, file in names.items() if not is_passing(file.name)}

    def run(self, at: int, fault: str) -> None:
        """One trial: the command with a fault, what it left, and the command after it."""
        self._fresh()
        shim = Shim(str(self.trial), at=at, fault=fault)

        def work() -> int:
            with watched(shim, trades=self.row.trades):
                return run_command(*self.row.command)

        def go_on() -> int:
            return run_command(*(self.row.after or self.row.command))

        def both() -> int:
            problem = self._problem(work(), log.read_text(errors="replace"), fault)
            if problem:
                print(problem)
                return _FOUND
            log.write_text("")
            return go_on()

        log = self.inputs / "log"
        if fault == "kill":
            problem = self._problem(*forked(work, log), fault) or self._problem_after(*forked(go_on, log))
        else:
            code, said = forked(both, log)
            problem = said if code == _FOUND else self._problem_after(code, said)
        if problem:
            self.failures.append(f"{self.name}, {fault} at operation {at}: {problem}")

    def _problem(self, code: int, said: str, fault: str) -> str:
        lines = [
            line for line in said.splitlines() if not line.startswith(("note: ", " ", "{", "}", "[", "]"))
        ]
        if fault == "kill" and code not in (-signal.SIGKILL, 0):
            return f"exit {code}: {said}"
        if fault != "kill" and (code not in (0, 2) or (code == 2 and not self._is_one_line(lines))):
            return f"exit {code}: {said}"
        # Without trades the folder may be missing; the next command, whatever it is, restores it.
        if not self.row.trades:
            forked(lambda: run_command("similar", "run", 0), self.inputs / "other log")
        return self._problem_of_state()

    def _is_one_line(self, lines: list[str]) -> bool:
        return len(lines) == 1 and lines[0].startswith("spgcl: ") and "internal error" not in lines[0]

    def _problem_of_state(self) -> str:
        state = self._state()
        if state in (self.old, self.new) or (self.row.fresh and is_unfinished(state, self.new)):
            return ""
        either = all(state[name] in (self.old.get(name), self.new.get(name)) for name in state)
        if self.row.steps and either and self.old.keys() & self.new.keys() <= state.keys():
            return ""
        return f"neither the old state nor the new one: {summary(state)}"

    def _problem_after(self, code: int, said: str) -> str:
        if code:
            return f"the next command ended with {code}: {said}"
        if self._state() != self.new:
            return f"the next command left another state: {summary(self._state())}"
        if self.row.outcome == "run":
            # What a store keeps for itself may have a lock that nobody holds.
            hidden = [str(path) for path in self.trial.rglob(".*") if path.parent.name != "derived"]
            lost = [
                path
                for path in self.template.rglob("mine*")
                if not (self.trial / path.relative_to(self.template)).exists()
            ]
            if hidden or lost:
                return f"left over: {hidden}; lost: {lost}"
        return ""


def is_passing(name: str) -> bool:
    """Whether a file is one that a killed process may leave to the next one."""
    return name.startswith(".") or name.endswith(".part")


def summary(state: State) -> list[str]:
    """The state in a few words."""
    return [
        f"{name}: {value['status'] if isinstance(value, dict) else len(value)}"
        for name, value in state.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="The name of a command to try, or part of it.")
    parser.add_argument("--every", type=int, default=1, help="Try one in so many operations.")
    parser.add_argument("--first", type=int, default=0, help="Which of them.")
    parser.add_argument("--faults", default=",".join(FAULTS))
    parser.add_argument("--verbose", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        inputs = Path(folder).resolve()
        os.environ["SPGCL_DATA"] = str(inputs / "trial" / "data")
        make_inputs(inputs)
        silence = os.open(os.devnull, os.O_WRONLY)
        answers = os.dup(1)
        os.dup2(silence, 1)
        if not asked.verbose:
            os.dup2(silence, 2)
        gc.freeze()
        table = rows(inputs)
        for name in [asked.only] if asked.only in table else [name for name in table if asked.only in name]:
            row = table[name]
            started = time.perf_counter()
            trials = Trials(inputs, name, row)
            count = 0
            for fault in asked.faults.split(","):
                for at in range(1 + (asked.first + count) % asked.every, trials.operations + 1, asked.every):
                    trials.run(at, fault)
                    count += 1
            record = {
                "tried": name,
                "operations": trials.operations,
                "trials": count,
                "failures": trials.failures,
                "seconds": round(time.perf_counter() - started, 1),
            }
            os.write(answers, (json.dumps(record) + "\n").encode())


if __name__ == "__main__":
    main()
