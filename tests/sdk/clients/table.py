"""The rows and columns of the table of clients, and the page that shows it."""

from dataclasses import dataclass

CELLS = {
    "turn": "a turn with sound",
    "hidden": "gateway's tool hidden",
    "own": "own tool run",
    "refused": "own tool refused",
    "barge-in": "barge-in",
    "reconnect": "reconnect",
}


@dataclass(frozen=True)
class Client:
    """One client. `speaks`: openai, beta or gemini; `barge_in`: how it interrupts; `gap`: what the page has to say of it."""

    name: str
    script: str
    speaks: str
    way: str
    barge_in: str
    gap: str = ""


CLIENTS = [
    Client("openai-python", "openai_python.py", "openai", "`AsyncOpenAI(base_url=…).realtime.connect`", "`item.truncate` on `speech_started`; `response.cancel`"),
    Client("openai-agents", "agents_python.py", "openai", "`RealtimeRunner(agent).run(model_config={\"url\": …})`", "the session's own `truncate` and `retrieve` on `speech_started`; `session.interrupt()`"),
    Client("pipecat", "pipecat_service.py", "openai", "`OpenAIRealtimeLLMService(base_url=…)` in a pipeline", "the service's own `truncate` and an `InterruptionFrame` on `speech_started`"),
    Client("livekit-agents", "livekit_agents.py", "openai", "`openai.realtime.RealtimeModel(base_url=…).session()`", "`interrupt()` and `truncate()` on `input_speech_started`; `interrupt()`"),
]


def document(rows):
    return ""
