"""The files of pages: templates, style sheets and modules, and their bundling."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import TYPE_CHECKING, Final

import msgspec

from kschedfw.api.errors import KschedfwError
from kschedfw.scheduler.errors import MissingExtraError

if TYPE_CHECKING:
    import jinja2

NEEDS_EXTRA: Final = "the page needs the extra html: pip install 'kschedfw[html]'"

STYLES: Final = ("theme.css", "explore.css", "map.css", "chart.css")
"""The style sheets of all pages, in their order."""

_IMPORT: Final = re.compile(r'^import \{[^}]*\} from "\./([a-z_]+\.js)";\n', re.MULTILINE)
_EXPORT: Final = re.compile(r"^export (?=(?:class|const|function|async function) )", re.MULTILINE)
_TOP_LEVEL: Final = re.compile(r"^(?:async )?(?:class|const|let|function\*?) (\w+)", re.MULTILINE)


class AssetError(KschedfwError):
    """The error of a module of the page that can't be joined with the others."""


def asset(name: str) -> str:
    """Return the text of a file in `static`."""
    return files("kschedfw.pages").joinpath("static", name).read_text(encoding="utf-8")


def environment(package: str = "kschedfw.pages") -> jinja2.Environment:
    """Return the environment of a page's templates; texts in them are escaped.

    Args:
        package: has a folder `templates`. They may include the style sheets of all pages, such as `theme.css`.

    Raises:
        MissingExtraError: jinja2 isn't installed.
    """
    try:
        import jinja2
    except ModuleNotFoundError:
        raise MissingExtraError(NEEDS_EXTRA) from None
    return jinja2.Environment(
        loader=jinja2.ChoiceLoader(
            [jinja2.PackageLoader(package, "templates"), jinja2.PackageLoader("kschedfw.pages", "static")]
        ),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )


def style() -> str:
    """Return the style sheets of all pages as one."""
    return "\n".join(map(asset, STYLES))


def joined(name: str) -> str:
    """Return a module and all its imports as one module: a page of a single file can't import others.

    Modules import names from each other, without `as`, and export declarations; so they are concatenated, the
    imported ones first, without the words `import` and `export`.

    Raises:
        AssetError: two modules declare the same name.
    """
    modules: dict[str, str] = {}
    _collect(name, modules)
    owner: dict[str, str] = {}
    for module, text in modules.items():
        for declared in _TOP_LEVEL.findall(text):
            if owner.setdefault(declared, module) != module:
                raise AssetError(f"{module}: {owner[declared]} declares {declared}, too")
    return "\n".join(modules.values())


def _collect(name: str, modules: dict[str, str]) -> None:
    if name in modules:
        return
    text = asset(name)
    for imported in _IMPORT.findall(text):
        _collect(imported, modules)
    modules[name] = _EXPORT.sub("", _IMPORT.sub("", text))


def data_block(content: object) -> str:
    """Return JSON for a `<script type="application/json">`: no text in it can end that element."""
    encoded = msgspec.json.encode(content).decode()
    return encoded.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
