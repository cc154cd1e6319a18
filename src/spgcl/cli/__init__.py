"""The command line: one file per command, errors as one line, exit codes 0, 1, 2 and 130."""

import errno
import io
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from spgcl import __version__
from spgcl.cli.compare import compare
from spgcl.cli.datasets import app as datasets_app
from spgcl.cli.embed import embed
from spgcl.cli.evaluate import evaluate
from spgcl.cli.fit import fit
from spgcl.cli.ingest import ingest
from spgcl.cli.inspect import inspect
from spgcl.cli.methods import methods
from spgcl.cli.output import note
from spgcl.cli.report import report
from spgcl.cli.reproduce import reproduce
from spgcl.cli.similar import similar
from spgcl.cli.theory import app as theory_app
from spgcl.errors import InputError, Note, printable

app = typer.Typer(
    name="spgcl",
    help="Node embeddings without labels, for homophilic and heterophilic graphs.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command("fit")(fit)
app.command("eval")(evaluate)
app.command("compare")(compare)
app.command("embed")(embed)
app.command("similar")(similar)
app.command("inspect")(inspect)
app.command("methods")(methods)
app.command("ingest")(ingest)
app.command("report")(report)
app.command("reproduce")(reproduce)
app.add_typer(datasets_app, name="datasets")
app.add_typer(theory_app, name="theory")

_NO_MEMORY = "out of memory; allow this process more (ulimit -v), or choose smaller settings"
# The base of Typer's errors: new versions bring their own copy of Click, old ones use the installed one.
ClickError: type[Exception] = typer.BadParameter.__mro__[2]


def _print_version(asked: bool) -> None:
    if asked:
        print(f"spgcl {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version),
    ] = False,
) -> None:
    """Node embeddings without labels, for homophilic and heterophilic graphs."""
    del version


def run(arguments: Sequence[str], commands: typer.Typer = app, name: str = "spgcl") -> int:
    """Run a command line and return its exit code; every failure is one line on stderr."""
    try:
        with _printed_notes():
            # `fit` records the arguments, which it finds as the context's `obj`.
            code = typer.main.get_command(commands).main(
                args=list(arguments), prog_name=name, standalone_mode=False, obj=list(arguments)
            )
        return int(code or 0)
    except (InputError, OSError) as error:
        return _fail(_one_line(error), 2)
    except MemoryError:
        return _fail(_NO_MEMORY, 2)
    except ClickError as error:
        context = getattr(error, "ctx", None)
        hint = f" (see {context.command_path} --help)" if context is not None else ""
        message = error.format_message() if hasattr(error, "format_message") else str(error)
        # Newer versions of Typer check by pydantic, which begins so.
        message = message.replace("Value error, ", "")
        return _fail(f"{message.rstrip('.') or 'no command given'}{hint}", 2)
    except SystemExit:
        # Nobody reads on, as in `spgcl methods | head -1`.
        return 0
    except (KeyboardInterrupt, typer.Abort):
        return _fail("interrupted", 130)
    except Exception as error:
        if isinstance(error, (ImportError, RuntimeError)) and _lacks_memory(error):
            return _fail(_NO_MEMORY, 2)
        if os.environ.get("SPGCL_DEBUG"):
            raise
        what = f"internal error: {type(error).__name__}: {_one_line(error)}"
        return _fail(f"{what} (SPGCL_DEBUG=1 prints the traceback)", 1)


@contextmanager
def _printed_notes() -> Iterator[None]:
    """Print the library's notes, every time one is issued."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", Note)
        show = warnings.showwarning

        def print_note(message: Warning | str, category: type[Warning], *details: Any, **more: Any) -> None:
            if issubclass(category, Note):
                note(str(message))
            else:
                show(message, category, *details, **more)

        warnings.showwarning = print_note
        yield


def _lacks_memory(error: Exception) -> bool:
    """Whether libraries that could not be loaded, or torch, say that memory was refused."""
    words = ("failed to map", "annot allocate", "an't allocate", "out of memory")
    return any(word in str(error) for word in words)


def _one_line(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        room = "; make room, or write elsewhere" if error.errno == errno.ENOSPC else ""
        return f"{error.filename or 'standard output'}: {error.strerror.lower()}{room}"
    return str(error)


def _fail(message: str, code: int) -> int:
    print(f"spgcl: {printable(message)}", file=sys.stderr)
    return code


def main() -> None:
    """Run the command line that this process was started with."""
    _open_streams()
    code = run(sys.argv[1:])
    try:
        sys.stdout.flush()
    except OSError as error:
        code = code if isinstance(error, BrokenPipeError) else _fail(_one_line(error), 2)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


def _open_streams() -> None:
    """Give closed streams somewhere to write to, and write what an encoding lacks as escapes."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            # The lowest free number, which no other file may get.
            os.open(os.devnull, os.O_RDWR)
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "r" if number == 0 else "w"))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
