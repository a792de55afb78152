"""The peer of trainers/bert: huggingface/transformers, examples/pytorch/language-modeling/run_mlm_no_trainer.py.

Taken from that script: all texts are tokenised first, joined and cut into rows; transformers' collator masks each
batch; the model's own loss runs its head at every position; the loop calls `step()` of the optimiser and of the
scheduler; the perplexity is computed after each epoch. Taken from our trainer: tokenizer, held-out texts, sizes, AdamW,
its rates, clipping (as in run_mlm.py). `datasets` and `accelerate` are left out: lists and plain PyTorch do the same in
one process.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from itertools import chain
from typing import Any

import torch
from bert import text
from bert.model import SIZES, config
from torch import nn
from torch.utils.data import DataLoader

os.environ["HF_HUB_OFFLINE"] = "1"
from transformers import (
    AutoModelForMaskedLM,
    DataCollatorForLanguageModeling,
    PreTrainedTokenizerFast,
    get_cosine_schedule_with_warmup,
)

from benchmarks.peers.common import Journal, Meter, arguments

VAL_SHARE = 0.05


def main(argv: Sequence[str] | None = None) -> int:
    parser = arguments(__doc__ or "")
    parser.add_argument("--model", default="tiny")
    parser.add_argument("--length", type=int, default=128)
    args = parser.parse_args(argv)
    names = {f"{kind}_token": tokens[0] for kind, tokens in text.NAMES.items()}
    tokenizer = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_file=str(args.data / text.TOKENIZER), model_max_length=args.length, **names
    )
    held = text.Held(round(1 / VAL_SHARE))
    pieces = list(enumerate(text.pieces(text.text_files(args.data))))
    collate = DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.15)
    train_rows, val_rows = (
        grouped(tokenizer, [piece for number, piece in pieces if held.out(number) is out], args.length)
        for out in (False, True)
    )
    torch.manual_seed(args.seed)
    rows: Any = (train_rows, val_rows)  # lists, which torch accepts as data sets
    train_loader: DataLoader[Any] = DataLoader(rows[0], args.batch_size, shuffle=True, collate_fn=collate)
    val_loader: DataLoader[Any] = DataLoader(rows[1], args.batch_size, collate_fn=collate)
    pad = int(tokenizer.pad_token_id)
    size = config(SIZES[args.model], len(tokenizer), args.length, pad, 0.0)
    model = AutoModelForMaskedLM.from_config(size)  # type: ignore[no-untyped-call]  # transformers has no types for it
    optimizer = torch.optim.AdamW(groups(model), lr=args.lr, betas=(0.9, 0.98), eps=1e-6)
    steps = args.epochs * len(train_loader)
    scheduler = get_cosine_schedule_with_warmup(optimizer, round(0.1 * steps), steps)
    journal, step = Journal(args.metrics_dir), 0
    for epoch in range(1, args.epochs + 1):
        model.train()
        for batch in journal.watched(train_loader):
            loss = model(**batch).loss
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            step += 1
            if step % args.log_interval == 0:
                print(f"epoch {epoch} step {step}/{steps} loss {loss.item():.4f}")
                journal.trained(step, epoch, loss.item())
        val_loss = evaluate(model, val_loader)
        print(f"epoch {epoch}: perplexity: {math.exp(val_loss)}")
        journal.write(step, epoch, val_loss=val_loss, val_perplexity=math.exp(val_loss))
    return 0


def grouped(tokenizer: Any, pieces: list[str], length: int) -> list[dict[str, list[int]]]:
    """Do what tokenize_function and group_texts do: return the tokens of all texts in rows of `length`, without the
    last few."""
    tokenised = tokenizer(pieces, return_special_tokens_mask=True)
    joined = {key: list(chain(*tokenised[key])) for key in tokenised}
    whole = len(joined["input_ids"]) // length * length
    starts = range(0, whole, length)
    return [{key: values[start : start + length] for key, values in joined.items()} for start in starts]


def groups(model: nn.Module) -> list[dict[str, Any]]:
    """Return the parameter groups: biases and LayerNorm weights do not decay."""
    parts: tuple[list[nn.Parameter], list[nn.Parameter]] = ([], [])
    for name, weights in model.named_parameters():
        parts[any(kind in name for kind in ("bias", "LayerNorm.weight"))].append(weights)
    return [{"params": parts[0], "weight_decay": 0.01}, {"params": parts[1], "weight_decay": 0.0}]


def evaluate(model: nn.Module, loader: DataLoader[Any]) -> float:
    """Return the mean loss of the held-out rows."""
    model.eval()
    losses = Meter()
    with torch.no_grad():
        for batch in loader:
            losses.update(model(**batch).loss.item(), len(batch["input_ids"]))
    return losses.mean


if __name__ == "__main__":
    main()
