"""`spgcl methods`: every method with its hyper-parameters and defaults."""

from spgcl.cli.options import JsonOption
from spgcl.cli.output import print_json, print_table


def methods(json: JsonOption = False) -> None:
    """Every method with its hyper-parameters and their defaults."""
    from spgcl.methods import METHODS, parameters

    records = [
        {
            "name": name,
            "inductive": method.inductive,
            "supervised": method.supervised,
            "parameters": {
                parameter.name: {
                    "default": parameter.default,
                    "type": parameter.type.__name__,
                    **({"choices": list(parameter.choices)} if parameter.choices else {}),
                }
                for parameter in parameters(method).values()
            },
        }
        for name, method in METHODS.items()
    ]
    if json:
        print_json(records)
        return
    for name, method in METHODS.items():
        rows = [
            [parameter.name, str(parameter.default), " | ".join(parameter.choices) or parameter.type.__name__]
            for parameter in parameters(method).values()
        ]
        summary = (method.__doc__ or "").splitlines()[0]
        needs = " (supervised)" if method.supervised else ""
        print_table(f"{name}{needs}: {summary}", ["parameter", "default", "values"], rows)
