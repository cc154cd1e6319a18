"""The notebook of the first example runs in a kernel of its own, and was committed with what it prints."""

from pathlib import Path

import pytest

FIRST = Path(__file__).parents[2] / "docs" / "first.ipynb"


def shown(notebook):
    """Per code cell, the types of its outputs, and the last cell's table."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [[one.output_type for one in cell.outputs] for cell in cells], cells[-1].outputs[-1].data[
        "text/html"
    ]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_first_example_runs_as_committed(tmp_path):
    pytest.importorskip("ipykernel")
    nbclient = pytest.importorskip("nbclient")
    committed, again = (pytest.importorskip("nbformat").read(FIRST, as_version=4) for _ in range(2))
    for cell in again.cells:
        if cell.cell_type == "code":
            cell.outputs = []
    nbclient.NotebookClient(again, timeout=120, resources={"metadata": {"path": tmp_path}}).execute()
    (before, text), (after, repeated) = shown(committed), shown(again)
    assert before == after == [["execute_result"]] * len(before)
    assert text[: len("<table><caption>Accuracy 90")] == repeated[: len("<table><caption>Accuracy 90")]
    assert (tmp_path / "runs" / "first" / "run.json").exists()
