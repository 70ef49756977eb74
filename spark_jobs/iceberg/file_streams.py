"""Files of a lake table as Python files, through Iceberg's own FileIO: the same storage, keys and settings as Iceberg has."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError

from cdc_lib.apply.data_files import DamagedFile
from spark_jobs.errors import is_lost, said
from spark_jobs.runtime.java_classes import JavaClasses

_LOCAL = "file:"
"""Files of this machine are read without Java: bytes of Java's streams are copied three times."""

_AT_ONCE = 8
"""Files of other machines that are read at the same time: most of their time goes into waiting."""

_LARGE = 256 << 10
"""Least bytes that Java and this process exchange in a temporary file: py4j sends bytes as text."""

_S3 = ("org.apache.iceberg.aws.s3.S3FileIO", "org.apache.iceberg.io.ResolvingFileIO")
"""Iceberg's FileIO of locations in S3."""

_OF_JAVA = (
    "client.factory",
    "client.assume-role",
    "s3.client-factory",
    "s3.remote-signing",
    "s3.sse.",
    "s3.access-grants",
)
"""Properties by which Java alone opens files, unless they are false."""

_FOR_S3 = ("s3.", "client.region")
"""Properties by which PyIceberg opens files in S3."""

_PARQUET = "org.apache.iceberg.shaded.org.apache.parquet"

_SMALL_FILE = 1 << 20
"""Most bytes of a file that is read as a whole: to ask for its parts takes longer."""


class InputStream(io.RawIOBase):
    """A file of a lake table, read where it is asked for.

    Args:
        file: Iceberg's InputFile.
        size: in bytes.
        classes: cache of Java's classes.
    """

    def __init__(self, file: Any, size: int, classes: JavaClasses) -> None:
        self._size = size
        self._classes = classes
        with _lost_is_damaged():
            self._stream = file.newStream()
        self._large: _LargeReads | None = None
        self._at = self._java_at = 0

    def readable(self) -> bool:
        """Return true."""
        return True

    def seekable(self) -> bool:
        """Return true."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to a byte."""
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def tell(self) -> int:
        """Return the byte that is read next."""
        return self._at

    def read(self, size: int = -1) -> bytes:
        """Read so many bytes, or all."""
        left = max(self._size - self._at, 0)
        wanted = left if size < 0 else min(size, left)
        if not wanted:
            return b""
        with _lost_is_damaged():
            if self._at != self._java_at:
                self._stream.seek(self._at)
            if wanted < _LARGE:
                data = bytes(self._stream.readNBytes(wanted))
            else:
                self._large = self._large or _LargeReads(self._stream, self._classes)
                data = self._large.read(wanted)
        self._at = self._java_at = self._at + len(data)
        return data

    def close(self) -> None:
        """Close Java's stream as well."""
        if not self.closed:
            if self._large is not None:
                self._large.close()
            self._stream.close()
        super().close()


class _LargeReads:
    """Many bytes of a Java stream, which Java writes to a file of this machine.

    Args:
        stream: Java's InputStream.
        classes: cache of Java's classes.
    """

    def __init__(self, stream: Any, classes: JavaClasses) -> None:
        self._file = tempfile.NamedTemporaryFile(prefix="lakecdc-")  # noqa: SIM115 - closed by its owner
        self._output = classes.named("java.io.FileOutputStream")(self._file.name).getChannel()
        self._input = classes.static("java.nio.channels.Channels", "newChannel")(stream)

    def read(self, size: int) -> bytes:
        """Return so many bytes, fewer at the end of the stream."""
        done = 0
        while done < size and (moved := int(self._output.transferFrom(self._input, done, size - done))):
            done += moved
        self._file.seek(0)
        return self._file.read(done)

    def close(self) -> None:
        """Remove the file."""
        self._output.close()
        self._file.close()


@dataclass(frozen=True, slots=True)
class FileStorage:
    """Where the files of a lake table are.

    Args:
        io: Iceberg's FileIO.
        classes: cache of Java's classes.
    """

    io: Any
    classes: JavaClasses

    def opened(self, location: str, size: int) -> pa.NativeFile:
        """Open a file.

        Args:
            location: of the file.
            size: in bytes.
        """
        if location.startswith(_LOCAL):
            return pa.OSFile(location.removeprefix(_LOCAL))
        if size <= _SMALL_FILE:
            return pa.BufferReader(self.read_range(location, 0, size))
        return pa.PythonFile(InputStream(self.io.newInputFile(location, size), size, self.classes), "r")

    def properties_for_tasks(self, location: str) -> dict[str, str] | None:
        """Return the properties by which processes without Java open the files of a table; None if they cannot.

        Args:
            location: of the table.
        """
        properties = _as_dict(self.io.properties())
        if location.startswith(_LOCAL):
            return {}
        of_java = any(name.startswith(_OF_JAVA) and text != "false" for name, text in properties.items())
        # A location with # or ? has a path for Java, and none for PyIceberg.
        if (
            not location.startswith("s3:")
            or str(self.io.getClass().getName()) not in _S3
            or of_java
            or {*"#?"} & {*location}
        ):
            return None
        vended = self.io.credentials().iterator()
        while vended.hasNext():
            credential = vended.next()
            if location.startswith(str(credential.prefix())):
                properties |= _as_dict(credential.config())
        # Those of a catalog may be secrets that tasks do not need.
        return {name: text for name, text in properties.items() if name.startswith(_FOR_S3)}

    def at_once(self, locations: Iterable[str]) -> int:
        """Return how many files are best read at the same time."""
        return 1 if all(location.startswith(_LOCAL) for location in locations) else _AT_ONCE

    def read_range(self, location: str, offset: int, size: int) -> bytes:
        """Return a part of a file.

        Args:
            location: of the file.
            offset: where it begins.
            size: in bytes.
        """
        if location.startswith(_LOCAL):
            with pa.OSFile(location.removeprefix(_LOCAL)) as file:
                return bytes(file.read_at(size, offset))
        with InputStream(self.io.newInputFile(location), offset + size, self.classes) as stream:
            stream.seek(offset)
            return stream.read()

    def write(self, location: str, data: bytes) -> None:
        """Write a whole file, which must not exist.

        Args:
            location: of the file.
            data: its bytes.
        """
        with self.created(location) as file:
            file.write(data)

    @contextmanager
    def created(self, location: str) -> Iterator[IO[bytes]]:
        """Write a file, which must not exist, in the block."""
        if location.startswith(_LOCAL):
            path = Path(location.removeprefix(_LOCAL))
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x+b") as file:
                yield file
            return
        with tempfile.NamedTemporaryFile(prefix="lakecdc-") as file:
            yield file
            file.flush()
            stream = self.io.newOutputFile(location).create()
            if file.seek(0, io.SEEK_END) < _LARGE:
                file.seek(0)
                stream.write(file.read())
            else:  # Java reads it there
                source = self.classes.named("java.io.FileInputStream")(file.name)
                source.transferTo(stream)
                source.close()
            stream.close()


@contextmanager
def _lost_is_damaged() -> Iterator[None]:
    """Translate Java's errors about a file that does not exist or is too short."""
    try:
        yield
    except Py4JJavaError as error:
        if not is_lost(error):
            raise
        raise DamagedFile(said(error)) from error


def parquet_metrics(footer: bytes, config: Any, classes: JavaClasses) -> Any:
    """Return Iceberg's metrics of a Parquet file, from its footer: Iceberg would read the file back.

    Args:
        footer: of the file.
        config: Iceberg's MetricsConfig.
        classes: cache of Iceberg's classes.
    """
    stream = classes.named("java.io.ByteArrayInputStream")(footer)
    # Hadoop's configuration, the default, is parsed from XML each time.
    plain = classes.named(f"{_PARQUET}.conf.PlainParquetConfiguration")()
    options = classes.static(f"{_PARQUET}.ParquetReadOptions", "builder")(plain).build()
    converter = classes.named(f"{_PARQUET}.format.converter.ParquetMetadataConverter")(options)
    metadata = converter.readParquetMetadata(stream)
    none = classes.static("java.util.stream.Stream", "empty")()
    return classes.static("org.apache.iceberg.parquet.ParquetUtil", "footerMetrics")(metadata, none, config)


def _as_dict(texts: Any) -> dict[str, str]:
    """Return a Java map of texts."""
    entries, found = texts.entrySet().iterator(), dict[str, str]()
    while entries.hasNext():
        entry = entries.next()
        found[str(entry.getKey())] = str(entry.getValue())
    return found
