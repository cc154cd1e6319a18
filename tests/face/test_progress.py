"""The line of progress on a real terminal, and its absence elsewhere."""

import os
import pty
import subprocess
import sys

import pytest

from spgcl.face.progress import Lines

SCRIPT = """
from spgcl.face.progress import Lines, progress_line
with progress_line({title!r}, total=4, amount={amount!r}, tail={tail!r}, stays=True, loss=9.0) as update:
    if update:
        update(completed=3, loss=0.25)
"""


def on_a_terminal(script: str) -> str:
    main, side = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen([sys.executable, "-c", script], stderr=side, env=environment) as process:
        os.close(side)
        written = b""
        # Reading fails once the last writer has closed the terminal.
        while True:
            try:
                part = os.read(main, 4096)
            except OSError:
                break
            if not part:
                break
            written += part
        os.close(main)
    assert process.returncode == 0
    return written.decode()


@pytest.mark.parametrize(("amount", "shown"), [("steps", "3/4"), ("fraction", "75%"), ("bytes", "3/4 bytes")])
def test_a_terminal_shows_title_amount_and_tail(amount: str, shown: str) -> None:
    written = on_a_terminal(
        SCRIPT.format(title="a title", amount=amount, tail="loss {task.fields[loss]:.2f}")
    )

    assert "a title" in written and shown in written and "loss 0.25" in written


def test_elsewhere_a_line_is_written_now_and_then(monkeypatch, capsys) -> None:
    moments = iter([0.0, 4.0, 12.0, 14.0, 30.0])
    monkeypatch.setattr("spgcl.face.progress.time.monotonic", lambda: next(moments))
    lines = Lines("a title", 100)
    for step in (10, 20, 30, 60):
        lines(completed=step, loss=0.5)
    assert capsys.readouterr().err.splitlines() == [
        "a title: 20 %, loss 0.5, 48 s left",
        "a title: 60 %, loss 0.5, 20 s left",
    ]


def test_what_is_short_writes_nothing_elsewhere() -> None:
    script = SCRIPT.format(title="a title", amount="steps", tail=None)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout == done.stderr == ""
