import re

from commands import answer, output, refusal

from spgcl.runs.options import DEFAULT_METHOD


def test_methods_by_name_have_explanations_and_presets(capsys):
    text, _ = output(capsys, "methods", "grace", "raw")
    assert re.search(r"^temperature +0\.4 +float +\S+", text, re.M)
    assert "\npreset published: cora, citeseer, pubmed, " in text
    assert "raw: " in text and "spgcl: " not in text
    assert [method["name"] for method in answer(capsys, "methods", "grace")] == ["grace"]
    assert "did you mean 'grace'" in refusal(capsys, "methods", "grac")


def test_supervised_methods_and_the_default_are_marked(capsys):
    supervised = [method["name"] for method in answer(capsys, "methods") if method["supervised"]]
    assert supervised == ["mlp", "gcn"]
    text, _ = output(capsys, "methods")
    assert "gcn (supervised): " in text and "spgcl: " in text and f"{DEFAULT_METHOD} (default): " in text


def test_json_lists_what_a_constructor_takes(capsys):
    methods = answer(capsys, "methods")
    assert all(list(method) == ["name", "inductive", "supervised", "parameters"] for method in methods)
    assert methods[0]["name"] == "spgcl" and methods[0]["inductive"] and not methods[0]["supervised"]
    positives = methods[0]["parameters"]["positives"]
    assert list(positives) == ["default", "type", "meaning"]
    assert (positives["default"], positives["type"]) == (5, "int") and "K_pos" in positives["meaning"]
    assert methods[0]["parameters"]["encoder"]["choices"] == ["gcn", "gat", "gin", "sage", "mlp"]
