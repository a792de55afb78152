"""The peer of trainers/mnist: pytorch/examples, mnist/main.py.

Taken from that script: torchvision's MNIST with ToTensor and Normalize for each image, a loader without workers (as it
has on a CPU), a loop that logs `loss.item()` at regular steps, a test after each epoch. Taken from our trainer: the
network, SGD in one cycle. The script supports one process only; for several, the sampler and DDP of imagenet/main.py
are added.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from mnist.train import Net
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler
from torchvision import datasets, transforms

from benchmarks.peers.common import RANK, WORLD_SIZE, Journal, arguments, join


def main(argv: Sequence[str] | None = None) -> int:
    args = arguments(__doc__ or "").parse_args(argv)
    join()
    torch.manual_seed(args.seed)
    transform = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.1307,), (0.3081,))])
    train_set = datasets.MNIST(args.data, train=True, transform=transform)
    test_set = datasets.MNIST(args.data, train=False, transform=transform)
    sampler: DistributedSampler[Any] | None = DistributedSampler(train_set, seed=args.seed) if WORLD_SIZE > 1 else None
    train_loader = DataLoader(train_set, args.batch_size // WORLD_SIZE, shuffle=sampler is None, sampler=sampler)
    test_loader = DataLoader(test_set, 1000)
    net = Net()
    model = DistributedDataParallel(net) if WORLD_SIZE > 1 else net
    optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=0.9, weight_decay=1e-4, nesterov=True)
    steps = math.ceil(len(train_set) / args.batch_size)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, args.lr, total_steps=args.epochs * steps, pct_start=0.25, cycle_momentum=False
    )
    journal = Journal(args.metrics_dir)
    for epoch in range(1, args.epochs + 1):
        if sampler:
            sampler.set_epoch(epoch)
        model.train()
        for number, (data, target) in enumerate(journal.watched(train_loader), start=1):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(data), target)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            scheduler.step()
            if number % args.log_interval == 0:
                print(f"Train Epoch: {epoch} [{number * args.batch_size}/{len(train_set)}]\tLoss: {loss.item():.6f}")
                journal.trained((epoch - 1) * steps + number, epoch, loss.item())
        if RANK == 0:
            mean, share = test(net, test_loader)
            print(f"\nTest set: Average loss: {mean:.4f}, Accuracy: {share:.2%}\n")
            journal.write(epoch * steps, epoch, test_loss=mean, test_accuracy=share)
    return 0


def test(model: nn.Module, loader: DataLoader[object]) -> tuple[float, float]:
    """Return the mean loss and the share of correct guesses. Runs on rank 0 alone, because the script knows no
    other rank."""
    model.eval()
    loss, correct, count = 0.0, 0, 0
    with torch.no_grad():
        for data, target in loader:
            output = model(data)
            loss += F.cross_entropy(output, target, reduction="sum").item()
            correct += int((output.argmax(1) == target).sum())
            count += len(target)
    return loss / count, correct / count


if __name__ == "__main__":
    main()
