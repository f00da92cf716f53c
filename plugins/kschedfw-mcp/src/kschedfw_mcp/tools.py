"""The server: its tools, each a question about the cluster, and prompts that use them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import Field

from kschedfw_mcp.answers import Answer, answer_of
from kschedfw_mcp.pending import kinds_of, summaries_of
from kschedfw_mcp.questions import Limits, QuestionError, Runner, Source

INSTRUCTIONS: Final = """\
Questions about one Kubernetes cluster, answered by kube-scheduler's own decisions: every remedy was tried, and places
as many pods as it says. Begin with why-pending. Nothing is ever written to the cluster: to carry something out, show
the user the `edits`, or the command of kubectl. Each answer has `code` and `codes` to decide by, and the `command` that
shows the user the same. `omitted` says what was left out for length; ask for one namespace or workload to see it."""

READ_ONLY: Final = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)

# What begins with a hyphen would be an option of the command.
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]*$", max_length=512)]
Filter = Annotated[str, Field(pattern=r"^([A-Za-z0-9][A-Za-z0-9._/ -]*)?$", max_length=512)]
Amount = Annotated[str, Field(pattern=r"^[0-9][0-9A-Za-z.]*$", max_length=32)]
Manifest = Annotated[str, Field(min_length=1, max_length=1_000_000)]

BUILT_IN: Final = ("default", "ClusterAutoscalerProvider", "DefaultProvider")
"""Configurations that `compare` knows by name."""

# The outcome of each command for its exit codes 0 and 1.
_CODES: Final[Mapping[str, tuple[str, str]]] = {
    "pending": ("no-pod-waits", "pods-wait"),
    "explain": ("placed", "not-placed"),
    "fit": ("fits", "does-not-fit"),
    "drain": ("can-be-drained", "cannot-be-drained"),
    "scale-up": ("all-pods-placed", "pods-wait"),
    "scale-down": ("nodes-can-go", "all-nodes-stay"),
    "compare": ("compared", "nothing-to-compare"),
    "what-if": ("no-pod-loses-its-place", "pods-lose-their-places"),
}

_FAILED: Final = re.compile(r"\d failures? of plugins$")
"""The last message of a command in which plugins failed; its exit code is 1, too."""


class Tools:
    """The tools as functions; their docstrings and types are what agents read."""

    def __init__(self, source: Source, limits: Limits) -> None:
        self._source = source
        self._runner = Runner(limits)

    async def why_pending(self, namespace: Filter = "", workload: Filter = "") -> Answer:
        """Why pods are pending: per workload the reasons, and the first remedy with how many pods it places.

        Give a namespace, or a workload such as `Deployment shop/web`, `shop/web` or `web`, to see only that.
        """
        return await self._ask(
            self._source.line("pending"),
            lambda content: summaries_of(content, namespace=namespace, workload=workload),
        )

    async def what_helps(self, name: Name) -> Answer:
        """All remedies for the pending pods of one workload (`shop/web`) or for one pod (`shop/web-6f9c-x7k2p`).

        Each was tried. `edits` are JSON pointers into manifests, with the old and the new value.
        """
        line = self._source.line("pending", options=("--top", "20", "--kinds", "200"))
        return await self._ask(line, lambda content: kinds_of(content, name))

    async def explain(self, pod: Name) -> Answer:
        """Explain the decision on one pending pod (`namespace/name`): what each plugin says of each node."""
        return await self._ask(self._source.line("explain", pod))

    async def fit(
        self, manifest: Manifest | None = None, cpu: Amount | None = None, memory: Amount | None = None
    ) -> Answer:
        """Count how many more replicas of a pod fit, where, and what stops the next.

        Give the manifest (YAML) of a Pod or of a workload with a template, or the CPU and memory that a plain pod
        requests.
        """
        options = [
            part for key, value in (("--cpu", cpu), ("--memory", memory)) if value for part in (key, value)
        ]
        files = {} if manifest is None else {"pod.yaml": manifest}
        for name in files:
            options += ["--pod", name]
        if not options:
            raise ToolError("give a manifest, or cpu and memory")
        return await self._ask(self._source.line("fit", options=options), files=files)

    async def drain(self, nodes: Annotated[list[Name], Field(min_length=1, max_length=100)]) -> Answer:
        """Say whether nodes can be drained: where their pods go, in which order, and what is in the way."""
        return await self._ask(self._source.line("drain", *nodes))

    async def scale(self, direction: Literal["up", "down"], node_groups: Manifest | None = None) -> Answer:
        """`up`: how many nodes of which group get the pending pods a place. `down`: which nodes can go.

        `node_groups` is YAML: Nodes that new ones are like, or mappings with name, template (a Node), min, max, price
        and selector. `up` needs them.
        """
        files = {} if node_groups is None else {"node-groups.yaml": node_groups}
        options = [part for name in files for part in ("--node-group", name)]
        return await self._ask(self._source.line(f"scale-{direction}", options=options), files=files)

    async def compare(
        self,
        configurations: Annotated[list[Manifest], Field(min_length=2, max_length=4)],
        reschedule: bool = False,
    ) -> Answer:
        """Compare how pods fare under several scheduler configurations; the first one is the baseline.

        Each is `default`, or the YAML of a KubeSchedulerConfiguration. Only pending pods are scheduled, or with
        `reschedule` all pods.
        """
        named = {
            f"configuration-{number}.yaml": text
            for number, text in enumerate(configurations, 1)
            if text not in BUILT_IN
        }
        by_text = {text: name for name, text in named.items()}
        options = [part for text in configurations for part in ("--config", by_text.get(text, text))]
        if reschedule:
            options += ["--reschedule", "all"]
        line = self._source.line("compare", options=options, has_config=False)
        return await self._ask(line, files=named)

    async def what_if(
        self, changes: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=100)]
    ) -> Answer:
        """Which pods move, find a place or lose theirs if the cluster or its configuration changes.

        A change is a mapping with a `kind`: cordon, uncordon, drain, delete-nodes, reschedule (with `nodes`: a list);
        add-nodes (`like`: a node, `count`); add (`manifests`: YAML, `count`); delete-pods (`pods`); edit (`text`,
        `edits` and `pods` as what-helps has them); weight (`profile`, `plugin`, `weight`); plugin (`profile`,
        `plugin`, `enabled`); arguments (`profile`, `plugin`, `arguments`). The usual profile is default-scheduler.
        """
        files = {"changes.json": json.dumps(changes)}
        return await self._ask(
            self._source.line("what-if", options=("--changes", "changes.json")), files=files
        )

    async def _ask(
        self,
        line: Sequence[str],
        chosen: Callable[[Any], Any] = lambda content: content,
        files: Mapping[str, str] | None = None,
    ) -> Answer:
        try:
            result = await self._runner.ask(line, files)
            content = chosen(result.content)
            code = (
                "plugins-failed"
                if _FAILED.search(result.messages)
                else _CODES[line[0]][result.exit_code == 1]
            )
            return answer_of(result, code, content, self._runner.limits)
        except QuestionError as error:
            raise ToolError(str(error)) from None


def make_server(source: Source, limits: Limits) -> MCPServer:
    """Return the server that answers questions about the source."""
    server = MCPServer("kschedfw", title="kschedfw", instructions=INSTRUCTIONS, log_level="WARNING")
    tools = Tools(source, limits)
    for name, ask in (
        ("why-pending", tools.why_pending),
        ("what-helps", tools.what_helps),
        ("explain", tools.explain),
        ("fit", tools.fit),
        ("drain", tools.drain),
        ("scale", tools.scale),
        ("compare", tools.compare),
        ("what-if", tools.what_if),
    ):
        server.add_tool(ask, name=name, annotations=READ_ONLY)

    @server.prompt(
        "why-is-my-pod-pending", description="Find out why a pod is pending, and what to do about it."
    )
    def why_is_my_pod_pending(pod: str) -> str:
        return (
            f"Why is the pod or workload {pod} pending, and what should be done?\n\n"
            f"Ask what-helps for {pod}. If nothing helps, ask explain for one of its pods. Then tell, in this order: "
            "the cause in one sentence; the smallest remedy with the number of pods that it places, and its edits as a "
            "patch; what it would take away from others, which what-if tells. Name the command of kschedfw that shows "
            "the same. Change nothing."
        )

    @server.prompt("can-i-drain-this-node", description="Find out whether a node can be drained.")
    def can_i_drain_this_node(node: str) -> str:
        return (
            f"Can the node {node} be drained?\n\n"
            f"Ask drain for {node}. Begin with yes or no. If no, name each pod that is in the way, why, and what would "
            "help; for pods that find no place, ask what-if with the drain and an added node like it. If yes, say in "
            "how many rounds, and where the pods go. Name the command of kschedfw that shows the same. Drain nothing."
        )

    return server
