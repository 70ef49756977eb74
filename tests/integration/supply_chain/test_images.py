"""The digests of container images, as a registry of this machine says them: with a token for anybody, as Docker's does."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import yaml

from tests.harness.docs.pages import ROOT
from tests.supply_chain import images

LACKING = "library/python"


def digest(name, tag):
    return f"sha256:{hashlib.sha256(f'{name}:{tag}'.encode()).hexdigest()}"


class Registry(BaseHTTPRequestHandler):
    lacks = ""

    def do_GET(self):
        name = re.search("scope=repository%3A(.*)%3Apull", self.path)[1].replace("%2F", "/")
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"token": f"for {name}"}).encode())

    def do_HEAD(self):
        name, tag = re.fullmatch("/v2/(.*)/manifests/(.*)", self.path).groups()
        if self.headers["Authorization"] != f"Bearer for {name}":
            self.send_response(401)
            realm = f'realm="http://127.0.0.1:{self.server.server_port}/token"'
            self.send_header("WWW-Authenticate", f'Bearer {realm},service="test",scope="repository:{name}:pull"')
        elif name == self.server.lacks or "oci.image.index" not in self.headers["Accept"]:
            self.send_response(404)
        else:
            self.send_response(200)
            self.send_header("Docker-Content-Digest", digest(name, tag))
        self.end_headers()

    def log_message(self, *_):
        """Print nothing."""


@pytest.fixture
def registry():
    with ThreadingHTTPServer(("127.0.0.1", 0), Registry) as server:
        server.lacks = ""
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def copies(tmp_path):
    for file in images.FILES:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text((ROOT / file).read_text())
    return tmp_path


def texts(folder):
    return {file: (folder / file).read_text() for file in images.FILES}


def run(registry, folder):
    return images.main(["--registry", f"http://127.0.0.1:{registry.server_port}"], folder)


def test_every_image_of_others_gets_the_digest_of_its_tag(registry, copies, capsys):
    """A second time changes nothing; an older digest is replaced."""
    tags = {
        file: [(one["name"], one["tag"]) for one in images.REFERENCE.finditer(text)]
        for file, text in texts(copies).items()
    }
    assert run(registry, copies) == 0
    assert capsys.readouterr().out.count("other digests") == len(images.FILES)
    written = texts(copies)
    for file, found in tags.items():
        assert found
        for name, tag in found:
            place = name if "/" in name else f"library/{name}"
            assert (f"{name}:{tag}@{digest(place, tag)}" in written[file]) == (name != images.OWN)
    assert (
        yaml.safe_load(written["docker-compose.yml"]).keys()
        == yaml.safe_load((ROOT / "docker-compose.yml").read_text()).keys()
    )
    assert run(registry, copies) == 0
    assert (texts(copies), capsys.readouterr().out) == (written, "")
    (copies / "Dockerfile").write_text(re.sub("sha256:[0-9a-f]{64}", f"sha256:{64 * '0'}", written["Dockerfile"]))
    assert run(registry, copies) == 0
    assert texts(copies) == written


def test_no_file_changes_if_the_registry_lacks_an_image(registry, copies, capsys):
    before, registry.lacks = texts(copies), LACKING
    assert run(registry, copies) == 2
    assert texts(copies) == before
    assert "images: python:3.11" in capsys.readouterr().err
    registry.server_close()
    assert run(registry, copies) == 2
    assert texts(copies) == before


def test_no_file_but_those_names_an_image_of_others():
    """Else its digest would not be renewed."""
    for path in [*ROOT.glob("*"), *ROOT.joinpath("docs", "kubernetes").rglob("*")]:
        if path.is_file() and path.suffix in ("", ".yml", ".yaml") and str(path.relative_to(ROOT)) not in images.FILES:
            found = re.findall(r"^\s*(?:FROM|image:)\s+([\w./-]+)", path.read_text(errors="replace"), re.MULTILINE)
            assert [name for name in found if name != images.OWN] == []
