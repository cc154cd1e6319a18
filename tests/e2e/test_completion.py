"""Completion in a real bash: the script that the program prints, sourced, and what TAB offers."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SPGCL = Path(sys.executable).with_name("spgcl")
PRESS_TAB = """
PATH={folder}:$PATH
source <(spgcl --show-completion bash)
COMP_WORDS=({words})
COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
$(complete -p spgcl | sed 's/.*-F \\([^ ]*\\) .*/\\1/') spgcl
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def offered(words: str) -> list[str]:
    script = PRESS_TAB.format(folder=SPGCL.parent, words=words)
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("spgcl si", ["similar"]),
        ("spgcl fit --retr", ["--retrainings"]),
        ("spgcl theory conc", ["concentration"]),
        ("spgcl fit cham", ["chameleon", "chameleon-filtered"]),
        ("spgcl datasets verify minesw", ["minesweeper"]),
        ("spgcl fit cora --method node", ["node2vec"]),
        ("spgcl fit edges", []),
    ],
)
def test_tab_completes_commands_options_and_names(words, names):
    assert offered(words) == names
