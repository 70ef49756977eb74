"""What the kernels report by a number, as the error that a person reads."""

from __future__ import annotations

from cdc_lib.binlog.framing import event_types, packets
from cdc_lib.binlog.framing.damaged_file import hint_of_damage
from cdc_lib.binlog.framing.receiver import Bytes
from cdc_lib.binlog.framing.refusal import refusal
from cdc_lib.binlog.framing.scan_progress import ErrorContext
from cdc_lib.binlog.rows import locate, partial_images
from cdc_lib.binlog.types.codec import ValueFault
from cdc_lib.errors import (
    CdcError,
    ChecksumMismatch,
    DateInKey,
    DecodeError,
    SourceUnavailable,
    TableReplaced,
    UnsupportedValue,
)

_WRONG_IMAGES = {
    locate.BAD_LENGTH: "a length leaves the event",
    locate.BAD_COLUMNS: "another number of columns than declared",
    partial_images.NO_COLUMNS: "it has no column",
    partial_images.BAD_OPTIONS: "its value options are not known, or it changes a part of what is NULL",
}


def scan_fault(status: int, data: Bytes, event: int, end: int, context: ErrorContext, stop: str) -> CdcError:
    """Return the error of a scan that ended badly.

    Args:
        status: of :func:`cdc_lib.binlog.framing.packets.scan`.
        data: bytes off the wire.
        event: start of the event.
        end: its end without its checksum.
        context: context.
        stop: where the window ends.
    """
    match status:
        case packets.BAD_CHECKSUM:
            return ChecksumMismatch(
                f"the CRC32 of a {event_types.name(int(data[event + 4]))} event is wrong",
                hint=hint_of_damage(context),
                **context,
            )
        case packets.SERVER_ERROR:
            return refusal(data[event:end].tobytes(), context)
        case packets.END_OF_STREAM:
            return SourceUnavailable(
                "the server has no binlog up to the window's end yet",
                hint="The task can be tried again.",
                **context,
                stop=stop,
            )
        case _:
            return DecodeError(
                "the stream does not follow the format: a length or a position is wrong",
                hint=hint_of_damage(context),
                **context,
            )


def rows_fault(status: int, table: str, context: ErrorContext) -> CdcError:
    """Return the error of a row image that cannot be walked; ``status`` is that of locate.py or partial_images.py."""
    if status == partial_images.NO_KEY:
        return UnsupportedValue(
            "a row image without the table's key",
            hint="Set binlog_row_image=FULL at the source, also in sessions. Then: cdc snapshot {source} {table}",
            **context,
            table=table,
        )
    if status == partial_images.NO_VALUES:  # also how many rows, as their images have no byte
        return TableReplaced(
            "a statement inserted rows of which the binlog has no value, because all columns took their defaults",
            hint="The table is read again automatically. With binlog_row_image=FULL this is not needed.",
            **context,
            table=table,
        )
    return DecodeError(
        f"a row image is wrong: {_WRONG_IMAGES[status]}", hint=hint_of_damage(context), **context, table=table
    )


def inflate_fault(what: str, table: str, context: ErrorContext) -> CdcError:
    """Return the error of compressed rows that cannot be inflated."""
    return DecodeError(f"compressed rows cannot be read: {what}", hint=hint_of_damage(context), **context, table=table)


def payload_fault(context: ErrorContext, inside: int) -> CdcError:
    """Return the error of a compressed transaction whose events are wrong; ``inside`` is the offset among them."""
    return DecodeError(
        "a compressed transaction does not follow the format: an event in it is wrong, or has no place in it",
        hint=hint_of_damage(context),
        **context,
        event_type=event_types.TRANSACTION_PAYLOAD,
        inside=inside,
    )


def value_fault(fault: ValueFault, table: str, context: ErrorContext) -> CdcError:
    """Return the error of a cell that has no exact place in the lake."""
    kind = DateInKey if fault.in_date_key else UnsupportedValue
    return kind(fault.what, hint=fault.hint, **context, table=table)
