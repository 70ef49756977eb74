"""What opens an account of Azure Storage: its key, a SAS token, or a connection string with one of both."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

from cdc_lib.errors import ConfigError

_HINT = (
    "Give an account key, a SAS token (with sig=) or a connection string (with AccountKey= or SharedAccessSignature=). "
    "Other identities: name none, and DefaultAzureCredential finds that of the process."
)


@dataclass(frozen=True, slots=True)
class AzureSecret:
    """A secret of an account; its text never shows it. One of both is empty.

    Args:
        account_key: in base64.
        sas: SAS token, without a question mark.
    """

    account_key: str = field(default="", repr=False)
    sas: str = field(default="", repr=False)


def azure_secret(text: str, account: str) -> AzureSecret:
    """Return the account key or the SAS token that a text holds.

    Args:
        text: an account key, a SAS token or a connection string.
        account: name of the account.

    Raises:
        ConfigError: it is none of them, or of another account; the message shows nothing of it.
    """
    parts = _parts(text)
    named = parts.get("accountname", account)
    if named != account:
        raise ConfigError(
            f"the connection string is that of the account {named!r}, and the store is in {account!r}",
            hint="Correct store.url, or give the connection string of its account.",
        )
    sas = parts.get("sharedaccesssignature", text).strip().removeprefix("?")
    if "sig" in dict(parse_qsl(sas)):
        return AzureSecret(sas=sas)
    key = parts.get("accountkey", text).strip()
    if not _is_key(key):
        raise ConfigError("the secret of the store is not one of Azure Storage", hint=_HINT)
    return AzureSecret(account_key=key)


def _parts(text: str) -> dict[str, str]:
    """Return the parts of a connection string by their names in small letters; none of another text."""
    fields = [one.partition("=") for one in text.strip().split(";") if one]
    found = {name.strip().lower(): value for name, _, value in fields}
    return found if found.keys() & {"accountkey", "sharedaccesssignature"} else {}


def _is_key(text: str) -> bool:
    """Whether a text is base64 of 16 bytes or more: the keys that Azure makes have 64."""
    try:
        return len(base64.b64decode(text, validate=True)) >= 16
    except (binascii.Error, ValueError):
        return False
