"""Holds a spoken conversation with a gateway through the stock `openai` client, in real time, and writes down what happened.

    talk_client.py --url http://127.0.0.1:8710/v1 --key KEY --wav question.wav --json report.json
    talk_client.py --url ... --key ... --steps steps.json --json report.json

The microphone never stops: it sends silence while nobody speaks. A steps file is a list; each step says one thing and waits for the answer
to have been heard before the next begins:

    [{"wav": "1.wav", "wait_for": {"type": "response.done", "contains": "buy milk"}, "tries": 2, "timeout": 60},
     {"text": "What can I say?"},
     {"wav": "stop.wav", "during": true}]

wav        a file beside the steps file           text       a typed line instead (an item and response.create)
wait_for   one condition or a list (any of them): the type of an event, and words its text has (contains) or a pattern it fits (matches).
           Text is what was said for response.done, and the transcript for conversation.item.input_audio_transcription.completed
tries      how often it is said at most when an answer came and was another (default 1)
timeout    seconds for one try (default 60)
during     say it while the answer before it still sounds: the step before does not wait for its playback
pause      seconds of silence before it (default 0.4)

Exit 0: every step got what it waited for, no `error` event came and nothing was out of order. 1: something of that failed. 2: wrong arguments.
"""

import argparse
import asyncio
import base64
import json
import re
import sys
import time
from pathlib import Path

from openai import AsyncOpenAI
from websockets.exceptions import ConnectionClosed

from order import Order
from player import Player
from sound import RATE, pcm, read_wav, write_wav

SETTLE = 1.5  # seconds without anything new after which an answer counts as over
HEARD = "conversation.item.input_audio_transcription.completed"
NOT_HEARD = "conversation.item.input_audio_transcription.failed"


class Microphone:
    """Sends sound at real speed, silence while there is none."""

    def __init__(self, connection, chunk_ms):
        self.connection = connection
        self.chunk = RATE * chunk_ms // 1000 * 2
        self.period = chunk_ms / 1000
        self.waiting = b""
        self.sent_ms = 0
        self.late_ms = 0.0
        self.spoken = asyncio.Event()
        self.spoken.set()

    def say(self, data):
        self.waiting += data
        self.spoken.clear()

    async def run(self):
        began = time.monotonic()
        sent = 0
        while True:
            piece, self.waiting = self.waiting[: self.chunk], self.waiting[self.chunk :]
            if not self.waiting:
                self.spoken.set()
            audio = base64.b64encode(piece.ljust(self.chunk, b"\0")).decode()
            await self.connection.input_audio_buffer.append(audio=audio)
            sent += 1
            self.sent_ms = round(sent * self.period * 1000)
            wait = began + sent * self.period - time.monotonic()
            self.late_ms = max(self.late_ms, -wait * 1000)
            if wait > 0:
                await asyncio.sleep(wait)


class Talk:
    """One conversation: what arrives is counted, played and written down."""

    def __init__(self, connection, options):
        self.connection = connection
        self.options = options
        self.player = Player()
        self.order = Order()
        self.began = time.monotonic()
        self.counts = {}
        self.errors = []
        self.heard = []
        self.responses = {}
        self.session = None
        self.closed = None
        self.last_news = self.began
        self.log = []  # (type, text) of what a step may wait for
        self.news = asyncio.Event()
        self.speaking = False  # the server hears somebody
        self.truncated = []
        self.first_audio = {}

    def now(self):
        return time.monotonic()

    def at(self):
        return round(self.now() - self.began, 3)

    async def listen(self):
        try:
            async for event in self.connection:
                await self.take(event)
        except ConnectionClosed as closed:
            frame = closed.rcvd
            self.closed = {"code": frame and frame.code, "reason": frame and frame.reason}
        if self.closed is None:
            self.closed = {"code": 1000, "reason": ""}
        self.news.set()

    async def take(self, event):
        kind = event.type
        self.counts[kind] = self.counts.get(kind, 0) + 1
        self.order.see(event)
        if self.options.events:
            self.options.events.write(json.dumps({"at": self.at(), **shorten(event.to_dict())}) + "\n")
        handler = getattr(self, "on_" + kind.replace(".", "_"), None)
        if handler:
            await handler(event)
        if kind != "rate_limits.updated":
            self.last_news = self.now()
        self.news.set()

    async def on_session_created(self, event):
        self.session = event.session.to_dict()

    async def on_session_updated(self, event):
        self.session = event.session.to_dict()

    async def on_error(self, event):
        self.errors.append(event.error.to_dict())

    async def on_input_audio_buffer_speech_started(self, event):
        self.speaking = True
        cut = self.player.cut(self.now())
        if not cut:
            return
        played, ms = cut
        self.truncated.append({"item": played.item, "audio_end_ms": ms, "at": self.at()})
        await self.connection.conversation.item.truncate(item_id=played.item, content_index=0, audio_end_ms=ms)

    async def on_input_audio_buffer_speech_stopped(self, event):
        self.speaking = False

    async def on_conversation_item_input_audio_transcription_completed(self, event):
        self.heard.append({"item": event.item_id, "text": event.transcript, "at": self.at()})
        self.log.append((HEARD, event.transcript))

    async def on_conversation_item_input_audio_transcription_failed(self, event):
        self.heard.append({"item": event.item_id, "text": None, "at": self.at()})
        self.log.append((NOT_HEARD, event.error.message or ""))

    async def on_response_created(self, event):
        self.responses[event.response.id] = {"id": event.response.id, "created_at": self.at(), "status": "in_progress", "text": ""}

    async def on_response_output_audio_delta(self, event):
        self.first_audio.setdefault(event.response_id, self.at())
        self.player.add(self.now(), event.response_id, event.item_id, base64.b64decode(event.delta))

    async def on_response_output_audio_transcript_delta(self, event):
        self.responses[event.response_id]["text"] += event.delta

    async def on_response_output_text_delta(self, event):
        self.responses[event.response_id]["text"] += event.delta

    async def on_response_done(self, event):
        response = self.responses.setdefault(event.response.id, {"id": event.response.id, "text": ""})
        details = event.response.status_details
        response |= {"status": event.response.status, "done_at": self.at(), "reason": details and details.reason}
        self.responses[event.response.id] = response
        self.log.append(("response.done", response["text"]))

    def open_response(self):
        return any(response["status"] == "in_progress" for response in self.responses.values())

    def is_idle(self, playing_matters):
        quiet = self.player.is_quiet(self.now()) or not playing_matters
        return quiet and not self.open_response() and not self.speaking

    async def wait(self, seconds):
        """Until something arrives, or so long."""
        self.news.clear()
        try:
            await asyncio.wait_for(self.news.wait(), seconds)
        except TimeoutError:
            pass

    def report(self, steps, microphone):
        items = []
        for played in self.player.items.values():
            items.append({
                "item": played.item, "response": played.response, "received_ms": round(played.received_ms),
                "played_ms": round(played.played_ms(self.now())), "cut_at_ms": played.cut_at_ms,
            })
        for id, at in self.first_audio.items():
            self.responses[id]["first_audio_at"] = at
        ok = not self.errors and not self.order.errors and all(step["ok"] for step in steps)
        return {
            "ok": ok, "session_id": self.session and self.session.get("id"), "seconds": self.at(),
            "sent_ms": microphone.sent_ms, "late_ms": round(microphone.late_ms), "heard": self.heard,
            "responses": list(self.responses.values()), "played": items, "truncated": self.truncated,
            "steps": steps, "repeats": sum(max(0, step["tries"] - 1) for step in steps),
            "order_errors": self.order.errors, "errors": self.errors, "closed": self.closed, "events": self.counts,
        }


def shorten(event):
    """An event without its sound, for the file of events."""
    if isinstance(event.get("delta"), str) and event["type"] == "response.output_audio.delta":
        event["delta"] = f"<{len(event['delta'])} characters>"
    return event


def fits(condition, entry):
    kind, text = entry
    if condition.get("type", "response.done") != kind:
        return False
    if "contains" in condition and condition["contains"].lower() not in text.lower():
        return False
    return "matches" not in condition or re.search(condition["matches"], text, re.IGNORECASE) is not None


async def hold(talk, microphone, steps):
    """Says each step and waits for its answer. Answers with what became of each."""
    results = []
    for at, step in enumerate(steps):
        following = steps[at + 1] if at + 1 < len(steps) else {}
        result = await one_step(talk, microphone, step, not following.get("during", False))
        results.append(result)
        if talk.closed or not result["ok"]:
            break
    return results


async def one_step(talk, microphone, step, playing_matters):
    result = {"say": step.get("wav") or step.get("text"), "tries": 0, "ok": False, "heard": [], "answers": []}
    while result["tries"] < step.get("tries", 1) and not result["ok"] and not talk.closed:
        result["tries"] += 1
        mark = len(talk.log)
        await say(talk, microphone, step)
        result["ok"] = await answered(talk, step, mark, playing_matters)
        result["heard"] += [text for kind, text in talk.log[mark:] if kind == HEARD]
        result["answers"] += [text for kind, text in talk.log[mark:] if kind == "response.done"]
    result["at"] = talk.at()
    print(f"{'ok  ' if result['ok'] else 'FAIL'} {result['say']}: heard {result['heard']}, answered {result['answers']}", file=sys.stderr)
    return result


async def say(talk, microphone, step):
    if "text" in step:
        content = [{"type": "input_text", "text": step["text"]}]
        await talk.connection.conversation.item.create(item={"type": "message", "role": "user", "content": content})
        await talk.connection.response.create()
        return
    await asyncio.sleep(step.get("pause", 0.4))
    microphone.say(step["sound"])
    await microphone.spoken.wait()
    if talk.options.manual:
        await talk.connection.input_audio_buffer.commit()
        await talk.connection.response.create()


async def answered(talk, step, mark, playing_matters):
    """True once what was waited for came and, where that matters, was heard to its end."""
    conditions = step.get("wait_for") or {"type": "response.done"}
    conditions = conditions if isinstance(conditions, list) else [conditions]
    spoken_at = talk.now()
    while not talk.closed and talk.now() - spoken_at < step.get("timeout", 60):
        matched = any(fits(condition, entry) for condition in conditions for entry in talk.log[mark:])
        if matched and (talk.is_idle(True) or not playing_matters):
            return True
        # An answer came, everything is quiet, and it was another one.
        since = talk.now() - max(spoken_at, talk.last_news, talk.player.ends)
        if not matched and talk.log[mark:] and talk.is_idle(True) and since > step.get("settle", SETTLE * 2):
            return False
        await talk.wait(0.05)
    return False


async def settle(talk, seconds):
    """Until nothing has sounded or arrived for a while."""
    until = talk.now() + seconds
    while not talk.closed and talk.now() < until:
        if talk.is_idle(True) and talk.now() - max(talk.last_news, talk.player.ends) > SETTLE:
            return
        await talk.wait(0.05)


def load_steps(options):
    """Steps with their sound read. Raises OSError, ValueError or wave.Error for what cannot be read."""
    if options.wav:
        steps, folder = [{"wav": str(wav)} for wav in options.wav], Path(".")
    else:
        folder = options.steps.parent
        steps = json.loads(options.steps.read_text())
    for at, step in enumerate(steps):
        if ("wav" in step) == ("text" in step):
            raise ValueError(f"step {at + 1}: exactly one of 'wav' and 'text'")
        if "wav" in step:
            step["sound"] = pcm(read_wav(folder / step["wav"]))
    return steps


async def run(options, steps):
    client = AsyncOpenAI(base_url=options.url, api_key=options.key, websocket_base_url=options.websocket_url)
    query = {"conversation": options.conversation} if options.conversation else {}
    async with client.realtime.connect(model=options.model, extra_query=query) as connection:
        talk, microphone = Talk(connection, options), Microphone(connection, options.chunk_ms)
        listening = asyncio.create_task(talk.listen())
        session = {"type": "realtime", **json.loads(options.session)}
        if options.manual:
            session.setdefault("audio", {}).setdefault("input", {})["turn_detection"] = None
        await connection.session.update(session=session)
        sending = asyncio.create_task(microphone.run()) if not options.manual else asyncio.create_task(manual_run(microphone))
        try:
            results = await hold(talk, microphone, steps)
            await settle(talk, options.settle)
        except ConnectionClosed:
            results = []
        report = talk.report(results, microphone)
        if len(results) < len(steps):
            report |= {"ok": False, "not_said": [step.get("wav") or step.get("text") for step in steps[len(results) :]]}
        if options.speaker:
            write_wav(options.speaker, talk.player.track(talk.began, talk.now()))
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        await connection.close()
        await asyncio.gather(listening, return_exceptions=True)
    return report


async def manual_run(microphone):
    """A microphone that only sends while somebody speaks: the button is held."""
    while True:
        if not microphone.waiting:
            await asyncio.sleep(0.01)
            continue
        piece, rest = microphone.waiting[: microphone.chunk], microphone.waiting[microphone.chunk :]
        await microphone.connection.input_audio_buffer.append(audio=base64.b64encode(piece).decode())
        microphone.sent_ms += round(microphone.period * 1000)
        await asyncio.sleep(microphone.period)
        microphone.waiting = rest
        if not rest:
            microphone.spoken.set()


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True, help="base address, ending in /v1")
    parser.add_argument("--websocket-url", help="base address of the socket, if it is another")
    parser.add_argument("--key", required=True, help="client key")
    parser.add_argument("--model", default="gpt-realtime", help="name sent as ?model=")
    parser.add_argument("--conversation", help="go on with this conversation")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--wav", type=Path, nargs="+", help="say these files, one after another")
    what.add_argument("--steps", type=Path, help="say what this file lists")
    parser.add_argument("--json", type=Path, help="write the report here (default: stdout)")
    parser.add_argument("--events", type=argparse.FileType("w"), help="write every event here, one a line, without its sound")
    parser.add_argument("--speaker", type=Path, help="write what was heard here, as WAV")
    parser.add_argument("--chunk-ms", type=int, default=20, choices=[10, 20, 40, 50, 100, 200], help="milliseconds of one append")
    parser.add_argument("--session", default="{}", help="fields for the first session.update, as JSON")
    parser.add_argument("--manual", action="store_true", help="turn_detection null: commit and response.create after each utterance")
    parser.add_argument("--settle", type=float, default=10.0, help="longest wait for quiet at the end, in seconds")
    return parser.parse_args()


def main():
    options = arguments()
    try:
        json.loads(options.session)
        steps = load_steps(options)
    except Exception as error:  # whatever is wrong with the files, it is the caller's to mend
        print(f"talk_client: {error}", file=sys.stderr)
        return 2
    try:
        report = asyncio.run(run(options, steps))
    except Exception as error:
        report = {"ok": False, "failed": f"{type(error).__name__}: {error}"}
        print(f"talk_client: {report['failed']}", file=sys.stderr)
    text = json.dumps(report, indent=1, ensure_ascii=False)
    if options.json:
        options.json.write_text(text + "\n")
    else:
        print(text)
    return 0 if report["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
