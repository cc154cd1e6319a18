import sys
from xml.etree import ElementTree

import pytest
from commands import answer, output, refusal
from graphs import write_csv
from theory_graphs import mixed

THEOREMS = {
    "concentration": ("drawn", "graph", "within"),
    "factorisation": ("random", "minimiser", "descent"),
    "similarity": ("uniform", "by_degree", "phi"),
    "bound": ("phi", "eigenvalue", "error"),
}
LABELLED = [name for name in THEOREMS if name != "factorisation"]


@pytest.fixture
def own(tmp_path, monkeypatch):
    """The options of a graph in files, and a file of labels."""
    monkeypatch.chdir(tmp_path)
    graph, labels = mixed()
    ends = zip(*graph.adjacency.nonzero(), strict=True)
    write_csv("edges.csv", "a,b", [(one, other) for one, other in ends if one < other])
    write_csv("features.csv", "id,a,b,c,d,e", [(node, *row) for node, row in enumerate(graph.features)])
    write_csv("labels.csv", "id,class", enumerate(labels))
    return ["edges.csv", "--features", "features.csv"]


@pytest.mark.parametrize("name", THEOREMS)
def test_the_default_graph_as_json_and_as_tables(capsys, name):
    record = answer(capsys, "theory", name)
    assert (record["theorem"], record["name"]) == (name, "csbm-heterophilic")
    assert set(THEOREMS[name]) <= set(record)
    shown, _ = output(capsys, "theory", name)
    assert all(sentence in shown for sentence in record["verdict"])


@pytest.mark.parametrize("name", THEOREMS)
def test_the_users_own_graph(capsys, own, name):
    given = [] if name == "factorisation" else ["--labels", "labels.csv"]
    record = answer(capsys, "theory", name, *own, *given)
    assert (record["name"], record["nodes"]) == ("edges", 60)


@pytest.mark.parametrize("name", LABELLED)
def test_labels_are_asked_for(capsys, own, name):
    assert "--labels FILE" in refusal(capsys, "theory", name, *own)


@pytest.mark.parametrize("name", THEOREMS)
def test_every_theorem_is_drawn(capsys, tmp_path, name):
    drawn = tmp_path / "new" / "plot.svg"
    record = answer(capsys, "theory", name, "csbm-homophilic", "--plot", drawn)
    root = ElementTree.parse(drawn).getroot()
    assert root.tag.endswith("svg")
    words = " ".join(root.itertext())
    assert "csbm-homophilic" in words and record["verdict"][0] in words


def test_a_plot_is_an_image_of_its_format(capsys, tmp_path):
    output(capsys, "theory", "bound", "--plot", tmp_path / "bound.PNG")
    assert (tmp_path / "bound.PNG").read_bytes().startswith(b"\x89PNG")
    assert "bound.pdf" in refusal(capsys, "theory", "bound", "--plot", tmp_path / "bound.pdf")


def test_without_matplotlib_the_extra_is_named(capsys, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert "spgcl[report]" in refusal(capsys, "theory", "similarity", "--plot", tmp_path / "plot.svg")


def test_options_reach_the_theorem(capsys):
    few = ["--positives", 3, "--dimensions", 4]
    for name in ("factorisation", "similarity", "bound"):
        record = answer(capsys, "theory", name, *few)
        assert (record["positives"], record["dimensions"]) == (3, 4)
    for name in ("concentration", "bound"):
        assert answer(capsys, "theory", name, "--delta", "0.2")["delta"] == 0.2
    assert answer(capsys, "theory", "bound", "--seed", 1)["phi"] != answer(capsys, "theory", "bound")["phi"]


def test_the_built_in_graphs_show_both_sides_of_the_bound(capsys):
    vague = answer(capsys, "theory", "bound", "csbm-heterophilic")
    assert vague["spectral_bound"] > 1 and "vacuous" in vague["verdict"][0]
    clear = answer(capsys, "theory", "bound", "csbm-homophilic")
    assert clear["error"] < clear["spectral_bound"] < 1 and "vacuous" not in clear["verdict"][0]
    # As printed, with the second term, neither says anything.
    assert vague["bound"] > 1 and clear["bound"] > 1 and "vacuous" in clear["verdict"][1]


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["concentratoin"], "concentratoin"),
        (["bound", "csbm-heterophilc"], "csbm-heterophilic"),
        (["bound", "--dimensions", "0"], "dimensions"),
        (["bound", "--delta", "1.5"], "1.5"),
        (["similarity", "--positives", "1500"], "1500"),
        (["factorisation", "--dimensions", "1499"], "1499"),
        (["concentration", "--structural", "degree"], "--structural"),
    ],
)
def test_bad_input_is_one_line(capsys, arguments, part):
    assert part in refusal(capsys, "theory", *arguments)
