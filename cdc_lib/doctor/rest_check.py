"""Asks a REST catalog for its configuration, as every Iceberg client does first: address, log-in and warehouse are checked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit, urlunsplit
from urllib.request import Request, urlopen

from cdc_lib.config import LakeConfig
from cdc_lib.model.finding import Finding

_PATIENCE = 3.0
_ANSWER = 1 << 20
"""Bytes of an answer that are read."""
_SHOWN = 300
"""Characters of a catalog's message that are shown."""
_AWS = ("rest.sigv4-enabled", "rest.auth.type")
"""Properties of log-ins that need another client than this one."""


class _BadAnswer(Exception):
    """The catalog answers, and not with what was asked for."""

    def __init__(self, status: int, what: str) -> None:
        super().__init__(what)
        self.status = status


def check_rest(lake: LakeConfig) -> Finding:
    """Return a finding about a REST catalog; it shows no credentials."""
    shown = _without_user(lake.uri or "")
    if any(lake.properties.get(name, "false") not in ("false", "oauth2", "none") for name in _AWS):
        return Finding(
            "info",
            f"the lake's catalog {shown} was not checked: its log-in needs a client that cdc doctor does not have",
        )
    try:
        found = _config_of(lake)
    except _BadAnswer as refused:
        return _refusal(lake, shown, refused)
    except (OSError, HTTPException, ValueError) as error:
        reason = error.reason if isinstance(error, URLError) else error
        # Other errors may repeat a header, which may hold the token.
        what = (
            reason.strerror or str(reason) if isinstance(reason, OSError) else "its address or its answer is not valid"
        )
        return Finding(
            "error",
            f"the lake's catalog {shown} cannot be reached: {what}",
            "Start it, or correct lake.uri in the source file.",
        )
    if not isinstance(found, Mapping) or not {"defaults", "overrides"} & found.keys():
        return Finding(
            "error",
            f"something else than an Iceberg REST catalog answers at {shown}",
            "Correct lake.uri in the source file.",
        )
    warehouse = f" and has the warehouse {lake.warehouse}" if lake.warehouse else ""
    return Finding("ok", f"the lake's catalog {shown} answers{warehouse}")


def _config_of(lake: LakeConfig) -> Any:
    """Return the catalog's answer to ``/v1/config``."""
    base = _without_user(lake.uri or "").rstrip("/")
    headers = {
        name.removeprefix("header."): value for name, value in lake.properties.items() if name.startswith("header.")
    }
    token = lake.properties.get("token") or _token(lake, base)
    query = f"?{urlencode({'warehouse': lake.warehouse})}" if lake.warehouse else ""
    request = Request(f"{base}/v1/config{query}", headers={"Accept": "application/json", **headers})  # noqa: S310 - checked below
    if token:
        request.add_unredirected_header("Authorization", f"Bearer {token}")
    return _asked(request)


def _token(lake: LakeConfig, base: str) -> str:
    """Return the token for ``credential``, from the catalog or the server that the properties name; empty without one."""
    credential = lake.properties.get("credential")
    if not credential:
        return ""
    user, colon, secret = credential.partition(":")
    form = {
        "grant_type": "client_credentials",
        "client_id": user if colon else "",
        "client_secret": secret if colon else user,
        "scope": lake.properties.get("scope", "catalog"),
    }
    address = lake.properties.get("oauth2-server-uri") or f"{base}/v1/oauth/tokens"
    if "://" not in address:
        address = f"{base}/{address.lstrip('/')}"
    body = urlencode({name: value for name, value in form.items() if value}).encode()
    found = _asked(Request(address, data=body))  # noqa: S310 - checked below
    return str(found.get("access_token", "")) if isinstance(found, Mapping) else ""


def _asked(request: Request) -> Any:
    """Return the JSON of an answer; None for something else."""
    if request.type not in ("http", "https"):
        raise ValueError(request.type)
    try:
        with urlopen(request, timeout=_PATIENCE) as answer:  # noqa: S310 - http or https
            data = answer.read(_ANSWER)
    except HTTPError as error:
        with error:
            raise _BadAnswer(error.code, _message(error.read(_ANSWER))) from None
    try:
        return json.loads(data)
    except ValueError:
        return None


def _message(data: bytes) -> str:
    """Return the message of an error response of the REST specification, or of OAuth2; empty for another."""
    try:
        answer = json.loads(data)
        error = answer["error"]
        text = f"{error['type']}: {error['message']}" if isinstance(error, Mapping) else str(error)
    except (ValueError, KeyError, TypeError):
        return ""
    return " ".join(text.split())[:_SHOWN]


def _refusal(lake: LakeConfig, shown: str, refused: _BadAnswer) -> Finding:
    said = f"{refused.status}: {refused}" if str(refused) else str(refused.status)
    for secret in (lake.properties.get("token"), lake.properties.get("credential")):
        said = said.replace(secret, "***") if secret else said
    if refused.status in (401, 403) or "invalid_client" in said:
        what, hint = (
            "refuses the log-in",
            "Correct token or credential under lake.properties, or grant its role the warehouse.",
        )
    elif refused.status >= 500:
        what, hint = "answers with an error", "Look into the catalog's log."
    elif lake.warehouse:
        what, hint = (
            f"refuses the warehouse {lake.warehouse}",
            "Make the warehouse in the catalog, or correct lake.warehouse or lake.uri.",
        )
    else:
        what, hint = "does not give its configuration", "Correct lake.uri; many catalogs also need lake.warehouse."
    return Finding("error", f"the lake's catalog {shown} {what}: {said}", hint)


def _without_user(uri: str) -> str:
    """Return an address without user, password and query."""
    parts = urlsplit(uri)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
