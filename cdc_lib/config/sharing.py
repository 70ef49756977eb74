"""Whether several source tables may be routed into one lake table: a pure, conservative check of the source file."""

from __future__ import annotations

import re
import string
from typing import TYPE_CHECKING

from cdc_lib.config.patterns import exact_parts, is_exact
from cdc_lib.config.routes import RouteRule

if TYPE_CHECKING:
    from cdc_lib.config.source import SourceConfig


def shares_lake_table(config: SourceConfig, database: str, table: str) -> bool:
    """Whether a lake table of this table may also have rows of other tables."""
    own = [rule for rule in config.routes if rule.covers(database, table)]
    if not own:
        return any(_may_lead_to(rule, config.source, (database, table)) for rule in config.routes)
    for rule in own:
        name = rule.lake_table(config.source, database, table)
        others = (other for other in config.routes if other is not rule)
        unrouted = name != (database, table) and config.tables.captures(*name)
        if "server" in rule.keys or not _separates(rule) or unrouted:
            return True
        if any(_may_lead_to(other, config.source, name) for other in others):
            return True
    return False


def _separates(rule: RouteRule) -> bool:
    """Whether each covered table gets its own lake table."""
    if is_exact(rule.tables):
        return True
    placeholders = {name for _, name, _, _ in string.Formatter().parse(rule.into) if name}
    one_database, one_table = exact_parts(rule.tables)
    return (one_database or "database" in placeholders) and (one_table or "table" in placeholders)


def _may_lead_to(rule: RouteRule, source: str, name: tuple[str, str]) -> bool:
    return all(_may_be(template, source, part) for template, part in zip(rule.into_parts, name, strict=True))


def _may_be(template: str, source: str, name: str) -> bool:
    parts = []
    for text, placeholder, _, _ in string.Formatter().parse(template):
        parts.append(re.escape(text))
        if placeholder is not None:
            parts.append(re.escape(source) if placeholder == "source" else ".+")
    return re.fullmatch("".join(parts), name, re.DOTALL) is not None
