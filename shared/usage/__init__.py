"""Usage of nodes: what the nodes of each run use of their processors, memory, disks, network and GPUs."""
