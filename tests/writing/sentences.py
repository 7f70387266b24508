"""Finds sentences in what tests expect. Tests check codes, fields, numbers and names instead: `tests/facts.py`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from tests.writing.check import ROOT, Finding

MIN_LENGTH = 28
MIN_WORDS = 5
# The table of refusals owns its wording, so its test may repeat it.
TABLE_TEST = "tests/unit/domain/test_refusals.py"

WORD = re.compile(r"(?<![\w/.\\])[A-Za-z][A-Za-z'’-]*(?![\w/=(])")
# Markup, JSON, templates, calls, patterns with groups, and SQL.
CODE = re.compile(r"""<|\|\w|\{["'{%]|\w\(\)|\(\?|\b(?:SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|FROM|WHERE)\b""")
EXPECTING = {"missing", "states", "raises", "warns"}
# Calls whose arguments are compared with what the code under test returned. The arguments of other functions are input.
COMPARING = EXPECTING | {
    *("startswith", "endswith", "count", "find", "index", "removeprefix", "partition", "split", "replace"),
    *("search", "match", "fullmatch", "findall", "compile", "escape"),
    *("all", "any", "list", "sorted", "set", "frozenset", "tuple", "dict", "zip", "str", "format", "encode", "join"),
}
Function = ast.FunctionDef | ast.AsyncFunctionDef
Scope = ast.Module | Function
Text = ast.Constant | ast.JoinedStr
Parameters = list[tuple[str, bool]]  # names in order, and whether the function compares them


def is_sentence(text: str) -> bool:
    """Whether a text is a sentence, not a fact, a name or code.

    >>> is_sentence("jobs.count: expected a whole number from 1 to 1000000, got -5")
    True
    >>> is_sentence("whole number from 1 to 1000000"), is_sentence('{"detail": "a sentence that is input"}')
    (False, False)
    """
    if len(text) < MIN_LENGTH or CODE.search(text):
        return False
    words = WORD.findall(text)
    return len(words) >= MIN_WORDS and sum(word.islower() for word in words) >= 0.6 * len(words)


def text_of(node: Text) -> str:
    """The text of a literal. Values in an f-string are "…"."""
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
    return str(node.value)


def is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def called(call: ast.Call) -> str:
    """The last part of the name of what is called."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def compared(node: ast.AST) -> Iterator[ast.AST]:
    """Literals and names below `node` that are compared, without the input of calls.

    >>> [found.id for found in compared(ast.parse("f(given) == Refusal(code, why)", mode="eval"))]
    ['code', 'why']
    """
    if isinstance(node, ast.Constant | ast.Name):
        yield node
        return
    below: Iterable[ast.AST] = ast.iter_child_nodes(node)
    if isinstance(node, ast.Attribute):  # a part of what the code under test returned
        below = []
    elif isinstance(node, ast.JoinedStr):
        yield node
        below = [part for part in node.values if isinstance(part, ast.FormattedValue)]
    elif isinstance(node, ast.Call):
        makes = called(node) in COMPARING or called(node)[:1].isupper()
        below = [*node.args, *(keyword.value for keyword in node.keywords)] if makes else []
    for child in below:
        yield from compared(child)


@cache
def expectations(tree: ast.AST) -> tuple[ast.AST, ...]:
    """Literals and names that asserts, `pytest.raises` and `tests.facts` compare."""
    found: list[ast.AST] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            found += compared(node.test)
        elif isinstance(node, ast.Call) and called(node) in EXPECTING:
            found += compared(node)
    return tuple(found)


def names(nodes: Iterable[ast.AST]) -> set[str]:
    return {node.id for node in nodes if isinstance(node, ast.Name)}


def texts(nodes: Iterable[ast.AST]) -> Iterator[Text]:
    return (node for node in nodes if isinstance(node, Text) and is_text(node))


def scopes(tree: ast.Module) -> Iterator[Scope]:
    yield tree
    yield from (node for node in ast.walk(tree) if isinstance(node, Function))


def parameters(function: Function) -> Parameters:
    expected = names(expectations(function))
    given = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    return [(one.arg, one.arg in expected) for one in given if one.arg not in {"self", "cls"}]


def arguments(call: ast.Call, of: Mapping[str, Parameters]) -> Iterator[ast.AST]:
    """Arguments that the called function compares."""
    wanted = of.get(called(call), [])
    yield from (value for value, (_, expected) in zip(call.args, wanted, strict=False) if expected)
    yield from (keyword.value for keyword in call.keywords if (keyword.arg, True) in wanted)


def columns(keys: ast.AST, table: ast.AST, wanted: set[str]) -> Iterator[ast.AST]:
    """Values of the wanted columns of a table that a test is parametrized with or loops over."""
    heads = re.findall(r"\w+", ast.unparse(keys))
    for row in getattr(table, "elts", []):
        values = row.args if isinstance(row, ast.Call) and called(row) == "param" else [row]
        if len(heads) > 1 and len(values) == 1:
            values = getattr(values[0], "elts", [])
        yield from (value for head, value in zip(heads, values, strict=False) if head in wanted)


def parametrized(scope: Scope) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Names and table of each `parametrize` of a test."""
    for call in [] if isinstance(scope, ast.Module) else scope.decorator_list:
        if isinstance(call, ast.Call) and called(call) == "parametrize" and len(call.args) > 1:
            yield call.args[0], call.args[1]


def rows(scope: Scope, tables: Mapping[str, ast.AST]) -> Iterator[ast.AST]:
    """Values of `parametrize` for parameters that the test compares. `tables` are those of the module, by name."""
    for keys, table in parametrized(scope):
        yield from columns(keys, tables.get(ast.unparse(table), table), names(expectations(scope)))


def assignments(scope: Scope) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Targets and values: on the top level of a module, anywhere in a function."""
    for node in scope.body if isinstance(scope, ast.Module) else ast.walk(scope):
        if isinstance(node, ast.Assign):
            yield from ((target, node.value) for target in node.targets)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            yield node.target, node.value


def assigned(scope: Scope, wanted: set[str]) -> Iterator[ast.AST]:
    """What is assigned to the wanted names, or what they loop over."""
    for target, value in assignments(scope):
        if wanted & names([target]):
            yield from compared(value)
    for node in ast.walk(scope):
        if isinstance(node, ast.For | ast.comprehension):
            yield from (found for value in columns(node.target, node.iter, wanted) for found in compared(value))


def expected_texts(tree: ast.Module, of: Mapping[str, Parameters]) -> Iterator[Text]:
    """Text that the tests of a file expect, with repetitions."""
    yield from texts(expectations(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield from texts(found for value in arguments(node, of) for found in compared(value))
    tables = {ast.unparse(target): value for target, value in assignments(tree)}
    for scope in scopes(tree):
        yield from texts(assigned(scope, names(expectations(scope))))
        yield from texts(found for value in rows(scope, tables) for found in compared(value))


def given_text(tree: ast.Module, expected: Iterable[Text]) -> str:
    """All other text of a file, and text that a test both gives and expects, under one name."""
    parts = [part for text in expected if isinstance(text, ast.JoinedStr) for part in text.values]
    left_out = {id(node) for node in (*expected, *parts)}
    found = [text for text in texts(ast.walk(tree)) if id(text) not in left_out]
    tables = {id(table) for scope in scopes(tree) for _, table in parametrized(scope)}
    for scope in scopes(tree):
        compares = tables | {id(node) for node in expectations(scope)}
        loaded = (node for node in ast.walk(scope) if id(node) not in compares)
        inputs = {node.id for node in loaded if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
        found += texts(assigned(scope, inputs))
    return "\n".join(map(text_of, found))


def check_sentences(files: Iterable[str], root: Path = ROOT) -> Iterator[Finding]:
    """Sentences that tests expect, unless the same file gives them as input. `files` are Python files."""
    trees = {file: ast.parse((root / file).read_text()) for file in files}
    of = {one.name: parameters(one) for tree in trees.values() for one in ast.walk(tree) if isinstance(one, Function)}
    for file, tree in trees.items():
        if file == TABLE_TEST:
            continue
        expected = {id(text): text for text in expected_texts(tree, of)}.values()
        sentences = [text for text in expected if is_sentence(text_of(text))]
        given = given_text(tree, expected) if sentences else ""
        for text in sorted(sentences, key=lambda text: text.lineno):
            if text_of(text) not in given:
                yield Finding(file, text.lineno, f"checks a sentence, not its facts: {text_of(text)[:60]!r}")
