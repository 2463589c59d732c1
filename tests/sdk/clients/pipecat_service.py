"""Pipecat: `OpenAIRealtimeLLMService` in a pipeline with its context aggregators, and a collector where the loudspeaker would be."""

import asyncio
import contextlib
import sys

from cells import HIDDEN, LOSE, OWN, RATE, STORY, calls_seen, check, main, until
from loguru import logger
from pipecat.adapters.schemas.function_schema import FunctionSchema
from pipecat.adapters.schemas.tools_schema import ToolsSchema
from pipecat.frames.frames import ErrorFrame, InputAudioRawFrame, InterruptionFrame, LLMRunFrame, TTSAudioRawFrame, TTSStoppedFrame, TTSTextFrame
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.runner import PipelineRunner
from pipecat.pipeline.task import PipelineParams, PipelineTask
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.aggregators.llm_response_universal import LLMContextAggregatorPair
from pipecat.processors.frame_processor import FrameProcessor
from pipecat.services.openai.realtime import events
from pipecat.services.openai.realtime.llm import OpenAIRealtimeLLMService

logger.remove()
logger.add(sys.stderr, level="WARNING")


class Collector(FrameProcessor):
    """Keeps what would be played and shown."""

    def __init__(self):
        super().__init__()
        self.text, self.sound, self.stopped, self.interrupted = "", 0, 0, 0

    async def process_frame(self, frame, direction):
        await super().process_frame(frame, direction)
        if isinstance(frame, TTSTextFrame):
            self.text += frame.text
        elif isinstance(frame, TTSAudioRawFrame):
            self.sound += len(frame.audio)
        elif isinstance(frame, TTSStoppedFrame):
            self.stopped += 1
        elif isinstance(frame, InterruptionFrame):
            self.interrupted += 1
        await self.push_frame(frame, direction)


class Talk:
    """A running pipeline."""

    def __init__(self, service, context, collector, task):
        self.service, self.context, self.heard, self.task = service, context, collector, task
        self.errors, self.items = [], []

    async def run(self):
        """Lets the model answer the context, as a bot does when somebody has joined."""
        await self.task.queue_frames([LLMRunFrame()])

    async def answered(self, words):
        await until(lambda: words in self.heard.text or self.errors, f"{words!r}; heard {self.heard.text!r}")
        check(words in self.heard.text, f"errors {self.errors}")

    async def speak(self, cell):
        async for chunk in cell.microphone():
            await self.task.queue_frames([InputAudioRawFrame(audio=chunk, sample_rate=RATE, num_channels=1)])


@contextlib.asynccontextmanager
async def talk(cell, text=None):
    async def set_light(call):
        await call.result_callback(cell.light(**call.arguments))

    schema = FunctionSchema(name="set_light", description="Switches the light.", properties={"on": {"type": "boolean"}}, required=["on"])
    context = LLMContext([{"role": "user", "content": text}] if text else [], tools=ToolsSchema(standard_tools=[schema]))
    properties = events.SessionProperties(
        instructions="Be brief.",
        audio=events.AudioConfiguration(input=events.AudioInput(transcription=events.InputAudioTranscription(model="whisper-1"), turn_detection=events.TurnDetection())),
    )
    service = OpenAIRealtimeLLMService(api_key=cell.key, base_url=f"{cell.ws}/v1/realtime", settings=OpenAIRealtimeLLMService.Settings(model=cell.model, session_properties=properties))
    # It writes `?model=` behind the address, which leaves no place for a further parameter.
    service.base_url = cell.address
    service.register_function("set_light", set_light)
    collector, pair = Collector(), LLMContextAggregatorPair(context)
    task = PipelineTask(Pipeline([pair.user(), service, collector, pair.assistant()]), params=PipelineParams(audio_in_sample_rate=RATE, audio_out_sample_rate=RATE), idle_timeout_secs=None)
    talk = Talk(service, context, collector, task)

    @service.event_handler("on_conversation_item_created")
    async def created(_, name, item):
        talk.items.append({"type": "conversation.item.added", "item": item.model_dump(exclude_none=True)})

    @service.event_handler("on_error")
    async def failed(_, error):
        talk.errors.append(str(error))

    runner = asyncio.create_task(PipelineRunner(handle_sigint=False).run(task))
    await until(lambda: service._websocket is not None or runner.done(), "a connection")
    yield talk
    await task.cancel()
    await runner
    check(not talk.errors, f"errors {talk.errors}")


async def turn(cell):
    async with talk(cell) as t:
        microphone = asyncio.create_task(t.speak(cell))
        await t.answered("milliseconds of sound")
        await until(lambda: t.heard.stopped, "the end of the answer")
        microphone.cancel()
        check(t.heard.sound > 4_800, f"{t.heard.sound} bytes of sound came")


async def hidden(cell):
    async with talk(cell, HIDDEN) as t:
        await t.run()
        await t.answered("The tool said")
        await until(lambda: t.heard.stopped, "the end of the answer")
        check("Let me see." in t.heard.text and t.heard.stopped == 1, f"heard {t.heard.text!r} in {t.heard.stopped} answers")
        check(not calls_seen(t.items), f"the call was seen in {calls_seen(t.items)}")


async def own(cell):
    async with talk(cell, OWN) as t:
        await t.run()
        await t.answered("the light is on now")
        check(cell.runs == [True], f"the tool ran {len(cell.runs)} times")


async def refused(cell):
    async with talk(cell, OWN) as t:
        await t.run()
        await t.answered("plan_mode_blocked")
        check(not cell.runs and not calls_seen(t.items), f"it ran {len(cell.runs)} times; the call was seen in {calls_seen(t.items)}")


async def barge_in(cell):
    """The service truncates on `speech_started` and interrupts its pipeline."""
    async with talk(cell, STORY) as t:
        await t.run()
        await until(lambda: t.heard.sound > 14_400, "the story's sound")
        microphone = asyncio.create_task(t.speak(cell))
        await until(lambda: t.heard.interrupted, "the pipeline is interrupted")
        await t.answered("milliseconds of sound")
        microphone.cancel()
        check(t.heard.sound < 24_000 * 2 * 7, "the story was told to its end")


async def reconnect(cell):
    """The service's own `reset_conversation()` connects anew and tells everything again; then the provider's line breaks and nobody notices."""
    async with talk(cell, "Good morning.") as t:
        await t.run()
        await t.answered("You said: Good morning.")
        await until(lambda: t.heard.stopped, "the end of the answer")
        t.context.add_message({"role": "user", "content": LOSE})
        await t.service.reset_conversation()
        await t.run()
        await t.answered("The line is back.")


if __name__ == "__main__":
    main("pipecat", "pipecat-ai", {"turn": turn, "hidden": hidden, "own": own, "refused": refused, "barge-in": barge_in, "reconnect": reconnect})
