"""Ethernet frames with IPv4: their source and destination, and the answer of a firewall that refuses them."""

from __future__ import annotations

import socket
import struct

IPV4, TCP, RST, ACK, SYN, FIN = b"\x08\x00", 6, 0x04, 0x10, 0x02, 0x01


def way(frame: bytes) -> tuple[str, str] | None:
    """Return the source and destination of an IPv4 frame; None for any other frame."""
    if frame[12:14] != IPV4:
        return None
    return socket.inet_ntoa(frame[26:30]), socket.inet_ntoa(frame[30:34])


def refusal(frame: bytes) -> bytes | None:
    """Return the reset that a closed port sends for a TCP frame (RFC 9293, 3.10.7.1); None for a reset and for any
    other frame."""
    ip = frame[14:]
    length = (ip[0] & 15) * 4
    segment = ip[length : struct.unpack("!H", ip[2:4])[0]]
    if ip[9] != TCP or segment[13] & RST:
        return None
    source, target, sequence, acknowledged, offset, flags = struct.unpack("!HHIIBB", segment[:14])
    if flags & ACK:
        numbers, answer = (acknowledged, 0), RST
    else:
        data = len(segment) - (offset >> 4) * 4
        numbers, answer = (0, sequence + data + bool(flags & SYN) + bool(flags & FIN) & 0xFFFFFFFF), RST | ACK
    reset = struct.pack("!HHIIBBHHH", target, source, *numbers, 5 << 4, answer, 0, 0, 0)
    ends = ip[16:20] + ip[12:16]
    checked = _checksum(ends + struct.pack("!BBH", 0, TCP, len(reset)) + reset)
    reset = reset[:16] + struct.pack("!H", checked) + reset[18:]
    header = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(reset), 0, 0, 64, TCP, 0) + ends
    header = header[:10] + struct.pack("!H", _checksum(header)) + header[12:]
    return frame[6:12] + frame[:6] + IPV4 + header + reset


def _checksum(data: bytes) -> int:
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
