"""Tables of graphs on disk show the latest measurement, in the units they name."""

import store_tables
from markdown import NO_RESULTS


def grown(nodes, seconds, memory="4GiB"):
    part = {"seconds": seconds, "mib": {"resident": 2048, "anonymous": 512}}
    phases = {"prepare": 3.0, "train": 6.0, "embed": 9.0}
    return {
        "kind": "growth",
        "nodes": nodes,
        "edges": 10 * nodes,
        "memory": memory,
        "settings": {"hidden": 64},
        "ingest": part,
        "fit": {**part, "phases": phases},
        "step_ms": {"wall": 9.0, "cpu": 7.25},
    }


def test_no_results():
    assert {section([]) for section in store_tables.SECTIONS.values()} == {NO_RESULTS}


def test_growth_shows_the_latest_of_every_size_and_limit():
    shown = store_tables.growth_table([grown(10**6, 99), grown(10**6, 50), grown(10**6, 70, "2GiB")])
    _, _, first, second = shown.splitlines()
    assert first == "| 1,000,000 | 10,000,000 | 2GiB | 70 | 3.0 | 6.0 | 9.0 | 70 | 2.0 | 0.5 | 7.2 |"
    assert "| 4GiB | 50 |" in second


def test_the_estimate_grows_with_entries_but_not_its_training():
    lines = store_tables.estimate_table([grown(10**7, 72)]).splitlines()
    hours = {line.split("|")[1].split(":")[-1].split("(")[0].strip(): line.split("|")[2] for line in lines}
    assert float(hours["ingest"]) == 2.0
    assert float(hours["train"]) == 0.0
    assert float(hours["embed"]) == round(900 / 3600, 2)


def test_engines_are_compared_with_one_process():
    found = [
        {"kind": "ranks", "nodes": 10, "engine": engine, "pools_per_second": pools}
        for engine, pools in (("one process", 20.0), ("torchrun", 36.0))
    ]
    assert "| torchrun, two processes | 10 | 36.0 | 1.80 |" in store_tables.ranks_table(found)
