"""The names of the storage account's containers. Queues are named by the messages, shared/messages/declared.py."""

DROPS_CONTAINER = "drops"
OUTPUT_CONTAINER = "output"
