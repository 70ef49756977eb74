"""The name of a table is a pair, and its text is that of no other one."""

from __future__ import annotations

import copy
import pickle
from dataclasses import dataclass

import pytest
from pydantic import TypeAdapter

from cdc_lib.errors import ConfigError
from cdc_lib.model.table_name import EVERY_TABLE, TableName


@pytest.mark.parametrize(
    ("pair", "text"),
    [
        (("shop", "orders"), "shop.orders"),
        (("w", "y.z"), "w.`y.z`"),
        (("w.y", "z"), "`w.y`.z"),
        (("a`b", "c"), "`a``b`.c"),
        (("shop", "*"), "shop.`*`"),
        (("shop", EVERY_TABLE), "shop.*"),
        (("shop", "a, b"), "shop.`a, b`"),
        (("店", "注文"), "店.注文"),
        (("shop", "/x/"), "shop.`/x/`"),
        (("shop", " "), "shop.` `"),
        (("1", ".."), "1.`..`"),
    ],
)
def test_a_pair_has_one_text_which_is_read_back(pair, text):
    """Backticks stand only where they are needed."""
    name = TableName(*pair)
    assert name == text
    assert TableName.parse(text).pair == name.pair == pair
    for again in (pickle.loads(pickle.dumps(name)), copy.deepcopy(name)):  # noqa: S301 - our own bytes
        assert (again, again.pair, type(again)) == (text, pair, TableName)


@pytest.mark.parametrize(("text", "pair"), [("shop.order items", ("shop", "order items")), ("`a`.`b`", ("a", "b"))])
def test_more_backticks_or_fewer_than_needed_are_read(text, pair):
    """As people write them."""
    assert TableName.parse(text).pair == pair


@pytest.mark.parametrize("text", ["", "shop", "shop.", ".orders", "w.y.z", "`w.y.z", "``.x", "a.`b`c", "a`b.c", "a..b"])
def test_what_is_no_pair_is_refused(text):
    """With an example of how a dot is written."""
    with pytest.raises(ConfigError, match="is not database") as error:
        TableName.parse(text)
    assert "w.`y.z`" in error.value.hint


def test_several_names_in_one_text_are_split():
    """Commas and dots in them divide nothing."""
    names = [TableName("a", "b, c"), TableName("d.e", "f"), TableName("g", "h")]
    assert [one.pair for one in TableName.listed(", ".join(names))] == [one.pair for one in names]


def test_a_document_holds_the_pair():
    """Not its text; and what is no pair is refused."""

    @dataclass(frozen=True)
    class Holder:
        table: TableName
        more: tuple[TableName, ...] = ()

    adapter = TypeAdapter(Holder)
    held = Holder(TableName("w", "y.z"), (TableName("w.y", "z"),))
    plain = adapter.dump_json(held)
    assert plain == b'{"table":["w","y.z"],"more":[["w.y","z"]]}'
    again = adapter.validate_json(plain, strict=True)
    assert (again, again.table.pair, again.more[0].pair) == (held, ("w", "y.z"), ("w.y", "z"))
    for wrong in (b'{"table":"w.y"}', b'{"table":["w"]}', b'{"table":["w","y","z"]}', b'{"table":["w",1]}'):
        with pytest.raises(ValueError, match="table"):
            adapter.validate_json(wrong, strict=True)


def test_a_name_in_a_command_runs_nothing():
    """Whoever may create a table at the source does not choose what a person pastes into a shell."""
    assert TableName("shop", "$(reboot)").in_shell == "'shop.$(reboot)'"
    assert TableName("w", "y.z").in_shell == "'w.`y.z`'"
    assert TableName("shop", "orders").in_shell == "shop.orders"
