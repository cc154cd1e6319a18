"""The documents have the tables that results/ gives, and the tables of scores are right."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import score_tables
import tables
from markdown import NO_RESULTS

ROOT = Path(__file__).parents[2]


def training(dataset, seed, paper, *, method="spgcl", preset="published", given=None, **others):
    return {
        "dataset": dataset,
        "method": method,
        "preset": preset,
        "given": given or {},
        "seed": seed,
        "metric": "accuracy",
        "scores": {
            "paper": {"test": paper, "validation": paper},
            "tuned": {"test": paper + 1, "validation": paper},
        },
        "seconds": {"fit": 2.0 + seed, "eval": 1.0},
        "peak_mib": 100.0 + seed,
        "device": "cuda",
        "processor": "a processor",
        **others,
    }


def run(*arguments):
    command = [sys.executable, ROOT / "benchmarks" / "tables.py", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_committed_documents_are_up_to_date():
    checked = run("--check")

    assert checked.returncode == 0, checked.stderr


def test_new_results_make_documents_stale_until_they_are_written(tmp_path):
    root, results = tmp_path / "copy", tmp_path / "results"
    results.mkdir()
    for path in tables.documents(ROOT, results):
        copy = root / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    lines = [training("cora", seed, score) for seed, score in enumerate((11.0, 12.0, 13.0))]
    (results / "scores.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    arguments = ("--root", root, "--results", results)

    stale = run("--check", *arguments)
    assert stale.returncode == 1
    assert "README.md" in stale.stderr
    assert run(*arguments).returncode == 0
    assert run("--check", *arguments).returncode == 0

    for name in ("README.md", "docs/methods/spgcl.md"):
        assert "| cora | 83.16 | 81.97 | 12.00 ± 0.82 |" in (root / name).read_text(encoding="utf-8")
    row = "| spgcl | preset `published` | cora | a processor | 12.00 ± 0.82 | 13.00 ± 0.82 | 3 | 3.0 | 102 |"
    assert row in run("--full", *arguments).stdout


def test_without_results_the_documents_say_so(tmp_path):
    made = tables.documents(ROOT, tmp_path)

    for name, count in {"README.md": 3, "docs/results.md": 7, "docs/speed.md": 4}.items():
        assert made[ROOT / name].count(NO_RESULTS) == count


def test_text_outside_the_markers_is_kept(tmp_path):
    text = "before\n<!-- a:begin -->\nold \\1\n<!-- a:end -->\nafter\n"

    assert tables.replaced(text, "a", r"new \1", tmp_path) == text.replace("old", "new")
    with pytest.raises(SystemExit, match="b:begin"):
        tables.replaced(text, "b", "new", tmp_path)


def test_scores_on_random_tenths_are_next_to_those_of_the_methods_own_paper():
    given = {"widening": "2"}
    lines = [
        training("cora", seed, 80.0 + seed, method="grace", preset=None, given=given) for seed in range(2)
    ]

    row = "| grace | cora | defaults, widening=2 | 83.3 | 80.50 ± 0.50 | 81.50 ± 0.50 | 2 |"
    assert row in score_tables.tenths_table(lines)


def test_presets_given_values_and_devices_are_not_mixed():
    records = [
        training("cora", 0, 50.0),
        training("cora", 0, 60.0),
        training("cora", 1, 70.0),
        training("cora", 0, 10.0, device="cpu"),
        training("cora", 0, 20.0, preset=None),
        training("cora", 0, 30.0, preset=None, given={"hidden": "8"}),
    ]

    groups = score_tables.grouped(records)

    assert list(groups) == [("spgcl", "published", ""), ("spgcl", None, ""), ("spgcl", None, "hidden=8")]
    assert score_tables.score(groups["spgcl", "published", ""]["cora"], "paper") == "65.00 ± 5.00"
    assert score_tables.score(groups["spgcl", None, ""]["cora"], "paper") == "20.00"
    summary = score_tables.summary_table(records)
    assert "| graph | paper | authors' code | preset `published` | defaults |" in summary
    assert "| cora | 83.16 | 81.97 | 65.00 ± 5.00 | 20.00 |" in summary
    assert "(1 to 2)" in summary


def test_a_graph_without_a_score_for_a_preset_has_a_dash():
    summary = score_tables.summary_table([training("cora", 0, 50.0), training("actor", 0, 40.0, preset=None)])

    assert "| cora | 83.16 | 81.97 | 50.00 | - |" in summary
    assert "| actor | 28.94 | - | - | 40.00 |" in summary


def test_times_of_trainings_that_shared_the_machine_are_left_out():
    shared = training("cora", 0, 50.0, workers=4)

    assert "| 50.00 | 51.00 | 1 | - | 100 |" in score_tables.full_table([shared])
    assert "| 2 | 3.0 | 101 |" in score_tables.full_table([shared, training("cora", 1, 50.0)])


def test_side_by_side_shows_what_is_best_on_validation_and_marks_what_is_below_the_paper():
    def scores(test, validation):
        return {"paper": {"test": test, "validation": validation}, "tuned": {"test": 80.5, "validation": 0}}

    records = [
        training("cora", 0, 0, method="grace", scores=scores(90.0, 60.0)),
        training("cora", 0, 0, method="grace", preset="validated", scores=scores(79.5, 61.0)),
        training("cora", 0, 0, method="grace", preset="validated (trial 3)", scores=scores(99.0, 99.0)),
        training("actor", 0, 28.0, method="grace", preset=None),
        training("cora", 0, 60.0, method="raw", preset=None),
        training("cora", 0, 10.0, method="grace", preset=None, given={"hidden": "8"}),
    ]

    lines = score_tables.side_by_side(records, "paper").splitlines()
    assert lines[2].startswith("| raw | 60.0 | - |")
    assert lines[3].startswith("| grace | **79.5 (81.9)** | - |")
    assert "| grace | - | - | 28.0 (28.3) | - |" in lines
    assert "| grace | 80.5 (81.9) |" in score_tables.side_by_side(records, "tuned")


def test_the_rank_of_spgcl_is_that_among_methods_without_labels():
    records = [
        training("cora", 0, 80.0),
        training("cora", 0, 83.0, preset=None),  # chosen from more settings
        training("cora", 0, 84.0, preset="validated", further=True),  # with a larger budget
        training("cora", 0, 81.5, method="dgi"),
        training("cora", 0, 70.0, method="raw", preset=None),
        training("cora", 0, 90.0, method="gcn", preset=None),
        training("actor", 0, 30.0),
    ]
    lines = score_tables.ranks_table(records).splitlines()
    # The paper has MVGRL above SP-GCL on Cora.
    assert "| cora | 2 of 13 | 2 of 3 | dgi (-1.5) | 2 of 3 | dgi (-1.5) |" in lines
    assert any(line.startswith("| actor | 1 of 13 | 1 of 1 | - | 1 of 1 | - |") for line in lines)


def test_joined_features_have_their_own_row():
    records = [
        training("cora", 0, 70.0, method="smoothed", preset=None),
        training("cora", 0, 80.0, method="smoothed", preset=None, given={"joined": "true"}),
        training("cora", 0, 90.0, method="smoothed", preset=None, given={"hops": "3"}),
        training("cora", 0, 75.0),
    ]

    lines = score_tables.side_by_side(records, "paper").splitlines()
    assert lines[2].startswith("| smoothed | 70.0 |") and lines[3].startswith("| smoothed, joined | 80.0 |")
    assert "| 2 of 3 | smoothed, joined (-5.0) |" in score_tables.ranks_table(records)
    page = score_tables.method_table("smoothed", score_tables.best_of(records, "paper")).splitlines()
    assert page[2:] == [
        "| cora | defaults | - | 70.00 | 71.00 | 1 |",
        "| cora | defaults, joined=true | - | 80.00 | 81.00 | 1 |",
    ]


def test_a_second_row_has_no_more_settings_searched_than_other_methods_had():
    records = [
        training("cora", 0, 80.0),
        training("cora", 0, 84.0, preset="validated", further=True),
        training("actor", 0, 29.0, preset="validated"),
        training("actor", 0, 33.0, preset=None),
    ]
    assert "equal budget" not in score_tables.side_by_side(records, "paper")
    records.append(training("cora", 0, 82.0, preset="drawn"))
    lines = score_tables.side_by_side(records, "paper").splitlines()
    # On Cora the preset comes from further trials, on Actor from the draws that all methods have.
    assert "| spgcl | 84.0 (83.2) |" in lines[2] and "| spgcl, equal budget | 82.0 (83.2) |" in lines[3]
    # Its defaults come from further trials on every graph.
    assert lines[-1].endswith("| 29.0 (28.9) | - |") and "| 33.0 (28.9) |" in lines[-2]
