"""Commands run in this process: their answers, and their refusals of one line."""

import json
import sys
from pathlib import Path

from spgcl.cli import run

# The command as installed, for tests that need a process of its own.
SPGCL = str(Path(sys.executable).with_name("spgcl"))


def answer(capsys, *arguments: object):
    """What a command prints with --json, which is all of stdout."""
    code = run([*map(str, arguments), "--json"])
    captured = capsys.readouterr()
    assert code == 0, captured.err
    return json.loads(captured.out)


def output(capsys, *arguments: object) -> tuple[str, str]:
    """What a command that succeeds writes to stdout and to stderr."""
    code = run([*map(str, arguments)])
    captured = capsys.readouterr()
    assert code == 0, captured.err
    return captured.out, captured.err


def refusal(capsys, *arguments: object, code: int = 2) -> str:
    """The line on stderr with which a command fails, by default with code 2; nothing is on stdout."""
    capsys.readouterr()
    found = run([*map(str, arguments)])
    captured = capsys.readouterr()
    assert found == code, captured
    *notes, line = captured.err.splitlines()
    assert captured.out == "" and all(note.startswith("note: ") for note in notes)
    assert line.startswith("spgcl: ")
    return line


def settings(**values: object) -> list[str]:
    """Hyper-parameters as options."""
    return [part for name, value in values.items() for part in ("--set", f"{name}={value}")]
