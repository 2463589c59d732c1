"""WAV files as mono 16-bit sound at 24 kHz, with nothing but the standard library."""

import array
import math
import sys
import wave

RATE = 24_000
ZEROS = 16  # zero crossings of the filter on either side, at the lower of the two rates


def read_wav(path):
    """The file's sound as an array of 16-bit samples at RATE. Takes 8- and 16-bit PCM of any rate; channels are averaged."""
    with wave.open(str(path), "rb") as file:
        channels, width, rate = file.getnchannels(), file.getsampwidth(), file.getframerate()
        data = file.readframes(file.getnframes())
    if width == 2:
        samples = array.array("h", data)
        if sys.byteorder == "big":
            samples.byteswap()
    elif width == 1:
        samples = array.array("h", ((byte - 128) << 8 for byte in data))
    else:
        raise ValueError(f"{path}: {width * 8}-bit samples; this reads 8 and 16 bits")
    if channels > 1:
        samples = array.array("h", (sum(samples[i : i + channels]) // channels for i in range(0, len(samples), channels)))
    return samples if rate == RATE else resample(samples, rate, RATE)


def resample(samples, source, target):
    """Windowed sinc, one set of coefficients for each phase."""
    common = math.gcd(source, target)
    up, down = target // common, source // common
    cutoff = 0.95 * min(1.0, target / source)
    half = math.ceil(ZEROS / min(1.0, target / source))
    table = []
    for phase in range(up):
        offset = phase / up
        row = [tap(k - offset, cutoff, half) for k in range(-half + 1, half + 1)]
        scale = 1.0 / sum(row)
        table.append([value * scale for value in row])
    padded = [0] * half + list(samples) + [0] * (half + 1)
    out = array.array("h")
    for n in range(len(samples) * up // down):
        at, phase = divmod(n * down, up)
        value = sum(map(float.__mul__, table[phase], map(float, padded[at + 1 : at + 1 + 2 * half])))
        out.append(max(-32768, min(32767, round(value))))
    return out


def tap(x, cutoff, half):
    sinc = cutoff if x == 0 else math.sin(math.pi * cutoff * x) / (math.pi * x)
    return sinc * (0.5 + 0.5 * math.cos(math.pi * x / (half + 1)))


def pcm(samples):
    """Little-endian bytes."""
    if sys.byteorder == "big":
        samples = array.array("h", samples)
        samples.byteswap()
    return samples.tobytes()


def write_wav(path, data):
    """Writes little-endian mono bytes at RATE."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(data)
