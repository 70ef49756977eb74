"""Error responses of an S3 server are retried, or raised with a hint."""

from __future__ import annotations

import pytest

from cdc_lib.errors import ConfigError, StoreError, StoreUnavailable
from cdc_lib.store.objects.s3_errors import fault_of


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("SlowDown", 503, StoreUnavailable),
        ("InternalError", 500, StoreUnavailable),
        ("RequestTimeout", 400, StoreUnavailable),
        ("TooManyRequestsException", 429, StoreUnavailable),
        ("ConditionalRequestConflict", 409, StoreUnavailable),
        ("NoSuchBucket", 404, ConfigError),
        ("AccessDenied", 403, ConfigError),
        ("403", 403, ConfigError),
        ("ExpiredToken", 400, StoreUnavailable),
        ("RequestExpired", 400, StoreUnavailable),
        ("TokenRefreshRequired", 400, StoreUnavailable),
        ("PermanentRedirect", 301, ConfigError),
        ("301", 301, ConfigError),
        ("NotImplemented", 501, ConfigError),
        ("RequestTimeTooSkewed", 403, ConfigError),
        ("EntityTooLarge", 400, StoreError),
        ("NoSuchUpload", 404, StoreError),
    ],
)
def test_an_answer_is_an_error_of_its_kind(code, status, kind):
    """With what was tried, where, and what to do."""
    fault = fault_of(code, status, "Words.", action="read an object", key="shop/x")
    assert type(fault) is kind
    assert fault.hint
    assert str(fault).startswith("could not read an object: the S3 server answered")
    assert "key=shop/x" in str(fault)
