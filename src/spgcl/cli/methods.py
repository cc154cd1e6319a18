"""`spgcl methods`: every method with its hyper-parameters and defaults, or some with explanations."""

from typing import Annotated

import typer

from spgcl.cli.options import JsonOption, method_names
from spgcl.cli.output import print_json, print_table
from spgcl.runs.options import DEFAULT_METHOD

NamesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="METHOD",
        help="Only these, with explanations of their hyper-parameters (default: all).",
        autocompletion=method_names,
    ),
]


def methods(names: NamesArgument = None, json: JsonOption = False) -> None:
    """List methods, hyper-parameters and defaults; explain those of the methods that are named."""
    from spgcl.methods import METHODS, find, parameters
    from spgcl.methods.parameters import meanings
    from spgcl.methods.presets import PRESETS, known_graphs

    chosen = {name: find(name) for name in dict.fromkeys(names or METHODS)}
    if json:
        print_json(
            [
                {
                    "name": name,
                    "inductive": method.inductive,
                    "supervised": method.supervised,
                    "parameters": {
                        parameter.name: {
                            "default": parameter.default,
                            "type": parameter.type.__name__,
                            **({"choices": list(parameter.choices)} if parameter.choices else {}),
                            "meaning": meaning[parameter.name],
                        }
                        for parameter in parameters(method).values()
                    },
                }
                for name, method in chosen.items()
                for meaning in [meanings(method)]
            ]
        )
        return
    for name, method in chosen.items():
        meaning = meanings(method)
        rows = [
            [
                parameter.name,
                str(parameter.default),
                " | ".join(parameter.choices) or parameter.type.__name__,
                *([meaning[parameter.name]] if names else []),
            ]
            for parameter in parameters(method).values()
        ]
        summary = (method.__doc__ or "").splitlines()[0]
        remark = " (default)" if name == DEFAULT_METHOD else " (supervised)" if method.supervised else ""
        columns = ["parameter", "default", "values", *(["meaning"] if names else [])]
        print_table(f"{name}{remark}: {summary}", columns, rows)
        for preset in PRESETS if names else ():
            if graphs := known_graphs(preset, name):
                print(f"preset {preset}: {', '.join(graphs)}")
