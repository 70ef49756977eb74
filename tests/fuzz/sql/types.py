"""Column types, and corner values of each as SQL literals."""

from __future__ import annotations

from dataclasses import dataclass

BOTH, MYSQL, MARIADB = ("mysql", "mariadb"), ("mysql",), ("mariadb",)


@dataclass(frozen=True)
class Type:
    """A column type.

    Args:
        name: as declared.
        values: SQL literals; a server may refuse one, by its sql_mode.
        family: types that are changed into one another by MODIFY, and a feature of ``--only``.
        key: how a key names the column, ``{}`` is its name; empty if no key can.
        flavors: servers that have it.
        weight: how often it is taken.
        default: whether it may have a literal as DEFAULT.
    """

    name: str
    values: tuple[str, ...]
    family: str
    key: str = "{}"
    flavors: tuple[str, ...] = BOTH
    weight: int = 2
    default: bool = True


def _integers() -> list[Type]:
    found = []
    for name, bits in (("TINYINT", 8), ("SMALLINT", 16), ("MEDIUMINT", 24), ("INT", 32), ("BIGINT", 64)):
        low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
        found.append(Type(name, ("0", "1", "2", "-1", str(low), str(high), str(high - 1)), "integer"))
        unsigned = ("0", "1", "2", str(high), str(high + 1), str(2**bits - 1))
        found.append(Type(f"{name} UNSIGNED", unsigned, "integer", weight=1))
    return [*found, Type("INT(5) ZEROFILL", ("0", "7", "99999", "4294967295"), "integer", weight=1)]


def _decimals() -> list[Type]:
    found = []
    for digits, scale in ((1, 0), (9, 9), (10, 2), (18, 4), (38, 10), (39, 0), (65, 30)):
        whole = "9" * (digits - scale) or "0"
        most = f"{whole}.{'9' * scale}" if scale else whole
        found.append(
            Type(f"DECIMAL({digits},{scale})", ("0", most, f"-{most}", "-0.0", "0.5", "1"), "decimal", weight=1)
        )
    return [*found, Type("NUMERIC(6,2) UNSIGNED", ("0", "0.01", "9999.99"), "decimal", weight=1)]


_MOMENTS = (
    "'2024-02-29 23:59:59'", "'2024-01-01 00:00:00'", "'0000-00-00 00:00:00'", "'2024-00-10 00:00:00'", "'2024-01-00 01:02:03'",
    "'0000-00-01 00:00:00'", "'1000-01-01 00:00:00'", "'9999-12-31 23:59:59'", "'0001-01-01 00:00:00'", "'1970-01-01 00:00:00'",
    "'1969-12-31 23:59:59'", "'1582-10-10 00:00:00'", "'0000-01-01 00:00:00'",
)  # fmt: skip
_DAYS = (
    "'0000-00-00'", "'2024-00-10'", "'2024-01-00'", "'0000-00-01'", "'2024-02-29'", "'2024-01-01'", "'1000-01-01'", "'9999-12-31'",
    "'0001-01-01'", "'1970-01-01'", "'1969-12-31'", "'1582-10-10'", "'0000-01-01'", "'1899-12-31'",
)  # fmt: skip
_STAMPS = (
    "'2024-02-29 23:59:59'", "'1970-01-01 00:00:01'", "'2038-01-19 03:14:07'", "'2024-03-31 02:30:00'", "'0000-00-00 00:00:00'",
    "'2000-01-01 00:00:00.999999'",
)  # fmt: skip
_TIMES = (
    "'00:00:00'",
    "'-00:00:01'",
    "'838:59:59'",
    "'-838:59:59'",
    "'12:34:56.789012'",
    "'-00:00:00.500000'",
    "'23:59:59.999999'",
)


def _temporals() -> list[Type]:
    fractions = ("'2024-01-01 00:00:00.000001'", "'2024-01-01 23:59:59.999999'", "'9999-12-31 23:59:59.999999'")
    return [
        Type("DATE", _DAYS, "date", weight=5),
        Type("DATETIME", _MOMENTS, "date", weight=5),
        *(Type(f"DATETIME({n})", (*_MOMENTS, *fractions), "date") for n in (1, 6)),
        Type("TIMESTAMP NULL DEFAULT NULL", _STAMPS, "stamp", weight=3, default=False),
        Type("TIMESTAMP(3) NULL DEFAULT NULL", _STAMPS, "stamp", default=False),
        *(Type(name, _TIMES, "time", weight=1) for name in ("TIME", "TIME(3)", "TIME(6)")),
        Type("YEAR", ("0", "1901", "2155", "2024", "70"), "integer"),
    ]


_WORDS = (
    "''", "'a'", "'A'", "'a '", "'á'", "'ä'", "'ß'", "'ss'", "'b'", "' a'", "'a\\tb'", "'it''s'", "'\\\\'", "'\\0'", "'%_'", "'NULL'",
    "'null'", "'ǆ'", "'ﬁ'", "'fi'", "'ı'", "'i'", "'I'", "'İ'", "'σ'", "'ς'",
)  # fmt: skip
_WIDE = (*_WORDS, "'😀'", "'𠮷'", "'a\u0301'", "'\u200b'", "'\u00a0'", "'日本'", "x'EFBFBF'", "x'F09F9880'", "x'00'")
_LATIN = ("''", "'a'", "'A'", "'a '", "'ä'", "'ÿ'", "'€'", "'é'", "x'80'", "x'81'", "x'FF'", "x'00'")
_ASCII = ("''", "'a'", "'A'", "'b'", "'a '", "'~'")
_HAN = ("''", "'a'", "'中文'", "'A'", "'。'")
_KANA = ("''", "'a'", "'日本語'", "'ｱ'", "'～'", "'A'")


def _texts() -> list[Type]:
    return [
        Type("VARCHAR(20)", _WIDE, "text", weight=6),
        Type("CHAR(9)", _WIDE, "text", weight=3),
        Type("VARCHAR(20) COLLATE utf8mb4_bin", _WIDE, "text"),
        Type("VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci", _WIDE, "text"),
        Type("VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci", _WIDE, "text", flavors=MYSQL),
        Type("CHAR(5) CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_as_cs", _WIDE, "text", flavors=MYSQL),
        Type("CHAR(5) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin", _WIDE, "text", flavors=MARIADB),
        Type("VARCHAR(9) CHARACTER SET utf8mb3", _WORDS, "text"),
        Type("VARCHAR(9) CHARACTER SET latin1", _LATIN, "text"),
        Type("CHAR(9) CHARACTER SET ascii", _ASCII, "text", weight=1),
        Type("VARCHAR(9) CHARACTER SET ucs2", _WORDS, "text", weight=1),
        Type("VARCHAR(9) CHARACTER SET utf16", _WIDE, "text", weight=1),
        Type("VARCHAR(9) CHARACTER SET utf32", _WIDE, "text", weight=1),
        *(Type(f"VARCHAR(9) CHARACTER SET {name}", _HAN, "text", weight=1) for name in ("gbk", "big5")),
        *(Type(f"VARCHAR(9) CHARACTER SET {name}", _KANA, "text", weight=1) for name in ("sjis", "cp932", "eucjpms")),
        Type("VARCHAR(9) CHARACTER SET cp1251", ("''", "'Я'", "'я'", "'a'"), "text", weight=1),
        Type("VARCHAR(9) CHARACTER SET cp1250", ("''", "'a'", "'ł'"), "text", weight=1),
        Type("NATIONAL VARCHAR(9)", _WORDS, "text", weight=1),
        Type("TINYTEXT", _WIDE, "text", key="{}(3)", default=False),
        Type("TEXT", _WIDE, "text", key="{}(5)", default=False, weight=3),
        Type("LONGTEXT CHARACTER SET latin1", _LATIN, "text", key="", default=False, weight=1),
        Type("ENUM('a','B','','ü')", ("'a'", "'B'", "''", "'ü'", "1", "0"), "member"),
        Type("SET('a','B','ü')", ("''", "'a'", "'a,B'", "'a,B,ü'", "7", "0"), "member"),
        Type("JSON", ("'{}'", "'[1, 2.5, null]'", "'\"x\"'", "'{\"b\": 1, \"a\": {\"ä\": -0.0}}'", "'1e400'", "'18446744073709551615'"), "json", key="", default=False),
    ]  # fmt: skip


def _others() -> list[Type]:
    data = ("''", "x'00'", "x'0000'", "x'FF00'", "'a'", "'a '", "x'C3'")
    point = ("ST_GeomFromText('POINT(1 2)')", "ST_GeomFromText('POINT(-0.5 1e3)')")
    return [
        Type("FLOAT", ("0", "-0.0", "1.5", "3.4028234e38", "1.17549435e-38", "-1e-45", "16777217", "0.1"), "float"),
        Type("DOUBLE", ("0", "-0.0", "1.5", "1.7976931348623157e308", "5e-324", "2.2250738585072014e-308", "0.1", "9007199254740993"), "float"),
        Type("FLOAT(7,2)", ("0", "99999.99", "0.01"), "float", weight=1),
        *(Type(f"BIT({n})", ("0", "1", str(2**n - 1)), "bit", weight=1) for n in (1, 9, 64)),
        Type("BOOLEAN", ("TRUE", "FALSE", "2"), "integer"),
        Type("BINARY(4)", data, "bytes"),
        Type("VARBINARY(9)", data, "bytes", weight=3),
        Type("BLOB", data, "bytes", key="{}(4)", default=False),
        Type("GEOMETRY", point, "geometry", key="", default=False, weight=1),
        Type("POINT", point, "geometry", key="", default=False, weight=1),
        Type("INET6", ("'::'", "'ff::1'", "'::ffff:1.2.3.4'"), "network", flavors=MARIADB, weight=1),
        Type("INET4", ("'0.0.0.0'", "'255.255.255.255'"), "network", flavors=MARIADB, weight=1),
        Type("UUID", ("'00000000-0000-0000-0000-000000000000'", "'123e4567-e89b-12d3-a456-426655440000'"), "network", flavors=MARIADB, weight=1),
    ]  # fmt: skip


TYPES = (*_integers(), *_decimals(), *_temporals(), *_texts(), *_others())
FAMILIES = tuple(sorted({one.family for one in TYPES}))
