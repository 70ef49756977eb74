"""Runs the application until it is interrupted."""

from __future__ import annotations

import uvicorn
from fastapi import FastAPI


def run(app: FastAPI, host: str, port: int) -> None:
    """Listen and answer until SIGINT or SIGTERM.

    Args:
        app: the application.
        host: address to listen at.
        port: TCP port.
    """
    uvicorn.run(app, host=host, port=port, log_level="warning", server_header=False)
