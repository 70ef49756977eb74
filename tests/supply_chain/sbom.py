"""``./dev sbom``: a bill of materials in CycloneDX's JSON, made from the two locks alone; nothing is installed or fetched for it."""

from __future__ import annotations

import argparse
import sys
import tomllib
import uuid
from pathlib import Path

from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, Property, XsUri
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.model.contact import OrganizationalEntity
from cyclonedx.model.license import DisjunctiveLicense
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion

from tests.supply_chain.locked import ROOT, Locked, archives, packages

_NAMESPACE = uuid.UUID("8d1c6d2e-3f0f-5b5e-9c0e-7e5a8c0b1f3d")
"""Of the serial numbers: equal locks have equal ones."""


def bill_of_materials() -> str:
    """Return the bill as JSON text."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    own = Component(
        name=project["name"],
        version=project["version"],
        type=ComponentType.APPLICATION,
        bom_ref=project["name"],
        description=project["description"],
        licenses=[DisjunctiveLicense(id=project["license"])],
    )
    locked = [*packages(), *archives()]
    text = "\n".join(f"{one.purl} {one.marker} {' '.join(one.sha256)}" for one in locked)
    bom = Bom(components=list(map(_component, locked)), serial_number=uuid.uuid5(_NAMESPACE, text))
    bom.metadata.component = own
    bom.metadata.supplier = OrganizationalEntity(name=project["name"])
    bom.register_dependency(own, bom.components)
    return make_outputter(bom, OutputFormat.JSON, SchemaVersion.V1_6).output_as_string(indent=2)


def _component(locked: Locked) -> Component:
    hashes = [HashType(alg=HashAlgorithm.SHA_256, content=digest) for digest in locked.sha256]
    maven = locked.purl.type == "maven"
    return Component(
        name=locked.purl.name,
        group=locked.purl.namespace,
        version=locked.purl.version,
        type=ComponentType.LIBRARY,
        purl=locked.purl,
        bom_ref=str(locked.purl),
        scope=ComponentScope.OPTIONAL if locked.optional else ComponentScope.REQUIRED,
        hashes=hashes if maven else [],
        # A package has several files, of which a machine installs one.
        external_references=[] if maven else [_files(locked, hashes)],
        properties=[Property(name="lakecdc:marker", value=locked.marker)] if locked.marker else [],
    )


def _files(locked: Locked, hashes: list[HashType]) -> ExternalReference:
    return ExternalReference(
        type=ExternalReferenceType.DISTRIBUTION,
        url=XsUri(f"https://pypi.org/project/{locked.purl.name}/{locked.purl.version}/"),
        comment="one hash for each file of this version",
        hashes=hashes,
    )


def main(arguments: list[str] | None = None) -> int:
    """Write the bill to a file, or print it."""
    parser = argparse.ArgumentParser(prog="./dev sbom", description="A bill of materials in CycloneDX's JSON.")
    parser.add_argument("file", nargs="?", type=Path, help="printed without one")
    file = parser.parse_args(arguments).file
    text = bill_of_materials() + "\n"
    if file is None:
        sys.stdout.write(text)
    else:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        print(f"{file}: {len(packages())} packages, {len(archives())} archives")
    return 0


if __name__ == "__main__":
    sys.exit(main())
