"""The API operations of clusters and leases."""

from __future__ import annotations

from shared.kernel.operation import Operation, OperationGroup

ANSWERS, STATUS = "shared.api.clusters", "shared.api.status"

GROUP = OperationGroup(
    "Clusters",
    (
        Operation(
            "list_clusters", "GET", "clusters", STATUS,
            "The clusters with the latest decision about each",
            "Each has its nodes, limits, and the decision with its reason",
        ),
        Operation(
            "scale_to_zero", "POST", "clusters/{cluster}/scale-to-zero", ANSWERS,
            "Scale a cluster to zero nodes", "409 with the reason while the cluster is needed",
            status=202, problems=(404, 409),
        ),
        Operation(
            "list_nodes", "GET", "nodes", "shared.api.nodes",
            "Node counts and decisions of the clusters", "`?hours=` says how far back: 24, at most 72",
        ),
        Operation("list_leases", "GET", "leases", STATUS, "The leases that hold nodes now"),
        Operation(
            "make_lease", "POST", "clusters/{cluster}/leases", ANSWERS,
            "Keep nodes of a cluster warm for some time", 'Give `{"seconds", "nodes", "why"}`',
            status=201, problems=(404, 409, 422), no_key="each call makes a lease of its own.",
        ),
        Operation(
            "extend_lease", "POST", "leases/{lease}/extend", ANSWERS,
            "Extend a lease", 'The lease ends `{"seconds"}` from now', problems=(404, 409, 422),
        ),
        Operation("release_lease", "DELETE", "leases/{lease}", ANSWERS, "End a lease now", problems=(404,)),
    ),
)  # fmt: skip
