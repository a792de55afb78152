"""PyTorch's store and rendezvous on Azure Table Storage. See README.md."""
