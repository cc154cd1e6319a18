from typing import Any, Literal

import pytest

from spgcl.errors import InputError
from spgcl.methods import METHODS, create, find, parameters
from spgcl.methods.method import Method
from spgcl.methods.parameters import Parameter, checked, meanings
from spgcl.methods.ranges import Fraction, Range, SizesMemory, Width


class Example(Method):
    """Nothing.

    Args:
        flavour: How it
            tastes.
        dropout: What is left out.
        weight: In grams.
        bold: Or not.
    """

    def __init__(
        self,
        num_features: int,
        *,
        flavour: Literal["sweet", "sour"] = "sweet",
        hidden: Width = 8,
        dropout: Fraction = 0.5,
        weight: float = 1.0,
        bold: bool = False,
    ) -> None: ...


def test_parameters_are_read_from_the_signature():
    assert dict(parameters(Example)) == {
        "flavour": Parameter("flavour", "sweet", str, ("sweet", "sour")),
        "hidden": Parameter(
            "hidden", 8, int, range=Range(without_least=True), sizes_memory=SizesMemory.WEIGHTS
        ),
        "dropout": Parameter("dropout", 0.5, float, range=Range(most=1, without_most=True)),
        "weight": Parameter("weight", 1.0, float),
        "bold": Parameter("bold", False, bool),
    }
    with pytest.raises(TypeError):
        parameters(Example)["hidden"] = 3


class Special(Example):
    """Nothing else.

    Args:
        depth: How deep.
    """

    def __init__(self, num_features: int, *, weight: float = 2.0, depth: int = 1, **shared: Any) -> None: ...


def test_settings_that_are_passed_on_are_those_of_the_class_that_is_extended():
    known = parameters(Special)
    assert list(known) == ["depth", *parameters(Example)]
    changed = {"depth": Parameter("depth", 1, int), "weight": Parameter("weight", 2.0, float)}
    assert dict(known) == {**parameters(Example), **changed}
    assert meanings(Special) == {"depth": "How deep.", **meanings(Example)}


def test_meanings_come_from_the_method_or_else_from_what_all_methods_share():
    assert meanings(Example) == {
        "flavour": "How it tastes.",
        "hidden": meanings(METHODS["dgi"])["hidden"],
        "dropout": "What is left out.",
        "weight": "In grams.",
        "bold": "Or not.",
    }


@pytest.mark.parametrize(
    ("name", "given", "value"),
    [
        ("flavour", "sour", "sour"),
        ("hidden", "16", 16),
        ("hidden", 1e3, 1000),
        ("dropout", "0", 0.0),
        ("dropout", 0.99, 0.99),
        ("weight", "1e-3", 0.001),
        ("weight", 2, 2.0),
        ("bold", "yes", True),
        ("bold", "FALSE", False),
        ("bold", "1", True),
        ("bold", 0, False),
        ("bold", True, True),
    ],
)
def test_text_and_numbers_become_values_of_the_right_type(name, given, value):
    result = checked(Example, {name: given})
    assert result == {name: value} and type(result[name]) is type(value)


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        (
            "hiden",
            3,
            "unknown parameter 'hiden'; did you mean 'hidden'? choose from: flavour, hidden, dropout",
        ),
        ("num_features", 3, "unknown parameter 'num_features'; "),
        (
            "flavour",
            "swet",
            "unknown value of flavour 'swet'; did you mean 'sweet'? choose from: sweet, sour",
        ),
        ("flavour", 3, "unknown value of flavour '3'"),
        ("hidden", 0, "hidden is 0; it must be above 0"),
        ("hidden", -4, "hidden is -4; it must be above 0"),
        ("hidden", 2.5, "hidden is 2.5; it must be a whole number"),
        ("hidden", "2.5", "hidden is '2.5'; it must be a whole number"),
        ("hidden", True, "hidden is True; it must be a whole number"),
        ("hidden", None, "hidden is None; it must be a whole number"),
        ("hidden", float("inf"), "hidden is inf; it must be a whole number"),
        ("dropout", 1, "dropout is 1; it must be at least 0 and below 1"),
        ("dropout", -0.1, "dropout is -0.1; it must be at least 0 and below 1"),
        ("weight", -1, "weight is -1; it must be 0 or more"),
        ("weight", "nan", "weight is nan; it must be 0 or more and finite"),
        ("weight", "inf", "weight is inf; it must be 0 or more and finite"),
        ("weight", "much", "weight is 'much'; it must be a number"),
        ("weight", [1], "weight is [1]; it must be a number"),
        ("bold", "maybe", "bold is 'maybe'; it must be true or false"),
        ("bold", 2, "bold is 2; it must be true or false"),
        # Python does not make a float of the third, nor an int of the last.
        ("hidden", "9" * 400, f"hidden is {'9' * 30}...; it must be below 2**63"),
        ("weight", "9" * 400, "it must be 0 or more and finite"),
        ("weight", 10**400, "it must be a number"),
        ("hidden", "9" * 5000, "it must be a whole number"),
    ],
)
def test_a_bad_value_is_named_with_what_is_allowed(name, given, message):
    with pytest.raises(InputError) as caught:
        checked(Example, {name: given})
    assert message in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("name", METHODS)
def test_every_parameter_has_a_valid_default(name):
    method = METHODS[name]
    known = parameters(method)
    assert len({"steps", "learning_rate", "weight_decay"} & set(known)) in (0, 3)
    defaults = {parameter.name: parameter.default for parameter in known.values()}
    assert checked(method, defaults) == defaults


FRACTIONS = {
    *("dropout", "rate", "cut_off", "decay", "warm_up", "drop_edges", "mask_features"),
    *(f"{what}_{view}" for what in ("drop_edges", "mask_features") for view in ("1", "2", "first", "second")),
}
ABOVE_ZERO = {
    *("hidden", "layers", "embedding_width", "predictor_width", "projection", "projection_width"),
    *("widening", "seeds", "positives", "negatives", "neighbours", "clusters", "clusterings"),
    *("steps", "learning_rate", "temperature", "walks", "window", "p", "q", "restart"),
}
REFUSED = [
    pytest.param(name, parameter, value, id=f"{name}-{parameter}-{value}")
    for name, method in METHODS.items()
    for parameter in parameters(method)
    for names, value in ((ABOVE_ZERO, 0), (FRACTIONS, 1), (FRACTIONS, -0.1))
    if parameter in names
] + [
    pytest.param(name, parameter, value, id=f"{name}-{parameter}-{value}")
    for name, parameter, value in [
        *(("mvgrl", "restart", value) for value in (0.001, 1.5, "nan")),
        *(("mvgrl", "time", value) for value in (-1, 1000, "nan")),
        *(("mvgrl", "keep", -1), ("selene", "seeds", 1), ("selene", "attribute_share", 1.5)),
        *((name, "walk_length", 1) for name in ("deepwalk", "node2vec")),
    ]
]


@pytest.mark.parametrize(("name", "parameter", "value"), REFUSED)
def test_values_out_of_range_are_refused(name, parameter, value):
    with pytest.raises(InputError, match=f"^{parameter} is {value};"):
        create(name, 3, seed=0, settings={parameter: value})


def test_an_unknown_method_offers_the_nearest():
    with pytest.raises(InputError, match=r"'spgc'.*'spgcl'"):
        find("spgc")
    with pytest.raises(InputError, match="'spgc'"):
        create("spgc", 4, seed=0)


def test_creating_takes_settings_as_text():
    assert create("spgcl", 4, seed=0, settings={"steps": "7", "hidden": 8}).steps == 7
