"""The source ``shop`` of docs/operations.md, whose binlog files are edited, removed or put back."""

from __future__ import annotations

from pathlib import Path

from tests.harness.binlog.edited_binlogs import close_file, file_after
from tests.harness.shop.source import Shop


class BinlogShop(Shop):
    """A shop with files of the binlog that are not as the server wrote them."""

    def changed_file(self, number: int) -> str:
        """Change the tables in a new file of the binlog, close it and return its name."""
        close_file(self.server)
        self.change(number)
        return self.closed_file()

    def closed_file(self) -> str:
        """Close the file that the server writes, and return its name; ``after`` is the beginning of the next one."""
        self.file = close_file(self.server)
        self.path = Path(self.server.data_dir) / self.file
        self.whole = self.path.read_bytes()
        self.after = f"{file_after(self.file)}:4"
        return self.file

    def put_back(self) -> None:
        """Write the file as it was."""
        self.path.write_bytes(self.whole)
