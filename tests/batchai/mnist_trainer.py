"""Accepts the arguments of the recipe's mnist_trainer.py, and trains a small model on random digits with them."""

import argparse
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=64)
parser.add_argument("--epochs", type=int, default=10)
parser.add_argument("--lr", type=float, default=0.01)
parser.add_argument("--world-size", type=int, default=1)
parser.add_argument("--dist-url", default="tcp://224.66.41.62:23456")
parser.add_argument("--dist-backend", default="gloo")
parser.add_argument("--rank", type=int, default=-1)
args = parser.parse_args()

dist.init_process_group(args.dist_backend, init_method=args.dist_url, world_size=args.world_size, rank=args.rank)
torch.manual_seed(args.rank)
model = DistributedDataParallel(torch.nn.Linear(784, 10))
optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=0.5)
images, labels = torch.rand(args.batch_size, 784), torch.randint(10, (args.batch_size,))
for epoch in range(1, args.epochs + 1):
    loss = torch.nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    print(f"Epoch: [{epoch}] rank {args.rank} of {args.world_size} Loss {loss.item():.4f}")
weights = model.module.weight.sum()
everyone = [torch.zeros(()) for _ in range(args.world_size)]
dist.all_gather(everyone, weights.detach())
print("the same weights" if len({float(one) for one in everyone}) == 1 else "different weights")
for name in sorted(os.environ):
    if name.startswith(("AZ_BATCHAI_", "TF_CONFIG", "AZ_BATCH_HOST")):
        print(f"{name}={os.environ[name]}")
