"""BERT in its published sizes, the masked-language-model loss, and sharing among several processes."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from bert.text import Specials
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel

# Set before the import below reads it: nothing here uses a network.
os.environ["HF_HUB_OFFLINE"] = "1"
from transformers import BertConfig, BertForMaskedLM, PreTrainedTokenizerFast
from transformers.utils import logging

logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # one while saving, in the middle of the log's lines


@dataclass(frozen=True)
class Size:
    """Number of layers, width, and a suggested peak learning rate. Heads are 64 wide, inner layers four times the
    width."""

    layers: int
    hidden: int
    lr: float


# Layers and widths: base and large from Devlin et al. 2018, arXiv:1810.04805, the others from Turc et al. 2019,
# arXiv:1908.08962. Learning rates: tiny's was tested (README); base's and large's 1e-4 is from Devlin et al.; the
# others lie between, untested.
SIZES = {
    "tiny": Size(2, 128, 2e-3),
    "mini": Size(4, 256, 1e-3),
    "small": Size(4, 512, 5e-4),
    "medium": Size(8, 512, 3e-4),
    "base": Size(12, 768, 1e-4),
    "large": Size(24, 1024, 1e-4),
}


class MaskedLanguage(nn.Module):
    """BERT and its loss in one forward pass, because DDP and FSDP2 must see the whole computation.

    The head runs only at the masked positions. At all positions, the head would be most of a small model's work.
    """

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.net = BertForMaskedLM(config)

    def forward(self, inputs: Tensor, positions: Tensor, targets: Tensor) -> Tensor:
        """Map tokens (N, L), positions (N, K) and the correct tokens at these positions (N, K) to the sum of the N
        * K losses, ()."""
        hidden = self.net.bert(inputs).last_hidden_state  # (N, L, H)
        hidden = hidden.gather(1, positions[:, :, None].expand(-1, -1, hidden.shape[2]))  # (N, K, H)
        logits = self.net.cls(hidden).float()  # (N, K, V)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum")


def config(size: Size, vocabulary: int, length: int, pad: int, dropout: float) -> BertConfig:
    """Return the configuration for rows of `length` tokens. Longer rows are not supported, because their positions
    would never be trained."""
    return BertConfig(
        vocab_size=vocabulary,
        hidden_size=size.hidden,
        num_hidden_layers=size.layers,
        num_attention_heads=size.hidden // 64,
        intermediate_size=4 * size.hidden,
        max_position_embeddings=length,
        # The paper's 0.02 is for base. With this value at a width of 128, queries and keys are so small that attention
        # starts uniform, and the model uses no context for hundreds of steps.
        initializer_range=0.02 * (SIZES["base"].hidden / size.hidden) ** 0.5,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
        pad_token_id=pad,
        attn_implementation="sdpa",  # type: ignore[call-arg]
    )


def spread(model: MaskedLanguage, how: str, device: torch.device) -> nn.Module:
    """Give each process the whole model (ddp), or a share of each layer that is gathered when needed (fsdp2)."""
    if how == "ddp":
        # The only buffers are numbers of positions, which never change.
        return DistributedDataParallel(model, gradient_as_bucket_view=True, forward_sync_buffers=False)
    mesh = init_device_mesh(device.type, (torch.distributed.get_world_size(),))
    for layer in model.net.bert.encoder.layer:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


def exchanging(model: nn.Module, last: bool) -> AbstractContextManager[None]:
    """Set, for one part of an accumulated batch, whether processes exchange gradients: only in the backward pass of
    the last part."""
    if isinstance(model, FSDPModule):
        model.set_requires_gradient_sync(last)
        return nullcontext()
    assert isinstance(model, DistributedDataParallel)
    return nullcontext() if last else model.no_sync()


def optimizer(model: nn.Module, lr: float, weight_decay: float) -> torch.optim.AdamW:
    """Return AdamW (Loshchilov and Hutter 2017, arXiv:1711.05101). Biases and LayerNorm weights do not decay."""
    matrices = [weights for weights in model.parameters() if weights.ndim > 1]
    vectors = [weights for weights in model.parameters() if weights.ndim <= 1]
    groups = [{"params": matrices, "weight_decay": weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    # BERT's 0.9, but 0.98 (RoBERTa) instead of 0.999, which forgets the first steps sooner.
    return torch.optim.AdamW(groups, lr, betas=(0.9, 0.98), eps=1e-6)


def clip(model: nn.Module, limit: float) -> Tensor:
    """Scale the gradient down to a norm of `limit`, and return the previous norm, equal in every process."""
    norm = nn.utils.clip_grad_norm_(model.parameters(), limit)
    return norm.full_tensor() if isinstance(norm, DTensor) else norm


def whole(model: nn.Module) -> dict[str, Tensor]:
    """Return the weights of BertForMaskedLM, in rank 0's memory. Every process must call this function."""
    weights = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
    return {name.removeprefix("net."): value for name, value in weights.items() if isinstance(value, Tensor)}


def write(folder: Path, weights: dict[str, Tensor], config: BertConfig, tokenizer: str, specials: Specials) -> None:
    """Write config.json, model.safetensors, tokenizer.json and tokenizer_config.json for from_pretrained."""
    net = BertForMaskedLM(config)
    net.load_state_dict(weights)
    net.save_pretrained(folder)
    words = Tokenizer.from_str(tokenizer)
    names = {f"{kind}_token": words.id_to_token(number) for kind, number in asdict(specials).items()}
    length = config.max_position_embeddings
    PreTrainedTokenizerFast(tokenizer_object=words, model_max_length=length, **names).save_pretrained(folder)  # type: ignore[no-untyped-call]
