"""The option `--html` of simulate and explain."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from kschedfw.cli.exits import ExitCode, complain
from kschedfw.scheduler.errors import MissingExtraError

if TYPE_CHECKING:
    from kschedfw.pages.static_page import StaticPage


def page_of(file: Path | None) -> StaticPage | None:
    """Return the page to write; None without `--html`. If the extra isn't installed, the command ends.

    Raises:
        PageFileError: the file can't be written.
    """
    if file is None:
        return None
    # Imported here, since few commands need it.
    from kschedfw.pages.static_page import StaticPage

    try:
        return StaticPage(file)
    except MissingExtraError as error:
        raise typer.Exit(complain(f"--html: {error}", ExitCode.NOTHING_TO_DO)) from None
