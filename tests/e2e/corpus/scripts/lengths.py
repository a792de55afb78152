"""The entry script of a parallel step: a row for each file, with the number of its characters. A mini-batch with a file
named bad- fails at first; one with a file named worse- fails always."""

import argparse
import pathlib

tried: set[str] = set()
factor = 0


def init() -> None:
    global factor
    parser = argparse.ArgumentParser()
    parser.add_argument("--factor", type=int)
    factor = parser.parse_known_args()[0].factor


def run(mini_batch: list[str]) -> list[str]:
    files = [pathlib.Path(file) for file in mini_batch]
    for name in (file.name for file in files):
        if name.startswith("worse-") or (name.startswith("bad-") and name not in tried):
            tried.add(name)
            raise ValueError(f"{name} can't be read")
    return [f"{file.name} {len(file.read_text()) * factor}" for file in files]
