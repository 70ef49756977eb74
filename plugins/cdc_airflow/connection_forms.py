"""The forms of connections in Airflow 3.1, which asks the class of a connection type for them. Later ones read provider info."""

from __future__ import annotations

from typing import Any, TypeVar

from airflow.sdk import BaseHook

from cdc_airflow.airflow_versions import IS_3_2
from cdc_airflow.get_provider_info import get_provider_info

Hook = TypeVar("Hook", bound=type[BaseHook])


def with_form(hook: Hook) -> Hook:
    """Give the class of a connection type the form that provider info describes, where Airflow asks the class."""
    if not IS_3_2:
        types = {one["connection-type"]: one for one in get_provider_info()["connection-types"]}
        described = types[hook.conn_type]  # type: ignore[attr-defined]
        behaviour = {name.replace("-", "_"): value for name, value in described["ui-field-behaviour"].items()}
        # Airflow looks at what the class itself defines.
        setattr(hook, "get_connection_form_widgets", staticmethod(lambda: _widgets(described.get("conn-fields", {}))))  # noqa: B010
        setattr(hook, "get_ui_field_behaviour", staticmethod(lambda: behaviour))  # noqa: B010
    return hook


def _widgets(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields as Airflow 3.1 takes them; its API server takes their place where these packages are not installed."""
    from flask_appbuilder.fieldwidgets import BS3TextFieldWidget
    from wtforms import BooleanField, StringField
    from wtforms.validators import Optional, any_of

    widgets: dict[str, Any] = {}
    for name, field in fields.items():
        schema = field["schema"]
        shown = {"description": field["description"], "default": schema.get("default")}
        if schema["type"] == "boolean":
            widgets[name] = BooleanField(field["label"], **shown)
            continue
        checks = [any_of(schema["enum"])] if "enum" in schema else [Optional()] if "null" in schema["type"] else []
        widgets[name] = StringField(field["label"], widget=BS3TextFieldWidget(), validators=checks, **shown)
    return widgets
