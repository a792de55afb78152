"""The names of the storage account's queues and containers."""

DROPS_CONTAINER = "drops"
OUTPUT_CONTAINER = "output"

DROP_EVENTS = "drop-events"
DROP_CHECKS = "drop-checks"
SUBMISSIONS = "submissions"
JOB_EVENTS = "job-events"
ARCHIVES = "archives"
ANNOUNCEMENTS = "announcements"
RUN_LOOKS = "run-looks"
NOTICES = "notices"
DELIVERIES = "deliveries"
SCHEDULE_LOOKS = "schedule-looks"
REMOVALS = "removals"
CLUSTER_LOOKS = "cluster-looks"
PROMOTIONS = "promotions"
QUEUES = (
    *(DROP_EVENTS, DROP_CHECKS, SUBMISSIONS, JOB_EVENTS, RUN_LOOKS, CLUSTER_LOOKS, ARCHIVES),
    *(ANNOUNCEMENTS, NOTICES, DELIVERIES, SCHEDULE_LOOKS, REMOVALS, PROMOTIONS),
)
