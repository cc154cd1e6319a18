from spgcl.cli import run
from spgcl.cli.output import _print_rich


def test_names_and_numbers_stay_whole_on_a_narrow_terminal(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "60")
    names = ["amazon-computers", "chameleon-filtered"]
    rows = [[name, "1,234,567", "a long description that has to be folded somewhere"] for name in names]
    _print_rich(["name", "nodes", "what"], rows, [False, True, False])
    lines = capsys.readouterr().out.splitlines()
    for name in names:
        assert any(line.strip().startswith(name) and "1,234,567" in line for line in lines)
    assert max(map(len, lines)) <= 60


def test_a_long_first_column_is_folded_not_cut(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "40")
    path = "/".join(["folder"] * 9)
    _print_rich(["run", "what"], [[path, "short"]], [False, False])
    lines = capsys.readouterr().out.splitlines()
    assert "".join(line.replace("short", "").strip() for line in lines[3:]) == path


def test_the_list_of_data_sets_fits_eighty_columns(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("SPGCL_DATA", str(tmp_path))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert run(["datasets", "list"]) == 0
    table = capsys.readouterr().out.split("─")[-1]
    starts = [line.split()[0] for line in table.splitlines() if line[:2].strip()]
    assert {"csbm-heterophilic", "coauthor-physics", "squirrel-filtered"} <= set(starts)
