"""``./dev images``: writes the digests of all container images that this project names by tags, as their registry says now.

The files are written when the registry has answered for all of them. The exit status is 0, or 2 if it has not.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from pathlib import Path

import requests

ROOT = Path(__file__).resolve().parents[2]
FILES = ("Dockerfile", "docker-compose.yml", "docs/kubernetes/airflow/Dockerfile")
"""Where images of others are named, each once."""

REGISTRY = "https://registry-1.docker.io"
SECONDS = 15
REFERENCE = re.compile(
    r"^(?P<before>\s*(?:FROM|image:)\s+)(?P<name>[\w./-]+):(?P<tag>[\w.-]+)(?:@sha256:[0-9a-f]{64})?", re.MULTILINE
)
OWN = "lakecdc"
KINDS = "application/vnd.oci.image.index.v1+json, application/vnd.docker.distribution.manifest.list.v2+json"
"""Media types of what a tag with images for several architectures names (OCI distribution specification)."""

CHALLENGE = re.compile(r'(\w+)="([^"]*)"')


class NoDigest(Exception):
    """The registry has not said which image a tag is."""


def digest_of(registry: str, name: str, tag: str) -> str:
    """Return the digest of an image, such as ``sha256:…``.

    Args:
        registry: its address.
        name: of the image; one without a slash is Docker's own.
        tag: what is asked for.

    Raises:
        NoDigest: it gave no answer, or does not have the image.
    """
    place = name if "/" in name else f"library/{name}"
    address, headers = f"{registry}/v2/{place}/manifests/{tag}", {"Accept": KINDS}
    try:
        answer = requests.head(address, headers=headers, timeout=SECONDS)
        if answer.status_code == requests.codes.unauthorized:  # it says where a token for anybody is
            asked = dict(CHALLENGE.findall(answer.headers.get("WWW-Authenticate", "")))
            given = requests.get(asked.pop("realm", registry), params=asked, timeout=SECONDS).json()
            headers["Authorization"] = f"Bearer {given.get('token') or given.get('access_token')}"
            answer = requests.head(address, headers=headers, timeout=SECONDS)
        answer.raise_for_status()
    except requests.RequestException as error:
        raise NoDigest(f"{name}:{tag}: {error}") from error
    digest = answer.headers.get("Docker-Content-Digest", "")
    if not re.fullmatch("sha256:[0-9a-f]{64}", digest):
        raise NoDigest(f"{name}:{tag}: {registry} gave no digest")
    return digest


def renewed(text: str, ask: Callable[[str, str], str]) -> str:
    """Return the text of a file with the digest of each image of others.

    Args:
        text: of the file.
        ask: returns the digest of a name and a tag.
    """

    def pinned(found: re.Match[str]) -> str:
        name, tag = found["name"], found["tag"]
        return found[0] if name == OWN else f"{found['before']}{name}:{tag}@{ask(name, tag)}"

    return REFERENCE.sub(pinned, text)


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """Write the digests, and print the files that have others now."""
    parser = argparse.ArgumentParser(prog="./dev images", description=__doc__)
    parser.add_argument("--registry", default=REGISTRY, help="its address")
    registry = parser.parse_args(arguments).registry
    before = {file: (root / file).read_text() for file in FILES}
    try:
        after = {file: renewed(text, lambda name, tag: digest_of(registry, name, tag)) for file, text in before.items()}
    except NoDigest as error:
        print(f"images: {error}\nNo file was changed.", file=sys.stderr)
        return 2
    for file, text in after.items():
        if text != before[file]:
            (root / file).write_text(text)
            print(f"{file}: other digests; build the image and run the tests")
    return 0


if __name__ == "__main__":
    sys.exit(main())
