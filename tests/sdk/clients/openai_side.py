"""The scripted provider's OpenAI Realtime: the GA protocol, and on demand the habits of servers that speak it differently.

A model's name says which: `NAME.QUIRK.QUIRK`, or `NAME.quirks` for all of them.
"""

import asyncio
import base64
import itertools
import json

from script import PIECE, PIECE_MS, RATE, Ear, compact, told

QUIRKS = {
    "legacy-items": "`conversation.item.created` in place of `.added` and `.done`",
    "beta-names": "deltas under their beta names, the rest under GA's",
    "no-event-ids": "events without `event_id`",
    "no-places": "no `output_index` and no `content_index`",
    "no-parts": "`response.content_part.done` without its part",
    "no-usage": "an empty `usage`",
    "tool-role": "function calls with a role",
    "pings": "`conversation.created` first, and a `ping` before every response",
    "empty-deltas": "deltas with nothing in them",
    "strange": "unknown events and unknown fields",
    "spaced": "JSON written with spaces",
}
BETA = {
    "response.output_audio.delta": "response.audio.delta",
    "response.output_audio_transcript.delta": "response.audio_transcript.delta",
    "response.output_text.delta": "response.text.delta",
}
USAGE = {
    "total_tokens": 30, "input_tokens": 20, "output_tokens": 10,
    "input_token_details": {"text_tokens": 10, "audio_tokens": 10, "image_tokens": 0, "cached_tokens": 0, "cached_tokens_details": {"text_tokens": 0, "audio_tokens": 0, "image_tokens": 0}},
    "output_token_details": {"text_tokens": 5, "audio_tokens": 5},
}
numbers = itertools.count(1)


def new_id(kind):
    return f"{kind}_up{next(numbers)}"


def merged(into, change):
    """A partial session over another; `null` is a value."""
    for key, value in change.items():
        into[key] = merged(into[key], value) if isinstance(value, dict) and isinstance(into.get(key), dict) else value
    return into


class Realtime:
    """One connection."""

    def __init__(self, socket, model, script, note):
        self.socket, self.script, self.note = socket, script, note
        self.name, *quirks = model.split(".")
        self.model = model
        self.quirks = set(QUIRKS) if "quirks" in quirks else set(quirks)
        self.session = {
            "type": "realtime", "object": "realtime.session", "id": new_id("sess"), "model": model, "output_modalities": ["audio"], "instructions": "", "tools": [], "tool_choice": "auto",
            "audio": {
                "input": {"format": {"type": "audio/pcm", "rate": RATE}, "noise_reduction": None, "transcription": None, "turn_detection": {"type": "server_vad", "silence_duration_ms": 500, "create_response": True, "interrupt_response": True}},
                "output": {"format": {"type": "audio/pcm", "rate": RATE}, "voice": "marin", "speed": 1.0},
            },
        }
        self.items = {}  # id -> item, in order
        self.sent_ms = {}  # id of an item -> sound that was sent of it
        self.ear = Ear()
        self.buffer_ms = 0.0
        self.speech_item = None
        self.response = None  # the one under way
        self.task = None

    @property
    def turns(self):
        return self.session["audio"]["input"]["turn_detection"]

    async def run(self):
        if "pings" in self.quirks:
            await self.send("conversation.created", conversation={"id": new_id("conv"), "object": "realtime.conversation"})
        await self.send("session.created", session=self.session)
        try:
            async for frame in self.socket:
                event = json.loads(frame)
                self.note(event)
                await self.take(event)
        finally:
            if self.task:
                self.task.cancel()

    async def send(self, kind, **fields):
        event = {"type": kind, "event_id": new_id("event"), **fields}
        for told in self.as_told(event):
            await self.socket.send(json.dumps(told) if "spaced" in self.quirks else compact(told))

    def as_told(self, event):
        """The event as this server writes it: none, one, or one with company."""
        quirks, kind = self.quirks, event["type"]
        if "legacy-items" in quirks:
            if kind == "conversation.item.done":
                return
            if kind == "conversation.item.added":
                event["type"] = "conversation.item.created"
        if "tool-role" in quirks and event.get("item", {}).get("type") == "function_call":
            event["item"] = {**event["item"], "role": "tool"}
        if "no-parts" in quirks and kind == "response.content_part.done":
            del event["part"]
        if "no-usage" in quirks and kind == "response.done":
            event["response"] = {**event["response"], "usage": {}}
        if "beta-names" in quirks:
            event["type"] = BETA.get(kind, kind)
        for field in ("output_index", "content_index") if "no-places" in quirks else ():
            event.pop(field, None)
        if "no-event-ids" in quirks:
            del event["event_id"]
        if "strange" in quirks:
            event["x_new_field"] = {"nobody": "knows"}
            if kind == "response.created":
                yield {"type": "x.news", "event_id": new_id("event"), "response_id": event["response"]["id"]}
        if "pings" in quirks and kind == "response.created":
            yield {"type": "ping", "event_id": new_id("event"), "timestamp": 0}
        if "empty-deltas" in quirks and kind.endswith(".delta"):
            yield {**event, "delta": ""}
        yield event

    async def error(self, of, code, message):
        await self.send("error", error={"type": "invalid_request_error", "code": code, "message": message, "param": None, "event_id": of.get("event_id")})

    async def take(self, event):
        kind = event["type"]
        known = getattr(self, "on_" + kind.replace(".", "_"), None)
        if known:
            await known(event)
        else:
            await self.error(event, "invalid_value", f"Invalid value: '{kind}'.")

    async def on_session_update(self, event):
        if event["session"].get("type") != "realtime":
            return await self.error(event, "missing_required_parameter", "Missing required parameter: 'session.type'.")
        merged(self.session, event["session"])
        self.session["model"] = self.model
        self.ear.silence_ms = (self.turns or {}).get("silence_duration_ms") or 500
        await self.send("session.updated", session=self.session)

    # Sound in.

    async def on_input_audio_buffer_append(self, event):
        data = base64.b64decode(event["audio"])
        self.buffer_ms += len(data) / 2 / RATE * 1000
        if not self.turns:
            return
        for what, at_ms in self.ear.hear(data):
            await (self.speech_started(at_ms) if what == "started" else self.speech_stopped(at_ms))

    async def speech_started(self, at_ms):
        self.speech_item = new_id("item")
        await self.send("input_audio_buffer.speech_started", audio_start_ms=at_ms, item_id=self.speech_item)
        if self.turns.get("interrupt_response", True):
            await self.cut("turn_detected")

    async def speech_stopped(self, at_ms):
        await self.send("input_audio_buffer.speech_stopped", audio_end_ms=at_ms, item_id=self.speech_item)
        self.buffer_ms = at_ms - self.ear.began_ms
        await self.commit(self.speech_item)
        if self.turns.get("create_response", True) and not self.response:
            await self.respond({})

    async def on_input_audio_buffer_commit(self, event):
        if self.buffer_ms < 100:
            return await self.error(event, "input_audio_buffer_commit_empty", "Error committing input audio buffer: buffer too small.")
        await self.commit(new_id("item"))

    async def commit(self, item):
        before = next(reversed(self.items), None)
        await self.send("input_audio_buffer.committed", item_id=item, previous_item_id=before)
        words = f"{int(self.buffer_ms)} milliseconds of sound"
        await self.add({"id": item, "type": "message", "object": "realtime.item", "status": "completed", "role": "user", "content": [{"type": "input_audio", "transcript": None}]}, words)
        self.buffer_ms = 0
        if self.session["audio"]["input"]["transcription"]:
            await self.send("conversation.item.input_audio_transcription.completed", item_id=item, content_index=0, transcript="How are you today?", usage={"type": "duration", "seconds": 1})

    async def on_input_audio_buffer_clear(self, event):
        self.buffer_ms = 0
        await self.send("input_audio_buffer.cleared")

    # Items.

    async def add(self, item, words=None):
        before = next(reversed(self.items), None)
        self.items[item["id"]] = {**item, "x_words": words}
        await self.send("conversation.item.added", item=item, previous_item_id=before)
        await self.send("conversation.item.done", item=item, previous_item_id=before)

    async def on_conversation_item_create(self, event):
        item = {"id": new_id("item"), "object": "realtime.item", "status": "completed", **event["item"]}
        if item["type"] == "function_call_output" and not any(i.get("call_id") == item["call_id"] for i in self.items.values() if i["type"] == "function_call"):
            return await self.error(event, "invalid_tool_call_id", f"Tool call ID '{item['call_id']}' not found in conversation.")
        if item["id"] in self.items:
            return await self.error(event, "item_create_duplicate_item_id", f"Error adding item: an item with id '{item['id']}' already exists.")
        await self.add(item, " ".join(part.get("text", "") for part in item.get("content", [])))

    async def on_conversation_item_retrieve(self, event):
        item = self.items.get(event["item_id"])
        if not item:
            return await self.error(event, "item_retrieve_invalid_item_id", f"Error retrieving item: the item with id '{event['item_id']}' does not exist.")
        await self.send("conversation.item.retrieved", item={k: v for k, v in item.items() if k != "x_words"})

    async def on_conversation_item_delete(self, event):
        if not self.items.pop(event["item_id"], None):
            return await self.error(event, "item_delete_invalid_item_id", f"Error deleting item: the item with id '{event['item_id']}' does not exist.")
        await self.send("conversation.item.deleted", item_id=event["item_id"])

    async def on_conversation_item_truncate(self, event):
        sent = self.sent_ms.get(event["item_id"])
        if sent is None or event["audio_end_ms"] > sent:
            return await self.error(event, "invalid_value", f"Audio content of {sent}ms is already shorter than {event['audio_end_ms']}ms")
        await self.send("conversation.item.truncated", item_id=event["item_id"], content_index=event["content_index"], audio_end_ms=event["audio_end_ms"])

    # Answers.

    async def on_response_create(self, event):
        if self.response:
            message = f"Conversation already has an active response in progress: {self.response['id']}. Wait until the response is finished before creating a new one."
            return await self.error(event, "conversation_already_has_active_response", message)
        await self.respond(event.get("response") or {})

    async def on_response_cancel(self, event):
        if not self.response or event.get("response_id") not in (None, self.response["id"]):
            return await self.error(event, "response_cancel_not_active", "Cancellation failed: no active response found")
        await self.cut("client_cancelled")

    async def respond(self, ask):
        modalities = ask.get("output_modalities") or self.session["output_modalities"]
        self.response = {
            "object": "realtime.response", "id": new_id("resp"), "status": "in_progress", "status_details": None, "output": [], "conversation_id": "conv_up", "output_modalities": modalities,
            "metadata": ask.get("metadata"), "usage": None, "max_output_tokens": "inf", "audio": {"output": self.session["audio"]["output"]},
        }
        self.open_part = None
        self.task = asyncio.create_task(self.speak(self.answer(), modalities == ["text"]))
        self.task.add_done_callback(told)

    def answer(self):
        """What the script says to the last words, or to the outputs after them."""
        outputs, words = [], ""
        for item in reversed(self.items.values()):
            if item["type"] == "function_call_output":
                outputs.insert(0, item["output"])
            elif item["type"] == "message" and item["role"] == "user":
                words = item["x_words"]
                break
            elif item["type"] == "message" and item["role"] == "assistant" and outputs:
                break
        tools = [tool.get("name") for tool in self.session["tools"] if tool["type"] == "function"]
        return self.script.reply(self.model, words, outputs, tools)

    async def speak(self, reply, written):
        if reply.loses_line:
            return self.socket.transport.abort()
        await self.send("response.created", response=self.response)
        if reply.text:
            await self.say(reply, written)
        for name, arguments in reply.calls:
            await self.call(name, arguments)
        await self.finish("completed", None)

    def at(self, item, **more):
        return {"response_id": self.response["id"], "item_id": item["id"], "output_index": len(self.response["output"]), **more}

    async def begin(self, item):
        before = next(reversed(self.items), None)
        self.items[item["id"]] = item
        place = {"response_id": self.response["id"], "output_index": len(self.response["output"])}
        await self.send("response.output_item.added", item=item, **place)
        await self.send("conversation.item.added", item=item, previous_item_id=before)

    async def end(self, item, **done):
        item = {**item, **done}
        self.items[item["id"]] = item
        place = {"response_id": self.response["id"], "output_index": len(self.response["output"])}
        await self.send("conversation.item.done", item=item, previous_item_id=None)
        await self.send("response.output_item.done", item=item, **place)
        self.response["output"].append(item)

    async def say(self, reply, written):
        item = {"id": new_id("item"), "object": "realtime.item", "type": "message", "status": "in_progress", "role": "assistant", "content": []}
        await self.begin(item)
        self.open_part = (item, written)
        at = self.at(item, content_index=0)
        await self.send("response.content_part.added", part={"type": "text", "text": ""} if written else {"type": "audio", "transcript": ""}, **at)
        self.sent_ms[item["id"]] = 0
        words = reply.text.split(" ")
        pieces = max(1, reply.sound_ms // PIECE_MS)
        for n in range(pieces):
            part = words[n * len(words) // pieces : (n + 1) * len(words) // pieces]
            if part:
                delta = " ".join(part) + (" " if n + 1 < pieces else "")
                await self.send("response.output_text.delta" if written else "response.output_audio_transcript.delta", delta=delta, **at)
            if not written:
                self.sent_ms[item["id"]] += PIECE_MS
                await self.send("response.output_audio.delta", delta=base64.b64encode(PIECE).decode(), **at)
            await asyncio.sleep(reply.pace_ms / 1000)
        await self.part_done(reply.text, "completed")

    async def part_done(self, text, status):
        (item, written), self.open_part = self.open_part, None
        at = self.at(item, content_index=0)
        if written:
            await self.send("response.output_text.done", text=text, **at)
            part, content = {"type": "text", "text": text}, {"type": "output_text", "text": text}
        else:
            await self.send("response.output_audio.done", **at)
            await self.send("response.output_audio_transcript.done", transcript=text, **at)
            part, content = {"type": "audio", "transcript": text}, {"type": "output_audio", "transcript": text}
        await self.send("response.content_part.done", part=part, **at)
        await self.end(item, status=status, content=[content])

    async def call(self, name, arguments):
        item = {"id": new_id("item"), "object": "realtime.item", "type": "function_call", "status": "in_progress", "call_id": new_id("call"), "name": name, "arguments": ""}
        await self.begin(item)
        at = self.at(item, call_id=item["call_id"])
        half = len(arguments) // 2
        for delta in (arguments[:half], arguments[half:]):
            await self.send("response.function_call_arguments.delta", delta=delta, **at)
        await self.send("response.function_call_arguments.done", name=name, arguments=arguments, **at)
        await self.end(item, status="completed", arguments=arguments)

    async def cut(self, reason):
        """Ends the response that is under way, as a real server does: what was begun is closed, then it is done."""
        if not self.response:
            return
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        if self.response and self.open_part:
            await self.part_done("", "incomplete")
        if self.response:
            await self.finish("cancelled", {"type": "cancelled", "reason": reason})

    async def finish(self, status, details):
        response, self.response = self.response, None
        await self.send("response.done", response={**response, "status": status, "status_details": details, "usage": USAGE})
        await self.send("rate_limits.updated", rate_limits=[{"name": "tokens", "limit": 1000, "remaining": 900, "reset_seconds": 1.0}])
