"""Somebody at three in the morning, who knows ``cdc`` by what it prints alone: each command is a process of its own."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.harness.docs.pages import ROOT
from tests.harness.servers import SqlServer

PASSWORD = "NIGHT_PASSWORD"
MOST_STEPS = 4
ROWS = "(1, 'a'), (2, 'b'), (3, 'c')"


class Night:
    """The source ``shop`` with the table ``orders``, merged once.

    Args:
        server: of the table.
        database: of the table.
        folder: for the source file, the store and the lake.
        **sections: of the source file, over the defaults.
    """

    def __init__(self, server: SqlServer, database: str, folder: Path, **sections: Any) -> None:
        self.server, self.database, self.folder = server, database, folder
        self.environ = {PASSWORD: server.cdc_password}
        self.file = folder / "dags" / "sources" / "shop.yaml"
        self.steps, self._printed, self._failed = 0, "", ""
        settings = {
            "server": {"host": server.host, "port": server.port, "user": server.cdc_user, "password_env": PASSWORD},
            "tables": [f"{database}.*"],
            "store": {"url": f"file://{folder}/store"},
            "lake": {
                "type": "jdbc", "uri": f"jdbc:sqlite:{folder}/catalog.db", "warehouse": f"file://{folder}/lake"
            },
            "failover": {"attempts": 1},
            "verify": {"wait": "0s"},
            **sections,
        }  # fmt: skip
        self.file.parent.mkdir(parents=True)
        self.file.write_text(yaml.safe_dump(settings))

    def begin(self) -> None:
        """Fill the table, and merge it; then change it."""
        self.execute("CREATE TABLE orders (id INT PRIMARY KEY, v VARCHAR(20))")
        self.execute(f"INSERT INTO orders VALUES {ROWS}")
        self.cdc("cdc run shop")
        self.change()

    def change(self) -> None:
        """Insert, update and delete a row."""
        self.execute("DELETE FROM orders WHERE id = 1")
        self.execute("UPDATE orders SET v = concat(v, 'x') WHERE id = 2")
        self.execute("INSERT INTO orders SELECT max(id) + 1, 'new' FROM orders")

    def execute(self, sql: str) -> Sequence[tuple[Any, ...]]:
        return self.server.execute(sql, database=self.database)

    def stops(self, command: str = "cdc run shop", code: int = 1) -> str:
        """Run a command that stops, and return what it prints, with single blanks."""
        self._failed = command
        return self.cdc(command, code)

    def reads(self, pattern: str) -> str:
        """Return a part of what was printed."""
        found = re.search(pattern, self._printed)
        assert found is not None, self._printed
        return found[0]

    def does(self, command: str, code: int = 0) -> str:
        """Do a step: run a command that was printed."""
        assert command in self._printed, f"{command} was not printed: {self._printed}"
        self.step()
        return self.cdc(command, code)

    def edits(self, old: str, new: str) -> None:
        """Do a step: change a line of the source file to something that was printed."""
        named = re.findall(r"\w+", new)[0]
        assert named in self._printed, f"{named} was not printed: {self._printed}"
        text = self.file.read_text()
        assert old in text, text
        self.step()
        self.file.write_text(text.replace(old, new))

    def step(self) -> None:
        """Count something that was done as the words said."""
        self.steps += 1

    def again(self) -> str:
        """Do a step: what stopped is run again."""
        self.step()
        return self.cdc(self._failed)

    def cdc(self, command: str, code: int = 0) -> str:
        """Run a command in a shell of its own, which confirms what it asks."""
        words = shlex.join([sys.executable, "-m", "cdc_lib.cli"]) + command.removeprefix("cdc")
        shell = {name: os.environ[name] for name in ("PATH", "HOME", "JAVA_HOME") if name in os.environ}
        done = subprocess.run(
            ["sh", "-c", words],
            cwd=self.folder,
            env={**shell, **self.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "1000"},
            input="y\n" * 5,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        printed = " ".join(done.stdout.split())
        assert done.returncode == code, f"{command}\n{done.stdout}"
        self._printed += printed
        return printed

    def ends(self) -> None:
        """The tables are equal after one more change, and nothing is reported; few steps led there."""
        assert self.steps <= MOST_STEPS
        self.change()
        self.cdc("cdc run shop")
        self.cdc("cdc verify shop")
        lake = self.cdc(f'cdc sql shop "SELECT id, v FROM {self.database}.orders ORDER BY id" --json')
        assert yaml.safe_load(lake) == [{"id": i, "v": v} for i, v in self.execute("SELECT * FROM orders ORDER BY id")]
        self.cdc("cdc status shop")
