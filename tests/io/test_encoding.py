"""Columns of numbers, categories, dates and text as features: against plain loops, and against skrub."""

import json
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pandas
import pytest
from commands import answer, output, refusal, settings
from graphs import refusing, write_csv
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import spgcl
from spgcl.io.encoding import MOST_CATEGORIES, encoded, learn_encoding
from spgcl.io.features import read_features
from spgcl.io.tables import read_table
from spgcl.io.text_columns import learn_text, text_columns

SIZE = 50
TOWNS = ["Rome", "Oslo", "Bern", None]
WORDS = ["red", "green", "blue", "car", "boat", "house", "garden"]
SMALL = {"steps": 2, "hidden": 8, "pool_size": 20, "seeds": 8, "hops": 1, "positives": 3, "negatives": 4}
QUICK = ["--method", "spgcl", "--threads", 1, *settings(**SMALL)]


def make_frame(size=SIZE, seed=0):
    draw = np.random.default_rng(seed)
    born = [datetime(1990, 1, 1) + timedelta(days=int(days)) for days in draw.integers(0, 9000, size)]
    return pandas.DataFrame(
        {
            "id": [f"p{number}" for number in range(size)],
            "age": np.where(draw.random(size) < 0.2, np.nan, draw.normal(40, 9, size)).round(1),
            "town": [TOWNS[index] for index in draw.integers(0, 4, size)],
            "born": born,
            "about": [" ".join(draw.choice(WORDS, 3)) + f" {number}" for number in range(size)],
            "member": draw.random(size) < 0.5,
        }
    )


@pytest.fixture
def frame():
    return make_frame()


def columns_of(found, prefix):
    return [index for index, name in enumerate(found.names) if name.startswith(prefix)]


def test_every_kind_of_column_becomes_features(frame):
    found = read_features(frame)
    age = frame["age"].to_numpy()
    here = ~np.isnan(age)
    scaled = np.where(here, (age - age[here].mean()) / age[here].std(), 0)
    columns = columns_of(found, "age")
    assert [found.names[column] for column in columns] == ["age", "age missing"]
    assert np.allclose(found.matrix[:, columns], np.column_stack([scaled, ~here]), atol=1e-4)
    towns = columns_of(found, "town")
    assert [found.names[column] for column in towns] == ["town=Bern", "town=Oslo", "town=Rome"]
    for row, town in enumerate(frame["town"]):
        assert found.matrix[row, towns].tolist() == [float(town == name) for name in ("Bern", "Oslo", "Rome")]
    days = np.array([(day - datetime(1970, 1, 1)).days for day in frame["born"]])
    born = columns_of(found, "born")
    assert len(born) == 5 and np.allclose(
        found.matrix[:, born[0]], (days - days.mean()) / days.std(), atol=1e-3
    )
    for row, day in enumerate(frame["born"]):
        assert found.matrix[row, born[3]] == pytest.approx(np.sin(2 * np.pi * day.weekday() / 7), abs=1e-6)
        assert found.matrix[row, born[2]] == pytest.approx(np.cos(2 * np.pi * (day.month - 1) / 12), abs=1e-6)
    assert len(columns_of(found, "about[")) == 30 and len(columns_of(found, "member")) == 1
    assert "'town' as categories" in found.notes[-1] and "'about' as text" in found.notes[-1]


def test_categories_are_those_of_skrub(frame):
    skrub = pytest.importorskip("skrub", reason="no skrub: pip install '.[dev]'")
    theirs = skrub.TableVectorizer().fit_transform(frame[["town", "member"]])
    found = read_features(frame[["id", "town", "member"]])
    for name in ("Bern", "Oslo", "Rome"):
        mine = found.matrix[:, found.names.index(f"town={name}")]
        assert np.array_equal(mine, theirs[f"town_{name}"].to_numpy())


def test_a_probe_reads_as_much_from_it_as_from_that_of_skrub():
    """Classes that numbers, a category, dates and words each tell a little of; half of the rows are new."""
    vectorizer = pytest.importorskip("skrub").TableVectorizer()
    size, draw = 1000, np.random.default_rng(0)
    kinds = draw.integers(0, 2, size)
    unsure = np.where(draw.random((size, 3)) < 0.7, kinds[:, None], draw.integers(0, 2, (size, 3)))
    frame = make_frame(size)
    frame["age"] += 3 * kinds
    frame["town"] = np.where(unsure[:, 0], "Lima", frame["town"].astype(object))
    frame["born"] += pandas.to_timedelta(800 * kinds, unit="D")
    frame["about"] = np.where(unsure[:, 1], "red garden ", "blue boat ") + frame["about"]
    old, new = frame.iloc[: size // 2], frame.iloc[size // 2 :]
    learned = read_features(old)
    ours = learned.matrix, read_features(new, encoding=learned.encoding).matrix
    theirs = [
        np.nan_to_num(step(rows.drop(columns="id")).to_numpy(float))
        for step, rows in ((vectorizer.fit_transform, old), (vectorizer.transform, new))
    ]
    right = []
    for known, unknown in (ours, theirs):
        probe = make_pipeline(StandardScaler(), LogisticRegression(C=0.1)).fit(known, kinds[: size // 2])
        right.append(probe.score(unknown, kinds[size // 2 :]))
    assert right[0] > 0.8 and right[0] > right[1] - 0.03


def test_what_was_learned_is_json_and_applies_to_other_rows(frame):
    found = read_features(frame)
    record = json.loads(json.dumps(found.encoding))
    again = read_features(frame.iloc[::-1].drop(columns="id").assign(id=range(SIZE)), encoding=record)
    assert again.names == found.names and np.array_equal(again.matrix[::-1], found.matrix)
    other = make_frame(5, seed=1)
    with pytest.warns(spgcl.errors.Note, match="5 cells of 'town'"):
        new = read_features(other.assign(town="Paris"), encoding=record)
    assert new.matrix.shape == (5, found.matrix.shape[1])
    assert not new.matrix[:, columns_of(found, "town")].any()
    with refusing("no column 'age'"):
        read_features(other.drop(columns="age"), encoding=record)
    with refusing("'age'", "numbers were learned"):
        read_features(other.assign(age="old"), encoding=record)
    with refusing("'born'", "2024-05-31"):
        read_features(other.assign(born="long ago"), encoding=record)


def test_texts_that_share_words_are_near_and_the_axes_are_those_of_a_decomposition():
    texts = ["red car", "red boat", "green garden", "green gardens", "red cars", "a blue house", ""]
    found = text_columns(texts, learn_text(texts))
    products = found @ found.T
    # All axes are kept: products are those of the weighted, hashed pieces themselves.
    assert np.allclose(np.diag(products)[:-1], 1, atol=1e-3) and not found[-1].any()
    assert products[2, 3] > 0.8 > products[2, 5] and products[0, 4] > products[0, 3]


def test_durations_are_numbers_in_any_unit():
    days = pandas.to_timedelta(np.arange(50), unit="D")
    frame = pandas.DataFrame({"id": range(50), "stay": days, "kind": ["a", "b"] * 25})
    found = read_features(frame)
    assert found.names[0] == "stay" and found.matrix[:, 0].std() == pytest.approx(1, abs=1e-3)
    frame["stay"] = days.astype("timedelta64[s]")
    assert np.array_equal(read_features(frame, encoding=found.encoding).matrix, found.matrix)


def test_few_values_are_categories_and_many_are_text(tmp_path):
    for count, kind in ((MOST_CATEGORIES - 1, "category"), (MOST_CATEGORIES, "text")):
        rows = [(node, f"value {node % count}") for node in range(100)]
        table = read_table(write_csv(tmp_path / "t.csv", "id,x", rows))
        assert learn_encoding(table, [1])["columns"][0]["kind"] == kind


def test_dates_and_mistakes_in_text_files(tmp_path):
    rows = [(n, f"2024-{1 + n % 12:02d}-03 {n % 24:02d}:00", "" if n == 3 else n, "x") for n in range(30)]
    path = write_csv(tmp_path / "t.csv", "id,when,number,kind", rows)
    found = read_features(path)
    assert len(columns_of(found, "when")) == 7 and len(columns_of(found, "number")) == 2
    rows[4] = (4, rows[4][1], "1O", "x")
    with refusing("row 6, column 'number'", "'1O'"):
        read_features(write_csv(tmp_path / "t.csv", "id,when,number,kind", rows))
    rows[4] = (4, rows[4][1], "inf", "x")
    with refusing("column 'number'", "inf"):
        read_features(write_csv(tmp_path / "t.csv", "id,when,number,kind", rows))
    table = read_table(write_csv(tmp_path / "e.csv", "id,empty", [(0, ""), (1, "nan")]))
    with refusing("no column holds a value"):
        encoded(table, learn_encoding(table, [1]))


def test_columns_are_chosen_and_numbers_stay_as_they_are(tmp_path):
    rows = [(node, node / 2, "x" if node % 2 else "y", 3) for node in range(10)]
    path = write_csv(tmp_path / "t.csv", "id,a,kind,b", rows)
    plain = read_features(path, columns=["b", "a"])
    assert plain.encoding is None and plain.names == ("b", "a")
    assert plain.matrix.tolist() == [[3, node / 2] for node in range(10)]
    with refusing("unknown column 'c'"):
        read_features(path, columns=["c"])
    with refusing("--columns"):
        read_features(np.eye(3), columns=["a"])


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make_frame().to_csv("people.csv", index=False)
    write_csv("edges.csv", "source,target", [(f"p{n}", f"p{(3 * n + 1) % SIZE}") for n in range(SIZE)])
    later = pandas.concat([make_frame(), make_frame(1, seed=3).assign(id="new", town="Lima")])
    later.to_csv("later.csv", index=False)
    write_csv("edges-later.csv", "source,target", [("new", "p1"), *((f"p{n}", "p0") for n in range(1, 9))])
    return tmp_path


def test_a_run_keeps_what_it_learned_and_applies_it_to_new_nodes(files, capsys):
    chosen = ["--columns", "age,town,about"]
    answer(capsys, "fit", "edges.csv", "--features", "people.csv", *chosen, "--out", "run", *QUICK)
    recorded = json.loads(Path("run/run.json").read_text())["graph"]
    assert [one["kind"] for one in recorded["encoding"]["columns"]] == ["number", "category", "text"]
    embed = ["embed", "run", "edges-later.csv", "--features", "later.csv", "--out", "v.parquet"]
    _, notes = output(capsys, *embed)
    assert "1 cells of 'town'" in notes
    assert len(spgcl.open("v.parquet")) == SIZE + 1
    own = ["embed", "run", "edges.csv", "--features", "people.csv", "--out", "own.parquet"]
    answer(capsys, *own)
    assert Path("own.parquet").read_bytes() == Path("run/embeddings.parquet").read_bytes()
    assert "--columns" in refusal(capsys, "inspect", "edges.csv", "--structural", "degree", *chosen)
    assert "--label" in refusal(capsys, *embed, "--overwrite", "--label", "x")
    answer(capsys, "eval", "run")


def test_the_same_from_data_frames(files, notes):
    edges, people = pandas.read_csv("edges.csv"), pandas.read_csv("people.csv")
    run = spgcl.fit(edges, people, out="run", method="spgcl", device="cpu", **SMALL)
    assert any("'town' as categories" in line for line in notes) and "encoding" in run.record.graph
    later = run.embed(pandas.read_csv("edges-later.csv"), pandas.read_csv("later.csv"))
    assert any("1 cells of 'town'" in line for line in notes)
    assert later["new"].any() and len(later) == SIZE + 1
