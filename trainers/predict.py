"""Predict on new files with a trained model and its trainer's own preprocessing.

    $ python predict.py MODELS photo.jpg other.png
    $ python predict.py MODELS sentences.txt
    $ python predict.py MODELS --picture out.png *.jpg

MODELS is the output folder of a training (model.json and the files that it names), of any of the trainers here. mnist,
cifar_elastic, transfer and detection take images; bert takes text files with a sentence on each line, and guesses each
[MASK]. The output is one line of JSON for each file or [MASK]: `{"file", "guesses": [{"label", "score", "box"}]}`, the
likeliest guess first. A folder stands for the files in it; files that are not images, or not text, are named on
standard error and skipped. --picture also draws the images, with their class or their boxes.

Exit codes: 0 done, 2 a file or the model can't be used.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from PIL import Image, UnidentifiedImageError
from torch import Tensor, nn
from torchvision.transforms.functional import pil_to_tensor

sys.path.insert(0, str(Path(__file__).resolve().parent))

import predict_picture
import warm_start
from files import DataError

Guess = dict[str, Any]
Predict = Callable[
    [Path], Iterator[tuple[str, list[Guess]]]
]  # a file to (what was looked at, guesses), several of a text

TRAINERS = ("mnist", "cifar_elastic", "transfer", "detection", "bert")
MOST = 3  # guesses of one picture
MOST_BOXES = 20
SKIPPED = "skipped: "  # prefix of a message about an unreadable file of a folder
SURE = 0.3  # boxes with a lower score are left out


def predictor(folder: Path) -> Predict:
    """Return the prediction function of the model in this folder. Raises DataError if no trainer here made the
    model."""
    facts = warm_start.facts(folder)
    architecture = str(facts.get("architecture", ""))
    if "plan" in facts:
        return _detection(folder)
    if "backbone" in facts:
        return _transfer(folder, facts)
    if architecture == "mnist.train.Net":
        return _mnist(folder, facts)
    if architecture.startswith("cifar_elastic"):
        return _cifar(folder, facts)
    if _of_text(facts):
        return _bert(folder)
    found = architecture or "none"
    raise DataError(f"{folder}: expected a model of {', '.join(TRAINERS)}, found {found}; use its own code for it")


def _of_text(facts: dict[str, Any]) -> bool:
    return "BertForMaskedLM" in str(facts.get("architecture", ""))


def _mnist(folder: Path, facts: dict[str, Any]) -> Predict:
    from mnist import idx
    from mnist.train import Net, normalise

    net = Net()
    net.load_state_dict(warm_start.weights(folder))
    scale = facts["normalisation"]["mean"], facts["normalisation"]["std"]

    def guess(file: Path) -> Iterator[tuple[str, list[Guess]]]:
        with _image(file) as image:
            pixels = pil_to_tensor(image.convert("L").resize((idx.SIDE, idx.SIDE)))
        if pixels[:, [0, -1], :].float().mean() > 127:  # digits are bright on dark; paper is dark on bright
            pixels = 255 - pixels
        yield str(file), _classes(net.eval()(normalise(pixels[None], *scale)), facts["classes"])

    return guess


def _cifar(folder: Path, facts: dict[str, Any]) -> Predict:
    from cifar_elastic.pixels import Normalised
    from cifar_elastic.resnet import ResNet18

    # Not the exported program, because loading it runs code that its author chose.
    normalised = Normalised(torch.zeros(3), torch.ones(3))
    net = nn.Sequential(normalised, ResNet18(len(facts["classes"]), facts["training"]["width"]))
    net.load_state_dict(warm_start.weights(folder))
    net.eval()
    side = facts["input"]["shape"][-1]

    def guess(file: Path) -> Iterator[tuple[str, list[Guess]]]:
        with _image(file) as image:
            pixels = pil_to_tensor(image.convert("RGB").resize((side, side)))
        yield str(file), _classes(net(pixels[None]), facts["classes"])

    return guess


def _transfer(folder: Path, facts: dict[str, Any]) -> Predict:
    from transfer import backbone
    from transfer.images import View, decode

    view = View.of(facts)
    net = backbone.build(facts["backbone"], len(facts["classes"]), view.size)
    net.load_state_dict(warm_start.weights(folder))
    net.eval()

    def guess(file: Path) -> Iterator[tuple[str, list[Guess]]]:
        with _image(file):
            pixels = view.crop(decode(file, view.side))
        yield str(file), _classes(net(view.normalise(pixels[None])), facts["classes"])

    return guess


def _detection(folder: Path) -> Predict:
    from detection import model

    net, facts = model.load(folder)
    names = {entry["label"]: entry["name"] for entry in facts["classes"]}

    def guess(file: Path) -> Iterator[tuple[str, list[Guess]]]:
        with _image(file) as image:
            pixels = pil_to_tensor(image.convert("RGB")) / 255
        found = net([pixels])[0]
        rows = zip(found["labels"].tolist(), found["scores"].tolist(), found["boxes"].tolist(), strict=True)
        things = [(names[label], score, box) for label, score, box in rows if score >= SURE and label in names]
        things.sort(key=lambda thing: -thing[1])  # label 0, the background, has no name
        yield (
            str(file),
            [
                {"label": name, "score": score, "box": [round(edge, 1) for edge in box]}
                for name, score, box in things[:MOST_BOXES]
            ],
        )

    return guess


def _bert(folder: Path) -> Predict:
    from transformers import BertForMaskedLM, PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast.from_pretrained(str(folder))
    net = BertForMaskedLM.from_pretrained(str(folder)).eval()  # type: ignore[no-untyped-call]

    def guess(file: Path) -> Iterator[tuple[str, list[Guess]]]:
        for line in _text(file).splitlines():
            if not line.strip():
                continue
            read = tokenizer(line, return_tensors="pt", truncation=True)["input_ids"]
            gaps = (read[0] == tokenizer.mask_token_id).nonzero().flatten()
            if not len(gaps):
                most = tokenizer.model_max_length
                raise DataError(
                    f"{file}: expected {tokenizer.mask_token} in the first {most} tokens of {line[:60]!r}, found none"
                )
            for shares in net(read).logits[0, gaps].softmax(1):  # one row for each [MASK] of the line
                best = shares.topk(MOST)
                guesses = zip(best.indices.tolist(), best.values.tolist(), strict=True)
                yield line, [{"label": tokenizer.decode([token]), "score": share} for token, share in guesses]

    return guess


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{file}: expected a text in UTF-8, as this model completes sentences") from error


def _image(file: Path) -> Image.Image:
    try:
        image = Image.open(file)
        image.load()
    except UnidentifiedImageError as error:
        raise DataError(f"{file}: expected an image") from error
    except FileNotFoundError as error:
        raise DataError(f"{file}: there is no such file") from error
    except (OSError, Image.DecompressionBombError) as error:
        raise DataError(f"{file}: expected an image: {error}") from error
    return image


def _classes(logits: Tensor, classes: Sequence[str]) -> list[Guess]:
    best = logits.float().softmax(1)[0].topk(min(MOST, len(classes)))
    pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
    return [{"label": str(classes[index]), "score": share} for index, share in pairs]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path, help="the output folder of a training")
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="images, or texts for bert, or folders")
    parser.add_argument("--picture", type=Path, metavar="PNG", help="draw the images with their predictions")
    args = parser.parse_args(argv)
    try:
        run(args.models, args.files, args.picture)
    except (DataError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def run(models: Path, files: Sequence[Path], picture: Path | None) -> None:
    """Print one line for each file or each [MASK], and draw the images if a picture is wanted."""
    if picture:
        predict_picture.check(picture)
    guess = predictor(models)
    if picture and _of_text(warm_start.facts(models)):
        raise DataError(f"{picture}: this model completes sentences, so there is no picture to draw")
    rows: list[predict_picture.Row] = []
    with torch.inference_mode():
        for file, may_skip in _each(files):
            try:
                for what, guesses in guess(file):
                    rows.append((what, guesses))
                    print(json.dumps({"file": what, "guesses": guesses}), flush=True)
            except DataError as error:
                if not may_skip:
                    raise
                print(f"{SKIPPED}{error}", file=sys.stderr)
    if not rows:
        raise DataError(f"{', '.join(map(str, files))}: no file in it can be read by this model")
    if picture:
        predict_picture.draw(rows, picture)


def _each(paths: Sequence[Path]) -> Iterator[tuple[Path, bool]]:
    """Yield the files of these paths, and whether a file may be skipped: only files of a folder may."""
    for path in paths:
        if path.is_dir():
            for file in (file for file in sorted(path.iterdir()) if file.name[:1] != "."):
                if file.is_dir():
                    print(f"{SKIPPED}{file}: a subfolder; name it to predict its files", file=sys.stderr)
                else:
                    yield file, True
        else:
            yield path, False


if __name__ == "__main__":
    sys.exit(main())
