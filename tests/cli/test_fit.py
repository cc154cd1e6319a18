"""Options of `spgcl fit` that change what a run holds: retrainings, held-out edges, health curves."""

import json
import os
import signal

import numpy as np
import pytest
from commands import answer, output, refusal, settings
from graphs import write_csv

import spgcl
from spgcl.cli.watching import stopping as _stopping

QUICK = ["--method", "spgcl", "--threads", 1, *settings(hidden=8, pool_size=64, seeds=16, hops=1)]


def record_of(folder) -> dict:
    return json.loads((folder / "run.json").read_text())


def test_retrainings_are_runs_of_their_own_and_the_deviation_is_over_them(tmp_path, capsys):
    out = tmp_path / "runs"
    several = answer(
        capsys, "fit", "--out", out, "--seeds", 3, "--seed", 4, "--steps", 5, "--hold-out-edges", 0.1, *QUICK
    )
    assert several["run"] == str(out)
    assert [one["run"] for one in several["runs"]] == [str(out / f"seed-{seed}") for seed in (4, 5, 6)]
    embeddings = [(out / f"seed-{seed}" / "embeddings.parquet").read_bytes() for seed in (4, 5, 6)]
    assert len(set(embeddings)) == 3
    alone = tmp_path / "alone"
    answer(capsys, "fit", "--out", alone, "--seed", 5, "--steps", 5, "--hold-out-edges", 0.1, *QUICK)
    assert (alone / "embeddings.parquet").read_bytes() == embeddings[1]

    scores = answer(capsys, "eval", out, "--threads", 1)
    means = [one["mean"] for one in scores["retrainings"]]
    assert scores["std_over"] == "retrainings" and len(means) == 3
    assert scores["mean"] == pytest.approx(np.mean(means)) and scores["std"] == pytest.approx(np.std(means))
    areas = [one["link_prediction"]["auc"] for one in scores["retrainings"]]
    assert scores["link_prediction"]["auc"] == pytest.approx(np.mean(areas))
    assert json.loads((out / "eval.json").read_text()) == scores
    assert json.loads((out / "seed-5" / "eval.json").read_text()) == scores["retrainings"][1]

    assert "3 retrainings" in output(capsys, "eval", out, "--threads", 1)[0]

    answer(capsys, "fit", "--out", out / "seed-6", "--overwrite", "--steps", 4, "--seed", 6, *QUICK)
    message = refusal(capsys, "eval", out)
    assert "settings" in message and str(out / "seed-6") in message and str(out / "seed-4") in message


def test_all_folders_of_retrainings_are_checked_before_the_first_training(tmp_path, capsys):
    out = tmp_path / "runs"
    answer(capsys, "fit", "--out", out / "seed-1", "--steps", 2, "--seed", 1, *QUICK)
    message = refusal(capsys, "fit", "--out", out, "--seeds", 2, "--steps", 2, *QUICK)
    assert str(out / "seed-1") in message
    assert [path.name for path in out.iterdir()] == ["seed-1"]
    resumed = answer(capsys, "fit", "--out", out, "--seeds", 2, "--steps", 2, "--resume", *QUICK)
    assert [one["steps"] for one in resumed["runs"]] == [2, 2]
    message = refusal(capsys, "fit", "--out", out / "seed-1", "--seeds", 2, *QUICK)
    assert "single run" in message and "--out" in message


def test_held_out_edges_are_scored_and_only_where_there_are_any(tmp_path, capsys):
    out, whole = tmp_path / "held", tmp_path / "whole"
    answer(capsys, "fit", "--out", out, "--steps", 5, "--hold-out-edges", 0.1, *QUICK)
    answer(capsys, "fit", "--out", whole, "--steps", 5, *QUICK)
    held, full = record_of(out), record_of(whole)
    assert held["hold_out_edges"] == 0.1 and full["hold_out_edges"] == 0
    with np.load(out / "held_out_edges.npz") as pairs:
        count = len(pairs["positive"])
        assert count == len(pairs["negative"]) == round(0.1 * full["graph"]["num_edges"])
    assert held["graph"]["num_edges"] == full["graph"]["num_edges"] - count
    assert not (whole / "held_out_edges.npz").exists()
    scores = answer(capsys, "eval", out, "--threads", 1)
    assert scores["link_prediction"].keys() == {"auc", "average_precision"}
    assert all(0 < value < 100 for value in scores["link_prediction"].values())
    assert "link_prediction" not in answer(capsys, "eval", whole, "--threads", 1)
    # Overwritten without held-out edges, the run has none.
    answer(capsys, "fit", "--out", out, "--steps", 5, "--overwrite", *QUICK)
    assert not (out / "held_out_edges.npz").exists()


def test_structural_features_do_not_see_the_edges_that_are_held_out(tmp_path, capsys):
    generator = np.random.default_rng(0)
    edges = generator.integers(0, 40, (200, 2))
    (tmp_path / "edges.csv").write_text("".join(f"{source},{target}\n" for source, target in edges))
    out = tmp_path / "run"
    given = ("--structural", "degree", "--hold-out-edges", 0.3, "--method", "raw", "--format", "npy")
    answer(capsys, "fit", tmp_path / "edges.csv", "--out", out, *given)
    with np.load(out / "held_out_edges.npz") as pairs:
        held_out = np.bincount(pairs["positive"].reshape(-1), minlength=40)
    whole = spgcl.Graph.of(tmp_path / "edges.csv", structural="degree")

    degrees = np.expm1(np.load(out / "embeddings.npy")[:, 0]).round()
    assert held_out.sum() > 0
    assert np.array_equal(degrees, whole.degrees - held_out)
    assert "has changed" not in output(capsys, "eval", out, "--threads", 1)[1]


@pytest.mark.parametrize("fraction", ["1", "-0.1", "nan", "2"])
def test_a_fraction_of_edges_out_of_range_is_refused(tmp_path, capsys, fraction):
    message = refusal(capsys, "fit", "--out", tmp_path / "run", "--hold-out-edges", fraction, *QUICK)
    assert "between 0 and 1" in message and fraction in message
    assert not (tmp_path / "run").exists()


def test_health_curves_are_recorded_and_change_nothing(tmp_path, capsys):
    labels = write_csv(tmp_path / "labels.csv", "node,label", [(node, node % 3) for node in range(1500)])
    out, plain = tmp_path / "observed", tmp_path / "plain"
    answer(capsys, "fit", "--out", out, "--steps", 12, "--observe", 5, "--labels", labels, *QUICK)
    answer(capsys, "fit", "--out", plain, "--steps", 12, *QUICK)
    curves = record_of(out)["history"]["observations"]
    assert [point["step"] for point in curves] == [0, 5, 10, 12]
    expected = {"step", "weight_norm_1", "weight_norm_2", "class_centre_distance", "transformed_homophily"}
    selected = {"node_cover_ratio", "overlapped_selection_ratio"}
    assert curves[0].keys() == expected
    assert all(point.keys() == expected | selected for point in curves[1:])
    covered = [point["node_cover_ratio"] for point in curves[1:]]
    assert 0 < covered[0] < covered[1] < covered[2] <= 1
    assert curves[0]["weight_norm_1"] != curves[-1]["weight_norm_1"]
    # Labels that mean nothing: a third of the nearest nodes share them by chance.
    assert all(0.2 < point["transformed_homophily"] < 0.45 for point in curves)
    assert record_of(plain)["history"]["observations"] == []
    assert (out / "embeddings.parquet").read_bytes() == (plain / "embeddings.parquet").read_bytes()
    assert record_of(out)["graph"]["labels"] == str(labels)
    assert len(answer(capsys, "eval", out, "--threads", 1)["splits"]) == 10


def test_a_method_without_training_has_no_health_curves_and_says_so(tmp_path, capsys):
    _, notes = output(capsys, "fit", "--observe", 5, "--method", "raw", "--out", tmp_path / "run")
    assert "raw" in notes and "--observe 5" in notes


def test_settings_come_from_set_and_steps_and_else_from_the_defaults(tmp_path, capsys):
    given = ["--set", "dropout=0.25", "--set", "own_positive=yes", "--steps", 3]
    answer(capsys, "fit", "--out", tmp_path / "run", *given, *QUICK)
    found = record_of(tmp_path / "run")["settings"]
    assert (found["dropout"], found["own_positive"], found["steps"]) == (0.25, True, 3)
    assert found["negatives"] == 100


def test_commands_on_a_folder_of_retrainings_name_one_of_them(tmp_path, capsys):
    out = tmp_path / "several"
    fit = ["fit", "--method", "spgcl", "--steps", 1, *settings(hidden=4), "--out", out, "--seeds", 2]
    answer(capsys, *fit)
    assert str(out / "seed-0") in refusal(capsys, "similar", out, 0)
    # Fewer retrainings replace all of the earlier ones.
    answer(capsys, *fit, "--seed", 1, "--overwrite")
    assert sorted(path.name for path in out.iterdir()) == ["seed-1", "seed-2"]


@pytest.mark.parametrize(
    ("given", "setting"),
    [
        (["--steps", 5], "'steps'"),
        (["--set", "positives=3"], "'positives'"),
        (["--preset", "published"], "'published'"),
        (["--preset", "paper"], "'paper'"),
    ],
)
def test_a_setting_of_another_method_names_it_where_no_method_is_named(tmp_path, capsys, given, setting):
    line = refusal(capsys, "fit", "cora", *given, "--out", tmp_path / "run")
    assert "auto" in line and setting in line and "--method spgcl" in line
    assert not (tmp_path / "run").exists()


def test_what_does_not_fit_the_method_or_the_graph_is_refused(tmp_path, capsys):
    raw = ["fit", "--method", "raw", "--out", tmp_path / "raw"]
    line = refusal(capsys, *raw, "--steps", 3)
    assert "'steps'" in line and "--method spgcl" in line
    # A preset of a data set is not for a file of the same name.
    (tmp_path / "cora.csv").write_text("0,1\n1,2\n")
    named = ["fit", tmp_path / "cora.csv", "--structural", "degree", "--out", tmp_path / "run"]
    assert "cora.csv" in refusal(capsys, *named, "--method", "spgcl", "--preset", "published")
    assert not (tmp_path / "raw").exists() and not (tmp_path / "run").exists()


def test_embed_does_not_replace_a_file_unasked(tmp_path, capsys):
    out, target = tmp_path / "run", tmp_path / "vectors.csv"
    answer(capsys, "fit", "--method", "spgcl", "--steps", 1, *settings(hidden=4), "--out", out)
    target.write_text("mine\n")
    command = ["embed", out, "csbm-heterophilic", "--out"]
    assert "--overwrite" in refusal(capsys, *command, target) and target.read_text() == "mine\n"
    output(capsys, *command, target, "--overwrite")
    assert target.read_text() != "mine\n"
    assert "no folder" in refusal(capsys, *command, tmp_path / "no" / "v.csv")


def test_steps_that_contradict_each_other_are_refused(tmp_path, capsys):
    message = refusal(capsys, "fit", "--out", tmp_path / "run", "--steps", 5, "--set", "steps=10")
    assert "--steps 5" in message and "--set steps=10" in message
    assert not (tmp_path / "run").exists()
    answer(capsys, "fit", "--out", tmp_path / "run", "--steps", "3", "--set", "steps=3", *QUICK)
    assert record_of(tmp_path / "run")["steps"] == 3


def test_ids_that_a_format_cannot_hold_are_refused_before_training(tmp_path, capsys):
    edges, out = tmp_path / "edges.csv", tmp_path / "run"
    edges.write_text('from,to\na,b\nb,c\nc,"new\nline"\n')
    given = ["fit", edges, "--structural", "degree", "--steps", 2, "--out", out, *QUICK]
    given += ["--set", "positives=2"]
    assert "line break" in refusal(capsys, *given, "--format", "npy")
    assert not out.exists()
    answer(capsys, *given, "--format", "csv")


@pytest.mark.parametrize(
    ("method", "chosen"),
    [
        ("deepwalk", {"hidden": 4, "walks": 2, "walk_length": 5}),
        ("node2vec", {"hidden": 4, "walks": 2, "walk_length": 5}),
        ("spectral", {"hidden": 4}),
        ("fastrp", {"hidden": 4}),
    ],
)
def test_a_method_that_reads_no_features_needs_none(tmp_path, capsys, method, chosen):
    edges, out, copy = tmp_path / "edges.csv", tmp_path / "run", tmp_path / "copy.npy"
    edges.write_text("".join(f"{node},{(node + gap) % 20}\n" for node in range(20) for gap in (1, node, 5)))
    answer(capsys, "fit", edges, "--method", method, *settings(**chosen), "--out", out)
    answer(capsys, "embed", out, edges, "--out", copy)
    vectors = spgcl.Embedder(method=method, **chosen).fit_transform(edges)
    assert np.array_equal(vectors, np.load(copy))


def test_a_method_that_reads_features_asks_for_them(tmp_path, capsys):
    edges = tmp_path / "edges.csv"
    edges.write_text("0,1\n1,2\n")
    message = refusal(capsys, "fit", edges, "--method", "grace", "--out", tmp_path / "run")
    assert "--features" in message and "--structural" in message


@pytest.mark.parametrize("file", ["model.safetensors", "embeddings.parquet"])
def test_a_finished_run_that_lost_a_file_is_made_again_by_resume(tmp_path, capsys, file):
    out = tmp_path / "run"
    command = ["fit", "--out", out, "--steps", 3, *QUICK]
    answer(capsys, *command)
    content = (out / file).read_bytes()
    (out / file).unlink()
    answer(capsys, *command, "--resume")
    assert (out / file).read_bytes() == content


def test_equal_embeddings_are_noted(tmp_path, capsys):
    edges = tmp_path / "edges.csv"
    edges.write_text("".join(f"{node},{(node + 1) % 12}\n" for node in range(12)))
    command = ["fit", edges, "--structural", "degree", "--method", "raw", "--out", tmp_path / "run"]
    assert "all nodes have the same embedding" in output(capsys, *command)[1]
    ring = spgcl.Graph.of(edges, structural="degree")
    with pytest.warns(UserWarning, match="all nodes have the same embedding"):
        spgcl.Embedder(method="raw").fit_transform(ring)


def test_ctrl_c_stops_training_after_the_step_and_anything_else_at_once(capfd):
    with _stopping(trains=True) as stop:
        assert not stop()
        os.kill(os.getpid(), signal.SIGINT)
        assert stop()
    assert "Ctrl-C again" in capfd.readouterr().err
    with pytest.raises(KeyboardInterrupt), _stopping(trains=False):
        os.kill(os.getpid(), signal.SIGINT)
