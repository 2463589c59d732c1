"""What a loudspeaker would have played by now: pieces of items, one after another, each at real speed."""

from dataclasses import dataclass, field

from sound import RATE


@dataclass
class Played:
    """One assistant item."""

    item: str
    response: str
    pieces: list = field(default_factory=list)  # (when it begins to sound, seconds)
    received_ms: float = 0.0
    cut_at_ms: int | None = None

    def played_ms(self, now):
        heard = sum(max(0.0, min(length, now - begins)) for begins, length in self.pieces) * 1000
        return heard if self.cut_at_ms is None else min(heard, self.cut_at_ms)


class Player:
    """Keeps the account. Times are seconds of any steady clock."""

    def __init__(self):
        self.items = {}
        self.ends = 0.0
        self.sound = []  # (begins, bytes), for writing what was heard

    def add(self, now, response, item, data):
        """A delta arrived."""
        played = self.items.setdefault(item, Played(item, response))
        if played.cut_at_ms is not None:
            return
        begins = max(now, self.ends)
        length = len(data) / 2 / RATE
        played.pieces.append((begins, length))
        played.received_ms += length * 1000
        self.sound.append((begins, data))
        self.ends = begins + length

    def playing(self, now):
        """The item that sounds now."""
        for played in self.items.values():
            if played.cut_at_ms is None and any(begins <= now < begins + length for begins, length in played.pieces):
                return played
        return None

    def is_quiet(self, now):
        return now >= self.ends

    def cut(self, now):
        """Stops. Answers with the item that sounded and the milliseconds that were heard of it."""
        current = self.playing(now)
        self.sound = [self._until(begins, data, now) for begins, data in self.sound if begins < now]
        self.ends = min(self.ends, now)
        for played in self.items.values():
            if played.cut_at_ms is None and any(begins + length > now for begins, length in played.pieces):
                played.cut_at_ms = int(played.played_ms(now))
        return (current, current.cut_at_ms) if current else None

    @staticmethod
    def _until(begins, data, now):
        return begins, data[: max(0, int((now - begins) * RATE)) * 2]

    def track(self, start, end):
        """Everything that was heard between two times, silence included."""
        track = bytearray(max(0, int((end - start) * RATE)) * 2)
        for begins, data in self.sound:
            at = max(0, int((begins - start) * RATE)) * 2
            data = data[: max(0, len(track) - at)]
            track[at : at + len(data)] = data
        return bytes(track)
