"""The mounted file systems of a job or a cluster, and the job's paths into mounts. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from shared.jobs.batchai.fields import Fields
from shared.jobs.batchai.report import TranslationReport
from shared.kernel.names import path_problem

CLUSTER_ROOT, JOB_ROOT = "AZ_BATCHAI_MOUNT_ROOT", "AZ_BATCHAI_JOB_MOUNT_ROOT"
ACCOUNT_PLACEHOLDER = "<AZURE_BATCHAI_STORAGE_ACCOUNT>"

_REFERENCE = re.compile(r"""\$\{?(AZ_BATCHAI_(?:JOB_)?MOUNT_ROOT)\}?/([^\s"';:,&|<>()$`]+)""")
_WRITTEN = re.compile(  # the name of an option whose value is a place to write to
    r"(?:out|save|snapshot|checkpoint|ckpt|export|result|tensorboard|log|model[-_]?(?:dir|path)$)", re.IGNORECASE
)
_OPTION = re.compile(r"""(-{1,2}[\w-]+|\b\w+)(?:=|\s+)["']?$""")


@dataclass(frozen=True)
class Mount:
    """One mount. `name` is the name of the share or container, '' if not given. `path` is below the mount root."""

    root: str
    path: str
    where: str  # the field that declares the mount, or that only refers to it
    kind: str = ""  # share or container, '' if the mount is only referred to
    name: str = ""
    account: str = ""

    @property
    def variable(self) -> str:
        return f"${self.root}/{self.path}"


@dataclass(frozen=True)
class MountPath:
    """A path into a mount, named by a field of the document."""

    root: str
    path: str
    field: str
    written: bool


@dataclass(frozen=True)
class MountUse:
    """A mount and the job's use of it: the read paths, and the written folders."""

    mount: Mount
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()


@dataclass
class Mounts:
    """The mounts declared by a document. The placeholder of the storage account is replaced."""

    report: TranslationReport
    account: str
    mounted: list[Mount] = field(default_factory=list)

    def read(self, volumes: Fields | None, root: str) -> None:
        """The `mountVolumes` of a job or of a cluster's node setup."""
        if volumes is None:
            return
        for share in volumes.items("azureFileShares"):
            self._share(share, root)
        for container in volumes.items("azureBlobFileSystems"):
            self._container(container, root)
        for server in volumes.items("fileServers"):
            self._lost(
                server, root, "A Batch AI file server (NFS) was mounted here.", ("fileServer", "sourceDirectory")
            )
        for other in volumes.items("unmanagedFileSystems"):
            self._lost(other, root, "A file system was mounted here by a command of your own.", ("mountCommand",))
        volumes.finish()

    def _share(self, share: Fields, root: str) -> None:
        url = self._filled(share.text("azureFileUrl", "the input of this mount", needed=True))
        address = url.partition("://")[2].partition("?")[0].rpartition("@")[2]  # the removed parts may contain a secret
        if "?" in url or "@" in url:
            self.report.changed(
                share.at("azureFileUrl"), "The share's address, with a signature or password in it.",
                "Only the address: the nodes use their own identity. The rest is not stored.",
                "If it was real, replace it: everybody who has this file knows it.",
            )  # fmt: skip
        host, _, rest = address.partition("/")
        name = rest.strip("/").partition("/")[0]
        account = self._filled(share.text("accountName", "the input of this mount")) or host.partition(".")[0]
        for key in ("fileMode", "directoryMode"):
            share.changed(
                key, "The mode of files on the mount.", "Azure ML sets its own; the job's user may read and write."
            )
        if url and not name:
            self.report.refuse(
                share.at("azureFileUrl"), "does not name a share: https://<account>.file.core.windows.net/<share>."
            )
        self._add(share, Mount(root, "", share.path, "share", name, account))

    def _container(self, container: Fields, root: str) -> None:
        account = self._filled(container.text("accountName", "the input of this mount"))
        name = container.text("containerName", "the input of this mount", needed=True)
        if container.raw("mountOptions"):
            container.lost("mountOptions", "Options of blobfuse.", "Azure ML mounts with its own options.")
        elif "mountOptions" in container:
            self.report.land(container.at("mountOptions"), "empty: nothing to do")
        self._add(container, Mount(root, "", container.path, "container", name, account))

    def _lost(self, fields: Fields, root: str, meant: str, keys: tuple[str, ...]) -> None:
        for key in (*keys, "mountOptions"):
            fields.raw(key)
            if key in fields:
                self.report.lost(
                    fields.at(key), meant, "Not mounted: Trainyard looks for its files in the workspace's storage.",
                    "Copy its content into the storage, or name where it is with --mount.",
                )  # fmt: skip
        self._add(fields, Mount(root, "", fields.path))

    def _add(self, fields: Fields, mount: Mount) -> None:
        path = fields.text("relativeMountPath", "the path of this mount", needed=True).strip("/")
        self._credentials(fields)
        fields.finish()
        if path and (fault := path_problem(path)):
            self.report.refuse(fields.at("relativeMountPath"), fault)
        elif any(each.root == mount.root and each.path == path for each in self.mounted):
            self.report.refuse(fields.at("relativeMountPath"), f"is {path[:80]!r}, as that of another mount is.")
        elif path:
            self.mounted.append(replace(mount, path=path))

    def _credentials(self, fields: Fields) -> None:
        if "credentials" in fields:
            fields.raw("credentials")
            self.report.changed(
                fields.at("credentials"), "The key of the storage account.",
                "Not used: the nodes use their own identity. It is not stored.",
                "If the key was real, replace it: everybody who has this file knows it.",
            )  # fmt: skip

    def _filled(self, text: str) -> str:
        return text.replace(ACCOUNT_PLACEHOLDER, self.account or ACCOUNT_PLACEHOLDER)


def references(texts: Iterable[tuple[str, str]], written: bool | None = None) -> list[MountPath]:
    """The paths into mounts in these (field, text) pairs.

    If `written` is not given, a path counts as written if the option before it has such a name: --output_dir.
    """
    mount_references = []
    for name, text in texts:
        for match in _REFERENCE.finditer(text):
            option = _OPTION.search(text[: match.start()])
            writes = bool(option and _WRITTEN.search(option[1].lstrip("-"))) if written is None else written
            path = "/".join(part for part in match[2].split("/") if part not in ("", "."))
            if path and not path_problem(path):
                mount_references.append(MountPath(match[1], path, name, writes))
    return mount_references


def uses(mounts: Mounts, named: Iterable[MountPath]) -> list[MountUse]:
    """Each mount with the job's use. A mount without a declaration is reported, and assumed to exist."""
    by_mount: dict[Mount, MountUse] = {mount: MountUse(mount) for mount in mounts.mounted}
    for reference in named:
        mount = _mount_of(by_mount, reference)
        if mount is None:
            mount = _implied(mounts, reference)
            by_mount[mount] = MountUse(mount)
        below = reference.path.removeprefix(mount.path).strip("/")
        use = by_mount[mount]
        if not reference.written:
            by_mount[mount] = replace(use, reads=(*use.reads, below))
        elif below and below not in use.writes:
            by_mount[mount] = replace(use, writes=(*use.writes, below))
    return [replace(use, writes=_outermost(use.writes)) for use in by_mount.values()]


def _mount_of(mounts: Iterable[Mount], reference: MountPath) -> Mount | None:
    fitting = [
        mount for mount in mounts if mount.root == reference.root and f"{reference.path}/".startswith(f"{mount.path}/")
    ]
    return max(fitting, key=lambda mount: len(mount.path), default=None)


def _implied(mounts: Mounts, reference: MountPath) -> Mount:
    mount = Mount(reference.root, reference.path.partition("/")[0], reference.field)
    whose = "The cluster" if reference.root == CLUSTER_ROOT else "The job"
    mounts.report.lost(
        reference.field, f"{whose} mounted something at {mount.variable}; this document does not say which.",
        f"Trainyard looks for its files under the name {mount.path!r}.",
        "Give the cluster.json (--cluster-file), or say where they are with --mount.",
    )  # fmt: skip
    return mount


def _outermost(paths: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(p for p in paths if not any(p != other and f"{p}/".startswith(f"{other}/") for other in paths))
