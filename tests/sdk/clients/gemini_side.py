"""The scripted provider's Gemini Live (BidiGenerateContent). Reads both spellings of every name, as the service does.

A model's name says the habits: `NAME.text-frames` (JSON in text frames, not in binary ones), `NAME.turn-after-call` (`turnComplete` follows a call).
"""

import asyncio
import base64
import itertools
import json
import re

from script import PIECE, PIECE_MS, Ear, compact, told

numbers = itertools.count(1)


def camel(value):
    """Every key in camel case; values of calls and results stay as they are."""
    if isinstance(value, list):
        return [camel(v) for v in value]
    if not isinstance(value, dict):
        return value
    spelled = {re.sub(r"_(\w)", lambda m: m[1].upper(), key): v for key, v in value.items()}
    return {key: v if key in ("args", "response", "parameters", "parametersJsonSchema") else camel(v) for key, v in spelled.items()}


class Live:
    """One connection."""

    resumable = {}  # handle -> what was said before, of all connections

    def __init__(self, socket, script, noting):
        self.socket, self.script, self.noting = socket, script, noting
        self.note = None
        self.setup = {}
        self.tools = []
        self.words = ""
        self.open_calls = {}  # id -> result or None
        self.ear = Ear(rate=16_000)
        self.heard_ms = 0
        self.task = None
        self.binary = True

    async def run(self):
        try:
            async for frame in self.socket:
                event = camel(json.loads(frame))
                if not self.note:
                    if set(event) != {"setup"}:
                        return await self.socket.close(1007, "setup must be the first message")
                    self.model = event["setup"]["model"].rsplit("/", 1)[-1]
                    self.note = self.noting(self.model)
                self.note(event)
                for key, value in event.items():
                    await getattr(self, f"on_{key}")(value)
        finally:
            self.stop()

    def stop(self):
        if self.task and self.task is not asyncio.current_task():
            self.task.cancel()

    async def send(self, **message):
        text = compact(message)
        await self.socket.send(text.encode() if self.binary else text)

    async def on_setup(self, setup):
        if self.setup:
            return await self.socket.close(1007, "setup comes once")
        self.setup = setup
        self.quirks = self.model.split(".")[1:]
        self.binary = "text-frames" not in self.quirks
        self.declare(setup.get("tools") or [])
        detection = (setup.get("realtimeInputConfig") or {}).get("automaticActivityDetection") or {}
        self.by_hand = bool(detection.get("disabled"))
        self.ear.silence_ms = detection.get("silenceDurationMs") or 500
        handle = (setup.get("sessionResumption") or {}).get("handle")
        if handle and handle not in self.resumable:
            return await self.socket.close(1007, "invalid session resumption handle")
        self.words = self.resumable.get(handle, "")
        await self.send(setupComplete={})
        await self.offer_handle()

    async def offer_handle(self):
        if self.setup.get("sessionResumption") is not None:
            handle = f"handle_{next(numbers)}"
            self.resumable[handle] = self.words
            await self.send(sessionResumptionUpdate={"newHandle": handle, "resumable": True})

    def declare(self, tools):
        self.tools = [f["name"] for tool in tools for f in tool.get("functionDeclarations") or []]

    async def on_contextUpdate(self, update):
        if "tools" in update:
            self.declare(update["tools"])

    # What the person says.

    async def on_clientContent(self, content):
        said = [part.get("text", "") for turn in content.get("turns") or [] if turn.get("role", "user") == "user" for part in turn.get("parts") or []]
        self.words = " ".join(said) or self.words
        await self.interrupt()
        if content.get("turnComplete"):
            self.respond()

    async def on_realtimeInput(self, given):
        for key, value in given.items():
            if key == "audio":
                await self.hear(value)
            elif key == "text":
                self.words = value
                await self.interrupt()
                self.respond()
            elif key == "activityStart":
                self.heard_ms = 0
                await self.interrupt()
            elif key == "activityEnd":
                self.words = f"{int(self.heard_ms)} milliseconds of sound"
                await self.transcribed()
                self.respond()

    async def hear(self, audio):
        rate = int((re.search(r"rate=(\d+)", audio.get("mimeType", "")) or [0, 16_000])[1])
        data = base64.b64decode(audio["data"])
        self.heard_ms += len(data) / 2 / rate * 1000
        if self.by_hand:
            return
        self.ear.rate = rate
        for what, at_ms in self.ear.hear(data):
            if what == "started":
                await self.interrupt()
            else:
                self.words = f"{int(at_ms - self.ear.began_ms)} milliseconds of sound"
                await self.transcribed()
                self.respond()

    async def transcribed(self):
        if self.setup.get("inputAudioTranscription") is not None:
            await self.send(serverContent={"inputTranscription": {"text": "How are you today?", "finished": True}})

    async def interrupt(self):
        """Somebody speaks: what is being said stops, calls that are open are taken back."""
        speaks = self.task and not self.task.done()
        if speaks:
            self.task.cancel()
            await asyncio.gather(self.task, return_exceptions=True)
        if self.open_calls:
            await self.send(toolCallCancellation={"ids": list(self.open_calls)})
            self.open_calls = {}
        if speaks:
            await self.send(serverContent={"interrupted": True})
            await self.send(serverContent={"turnComplete": True}, usageMetadata=self.usage())

    async def on_toolResponse(self, response):
        for answer in response.get("functionResponses") or []:
            if answer.get("id") in self.open_calls:
                self.open_calls[answer["id"]] = json.dumps(answer.get("response"))
        if self.open_calls and None not in self.open_calls.values():
            outputs, self.open_calls = list(self.open_calls.values()), {}
            self.respond(outputs)

    # What the model says.

    def respond(self, outputs=()):
        reply = self.script.reply(self.model, self.words, outputs, self.tools)
        self.task = asyncio.create_task(self.speak(reply))
        self.task.add_done_callback(told)

    @staticmethod
    def usage():
        return {"promptTokenCount": 20, "responseTokenCount": 10, "totalTokenCount": 30}

    async def speak(self, reply):
        if reply.loses_line:
            return self.socket.transport.abort()
        if reply.text:
            await self.say(reply)
        if reply.calls:
            calls = [{"id": f"function-call-{next(numbers)}", "name": name, "args": json.loads(arguments)} for name, arguments in reply.calls]
            self.open_calls = {call["id"]: None for call in calls}
            await self.send(toolCall={"functionCalls": calls})
            if "turn-after-call" not in self.quirks:
                return
        await self.send(serverContent={"generationComplete": True})
        await self.send(serverContent={"turnComplete": True}, usageMetadata=self.usage())
        await self.offer_handle()

    async def say(self, reply):
        written = (self.setup.get("generationConfig") or {}).get("responseModalities") == ["TEXT"]
        if written:
            return await self.send(serverContent={"modelTurn": {"role": "model", "parts": [{"text": reply.text}]}})
        words = reply.text.split(" ")
        pieces = max(1, reply.sound_ms // PIECE_MS)
        sound = {"inlineData": {"mimeType": "audio/pcm;rate=24000", "data": base64.b64encode(PIECE).decode()}}
        for n in range(pieces):
            await self.send(serverContent={"modelTurn": {"role": "model", "parts": [sound]}})
            part = words[n * len(words) // pieces : (n + 1) * len(words) // pieces]
            if part and self.setup.get("outputAudioTranscription") is not None:
                await self.send(serverContent={"outputTranscription": {"text": " ".join(part) + (" " if n + 1 < pieces else "")}})
            await asyncio.sleep(reply.pace_ms / 1000)
