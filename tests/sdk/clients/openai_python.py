"""openai-python: `AsyncOpenAI().realtime.connect`, events as the library parses them. What a tool call means is the program's own business."""

import asyncio
import base64
import contextlib

from cells import HIDDEN, LOSE, OWN, STORY, TOOL, check, main, until
from openai import AsyncOpenAI


class Talk:
    """A connection, with everything that came over it."""

    def __init__(self, connection):
        self.connection, self.events = connection, []
        self.task = asyncio.create_task(self.listen())

    async def listen(self):
        async for event in self.connection:
            self.events.append(event)

    def of(self, kind, mark=0):
        return [e for e in self.events[mark:] if e.type == kind]

    async def event(self, kind, mark=0, fits=lambda e: True):
        await until(lambda: any(fits(e) for e in self.of(kind, mark)) or self.task.done(), kind)
        found = [e for e in self.of(kind, mark) if fits(e)]
        check(found, f"the connection ended before {kind}")
        return found[0]

    async def say(self, text):
        """Typed; the answer is awaited."""
        mark = len(self.events)
        await self.connection.conversation.item.create(item={"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})
        await self.connection.response.create()
        return await self.event("response.done", mark)

    async def speak(self, cell):
        async for chunk in cell.microphone():
            await self.connection.input_audio_buffer.append(audio=base64.b64encode(chunk).decode())


@contextlib.asynccontextmanager
async def talk(cell, tools=()):
    client = AsyncOpenAI(api_key=cell.key, base_url=f"{cell.http}/v1")
    async with client.realtime.connect(model=cell.model, extra_query=cell.query) as connection:
        talk = Talk(connection)
        await connection.session.update(session={
            "type": "realtime", "tools": list(tools),
            "audio": {"input": {"turn_detection": {"type": "server_vad"}, "transcription": {"model": "whisper-1"}}},
        })
        await talk.event("session.updated")
        yield talk
        talk.task.cancel()
    await client.close()


def words(response):
    return " ".join(part.transcript or part.text or "" for item in response.output for part in getattr(item, "content", None) or [])


async def turn(cell):
    async with talk(cell) as t:
        microphone = asyncio.create_task(t.speak(cell))
        done = await t.event("response.done")
        microphone.cancel()
        sound = sum(len(base64.b64decode(e.delta)) for e in t.of("response.output_audio.delta"))
        check(done.response.status == "completed" and "milliseconds of sound" in words(done.response), f"answered {done.response.status}: {words(done.response)!r}")
        check(sound > 4_800, f"{sound} bytes of sound came")
        check([e.transcript for e in t.of("conversation.item.input_audio_transcription.completed")] == ["How are you today?"], "no transcript")
        check(not t.of("error"), t.of("error"))


async def hidden(cell):
    async with talk(cell, [TOOL]) as t:
        done = await t.say(HIDDEN)
        check("Let me see." in words(done.response) and "The tool said" in words(done.response), f"answered {words(done.response)!r}")
        check(len(t.of("response.created")) == 1 and len(t.of("response.done")) == 1, "more than one answer")
        seen = [e.type for e in t.events if "function_call" in e.to_json() or "notes__list" in e.to_json() and e.type != "conversation.item.added" and e.type != "conversation.item.done"]
        check(not seen, f"the call was seen in {seen}")


async def call_and_answer(t, cell):
    """What programs do: run the call when its arguments are whole, put in the output, ask for the next answer."""
    mark = len(t.events)
    await t.connection.conversation.item.create(item={"type": "message", "role": "user", "content": [{"type": "input_text", "text": OWN}]})
    await t.connection.response.create()
    call = await t.event("response.function_call_arguments.done", mark)
    await t.event("response.done", mark)
    check((call.name, call.arguments) == ("set_light", '{"on": true}'), f"called {call.name} with {call.arguments}")
    output = cell.light(True)
    mark = len(t.events)
    await t.connection.conversation.item.create(item={"type": "function_call_output", "call_id": call.call_id, "output": output})
    await t.connection.response.create()
    return await t.event("response.done", mark)


async def own(cell):
    async with talk(cell, [TOOL]) as t:
        done = await call_and_answer(t, cell)
        check("The tool said: the light is on now" in words(done.response), f"answered {words(done.response)!r}")
        check(len(t.of("response.function_call_arguments.done")) == 1, "called more than once")


async def refused(cell):
    async with talk(cell, [TOOL]) as t:
        done = await t.say(OWN)
        check("The tool said" in words(done.response) and "plan" in words(done.response), f"answered {words(done.response)!r}")
        seen = [e.type for e in t.events if "function_call" in e.type or "function_call" in str(getattr(getattr(e, "item", None), "type", ""))]
        check(not seen, f"the call was seen in {seen}")


async def barge_in(cell):
    """By voice: the server hears it and stops, the program tells how far it had played. And by hand: `response.cancel`."""
    async with talk(cell) as t:
        await t.connection.conversation.item.create(item={"type": "message", "role": "user", "content": [{"type": "input_text", "text": STORY}]})
        await t.connection.response.create()
        first = await t.event("response.output_audio.delta")
        microphone = asyncio.create_task(t.speak(cell))
        await t.event("input_audio_buffer.speech_started")
        await t.connection.conversation.item.truncate(item_id=first.item_id, content_index=0, audio_end_ms=200)
        cut = await t.event("response.done")
        check(cut.response.status == "cancelled" and cut.response.status_details.reason == "turn_detected", f"the answer ended as {cut.response.status}")
        check((await t.event("conversation.item.truncated")).audio_end_ms == 200, "cut elsewhere")
        await t.event("response.done", fits=lambda e: "milliseconds of sound" in words(e.response))
        microphone.cancel()
        mark = len(t.events)
        await t.connection.conversation.item.create(item={"type": "message", "role": "user", "content": [{"type": "input_text", "text": STORY}]})
        await t.connection.response.create()
        await t.event("response.output_audio.delta", mark)
        await t.connection.response.cancel()
        done = await t.event("response.done", mark)
        check(done.response.status == "cancelled" and done.response.status_details.reason == "client_cancelled", f"the answer ended as {done.response.status}")
        check(words((await t.say("Are you there?")).response) == "You said: Are you there?", "silent after it")
        check(not t.of("error"), t.of("error"))


async def reconnect(cell):
    """The provider's line breaks and nobody notices; then the client itself comes back to its conversation."""
    async with talk(cell) as t:
        check(words((await t.say("Good morning.")).response) == "You said: Good morning.", "no answer")
        done = await t.say(LOSE)
        check(words(done.response) == "The line is back.", f"answered {words(done.response)!r}")
        check(len(t.of("session.created")) == 1 and not t.of("error"), "the loss was seen")
    async with talk(cell) as t:
        check(words((await t.say("Here I am again.")).response) == "You said: Here I am again.", "no answer after it came back")


if __name__ == "__main__":
    main("openai-python", "openai", {"turn": turn, "hidden": hidden, "own": own, "refused": refused, "barge-in": barge_in, "reconnect": reconnect})
