"""A page as one file, with its data, scripts and styles in it; it loads nothing."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from kschedfw import KschedfwError, Node
from kschedfw.api import LONGEST_TEXT, counted, harmless
from kschedfw.explain import Explanation, GroupStep
from kschedfw.simulator import Report, Timeline
from kschedfw_lab.pages import axes
from kschedfw_lab.pages.decision_matrix import DecisionMatrix, decision_matrix
from kschedfw_lab.pages.group_matrix import GroupMatrix, group_matrix
from kschedfw_lab.pages.replay import replay

if TYPE_CHECKING:
    import jinja2

STYLES: Final = ("theme.css", "explore.css", "map.css", "chart.css")
"""The style sheets of all pages, in their order."""

_IMPORT: Final = re.compile(r'^import \{[^}]*\} from "\./([a-z_]+\.js)";\n', re.MULTILINE)
_EXPORT: Final = re.compile(r"^export (?=(?:class|const|function|async function) )", re.MULTILINE)
_TOP_LEVEL: Final = re.compile(r"^(?:async )?(?:class|const|let|function\*?) (\w+)", re.MULTILINE)


_CONTROL: Final = re.compile(r"\\[bfrtu]")
"""The escapes of control characters in JSON; newlines are harmless."""


class AssetError(KschedfwError):
    """The error of a module of the page that can't be joined with the others."""


def asset(name: str) -> str:
    """Return the text of a file in `static`."""
    return files("kschedfw_lab.pages").joinpath("static", name).read_text(encoding="utf-8")


def environment(package: str = "kschedfw_lab.pages") -> jinja2.Environment:
    """Return the environment of a page's templates; texts in them are escaped.

    Args:
        package: has a folder `templates`. They may extend `page.html`, import the macros of `plots.html`, and include
            the style sheets of all pages, such as `theme.css`.
    """
    # Here, since few commands write pages.
    import jinja2

    places = ((package, "templates"), ("kschedfw_lab.pages", "templates"), ("kschedfw_lab.pages", "static"))
    found = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(*each) for each in places]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    found.globals["axes"] = axes
    return found


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
    # In one module two equal names would be an error that only the browser tells.
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
    """Return JSON for a `<script type="application/json">`.

    No text in it can end that element; all are `harmless`.
    """
    encoded = msgspec.json.encode(content).decode()
    # Most pages need no look at each of their texts. A part between two quotes may be more than one text, never less.
    longest = max(map(len, encoded.split('"')))
    if longest > LONGEST_TEXT or _CONTROL.search(encoded) or not encoded.isprintable():
        encoded = msgspec.json.encode(_harmless(msgspec.json.decode(encoded))).decode()
    return encoded.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _harmless(content: object) -> object:
    if isinstance(content, str):
        return harmless(content)
    if isinstance(content, list):
        return [_harmless(each) for each in content]
    if isinstance(content, dict):
        return {harmless(key): _harmless(value) for key, value in content.items()}
    return content


MOST_ATTEMPTS = 20
"""The number of attempts, counted from the last one, whose matrices a page has."""


class PageFileError(KschedfwError):
    """The error of a page that can't be written to that file; says why."""


def check_page_file(file: Path) -> None:
    """Check, before any work, that a page can be written to the file.

    Raises:
        PageFileError: it can't.
    """
    if file.is_dir() or not file.parent.is_dir():
        why = "is a directory" if file.is_dir() else "its directory isn't there"
        raise PageFileError(f"--html {file}: {why}")


class _Attempts(msgspec.Struct, frozen=True):
    """The attempts, and the place of the one to show first."""

    attempts: list[DecisionMatrix] | list[GroupMatrix]
    shown: int


class StaticPage:
    """A writer of pages to a file. Obstacles are raised at once, before any work.

    Raises:
        PageFileError: the file can't be written.
    """

    def __init__(self, file: Path) -> None:
        check_page_file(file)
        self._template = environment().get_template("static.html")
        self._file = file

    def write_simulation(self, nodes: Sequence[Node], timeline: Timeline, report: Report) -> None:
        """Write the map over time, the queues, and the pods that weren't placed."""
        summary = f"{counted(report.pods, 'pod')} to schedule on {counted(report.nodes, 'node')}; seed {report.seed}"
        run = (report.profile, timeline, report)
        self._write("A simulation", summary, replay(nodes, [run]), "static_simulation.js")

    def write_explanation(self, attempts: Sequence[Explanation], shown: Explanation) -> None:
        """Write the matrices of the last attempts, and the text of `kschedfw explain`."""
        kept = [each for each in attempts if each is shown or each in attempts[-MOST_ATTEMPTS:]]
        content = _Attempts([decision_matrix(each) for each in kept], kept.index(shown))
        self._write(f"Why: {shown.pod}", "", content, "static_explanation.js")

    def write_group(self, cycles: Sequence[GroupStep], shown: GroupStep) -> None:
        """Write the matrices of the last cycles of a group, and the text of `kschedfw explain`."""
        kept = [each for each in cycles if each is shown or each in cycles[-MOST_ATTEMPTS:]]
        content = _Attempts([group_matrix(each) for each in kept], kept.index(shown))
        self._write(f"Why: podgroup {shown.group}", "", content, "static_explanation.js")

    def _write(self, heading: str, subtitle: str, content: object, module: str) -> None:
        script, styles = joined(module), style()
        # Should a text become markup after all, the browser runs no other script and loads nothing.
        policy = (
            f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(styles)}; "
            "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
        )
        page = self._template.render(
            title=f"kschedfw: {heading}",
            heading=heading,
            subtitle=subtitle,
            policy=policy,
            style=styles,
            script=script,
            data=data_block(content),
        )
        self._file.write_text(page, encoding="utf-8", errors="replace")


def _hash(text: str) -> str:
    """Return the source of this very text for a content security policy."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
