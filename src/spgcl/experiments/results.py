"""Results on disk: one JSON line per run, appended whole or not at all, and found again by digest."""

import datetime
import json
import os
import platform
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache, lru_cache
from pathlib import Path
from typing import IO, Any

import torch

from spgcl.engine.device import accelerator_name
from spgcl.errors import InputError
from spgcl.experiments.plan import NAMES, Plan, Run
from spgcl.methods import resolved_settings
from spgcl.methods.presets import PRESETS, known_graphs
from spgcl.runs.record import versions

Record = dict[str, Any]


def append(path: Path, record: Mapping[str, Any]) -> None:
    """Add a line; several processes may do so at once, and a line cut short by a kill does not spoil it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab+") as file, _locked(file):
        file.seek(0, os.SEEK_END)
        end = file.tell()
        file.seek(max(end - 1, 0))
        cut = end and file.read(1) != b"\n"
        file.write(b"\n" * bool(cut) + json.dumps(record).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def _locked(file: IO[bytes]) -> Iterator[None]:
    """Alone with a file, where the system has locks; it is unlocked when it is closed."""
    try:
        import fcntl
    except ImportError:
        # Unix only.
        yield
        return
    fcntl.flock(file, fcntl.LOCK_EX)
    yield


def read_lines(path: Path) -> list[Record]:
    """The records of a results file but superseded ones; none if it does not exist."""
    return [line for line in read_all_lines(path) if "superseded" not in line]


def read_all_lines(path: Path) -> list[Record]:
    """The records of a results file, also those of methods that have changed since.

    A line cut short by a kill is left out.
    """
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            found.append(json.loads(line))
        except ValueError:
            # A kill can cut off the end of a record, never its beginning.
            if not line.startswith("{"):
                raise InputError(f"{path}, line {number} is not JSON; remove that line") from None
    return found


def _lines_of(path: Path) -> list[Record]:
    """The records of a file, read once as long as it does not change."""
    if not path.exists():
        return []
    facts = path.stat()
    return _kept_lines(path, facts.st_mtime_ns, facts.st_size)


@lru_cache(maxsize=64)
def _kept_lines(path: Path, changed: int, size: int) -> list[Record]:
    del changed, size
    return read_lines(path)


class Results:
    """What is known of the runs of a plan, from the results of all experiments and what it takes over."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self.plan, self.folder = plan, folder
        self.stale: set[str] = set()
        self._found: dict[str, Record] = {}
        self._cells: dict[tuple[str, str], list[Record]] = {}
        self.read()

    @property
    def path(self) -> Path:
        """Where new lines go."""
        return self.folder / f"{self.plan.name}.jsonl"

    def read(self) -> None:
        """Read the files again."""
        by_digest, by_settings = self._lines()
        self.stale.clear()
        self._found.clear()
        self._cells.clear()
        for run in self.plan.runs:
            line = by_digest.get(run.digest)
            if line and not is_current(line, run):
                self.stale.add(run.digest)
                line = None
            line = line or by_settings.get(_key(run.measure, run.graph, run.method, run.seed, run.settings))
            if line:
                self._found[run.digest] = line
                self._cells.setdefault((run.row, run.graph), []).append(line)
                self.stale.discard(run.digest)

    def of(self, run: Run) -> Record | None:
        """The result of a run."""
        return self._found.get(run.digest)

    def of_cell(self, row: str, graph: str) -> list[Record]:
        """The results of a row on a graph, by seed."""
        return self._cells.get((row, graph), [])

    def missing(self) -> list[Run]:
        """Runs without a result."""
        return [run for run in self.plan.runs if run.digest not in self._found]

    def _lines(self) -> tuple[dict[str, Record], dict[str, Record]]:
        """Lines by digest, and those from before there were digests by their settings."""
        by_digest, by_settings = {}, {}
        # A measurement may have been made for another table; the plan's own file has the last word.
        others = [name for name in NAMES if name != self.plan.name]
        for name in (*self.plan.reads, *others, self.plan.name):
            for line in _lines_of(self.folder / f"{name}.jsonl"):
                if "digest" in line:
                    by_digest[line["digest"]] = line
                elif key := _key_of_line(line):
                    by_settings[key] = line
        return by_digest, by_settings


def is_current(line: Mapping[str, Any], run: Run) -> bool:
    """Whether a line was measured with today's settings; hyper-parameters added since do not matter."""
    settings = json.loads(json.dumps(run.settings))
    return all(settings.get(name, value) == value for name, value in line.get("settings", {}).items())


def _key_of_line(line: Mapping[str, Any]) -> str | None:
    """The key of a score that names its settings; none if the name means something else today."""
    method, graph, preset = line.get("method"), line.get("dataset"), line.get("preset")
    if "scores" not in line or "splits" in line or not method or not graph:
        return None
    if preset is not None and (preset not in PRESETS or graph not in known_graphs(preset, method)):
        return None
    try:
        settings = resolved_settings(method, preset, graph, line.get("given", {}))
    except InputError:
        # A value that the method no longer has.
        return None
    return _key("scores", graph, method, line["seed"], settings)


def _key(measure: str, graph: str, method: str, seed: int, settings: Mapping[str, Any]) -> str:
    return json.dumps([measure, graph, method, seed, dict(settings)], sort_keys=True)


def machine(device: torch.device) -> Record:
    """Where and when: the processor or accelerator, threads, versions, date, commit."""
    host = _processor()
    return {
        "device": str(device).partition(":")[0],
        "processor": accelerator_name(device) or host,
        "host": host,
        "cores": cores(),
        "threads": torch.get_num_threads(),
        "versions": versions(),
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "commit": _commit(),
    }


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _processor() -> str:
    """The CPU's model if the system reports it, else its architecture."""
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


@cache
def _commit() -> str | None:
    """The commit of the checkout that this package is in, if it is in one."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short=10", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except OSError:
        return None
    return done.stdout.strip() or None
