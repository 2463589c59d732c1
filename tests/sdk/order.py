"""Watches that server events come in the order clients rely on. Knows nothing of what they say."""

# What may follow what inside one response, after `response.created`.
FOLLOWS = {
    "response.created": {"response.output_item.added", "response.done"},
    "response.output_item.added": {"response.content_part.added"},
    "response.content_part.added": {"delta", "response.output_audio.done", "response.output_text.done"},
    "delta": {"delta", "response.output_audio.done", "response.output_text.done"},
    "response.output_audio.done": {"response.output_audio_transcript.done"},
    "response.output_audio_transcript.done": {"response.content_part.done"},
    "response.output_text.done": {"response.content_part.done"},
    "response.content_part.done": {"response.output_item.done"},
    "response.output_item.done": {"response.done", "response.output_item.added"},
}
DELTAS = {"response.output_audio.delta", "response.output_audio_transcript.delta", "response.output_text.delta"}
INPUT = ["input_audio_buffer.speech_started", "input_audio_buffer.speech_stopped", "input_audio_buffer.committed"]


class Order:
    """Feeds on events in the order they came; `errors` says what was out of order."""

    def __init__(self):
        self.errors = []
        self.ids = set()
        self.open = None  # (response id, last step)
        self.items = {}  # item id -> last of its own steps
        self.first = True

    def wrong(self, what):
        self.errors.append(what)

    def see(self, event):
        kind = event.type
        if self.first and kind != "session.created":
            self.wrong(f"first event is {kind}")
        self.first = False
        if not event.event_id or event.event_id in self.ids:
            self.wrong(f"{kind}: event_id missing or used before: {event.event_id}")
        self.ids.add(event.event_id)
        if kind.startswith("response."):
            self.see_response(kind, event)
        elif kind in INPUT:
            self.see_input(kind, event.item_id)
        elif kind in ("conversation.item.added", "conversation.item.done"):
            self.see_item(kind, event.item.id)

    def see_response(self, kind, event):
        step = "delta" if kind in DELTAS else kind
        response = event.response.id if hasattr(event, "response") else event.response_id
        if kind == "response.created":
            if self.open:
                self.wrong(f"{response} created while {self.open[0]} is open")
            self.open = (response, step)
            return
        if not self.open or self.open[0] != response:
            self.wrong(f"{kind} of {response}, but {self.open and self.open[0]} is open")
            return
        if step not in FOLLOWS[self.open[1]]:
            self.wrong(f"{kind} after {self.open[1]} in {response}")
        item = getattr(event, "item_id", None)
        if kind == "response.content_part.added" and self.items.get(item) != "conversation.item.added":
            self.wrong(f"content of {item} before conversation.item.added")
        if kind == "response.output_item.done" and self.items.get(event.item.id) != "conversation.item.done":
            self.wrong(f"output_item.done of {event.item.id} before conversation.item.done")
        self.open = None if kind == "response.done" else (response, step)

    def see_input(self, kind, item):
        before = self.items.get(item)
        expected = {INPUT[0]: (None,), INPUT[1]: (INPUT[0],), INPUT[2]: (None, INPUT[1])}[kind]
        if before not in expected:
            self.wrong(f"{kind} of {item} after {before}")
        self.items[item] = kind

    def see_item(self, kind, item):
        before = self.items.get(item)
        expected = (None, INPUT[2]) if kind.endswith("added") else ("conversation.item.added",)
        if before not in expected:
            self.wrong(f"{kind} of {item} after {before}")
        self.items[item] = kind
