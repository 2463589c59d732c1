"""The table of clients: real libraries against a gateway of its own, in front of a scripted provider and of aimock.

    run.py PROGRAM [--only CLIENT,...] [--cells CELL,...] [--write] [--keep] [--direct]

Starts everything in a folder that is gone afterwards, runs the clients two at a time, adds to what each says of itself what the provider saw, prints the table.
Exit status 1 when a cell is not as it has to be, or when the table is not the one in docs/clients.md; `--write` writes that instead.
`--direct` runs the clients at the scripted provider without a gateway: what fails there as well is the script's fault.
`--keep` leaves the folder, with what everybody said.
"""

import argparse
import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from table import CELLS, CLIENTS, document
from upstream import Upstream, tls

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
DOCUMENT = ROOT / "docs" / "clients.md"
AT_ONCE = 2
# Until one client has run all its cells, in seconds.
CLIENT_S = 240
# Until a program listens, in seconds.
START_S = 60
QUIRKS = "quirks"


class Folder:
    """Everything the run needs on the disk."""

    def __init__(self, keep):
        self.path = Path(tempfile.mkdtemp(prefix="voxgate-clients-"))
        self.keep = keep

    def __enter__(self):
        return self.path

    def __exit__(self, *_):
        if self.keep:
            print(f"kept: {self.path}")
        else:
            shutil.rmtree(self.path, ignore_errors=True)


def speech(folder):
    """A sentence as 24 kHz PCM, as a file."""
    subprocess.run(["flite", "-voice", "slt", "-t", "How are you today?", "-o", folder / "said.wav"], check=True)
    subprocess.run(["sox", folder / "said.wav", "-r", "24000", "-c", "1", "-t", "raw", "-e", "signed", "-b", "16", folder / "speech.raw", "pad", "0.2", "0.1"], check=True)
    return str(folder / "speech.raw")


def certificate(folder):
    """A certificate for this machine that is its own authority."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", folder / "key.pem", "-out", folder / "cert.pem", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"],
        check=True, capture_output=True)
    return str(folder / "cert.pem"), str(folder / "key.pem")


class Program:
    """A process with its output in a file, until it is closed."""

    def __init__(self, command, log, environment=None):
        self.log = log
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log.open("wb"), stderr=subprocess.STDOUT, env=environment, start_new_session=True)

    async def says(self, words):
        """The line that has these words."""
        ends = time.monotonic() + START_S
        while time.monotonic() < ends:
            text = self.log.read_text(errors="replace")
            for line in text.splitlines():
                if words in line:
                    return line
            if self.process.poll() is not None:
                break
            await asyncio.sleep(0.05)
        raise SystemExit(f"run.py: it did not say {words!r}:\n{text}")

    def close(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()


def clean():
    """The environment without what the caller has set for a gateway or for services of theirs."""
    ours = ("VOXGATE_", "OPENAI_", "GEMINI_", "GOOGLE_", "AZURE_OPENAI", "XAI_")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours) or name in ("VOXGATE_MODELS", "VOXGATE_CLIENT_PATIENCE")}


class Gateway:
    """The product in a fresh home."""

    def __init__(self, program, folder, rows, certificate):
        home = folder / "home"
        home.mkdir()
        listed = ",\n".join(f'  "{row}"' for row in rows)
        # Two rounds of conversations of all clients are open at once.
        text = f"[stt]\nworkers = 1\n[limits]\nsessions = 400\n[realtime]\napi_key = \"sk-upstream\"\nmodels = [\n{listed}\n]\n"
        (home / "config.toml").write_text(text)
        self.home, self.program = home, Program([program, "serve", "--port", "0"], folder / "gateway.log", {**clean(), "VOXGATE_HOME": str(home)})

    async def start(self):
        line = await self.program.says("listening on http://")
        self.http = line.split("listening on ")[1].split()[0].rstrip("/")
        self.https = None
        key = lambda name: (self.home / "keys" / name).read_text().strip()
        self.operator, self.client = key("operator"), key("clients/default")

    def ask(self, path, body):
        request = urllib.request.Request(self.http + path, json.dumps(body).encode(), {"authorization": f"Bearer {self.operator}", "content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def conversation(self, plan):
        """A new conversation's id, in plan mode if it has to be."""
        name = self.ask("/v1/sessions", {})["id"]
        if plan:
            self.ask(f"/api/sessions/{name}/plan_mode", {"enabled": True})
        return name


def model(client, cell):
    """The provider keeps what it sees by this name."""
    name, _, quirks = cell.partition("+")
    return f"{client.name}-{name}" + (f".{quirks}" if quirks else "")


def cells_of(client, wanted):
    """`turn`, `turn+quirks` ...: every cell, and those that depend on what the provider says once more with every quirk."""
    every = [cell for cell in CELLS] + ([f"{cell}+{QUIRKS}" for cell in CELLS] if client.speaks == "openai" else [])
    return [cell for cell in every if not wanted or cell in wanted]


def outputs_of(events):
    """Results of calls that the provider was told."""
    for event in events:
        item = event.get("item") or {}
        if item.get("type") == "function_call_output":
            yield item["output"]
        for answer in (event.get("toolResponse") or {}).get("functionResponses") or []:
            yield json.dumps(answer["response"])


def provider_misses(cell, connections):
    """What the provider should have seen and did not; empty when all is well."""
    events = [event for connection in connections for event in connection]
    outputs = list(outputs_of(events))
    sound = sum(event["bytes"] for event in events if event.get("type") == "sound")
    wants_output = {"hidden": "titles", "own": "the light is on now", "refused": "plan_mode_blocked"}.get(cell)
    if wants_output and [wants_output in output for output in outputs] != [True]:
        return f"the provider was told {outputs} instead of {wants_output!r} once"
    if cell == "turn" and sound < 32_000:
        return f"the provider heard {sound} bytes of sound"
    if cell == "reconnect":
        if len(connections) != 3:
            return f"the provider saw {len(connections)} connections instead of 3"
        for number in (1, 2):
            if "Good morning." not in json.dumps(connections[number]):
                return f"connection {number + 1} of the provider was not told what had been said"
    return ""


async def run_client(client, plan, folder, cells):
    """The client's lines, one for each cell; a cell it says nothing of has failed."""
    file = folder / f"{client.name}.plan.json"
    file.write_text(json.dumps(plan))
    environment = {**clean(), "OPENAI_AGENTS_DISABLE_TRACING": "1", "SSL_CERT_FILE": plan["certificate"], "NODE_EXTRA_CA_CERTS": plan["certificate"], "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable if client.script.endswith(".py") else "node", str(HERE / client.script), str(file)]
    errors = (folder / f"{client.name}.log").open("wb")
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE, stderr=errors, env=environment, start_new_session=True)
    lines, why = [], "it ended before this cell"
    try:
        async with asyncio.timeout(CLIENT_S):
            async for line in process.stdout:
                try:
                    lines.append(json.loads(line))
                except ValueError:
                    errors.write(line)
    except TimeoutError:
        why = f"it was not done within {CLIENT_S} s"
    if process.returncode is None:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        await process.wait()
    told = {line["cell"]: line for line in lines}
    return [told.get(cell, {"client": client.name, "version": "", "cell": cell, "ok": False, "why": why, "seconds": 0}) for cell in cells]


async def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--only", default="")
    parser.add_argument("--cells", default="")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--direct", action="store_true")
    arguments = parser.parse_args()
    clients = [c for c in CLIENTS if not arguments.only or c.name in arguments.only.split(",")]
    wanted = arguments.cells.split(",") if arguments.cells else []
    with Folder(arguments.keep) as folder:
        rows = await hold(arguments, folder, clients, wanted)
    return judge(arguments, rows, whole=len(clients) == len(CLIENTS) and not wanted and not arguments.direct)


async def hold(arguments, folder, clients, wanted):
    cert, key = certificate(folder)
    sound, upstream = speech(folder), Upstream()
    port = await upstream.start()
    secure = await upstream.start(tls=tls(cert, key)) if arguments.direct else None
    plan = {"certificate": cert, "speech": sound, "key": "sk-direct", "http": f"http://127.0.0.1:{port}", "https": f"https://127.0.0.1:{secure}"}
    gateway = None
    try:
        if not arguments.direct:
            rows = [f"{model(c, cell)} openai http://127.0.0.1:{port}/v1 {model(c, cell)}" for c in clients for cell in cells_of(c, wanted) if c.speaks == "openai"]
            gateway = Gateway(arguments.program, folder, rows, (cert, key))
            await gateway.start()
            plan |= {"key": gateway.client, "http": gateway.http, "https": gateway.https}
        plan["ws"] = plan["http"].replace("http", "ws", 1)
        places = asyncio.Semaphore(AT_ONCE)

        async def one(client):
            async with places:
                cells = cells_of(client, wanted)
                named = [{"cell": cell, "model": model(client, cell), "conversation": gateway.conversation(cell.startswith("refused")) if gateway else ""} for cell in cells]
                lines = await run_client(client, {**plan, "cells": named}, folder, cells)
                for line in lines:
                    if line["ok"] and gateway:
                        line["why"] = provider_misses(line["cell"].split("+")[0], upstream.seen.get(model(client, line["cell"]), []))
                        line["ok"] = not line["why"]
                    print(f"{'ok ' if line['ok'] else 'RED'} {line['client']:24} {line['cell']:18} {line['seconds']:5} s  {line['why']}", flush=True)
                return lines

        found = await asyncio.gather(*(one(client) for client in clients))
        return [line for lines in found for line in lines]
    finally:
        if gateway:
            gateway.program.close()
        if arguments.keep:
            (folder / "seen.json").write_text(json.dumps(upstream.seen, indent=1))


def judge(arguments, rows, whole):
    red = [row for row in rows if not row["ok"]]
    print(f"{len(rows) - len(red)} of {len(rows)} cells are as they have to be")
    if whole:
        text = document(rows)
        if arguments.write:
            DOCUMENT.write_text(text)
        elif not DOCUMENT.exists() or DOCUMENT.read_text() != text:
            print("docs/clients.md shows another table; `make clients` writes it anew")
            return 1
    return 1 if red else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
