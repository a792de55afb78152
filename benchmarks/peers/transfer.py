"""The peer of trainers/transfer: pytorch/vision, references/classification/train.py, presets.py and utils.py.

Taken from there: ImageFolder with the presets' transforms on each PIL image, a loop that reads `loss.item()` and two
accuracies at each step into a MetricLogger, an evaluation after each epoch. Taken from our trainer: torchvision's
network with new weights, SGD and its rates by step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
import torchvision
from torch import nn
from torch.utils.data import DataLoader
from torchvision.transforms import transforms as T

from benchmarks.peers.common import Journal, Meter, accuracy, arguments

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def main(argv: Sequence[str] | None = None) -> int:
    parser = arguments(__doc__ or "")
    parser.add_argument("--backbone", required=True)
    parser.add_argument("--image-size", type=int, required=True)
    args = parser.parse_args(argv)
    train_loader, val_loader = loaders(args.data, args.batch_size, args.image_size)
    classes = len(train_loader.dataset.classes)  # type: ignore[attr-defined]  # it is an ImageFolder
    torch.manual_seed(args.seed)
    model = torchvision.models.get_model(args.backbone, weights=None, num_classes=classes)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=0.9, weight_decay=1e-4, nesterov=True)
    steps = args.epochs * len(train_loader)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: rate(step, steps))
    journal, step = Journal(args.metrics_dir), 0
    for epoch in range(1, args.epochs + 1):
        model.train()
        meters = {name: Meter() for name in ("loss", "lr", "acc1", "acc2")}
        since = Meter()
        for image, target in journal.watched(train_loader):
            output = model(image)
            loss = criterion(output, target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            acc1, acc2 = accuracy(output, target, topk=(1, 2))
            values = loss.item(), optimizer.param_groups[0]["lr"], acc1.item(), acc2.item()
            for meter, value in zip(meters.values(), values, strict=True):
                meter.update(value, len(image))
            since.update(loss.item(), len(image))
            step += 1
            if step % args.log_interval == 0:
                print(f"Epoch: [{epoch}]", "  ".join(f"{name}: {meter}" for name, meter in meters.items()))
                journal.trained(step, epoch, since.mean)
                since = Meter()
        loss, share = evaluate(model, criterion, val_loader)
        print(f"Test: Acc@1 {100 * share:.3f}")
        journal.write(step, epoch, val_loss=loss, val_accuracy=share)
    return 0


def loaders(data: Any, batch_size: int, size: int) -> tuple[DataLoader[Any], DataLoader[Any]]:
    """Return loaders with ClassificationPresetTrain and ClassificationPresetEval of presets.py. Without workers,
    like our trainer on a CPU."""
    tail = [T.PILToTensor(), T.ConvertImageDtype(torch.float), T.Normalize(MEAN, STD)]
    augment = T.Compose([T.RandomResizedCrop(size), T.RandomHorizontalFlip(), *tail])
    plain = T.Compose([T.Resize(round(size * 256 / 224)), T.CenterCrop(size), *tail])
    train_set = torchvision.datasets.ImageFolder(data / "train", augment)
    val_set = torchvision.datasets.ImageFolder(data / "val", plain)
    return DataLoader(train_set, batch_size, shuffle=True), DataLoader(val_set, batch_size)


def rate(step: int, steps: int) -> float:
    """Return the share of the learning rate: a rise in a tenth of the steps, then half a cosine down to 0."""
    warm = max(1, steps // 10)
    return (step + 1) / warm if step < warm else (1 + math.cos(math.pi * (step - warm) / max(1, steps - warm))) / 2


def evaluate(model: nn.Module, criterion: nn.Module, loader: DataLoader[Any]) -> tuple[float, float]:
    """Return the mean loss and the share of correct guesses."""
    model.eval()
    losses, top1 = Meter(), Meter()
    with torch.inference_mode():
        for image, target in loader:
            output = model(image)
            losses.update(criterion(output, target).item(), len(image))
            top1.update(accuracy(output, target, topk=(1, 2))[0].item(), len(image))
    return losses.mean, top1.mean / 100


if __name__ == "__main__":
    main()
