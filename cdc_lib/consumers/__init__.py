"""Consumers of the batches other than the lake: an audit, an index, an export."""

from __future__ import annotations

from cdc_lib.consumers.batch import Batch
from cdc_lib.consumers.open import subscribe_to
from cdc_lib.consumers.rows import TableRows
from cdc_lib.consumers.subscription import Subscription
from cdc_lib.model.subscription import Interest

__all__ = ["Batch", "Interest", "Subscription", "TableRows", "subscribe_to"]
