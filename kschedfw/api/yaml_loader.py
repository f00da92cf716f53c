"""YAML as Kubernetes reads it.

PyYAML follows YAML 1.1 where Kubernetes' parser doesn't: it makes dates of `2023-01-01`, sexagesimal numbers of
`22:22`, stumbles over `=`, and takes `1e3` for a text. What is the same: `yes`, `no`, `on` and `off` are booleans.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import yaml

if TYPE_CHECKING:
    Base = yaml.SafeLoader
else:  # the one in C is ten times as fast, but not everywhere there
    Base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class ManifestLoader(Base):
    """A safe loader with Kubernetes' idea of what a plain scalar is."""

    yaml_implicit_resolvers: dict[Any, Any] = {}  # noqa: RUF012  # PyYAML's interface; nothing is inherited


_SCALARS: Final = (
    ("bool", "yYnNtTfFoO", r"yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF"),
    ("int", "-+0123456789", r"[-+]?(0b[01_]+|0x[0-9a-fA-F_]+|0o?[0-7_]+|0|[1-9][0-9_]*)"),
    (
        "float",
        "-+0123456789.",
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
    ),
    ("null", "~nN", r"~|null|Null|NULL|"),
    ("merge", "<", r"<<"),
)
for _name, _first, _pattern in _SCALARS:
    _starts = [*_first, ""] if _name == "null" else list(_first)
    ManifestLoader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_name}", re.compile(f"^(?:{_pattern})$"), _starts
    )


def _integer(loader: Any, node: Any) -> int:
    text = loader.construct_scalar(node).replace("_", "").lower()
    digits = text.lstrip("+-")
    base = {"0b": 2, "0x": 16, "0o": 8}.get(digits[:2], 8 if digits[:1] == "0" else 10)
    return int(text, base)


ManifestLoader.add_constructor("tag:yaml.org,2002:int", _integer)
