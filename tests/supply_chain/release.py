"""``./dev release``: a wheel and a source archive for a package index, from the commit that is checked out.

The project does not know its own address. It is that of ``origin``, or an argument; links of the README lead there, because an index
shows it without the files around it.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from tests.harness.docs.pages import ROOT

DIST = ROOT / "dist"
_BUILD = "import sys, hatchling.build as it; getattr(it, sys.argv[1])(sys.argv[2])"


def build(address: str, into: Path, commit: str = "HEAD") -> list[Path]:
    """Build both archives, the wheel from what is in the source archive; return their paths.

    Args:
        address: of the repository, such as ``https://github.com/OWNER/lakecdc``.
        into: a folder for them.
        commit: what is built; files that are not committed are not in it.
    """
    into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        tree, unpacked = Path(scratch, "tree"), Path(scratch, "unpacked")
        tree.mkdir()
        packed = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, capture_output=True).stdout
        subprocess.run(["tar", "--extract"], cwd=tree, input=packed, check=True)
        _published(tree, address.removesuffix(".git").rstrip("/"))
        source = _built(tree, "build_sdist", into)
        with tarfile.open(source) as archive:
            archive.extractall(unpacked, filter="data")
        (root,) = unpacked.iterdir()
        return [source, _built(root, "build_wheel", into)]


def _built(tree: Path, what: str, into: Path) -> Path:
    before = set(into.iterdir())
    subprocess.run([sys.executable, "-c", _BUILD, what, str(into)], cwd=tree, check=True, capture_output=True)
    (made,) = set(into.iterdir()) - before
    return made


def _published(tree: Path, address: str) -> None:
    """Write into a copy of the project what only an index needs: the README and addresses."""
    project = tree / "pyproject.toml"
    text = project.read_text()
    version = re.search(r'^version = "(.+)"$', text, re.MULTILINE)[1]  # type: ignore[index] # every project has one
    pages = f"{address}/blob/v{version}"
    urls = {"Repository": address, "Documentation": f"{pages}/docs/index.md", "Changelog": f"{pages}/CHANGELOG.md"}
    table = "".join(f'{name} = "{url}"\n' for name, url in urls.items())
    text = text.replace("[project.scripts]", f"[project.urls]\n{table}\n[project.scripts]", 1)
    project.write_text(text.replace("[project]\n", '[project]\nreadme = "README.md"\n', 1))
    readme = tree / "README.md"
    readme.write_text(re.sub(r"\]\((?!https?://|#)", f"]({pages}/", readme.read_text()))


def main() -> None:
    """Build into ``dist``."""
    given = (
        sys.argv[1:]
        or subprocess.run(
            ["git", "remote", "get-url", "origin"], cwd=ROOT, capture_output=True, text=True, check=False
        ).stdout.split()
    )
    if not given:
        sys.exit("release: give the address of the repository, such as https://github.com/OWNER/lakecdc")
    if subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, check=True).stdout:
        sys.exit("release: commit or remove your changes; a release is made from a commit")
    for old in DIST.glob("lakecdc-*"):
        old.unlink()
    for one in build(given[0], DIST):
        print(f"built: {one.relative_to(ROOT)}, {one.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
