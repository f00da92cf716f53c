"""The plugin for kubectl: `kubectl kschedfw pending` runs `kschedfw pending` for the cluster that kubectl uses.

kubectl runs the first executable in PATH that is called `kubectl-` and the subcommand's name, here the script
`kubectl-kschedfw`. For completion it runs `kubectl_complete-kschedfw`.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout, suppress
from io import BytesIO, TextIOWrapper
from typing import Final, NoReturn

from kschedfw.api import KschedfwError
from kschedfw.cli import COMMANDS, ExitCode, complain
from kschedfw.cli import main as run_command
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
    words = shlex.join(["kschedfw", *sys.argv[1:]])
    os.environ.update(COMP_WORDS=words, COMP_CWORD=str(len(sys.argv) - 1), _KSCHEDFW_COMPLETE="bash_complete")
    output = TextIOWrapper(BytesIO(), encoding="utf-8")  # click writes bytes
    with redirect_stdout(output), suppress(SystemExit):
        run_command([])
    output.seek(0)
    for line in output.read().splitlines():
        # The lines of other types tell bash to complete names of files.
        kind, _, value = line.partition(",")
        if kind == "plain":
            print(value)
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
