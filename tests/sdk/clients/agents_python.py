"""openai-agents: a `RealtimeAgent` in a `RealtimeSession`, which runs tools, keeps the history and interrupts by itself."""

import asyncio
import contextlib

from agents import function_tool
from agents.realtime import RealtimeAgent, RealtimeRunner
from cells import HIDDEN, LOSE, OWN, STORY, calls_seen, check, main, until


class Talk:
    """A session, with its events and the events of the wire."""

    def __init__(self, session):
        self.session, self.events, self.raw = session, [], []
        self.task = asyncio.create_task(self.listen())

    async def listen(self):
        async for event in self.session:
            self.events.append(event)
            if event.type == "raw_model_event" and event.data.type == "raw_server_event":
                self.raw.append(event.data.data)

    def of(self, kind, mark=0):
        return [e for e in self.events[mark:] if e.type == kind]

    def wire(self, kind):
        return [e for e in self.raw if e["type"] == kind]

    async def event(self, kind, mark=0):
        await until(lambda: self.of(kind, mark) or self.task.done(), kind)
        check(self.of(kind, mark), f"the session ended before {kind}")
        return self.of(kind, mark)[0]

    def said(self):
        """Everything the agent has said, as the history has it."""
        history = self.of("history_updated")
        items = history[-1].history if history else []
        added = [e.item for e in self.of("history_added")]
        texts = {i.item_id: i for i in [*added, *items] if i.type == "message" and i.role == "assistant"}
        return [" ".join(part.transcript or "" if part.type == "audio" else part.text or "" for part in item.content) for item in texts.values()]

    async def answered(self, words):
        await until(lambda: any(words in said for said in self.said()) or self.task.done(), f"an answer with {words!r}, after {self.said()}")
        check(any(words in said for said in self.said()), "the session ended")

    async def speak(self, cell):
        async for chunk in cell.microphone():
            await self.session.send_audio(chunk)

    def well(self):
        check(not self.of("error"), f"error: {[e.error for e in self.of('error')]}")


@contextlib.asynccontextmanager
async def talk(cell):
    @function_tool
    def set_light(on: bool) -> str:
        """Switches the light."""
        return cell.light(on)

    agent = RealtimeAgent(name="assistant", instructions="Be brief.", tools=[set_light])
    settings = {"model_name": cell.model, "input_audio_transcription": {"model": "whisper-1"}, "turn_detection": {"type": "server_vad", "interrupt_response": True}}
    runner = RealtimeRunner(agent, config={"model_settings": settings, "tracing_disabled": True})
    async with await runner.run(model_config={"url": cell.address, "api_key": cell.key}) as session:
        talk = Talk(session)
        yield talk
        talk.well()
    talk.task.cancel()


async def turn(cell):
    async with talk(cell) as t:
        microphone = asyncio.create_task(t.speak(cell))
        await t.answered("milliseconds of sound")
        await t.event("audio_end")
        microphone.cancel()
        check(sum(len(e.audio.data) for e in t.of("audio")) > 4_800, "no sound came")


async def hidden(cell):
    async with talk(cell) as t:
        await t.session.send_message(HIDDEN)
        await t.answered("The tool said")
        await until(lambda: t.wire("response.done"), "response.done")
        check(len(t.wire("response.created")) == 1 and len(t.wire("response.done")) == 1, "more than one answer")
        check(not calls_seen(t.raw) and not t.of("tool_start"), f"the call was seen in {calls_seen(t.raw)}")


async def own(cell):
    async with talk(cell) as t:
        await t.session.send_message(OWN)
        await t.answered("The tool said: the light is on now")
        check(cell.runs == [True] and len(t.of("tool_end")) == 1, f"the tool ran {len(cell.runs)} times")


async def refused(cell):
    async with talk(cell) as t:
        await t.session.send_message(OWN)
        await t.answered("plan_mode_blocked")
        check(not cell.runs and not calls_seen(t.raw), f"it ran {len(cell.runs)} times; the call was seen in {calls_seen(t.raw)}")


async def barge_in(cell):
    """By voice: the session cuts by itself (`truncate` and `retrieve`). And `session.interrupt()`."""
    async with talk(cell) as t:
        await t.session.send_message(STORY)
        await t.event("audio")
        await asyncio.sleep(0.3)
        microphone = asyncio.create_task(t.speak(cell))
        await t.event("audio_interrupted")
        await t.answered("milliseconds of sound")
        microphone.cancel()
        check([e["response"]["status_details"]["reason"] for e in t.wire("response.done")[:1]] == ["turn_detected"], "the answer was not cut")
        check(t.wire("conversation.item.truncated"), "not cut in memory")
        done, mark = len(t.wire("response.done")), len(t.events)
        await t.session.send_message(STORY)
        await t.event("audio", mark)
        await asyncio.sleep(0.3)
        await t.session.interrupt()
        await t.event("audio_interrupted", mark)
        await until(lambda: len(t.wire("response.done")) > done, "the end of what was interrupted")
        await t.session.send_message("Are you there?")
        await t.answered("You said: Are you there?")


async def reconnect(cell):
    """The provider's line breaks and nobody notices; then the client itself comes back to its conversation."""
    async with talk(cell) as t:
        await t.session.send_message("Good morning.")
        await t.answered("You said: Good morning.")
        await until(lambda: t.wire("response.done"), "response.done")
        await t.session.send_message(LOSE)
        await t.answered("The line is back.")
        check(len(t.wire("session.created")) == 1, "the loss was seen")
    async with talk(cell) as t:
        await t.session.send_message("Here I am again.")
        await t.answered("You said: Here I am again.")


if __name__ == "__main__":
    main("openai-agents", "openai-agents", {"turn": turn, "hidden": hidden, "own": own, "refused": refused, "barge-in": barge_in, "reconnect": reconnect})
