"""Authentication by token, and authorization by Kubernetes' roles (RBAC)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import attrs

from kschedfw_apiserver import status
from kschedfw_apiserver.requests import ApiRequest
from kschedfw_apiserver.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    ROLE_BINDINGS,
    ROLES,
    Resource,
)
from kschedfw_apiserver.store import Store

Manifest = Mapping[str, Any]

MASTERS: Final = "system:masters"
"""The group whose members may do everything."""

# The order matters: the first three are health, with no paths below. Anonymous users may read the first four, as by the
# role system:public-info-viewer.
_EVERYBODY: Final = (
    "/healthz",
    "/livez",
    "/readyz",
    "/version",
    "/api",
    "/apis",
    "/openapi",
)
"""Paths that all authenticated users may read, with the paths below them except for health. They contain no objects."""
_REVIEWS_OF_ONESELF: Final = ("selfsubjectaccessreviews", "selfsubjectreviews")


@attrs.frozen
class User:
    """The user that sends a request."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""

    @classmethod
    def service_account(cls, namespace: str, name: str) -> User:
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
        return cls(f"system:serviceaccount:{namespace}:{name}", groups)


ANONYMOUS: Final = User("system:anonymous", ("system:unauthenticated",))
ADMIN: Final = User("kubernetes-admin", (MASTERS,))


@attrs.frozen
class Attributes:
    """The attributes of a request for authorization.

    `resource` may include a subresource, such as `pods/binding`. If it is empty, `path` counts.
    """

    verb: str
    group: str = ""
    resource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""


class Access:
    """The users by their tokens, and the permissions of the roles bound to them.

    As long as no user has been added, every request is the administrator's.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._users: dict[str, User] = {}

    def add(self, token: str, user: User) -> None:
        """Add a user with a token. The user also gets the group `system:authenticated`."""
        self._users[token] = attrs.evolve(user, groups=(*user.groups, "system:authenticated"))

    def user_of(self, token: str) -> User | None:
        return self._users.get(token)

    def authenticate(self, headers: Mapping[str, str]) -> User:
        """Return the user of the request's token. Raises StatusError for an unknown token."""
        if not self._users:
            return ADMIN
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return ANONYMOUS
        user = self._users.get(token.strip())
        if user is None:
            raise status.unauthorized()
        return user

    def authorize(self, user: User, request: ApiRequest) -> None:
        """Raise StatusError if the user isn't allowed to make the request."""
        wanted = attributes_of(request)
        if not self.allows(user, wanted):
            raise refused(user, request, wanted)

    def allows(self, user: User, wanted: Attributes) -> bool:
        if MASTERS in user.groups:
            return True
        if not wanted.resource:
            is_below = any(wanted.path.startswith(f"{each}/") for each in _EVERYBODY[3:])
            is_public = wanted.path in _EVERYBODY or is_below
            known = user is not ANONYMOUS or wanted.path.startswith(_EVERYBODY[:4])
            if is_public and known and wanted.verb in ("get", "head"):
                return True
        elif wanted.resource in _REVIEWS_OF_ONESELF and wanted.verb == "create" and user is not ANONYMOUS:
            return True
        return any(_allowed_by(rule, wanted) for rule in self._rules(user, wanted.namespace))

    def _rules(self, user: User, namespace: str) -> Iterable[Manifest]:
        for binding in self._store.all(CLUSTER_ROLE_BINDINGS)[1]:
            if _is_for(binding.manifest, user, ""):
                yield from self._rules_of(binding.manifest, "")
        if not namespace:
            return
        for binding in self._store.all(ROLE_BINDINGS)[1]:
            if binding.key[0] == namespace and _is_for(binding.manifest, user, namespace):
                yield from self._rules_of(binding.manifest, namespace)

    def _rules_of(self, binding: Manifest, namespace: str) -> Iterable[Manifest]:
        reference = binding.get("roleRef") or {}
        resource: Resource = CLUSTER_ROLES if reference.get("kind") == "ClusterRole" else ROLES
        where = namespace if resource is ROLES else ""
        role = self._store.get(resource, where, str(reference.get("name")))
        return [] if role is None else role.manifest.get("rules") or []


def attributes_of(request: ApiRequest) -> Attributes:
    if request.target.resource is None:
        return Attributes(request.verb, path=request.target.path)
    resource = request.resource
    full = f"{resource.plural}/{request.subresource}" if request.subresource else resource.plural
    return Attributes(request.verb, resource.group, full, request.namespace, request.name)


def _is_for(binding: Manifest, user: User, namespace: str) -> bool:
    for subject in binding.get("subjects") or ():
        name = subject.get("name")
        match subject.get("kind"):
            case "User" if name == user.name:
                return True
            case "Group" if name in user.groups:
                return True
            case "ServiceAccount":
                where = subject.get("namespace") or namespace
                if user.name == f"system:serviceaccount:{where}:{name}":
                    return True
    return False


def _allowed_by(rule: Manifest, wanted: Attributes) -> bool:
    verbs = rule.get("verbs") or ()
    if "*" not in verbs and wanted.verb not in verbs:
        return False
    if not wanted.resource:
        return any(_covers(str(each), wanted.path) for each in rule.get("nonResourceURLs") or ())
    groups, resources = rule.get("apiGroups") or (), rule.get("resources") or ()
    if "*" not in groups and wanted.group not in groups:
        return False
    part = wanted.resource.partition("/")[2]
    if not {"*", wanted.resource, *([f"*/{part}"] if part else [])} & set(resources):
        return False
    names = rule.get("resourceNames") or ()
    # A request without a name, such as a list, isn't covered by a rule with names.
    return not names or (bool(wanted.name) and wanted.name in names)


def _covers(pattern: str, path: str) -> bool:
    return pattern in ("*", path) or (pattern.endswith("*") and path.startswith(pattern[:-1]))


def refused(user: User, request: ApiRequest, wanted: Attributes) -> status.StatusError:
    """Return the refusal of a request, with Kubernetes' message."""
    if not wanted.resource:
        message = f'forbidden: User "{user.name}" cannot {wanted.verb} path "{wanted.path}"'
        return status.StatusError(403, "Forbidden", message)
    scope = f'in the namespace "{wanted.namespace}"' if wanted.namespace else "at the cluster scope"
    why = f'User "{user.name}" cannot {wanted.verb} resource "{wanted.resource}" in API group "{wanted.group}" {scope}'
    return status.forbidden(request.resource, wanted.name, why)
