"""docs/speed.md says what the records say."""

import json
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
MACHINE = {"threads": 2, "versions": {"torch": "2.13.0"}, "date": "2026-01-02", "given": {}}
PHASES = {
    "load": 1.0,
    "prepare": 0.5,
    "start": 0.25,
    "step": 0.002,
    "embed": 0.1,
    "probe": 2.0,
    "write": 0.05,
}


@pytest.fixture(scope="module")
def tables(script) -> ModuleType:
    return script("tables")


def speed_record(dataset="cora", *, device="cpu", processor="a processor", **changes):
    record = {
        "dataset": dataset,
        "rounds": 5,
        "subjects": {
            "spgcl": {"seconds": PHASES},
            "reference": {"seconds": {phase: 3 * seconds for phase, seconds in PHASES.items()}},
            "grace": {"seconds": {"prepare": 1.0, "start": 0.0, "step": 0.008}},
        },
        "ratios": dict.fromkeys(PHASES, 3.0),
        "floor": {"seconds": {"float32": 0.001}, "ratios": {"float32": 2.0}},
        **MACHINE,
        "device": device,
        "processor": processor,
    }
    return {**record, **changes}


def page(tables, tmp_path, **files):
    for name, records in files.items():
        text = "".join(json.dumps(record) + "\n" for record in records)
        (tmp_path / f"{name}.jsonl").write_text(text, encoding="utf-8")
    return tables.documents(ROOT, tmp_path)[ROOT / "docs" / "speed.md"]


def test_phases_steps_and_floor_stand_beside_each_other(tables, tmp_path):
    text = page(tables, tmp_path, speed=[speed_record()])

    assert "### a processor, 2 threads\n\nMedians of 5 rounds; torch 2.13.0; 2026-01-02." in text
    numbers = ("1.000", "0.500", "0.250", "2.00", "0.100", "2.000", "0.050")
    assert f"| cora | - | {' | '.join(f'{number} (3.0x)' for number in numbers)} |" in text
    assert "| graph | set | spgcl | reference | grace | floor, float32 | spgcl / floor, float32 |" in text
    assert "| cora | - | 2.00 | 6.00 | 8.00 | 1.00 | 2.0 |" in text
    assert text.count(tables.NO_RESULTS) == 3


def test_the_latest_record_of_a_setting_counts_and_machines_are_apart(tables, tmp_path):
    slow = {**PHASES, "load": 7.0}
    earlier = speed_record(subjects={"spgcl": {"seconds": slow}})
    others = [
        speed_record(given={"batch_norm_rows": "pool"}),
        *(speed_record(device="cuda", precision=name) for name in ("tf32", "float32")),
    ]
    later = [speed_record(precision="float32"), speed_record(threads=1)]
    text = page(tables, tmp_path, speed=[earlier, *others, *later])

    assert "7.000" not in text
    assert text.count("| cora | - | 1.000") == 2
    assert text.count("| cora | batch_norm_rows=pool | 1.000") == 1
    # Only CUDA has a choice of how products are computed.
    assert text.count("| cora | tf32 | 1.000") == text.count("| cora | float32 | 1.000") == 1
    assert "### a processor, 1 thread\n" in text


def test_the_authors_figures_stand_where_they_were_taken(tables, tmp_path):
    records = [
        speed_record(name, device="cuda", processor="NVIDIA H200") for name in ("cora", "actor", "tiny")
    ]
    text = page(tables, tmp_path, speed=records)

    assert "### NVIDIA H200\n" in text
    assert "| cora | - | 2.00 | 6.00 | 8.00 | 11.8 | 1.00 | 2.0 |" in text
    assert "| actor | - | 2.00 | 6.00 | 8.00 | > 18.7 | 1.00 | 2.0 |" in text
    assert "| tiny | - | 2.00 | 6.00 | 8.00 | - | 1.00 | 2.0 |" in text


def test_records_without_reference_or_floor_have_gaps(tables, tmp_path):
    bare = speed_record("tiny", subjects={"spgcl": {"seconds": PHASES}}, floor=None)
    del bare["ratios"]
    text = page(tables, tmp_path, speed=[bare, speed_record()])

    assert "| tiny | - | 1.000 | 0.500 | 0.250 | 2.00 | 0.100 | 2.000 | 0.050 |" in text
    assert "| tiny | - | 2.00 | - | - | - | - |" in text


def test_end_to_end_has_a_table_where_it_was_run(tables, tmp_path):
    seconds = {"fit": 1.5, "eval": 0.5, "total": 2.0, "import": 3.0, "device": 0.25, "peak_mib": 512.4}
    text = page(tables, tmp_path, speed=[speed_record("squirrel", end_to_end={"seconds": seconds})])

    assert "| squirrel | - | 1.50 | 0.50 | 2.00 | 3.00 | 0.25 | 512 |" in text
    assert "From end to end" not in page(tables, tmp_path, speed=[speed_record()])


def test_memory_stands_beside_the_paper_and_says_what_did_not_fit(tables, tmp_path):
    record = {
        "dataset": "genius-size",
        "subjects": {"spgcl": {"peak_mib": 700.4}, "reference": {"peak_mib": None}},
        **MACHINE,
        "given": {"hidden": 128},
        "device": "cuda",
        "processor": "a card",
    }
    text = page(tables, tmp_path, memory=[record])

    assert "### a card, allocated\n" in text
    assert "| genius-size | hidden=128 | 700 | out of memory | 6.24 |" in text


def test_growth_ends_with_the_largest_over_the_smallest(tables, tmp_path):
    seconds = {"prepare": 0.5, "start": 0.1, "step": 0.01, "embed": 0.25}
    small = {"num_nodes": 1000, "num_edges": 5000, "random_row_seconds": 2e-8}
    large = {"num_nodes": 100_000, "num_edges": 500_000, "random_row_seconds": 6e-8}
    record = {
        "sizes": [{**size, "seconds": seconds, "peak_mib": 99.6} for size in (small, large)],
        "growth": {"nodes_and_edges": 100.0, "prepare": 90.0, "step": 1.25},
        **MACHINE,
        "device": "cpu",
        "processor": "a processor",
    }
    text = page(tables, tmp_path, scale=[record])

    # 11,000 entries, those of the diagonal among them, of 20 ns each.
    assert "| 1,000 | 5,000 | 0.5 | 0.01 | 0.25 | 0.00022 | 100 |" in text
    assert "| largest over smallest | x 100 | x 90.00 | x 1.25 | - | x 300.00 | - |" in text


def test_paired_differences_come_with_students_interval(tables, tmp_path):
    scores = {"plain": [70.0, 71.0, 72.0], "fast": [70.5, 71.0, 73.0, 99.0]}
    records = [
        {"dataset": "cora", "variant": variant, "seed": seed, "test": score}
        for variant, found in scores.items()
        for seed, score in enumerate(found)
    ]

    # Differences 0.5, 0 and 1: mean 0.5, deviation 0.5, and 4.303 deviations of the mean on either side.
    assert "| cora | fast | 3 | 71.00 | 71.50 | +0.50 | -0.74 to +1.74 |" in page(
        tables, tmp_path, paired=records
    )
