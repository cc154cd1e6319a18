"""Plain data becomes one HTML file that loads nothing else."""

import html
import json
import re
from importlib.resources import files
from pathlib import Path

from spgcl import __version__
from spgcl.errors import InputError
from spgcl.files import replacing
from spgcl.io.opening import read_text
from spgcl.report.charts import Item

# Only files that begin with this are replaced: they are earlier pages.
_MARK = '<meta name="generator" content="spgcl '
_SCRIPTS = ("charts.js", "search.js", "filter.js", "view.js", "map.js", "page.js")
# None of these can end a script element, start a comment in it, or break a line of JavaScript.
_ESCAPES = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


def require_plotly() -> str:
    """The script of Plotly, or an error that says how to install it."""
    try:
        return files("plotly").joinpath("package_data", "plotly.min.js").read_text(encoding="utf-8")
    except (ModuleNotFoundError, FileNotFoundError):
        raise InputError(
            "the page needs Plotly, which is not installed; install it with pip install 'spgcl[report]'"
        ) from None


def require_replaceable(path: Path) -> None:
    """Refuse to replace a file that is not a page of ours, and to write into a missing folder."""
    if path.is_dir() or not path.parent.is_dir():
        reason = "it is a folder" if path.is_dir() else f"there is no folder {path.parent}"
        raise InputError(f"{path} cannot be written: {reason}; choose another --out")
    if path.exists() and _MARK not in read_text(path, errors="replace")[:1000]:
        raise InputError(f"{path} exists and is not a page of spgcl; choose another --out")


def write_page(path: Path, content: Item) -> int:
    """Write what `describe_run` or `compare_runs` returned, and return the size in bytes."""
    require_replaceable(path)
    parts = {
        "TITLE": html.escape(content["title"]),
        "VERSION": __version__,
        "STYLE": _asset("page.css"),
        "DATA": as_script_json(content),
        "PLOTLY": require_plotly(),
        "SCRIPT": "\n".join(_asset(name) for name in _SCRIPTS),
    }
    # One pass, so that braces in the inserted parts stay as they are.
    text = re.sub(r"{{(\w+)}}", lambda name: parts[name[1]], _asset("page.html"))
    raw = text.encode("utf-8", errors="replace")
    with replacing(path) as temporary:
        temporary.write_bytes(raw)
    return len(raw)


def as_script_json(content: Item) -> str:
    """JSON that is safe inside a script element, whatever its strings hold."""
    return json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")).translate(_ESCAPES)


def _asset(name: str) -> str:
    return files("spgcl.report").joinpath("assets", name).read_text(encoding="utf-8")
