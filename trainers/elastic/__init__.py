"""PyTorch's store and rendezvous on Azure Table Storage. README.md explains both."""
