"""Rows of lake tables by key: gets and scans over Iceberg tables, without Spark. Needs the ``read`` extra of the installation."""

from __future__ import annotations

from cdc_lib.read.lake import Lake
from cdc_lib.read.table import TableReader

__all__ = ["Lake", "TableReader"]
