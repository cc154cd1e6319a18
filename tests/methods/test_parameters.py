from typing import Literal

import pytest

from spgcl.errors import InputError
from spgcl.methods import METHODS, create, find, parameters
from spgcl.methods.method import Method
from spgcl.methods.parameters import POSITIVE, SHARE, Parameter, checked


class Example(Method):
    def __init__(
        self,
        num_features: int,
        *,
        flavour: Literal["sweet", "sour"] = "sweet",
        hidden: int = 8,
        dropout: float = 0.5,
        weight: float = 1.0,
        bold: bool = False,
    ) -> None:
        super().__init__()
        self.given = (num_features, flavour, hidden, dropout, weight, bold)


def test_parameters_are_read_from_the_signature():
    assert dict(parameters(Example)) == {
        "flavour": Parameter("flavour", "sweet", str, ("sweet", "sour")),
        "hidden": Parameter("hidden", 8, int),
        "dropout": Parameter("dropout", 0.5, float),
        "weight": Parameter("weight", 1.0, float),
        "bold": Parameter("bold", False, bool),
    }
    with pytest.raises(TypeError):
        parameters(Example)["hidden"] = 3


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
        ("dropout", -0.1, "dropout is -0.1; it must be 0 or more"),
        ("weight", -1, "weight is -1; it must be 0 or more"),
        ("weight", "nan", "weight is nan; it must be 0 or more and finite"),
        ("weight", "inf", "weight is inf; it must be 0 or more and finite"),
        ("weight", "much", "weight is 'much'; it must be a number"),
        ("weight", [1], "weight is [1]; it must be a number"),
        ("bold", "maybe", "bold is 'maybe'; it must be true or false"),
        ("bold", 2, "bold is 2; it must be true or false"),
    ],
)
def test_a_bad_value_is_named_with_the_way_out(name, given, message):
    with pytest.raises(InputError) as caught:
        checked(Example, {name: given})
    assert message in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("name", METHODS)
def test_every_parameter_has_a_valid_default_and_a_description(name):
    method = METHODS[name]
    known = parameters(method)
    assert len({"steps", "learning_rate", "weight_decay"} & set(known)) in (0, 3)
    defaults = {parameter.name: parameter.default for parameter in known.values()}
    assert checked(method, defaults) == defaults
    for parameter in known:
        assert f"        {parameter}: " in method.__doc__, f"{name}.{parameter} is not described"


RANGES = [(POSITIVE, 0, "is 0; it must be above 0"), (SHARE, 1, "is 1; it must be at least 0 and below 1")]
REFUSED = [
    pytest.param(name, parameter, value, message, id=f"{name}-{parameter}")
    for name, method in METHODS.items()
    for parameter in parameters(method)
    for names, value, message in RANGES
    if parameter in names
]


@pytest.mark.parametrize(("name", "parameter", "value", "message"), REFUSED)
def test_a_name_has_one_range_in_every_method(name, parameter, value, message):
    with pytest.raises(InputError, match=f"^{parameter} {message}$"):
        create(name, 3, seed=0, settings={parameter: value})


def test_every_range_is_of_some_method():
    used = {parameter for method in METHODS.values() for parameter in parameters(method)}
    assert used >= POSITIVE | SHARE


def test_an_unknown_method_offers_the_nearest():
    with pytest.raises(InputError, match="unknown method 'spgc'; did you mean 'spgcl'"):
        find("spgc")
    with pytest.raises(InputError, match="unknown method 'spgc'"):
        create("spgc", 4, seed=0)


def test_creating_checks_the_settings():
    with pytest.raises(InputError, match="steps is 0; it must be above 0"):
        create("spgcl", 4, seed=0, settings={"steps": 0})
    assert create("spgcl", 4, seed=0, settings={"steps": "7", "hidden": 8}).steps == 7
