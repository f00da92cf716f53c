"""Reads a stream in a test's own thread."""

from __future__ import annotations

import select
from collections.abc import Iterator

from kschedfw_kubernetes.cluster.transport import Stream


def chunks(stream: Stream) -> Iterator[bytes]:
    """Yield chunks of the body as they arrive, up to its end, and close it. Raises what `Stream.arrived` raises."""
    try:
        while (chunk := stream.arrived()) != b"":
            if chunk is None:
                select.select([stream], [], [], 0.1)
                continue
            yield chunk
            if stream.has_ended:
                break
    finally:
        stream.close()
