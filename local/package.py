"""`python3 trainyard.py package`: the files that Azure runs, as a folder for azd and as a zip.

.funcignore selects the files. Equal files give an equal zip (sorted, without times), so its hash shows whether anything
changed. With --image and --gpu-image, these images are the environments of the training nodes, and Azure ML builds
none.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml
from pathspec import GitIgnoreSpec

from local import page_bundle

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / ".trainyard" / "package"
ENVIRONMENT, GPU_ENVIRONMENT = Path("trainers", "environment.yaml"), Path("trainers", "environment-gpu.yaml")
EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip can hold
MODE = 0o644 << 16


@dataclass(frozen=True)
class Package:
    folder: Path
    archive: Path
    files: int
    unpacked_bytes: int
    zipped_bytes: int


def deployed_files(root: Path = ROOT) -> Iterator[Path]:
    """Yield the files that .funcignore lets through, relative to the root, by name."""
    rules = GitIgnoreSpec.from_lines((root / ".funcignore").read_text("utf-8").splitlines())
    tops = [top for top in sorted(root.iterdir()) if not rules.match_file(f"{top.name}/" if top.is_dir() else top.name)]
    files = (file for top in tops for file in (sorted(top.rglob("*")) if top.is_dir() else [top]) if file.is_file())
    yield from (path for path in (file.relative_to(root) for file in files) if not rules.match_file(path.as_posix()))


def build(output: Path = OUTPUT, image: str = "", gpu_image: str = "", root: Path = ROOT) -> Package:
    """Write output/app and output/trainyard.zip from scratch."""
    page_bundle.check(root / "page")
    folder, archive = output / "app", output / "trainyard.zip"
    shutil.rmtree(folder, ignore_errors=True)
    for file in deployed_files(root):
        target = folder / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / file, target)
    for environment, own in ((ENVIRONMENT, image), (GPU_ENVIRONMENT, gpu_image)):
        if own:
            use_image(folder / environment, own)
    names = sorted(file for file in folder.rglob("*") if file.is_file())
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as out:
        for file in names:
            entry = zipfile.ZipInfo(file.relative_to(folder).as_posix(), EPOCH)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, MODE
            out.writestr(entry, file.read_bytes())
    size = sum(file.stat().st_size for file in names)
    return Package(folder, archive, len(names), size, archive.stat().st_size)


def use_image(file: Path, image: str) -> None:
    """Make an environment of exactly this image: without a conda file, Azure ML adds nothing to the image."""
    environment = yaml.safe_load(file.read_text("utf-8"))
    environment.pop("conda_file", None)
    environment["image"] = image
    file.write_text(yaml.safe_dump(environment, sort_keys=False), "utf-8")


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="trainyard.py package", description=__doc__)
    parser.add_argument(
        "--output", type=Path, default=OUTPUT, help="the folder to write to; default .trainyard/package"
    )
    parser.add_argument("--image", default="", help="the training image, as registry.azurecr.io/name:tag")
    parser.add_argument("--gpu-image", default="", help="the training image for nodes with GPUs")
    options = parser.parse_args(argv)
    package = build(options.output, options.image, options.gpu_image)
    sys.stdout.write(
        f"{package.folder}\n{package.archive}\n"
        f"{package.files} files, {package.unpacked_bytes / 1000:.0f} kB, zipped {package.zipped_bytes / 1000:.0f} kB\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
