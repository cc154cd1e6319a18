"""A user's own graph: text ids, grown later, weighted, directed, without features."""

import json
import shutil

import networkx
import numpy as np
import pytest
from commands import output, settings
from graphs import write_csv
from pyarrow import parquet

SMALL = settings(hidden=8)
QUICK = ["--threads", "1", *SMALL]
PEOPLE = 120


def friends(count):
    """Two circles of people, odd and even, with some ties between them; the last person is in neither."""
    ring = [(f"p{one}", f"p{(one + 2) % count}") for one in range(count)]
    return [*ring, *((f"p{one}", f"p{one + 1}") for one in range(0, count - 1, 10))]


def traits(names):
    generator = np.random.default_rng(0)
    return [(name, *generator.normal(size=3).round(4), index % 2) for index, name in enumerate(names)]


@pytest.fixture
def files(tmp_path):
    names = [f"p{one}" for one in range(PEOPLE)]
    write_csv(tmp_path / "friends.csv", "who,whom", friends(PEOPLE))
    write_csv(tmp_path / "traits.csv", "name,a,b,c,side", traits([*names, "hermit"]))
    sides = [(name, "odd" if index % 2 else "even") for index, name in enumerate([*names, "hermit"])]
    write_csv(tmp_path / "sides.csv", "name,side", sides)
    return tmp_path


def succeed(capsys, *arguments):
    shown, notes = output(capsys, *arguments, "--json")
    return json.loads(shown), notes


def fit(capsys, out, graph, *more):
    return succeed(capsys, "fit", graph, "--out", out, *more, *QUICK)


def embeddings(path):
    table = parquet.read_table(path)
    vectors = np.stack(table.column("embedding").to_numpy())
    return dict(zip(table.column("node").to_pylist(), vectors, strict=True))


def test_a_csv_with_names_from_training_to_nearest_nodes(files, capsys):
    out = files / "run"
    answer, notes = fit(capsys, out, files / "friends.csv", "--features", files / "traits.csv")
    assert answer["dataset"] == "friends"
    assert "(who, whom)" in notes and "both ways" in notes
    trained = embeddings(out / "embeddings.parquet")
    assert list(trained)[:2] == ["p0", "p1"] and len(trained) == PEOPLE + 1
    # A person without ties is embedded too.
    assert np.isfinite(trained["hermit"]).all() and trained["hermit"].any()

    for protocol in ("paper", "tuned"):
        scores, notes = succeed(
            capsys, "eval", out, "--labels", files / "sides.csv", "--protocol", protocol, "--threads", 1
        )
        assert "10/10/80 splits" in notes
        assert (scores["protocol"], scores["split_source"]) == (protocol, "seeded stratified 10/10/80")
        # The side is among the features.
        assert scores["mean"] > 60
    assert all(score["strength"] > 0 for score in scores["splits"])

    near, _ = succeed(capsys, "similar", out, "hermit", "-k", 500)
    assert len(near) == PEOPLE and "hermit" not in [row["node"] for row in near]


def test_a_grown_graph_is_embedded_without_training(files, capsys):
    out = files / "run"
    fit(capsys, out, files / "friends.csv", "--features", files / "traits.csv")
    trained = embeddings(out / "embeddings.parquet")
    names = [f"p{one}" for one in range(PEOPLE)]
    newcomers = [("newcomer", "p0"), ("newcomer", "hermit")]
    grown = write_csv(files / "grown.csv", "who,whom", [*friends(PEOPLE), *newcomers])
    features = write_csv(files / "more.csv", "name,a,b,c,side", traits([*names, "hermit", "newcomer"]))
    answer, _ = succeed(capsys, "embed", out, grown, "--features", features, "--out", files / "grown.parquet")
    assert (answer["nodes"], answer["width"]) == (PEOPLE + 2, 8)
    after = embeddings(files / "grown.parquet")
    assert list(after) == [*names, "hermit", "newcomer"]
    # Two layers reach two steps: only nodes near the newcomer change.
    assert np.allclose(after["p51"], trained["p51"], atol=1e-6)
    assert not np.allclose(after["p0"], trained["p0"], atol=1e-4)
    assert np.isfinite(after["newcomer"]).all()
    given = [files / "friends.csv", "--features", files / "traits.csv"]
    own, _ = succeed(capsys, "embed", out, *given, "--out", files / "o.parquet")
    assert own["nodes"] == PEOPLE + 1
    assert (files / "o.parquet").read_bytes() == (out / "embeddings.parquet").read_bytes()


@pytest.mark.parametrize("format_", ["parquet", "npy", "csv"])
def test_graphml_whose_ids_are_text_that_looks_like_numbers(tmp_path, capsys, format_):
    path, labels, out = tmp_path / "karate.graphml", tmp_path / "club.csv", tmp_path / "run"
    graph = networkx.karate_club_graph()
    networkx.write_graphml(graph, path)
    write_csv(labels, "id,club", [(node, club) for node, club in graph.nodes(data="club")])
    fit(capsys, out, path, "--structural", "degree", "--format", format_)
    assert json.loads((out / "run.json").read_text())["graph"]["num_nodes"] == 34
    assert succeed(capsys, "eval", out, "--labels", labels, "--threads", 1)[0]["mean"] > 30
    near, _ = succeed(capsys, "similar", out, "33", "-k", 3)
    assert len(near) == 3


def test_direction_weights_and_structure_each_change_the_result(files, capsys):
    weighted = write_csv(
        files / "weighted.csv",
        "who,whom,strength",
        [(*pair, 1 + index) for index, pair in enumerate(friends(PEOPLE))],
    )
    graphs = {
        "plain": [files / "friends.csv", "--features", files / "traits.csv"],
        "directed": [files / "friends.csv", "--features", files / "traits.csv", "--directed"],
        "weighted": [weighted, "--features", files / "traits.csv", "--weight", "strength"],
        "degree": [files / "friends.csv", "--structural", "degree"],
    }
    notes = {name: fit(capsys, files / name, *arguments)[1] for name, arguments in graphs.items()}
    contents = {name: (files / name / "embeddings.parquet").read_bytes() for name in graphs}
    assert len(set(contents.values())) == len(graphs)
    records = {name: json.loads((files / name / "run.json").read_text())["graph"] for name in graphs}
    assert [name for name, record in records.items() if record["directed"]] == ["directed"]
    assert "(degree)" in notes["degree"]
    assert [name for name, text in notes.items() if "both ways" not in text] == ["directed"]
    # The graph is read again with the recorded options.
    for name in ("directed", "weighted"):
        scores, _ = succeed(capsys, "eval", files / name, "--labels", files / "sides.csv", "--threads", 1)
        assert scores["dataset"] == {"directed": "friends", "weighted": "weighted"}[name]


def test_columns_in_another_order_by_name(files, capsys):
    rows = [(index, one, other) for index, (one, other) in enumerate(friends(PEOPLE))]
    write_csv(files / "ties.csv", "year,from,to", rows)
    table = [(*row[1:], row[0]) for row in traits([*(f"p{one}" for one in range(PEOPLE)), "hermit"])]
    write_csv(files / "table.csv", "a,b,c,side,name", table)
    columns = ["--source", "from", "--target", "to", "--features", files / "table.csv", "--id", "name"]
    fit(capsys, files / "one", files / "ties.csv", *columns)
    fit(capsys, files / "two", files / "friends.csv", "--features", files / "traits.csv")
    one, two = ((files / run / "embeddings.parquet").read_bytes() for run in ("one", "two"))
    assert one == two


def test_a_run_moves_with_its_folder(files, capsys):
    fit(capsys, files / "run", files / "friends.csv", "--features", files / "traits.csv")
    shutil.move(files / "run", files / "moved")
    assert len(succeed(capsys, "similar", files / "moved", "p3", "-k", 2)[0]) == 2
    scores, _ = succeed(capsys, "eval", files / "moved", "--labels", files / "sides.csv", "--threads", 1)
    assert scores["mean"] > 60
