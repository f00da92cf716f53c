"""Writes kschedfw/api/known_fields.txt: the fields that the kinds of Kubernetes have, or have had, and their types.

They are read from the models of the package lightkube-models, which has a release for every version of Kubernetes:

    pip download --no-deps -d wheels lightkube-models==1.37.0.8 …
    python .ci/known_fields.py wheels/*.whl

The fields of several versions are put together, since dumps come from clusters of all ages: what an alpha feature had
for a version, or what a group of old had, isn't a mistake. Nothing is imported from the models: only the names of
fields are read off them, with the names of the types that have fields themselves.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from zipfile import ZipFile

from kschedfw.api.kinds import KINDS
from kschedfw.api.known_fields import FILE

GROUPS = ("core", "apps", "batch", "extensions", "node", "policy", "resource", "scheduling", "storage")
"""Where the kinds are, and have been; `apps_v1` is a module of the group `apps`."""

HEADER = """\
# Written by .ci/known_fields.py: the fields that Kubernetes knows, or has known, from lightkube-models
# {versions}.
# A line is a type and its fields; what comes after a colon is the type of a field that has fields itself.
"""

_WITHOUT_FIELDS = ("SchedulingPolicy", "DisruptionMode")

Fields = dict[str, str]
"""The fields of a class, with the type of each as it is written."""
Module = dict[str, Fields]


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the table of known fields.")
    parser.add_argument("wheels", nargs="+", type=Path, help="wheels of lightkube-models, of any versions")
    text = table(parser.parse_args().wheels)
    FILE.write_text(text, encoding="utf-8")


def table(wheels: list[Path]) -> str:
    """The text of the table."""
    types: dict[str, dict[str, str]] = defaultdict(dict)
    versions = []
    for wheel in sorted(wheels, key=_minor_version):
        versions.append(f"1.{_minor_version(wheel)}")
        for name, fields in _types(_modules(wheel)):
            # Of the newer version, should a type have changed; but a type without fields there may have had some.
            types[name] |= {field: type_ or types[name].get(field, "") for field, type_ in fields.items()}
    lines = (
        " ".join((name, *(f"{field}:{type_}" if type_ else field for field, type_ in sorted(fields.items()))))
        for name, fields in sorted(types.items())
    )
    return HEADER.format(versions=", ".join(versions)) + "".join(f"{line}\n" for line in lines)


def _minor_version(wheel: Path) -> int:
    found = re.match(r"lightkube_models-1\.(\d+)\.", wheel.name)
    if found is None:
        raise SystemExit(f"{wheel}: not a wheel of lightkube-models")
    return int(found[1])


def _modules(wheel: Path) -> Mapping[str, Module]:
    with ZipFile(wheel) as archive:
        return {
            Path(name).stem: _classes(archive.read(name).decode())
            for name in archive.namelist()
            if name.startswith("lightkube/models/") and name.endswith(".py")
        }


def _classes(source: str) -> Module:
    found = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef):
            declared = (each for each in node.body if isinstance(each, ast.AnnAssign))
            found[node.name] = {_name(each): ast.literal_eval(each.annotation) for each in declared}
        # `BasicSchedulingPolicy = Dict`: a member of a union that has no fields. Other such types may have any.
        elif isinstance(node, ast.Assign) and (name := ast.unparse(node.targets[0])).endswith(
            _WITHOUT_FIELDS
        ):
            found[name] = {}
    return found


def _name(declared: ast.AnnAssign) -> str:
    """The field's name in JSON, which Python may not have as the name of an attribute."""
    assert isinstance(declared.target, ast.Name)
    if isinstance(declared.value, ast.Call):
        for keyword in declared.value.keywords:
            if keyword.arg == "metadata":
                return str(ast.literal_eval(keyword.value).get("json", declared.target.id))
    return declared.target.id


def _types(modules: Mapping[str, Module]) -> Iterator[tuple[str, dict[str, str]]]:
    """All types that the kinds are made of, with their fields."""
    waiting = [
        (module, kind)
        for module in modules
        for kind in KINDS
        # v1.35's Workload has parts that are called PodGroup, and aren't objects.
        if module.partition("_")[0] in GROUPS and "kind" in modules[module].get(kind, {})
    ]
    seen = set(waiting)
    while waiting:
        module, name = waiting.pop()
        fields = {}
        for field, written in modules[module][name].items():
            place = _type_of(written, module, modules)
            fields[field] = "" if place is None else place[1]
            if place is not None and place not in seen:
                seen.add(place)
                waiting.append(place)
        yield name, fields


def _type_of(written: str, module: str, modules: Mapping[str, Module]) -> tuple[str, str] | None:
    """Module and name of the class in `Optional[List[core_v1.Container]]`; None for what has no fields of its own."""
    bare = re.sub(r"^(?:(?:Optional|List)\[)*|\]+$", "", written)
    place, _, name = bare.rpartition(".")
    place = place or module
    return (place, name) if name in modules.get(place, {}) else None


if __name__ == "__main__":
    main()
