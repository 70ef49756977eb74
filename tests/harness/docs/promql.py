"""What a query of Prometheus names: its metrics, and the labels that it looks at; and what the expression of an alert rule selects.

Only the operators that the rules of this project use are evaluated, on the samples of one scrape. Any other one is an error.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_SELECTOR = re.compile(r"\b(cdc_\w+)(?:\{([^}]*)\})?")
_MATCHER = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")
_GROUPING = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)")
_SHOWN = re.compile(r"\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}")

Labels = dict[str, set[str]]
"""Labels by the name of a metric's samples."""


def labels_of(samples: Iterable[tuple[str, Iterable[str]]]) -> Labels:
    """Return which labels each name has, from names and labels of samples."""
    found: Labels = {}
    for name, labels in samples:
        found.setdefault(name, set()).update(labels)
    return found


def unknown_in(query: str, known: Labels) -> list[str]:
    """Return the metrics and labels of a query that there are not.

    A label of a grouping counts as known when one of the query's metrics has it.
    """
    bare = _STRING.sub('""', query)
    found = []
    mine: set[str] = set()
    for name, matchers in _SELECTOR.findall(bare):
        if name not in known:
            found.append(name)
            continue
        mine |= known[name]
        found += [f"{name}{{{label}}}" for label in _MATCHER.findall(matchers) if label not in known[name]]
    grouped = {label.strip() for labels in _GROUPING.findall(bare) for label in labels.split(",")} - {""}
    return found + sorted(grouped - mine)


def metrics_in(query: str) -> set[str]:
    """Return the metrics that a query names."""
    return {name for name, _ in _SELECTOR.findall(_STRING.sub('""', query))}


def shown_in(text: str) -> set[str]:
    """Return the labels that a legend or the text of an alert shows: ``{{source}}``, ``{{ $labels.source }}``."""
    return set(_SHOWN.findall(text))


# --- evaluating a rule

Sample = tuple[dict[str, str], float]
"""Labels and value."""
Vector = list[Sample]
Scrape = dict[str, Vector]
"""The samples of one scrape by their name."""

_TOKEN = re.compile(r"\s*(?:(?P<number>\d+(?:\.\d+)?)|(?P<word>[a-zA-Z_]\w*)|(?P<sign>[=<>!]=|[-+*/<>(),]))")
_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_LEVELS = (("and", "unless"), tuple(_COMPARISONS), ("*",))
"""Binary operators, from the one that binds least."""


class NotEvaluated(AssertionError):
    """The expression has something that is not evaluated here, or that Prometheus refuses."""


def selected(expression: str, scrape: Scrape) -> list[dict[str, str]]:
    """Return the labels of the samples that an alert rule's expression gives: each of them is an alert."""
    reader = _Expression(_tokens(expression), scrape)
    value = reader.binary(0)
    if reader.left or not isinstance(value, list):
        raise NotEvaluated(f"{expression!r} goes on with {reader.left}, or is a number")
    return [labels for labels, _ in value]


def _tokens(expression: str) -> list[str]:
    found, at = [], 0
    while expression[at:].strip():
        match = _TOKEN.match(expression, at)
        if match is None:
            raise NotEvaluated(f"{expression[at:]!r} is not understood")
        found.append(match[0].strip())
        at = match.end()
    return found


@dataclass
class _Matching:
    """How two vectors are matched: by these labels, or by all of them; ``many`` allows several left samples for one right one."""

    on: Sequence[str] | None = None
    many: bool = False

    def key(self, labels: dict[str, str]) -> tuple[tuple[str, str], ...]:
        names = labels if self.on is None else self.on
        return tuple(sorted((name, labels.get(name, "")) for name in names))


@dataclass
class _Expression:
    left: list[str]
    scrape: Scrape = field(default_factory=dict)

    def binary(self, level: int) -> Vector | float:
        """Read operands and operators that bind at least as much as a level."""
        if level == len(_LEVELS):
            return self._operand()
        value = self.binary(level + 1)
        while self.left and self.left[0] in _LEVELS[level]:
            sign = self.left.pop(0)
            matching = self._matching()
            value = _applied(sign, value, self.binary(level + 1), matching)
        return value

    def _operand(self) -> Vector | float:
        token = self.left.pop(0) if self.left else ""
        if token == "(":
            value = self.binary(0)
            self._expect(")")
            return value
        if token[:1].isdigit():
            return float(token)
        if token == "absent":
            self._expect("(")
            name = self.left.pop(0)
            self._expect(")")
            return [] if self.scrape.get(name) else [({}, 1.0)]
        if not token.startswith("cdc_") or (self.left and self.left[0] in ("{", "[")):
            raise NotEvaluated(f"{token!r} is not evaluated here")
        return list(self.scrape.get(token, []))

    def _matching(self) -> _Matching:
        matching = _Matching()
        if self.left[:1] == ["on"]:
            self.left.pop(0)
            matching.on = self._names()
        if self.left[:1] == ["group_left"]:
            self.left.pop(0)
            if self._names():
                raise NotEvaluated("group_left with labels is not evaluated here")
            matching.many = True
        return matching

    def _names(self) -> list[str]:
        self._expect("(")
        names = []
        while (token := self.left.pop(0) if self.left else ")") != ")":
            names += [token] if token != "," else []
        return names

    def _expect(self, token: str) -> None:
        if not self.left or self.left.pop(0) != token:
            raise NotEvaluated(f"there is no {token!r} where it belongs")


def _applied(sign: str, one: Vector | float, other: Vector | float, matching: _Matching) -> Vector | float:
    if sign in ("and", "unless"):
        if not isinstance(one, list) or not isinstance(other, list):
            raise NotEvaluated(f"{sign} is for vectors")
        keys = {matching.key(labels) for labels, _ in other}
        return [sample for sample in one if (matching.key(sample[0]) in keys) == (sign == "and")]
    compare = _COMPARISONS.get(sign)
    if isinstance(one, list) and isinstance(other, list):
        if compare is None:
            raise NotEvaluated(f"{sign} of two vectors is not evaluated here")
        return _compared(compare, one, other, matching)
    if isinstance(one, list) and isinstance(other, float) and compare is not None:
        return [sample for sample in one if compare(sample[1], other)]
    if isinstance(one, float) and compare is None:
        return [(labels, one * value) for labels, value in other] if isinstance(other, list) else one * other
    raise NotEvaluated(f"{sign} of these two is not evaluated here")


def _compared(compare: Callable[[float, float], bool], one: Vector, other: Vector, matching: _Matching) -> Vector:
    """Compare sample by sample; as in Prometheus, several samples with one key on a side are an error."""
    right = {matching.key(labels): value for labels, value in other}
    keys = [matching.key(labels) for labels, _ in one]
    if len(right) < len(other) or (not matching.many and len(set(keys)) < len(keys)):
        raise NotEvaluated("several samples match one: Prometheus refuses this")
    return [sample for key, sample in zip(keys, one, strict=True) if key in right and compare(sample[1], right[key])]
