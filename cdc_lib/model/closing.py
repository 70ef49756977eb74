"""What is closed at the end of a ``with`` statement."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self


class ClosedAtEnd(ABC):
    """Base of what holds something until :meth:`close`."""

    @abstractmethod
    def close(self) -> None:
        """Let go of it; a second time does nothing."""

    def __enter__(self) -> Self:
        """Hold it while the block runs."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()
