"""The errors of manifests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kschedfw.api.errors import KschedfwError
from kschedfw.api.field_errors import FieldError, first_of, printable


class ManifestError(KschedfwError, ValueError):
    """The error of an invalid manifest.

    Attributes:
        errors: the problems with the fields. The loader reports each as a ManifestError of its own.
        subject: the object, such as `Node worker-1`; empty if it isn't known.
        source: the file, or the name of another source; empty for a mapping.
        document: the number of the document in the source, from 1; 0 for a mapping.
    """

    def __init__(
        self, errors: tuple[FieldError, ...], subject: str = "", source: str = "", document: int = 0
    ) -> None:
        self.errors, self.subject, self.source, self.document = errors, subject, source, document
        super().__init__(errors, subject, source, document)

    @property
    def path(self) -> str:
        """The field of the first problem, such as `spec.containers[0].name`."""
        return self.errors[0].path

    def __str__(self) -> str:
        where = f"document {self.document}" if self.document else ""
        place = f"{where} ({self.subject})" if where and self.subject else where or self.subject
        prefix = "".join(f"{printable(part)}: " for part in (self.source, place) if part)
        return "\n".join(first_of([f"{prefix}{error}" for error in self.errors], "problems"))


class InvalidManifestsError(KschedfwError, ValueError):
    """The error of manifests that are invalid or can't be read.

    The text has a line for each problem; of very many, for the first ones.

    Attributes:
        problems: the errors.
    """

    def __init__(self, problems: Sequence[ManifestError]) -> None:
        self.problems = tuple(problems)
        super().__init__(self.problems)

    def __str__(self) -> str:
        return "\n".join(first_of([str(problem) for problem in self.problems], "problems"))


def subject_of(manifest: object, kind: str = "") -> str:
    """Return the object's name in errors: `Pod web/frontend-1`, as far as its manifest has it."""
    if not isinstance(manifest, Mapping):
        return ""
    metadata = manifest.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    name = metadata.get("name") or metadata.get("generateName")
    namespace = metadata.get("namespace")
    full = f"{namespace}/{name}" if namespace and name else name
    return " ".join(str(part) for part in (manifest.get("kind") or kind, full) if part)
