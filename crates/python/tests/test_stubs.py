"""The stubs of the native part name what is there, and nothing else."""

import ast
import inspect
import pathlib

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


def names(nodes):
    assigned = {node.target.id for node in nodes if isinstance(node, ast.AnnAssign)}
    return assigned | {node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.ClassDef))}


def public(thing):
    return {name for name in vars(thing) if not name.startswith("_")} | ({"__version__"} & set(vars(thing)))
