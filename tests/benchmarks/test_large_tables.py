import large_tables
from markdown import NO_RESULTS


def test_the_last_measurement_of_auto_is_told():
    lines = [
        {"variant": variant, "nodes": 200_000, "cpu_seconds": seconds, "mib": {"resident": 2560}}
        for variant, seconds in (("auto", 90.0), ("auto", 50.4), ("sized", 70.0))
    ]
    text = large_tables.auto_text(lines)
    assert "200,000 nodes" in text and "50 seconds" in text and "2.5 GiB" in text
    assert large_tables.auto_text(lines[2:]) == NO_RESULTS
