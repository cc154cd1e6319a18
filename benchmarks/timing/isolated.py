"""Measurements that need a new process: peak memory never falls, and imports happen once."""

import contextlib
import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from spgcl.errors import InputError

# Module and function of each task; only the one that runs is imported, because its memory is measured.
TASKS = {
    "end-to-end": ("timing.end_to_end", "fit_and_evaluate"),
    "memory": ("timing.memory", "fit_and_embed"),
    "scale": ("timing.scale", "time_size"),
}


class OutOfMemoryError(Exception):
    """The process ran out of memory, or the system killed it for that."""


def run_isolated(task: str, **arguments: Any) -> dict[str, Any]:
    """Run a task in a new interpreter and return its record.

    Args:
        task: One of TASKS.
        arguments: Plain values that the task takes.
    """
    command = [sys.executable, "-m", "timing.isolated", task, json.dumps(arguments)]
    folders = [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, folders))}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    # The exit code of a process that the out-of-memory killer ended.
    if done.returncode == -9:
        raise OutOfMemoryError
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
    except json.JSONDecodeError:
        raise RuntimeError(f"{task} failed: {done.stderr.strip()[-2000:]}") from None
    if answer.get("failure") == "memory":
        raise OutOfMemoryError
    if "failure" in answer:
        raise InputError(answer["failure"])
    return answer


def main(task: str, arguments: str) -> None:
    """Entry point of the new interpreter: only the record goes to stdout."""
    import torch

    answer: dict[str, Any]
    module, function = TASKS[task]
    with contextlib.redirect_stdout(sys.stderr):
        try:
            answer = getattr(importlib.import_module(module), function)(**json.loads(arguments))
        except (MemoryError, torch.OutOfMemoryError):
            answer = {"failure": "memory"}
        except InputError as error:
            answer = {"failure": "memory" if str(error).startswith("out of memory") else str(error)}
    print(json.dumps(answer))


if __name__ == "__main__":
    main(*sys.argv[1:])
