"""A server that answers List Blobs with any number of names: `python -m benchmarks.scaling.blob_pages`.

Azurite would need an hour and gigabytes for a million real blobs. The XML is the same as in Azure's answer to this
request.
"""

from __future__ import annotations

import asyncio
import os
import sys

from aiohttp import web

from emulators.process import serve_until_stopped

PAGE = 5000
BLOB = (
    "<Blob><Name>noop/big/part-{number:03}/{index:08}.bin</Name><Properties>"
    "<Creation-Time>Sun, 01 Nov 2026 10:00:00 GMT</Creation-Time><Last-Modified>Sun, 01 Nov 2026 10:00:00 GMT"
    "</Last-Modified><Etag>0x8DE{index:012X}</Etag><Content-Length>{index}</Content-Length><Content-Type>"
    "application/octet-stream</Content-Type><Content-Encoding /><Content-Language /><Content-CRC64 /><Content-MD5>"
    "1B2M2Y8AsgTpgAmY7PhCfg==</Content-MD5><Cache-Control /><Content-Disposition /><BlobType>BlockBlob</BlobType>"
    "<AccessTier>Hot</AccessTier><AccessTierInferred>true</AccessTierInferred><LeaseStatus>unlocked</LeaseStatus>"
    "<LeaseState>available</LeaseState><ServerEncrypted>true</ServerEncrypted></Properties><OrMetadata /></Blob>"
)


def page(begin: int, end: int, more: bool) -> str:
    blobs = "".join(BLOB.format(index=index, number=index // 10_000) for index in range(begin, end))
    return (
        '<?xml version="1.0" encoding="utf-8"?><EnumerationResults ServiceEndpoint="http://127.0.0.1/" '
        f'ContainerName="drops"><Prefix>noop/big/</Prefix><MaxResults>{PAGE}</MaxResults><Blobs>{blobs}</Blobs>'
        f"<NextMarker>{end if more else ''}</NextMarker></EnumerationResults>"
    )


async def listed(request: web.Request) -> web.Response:
    """Answer with one page of blob names. The container's name states the number of blobs: b1000."""
    count = int(request.match_info["container"][1:])
    begin = int(request.query.get("marker") or 0)
    end = min(begin + PAGE, count)
    return web.Response(body=page(begin, end, end < count).encode(), content_type="application/xml")


async def serve() -> None:
    app = web.Application()
    app.add_routes([web.get("/{account}/{container}", listed)])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    await serve_until_stopped(url=f"http://127.0.0.1:{runner.addresses[0][1]}", pid=os.getpid())
    await runner.cleanup()


if __name__ == "__main__":
    sys.exit(asyncio.run(serve()))
