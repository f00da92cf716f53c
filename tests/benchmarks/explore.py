"""How long `kschedfw explore` takes until its page can be used, and what comes over the wire: a command.

    PYTHONPATH=plugins/kschedfw-advisor/tests python -m tests.benchmarks.explore [NODES PODS]

By default there are 1,000 nodes and 10,000 pods, of which a twentieth is pending. It needs a Chromium, as
plugins/kschedfw-advisor/tests/explore/test_browser.py does. The processor's time is that of the server.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from kschedfw_apiserver.browser import chromium
from playwright.sync_api import Page

from kschedfw import make_node, make_pod
from kschedfw.api.objects import to_manifest

_TICKS = os.sysconf("SC_CLK_TCK")


def manifests(nodes: int, pods: int) -> Iterator[dict[str, object]]:
    """Equal nodes in three zones; pods of 97 applications, of which the first twentieth is pending."""
    for number in range(nodes):
        node = make_node(f"node-{number:04}").capacity(cpu=16, memory="64Gi", pods=110)
        labels = {"topology.kubernetes.io/zone": f"zone-{'abc'[number % 3]}", "kubernetes.io/arch": "amd64"}
        yield to_manifest(node.labels(labels).build())
    for number in range(pods):
        pod = make_pod(f"app-{number % 97}-{number:05}-x7k2p").namespace(f"team-{number % 20}")
        pod.requests(cpu=f"{(1 + number % 7) * 250}m", memory=f"{(1 + number % 5) * 512}Mi")
        if number >= pods // 20:
            pod.node(f"node-{number % nodes:04}")
        yield to_manifest(pod.labels(app=f"app-{number % 97}").build())


class Stopwatch:
    """Seconds since the last look: on the clock, and of a process' processor time."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._clock = time.perf_counter()
        self._processor = 0.0

    def lap(self, what: str) -> None:
        fields = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()
        clock, processor = time.perf_counter(), (int(fields[11]) + int(fields[12])) / _TICKS
        print(f"{what:45}{clock - self._clock:8.2f} s{processor - self._processor:10.2f} s")
        self._clock, self._processor = clock, processor


def drive(page: Page, url: str, watch: Stopwatch) -> None:
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    sizes: list[int] = []
    session.on("Network.loadingFinished", lambda event: sizes.append(int(event["encodedDataLength"])))
    page.goto(url)
    page.wait_for_selector("html[data-ready]")
    watch.lap("from the address to a usable page")
    print(f"{'on the wire until then':45}{sum(sizes) / 1000:8.0f} kB")
    page.wait_for_selector("#pending-side:not([aria-busy])", timeout=300_000)
    watch.lap("why pods wait and what helps")
    frames = page.evaluate(
        """async () => {
          const map = document.querySelector(".map");
          const canvas = map.querySelector("canvas");
          const times = [];
          for (let frame = 0; frame < 120; frame += 1) {
            const before = performance.now();
            map.scrollTop = frame * 8;
            canvas.dispatchEvent(new MouseEvent("mousemove", { clientX: 100 + 5 * frame, clientY: 300 }));
            await new Promise(requestAnimationFrame);
            times.push(performance.now() - before);
          }
          return times.sort((one, other) => one - other);
        }"""
    )
    print(f"{'a frame while scrolling and pointing':45}{frames[60]:8.0f} ms, 95 %: {frames[114]:.0f} ms")
    watch.lap("")
    page.get_by_role("tab", name="What if").click()
    page.get_by_label("weight of NodeResourcesFit, as a number").fill("10")
    page.wait_for_selector("text=Tried, not kept")
    watch.lap("a weight is tried")
    page.get_by_role("button", name="Keep").click()
    page.wait_for_selector("text=kept: weight")
    watch.lap("it is kept")
    page.get_by_role("button", name="Undo").click()
    page.wait_for_selector("text=no changes are kept")
    watch.lap("it is undone")
    page.get_by_role("tab", name="Pending").click()
    page.locator("#pending-side summary").last.click()
    page.locator("#pending-side .window button.link").first.click()
    page.wait_for_selector("#decision .window")
    watch.lap("a decision is open")
    page.get_by_role("button", name="Close").click()
    page.get_by_role("tab", name="What if").click()
    page.get_by_role("button", name="Take all pods off all nodes").click()
    page.wait_for_selector("text=take the pods off", timeout=300_000)
    watch.lap("all pods are scheduled anew")
    print(f"{'on the wire in all':45}{sum(sizes) / 1000:8.0f} kB")


def main(nodes: int = 1_000, pods: int = 10_000) -> None:
    with TemporaryDirectory() as directory:
        file = Path(directory) / "cluster.json"
        file.write_text(
            json.dumps({"apiVersion": "v1", "kind": "List", "items": list(manifests(nodes, pods))})
        )
        command = [sys.executable, "-m", "kschedfw", "explore", str(file)]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process, chromium() as browser:
            watch = Stopwatch(process.pid)
            assert process.stderr is not None
            found = re.search(r"explore at (\S+)", process.stderr.readline())
            assert found is not None
            watch.lap("from the command to the address")
            drive(browser.new_page(viewport={"width": 1280, "height": 900}), found[1], watch)
            process.terminate()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
