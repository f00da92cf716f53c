"""Tests distributions of plugins against this checkout of kschedfw: `make downstream DIST='…'`.

A distribution is named by

* a directory with its source, such as plugins/kschedfw-costaware;
* a URL that pip understands, or a file: git+https://…[@REVISION][#subdirectory=DIR], an sdist, or a wheel.

kschedfw is built from this checkout and installed into a new environment, together with all the distributions and
their extra `test`; with `--layered` the environment sees the kschedfw that this interpreter has. Then every plugin
that they offer must load, and the tests of each must pass, in a run of pytest of its own with its own configuration.
A wheel has no tests to run.

Without a distribution, those of the gallery (docs/gallery.toml) that offer plugins are tested; these plugins must be
those that their entries name.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import site
import subprocess
import sys
import tarfile
import tomllib
import venv
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, NoReturn
from urllib.parse import urlsplit

REPOSITORY = Path(__file__).resolve().parents[1]

# A test that hangs: after so many seconds pytest writes the stacks of all threads, and ends. This is pytest's own, so
# that the distributions need nothing more.
TIME_LIMIT = ("-o", "faulthandler_timeout=1200", "-o", "faulthandler_exit_on_timeout=true")

GALLERY = REPOSITORY / "docs" / "gallery.toml"

LOAD_PLUGINS = """
import json
import sys
from importlib.metadata import distributions
from kschedfw import KschedfwError, Registry

found = {
    each.name: f"{distribution.name} {distribution.version}"
    for distribution in distributions(path=sys.argv[1:2])
    if distribution.name != "kschedfw"
    for each in distribution.entry_points.select(group="kschedfw")
}
if not found:
    sys.exit("downstream: none of the distributions has an entry point in the group kschedfw")
for home, names in json.loads(sys.argv[2]).items():
    offered = sorted(name for name, origin in found.items() if origin.split()[0] == home)
    if offered != sorted(names):
        sys.exit(f"downstream: {home} offers {offered}; its entry in the gallery says {sorted(names)}")
for name, origin in sorted(found.items()):
    try:
        Registry().load(name)
    except KschedfwError as error:
        sys.exit(f"downstream: {error}")
    print(f"{name} of {origin} loads")
"""


class Environment(NamedTuple):
    """A virtual environment with what pip puts there."""

    python: str
    site_packages: str
    layered: bool

    @classmethod
    def make(cls, place: Path, *, layered: bool) -> Environment:
        """A new one, in the place of an old one; `layered` on what this interpreter has installed."""
        if place.exists() and not (place / "pyvenv.cfg").is_file():
            _give_up(f"{place} is no virtual environment, so it isn't replaced")
        venv.create(place, clear=True, symlinks=os.name != "nt")
        python = str(place.absolute() / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
        code = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
        packages = subprocess.run([python, "-c", code], check=True, stdout=subprocess.PIPE, text=True).stdout
        environment = cls(python, packages.strip(), layered)
        if layered:
            # By `addsitedir`, which sees packages that are installed as editable, too.
            layers = [f"import site; site.addsitedir({each!r})\n" for each in site.getsitepackages()]
            Path(environment.site_packages, "layer.pth").write_text("".join(layers), encoding="utf-8")
        return environment

    def pip(self, command: str, *arguments: str) -> None:
        # What the layer below has is there for building, too.
        options = ["--no-build-isolation"] if self.layered else []
        pip = [sys.executable, "-m", "pip", "--python", self.python, "--disable-pip-version-check", "--quiet"]
        _run([*pip, command, *options, *arguments])


class Distribution(NamedTuple):
    """A distribution under test: the requirement for pip, and the folder with the tests."""

    label: str
    requirement: str
    source: Path | None


def main() -> None:
    options = _options()
    os.environ.pop("PYTHONPATH", None)  # only what is installed counts
    environment = Environment.make(options.venv, layered=options.layered)
    promised: dict[str, list[str]] = {}
    if not options.dist:
        needed = {Path(each).resolve() for each in options.needed}
        entries = [each for each in gallery() if (REPOSITORY / each["source"]).resolve() not in needed]
        options.dist = [_place(each["source"]) for each in entries]
        promised = {each["name"]: each["plugins"] for each in entries}
    found = [
        _find(text, environment, options.venv / "downstream" / str(i)) for i, text in enumerate(options.dist)
    ]
    print(f"== install {' '.join([*options.needed, *options.dist])}", flush=True)
    ours = [] if environment.layered else [str(REPOSITORY)]
    environment.pip("install", *ours, *options.needed, *(each.requirement for each in found))
    _run([environment.python, "-I", "-c", LOAD_PLUGINS, environment.site_packages, json.dumps(promised)])
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        passed = list(pool.map(lambda each: _test(environment.python, each), found))
    failed = [each.label for each, good in zip(found, passed, strict=True) if not good]
    if failed:
        _give_up(f"failed: {' '.join(failed)}")
    print(f"tests of {sum(each.source is not None for each in found)} distributions passed")


def gallery() -> list[dict[str, Any]]:
    """The entries of the gallery that offer plugins."""
    entries = tomllib.loads(GALLERY.read_text(encoding="utf-8"))["entry"]
    return [each for each in entries if each.get("plugins")]


def _place(source: str) -> str:
    return source if "://" in source else str(REPOSITORY / source)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="downstream", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dist", nargs="*", metavar="DIST", help="a directory, a file or a URL")
    parser.add_argument(
        "--with",
        dest="needed",
        action="append",
        default=[],
        metavar="DIR",
        help="another distribution to install, whose tests aren't run. Repeatable.",
    )
    parser.add_argument(
        "--venv",
        type=Path,
        default=REPOSITORY / ".venv-downstream",
        metavar="DIR",
        help="where to make the environment; what is there is removed",
    )
    parser.add_argument(
        "--layered",
        action="store_true",
        help="see what this interpreter has installed, kschedfw too, so that only the rest must be: quick, but hides "
        "that a distribution doesn't say what it needs, and that a wheel of kschedfw lacks a file",
    )
    return parser.parse_args()


def _find(text: str, environment: Environment, place: Path) -> Distribution:
    """The distribution; what isn't a directory is fetched into `place`."""
    path = Path(text)
    if path.is_dir():
        return Distribution(text, f"{path.resolve()}[test]", path.resolve())
    if not path.is_file() and "://" not in text:
        _give_up(f"{text!r} is no directory, no file and no URL")
    url = path.resolve().as_uri() if path.is_file() else text
    # Built here, where git is, and not from the unpacked source: some take their version from git.
    environment.pip("wheel", "--no-deps", "--wheel-dir", str(place / "wheel"), url)
    (wheel,) = (place / "wheel").iterdir()
    if urlsplit(url).path.endswith(".whl"):
        return Distribution(text, f"{wheel}[test]", None)
    environment.pip("download", "--no-deps", "--dest", str(place / "archive"), url)
    (archive,) = (place / "archive").iterdir()
    if archive.suffix != ".zip" and hasattr(tarfile, "data_filter"):  # which Python 3.11 has from 3.11.4 on
        shutil.unpack_archive(archive, place / "source", filter="data")
    else:
        shutil.unpack_archive(archive, place / "source")
    (source,) = (place / "source").iterdir()
    return Distribution(text, f"{wheel}[test]", source)


def _run(command: list[str]) -> None:
    if subprocess.run(command, check=False, stdin=subprocess.DEVNULL).returncode:
        sys.exit(1)


def _test(python: str, distribution: Distribution) -> bool:
    """Run the distribution's tests, and print what came of them when they are through."""
    if distribution.source is None:
        print(f"== {distribution.label}: a wheel, without tests", flush=True)
        return True
    done = subprocess.run(
        [python, "-m", "pytest", "-p", "no:cacheprovider", *TIME_LIMIT],
        check=False,
        cwd=distribution.source,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
    )
    print(f"== pytest {distribution.label}\n{done.stdout}", end="", flush=True)
    return done.returncode == 0


def _give_up(message: str) -> NoReturn:
    sys.exit(f"downstream: {message}")


if __name__ == "__main__":
    main()
