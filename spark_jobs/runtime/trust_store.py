"""Java's trust store with the authorities of ``store.ca``: Java reads no PEM files."""

from __future__ import annotations

import atexit
import shutil
import ssl
import tempfile
from collections.abc import Mapping
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12

from cdc_lib.errors import ConfigError

_PASSWORD = "changeit"
"""Java's usual password of trust stores. They hold no secret."""

FILES, EXECUTOR_OPTIONS = "spark.files", "spark.executor.extraJavaOptions"


def trust_store(ca: Path | None) -> Path | None:
    """Write a trust store with the system's authorities and those of a file; None without a file.

    It is a file for temporary use, and is removed at the end of this process.

    Raises:
        ConfigError: the file cannot be read.
    """
    if ca is None:
        return None
    folder = tempfile.mkdtemp(prefix="lakecdc-trust-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    file = Path(folder) / "lakecdc-trust.p12"
    file.write_bytes(_trust_store([*_of_the_system(), *_certificates(ca)]))
    return file


def trust_options(file: Path | str | None) -> list[str]:
    """Return the options with which Java uses a trust store; empty without one."""
    if file is None:
        return []
    options = {"trustStore": file, "trustStoreType": "PKCS12", "trustStorePassword": _PASSWORD}
    return [f"-Djavax.net.ssl.{name}={value}" for name, value in options.items()]


def executor_settings(file: Path | None, conf: Mapping[str, str]) -> dict[str, str]:
    """Return the settings with which executors on other machines get a trust store and use it; empty without one.

    Spark copies the file into the folder where an executor runs, before its first task. Java opens it at the first connection.

    Args:
        file: the trust store on this machine.
        conf: settings of the source file, which come last in each value.
    """
    if file is None:
        return {}
    files = [str(file), conf.get(FILES, "")]
    options = [*trust_options(file.name), conf.get(EXECUTOR_OPTIONS, "")]
    return {FILES: ",".join(filter(None, files)), EXECUTOR_OPTIONS: " ".join(filter(None, options))}


def _trust_store(certificates: list[x509.Certificate]) -> bytes:
    entries = [
        pkcs12.PKCS12Certificate(certificate, str(number).encode()) for number, certificate in enumerate(certificates)
    ]
    return pkcs12.serialize_java_truststore(entries, BestAvailableEncryption(_PASSWORD.encode()))


def _certificates(file: Path) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(file.read_bytes())
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"the file of store.ca cannot be read: {error}", hint="Name a file with certificates in the form PEM."
        ) from error


def _of_the_system() -> list[x509.Certificate]:
    """Return the authorities that this machine trusts, as far as the library can read them."""
    context = ssl.create_default_context()
    return [x509.load_der_x509_certificate(one) for one in context.get_ca_certs(binary_form=True)]
