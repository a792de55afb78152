"""The names of the storage account's containers. Messages name the queues: shared/messages/declared.py."""

DROPS_CONTAINER = "drops"
OUTPUT_CONTAINER = "output"
