"""A video rental shop, modelled on the sample database sakila: its tables and their relations, with definitions and rows of its own.

The 16 tables refer to each other with ON UPDATE CASCADE, two of them in a circle. There are views, triggers, stored routines, and columns
of the types ENUM, SET, YEAR, BLOB, GEOMETRY and DECIMAL, with a FULLTEXT and a SPATIAL index.
"""

from __future__ import annotations

from collections.abc import Iterable

TABLES = (
    "actor", "address", "category", "city", "country", "customer", "film", "film_actor", "film_category", "film_text", "inventory",
    "language", "payment", "rental", "staff", "store",
)  # fmt: skip

_ID = "SMALLINT UNSIGNED NOT NULL"
_SEEN = "seen TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3)"


def _refers(column: str, table: str, key: str = "", *, deleted: str = "RESTRICT") -> str:
    key = key or f"{table}_id"
    return f"FOREIGN KEY ({column}) REFERENCES {table} ({key}) ON DELETE {deleted} ON UPDATE CASCADE"


def _table(name: str, *parts: str, key: str = "") -> str:
    own = () if key else (f"{name}_id {_ID} AUTO_INCREMENT",)
    primary = f"PRIMARY KEY ({key or name + '_id'})"
    return f"CREATE TABLE {name} ({', '.join((*own, *parts, _SEEN, primary))}) DEFAULT CHARSET utf8mb4"


SCHEMA = (
    "SET foreign_key_checks = 0",
    _table("actor", "first_name VARCHAR(45) NOT NULL", "last_name VARCHAR(45) NOT NULL", "KEY (last_name)"),
    _table("country", "country VARCHAR(50) NOT NULL"),
    _table("city", "city VARCHAR(50) NOT NULL", f"country_id {_ID}", _refers("country_id", "country")),
    _table(
        "address", "address VARCHAR(50) NOT NULL", "district VARCHAR(20)", f"city_id {_ID}", "phone VARCHAR(20) NOT NULL",
        "location GEOMETRY NOT NULL", "SPATIAL KEY (location)", _refers("city_id", "city"),
    ),
    _table("language", "name CHAR(20) NOT NULL"),
    _table("category", "name VARCHAR(25) NOT NULL"),
    _table(
        "film", "title VARCHAR(128) NOT NULL", "description TEXT", "release_year YEAR", f"language_id {_ID}",
        "original_language_id SMALLINT UNSIGNED", "rental_rate DECIMAL(4,2) NOT NULL DEFAULT 4.99", "length SMALLINT UNSIGNED",
        "rating ENUM('G', 'PG', 'PG-13', 'R', 'NC-17') DEFAULT 'G'",
        "special_features SET('Trailers', 'Commentaries', 'Deleted Scenes', 'Behind the Scenes')", "KEY (title)",
        _refers("language_id", "language"), _refers("original_language_id", "language", "language_id"),
    ),
    _table(
        "film_actor", f"actor_id {_ID}", f"film_id {_ID}", _refers("actor_id", "actor"),
        _refers("film_id", "film", deleted="CASCADE"), key="actor_id, film_id",
    ),
    _table(
        "film_category", f"film_id {_ID}", f"category_id {_ID}", _refers("category_id", "category"),
        _refers("film_id", "film", deleted="CASCADE"), key="film_id, category_id",
    ),
    _table(
        "film_text", f"film_id {_ID}", "title VARCHAR(255) NOT NULL", "description TEXT", "FULLTEXT KEY (title, description)",
        key="film_id",
    ),
    _table(
        "staff", "first_name VARCHAR(45) NOT NULL", f"address_id {_ID}", "picture BLOB", f"store_id {_ID}",
        "active BOOLEAN NOT NULL DEFAULT TRUE", "username VARCHAR(16) NOT NULL", "password VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
        _refers("address_id", "address"), _refers("store_id", "store"),
    ),
    _table(
        "store", f"manager_staff_id {_ID} UNIQUE", f"address_id {_ID}", _refers("manager_staff_id", "staff", "staff_id"),
        _refers("address_id", "address"),
    ),
    _table(
        "customer", f"store_id {_ID}", "last_name VARCHAR(45) NOT NULL", "email VARCHAR(50)", f"address_id {_ID}",
        "active BOOLEAN NOT NULL DEFAULT TRUE", "create_date DATETIME NOT NULL",
        _refers("store_id", "store"), _refers("address_id", "address"),
    ),
    _table("inventory", f"film_id {_ID}", f"store_id {_ID}", _refers("film_id", "film"), _refers("store_id", "store")),
    _table(
        "rental", "rental_date DATETIME NOT NULL", f"inventory_id {_ID}", f"customer_id {_ID}", "return_date DATETIME", f"staff_id {_ID}",
        "UNIQUE (rental_date, inventory_id, customer_id)",
        _refers("inventory_id", "inventory"), _refers("customer_id", "customer"), _refers("staff_id", "staff"),
    ),
    _table(
        "payment", f"customer_id {_ID}", f"staff_id {_ID}", "rental_id SMALLINT UNSIGNED", "amount DECIMAL(5,2) NOT NULL",
        "payment_date DATETIME NOT NULL",
        _refers("rental_id", "rental", deleted="SET NULL"), _refers("customer_id", "customer"), _refers("staff_id", "staff"),
    ),
    "SET foreign_key_checks = 1",
    ("CREATE TRIGGER film_is_added AFTER INSERT ON film FOR EACH ROW"
    " INSERT INTO film_text (film_id, title, description) VALUES (NEW.film_id, NEW.title, NEW.description)"),
    ("CREATE TRIGGER film_is_changed AFTER UPDATE ON film FOR EACH ROW"
    " UPDATE film_text SET film_id = NEW.film_id, title = NEW.title, description = NEW.description WHERE film_id = OLD.film_id"),
    "CREATE TRIGGER film_is_deleted AFTER DELETE ON film FOR EACH ROW DELETE FROM film_text WHERE film_id = OLD.film_id",
    "CREATE TRIGGER customer_is_added BEFORE INSERT ON customer FOR EACH ROW SET NEW.create_date = '2026-01-02 03:04:05'",
    "CREATE TRIGGER payment_is_added BEFORE INSERT ON payment FOR EACH ROW SET NEW.payment_date = '2026-01-03 04:05:06'",
    ("CREATE VIEW film_list AS SELECT f.film_id, f.title, c.name AS category FROM film f"
    " LEFT JOIN film_category fc ON fc.film_id = f.film_id LEFT JOIN category c ON c.category_id = fc.category_id"),
    ("CREATE VIEW customer_list AS SELECT cu.customer_id, cu.last_name, a.address, ci.city, co.country FROM customer cu"
    " JOIN address a ON a.address_id = cu.address_id JOIN city ci ON ci.city_id = a.city_id JOIN country co ON co.country_id = ci.country_id"),
    ("CREATE FUNCTION inventory_in_stock(wanted INT) RETURNS BOOLEAN READS SQL DATA"
    " RETURN NOT EXISTS (SELECT 1 FROM rental WHERE inventory_id = wanted AND return_date IS NULL)"),
    ("CREATE PROCEDURE rent(wanted INT, who INT, clerk INT) BEGIN"
    " INSERT INTO rental (rental_date, inventory_id, customer_id, staff_id) VALUES ('2026-02-01 10:00:00', wanted, who, clerk);"
    " INSERT INTO payment (customer_id, staff_id, rental_id, amount) VALUES (who, clerk, LAST_INSERT_ID(), 4.99); END"),
)  # fmt: skip
"""Tables, triggers, views and routines; to be executed one after the other in one session."""


def _insert(table: str, columns: str, rows: Iterable[str]) -> str:
    return f"INSERT INTO {table} ({columns}) VALUES {', '.join(f'({row})' for row in rows)}"


ROWS = (
    "SET foreign_key_checks = 0",
    _insert("actor", "first_name, last_name", (f"'A{n}', 'Actor {n % 5}'" for n in range(1, 9))),
    _insert("country", "country", (f"'Land {n}'" for n in range(1, 5))),
    _insert("city", "city, country_id", (f"'Stadt {n}', {n % 4 + 1}" for n in range(1, 7))),
    _insert(
        "address", "address, district, city_id, phone, location",
        (f"'Weg {n}', NULL, {n % 6 + 1}, '{n:05d}', ST_GeomFromText('POINT({n} {n}.5)')" for n in range(1, 13)),
    ),
    _insert("language", "name", ("'Deutsch'", "'Français'", "'日本語'")),
    _insert("category", "name", (f"'Category {n}'" for n in range(1, 5))),
    _insert(
        "film", "title, description, release_year, language_id, original_language_id, length, rating, special_features",
        (
            f"'Film {n}', REPEAT('word{n} ', {n}), {1990 + n}, {n % 3 + 1}, {'NULL' if n % 2 else n % 3 + 1}, {60 + n},"
            f" {n % 5 + 1}, {n % 16}"
            for n in range(1, 13)
        ),
    ),
    _insert("film_actor", "actor_id, film_id", (f"{a}, {f}" for f in range(1, 13) for a in (f % 8 + 1, (f + 3) % 8 + 1))),
    _insert("film_category", "film_id, category_id", (f"{f}, {f % 4 + 1}" for f in range(1, 13))),
    _insert("store", "manager_staff_id, address_id", ("1, 1", "2, 2")),
    _insert("staff", "first_name, address_id, picture, store_id, username", ("'Eva', 3, X'89504E4700FF', 1, 'eva'", "'Jon', 4, NULL, 2, 'jon'")),
    _insert("customer", "store_id, last_name, email, address_id", (f"{n % 2 + 1}, 'Name {n}', NULL, {n + 4}" for n in range(1, 9))),
    _insert("inventory", "film_id, store_id", (f"{n % 11 + 1}, {n % 2 + 1}" for n in range(24))),
    "SET foreign_key_checks = 1",
    _insert(
        "rental", "rental_date, inventory_id, customer_id, return_date, staff_id",
        (f"'2026-01-{n:02d} 08:00:00', {n % 20 + 1}, {n % 8 + 1}, '2026-01-{n + 1:02d} 09:30:00', {n % 2 + 1}" for n in range(1, 26)),
    ),
    _insert("payment", "customer_id, staff_id, rental_id, amount", (f"{n % 8 + 1}, {n % 2 + 1}, {n}, {n}.99" for n in range(1, 26))),
)  # fmt: skip

NEW_KEYS = tuple(
    f"UPDATE {table} SET {table}_id = {table}_id + 100 WHERE {table}_id = 1"
    for table in ("country", "city", "address", "language", "film", "actor", "category", "store", "staff", "customer", "inventory", "rental")
)  # fmt: skip
"""Each changes the key of a parent, and with it the rows of all of its children."""

DELETES = (
    "DELETE FROM rental WHERE rental_id = 2",  # sets payment.rental_id to NULL
    "DELETE FROM film WHERE film_id = 12",  # deletes rows of film_actor and film_category
    "DELETE FROM inventory WHERE inventory_id = 23",
)

CHANGES = (
    "CALL rent(24, 3, 2)",
    "UPDATE film SET rating = 'NC-17', special_features = 'Trailers,Deleted Scenes', release_year = 2155 WHERE film_id = 5",
    "UPDATE film SET description = NULL, title = 'Häuser' WHERE film_id = 6",
    "UPDATE address SET location = ST_GeomFromText('POINT(7 8)') WHERE address_id = 9",
    "UPDATE staff SET picture = REPEAT('x', 5000) WHERE username = 'jon'",
    "INSERT INTO film (title, language_id) SELECT 'A new one', MAX(language_id) FROM language",
    "UPDATE payment SET amount = amount + 1 WHERE payment_id % 3 = 0",
    "DELETE FROM payment WHERE payment_id = 25",
)
"""What comes between: rows of all kinds of columns, a stored procedure, and triggers."""
