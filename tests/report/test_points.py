"""The map as arrays: decoded again, every array equals that of a naive loop."""

import base64

import numpy as np
import pytest

from spgcl.errors import InputError
from spgcl.evaluation import most_similar
from spgcl.evaluation.neighbours import nearest_nodes
from spgcl.graph import Graph
from spgcl.report.columns import Column, categorised, read_columns
from spgcl.report.material import MOST_NODES
from spgcl.report.page import write_page
from spgcl.report.points import TEST_OUTCOMES, all_columns, map_data, packed, run_columns, view_data
from spgcl.report.single import describe_run
from spgcl.report.write import silent
from spgcl.runs.plane import principal_plane


def unpacked(item):
    return np.frombuffer(base64.b64decode(item["data"]), dtype=f"<{item['type']}")


def mapped(material, predicted=None):
    view = view_data(material, principal_plane(material.vectors[material.shown]))
    return map_data(material, all_columns(material, run_columns(material, predicted)), [view])


@pytest.mark.parametrize(
    "values, kind",
    [
        (np.array([0, 127, -127]), "i1"),
        (np.array([128]), "i2"),
        (np.array([-40_000, 3]), "i4"),
        (np.array([0.5, np.nan]), "f4"),
        (np.array([69885952.0, 69885953.0, np.nan]), "f8"),
        (np.array([0.1, 1e300]), "f8"),
        (np.array([], dtype=np.int64), "i1"),
    ],
    ids=["bytes", "words", "long", "numbers", "ids", "decimals", "empty"],
)
def test_arrays_survive_in_the_narrowest_type(values, kind):
    item = packed(values)
    assert item["type"] == kind
    np.testing.assert_array_equal(unpacked(item), values)


def test_nearest_nodes_are_those_of_the_search_for_one(monkeypatch):
    vectors = np.random.default_rng(0).standard_normal((50, 7)).astype(np.float32)
    vectors[3] = 0
    vectors[7] *= 1e20
    vectors[8] *= 1e-20
    monkeypatch.setattr("spgcl.engine.similarity._SIMILARITY_ENTRIES", 50 * 8)
    nearest, similarities = nearest_nodes(vectors, 10)
    for row in (0, 3, 8, 49):
        expected, values = most_similar(vectors, row, 10)
        np.testing.assert_allclose(similarities[row], values, atol=1e-6)
        if row != 3:
            np.testing.assert_array_equal(nearest[row], expected)
    assert nearest_nodes(vectors[:4], 10)[0].shape == (4, 3)


@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
def test_the_map_holds_ids_points_nearest_and_neighbours(make_material, directed):
    material = make_material(directed=directed)
    data = mapped(material)
    assert data["ids"] == [str(node) for node in range(40)] and data["total"] == 40
    (view,) = data["views"]
    assert data["directed"] is directed and view["listed"] == 10
    nearest = unpacked(view["nearest"]).reshape(40, 10)
    similarities = unpacked(view["similarities"]).reshape(40, 10) / 1000
    rows, values = most_similar(material.vectors, 7, 10)
    np.testing.assert_array_equal(nearest[7], rows)
    np.testing.assert_allclose(similarities[7], values, atol=6e-4)
    counts, links = unpacked(data["linked"]), unpacked(data["links"])
    starts = np.concatenate([[0], np.cumsum(counts)])
    for node in range(40):
        neighbours = material.graph.columns[material.graph.rows[node] : material.graph.rows[node + 1]]
        assert links[starts[node] : starts[node + 1]].tolist() == neighbours[:12].tolist()
        assert unpacked(data["degrees"])[node] == len(neighbours)


def test_a_node_with_many_neighbours_names_twelve_of_them(make_material):
    data = mapped(make_material(60, degree=25))
    assert unpacked(data["linked"]).max() == 12 < unpacked(data["degrees"]).max()


def test_above_the_limit_a_seeded_sample_is_shown(make_material, monkeypatch):
    assert MOST_NODES == 50_000
    monkeypatch.setattr("spgcl.report.material.MOST_NODES", 30)
    material, again = make_material(80), make_material(80)
    assert material.sampled and len(material.shown) == 30
    np.testing.assert_array_equal(material.shown, again.shown)
    content = describe_run(material, projection="pca", say=silent)
    data = content["map"]
    assert data["ids"] == [str(node) for node in material.shown] and data["total"] == 80
    assert "A seeded sample of 30 of 80 nodes" in content["sections"][1]["text"]
    counts, links = unpacked(data["linked"]), unpacked(data["links"])
    starts = np.concatenate([[0], np.cumsum(counts)])
    for index, node in enumerate(material.shown):
        neighbours = material.graph.columns[material.graph.rows[node] : material.graph.rows[node + 1]]
        expected = [other for other in neighbours if other in material.shown][:12]
        assert material.shown[links[starts[index] : starts[index + 1]]].tolist() == expected
        assert unpacked(data["degrees"])[index] == len(neighbours)


def test_a_page_of_ten_thousand_nodes_stays_below_eight_megabytes(make_material, tmp_path):
    names = np.array([f"a rather long name of node {node:05d}" for node in range(10_000)], dtype=object)
    columns = [Column(f"column {number}", np.linspace(0, 1, 10_000, dtype=np.float32)) for number in range(3)]
    material = make_material(10_000, degree=30, labelled=False, columns=tuple(columns))
    graph = material.graph
    named = Graph(graph.rows, graph.columns, graph.features, names)
    object.__setattr__(material, "graph", named)
    content = describe_run(material, projection="pca", say=silent)
    assert len(content["map"]["ids"]) == 10_000
    assert write_page(tmp_path / "page.html", content) < 8_000_000


def test_colours_are_label_cluster_degree_and_the_columns_of_the_table(make_material):
    column = Column("label", np.linspace(0, 1, 40, dtype=np.float32))
    material = make_material(columns=(column,), class_names=("red", "green"))
    colours = {item["name"]: item for item in mapped(material)["colours"]}
    assert list(colours) == ["label", "cluster", "degree", "label (table)"]
    assert colours["label"]["names"] == ["red", "green", "2"]
    np.testing.assert_array_equal(unpacked(colours["label"]["values"]), material.labels)
    assert len(colours["cluster"]["names"]) == 3 and len(set(unpacked(colours["cluster"]["values"]))) == 3
    assert not any(item.get("errors") for item in colours.values())
    np.testing.assert_array_equal(unpacked(colours["degree"]["values"]), material.graph.degrees)
    unlabelled = [item["name"] for item in mapped(make_material(labelled=False))["colours"]]
    assert unlabelled == ["cluster", "degree"]


def test_predictions_of_the_first_split_become_columns(make_material):
    material = make_material()
    predicted = np.full(40, -1)
    predicted[:10] = material.labels[:10]
    predicted[3] = (predicted[3] + 1) % 3
    colours = {item["name"]: item for item in mapped(material, predicted)["colours"]}
    assert list(colours) == ["label", "predicted", "first split", "cluster", "degree"]
    np.testing.assert_array_equal(unpacked(colours["predicted"]["values"]), predicted)
    outcome = colours["first split"]
    assert outcome["errors"] and outcome["names"] == list(TEST_OUTCOMES)
    words = [outcome["names"][code] for code in unpacked(outcome["values"])]
    assert words == ["right"] * 3 + ["wrong"] + ["right"] * 6 + ["not tested"] * 30


def test_columns_with_a_long_tail_are_skewed():
    generator = np.random.default_rng(0)
    for values, skewed in [
        (generator.standard_normal(1000), False),
        (generator.uniform(size=1000), False),
        (np.exp(2 * generator.standard_normal(1000)), True),
        (np.array([*range(9), 1000, np.nan]), True),
        (np.full(5, np.nan), False),
        (np.full(5, 2.0), False),
    ]:
        assert Column("x", values).skewed is skewed


def test_integers_are_never_rounded(tmp_path):
    exact = [str(69885952 + 10**index) for index in range(10)]
    path = tmp_path / "nodes.csv"
    rows = [f"n{number},{value},{10**18 + number}" for number, value in enumerate(exact)]
    path.write_text("\n".join(["id,account,snowflake", *rows]))
    ids = np.array([f"n{number}" for number in range(10)], dtype=object)
    graph = Graph.from_edges(np.arange(9), np.arange(1, 10), np.eye(10), node_ids=ids)
    account, snowflake = read_columns(path, graph)
    assert [str(int(value)) for value in unpacked(packed(account.values))] == exact
    # No float holds these: they stay text.
    assert snowflake.categories == tuple(str(10**18 + number) for number in range(10))


def test_the_rarest_of_many_categories_become_one():
    texts = ["often"] * 5 + [f"rare {number:02d}" for number in range(40)] + [None]
    column = categorised("kind", texts)
    assert len(column.categories) == 24 and column.categories[-1] == "18 others"
    assert [column.categories[code] for code in column.values[:5]] == ["often"] * 5
    assert column.values[-1] == -1 and column.values[-2] == 23
    # The map shows what each node has.
    assert column.texts == (*texts[:-1], "unknown") and categorised("kind", texts[:9]).texts is None


def table_of(tmp_path, text):
    path = tmp_path / "nodes.csv"
    path.write_text(text)
    graph = Graph.from_edges(
        np.array([0, 1, 2]), np.array([1, 2, 3]), np.eye(4), node_ids=np.array(list("abcd"))
    )
    return path, graph


def test_columns_of_a_table_are_numbers_or_categories(tmp_path):
    numbers = "".join(f"n{number},{number}.5,{number % 2},x\n" for number in range(12))
    path = tmp_path / "nodes.csv"
    path.write_text("id,size,flag,word\n" + numbers)
    ids = np.array([f"n{number}" for number in range(13)], dtype=object)
    graph = Graph.from_edges(np.arange(12), np.arange(1, 13), np.eye(13), node_ids=ids)
    size, flag, word = read_columns(path, graph)
    assert (size.name, size.categories) == ("size", None)
    np.testing.assert_array_equal(size.values, [*np.arange(12) + 0.5, np.nan])
    assert flag.categories == ("0", "1") and flag.values.tolist() == [0, 1] * 6 + [-1]
    assert word.categories == ("x",) and word.values.tolist() == [0] * 12 + [-1]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("id,v\na,1\nz,2\n", "row 3: node 'z'"),
        ("id,v\na,1\nb,1\na,2\n", "row 4: node 'a'"),
        ("id\na\nb\n", "'id'"),
    ],
    ids=["stranger", "twice", "no column"],
)
def test_a_table_that_does_not_fit_is_refused(tmp_path, text, part):
    path, graph = table_of(tmp_path, text)
    with pytest.raises(InputError, match=part):
        read_columns(path, graph)


def test_the_id_column_can_be_named(tmp_path):
    path, graph = table_of(tmp_path, "v,who\nx,d\ny,a\n")
    (column,) = read_columns(path, graph, id_column="who")
    assert column.categories == ("x", "y") and column.values.tolist() == [1, -1, -1, 0]
    with pytest.raises(InputError, match="'whom'"):
        read_columns(path, graph, id_column="whom")
