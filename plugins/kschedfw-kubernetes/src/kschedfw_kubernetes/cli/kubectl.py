"""The plugin for kubectl: `kubectl kschedfw pending` runs `kschedfw pending` for the cluster that kubectl uses.

kubectl runs the first executable in PATH that is called `kubectl-` and the subcommand's name, here the script
`kubectl-kschedfw`. For completion it runs `kubectl_complete-kschedfw`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final, NoReturn

from click.shell_completion import ShellComplete

from kschedfw.api import KschedfwError
from kschedfw.cli import COMMANDS, ExitCode, complain
from kschedfw.cli import main as run_command
from kschedfw.cli.app import app
from kschedfw_kubernetes.cluster.kubeconfig import current_context

_CLUSTER_OPTIONS: Final = ("--context", "--kubeconfig")
_NO_FILES: Final = ":4"
"""The last line of completions, a directive of cobra: kubectl must not offer names of files in addition."""


def main() -> NoReturn:
    """Run the subcommand that the arguments name, for the current context unless they name a cluster."""
    try:
        arguments = with_current_context(sys.argv[1:], os.environ)
    except KschedfwError as error:
        sys.exit(complain(str(error), ExitCode.BAD_INPUT))
    run_command(arguments)


def complete() -> None:
    """Print the completions of the last argument, as kubectl asks for them."""
    *before, begun = sys.argv[1:]
    shell = ShellComplete(app, {}, "kschedfw", "_KSCHEDFW_COMPLETE")
    # A subcommand that can't be loaded has no completions.
    with suppress(KschedfwError):
        for each in shell.get_completions(before, begun):
            # The others ask the shell for names of files.
            if each.type == "plain":
                print(each.value)
    print(_NO_FILES)


def with_current_context(arguments: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """Return the arguments, with `--context` and the current context added if needed.

    It is added if the subcommand has this option and the arguments name no cluster.

    Raises:
        KschedfwError: a kubeconfig can't be read, or the subcommand can't be loaded.
    """
    given = list(arguments)
    if not given or given[0] not in COMMANDS.names():
        return given
    if any(each.partition("=")[0] in _CLUSTER_OPTIONS for each in given):
        return given
    name, *rest = given
    parameters = COMMANDS.load(name).load().params
    context = current_context(environment)
    if not context or not any("--context" in each.opts for each in parameters):
        return given
    return [name, "--context", context, *rest]
