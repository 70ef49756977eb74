"""The key of a Google service account: a JSON document that Google's console gives as a file."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from cdc_lib.errors import ConfigError

_TOKEN_URI = "https://oauth2.googleapis.com/token"


@dataclass(frozen=True, slots=True)
class ServiceAccount:
    """The parts of a key that clients need; their text never shows the private key.

    Args:
        email: name of the account.
        key_id: id of the private key.
        private_key: in the form PEM.
        token_uri: where the key is exchanged for tokens.
    """

    email: str
    key_id: str
    private_key: str = field(repr=False)
    token_uri: str = _TOKEN_URI


def service_account(text: str) -> ServiceAccount:
    """Return the key that a JSON document holds.

    Raises:
        ConfigError: it is not the key of a service account; the message shows nothing of it.
    """
    try:
        document = json.loads(text)
        found = ServiceAccount(
            document["client_email"],
            document["private_key_id"],
            document["private_key"],
            document.get("token_uri", _TOKEN_URI),
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        found = None
    if found is None or not all(isinstance(part, str) for part in (found.email, found.key_id, found.private_key)):
        raise ConfigError(
            "the key of the store is not the JSON key of a Google service account",
            hint="Give the text of the file that Google's console makes, with client_email and private_key. "
            "Other credentials: name none, and set GOOGLE_APPLICATION_CREDENTIALS.",
        )
    return found
