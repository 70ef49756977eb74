"""Which tables foreign keys reach."""

from __future__ import annotations

from cdc_lib.model.cascades import Cascades, ForeignKey
from cdc_lib.mysql.foreign_keys import keys_in

A, B, C, D = (("db", name) for name in "abcd")


def key(child, parent, *, deletes=True, updates=True):
    return ForeignKey(child, parent, ("id",), deletes, updates)


def test_all_levels_are_reached_and_a_circle_has_an_end():
    """What is changed may change the next level in any way."""
    keys = (key(B, A), key(C, B, deletes=False), key(D, C, updates=False), key(A, D))
    assert Cascades(logged=False, keys=keys).below(A, "delete") == {A, B, C, D}


def test_a_foreign_key_acts_as_its_definition_says():
    """On deletes, on updates, or on both."""
    found = Cascades(logged=False, keys=(key(B, A, updates=False), key(C, A, deletes=False)))
    assert (found.below(A, "delete"), found.below(A, "update")) == ({B}, {C})
    assert (found.columns_of(A), found.columns_of(B)) == ({"id"}, frozenset())
    assert found.parents() == {A}


def test_where_the_binlog_shows_everything_nothing_is_looked_at():
    """MySQL since its foreign keys are the server's own."""
    assert Cascades(logged=True, keys=(key(B, A),)).parents() == frozenset()


def test_keys_are_read_from_the_statement_that_makes_a_table():
    """Those that change rows; names may hold a backtick, and the parent may be in another database."""
    text = """CREATE TABLE `b` (
  `id` int(11) NOT NULL COMMENT 'CONSTRAINT `x` FOREIGN KEY (`y`) REFERENCES `z` (`z`) ON DELETE CASCADE',
  CONSTRAINT `one` FOREIGN KEY (`p`) REFERENCES `a` (`id`) ON DELETE SET NULL,
  CONSTRAINT `two` FOREIGN KEY (`p`, `q`) REFERENCES `other``s`.`a` (`id`, `n``o`) ON UPDATE CASCADE,
  CONSTRAINT `three` FOREIGN KEY (`p`) REFERENCES `c` (`id`) ON DELETE NO ACTION,
  CONSTRAINT `four` FOREIGN KEY (`p`) REFERENCES `d` (`id`)
) ENGINE=InnoDB"""
    assert list(keys_in(text, B)) == [
        ForeignKey(B, A, ("id",), True, False),
        ForeignKey(B, ("other`s", "a"), ("id", "n`o"), False, True),
    ]
