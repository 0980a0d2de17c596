"""The stubs of the native part name what is there, and nothing else."""

import ast
import inspect
import pathlib

import pytest

import bowwave
from bowwave import _native

PACKAGE = pathlib.Path(bowwave.__file__).parent


def test_stubs_and_module_have_the_same_names():
    assert (PACKAGE / "py.typed").exists()
    module = ast.parse((PACKAGE / "_native.pyi").read_text())
    assert names(module.body) == public(_native)
    [trace] = [node for node in module.body if isinstance(node, ast.ClassDef)]
    assert names(trace.body) == public(_native.Trace) | {"__len__"}


def test_stubs_and_functions_take_the_same_parameters():
    module = ast.parse((PACKAGE / "_native.pyi").read_text())
    functions = [node for node in module.body if isinstance(node, ast.FunctionDef)]
    assert functions
    for function in functions:
        arguments = function.args.args + function.args.kwonlyargs
        parameters = inspect.signature(getattr(_native, function.name)).parameters
        assert [argument.arg for argument in arguments] == list(parameters), function.name
        assert {argument.arg for argument in function.args.kwonlyargs} == {
            name for name, parameter in parameters.items() if parameter.kind is inspect.Parameter.KEYWORD_ONLY
        }
        # Of the last parameters, and None for a keyword without one.
        given = [*function.args.defaults, *function.args.kw_defaults]
        defaults = [ast.literal_eval(default) for default in given if default is not None]
        told = [parameter.default for parameter in parameters.values()]
        assert defaults == [default for default in told if default is not inspect.Parameter.empty], function.name


def test_nobody_makes_or_extends_a_trace_as_the_stubs_say():
    with pytest.raises(TypeError):
        bowwave.Trace()
    with pytest.raises(TypeError, match="not an acceptable base type"):
        type("Mine", (bowwave.Trace,), {})


def names(nodes):
    assigned = {node.target.id for node in nodes if isinstance(node, ast.AnnAssign)}
    return assigned | {node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.ClassDef))}


def public(thing):
    return {name for name in vars(thing) if not name.startswith("_")} | ({"__version__"} & set(vars(thing)))
