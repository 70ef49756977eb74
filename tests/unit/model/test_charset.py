from __future__ import annotations

import pytest

from cdc_lib.model.charset import charset_name, charset_of_collation


@pytest.mark.parametrize(
    ("name", "expected"),
    [("utf8", "utf8mb3"), ("UTF8", "utf8mb3"), ("utf8mb3", "utf8mb3"), ("utf8mb4", "utf8mb4"), ("", "")],
)
def test_utf8mb3_has_one_name(name, expected):
    assert charset_name(name) == expected


@pytest.mark.parametrize(
    ("collation", "expected"),
    [
        ("utf8mb4_0900_ai_ci", "utf8mb4"),
        ("utf8mb4_uca1400_ai_ci", "utf8mb4"),
        ("utf8_general_ci", "utf8mb3"),
        ("utf8mb3_general_ci", "utf8mb3"),
        ("binary", "binary"),
        ("uca1400_ai_ci", ""),
    ],
)
def test_the_character_set_of_a_collation(collation, expected):
    assert charset_of_collation(collation) == expected
