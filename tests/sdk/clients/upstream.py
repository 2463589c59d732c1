"""A provider of realtime speech whose answers are a script: OpenAI Realtime and Gemini Live on one port.

    upstream.py [--port 9140] [--certificate CERT.pem --key KEY.pem]

It answers what it is told (`script.py`): "use NAME {json}" calls a tool that was declared, "tell a long story" speaks for eight seconds,
"lose the line" breaks the connection, once; everything else it says back. Sound it hears by loudness. The model's name says which habits of real servers it has
(`openai_side.py`). `GET /seen?model=NAME` gives everything that was said to that model, a list for each connection; sound is counted there, not kept.
"""

import argparse
import asyncio
import json
import re
import ssl
from http import HTTPStatus
from urllib.parse import parse_qs, urlsplit

from gemini_side import Live
from openai_side import Realtime
from script import Script
from websockets.asyncio.server import serve
from websockets.exceptions import ConnectionClosed

GEMINI = re.compile(r"/ws/google\.ai\.generativelanguage\.v1\w*\.GenerativeService\.BidiGenerateContent")
OPENAI = ("/v1/realtime", "/realtime", "/openai/v1/realtime")


class Upstream:
    """The server with its memory of who said what."""

    def __init__(self):
        self.script = Script()
        self.seen = {}  # model -> connections -> events
        self.server = None

    async def start(self, port=0, tls=None):
        self.server = await serve(self.hold, "127.0.0.1", port, process_request=self.request, ssl=tls, max_size=32 * 2**20, compression=None, select_subprotocol=self.subprotocol)
        return self.server.sockets[0].getsockname()[1]

    async def stop(self):
        self.server.close()
        await self.server.wait_closed()

    @staticmethod
    def subprotocol(connection, offered):
        return "realtime" if "realtime" in offered else None

    def request(self, connection, request):
        """Everything that is no socket: what was seen; and who comes without a key."""
        address = urlsplit(request.path)
        query = parse_qs(address.query)
        if address.path == "/seen":
            return connection.respond(HTTPStatus.OK, json.dumps(self.seen.get(query.get("model", [""])[0], [])))
        is_gemini = GEMINI.fullmatch(re.sub("/+", "/", address.path))
        if not is_gemini and address.path not in OPENAI:
            return connection.respond(HTTPStatus.NOT_FOUND, "")
        has_key = "authorization" in request.headers or "x-goog-api-key" in request.headers or "key" in query or "openai-insecure-api-key" in request.headers.get("sec-websocket-protocol", "")
        return None if has_key else connection.respond(HTTPStatus.UNAUTHORIZED, "")

    def noting(self, model):
        """Where a connection's events are kept."""
        events = []
        self.seen.setdefault(model, []).append(events)

        def note(event):
            sound = self.sound_of(event)
            last = events[-1] if events else {}
            if sound is None:
                events.append(event)
            elif last.get("type") == "sound":
                last["bytes"] += sound
            else:
                events.append({"type": "sound", "bytes": sound})

        return note

    @staticmethod
    def sound_of(event):
        """Bytes of sound in an event that holds nothing else."""
        if event.get("type") == "input_audio_buffer.append":
            return len(event["audio"]) * 3 // 4
        audio = (event.get("realtimeInput") or event.get("realtime_input") or {}).get("audio")
        return len(audio["data"]) * 3 // 4 if audio else None

    async def hold(self, socket):
        address = urlsplit(socket.request.path)
        try:
            if GEMINI.fullmatch(re.sub("/+", "/", address.path)):
                await Live(socket, self.script, self.noting).run()
            else:
                model = parse_qs(address.query).get("model", ["plain"])[0]
                await Realtime(socket, model, self.script, self.noting(model)).run()
        except ConnectionClosed:
            pass


def tls(certificate, key):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


async def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=9140)
    parser.add_argument("--certificate")
    parser.add_argument("--key")
    arguments = parser.parse_args()
    upstream = Upstream()
    port = await upstream.start(arguments.port, tls(arguments.certificate, arguments.key) if arguments.certificate else None)
    print(f"listening on {port}", flush=True)
    await asyncio.Future()


if __name__ == "__main__":
    asyncio.run(main())
