"""Blob listings as they arrive over the wire, cut into any pieces."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from benchmarks.scaling.blob_pages import page
from shared.adapters.storage.listing import _ListedPage

ODD = (
    '<?xml version="1.0" encoding="utf-8"?><EnumerationResults><Blobs>'
    '<Blob><Name Encoded="true">a%EF%BF%BE/ü</Name><Properties><Last-Modified>Sun, 01 Nov 2026 10:00:00 GMT'
    "</Last-Modified><Etag>&quot;0x1&quot;</Etag><Content-Length>3</Content-Length><Content-MD5 /></Properties>"
    "<Metadata><hdi_isfolder>true</hdi_isfolder><empty /></Metadata></Blob></Blobs><NextMarker>m</NextMarker>"
    "</EnumerationResults>"
).encode()


@given(st.lists(st.integers(0, len(ODD)), max_size=6))
def test_pieces_make_no_difference(cuts: list[int]) -> None:
    """Wherever the answer is cut, the parsed blobs are the same, with decoded names, bare etags and metadata."""
    answer, edges = _ListedPage(), [0, *sorted(cuts), len(ODD)]
    pieces = [ODD[begin:end] for begin, end in itertools.pairwise(edges)]
    (blob,) = [blob for piece in pieces for blob in answer.read(piece)]
    assert (blob.name, blob.etag, blob.size, blob.md5) == ("a\ufffe/ü", "0x1", 3, "")
    assert blob.metadata == {"hdi_isfolder": "true", "empty": ""}
    assert answer.marker == "m"


def test_the_last_page_has_no_marker() -> None:
    """A page yields all its blobs with MD5 in hexadecimal, and '' as the marker of the last page."""
    answer = _ListedPage()
    blobs = list(answer.read(page(0, 3, more=False).encode()))
    assert [blob.size for blob in blobs] == [0, 1, 2]
    assert blobs[0].md5 == "d41d8cd98f00b204e9800998ecf8427e"
    assert blobs[0].last_modified is not None
    assert answer.marker == ""
