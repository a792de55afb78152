"""bert's data: text files to pieces, a tokenizer, packed rows, their order and their masks."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from bert import order, text
from files import DataError
from tokenizers import Tokenizer

SENTENCE = "Ein Zug fährt 猫 nach 東京 — it’s [MASK] o’clock.\n"


def tokens_of(folder: Path, tokenizer: Tokenizer, paths: list[Path], every: int) -> tuple[list[int], list[int]]:
    for _ in text.tokenise(paths, text.Held(every), tokenizer, folder):
        pass
    kind = text.number_type(tokenizer)
    train, held_out = (np.fromfile(folder / name, kind).tolist() for name in ("train", "held_out"))
    return train, held_out


@pytest.fixture(scope="module")
def drop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty documents in all the formats that a drop may contain."""
    folder = tmp_path_factory.mktemp("drop")
    (folder / "deep" / "er").mkdir(parents=True)
    for number in range(38):
        (folder / f"{number:02}.txt").write_text(f"Document {number}. " + SENTENCE * 20, encoding="utf-8")
    (folder / "deep" / "bom.txt").write_text(f"Document 38. {SENTENCE}", encoding="utf-8-sig")
    with gzip.open(folder / "deep" / "er" / "zipped.txt.GZ", "wt", encoding="utf-8") as file:
        file.write(f"Document 39. {SENTENCE}")
    for name in ("_SUCCESS", "job.yaml", "tokenizer.json", ".hidden", "deep/.DS_Store"):
        (folder / name).write_bytes(b"\xff\0 no text")
    return folder


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 16, 17, 1000])
def test_an_order_has_every_row_once(count: int) -> None:
    """The order is a permutation for any number of rows, and differs by seed; any part can be computed alone."""
    whole = order.shuffled(np.arange(count), count, order.key("order", 1, 1))
    assert sorted(whole) == list(range(count))
    assert [order.shuffled(np.arange(i, i + 1), count, order.key("order", 1, 1))[0] for i in range(count)] == [*whole]
    assert count < 16 or list(whole) != list(order.shuffled(np.arange(count), count, order.key("order", 1, 2)))


def test_a_place_in_a_vast_order_costs_nothing() -> None:
    """A batch of an epoch with a hundred billion rows needs no list of the rows, and contains no row twice."""
    count = 10**11
    rows = order.shuffled(np.arange(count - 500, count), count, 7)
    assert len(set(rows)) == 500
    assert 0 <= rows.min() < rows.max() < count
    assert 0.4 < rows.mean() / count < 0.6


def test_an_order_is_as_random_as_a_generators() -> None:
    """Positions and rows are uncorrelated, and so are neighbours: within four standard deviations of 1 / sqrt(N)."""
    rows = order.shuffled(np.arange(50_000), 50_000, 3).astype(float)
    for a, b in ((np.arange(50_000.0), rows), (rows[1:], rows[:-1])):
        assert abs(np.corrcoef(a, b)[0, 1]) < 4 / 50_000**0.5


@pytest.fixture(scope="module")
def masked() -> tuple[np.ndarray, order.Masked]:
    tokens = np.random.default_rng(0).integers(5, 8000, (500, 128))
    tokens[:, 0], tokens[:, -1] = 2, 3
    return tokens, order.mask(tokens, np.arange(500), 1, 8000, 4, [0, 2, 3])


def test_masks_are_those_of_the_paper(masked: tuple[np.ndarray, order.Masked]) -> None:
    """15 % of each row are predicted, never [CLS] or [SEP]. Of these, 80 % become [MASK], 10 % are random, 10 %
    stay."""
    tokens, m = masked
    assert m.positions.shape == m.targets.shape == (500, 19)  # 0.15 * 128 = 19.2
    assert (np.diff(m.positions) > 0).all()
    assert ((m.positions > 0) & (m.positions < 127)).all()
    assert (np.take_along_axis(tokens, m.positions, 1) == m.targets).all()
    shown = np.take_along_axis(m.inputs, m.positions, 1)
    assert (shown == 4).mean() == pytest.approx(0.8, abs=0.02)
    assert (shown == m.targets).mean() == pytest.approx(0.1, abs=0.02)
    others = np.ones(tokens.shape, dtype=bool)
    np.put_along_axis(others, m.positions, False, 1)
    assert (m.inputs == tokens)[others].all()
    assert np.bincount(m.positions.ravel())[1:].std() < 2.5 * (500 * 0.15) ** 0.5  # no place in a row is preferred


def test_a_mask_depends_on_the_row_alone(masked: tuple[np.ndarray, order.Masked]) -> None:
    """A row has the same masks in every batching; another seed gives other masks."""
    tokens, m = masked
    rows = np.array([321, 7])
    again, other = (order.mask(tokens[rows], rows, seed, 8000, 4, [0, 2, 3]) for seed in (1, 2))
    assert (again.inputs == m.inputs[rows]).all()
    assert (again.positions == m.positions[rows]).all()
    assert not (other.positions == m.positions[rows]).all()


def test_every_text_file_is_read(drop: Path) -> None:
    """Nested files, gzip files and files with a byte order mark are documents; markers and hidden files are not."""
    read = list(text.pieces(text.text_files(drop)))
    assert sorted(int(piece.split()[1][:-1]) for piece in read) == list(range(40))
    assert all(piece.startswith("Document") and piece.endswith(SENTENCE) for piece in read)


def test_a_long_file_is_cut_at_ends_of_lines(tmp_path: Path) -> None:
    """Pieces of a long file end with a line if possible, are at most twice PIECE long, and lose no text."""
    lines = "".join(f"{number} {SENTENCE}" for number in range(2000))
    spaced, unbroken = "word " * 20_000, "x" * 100_000
    (tmp_path / "long.txt").write_text(lines + spaced + unbroken, encoding="utf-8")
    read = list(text.pieces([tmp_path / "long.txt"]))
    assert "".join(read) == lines + spaced + unbroken
    assert max(map(len, read)) <= 2 * text.PIECE
    assert all(piece.endswith("\n") for piece in read[: len(lines) // text.PIECE])
    assert sum(piece.endswith("word ") for piece in read) >= len(spaced) // text.PIECE


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("latin.txt", "Zürich".encode("latin-1"), "latin.txt: expected text in UTF-8, found the byte 0xfc"),
        ("wide.txt", "Bern".encode("utf-16-be"), "wide.txt: expected text in UTF-8, found a zero byte"),
        (
            "cut.txt.gz",
            gzip.compress(b"some text " * 99, mtime=0)[:-9],
            "cut.txt.gz: expected a gzip file, found EOFError",
        ),
        ("no.gz", b"plain text", "no.gz: expected a gzip file, found BadGzipFile"),
    ],
)
def test_what_is_no_text_is_refused(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    """A file in another encoding or a broken file ends the reading; the message has its name and the found content."""
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        list(text.pieces(text.text_files(tmp_path)))


def test_a_drop_without_text_is_refused(tmp_path: Path) -> None:
    """Markers and empty files do not count as text."""
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / "empty.txt").touch()
    with pytest.raises(DataError, match=r"expected files with text in UTF-8.*found none"):
        text.text_files(tmp_path)


def test_a_tokenizer_knows_every_text(drop: Path) -> None:
    """The same text gives the same tokenizer, and any text, even an untrained one, survives encoding and decoding."""
    one, two = (text.train_tokenizer(text.text_files(drop), text.Held(20), 400) for _ in range(2))
    assert one.to_str() == two.to_str()
    assert one.get_vocab_size() <= 400
    strange = "Ωμέγα 🚂 [SEP] \t x"
    one.encode_special_tokens = True
    assert one.decode(one.encode(strange, add_special_tokens=False).ids) == strange
    one.encode_special_tokens = False
    assert one.encode("A [MASK]").ids[2:] == [text.Specials.of(one).mask, text.Specials.of(one).sep]  # no space before


def test_held_out_text_is_in_neither_tokenizer_nor_training(tmp_path: Path) -> None:
    """The first of every ten documents is held out: its words do not shape the tokenizer, and its tokens are not
    trained on."""
    (tmp_path / "drop").mkdir()
    for number in range(20):
        words = "quetzalcoatl " if number % 10 == 0 else "locomotive "
        (tmp_path / "drop" / f"{number:02}.txt").write_text(words * 50)
    paths = text.text_files(tmp_path / "drop")
    tokenizer = text.train_tokenizer(paths, text.Held(10), 500)
    assert tokenizer.token_to_id("Ġlocomotive") is not None
    assert not any("quet" in token for token in tokenizer.get_vocab())
    train, held_out = tokens_of(tmp_path, tokenizer, paths, 10)
    assert tokenizer.decode(train).count("locomotive") == 18 * 50
    assert tokenizer.decode(held_out).count("quetzalcoatl") == 2 * 50


def test_rows_are_the_text_without_gaps(drop: Path, tmp_path: Path) -> None:
    """[SEP] ends each document. Rows put [CLS] and [SEP] around slices that together are the whole text, except a
    rest."""
    paths = text.text_files(drop)
    tokenizer = text.train_tokenizer(paths, text.Held(20), 400)
    ids = text.Specials.of(tokenizer)
    train, held_out = tokens_of(tmp_path, tokenizer, paths, 20)
    assert (train.count(ids.sep), held_out.count(ids.sep)) == (38, 2)
    assert not {ids.cls, ids.mask, ids.pad} & {*train, *held_out}  # the [MASK] of the text is no mask
    rows = text.Rows(tmp_path / "train", np.uint16, 16, ids)
    got = rows[np.arange(len(rows))]
    assert got.shape == (len(train) // 14, 16)
    assert (set(got[:, 0]), set(got[:, -1])) == ({ids.cls}, {ids.sep})
    assert got[:, 1:-1].ravel().tolist() == train[: len(rows) * 14]
    assert (rows[np.array([5, 2])] == got[[5, 2]]).all()


def test_a_large_vocabulary_gets_larger_numbers(tmp_path: Path) -> None:
    """Tokens take two bytes up to 65,536 kinds, and four above."""
    words = {f"w{number}": number for number in range(70_000)}
    specials = {"[CLS]": 70_000, "[SEP]": 70_001, "[MASK]": 70_002, "[PAD]": 70_003, "[UNK]": 70_004}
    model = {"type": "WordLevel", "vocab": words | specials, "unk_token": "[UNK]"}
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps({"version": "1.0", "model": model, "pre_tokenizer": {"type": "Whitespace"}}))
    tokenizer = text.load_tokenizer(path)
    (tmp_path / "a.txt").write_text("w1 w2")
    (tmp_path / "b.txt").write_text("w65537 w69999 other")
    train, _ = tokens_of(tmp_path, tokenizer, [tmp_path / "a.txt", tmp_path / "b.txt"], 2)
    assert text.number_type(tokenizer) is np.uint32
    assert train == [65_537, 69_999, 70_004, 70_001]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{}", "expected a tokenizer.json, found"),
        (json.dumps({"model": {"type": "BPE", "vocab": {"<s>": 0, "</s>": 1}, "merges": []}}), "<mask>, found none"),
    ],
)
def test_a_tokenizer_that_cannot_mask_is_refused(tmp_path: Path, content: str, message: str) -> None:
    """A given tokenizer must be valid, and must have the tokens for masking, under BERT's or RoBERTa's names."""
    (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(DataError, match=message):
        text.load_tokenizer(tmp_path / "tokenizer.json")
