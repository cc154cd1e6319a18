"""Pairs of commands on one run at the same time, their file operations interleaved by a seeded choice.

Whatever the order, each command succeeds or refuses in one line; what a reader shows is of the earlier run or
of the new one; the folder holds one of them, whole, and the next command succeeds.
`python tests/interleavings.py --rounds 5` prints one line of JSON per pair.
"""

import argparse
import gc
import itertools
import json
import os
import random
import re
import select
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from crash_points import Scenes, Shim, forked, make_inputs, run_command, state_of, watched

# What a process gets to wait for the other one, which may be computing, or waiting for a lock.
TURN_SECONDS = 0.003


class Turns(Shim):
    """Asks for permission before every file operation."""

    def __init__(self, root: str, ask: int, answer: int) -> None:
        super().__init__(root, reads=True)
        self.ask, self.answer = ask, answer

    def point(self, name: str, path: object, half: object = None) -> None:
        del name, half
        if isinstance(path, int) or Path(os.fsdecode(path)).absolute().is_relative_to(self.root):
            os.write(self.ask, b"?")
            os.read(self.answer, 1)


@dataclass
class Command:
    """A command and what it may show: of the earlier run, or of the new one."""

    name: str
    words: tuple[object, ...]
    shown: tuple[str, ...] = ()


def started(command: Command, trial: Path, log: Path) -> tuple[int, int, int]:
    """A process that runs a command and asks before every operation: its id, its questions, its answers."""
    asked, ask = os.pipe()
    answer, answered = os.pipe()
    child = os.fork()
    if child:
        os.close(ask)
        os.close(answer)
        return child, asked, answered
    code = 99
    try:
        for stream, path in ((1, f"{log}.out"), (2, f"{log}.err")):
            os.dup2(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC), stream)
        with watched(Turns(str(trial), ask, answer)):
            code = run_command(*command.words)
        sys.stdout.flush()
    finally:
        os._exit(code)


def together(
    pair: tuple[Command, Command], trial: Path, log: Path, chance: random.Random
) -> list[tuple[int, str, str]]:
    """Run two commands, an operation or a few at a time; the exit code and the output of each."""
    processes = [started(command, trial, log.with_name(f"log{index}")) for index, command in enumerate(pair)]
    alive = {asked: (child, answered) for child, asked, answered in processes}
    while alive:
        ready = select.select(list(alive), [], [])[0]
        if len(ready) < len(alive):
            ready = select.select(list(alive), [], [], TURN_SECONDS)[0] if chance.random() < 0.5 else ready
            ready = ready or select.select(list(alive), [], [])[0]
        asked = chance.choice(ready)
        if os.read(asked, 1):
            os.write(alive[asked][1], b"!")
        else:
            for end in (asked, alive.pop(asked)[1]):
                os.close(end)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child, _, _ in processes]
    logs = [log.with_name(f"log{index}") for index in range(2)]
    return [
        (code, Path(f"{one}.out").read_text(), Path(f"{one}.err").read_text())
        for code, one in zip(codes, logs, strict=True)
    ]


class Place:
    """The earlier run, the one that replaces it, and what each command shows of both."""

    def __init__(self, inputs: Path) -> None:
        self.inputs, self.trial = inputs, inputs / "trial"
        scenes = Scenes(inputs)
        self.overwrite = (*scenes.fit, "--seed", 7, "--overwrite")
        report = ("report", "run", "--projection", "pca", "--threads", 1, "--json")
        self.commands = [
            Command("fit --overwrite", self.overwrite),
            Command("fit --resume", (*scenes.fit, "--resume")),
            Command("eval", ("eval", "run", "--protocol", "tuned", "--threads", 1, "--json")),
            Command("report", report),
            Command(
                "embed", ("embed", "run", inputs / "edges.csv", "--out", "v.npy", "--overwrite", "--json")
            ),
            Command("similar", ("similar", "run", 0, "--json")),
        ]
        self.files: list[tuple[object, object]] = []
        self.fresh(scenes.old)
        self.states = [self._results()]
        shown = [self._show()]
        assert run_command(*self.overwrite) == 0
        self.states.append(self._results())
        shown.append(self._show())
        assert all(map(all, self.files)) and self.files[0] != self.files[1]
        for command, *texts in zip(self.commands, *shown, strict=True):
            command.shown = tuple(texts)
        self.scenes = scenes

    def fresh(self, prepare: Callable[[], object]) -> None:
        """The trial's folder with the earlier run in it."""
        shutil.rmtree(self.trial, ignore_errors=True)
        self.trial.mkdir()
        os.chdir(self.trial)
        prepare()

    def _results(self) -> dict[str, object]:
        """What training left, without what other commands add."""
        return {
            name: value
            for name, value in state_of(self.trial / "run").items()
            if not name.endswith((".html", "eval.json", "baselines.json", "map.parquet"))
        }

    def _show(self) -> list[str]:
        """What each reading command shows of the run that is there now."""
        texts = []
        for command in self.commands:
            if command.name.startswith("fit"):
                texts.append("")
                continue
            code, said = forked(lambda command=command: run_command(*command.words), self.inputs / "log")
            assert code == 0, said
            # How long a page is depends on the scores that are there.
            texts.append("" if command.name == "report" else without_notes(said))
        self.files.append(self._written())
        return texts

    def _written(self) -> tuple[object, object]:
        """The vectors that `embed` wrote, and what the page says of its run."""
        vectors, page = self.trial / "v.npy", self.trial / "run" / "report.html"
        said = (
            re.search(r'"Seed","(\d+)".*?"x":{(.*?)}', page.read_text(), re.DOTALL) if page.exists() else None
        )
        return vectors.exists() and vectors.read_bytes(), said and said.groups()

    def attempt(self, pair: tuple[Command, Command], number: int) -> list[str]:
        """What is wrong after one interleaving."""
        self.fresh(self.scenes.old)
        chance = random.Random(f"{pair[0].name} {pair[1].name} {number}")
        wrong = []
        for command, (code, out, err) in zip(
            pair, together(pair, self.trial, self.inputs / "log", chance), strict=True
        ):
            lines = [line for line in err.splitlines() if not line.startswith("note: ")]
            refused = (
                code == 2
                and len(lines) == 1
                and any(
                    words in lines[0]
                    for words in (
                        "in use by",
                        "changed by another",
                        "holds a run",
                        "was replaced",
                        "was run with",
                    )
                )
            )
            if not refused and (code or lines):
                wrong.append(f"{command.name}: exit {code}: {err}")
            elif code == 0 and command.shown[0] and without_notes(out) not in command.shown:
                wrong.append(f"{command.name} shows a mixture: {out[:300]}")
        if self._results() not in self.states:
            wrong.append(f"the folder holds a mixture: {sorted(self._results())}")
        for found, *known in zip(self._written(), *self.files, strict=True):
            if found and found not in known:
                wrong.append("embed or report wrote a mixture")
        if not wrong:
            wrong += self._derived()
        hidden = [path.name for path in self.trial.rglob(".*")]
        return wrong + ([f"left over: {hidden}"] if hidden else [])

    def _derived(self) -> list[str]:
        """Whether the scores in the folder are of the run in it; the next command says so."""
        index = self.states.index(self._results())
        scores = self.trial / "run" / "eval.json"
        evaluation = self.commands[2].shown[index]
        found = json.loads(scores.read_text()) if scores.exists() else {}
        if found.get("protocol") == "tuned" and found != json.loads(evaluation):
            return ["the scores are of another run"]
        code, said = forked(lambda: run_command(*self.commands[5].words), self.inputs / "log")
        return (
            [] if code == 0 and without_notes(said) == self.commands[5].shown[index] else [f"similar: {said}"]
        )


def without_notes(text: str) -> str:
    """The output without notes."""
    return "\n".join(line for line in text.splitlines() if not line.startswith("note: "))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="Interleavings of each pair.")
    parser.add_argument("--only", default="")
    parser.add_argument("--verbose", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        inputs = Path(folder).resolve()
        make_inputs(inputs)
        answers = os.dup(1)
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        if not asked.verbose:
            os.dup2(silence, 2)
        place = Place(inputs)
        gc.freeze()
        for pair in itertools.combinations_with_replacement(place.commands, 2):
            name = " and ".join(command.name for command in pair)
            if asked.only not in name:
                continue
            begun = time.perf_counter()
            failures = [
                f"{name}, {number}: {wrong}"
                for number in range(asked.rounds)
                for wrong in place.attempt(pair, number)
            ]
            record = {
                "pair": name,
                "trials": asked.rounds,
                "failures": failures,
                "seconds": round(time.perf_counter() - begun, 1),
            }
            os.write(answers, (json.dumps(record) + "\n").encode())
        os.chdir("/")


if __name__ == "__main__":
    main()
