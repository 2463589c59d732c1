"""What the Python clients have in common: the plan they are given, a microphone, a tool of their own, and one line of JSON for every cell.

    CLIENT.py PLAN.json [CELL]...

A plan says where the server is and which cells to run: `http`, `ws`, `https` (roots without a path), `certificate` (of `https`), `key`,
`speech` (a file of 24 kHz mono PCM), `cells`: `cell`, `model` and `conversation` (empty: none is named) of each.
"""

import asyncio
import importlib.metadata
import json
import os
import sys
import time
import traceback

RATE = 24_000
CHUNK_MS = 40
# Longest wait for anything on a busy machine. Nothing is timed by it.
PATIENCE = float(os.environ.get("VOXGATE_CLIENT_PATIENCE", "40"))

# What the scripted provider is told (`script.py`).
HIDDEN = "use notes__list {} aloud"
OWN = 'use set_light {"on": true}'
STORY = "tell a long story"
LOSE = "lose the line"
TOOL = {
    "type": "function", "name": "set_light", "description": "Switches the light.",
    "parameters": {"type": "object", "properties": {"on": {"type": "boolean"}}, "required": ["on"], "additionalProperties": False},
}
RESULT = "the light is on now"


class Cell:
    """One cell: where to, as what, and what was seen of the client's own tool."""

    def __init__(self, plan, row):
        self.plan, self.name, self.model, self.conversation, self.key = plan, row["cell"], row["model"], row["conversation"], plan["key"]
        self.http, self.ws, self.https = plan.get("http"), plan.get("ws"), plan.get("https")
        self.runs = []

    @property
    def query(self):
        return {"conversation": self.conversation} if self.conversation else {}

    @property
    def address(self):
        """Of the socket, with everything."""
        named = f"&conversation={self.conversation}" if self.conversation else ""
        return f"{self.ws}/v1/realtime?model={self.model}{named}"

    def light(self, on):
        """The client's tool."""
        self.runs.append(on)
        return RESULT

    async def microphone(self):
        """Speech in real time, then silence for as long as it is asked for."""
        with open(self.plan["speech"], "rb") as file:
            data = file.read()
        size, began, n = RATE * CHUNK_MS // 1000 * 2, time.monotonic(), 0
        while True:
            chunk = data[n * size : (n + 1) * size]
            yield chunk.ljust(size, b"\0")
            n += 1
            await asyncio.sleep(max(0, began + n * CHUNK_MS / 1000 - time.monotonic()))


class Wrong(Exception):
    """A cell's expectation did not hold."""


def check(holds, why):
    if not holds:
        raise Wrong(why)


async def until(holds, what, every=0.02):
    """Waits for a condition; its value."""
    ends = time.monotonic() + PATIENCE * 0.8
    while not (value := holds()):
        check(time.monotonic() < ends, f"not in time: {what}")
        await asyncio.sleep(every)
    return value


def calls_seen(events):
    """Types of the events, as they came over the wire, from which a client could know that a function was called."""
    of_calls = ("function_call", "notes__list", "call_id")
    return [e.get("type") for e in events if e.get("item", {}).get("role") != "user" and e.get("type") != "session.updated" and any(word in json.dumps(e) for word in of_calls)]


async def one(run, cell):
    try:
        await asyncio.wait_for(run(cell), PATIENCE)
        return ""
    except asyncio.TimeoutError:
        return f"not done within {PATIENCE:g} s"
    except Wrong as wrong:
        return str(wrong)
    except Exception as error:
        traceback.print_exc()
        return f"{type(error).__name__}: {error}"


def main(client, package, cells):
    """Runs the plan's cells. `cells`: name -> coroutine function that takes a Cell."""
    with open(sys.argv[1]) as file:
        plan = json.load(file)
    version = importlib.metadata.version(package)

    async def all_of_them():
        for row in plan["cells"]:
            if sys.argv[2:] and row["cell"] not in sys.argv[2:]:
                continue
            began = time.monotonic()
            why = await one(cells[row["cell"].split("+")[0]], Cell(plan, row))
            print(json.dumps({"client": client, "version": version, "cell": row["cell"], "model": row["model"], "ok": not why, "why": why, "seconds": round(time.monotonic() - began, 1)}), flush=True)

    asyncio.run(all_of_them())
    # Some of these libraries leave threads behind that would not end.
    sys.stdout.flush()
    os._exit(0)
