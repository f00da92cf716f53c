"""Signatures in the reference: default values that a reader can read. Sphinx calls `readable` (conf.py)."""

from __future__ import annotations

import ast
import re

LONGEST_DEFAULT = 60
FACTORY = re.compile(r"\bNOTHING\b")  # how attrs writes a default that is made for each object
OBJECT = re.compile(r"<(?:function [^<>]*(?:<\w+>)?|[\w.]+ object)[^<>]*>")
CLASS = re.compile(r"<class '(?:\w+\.)*(\w+)'>")
MEMBER = re.compile(r"<(\w+\.\w+): [^<>]*>")
PARAMETER = re.compile(r"~\w+\.~(\w+)")  # a ParamSpec


def readable(signature: str) -> str:
    """Return a signature whose defaults are short and can be parsed; `...` stands for any other default.

    One default that isn't Python lets Sphinx give up on the whole signature, and all of its types are then written with
    their modules.
    """
    for pattern, replacement in (
        (FACTORY, "..."),
        (OBJECT, "..."),
        (CLASS, r"\1"),
        (MEMBER, r"\1"),
        (PARAMETER, r"\1"),
    ):
        signature = pattern.sub(replacement, signature)
    try:
        (function,) = ast.parse(f"def function{signature}: ...").body
    except SyntaxError:
        return signature
    assert isinstance(function, ast.FunctionDef)
    for defaults in (function.args.defaults, function.args.kw_defaults):
        for index, default in enumerate(defaults):
            if default is not None and len(ast.unparse(default)) > LONGEST_DEFAULT:
                defaults[index] = ast.Constant(...)
    return f"({ast.unparse(function.args)})"
