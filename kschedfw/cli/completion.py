"""`--show-completion` and `--install-completion`: completion of subcommands and options by Tab."""

from __future__ import annotations

import os
from pathlib import Path

import click

_FILES = {
    "bash": Path(".bash_completions", "kschedfw.sh"),
    "fish": Path(".config", "fish", "completions", "kschedfw.fish"),
    "zsh": Path(".zfunc", "_kschedfw"),
}
"""Each shell's script, below the home directory."""

_STARTS = {
    "bash": (Path(".bashrc"), "source ~/.bash_completions/kschedfw.sh"),
    "zsh": (Path(".zshrc"), "fpath+=~/.zfunc; autoload -Uz compinit; compinit"),
}
"""The line by which a shell finds its script; fish needs none."""


def show_completion(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
    """Print the script of the user's shell, and exit."""
    if wanted:
        print(_script(context, _shell()))
        context.exit()


def install_completion(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
    """Write the script of the user's shell to where that shell finds it, and exit."""
    if not wanted:
        return
    shell = _shell()
    file = Path.home() / _FILES[shell]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{_script(context, shell)}\n", encoding="utf-8")
    if shell in _STARTS:
        name, line = _STARTS[shell]
        start = Path.home() / name
        text = start.read_text(encoding="utf-8") if start.exists() else ""
        if line not in text.splitlines():
            before = text if not text or text.endswith("\n") else f"{text}\n"
            start.write_text(f"{before}{line}\n", encoding="utf-8")
    print(f"{shell} completion installed in {file}")
    print("Completion will take effect once you restart the terminal")
    context.exit()


def _shell() -> str:
    shell = Path(os.environ.get("SHELL", "")).name
    if shell not in _FILES:
        raise click.UsageError(f"there is no completion for the shell {shell!r}, but for {', '.join(_FILES)}")
    return shell


def _script(context: click.Context, shell: str) -> str:
    from click.shell_completion import get_completion_class  # `--help` doesn't need it

    completion = get_completion_class(shell)
    assert completion is not None
    return completion(context.command, {}, "kschedfw", "_KSCHEDFW_COMPLETE").source()
