"""PBS's job formula (job_sort_formula), decay and order. Pure.

Facts: openpbs cd7ab5e (fairshare.cpp and its functional tests). A formula is arithmetic over a job's numbers.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain

from domain.errors import InvalidInputError
from priority.fair_share import shown_names
from priority.systems import MIN_USAGE, Node

DECAY_FACTOR = 0.5  # every 24 hours
LONGEST_FORMULA = 1_000  # characters
_BINARY: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Mod: math.fmod,
    ast.Pow: math.pow,
}
_UNARY: Mapping[type[ast.unaryop], Callable[[float], float]] = {ast.USub: operator.neg, ast.UAdd: operator.pos}
_FUNCTIONS: Mapping[str, Callable[..., float]] = {
    "min": min,
    "max": max,
    "abs": abs,
    "sqrt": math.sqrt,
    "ceil": math.ceil,
    "floor": math.floor,
    "log2": math.log2,
}


def in_order(numbers: Iterable[tuple[str, float]]) -> list[str]:
    """Sort names by their number, highest first; equal ones (to 12 decimals) keep their order.

    >>> in_order([("dan", 0.1), ("bea", 0.4), ("ann", 0.4)])
    ['bea', 'ann', 'dan']
    """
    return [name for name, _ in sorted(numbers, key=lambda one: -round(one[1], 12))]


def decayed(usage: float, *, factor: float = DECAY_FACTOR, min_usage: float = MIN_USAGE) -> float:
    """Return a usage after one decay: times the factor, at least the minimum usage.

    >>> decayed(1.5)
    1.0
    """
    return max(min_usage, usage * factor)


def users(top: Sequence[Node]) -> list[str]:
    """Return the names of the vertices without children, depth first."""
    names = shown_names(top)

    def below(siblings: Iterable[Node]) -> list[str]:
        own = ([names[id(node)]] if not node.children else below(node.children) for node in siblings)
        return list(chain.from_iterable(own))

    return below(top)


def evaluate(formula: str, values: Mapping[str, float]) -> float:
    """Return the formula's value: numbers, names of `values`, + - * / % **, min, max, abs, sqrt, ceil, floor, log2.

    Undefined values (a division by zero, a root of a negative number) are 0, as in PBS. Raises InvalidInputError for
    any other construct, naming it.

    >>> evaluate("fairshare_factor + walltime/ncpus", {"fairshare_factor": 0.5, "walltime": 50, "ncpus": 2})
    25.5
    """
    if len(formula) > LONGEST_FORMULA:
        raise InvalidInputError("formula", f"at most {LONGEST_FORMULA} characters", formula)
    try:
        tree = ast.parse(formula.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise InvalidInputError("formula", "an arithmetic formula", formula) from None
    try:
        value = _value(tree.body, values)
    except (ArithmeticError, ValueError):
        return 0.0
    return value if math.isfinite(value) else 0.0


def _value(node: ast.expr, values: Mapping[str, float]) -> float:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return float(number)
        case ast.Name(id=name) if name in values:
            return float(values[name])
        case ast.BinOp(left, op, right) if type(op) in _BINARY:
            return _BINARY[type(op)](_value(left, values), _value(right, values))
        case ast.UnaryOp(op=sign, operand=operand) if type(sign) in _UNARY:
            return _UNARY[type(sign)](_value(operand, values))
        case ast.Call(func=ast.Name(id=name), args=[_, *_] as args, keywords=[]) if name in _FUNCTIONS:
            return _called(name, [_value(one, values) for one in args])
    raise InvalidInputError("formula", "numbers, arithmetic and one of " + ", ".join(sorted(values)), ast.unparse(node))


def _called(name: str, args: list[float]) -> float:
    if name in {"min", "max"} and len(args) == 1:
        return args[0]
    if name not in {"min", "max"} and len(args) != 1:
        raise InvalidInputError("formula", f"one value in {name}()", len(args))
    return float(_FUNCTIONS[name](*args))
