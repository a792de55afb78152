"""The names that infra/main.bicep gives, worked out here too: a hook asks for them before anything is made.

uniqueString is MurmurHash3 in two halves of 32 bits, written in base 32; a test holds it against Azure's own values.
"""

from __future__ import annotations

from tools import setting

ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"
MASK = 0xFFFFFFFF


def group() -> str:
    return f"rg-{setting('AZURE_ENV_NAME')}"


def vault() -> str:
    return f"kv-{token()}"


def workspace() -> str:
    return f"mlw-{token()}"


def storage_account() -> str:
    return f"st{token()}"


def storage_topic() -> str:
    return f"egst-storage-{token()}"


def global_names() -> dict[str, str]:
    """Type to name, of what has a name that nobody else in the world may have."""
    return {
        "Microsoft.Storage/storageAccounts": storage_account(),
        "Microsoft.KeyVault/vaults": vault(),
        "Microsoft.ContainerRegistry/registries": f"cr{token()}",
        "Microsoft.Web/sites": f"func-{token()}",
    }


def token() -> str:
    subscription = f"/subscriptions/{setting('AZURE_SUBSCRIPTION_ID')}"
    return unique_string(subscription, setting("AZURE_ENV_NAME"), setting("AZURE_LOCATION"))


def unique_string(*parts: str) -> str:
    number = _murmur("-".join(parts).encode())
    return "".join(ALPHABET[number >> shift & 31] for shift in range(59, -1, -5)) + ALPHABET[number << 1 & 31]


def _murmur(data: bytes) -> int:
    low = high = 0
    whole = len(data) - len(data) % 8
    for at in range(0, whole, 8):
        low ^= _block(data[at : at + 4], 0x239B961B, 15, 0xAB0E9789)
        low = (_rotated(low, 19) + high) * 5 + 0x561CCD1B & MASK
        high ^= _block(data[at + 4 : at + 8], 0xAB0E9789, 17, 0x239B961B)
        high = (_rotated(high, 13) + low) * 5 + 0x0BCAA747 & MASK
    low ^= _block(data[whole : whole + 4], 0x239B961B, 15, 0xAB0E9789) ^ len(data)
    high ^= _block(data[whole + 4 :], 0xAB0E9789, 17, 0x239B961B) ^ len(data)
    low, high = low + high & MASK, 2 * high + low & MASK
    low, high = _mixed(low), _mixed(high)
    return (2 * high + low & MASK) << 32 | low + high & MASK


def _block(four: bytes, first: int, turn: int, second: int) -> int:
    return _rotated(int.from_bytes(four, "little") * first & MASK, turn) * second & MASK


def _mixed(half: int) -> int:
    half = (half ^ half >> 16) * 0x85EBCA6B & MASK
    half = (half ^ half >> 13) * 0xC2B2AE35 & MASK
    return half ^ half >> 16


def _rotated(number: int, bits: int) -> int:
    return (number << bits | number >> 32 - bits) & MASK
