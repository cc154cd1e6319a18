"""From plain data to one HTML file that needs nothing else."""

import html
import json
from importlib.resources import files
from pathlib import Path

from spgcl import __version__
from spgcl.errors import InputError
from spgcl.files import replacing
from spgcl.report.charts import Item

# By this a page is known as one of ours, which may be replaced by a newer one.
_MARK = '<meta name="generator" content="spgcl '
_SCRIPTS = ("charts.js", "search.js", "map.js", "page.js")
# None of these can end a script element, start a comment in it, or break a line of JavaScript.
_ESCAPES = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


def require_plotly() -> None:
    """Say how to install what the page is drawn with, before any work is done."""
    _plotly()


def require_replaceable(path: Path) -> None:
    """Refuse to write over a file that is no page of ours, or into a folder that is not there."""
    if path.is_dir() or not path.parent.is_dir():
        what = "is a folder" if path.is_dir() else f"cannot be written, as there is no folder {path.parent}"
        raise InputError(f"{path} {what}; choose another --out")
    if path.exists() and _MARK not in path.read_text(encoding="utf-8", errors="replace")[:1000]:
        raise InputError(f"{path} exists and is no page of spgcl; choose another --out")


def write_page(path: Path, content: Item) -> int:
    """Write the page and return its size in bytes.

    Args:
        path: The file to write; an earlier page there is replaced.
        content: What `describe_run` or `compare_runs` gave.
    """
    require_replaceable(path)
    page = _asset("page.html")
    parts = {
        "TITLE": html.escape(content["title"]),
        "VERSION": __version__,
        "STYLE": _asset("page.css"),
        "DATA": as_script_json(content),
        "PLOTLY": _plotly(),
        "SCRIPT": "\n".join(_asset(name) for name in _SCRIPTS),
    }
    # One pass over the template: what a part contains is never looked at for further places.
    pieces = page.split("{{")
    text = pieces[0]
    for piece in pieces[1:]:
        name, _, rest = piece.partition("}}")
        text += parts[name] + rest
    raw = text.encode("utf-8", errors="replace")
    with replacing(path) as temporary:
        temporary.write_bytes(raw)
    return len(raw)


def as_script_json(content: Item) -> str:
    """JSON that is safe inside a script element, whatever its strings hold."""
    return json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")).translate(_ESCAPES)


def _asset(name: str) -> str:
    return files("spgcl.report").joinpath("assets", name).read_text(encoding="utf-8")


def _plotly() -> str:
    try:
        return files("plotly").joinpath("package_data", "plotly.min.js").read_text(encoding="utf-8")
    except (ModuleNotFoundError, FileNotFoundError):
        raise InputError(
            "the page needs Plotly, which is not installed; install it with pip install 'spgcl[report]'"
        ) from None
