"""The operations of clusters and leases."""

from __future__ import annotations

from shared.kernel.operation import Group, Operation

ANSWERS = "shared.api.clusters"

GROUP = Group(
    "Clusters",
    (
        Operation(
            "list_clusters", "GET", "clusters", ANSWERS, "The clusters with the latest decision about each",
            "Nodes, limits, the decision with its reason",
        ),
        Operation(
            "scale_to_zero", "POST", "clusters/{cluster}/scale-to-zero", ANSWERS,
            "Bring a cluster to zero unless it is needed", "409 with the reason while something needs it",
            status=202, problems=(404, 409),
        ),
        Operation(
            "list_nodes", "GET", "nodes", ANSWERS, "The clusters' nodes and decisions of late",
            "Of the last `?hours=` (24, at most 72)",
        ),
        Operation("list_leases", "GET", "leases", ANSWERS, "The leases that hold nodes now"),
        Operation(
            "make_lease", "POST", "clusters/{cluster}/leases", ANSWERS, "Keep nodes of a cluster warm for some time",
            "`{\"seconds\", \"nodes\", \"why\"}`", status=201, problems=(404, 409, 422),
        ),
        Operation(
            "extend_lease", "POST", "leases/{lease}/extend", ANSWERS, "Let a lease go on for longer",
            "To `{\"seconds\"}` from now", problems=(404, 409, 422),
        ),
        Operation("release_lease", "DELETE", "leases/{lease}", ANSWERS, "End a lease now", problems=(404,)),
    ),
)  # fmt: skip
