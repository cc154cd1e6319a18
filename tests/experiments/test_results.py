"""Results on disk: whole lines whatever happens, and the right line for a run."""

import subprocess
import sys
from dataclasses import replace

import pytest

from spgcl.errors import InputError
from spgcl.experiments.plan import plan_of
from spgcl.experiments.results import Results, append, read_lines
from spgcl.methods import resolved_settings

APPENDING = """
import sys
from pathlib import Path
from spgcl.experiments.results import append
for number in range(50):
    append(Path(sys.argv[1]), {"writer": sys.argv[2], "number": number, "more": "x" * 5000})
"""


def test_several_processes_append_whole_lines(tmp_path):
    path = tmp_path / "some" / "results.jsonl"
    writers = [subprocess.Popen([sys.executable, "-c", APPENDING, path, str(each)]) for each in range(2)]
    assert [writer.wait() for writer in writers] == [0, 0]
    found = sorted((line["writer"], line["number"]) for line in read_lines(path))
    assert found == sorted((str(writer), number) for writer in range(2) for number in range(50))


def test_a_line_that_was_cut_short_is_left_out_and_spoils_no_other(tmp_path):
    path = tmp_path / "results.jsonl"
    append(path, {"number": 1})
    with path.open("ab") as file:
        file.write(b'{"number": 2, "seconds": {"fit": 1}')
    assert read_lines(path) == [{"number": 1}]
    append(path, {"number": 3})
    assert read_lines(path) == [{"number": 1}, {"number": 3}]


def test_what_no_kill_leaves_behind_is_refused(tmp_path):
    path = tmp_path / "results.jsonl"
    path.write_text('{"number": 1}\n<<<<<<< HEAD\n')
    with pytest.raises(InputError, match=r"line 2"):
        read_lines(path)


def line_of(run, **others):
    return {"digest": run.digest, "settings": run.settings, "seed": run.seed, **others}


def write(folder, name, *lines):
    for line in lines:
        append(folder / f"{name}.jsonl", line)


def test_a_result_is_found_by_its_digest_wherever_it_was_measured(tmp_path):
    plan = plan_of("table5")
    first, second = plan.runs[:2]
    write(tmp_path, "table4", line_of(first))
    write(tmp_path, "table5", line_of(second))
    results = Results(plan, tmp_path)
    assert results.of(first) and results.of(second)
    assert len(results.missing()) == len(plan.runs) - 2


def test_a_result_of_other_settings_is_stale_until_it_is_measured_again(tmp_path):
    plan = plan_of("table7", quick=True)
    run = plan.runs[0]
    today = line_of(run)
    earlier = {**today, "settings": {**run.settings, "dropout": run.settings["dropout"] / 2 + 0.1}}
    write(tmp_path, "table7", earlier)
    results = Results(plan, tmp_path)
    assert results.stale == {run.digest}
    assert run in results.missing()
    write(tmp_path, "table7", today)
    results.read()
    assert not results.stale
    assert run not in results.missing()


def test_a_hyper_parameter_that_came_later_leaves_results_current(tmp_path):
    plan = plan_of("table7", quick=True)
    run = plan.runs[0]
    before = {name: value for name, value in run.settings.items() if name != "fan_out"}
    write(tmp_path, "table7", {**line_of(run), "settings": before})
    assert not Results(plan, tmp_path).stale


def test_scores_from_before_there_were_digests_are_taken_over_by_their_settings(tmp_path):
    plan = plan_of("table1")
    run = next(run for run in plan.runs if (run.row, run.graph, run.seed) == ("grace", "cora", 1))
    given = {"given": {}, "seed": 1, "dataset": "cora", "method": "grace", "scores": {"paper": {"test": 80}}}
    # The defaults are other settings, and a name of the past says nothing about those of today.
    write(tmp_path, "scores", {**given, "preset": None}, {**given, "preset": "validated (trial 7)"})
    assert Results(plan, tmp_path).of(run) is None
    write(tmp_path, "scores", {**given, "preset": "validated"})
    assert Results(plan, tmp_path).of(run)["preset"] == "validated"
    assert run.settings == resolved_settings("grace", "validated", "cora", {})


def test_the_digest_names_the_measurement_and_nothing_else():
    run = plan_of("table6").runs[0]
    assert replace(run, row="another name").digest == run.digest
    others = [
        replace(run, seed=run.seed + 1),
        replace(run, graph="squirrel"),
        replace(run, given={**run.given, "layers": 3}),
        replace(run, options={}),
        replace(run, measure="curves"),
    ]
    assert len({run.digest, *(other.digest for other in others)}) == 6
    # Committed results depend on it.
    assert run.digest == "ab1f19ef0266350e"
