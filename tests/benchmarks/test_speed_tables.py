"""Tables of time and memory have the numbers of their records."""

from markdown import NO_RESULTS
from speed_tables import (
    memory_section,
    paired_section,
    scale_section,
    shown,
    speed_section,
    speed_summary,
    walks_section,
)

NAMES = ("load", "prepare", "start", "step", "embed", "probe", "write")
PHASES = dict(zip(NAMES, (1.0, 0.5, 0.25, 0.002, 0.1, 2.0, 0.05), strict=True))


def measured(device="cpu", processor="a processor", **parts):
    """A record as it is taken on a machine."""
    machine = {"device": device, "processor": processor, "threads": 2, "versions": {"torch": "2.13.0"}}
    return {**machine, "date": "2026-01-02", "given": {}, **parts}


def speed_record(dataset="cora", **changes):
    subjects = {
        "spgcl": {"seconds": PHASES},
        "reference": {"seconds": {phase: 3 * seconds for phase, seconds in PHASES.items()}},
        "grace": {"seconds": {"prepare": 1.0, "start": 0.0, "step": 0.008}},
    }
    floor = {"seconds": {"float32": 0.001}, "ratios": {"float32": 2.0}}
    ratios = dict.fromkeys(PHASES, 3.0)
    parts = {"dataset": dataset, "rounds": 5, "subjects": subjects, "ratios": ratios, "floor": floor}
    return measured(**{**parts, **changes})


def test_phases_steps_and_floor_are_next_to_each_other():
    text = speed_section([speed_record()])

    assert "### a processor, 2 threads\n\nMedians of 5 rounds; torch 2.13.0; 2026-01-02." in text
    numbers = ("1.000", "0.500", "0.250", "2.00", "0.100", "2.000", "0.050")
    assert f"| cora | - | {' | '.join(f'{number} (3.0x)' for number in numbers)} |" in text
    assert "| graph | set | spgcl | reference | grace | floor, float32 | spgcl / floor, float32 |" in text
    assert "| cora | - | 2.00 | 6.00 | 8.00 | 1.00 | 2.0 |" in text


def test_the_latest_record_of_a_setting_counts_and_machines_are_apart():
    slow = {**PHASES, "load": 7.0}
    earlier = speed_record(subjects={"spgcl": {"seconds": slow}})
    others = [
        speed_record(given={"batch_norm_rows": "pool"}),
        *(speed_record(device="cuda", precision=name) for name in ("tf32", "float32")),
    ]
    later = [speed_record(precision="float32"), speed_record(threads=1)]
    text = speed_section([earlier, *others, *later])

    assert "7.000" not in text
    assert text.count("| cora | - | 1.000") == 2
    assert text.count("| cora | batch_norm_rows=pool | 1.000") == 1
    # Only CUDA has a choice of how products are computed.
    assert text.count("| cora | tf32 | 1.000") == text.count("| cora | float32 | 1.000") == 1
    assert "### a processor, 1 thread\n" in text


def test_documents_show_the_last_machine_per_kind_of_device_and_the_format_of_fit():
    cpu, cuda = ({"device": device, "precision": "float32"} for device in ("cpu", "cuda"))
    records = [
        speed_record("earlier", **cpu, processor="another"),
        speed_record("cpu", **cpu),
        speed_record("tf32", **cuda | {"precision": "tf32"}),
        speed_record("float32", **cuda),
    ]
    assert [record["dataset"] for record in shown(records)] == ["cpu", "tf32"]


def test_the_authors_figures_are_shown_for_their_machine():
    records = [
        speed_record(name, device="cuda", processor="NVIDIA H200") for name in ("cora", "actor", "tiny")
    ]
    text = speed_section(records)

    assert "### NVIDIA H200\n" in text
    assert "| cora | - | 2.00 | 6.00 | 8.00 | 11.8 | 1.00 | 2.0 |" in text
    assert "| actor | - | 2.00 | 6.00 | 8.00 | > 18.7 | 1.00 | 2.0 |" in text
    assert "| tiny | - | 2.00 | 6.00 | 8.00 | - | 1.00 | 2.0 |" in text


def test_records_without_reference_or_floor_have_gaps():
    bare = speed_record("tiny", subjects={"spgcl": {"seconds": PHASES}}, floor=None)
    del bare["ratios"]
    text = speed_section([bare, speed_record()])

    assert "| tiny | - | 1.000 | 0.500 | 0.250 | 2.00 | 0.100 | 2.000 | 0.050 |" in text
    assert "| tiny | - | 2.00 | - | - | - | - |" in text


def test_end_to_end_has_a_table_where_it_was_run():
    seconds = {"fit": 1.5, "eval": 0.5, "total": 2.0, "import": 3.0, "device": 0.25, "peak_mib": 512.4}
    text = speed_section([speed_record("squirrel", end_to_end={"seconds": seconds})])

    assert "| squirrel | - | 1.50 | 0.50 | 2.00 | 3.00 | 0.25 | 512 |" in text
    assert "From end to end" not in speed_section([speed_record()])


def test_memory_is_next_to_the_papers_and_out_of_memory_is_reported():
    subjects = {"spgcl": {"peak_mib": 700.4}, "reference": {"peak_mib": None}}
    record = measured("cuda", "a card", dataset="genius-size", subjects=subjects, given={"hidden": 128})
    text = memory_section([record])

    assert "### a card, allocated\n" in text
    assert "| genius-size | hidden=128 | 700 | out of memory | 6.24 |" in text


def test_growth_ends_with_the_largest_over_the_smallest():
    seconds = {"prepare": 0.5, "start": 0.1, "step": 0.01, "embed": 0.25}
    small = {"num_nodes": 1000, "num_edges": 5000, "random_row_seconds": 2e-8}
    large = {"num_nodes": 100_000, "num_edges": 500_000, "random_row_seconds": 6e-8}
    sizes = [{**size, "seconds": seconds, "peak_mib": 99.6} for size in (small, large)]
    growth = {"nodes_and_edges": 100.0, "prepare": 90.0, "step": 1.25}
    record = measured(sizes=sizes, growth=growth)
    text = scale_section([record])

    # 11,000 entries, those of the diagonal among them, of 20 ns each.
    assert "| 1,000 | 5,000 | 0.5 | 0.01 | 0.25 | 0.00022 | 100 |" in text
    assert "| largest over smallest | x 100 | x 90.00 | x 1.25 | - | x 300.00 | - |" in text


def test_paired_differences_come_with_students_interval():
    scores = {"plain": [70.0, 71.0, 72.0], "fast": [70.5, 71.0, 73.0, 99.0]}
    records = [
        {"dataset": "cora", "variant": variant, "seed": seed, "test": score}
        for variant, found in scores.items()
        for seed, score in enumerate(found)
    ]

    # Differences 0.5, 0 and 1: mean 0.5, deviation 0.5, and 4.303 deviations of the mean on either side.
    assert "| cora | fast | 3 | 71.00 | 71.50 | +0.50 | -0.74 to +1.74 |" in paired_section(records)


def test_the_latest_time_of_a_walk_is_shown():
    line = {"dataset": "cora", "walks": 10, "length": 80, "p": 0.25, "q": 4.0, "processor": "a processor"}
    text = walks_section([{**line, "seconds": 9.0}, {**line, "seconds": 1.5}])

    assert "| cora | a processor | 10 of 80 nodes | 0.25 | 4 | 1.50 |" in text and "9.00" not in text


def timed(dataset, subjects, *, given=None, total=None, processor="NVIDIA H200"):
    record = speed_record(dataset, device="cuda", processor=processor, precision="tf32", given=given or {})
    record["subjects"] = {name: {"seconds": {"step": seconds}} for name, seconds in subjects.items()}
    return record if total is None else {**record, "end_to_end": {"seconds": {"total": total}}}


def test_the_summary_has_the_latest_steps_and_whole_runs_next_to_the_authors_code():
    pool = {"batch_norm_rows": "pool"}
    records = [
        timed("cora", {"spgcl": 0.0008}, given=pool, total=9.0),
        timed("cora", {"spgcl": 0.0007}, given=pool, total=2.04),
        timed("cora", {"spgcl": 0.0011}),
        timed("cora", {"spgcl": 0.0009, "bgrl": 0.003, "grace": 0.002}),
        # The authors' code was not timed on this machine.
        timed("actor", {"spgcl": 0.1}, processor="another"),
    ]
    lines = speed_summary(records).splitlines()
    assert lines[2:] == ["| cora | 11.8 | 2.00 | 3.00 | 0.90 | 0.70 | 2.0 |"]
    assert speed_summary([]) == NO_RESULTS


def test_a_record_with_the_reference_counts_before_later_ones_without():
    without = timed("cora", {"spgcl": 0.005})
    del without["ratios"]
    records = [
        timed("cora", {"spgcl": 0.001, "reference": 0.004}),
        timed("cora", {"spgcl": 0.002, "reference": 0.008, "grace": 0.003}),
        without,
    ]
    assert speed_summary(records).splitlines()[2:] == ["| cora | 11.8 | 3.00 | - | 2.00 | - | - |"]
