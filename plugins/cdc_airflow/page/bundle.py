"""``GET /page.js``: the page itself, which Airflow's pages import; plain JavaScript, served as it lies here."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter
from fastapi.responses import FileResponse

FILE = Path(__file__).with_name("page.js")

router = APIRouter()


@router.get("/page.js")
def show_bundle() -> FileResponse:
    """Return the file; a browser asks each time whether it has changed."""
    return FileResponse(FILE, media_type="text/javascript", headers={"Cache-Control": "no-cache"})
