"""Closed or full outputs, poor encodings, no home, little memory, Ctrl-C at once: one line or silence."""

import errno
import json
import os
import resource
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import settings
from graphs import write_csv

from spgcl.cli import run

SPGCL = [sys.executable, "-m", "spgcl"]
ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


def shell(line: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = line.replace("spgcl", shlex.join(SPGCL), 1)
    return subprocess.run(
        ["bash", "-c", command],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=120,
    )


def is_one_line(text: str) -> bool:
    return text.startswith("spgcl: ") and text.count("\n") == 1 and text.endswith("\n")


@pytest.mark.parametrize("closed", [">&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_d5_closed_streams_are_silence(closed):
    done = shell(f"spgcl methods {closed}")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert shell(f"spgcl methods --nonsense {closed}").returncode == 2


def test_files_never_take_the_place_of_a_closed_stream(tmp_path):
    write_csv(tmp_path / "g.csv", "source,target", [(node, (node + 1) % 9) for node in range(9)])
    fit = f"spgcl fit {tmp_path / 'g.csv'} --method raw --structural degree --format csv"
    assert shell(f"{fit} --out {tmp_path / 'run'} <&- >&- 2>&-").returncode == 0
    assert (tmp_path / "run" / "embeddings.csv").read_text().count("\n") == 10


def test_a_reader_that_leaves_is_no_failure():
    done = shell("spgcl methods --json | head -1; echo ${PIPESTATUS[0]}")
    assert done.stdout.splitlines() == ["[", "0"] and done.stderr == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_d10_a_full_output_says_so():
    done = shell("spgcl methods > /dev/full")
    assert done.returncode == 2 and is_one_line(done.stderr)
    assert os.strerror(errno.ENOSPC).lower() in done.stderr and "make room" in done.stderr


def test_d10_an_encoding_that_lacks_letters_is_escaped(tmp_path):
    write_csv(tmp_path / "g.csv", "source,target", [(f"é{node}", f"é{(node + 1) % 9}") for node in range(9)])
    out = str(tmp_path / "run")
    assert (
        run(["fit", str(tmp_path / "g.csv"), "--structural", "degree", "--method", "raw", "--out", out]) == 0
    )
    done = shell(f"spgcl similar {out} é1", PYTHONIOENCODING="ascii", PYTHONUTF8="1")
    assert done.returncode == 0 and "\\xe9" in done.stdout and done.stderr == ""
    done = shell(f"spgcl similar {out} é1 --json", PYTHONIOENCODING="ascii", PYTHONUTF8="1")
    assert json.loads(done.stdout)[0]["node"].startswith("é")


@pytest.mark.parametrize("name", ["SPGCL_DATA", "XDG_CACHE_HOME"])
def test_d10_the_home_of_nobody_is_named(name):
    done = shell("spgcl datasets list", **{"SPGCL_DATA": "", name: "~nosuchuser/x"})
    assert done.returncode == 2 and is_one_line(done.stderr)
    assert name in done.stderr and "'~nosuchuser/x'" in done.stderr


@pytest.mark.skipif(not ROOT, reason="only root can become a user who is not known")
def test_d10_a_user_without_a_home_is_told_what_to_set():
    lines = [
        "import os, spgcl.cli",
        "list_ = lambda: spgcl.cli.run(['datasets', 'list', '--json'])",
        "list_()",
    ]
    # Afterwards, as another user cannot read this one's modules.
    lines += ["os.setuid(54321)", "del os.environ['HOME']", "raise SystemExit(list_())"]
    environment = {**os.environ, "SPGCL_DATA": "", "XDG_CACHE_HOME": ""}
    command = [sys.executable, "-c", "\n".join(lines)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 2 and is_one_line(done.stderr) and "SPGCL_DATA" in done.stderr


@pytest.mark.parametrize("megabytes", [300, 680, 800])
def test_d10_little_memory_is_one_line(megabytes):
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))

    done = subprocess.run(
        [*SPGCL, "inspect", "csbm-heterophilic"], capture_output=True, text=True, preexec_fn=limit
    )
    assert done.returncode == 2 and is_one_line(done.stderr) and "memory" in done.stderr


def test_d10_memory_that_torch_is_refused_is_one_line(capsys, monkeypatch):
    import torch

    monkeypatch.setattr("spgcl.runs.inspect.inspect_graph", lambda *_, **__: torch.empty(2**60))
    assert run(["inspect", "csbm-heterophilic"]) == 2
    said = capsys.readouterr().err
    assert is_one_line(said) and "memory" in said


def test_d11_ctrl_c_while_modules_are_imported_is_one_line(tmp_path):
    """Signals from the first moment on at which a program can take any."""
    codes = []
    for number in range(6):
        # A module imported by the program says when the import has begun.
        hook = "import sys, spgcl.__main__ as m; print('x', flush=True); m.main()"
        process = subprocess.Popen(
            [sys.executable, "-c", hook, "methods"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert process.stdout.read(1) == "x"
        time.sleep(0.01 + 0.03 * number)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        codes.append(process.returncode)
        assert said in ("", "spgcl: interrupted\n"), said
    assert set(codes) <= {0, 130} and 130 in codes


def test_a_fit_in_little_memory_is_one_line(tmp_path, capsys):
    """The limit is on what a training asks for, not on what imports need."""
    line = ["fit", "--method", "spgcl", "--out", str(tmp_path / "r"), *settings(hidden=2_000_000)]
    assert run([*map(str, line)]) == 2
    assert is_one_line(capsys.readouterr().err) and not (tmp_path / "r").exists()


def test_control_characters_of_names_do_not_reach_the_terminal(tmp_path, capsys):
    name = tmp_path / "a\x1b[31mb.csv"
    assert run(["inspect", str(name), "--structural", "degree"]) == 2
    said = capsys.readouterr().err
    assert "\x1b" not in said and "\\x1b[31m" in said
    write_csv(name, "source,target", [(f"n\x1b]0;x\x07{node}", "other") for node in range(9)])
    out = str(tmp_path / "run")
    assert run(["fit", str(name), "--structural", "degree", "--method", "raw", "--out", out]) == 0
    assert run(["similar", out, "other"]) == 0
    captured = capsys.readouterr()
    assert "\x1b" not in captured.out + captured.err and "\x07" not in captured.out
