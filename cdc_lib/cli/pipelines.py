"""The pipeline of a source, for commands that do more than read its store and lake: it imports the drain, which takes its time."""

from __future__ import annotations

from dataclasses import replace

from cdc_lib.config import Credentials, SourceConfig, credentials_from_environment, mask_key_from_environment
from cdc_lib.pipeline import Pipeline


def open_pipeline(config: SourceConfig) -> Pipeline:
    """Open the pipeline of a source with secrets from the environment."""
    credentials = credentials_from_environment(config.server)
    return Pipeline.open(config, replace(credentials, mask_key=mask_key_from_environment(config)))


def open_store_pipeline(config: SourceConfig) -> Pipeline:
    """Open the pipeline for steps that only use the store; no password is needed."""
    return Pipeline.open(config, Credentials(config.server.user or "", ""))
