"""Checks the pixels of a picture, if Pillow is installed: on the uploading machine, and not in the app.

The trainers decode with Pillow, so a picture that Pillow refuses here can't be trained on. libjpeg silently repairs
some damage inside a JPEG, as grey or shifted blocks; pictures.py finds such damage if a marker reveals it.
"""

from __future__ import annotations

import io
import struct
import warnings
import zlib

# The errors that Pillow raises for broken files.
BROKEN = (
    ArithmeticError,
    AttributeError,
    LookupError,
    NotImplementedError,
    OSError,
    SyntaxError,
    TypeError,
    ValueError,
    struct.error,
    zlib.error,
)


def decoding_problem(content: bytes) -> str | None:
    """Return why the picture can't be decoded, '' if it can be decoded, or None without Pillow."""
    try:
        from PIL import Image
    except ImportError:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(io.BytesIO(content)) as image:
                image.load()
    except (*BROKEN, Image.DecompressionBombError) as error:
        return f"it can't be decoded: {str(error)[:200] or type(error).__name__}"
    return ""
