"""Updates that the server logs as differences of JSON documents give the documents that SELECT shows."""

from __future__ import annotations

import json
import random
import string

import pytest

from cdc_lib.model.manifest import ABSENT, CELL_ABSENT, CELL_HERE, CELL_UNKNOWN
from tests.harness.binlog.capture import Capture

NAMES = ["a", "b", "cc", "x y", 'q"q', "é", "日本", "$d", "a.b", "[0]", "", "n\n", "zzzzzzzzzz"]
SCALARS = [
    "1", "-7", "70000", "3000000000", "18446744073709551615", "0.1", "1e20", "1.5e-7", "-1.2345678901234567e-15", "true", "false", "null",
    "'text'", "'q\"\\\\b\\n'", "REPEAT('é', 70)", "REPEAT('w', 300)", "CAST('1.50' AS DECIMAL(9, 2))", "CAST(-12.5 AS DECIMAL(4, 1))",
    "CAST('2024-02-29' AS DATE)", "CAST('2024-02-29 01:02:03.4' AS DATETIME(6))", "CAST('-12:34:56' AS TIME)",
    "CAST(x'00FF' AS BINARY)", "JSON_ARRAY(1, 'x', JSON_OBJECT('k', NULL))", "JSON_OBJECT('long', 1, 's', JSON_ARRAY())",
    "JSON_OBJECT()", "JSON_ARRAY()",
]  # fmt: skip


@pytest.fixture
def capture(mysql_server, mysql_database, tmp_path):
    capture = Capture(mysql_server, mysql_database, tmp_path)
    capture.execute("CREATE TABLE j (id INT PRIMARY KEY, v INT, k JSON, t TEXT, l JSON)")
    return capture


def document(draw: random.Random, depth: int = 0):
    """A random document as Python holds it."""
    kind = draw.random()
    if depth > 3 or (depth and kind < 0.4):
        text = "".join(draw.choices(string.ascii_letters + 'é"\\\n\u0001', k=draw.choice([0, 5, 40])))
        return draw.choice([text, draw.randint(-(10**12), 10**12), draw.random(), True, None, 0, 7])
    if kind < 0.7:
        return {name: document(draw, depth + 1) for name in draw.sample(NAMES, draw.randint(0, 6))}
    return [document(draw, depth + 1) for _ in range(draw.randint(0, 6))]


def path(draw: random.Random) -> str:
    """A random path, often of the document's own names, as a literal of SQL."""
    legs = [
        f"[{draw.randint(0, 7)}]" if draw.random() < 0.4 else "." + json.dumps(draw.choice(NAMES), ensure_ascii=False)
        for _ in range(draw.choice([0, 1, 1, 2, 2, 3]))
    ]
    return "'" + ("$" + "".join(legs)).replace("\\", "\\\\") + "'"


def expression(draw: random.Random, column: str) -> str:
    """Functions that the server can log as differences, one in the other."""
    text = column
    for _ in range(draw.randint(1, 4)):
        function = draw.choice(["JSON_SET", "JSON_SET", "JSON_REPLACE", "JSON_REMOVE"])
        places = [path(draw) for _ in range(draw.randint(1, 3))]
        if function == "JSON_REMOVE":
            places = [place for place in places if place != "'$'"] or ["'$.a'"]
            text = f"{function}({text}, {', '.join(places)})"
        else:
            text = f"{function}({text}, {', '.join(f'{place}, {draw.choice(SCALARS)}' for place in places)})"
    return text


def change_at_random(capture, image: str, seed: int, turns: int):
    """Update documents in all ways; returns the start of the window, and what SELECT showed after each update."""
    draw = random.Random(seed)
    for number in range(8):
        texts = [json.dumps(document(draw), ensure_ascii=False) for _ in range(2)]
        capture.execute("INSERT INTO j VALUES (%s, 0, %s, 'text', %s)", (number, *texts))
    start = capture.head()
    shown = []
    with capture.server.connect(database=capture.database) as session, session.cursor() as cursor:
        cursor.execute(f"SET SESSION binlog_row_image = '{image}', binlog_row_value_options = 'PARTIAL_JSON'")
        for turn in range(1, turns + 1):
            key = draw.randrange(8)
            columns = draw.choice([["k"], ["l"], ["k", "l"], []])
            sets = ", ".join([f"v = {turn}", *(f"{name} = {expression(draw, name)}" for name in columns)])
            cursor.execute(f"UPDATE j SET {sets} WHERE id = {key}")
            cursor.execute(f"SELECT CAST(k AS CHAR), CAST(l AS CHAR) FROM j WHERE id = {key}")
            shown.append((turn, key, *cursor.fetchone()))
    return start, shown


@pytest.mark.parametrize("seed", range(4))
def test_differences_give_the_document_that_select_shows(capture, seed):
    """With whole images, where the document before is in the event: for random documents, paths and values."""
    start, shown = change_at_random(capture, "FULL", seed, 60)
    manifest = capture.drain(capture.window_from(start))
    rows = capture.rows(manifest, "j")
    assert [(row["v"], row["id"], row["k"], row["l"]) for row in rows] == shown
    assert {row["_op"] for row in rows} == {"u"}
    (file,) = manifest.files
    assert file.path.endswith("/part-100000.parquet")  # all of it came as differences, or beside some
    assert file.partial_rows == 0


@pytest.mark.parametrize("image", ["NOBLOB", "MINIMAL"])
def test_an_unknown_document_is_never_replaced_by_another(capture, image):
    """A cell is what SELECT shows, or did not change, or is marked as not known."""
    start, shown = change_at_random(capture, image, 5, 80)
    rows = capture.rows(capture.drain(capture.window_from(start)), "j")
    assert [(row["v"], row["id"]) for row in rows] == [(turn, key) for turn, key, _, _ in shown]
    marks = set()
    state = {}
    for row, (_, key, *documents) in zip(rows, shown, strict=True):
        for name, mark, text in zip("kl", (row[ABSENT] or "+++++")[2::2], documents, strict=True):
            marks.add(mark)
            if mark == CELL_HERE:
                assert row[name] == text
            elif mark == CELL_ABSENT:
                assert row[name] is None
                assert state.get((key, name), text) == text
            state[key, name] = text
    assert CELL_ABSENT in marks or image == "NOBLOB"
    assert CELL_UNKNOWN in marks or image == "NOBLOB"


def test_rows_of_one_event_keep_their_own_documents(capture):
    """Several rows, changed keys, and NULL beside a document."""
    for number in range(5):
        capture.execute(
            "INSERT INTO j VALUES (%s, 0, %s, 't', NULL)", (number, json.dumps({"n": number, "x": "y" * 50}))
        )
    start = capture.head()
    with capture.server.connect(database=capture.database) as session, session.cursor() as cursor:
        cursor.execute("SET SESSION binlog_row_value_options = 'PARTIAL_JSON'")
        cursor.execute("UPDATE j SET k = JSON_SET(k, '$.n', id * 10), id = id + 10 WHERE id > 2 ORDER BY id DESC")
        cursor.execute("UPDATE j SET k = JSON_REMOVE(k, '$.x')")
    rows = capture.rows(capture.drain(capture.window_from(start)), "j")
    found = [(row["_op"], row["id"], json.loads(row["k"])["n"], "x" in json.loads(row["k"])) for row in rows]
    assert found == [
        ("d", 4, 4, True), ("u", 14, 40, True), ("d", 3, 3, True), ("u", 13, 30, True),
        ("u", 0, 0, False), ("u", 1, 1, False), ("u", 2, 2, False), ("u", 13, 30, False), ("u", 14, 40, False),
    ]  # fmt: skip
    assert all(row["l"] is None and row["t"] == "t" for row in rows)
