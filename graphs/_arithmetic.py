"""Arithmetic from text, without eval: the text is parsed, and only numbers, operators and a few functions pass."""

import ast
import math
import operator
import re
import unicodedata
from collections.abc import Callable

__all__ = ["calculate_text", "evaluate"]

MAX_LENGTH = 200  # characters of an expression
MAX_BITS = 4096  # of a whole number, on the way too: about 1,200 digits
MAX_FACTORIAL = 300

_BINARY: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_UNARY: dict[type[ast.unaryop], Callable[[float], float]] = {ast.UAdd: operator.pos, ast.USub: operator.neg}
_CONSTANTS = {"pi": math.pi, "e": math.e}
_SIGNS = {"×": "*", "✕": "*", "·": "*", "÷": "/", "−": "-", "^": "**"}


def _factorial(n: float) -> float:
    if n != int(n) or not 0 <= n <= MAX_FACTORIAL:
        raise ValueError(f"factorial takes whole numbers from 0 to {MAX_FACTORIAL}, not {_shown(n)}")
    return math.factorial(int(n))


_FUNCTIONS: dict[str, Callable[..., float]] = {
    "abs": abs,
    "ceil": math.ceil,
    "cos": math.cos,
    "exp": math.exp,
    "factorial": _factorial,
    "floor": math.floor,
    "ln": math.log,
    "log": math.log10,
    "log2": math.log2,
    "max": max,
    "min": min,
    "round": round,
    "sin": math.sin,
    "sqrt": math.sqrt,
    "tan": math.tan,
}


def evaluate(expression: str) -> float:
    """The value of an arithmetic expression; whole numbers stay whole.

    Knows + - * / // % ** (also ^ × ÷), brackets, `15% of 80`, pi, e and the usual functions.

    Raises:
        ValueError: the text is no arithmetic, is too large, or has no (real, finite) value.
    """
    if len(expression) > MAX_LENGTH:
        raise ValueError(f"the expression has {len(expression)} characters; at most {MAX_LENGTH} are read")
    text = unicodedata.normalize("NFKC", expression).strip().rstrip("=?")
    for sign, plain in _SIGNS.items():
        text = text.replace(sign, plain)
    text = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", text)  # 1,000 is a thousand
    text = re.sub(r"(\d+(?:\.\d+)?)\s*%\s*of\b", r"(\1/100)*", text)
    text = re.sub(r"(\d+(?:\.\d+)?)\s*%(?=\s*(?:$|[+*/)]))", r"(\1/100)", text)
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise ValueError(f"{expression!r} is not arithmetic; write it like 12*7 or sqrt(2)+1") from None
    try:
        return _bounded(_value(tree.body))
    except ZeroDivisionError:
        raise ValueError(f"{expression!r} divides by zero") from None
    except OverflowError:
        raise ValueError(f"{expression!r} is too large to compute") from None


def calculate_text(expression: str) -> str:
    """The value of an arithmetic expression as text, to twelve significant digits."""
    return _shown(evaluate(expression))


def _shown(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.12g}"


def _value(node: ast.expr) -> float:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return _bounded(number)
        case ast.Name(id=name) if name in _CONSTANTS:
            return _CONSTANTS[name]
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _UNARY:
            return _UNARY[type(op)](_value(operand))
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _power(_value(left), _value(right))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _bounded(_BINARY[type(op)](_value(left), _value(right)))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
            return _applied(name, [_value(arg) for arg in args])
    part = ast.unparse(node)
    raise ValueError(f"{part!r} is not arithmetic; known are numbers, + - * / // % **, pi, e, {', '.join(_FUNCTIONS)}")


def _applied(name: str, values: list[float]) -> float:
    try:
        return _bounded(_FUNCTIONS[name](*values))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}({', '.join(map(_shown, values))}) has no value: {error}") from None


def _power(base: float, exponent: float) -> float:
    """Refuse a whole power by its size before it is computed: 9**9**9 would never end."""
    whole = isinstance(base, int) and isinstance(exponent, int) and abs(base) > 1
    if whole and exponent * math.log2(abs(base)) > MAX_BITS:
        raise ValueError(f"the power is too large: whole numbers of up to {MAX_BITS} bits are computed")
    result = base**exponent
    return _bounded(result)


def _bounded(value: complex) -> float:
    """The value, if it is real, finite and not too long."""
    match value:
        case int():
            if value.bit_length() > MAX_BITS:
                raise ValueError(f"the number is too large: whole numbers of up to {MAX_BITS} bits are computed")
            return value
        case float():
            if not math.isfinite(value):
                raise ValueError("the value is not a finite number")
            return value
        case _:
            raise ValueError("a root of a negative number is not a real number")
