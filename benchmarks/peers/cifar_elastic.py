"""The peer of trainers/cifar_elastic: pytorch/examples, imagenet/main.py, with torchvision's CIFAR10.

Taken from that script: a PIL image and its transforms for each image, a loop that meters time, data, loss and two
accuracies at each step, a validation after each epoch. The transforms are the usual ones for CIFAR-10: shift by up to 4
pixels and mirror. torchvision's class accepts only the published files, so its few lines are repeated here. Taken from
our trainer: the network, SGD in one cycle.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from cifar_elastic.resnet import ResNet18
from PIL import Image
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms

from benchmarks.peers.common import Journal, Meter, accuracy, arguments

NORMALIZE = transforms.Normalize(mean=[0.4914, 0.4822, 0.4465], std=[0.2470, 0.2435, 0.2616])


class Cifar(Dataset[tuple[Tensor, int]]):
    """A copy of torchvision.datasets.CIFAR10."""

    def __init__(self, paths: list[Path], transform: Callable[[Any], Tensor]) -> None:
        batches = [pickle.loads(path.read_bytes(), encoding="bytes") for path in paths]
        self.data = np.vstack([batch[b"data"] for batch in batches]).reshape(-1, 3, 32, 32).transpose((0, 2, 3, 1))
        self.targets = [label for batch in batches for label in batch[b"labels"]]
        self.transform = transform

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return self.transform(Image.fromarray(self.data[index])), self.targets[index]


def main(argv: Sequence[str] | None = None) -> int:
    parser = arguments(__doc__ or "")
    parser.add_argument("--width", type=int, required=True)
    args = parser.parse_args(argv)
    augment = [transforms.RandomCrop(32, padding=4), transforms.RandomHorizontalFlip()]
    tail = [transforms.ToTensor(), NORMALIZE]
    train_set = Cifar(sorted(args.data.glob("data_batch_*")), transforms.Compose([*augment, *tail]))
    val_set = Cifar([args.data / "test_batch"], transforms.Compose(tail))
    torch.manual_seed(args.seed)
    model = ResNet18(10, args.width)
    train_loader, val_loader = DataLoader(train_set, args.batch_size, shuffle=True), DataLoader(val_set, 500)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=0.9, weight_decay=5e-4, nesterov=True)
    total = args.epochs * len(train_loader)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, args.lr, total_steps=total, pct_start=0.25, cycle_momentum=False
    )
    journal, step = Journal(args.metrics_dir), 0
    for epoch in range(1, args.epochs + 1):
        model.train()
        meters = {name: Meter() for name in ("Time", "Data", "Loss", "Acc@1", "Acc@5")}
        end = time.time()
        for images, target in journal.watched(train_loader):
            meters["Data"].update(time.time() - end)
            output = model(images)
            loss = criterion(output, target)
            acc1, acc5 = accuracy(output, target, topk=(1, 5))
            meters["Loss"].update(loss.item(), len(images))
            meters["Acc@1"].update(acc1.item(), len(images))
            meters["Acc@5"].update(acc5.item(), len(images))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            meters["Time"].update(time.time() - end)
            end = time.time()
            step += 1
            if step % args.log_interval == 0:
                print(f"Epoch: [{epoch}]", "\t".join(f"{name} {meter}" for name, meter in meters.items()))
                journal.trained(step, epoch, loss.item())
        share = validate(model, val_loader)
        print(f" * Acc@1 {100 * share:.3f}")
        journal.write(step, epoch, test_accuracy=share)
    return 0


def validate(model: nn.Module, loader: DataLoader[Any]) -> float:
    """Return the share of correct guesses."""
    model.eval()
    top1 = Meter()
    with torch.no_grad():
        for images, target in loader:
            top1.update(accuracy(model(images), target, topk=(1, 5))[0].item(), len(images))
    return top1.mean / 100


if __name__ == "__main__":
    main()
