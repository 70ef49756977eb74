"""PyIceberg's access to files of an S3 server whose certificate ``store.ca`` vouches for: PyIceberg has no setting for it."""

from __future__ import annotations

from pyarrow.fs import FileSystem, S3FileSystem
from pyiceberg.io.pyarrow import PyArrowFileIO

CA = "cdc.s3.ca"
"""Property with the file of the authorities."""

CLASS = f"{__name__}.TrustingFileIO"
"""Value of PyIceberg's property ``py-io-impl``."""

_OPTIONS = {
    "s3.endpoint": "endpoint_override",
    "s3.region": "region",
    "s3.access-key-id": "access_key",
    "s3.secret-access-key": "secret_key",
    "s3.session-token": "session_token",
}
"""Properties and their arguments of Arrow's file system."""


class TrustingFileIO(PyArrowFileIO):
    """Arrow's file systems, of which that of S3 trusts the authorities of :data:`CA` and no others."""

    def _initialize_s3_fs(self, netloc: str | None) -> FileSystem:  # noqa: ARG002 - as the base class has it
        """Open the file system of a bucket; PyIceberg calls this once for each bucket."""
        given = {argument: self.properties[name] for name, argument in _OPTIONS.items() if name in self.properties}
        virtual = self.properties.get("s3.force-virtual-addressing", "false").lower() == "true"
        return S3FileSystem(**given, force_virtual_addressing=virtual, tls_ca_file_path=self.properties[CA])
