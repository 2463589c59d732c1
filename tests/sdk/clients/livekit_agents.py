"""LiveKit agents: `openai.realtime.RealtimeModel(...).session()`, driven as its `AgentSession` drives it, without a room."""

import asyncio
import contextlib
from dataclasses import dataclass, field

from cells import HIDDEN, LOSE, OWN, RATE, STORY, calls_seen, check, main, until
from livekit import rtc
from livekit.agents import llm
from livekit.plugins import openai


@dataclass
class Answer:
    """One generation, read to its end or to where it was cut."""

    initiated: bool
    text: str = ""
    sound_ms: float = 0
    message: str = ""
    calls: list = field(default_factory=list)
    done: bool = False


class Talk:
    """A session with its generations."""

    def __init__(self, session):
        self.session, self.answers, self.raw, self.errors, self.speech, self.back = session, [], [], [], 0, 0
        self.tasks = set()
        session.on("generation_created", self.created)
        session.on("openai_server_event_received", self.raw.append)
        session.on("error", self.errors.append)
        session.on("input_speech_started", self.started)
        session.on("session_reconnected", self.reconnected)

    def started(self, _):
        self.speech += 1

    def reconnected(self, _):
        self.back += 1

    def created(self, event):
        answer = Answer(event.user_initiated)
        self.answers.append(answer)
        self.keep(self.read(event, answer))

    def keep(self, work):
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def read(self, event, answer):
        async def messages():
            async for message in event.message_stream:
                answer.message = message.message_id
                await asyncio.gather(text(message), sound(message))

        async def text(message):
            async for piece in message.text_stream:
                answer.text += piece

        async def sound(message):
            async for frame in message.audio_stream:
                answer.sound_ms += frame.duration * 1000

        async def calls():
            async for call in event.function_stream:
                answer.calls.append(call)

        await asyncio.gather(messages(), calls())
        answer.done = True

    async def put(self, *items):
        context = self.session.chat_ctx.copy()
        for item in items:
            context.insert(item)
        await self.session.update_chat_ctx(context)

    async def begin(self, text):
        """Typed; the generation that answers it, still running."""
        await self.put(llm.ChatMessage(role="user", content=[text]))
        await self.session.generate_reply()
        return self.answers[-1]

    async def say(self, text):
        answer = await self.begin(text)
        await until(lambda: answer.done, f"the answer to {text!r}")
        return answer

    async def speak(self, cell):
        async for chunk in cell.microphone():
            self.session.push_audio(rtc.AudioFrame(chunk, RATE, 1, len(chunk) // 2))

    def wire(self, kind):
        return [e for e in self.raw if e["type"] == kind]


@contextlib.asynccontextmanager
async def talk(cell, **settings):
    @llm.function_tool
    async def set_light(on: bool) -> str:
        """Switches the light."""
        return cell.light(on)

    named = f"?conversation={cell.conversation}" if cell.conversation else ""
    model = openai.realtime.RealtimeModel(model=cell.model, base_url=f"{cell.http}/v1{named}", api_key=cell.key, **settings)
    session = model.session()
    talk = Talk(session)
    await session.update_instructions("Be brief.")
    await session.update_tools([set_light])
    talk.tool = set_light
    yield talk
    await session.aclose()
    await model.aclose()
    check(not talk.errors, f"error: {[str(e.error) for e in talk.errors]}")


async def turn(cell):
    async with talk(cell) as t:
        microphone = asyncio.create_task(t.speak(cell))
        await until(lambda: t.answers and t.answers[0].done, "an answer")
        microphone.cancel()
        answer = t.answers[0]
        check("milliseconds of sound" in answer.text and answer.sound_ms >= 300, f"answered {answer}")


async def hidden(cell):
    async with talk(cell) as t:
        answer = await t.say(HIDDEN)
        check("Let me see." in answer.text and "The tool said" in answer.text and answer.initiated, f"answered {answer}")
        check(not answer.calls and len(t.answers) == 1 and not calls_seen(t.raw), f"the call was seen in {calls_seen(t.raw)}; {len(t.answers)} answers")


async def own(cell):
    async with talk(cell) as t:
        answer = await t.say(OWN)
        check([(c.name, c.arguments) for c in answer.calls] == [("set_light", '{"on": true}')], f"called {answer.calls}")
        call = answer.calls[0]
        result = await t.tool(on=True)
        await t.put(llm.FunctionCallOutput(call_id=call.call_id, name=call.name, output=result, is_error=False))
        await t.session.generate_reply()
        await until(lambda: t.answers[-1].done, "the answer after the tool")
        check("The tool said: the light is on now" in t.answers[-1].text and len(t.answers) == 2, f"answered {t.answers}")


async def refused(cell):
    async with talk(cell) as t:
        answer = await t.say(OWN)
        check("plan_mode_blocked" in answer.text, f"answered {answer}")
        check(not answer.calls and not calls_seen(t.raw), f"the call was seen in {calls_seen(t.raw)}")


async def barge_in(cell):
    """As its `AgentSession` does on `input_speech_started`: `interrupt()`, then `truncate()` at what was played."""
    async with talk(cell) as t:
        story = await t.begin(STORY)
        await until(lambda: story.sound_ms >= 300, "the story's sound")
        microphone = asyncio.create_task(t.speak(cell))
        await until(lambda: t.speech, "speech is heard")
        t.session.interrupt()
        t.session.truncate(message_id=story.message, modalities=["audio"], audio_end_ms=300)
        await until(lambda: story.done, "the story's end")
        check(story.sound_ms < 7_000, "the story was told to its end")
        await until(lambda: t.wire("conversation.item.truncated"), "cut in memory")
        await until(lambda: t.answers[-1].done and "milliseconds of sound" in t.answers[-1].text, "an answer to what was said")
        microphone.cancel()
        story = await t.begin(STORY)
        await until(lambda: story.sound_ms >= 300, "the second story's sound")
        t.session.interrupt()
        await until(lambda: story.done, "the second story's end")
        check(t.wire("response.done")[-1]["response"]["status"] == "cancelled", "it was not cancelled")
        check((await t.say("Are you there?")).text == "You said: Are you there?", "silent after it")


async def reconnect(cell):
    """The provider's line breaks and nobody notices; then the session's own `max_session_duration` makes it come back."""
    async with talk(cell, max_session_duration=1.5) as t:
        check((await t.say("Good morning.")).text == "You said: Good morning.", "no answer")
        check((await t.say(LOSE)).text == "The line is back." and not t.back, f"answered {t.answers[-1]}")
        await until(lambda: t.back, "its own new connection")
        answer = await t.say("Here I am again.")
        check(answer.text == "You said: Here I am again.", f"answered {answer}")


if __name__ == "__main__":
    main("livekit-agents", "livekit-agents", {"turn": turn, "hidden": hidden, "own": own, "refused": refused, "barge-in": barge_in, "reconnect": reconnect})
