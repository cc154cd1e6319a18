"""The tables in the documents are those that results/ gives."""

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from spgcl.methods import METHODS, resolved_settings
from spgcl.methods.presets import known_graphs

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "benchmarks" / "tables.py"
DOCUMENTS = (
    *(f"docs/methods/{name}.md" for name in METHODS if name != "spgcl"),
    "README.md",
    "docs/results.md",
    "docs/data.md",
    "docs/methods/spgcl.md",
    "docs/speed.md",
    "src/spgcl/methods/presets/validated.toml",
)


@pytest.fixture(scope="module")
def tables(script) -> ModuleType:
    return script("tables")


def training(dataset, seed, paper, *, preset="published", device="cuda", given=None):
    return {
        "dataset": dataset,
        "method": "spgcl",
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
        "device": device,
        "processor": "a processor",
    }


def trial(dataset, number, scores, **settings):
    return [
        {
            "dataset": dataset,
            "method": "spgcl",
            "trial": number,
            "seed": seed,
            "settings": settings,
            "validation": score,
        }
        for seed, score in enumerate(scores)
    ]


def run(*arguments):
    return subprocess.run(
        [sys.executable, str(SCRIPT), *map(str, arguments)], capture_output=True, text=True, check=False
    )


def copy_of_documents(folder: Path) -> Path:
    for name in DOCUMENTS:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text((ROOT / name).read_text(encoding="utf-8"), encoding="utf-8")
    return folder


def test_the_committed_documents_are_up_to_date():
    checked = run("--check")

    assert checked.returncode == 0, checked.stderr


def test_new_results_make_documents_stale_until_they_are_written(tmp_path):
    root, results = copy_of_documents(tmp_path / "copy"), tmp_path / "results"
    results.mkdir()
    lines = [training("cora", seed, score) for seed, score in enumerate((11.0, 12.0, 13.0))]
    (results / "scores.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    arguments = ("--root", root, "--results", results)

    stale = run("--check", *arguments)
    assert stale.returncode == 1
    assert "README.md is stale" in stale.stderr
    assert run(*arguments).returncode == 0
    assert run("--check", *arguments).returncode == 0

    for name in ("README.md", "docs/methods/spgcl.md"):
        assert "| cora | 83.16 | 81.97 | 12.00 ± 0.82 |" in (root / name).read_text(encoding="utf-8")
    full = run("--full", *arguments).stdout
    assert (
        "| spgcl | preset `published` | cora | a processor | 12.00 ± 0.82 | 13.00 ± 0.82 | 3 | 3.0 | 102 |"
        in full
    )


def test_without_results_the_documents_say_so(tmp_path, tables):
    made = tables.documents(ROOT, tmp_path)

    assert {path.relative_to(ROOT).as_posix() for path in made} == set(DOCUMENTS)
    assert made[ROOT / "README.md"].count(tables.NO_RESULTS) == 2
    assert made[ROOT / "docs/results.md"].count(tables.NO_RESULTS) == 6


def test_scores_on_random_tenths_stand_beside_the_methods_own_paper(script):
    lines = [training("cora", seed, 80.0 + seed, preset=None, given={"widening": "2"}) for seed in range(2)]
    table = script("score_tables").tenths_table([{**line, "method": "grace"} for line in lines])

    assert "| grace | cora | defaults, widening=2 | 83.3 | 80.50 ± 0.50 | 81.50 ± 0.50 | 2 |" in table


def test_text_outside_the_markers_is_kept(tables, tmp_path):
    text = "before\n<!-- a:begin -->\nold \\1\n<!-- a:end -->\nafter\n"

    assert tables.replaced(text, "a", r"new \1", tmp_path) == text.replace("old", "new")
    with pytest.raises(SystemExit, match="needs the markers"):
        tables.replaced(text, "b", "new", tmp_path)


def test_presets_given_values_and_devices_are_not_mixed(tables):
    records = [
        training("cora", 0, 50.0),
        training("cora", 0, 60.0),
        training("cora", 1, 70.0),
        training("cora", 0, 10.0, device="cpu"),
        training("cora", 0, 20.0, preset=None),
        training("cora", 0, 30.0, preset=None, given={"hidden": "8"}),
    ]

    groups = tables.score_tables.grouped(records)

    assert list(groups) == [
        ("spgcl", "published", ""),
        ("spgcl", None, ""),
        ("spgcl", None, "hidden=8"),
    ]
    assert tables.score_tables.score(groups["spgcl", "published", ""]["cora"], "paper") == "65.00 ± 5.00"
    assert tables.score_tables.score(groups["spgcl", None, ""]["cora"], "paper") == "20.00"
    summary = tables.score_tables.summary_table(records, "spgcl")
    assert "| graph | paper | authors' code | preset `published` | defaults |" in summary
    assert "| cora | 83.16 | 81.97 | 65.00 ± 5.00 | 20.00 |" in summary
    assert "full retrainings (1 to 2)" in summary


def test_times_of_trainings_that_shared_the_machine_are_left_out(tables):
    shared = {**training("cora", 0, 50.0), "workers": 4}

    assert "| 50.00 | 51.00 | 1 | - | 100 |" in tables.score_tables.full_table([shared])
    assert "| 2 | 3.0 | 101 |" in tables.score_tables.full_table([shared, training("cora", 1, 50.0)])


def test_side_by_side_shows_what_is_best_on_validation_and_marks_what_is_short_of_the_paper(tables):
    def scores(test, validation):
        return {"paper": {"test": test, "validation": validation}, "tuned": {"test": 80.5, "validation": 0}}

    own = {**training("cora", 0, 70.0), "method": "grace"}
    records = [
        {**own, "scores": scores(90.0, 60.0)},
        {**own, "preset": "validated", "scores": scores(79.5, 61.0)},
        {**own, "preset": "validated (trial 3)", "scores": scores(99.0, 99.0)},
        {**training("actor", 0, 28.0, preset=None), "method": "grace"},
        {**training("cora", 0, 60.0, preset=None), "method": "raw"},
        {**training("cora", 0, 10.0, preset=None, given={"hidden": "8"}), "method": "grace"},
    ]

    lines = tables.score_tables.side_by_side(records, "paper").splitlines()
    assert lines[2].startswith("| raw | 60.0 | - |")
    assert lines[3].startswith("| grace | **79.5 (81.9)** | - |")
    assert "| grace | - | - | 28.0 (28.3) | - |" in lines
    assert "| grace | 80.5 (81.9) |" in tables.score_tables.side_by_side(records, "tuned")


def test_the_rank_of_spgcl_is_that_among_methods_without_labels(tables):
    records = [
        training("cora", 0, 80.0),
        training("cora", 0, 83.0, preset=None),  # chosen from more settings, too
        {**training("cora", 0, 84.0, preset="validated"), "further": True},  # by a larger budget
        {**training("cora", 0, 81.5), "method": "dgi"},
        {**training("cora", 0, 70.0, preset=None), "method": "raw"},
        {**training("cora", 0, 90.0, preset=None), "method": "gcn"},
        training("actor", 0, 30.0),
    ]
    lines = tables.score_tables.ranks_table(records).splitlines()
    # The paper has MVGRL above SP-GCL on Cora.
    assert "| cora | 2 of 13 | 2 of 3 | dgi (-1.5) | 2 of 3 | dgi (-1.5) |" in lines
    assert any(line.startswith("| actor | 1 of 13 | 1 of 1 | - | 1 of 1 | - |") for line in lines)


def test_one_setting_under_two_names_counts_once(tables):
    searched = [
        {"method": method, "dataset": "cora", "trial": trial, "seed": seed, "validation": 80.0 - trial}
        for method in ("spgcl", "dgi")
        for trial in range(25)
        for seed in range(3)
    ]
    scores = [
        training("cora", 0, 80.0),
        training("cora", 1, 84.0, preset="validated"),
        training("cora", 2, 85.0, preset="drawn"),
        {**training("cora", 1, 70.0, preset="validated"), "method": "selene"},  # has no published setting
        training("actor", 1, 30.0, preset="validated"),  # not searched
    ]
    named = tables.search_tables.plainly_named(scores, searched)
    assert [each["preset"] for each in named] == ["published"] * 3 + ["validated"] * 2
    best = tables.score_tables.best_of(named, "paper")
    assert [each["seed"] for each in best["spgcl"]["cora"]] == [0, 1, 2]
    searched[3]["validation"] = 99.0  # trial 1, its first seed
    searched[4]["validation"] = 99.0
    assert tables.search_tables.plainly_named(scores, searched) == scores
    named = tables.search_tables.plainly_named(scores, [*searched, *trial("cora", 300, [99.0] * 3)])
    assert [each.get("further", False) for each in named] == [False, True, False, False, False]


def test_joined_features_have_a_row_of_their_own(tables):
    smoothed = {**training("cora", 0, 70.0, preset=None), "method": "smoothed"}
    joined = {**training("cora", 0, 80.0, preset=None, given={"joined": "true"}), "method": "smoothed"}
    other = {**training("cora", 0, 90.0, preset=None, given={"hops": "3"}), "method": "smoothed"}
    records = [smoothed, joined, other, training("cora", 0, 75.0)]

    lines = tables.score_tables.side_by_side(records, "paper").splitlines()
    assert lines[2].startswith("| smoothed | 70.0 |") and lines[3].startswith("| smoothed, joined | 80.0 |")
    assert "| 2 of 3 | smoothed, joined (-5.0) |" in tables.score_tables.ranks_table(records)
    best = tables.score_tables.best_of(records, "paper")
    page = tables.score_tables.method_table("smoothed", best).splitlines()
    assert page[2:] == [
        "| cora | defaults | - | 70.00 | 71.00 | 1 |",
        "| cora | defaults, joined=true | - | 80.00 | 81.00 | 1 |",
    ]


def test_a_second_row_has_no_more_settings_searched_than_other_methods_had(tables):
    records = [
        training("cora", 0, 80.0),
        {**training("cora", 0, 84.0, preset="validated"), "further": True},
        training("actor", 0, 29.0, preset="validated"),
        training("actor", 0, 33.0, preset=None),
    ]
    assert "equal budget" not in tables.score_tables.side_by_side(records, "paper")
    lines = tables.score_tables.side_by_side(
        [*records, training("cora", 0, 82.0, preset="drawn")], "paper"
    ).splitlines()
    # On Cora the preset comes from further trials, on Actor from the draws that all have.
    assert "| spgcl | 84.0 (83.2) |" in lines[2] and "| spgcl, equal budget | 82.0 (83.2) |" in lines[3]
    # Its defaults come from further trials on every graph.
    assert lines[-1].endswith("| 29.0 (28.9) | - |") and "| 33.0 (28.9) |" in lines[-2]


def test_a_graph_without_a_score_for_a_preset_has_a_dash(tables):
    summary = tables.score_tables.summary_table(
        [training("cora", 0, 50.0), training("actor", 0, 40.0, preset=None)], "spgcl"
    )

    assert "| cora | 83.16 | 81.97 | 50.00 | - |" in summary
    assert "| actor | 28.94 | - | - | 40.00 |" in summary


def timed(dataset, subjects, *, given=None, total=None, processor="NVIDIA H200"):
    record = {
        "dataset": dataset,
        "device": "cuda",
        "processor": processor,
        "precision": "tf32",
        "given": given or {},
        "rounds": 5,
        "subjects": {name: {"seconds": {"step": seconds}} for name, seconds in subjects.items()},
    }
    return record if total is None else {**record, "end_to_end": {"seconds": {"total": total}}}


def test_the_summary_of_speed_stands_beside_the_authors_code(tables):
    pool = {"batch_norm_rows": "pool"}
    records = [
        timed("cora", {"spgcl": 0.0008}, given=pool, total=9.0),
        timed("cora", {"spgcl": 0.0007}, given=pool, total=2.04),
        timed("cora", {"spgcl": 0.0011, "bgrl": 0.003, "grace": 0.004}),
        # Later without the others, and one of them alone; and where the authors' code was not timed.
        timed("cora", {"spgcl": 0.0009}),
        timed("cora", {"grace": 0.002}),
        timed("actor", {"spgcl": 0.1}, processor="another"),
    ]
    lines = tables.speed_tables.speed_summary(records, tables.table, "nothing").splitlines()
    assert lines[2:] == ["| cora | 11.8 | 2.00 | 3.00 | 0.90 | 0.70 | 2.0 |"]
    assert tables.speed_tables.speed_summary([], tables.table, "nothing") == "nothing"


def test_what_was_timed_beside_a_reference_counts_whole(tables):
    ratios = {"ratios": {"step": 4.0}}
    records = [
        timed("cora", {"spgcl": 0.001, "reference": 0.004}) | ratios,
        timed("cora", {"spgcl": 0.002, "reference": 0.008, "grace": 0.003}) | ratios,
        # Later, with fewer subjects, or without a reference.
        timed("cora", {"spgcl": 0.005, "reference": 0.02}) | ratios,
        timed("cora", {"spgcl": 0.006, "bgrl": 0.007, "grace": 0.008}),
    ]
    lines = tables.speed_tables.speed_summary(records, tables.table, "nothing").splitlines()
    assert lines[2:] == ["| cora | 11.8 | 3.00 | - | 2.00 | - | - |"]


def test_the_search_is_won_by_the_best_mean_of_the_final_round(tables):
    searches = tables.search_tables
    finals = {5: [74.0, 72.0, 73.0], 7: [90.0, None, 90.0], 9: [99.0, 10.0, 11.0]}
    # Trial 8 was trained with all seeds, but is not among the three with the best first score.
    scores = {number: finals.get(number, [60.0]) for number in range(25)} | {8: [70.0, 99.0, 99.0]}
    records = [record for number, given in scores.items() for record in trial("cora", number, given)]

    assert searches.winner(searches.validations(records)["cora"]) == 5
    assert "| cora | drawn | 60.00 (1) | 73.00 (3) | 25 | 33 |" in searches.found_table(
        records, tables.table, ""
    )


@pytest.mark.parametrize(
    ("trials", "best"),
    [
        ({number: [50.0 + number] * 3 for number in range(25)}, 24),
        ({number: [50.0 + number] * 3 for number in range(24)}, None),
        ({number: [50.0 + number] * (3 if number < 24 else 2) for number in range(25)}, None),
        ({number: [50.0] * 3 for number in range(25)} | {300: [51.0] * 3, 301: [99.0]}, 300),
    ],
    ids=["done", "a draw missing", "a seed missing", "a further round"],
)
def test_a_search_is_won_when_it_is_done(tables, trials, best):
    assert tables.search_tables.winner(trials) == best


def done(method, name):
    """The records of a search that is won."""
    return [
        {**record, "method": method}
        for number in range(25)
        for record in trial(name, number, [50.0 + number] * 3)
    ]


def test_the_results_say_who_was_searched_less_than_spgcl(tables):
    methods = list(tables.search_tables.spaces.SPACES)
    records = [record for method in methods for record in done(method, "cora")]
    text = tables.search_tables.budget_text
    assert text(records) == "Every method was searched on cora."
    records += [record for method in methods[:-2] for record in done(method, "actor")]
    assert text(records).endswith(f": on actor {methods[-2]}, {methods[-1]}.")


def test_the_results_say_what_an_equal_budget_leaves_out(tables):
    text = tables.search_tables.equal_budget_text
    records = done("spgcl", "cora")
    alone = text(records)
    records += [*trial("cora", 300, [1.0]), *trial("cora", 120, [1.0]), *trial("actor", 121, [1.0])]
    added = text(records).removeprefix(alone)
    assert "1 on cora" in added and "2 settings" in added


def test_a_page_says_which_graphs_were_searched(tables):
    records = [
        *done("spgcl", "cora"),
        *done("spgcl", "actor"),
        *done("grace", "actor"),
        *done("gca", "actor")[:9],
    ]
    text = tables.search_tables.searched_text
    scores = [{"method": "grace", "dataset": "actor", "preset": "validated"}]
    assert text(records, "grace", scores) == "Searched, 25 settings per graph: actor. Not searched: cora."
    assert text(records, "gca", scores) == "No graph was searched."
    assert text(records, "raw", scores) == ""
    # The defaults were scored, the winner was not: that matters where it is another setting than they are.
    scores[0]["preset"] = None
    assert text(records, "grace", scores).endswith("Found, but not scored on test nodes: actor.")
    kept = [{**record, "validation": -record["validation"]} for record in records]
    assert text(kept, "grace", scores) == "Searched, 25 settings per graph: actor. Not searched: cora."


def test_the_validated_preset_holds_the_winners_of_the_committed_search(tables):
    searches = tables.search_tables
    records = tables.read_lines(ROOT / "results" / "search.jsonl")
    compared = set()
    for method in {record["method"] for record in records}:
        own = [record for record in records if record["method"] == method]
        settings = {(record["dataset"], record["trial"]): record["settings"] for record in own}
        for name, trials in searches.validations(records, method).items():
            if searches.winner(trials) is None:
                continue
            chosen = settings[name, searches.winner(trials)]
            # A winner that equals the defaults is in no preset.
            preset = "validated" if name in known_graphs("validated", method) else None
            values = resolved_settings(method, preset, name, {})
            assert {key: values[key] for key in chosen} == chosen, (method, name)
            compared.add(method)
    assert {"spgcl", "grace", "bgrl"} <= compared
