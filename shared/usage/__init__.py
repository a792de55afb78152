"""Usage of nodes: how much of their processors, memory, disks, network and GPUs the nodes of each run use."""
