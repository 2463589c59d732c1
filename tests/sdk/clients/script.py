"""What the scripted provider answers, and how it hears: its part that is the same in every protocol."""

import array
import json
import math
import re
import sys
from dataclasses import dataclass, field

from websockets.exceptions import ConnectionClosed

RATE = 24_000
# One piece of an answer's sound, in milliseconds.
PIECE_MS = 100
# Peak of 16-bit samples from which somebody speaks (-30 dBFS), and how long it takes to believe it.
LOUD = 1_000
BEGINS_MS = 100
WINDOW_MS = 20


@dataclass
class Reply:
    """One answer: words with so many milliseconds of sound, a pace (milliseconds between two pieces), calls after them."""

    text: str = ""
    sound_ms: int = 300
    pace_ms: int = 10
    calls: list = field(default_factory=list)  # (name, arguments as text)
    loses_line: bool = False


class Script:
    """Decides by the words. What happens once only is remembered by the model's name."""

    def __init__(self):
        self.lost = set()

    def reply(self, model, words, outputs, tools):
        """`words`: the last thing the person said; `outputs`: results of calls that were answered since; `tools`: declared names."""
        if outputs:
            return Reply(f"The tool said: {' and '.join(outputs)}")
        if "lose the line" in words:
            if model in self.lost:
                return Reply("The line is back.")
            self.lost.add(model)
            return Reply(loses_line=True)
        if "long story" in words:
            return Reply("Once upon a time there was a very long story. " * 4, sound_ms=8_000, pace_ms=PIECE_MS)
        wanted = re.findall(r"use (\w+) (\{.*?\})", words)
        if wanted:
            missing = [name for name, _ in wanted if name not in tools]
            if missing:
                return Reply(f"I have no {' and no '.join(missing)}.")
            return Reply("Let me see." if "aloud" in words else "", calls=wanted)
        return Reply(f"You said: {words}")


def tone(milliseconds, rate=RATE):
    """A quiet tone, as little-endian bytes."""
    samples = array.array("h", (int(4_000 * math.sin(2 * math.pi * 440 * n / rate)) for n in range(milliseconds * rate // 1000)))
    if sys.byteorder == "big":
        samples.byteswap()
    return samples.tobytes()


PIECE = tone(PIECE_MS)


class Ear:
    """Voice activity by loudness. `hear` answers with `started` and `stopped` as they happen, each with its time in milliseconds."""

    def __init__(self, rate=RATE, silence_ms=500):
        self.rate, self.silence_ms = rate, silence_ms
        self.rest = b""
        self.now_ms = self.loud_ms = self.quiet_ms = 0
        self.speaks = False
        self.began_ms = 0

    def hear(self, data):
        self.rest += data
        size = self.rate * WINDOW_MS // 1000 * 2
        while len(self.rest) >= size:
            window, self.rest = array.array("h", self.rest[:size]), self.rest[size:]
            self.now_ms += WINDOW_MS
            loud = max(max(window), -min(window)) >= LOUD
            self.loud_ms = self.loud_ms + WINDOW_MS if loud else 0
            self.quiet_ms = 0 if loud else self.quiet_ms + WINDOW_MS
            if not self.speaks and self.loud_ms >= BEGINS_MS:
                self.speaks, self.began_ms = True, self.now_ms - self.loud_ms
                yield "started", self.began_ms
            elif self.speaks and self.quiet_ms >= self.silence_ms:
                self.speaks = False
                yield "stopped", self.now_ms - self.quiet_ms


def compact(value):
    return json.dumps(value, separators=(",", ":"))


def told(task):
    """A mistake of the script itself is seen; that somebody has left is none."""
    if not task.cancelled() and task.exception() and not isinstance(task.exception(), ConnectionClosed):
        print("upstream:", repr(task.exception()), file=sys.stderr)
