"""Speaks with Kokoro: lines of voice, file and phoneme ids come in, each becomes a WAV file and is answered with "ok"."""
import sys
import wave

import numpy as np
import onnxruntime

home = sys.argv[1]
reserved = {"am_fenrir", "am_puck", "af_bella", "bf_emma", "bm_george"}
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
options.inter_op_num_threads = 1
session = onnxruntime.InferenceSession(f"{home}/kokoro.onnx", options, providers=["CPUExecutionProvider"])
styles = {}
for line in sys.stdin:
    voice, path, ids = line.rstrip("\n").split("\t")
    if voice in reserved:
        sys.exit(f"{voice} is reserved for independent checks")
    ids = [int(n) for n in ids.split()]
    if voice not in styles:
        styles[voice] = np.fromfile(f"{home}/voices/{voice}.bin", dtype=np.float32).reshape(-1, 256)
    # A voice's style depends on how many phonemes are to come.
    style = styles[voice][min(len(ids), len(styles[voice])) - 1].reshape(1, 256)
    inputs = {"tokens": np.array([[0, *ids, 0]], dtype=np.int64), "style": style, "speed": np.array([1.0], dtype=np.float32)}
    sound = np.asarray(session.run(None, inputs)[0], dtype=np.float32).ravel()
    sound = np.clip(sound * min(1.0, 0.95 / max(1e-6, float(np.abs(sound).max()))), -1, 1)
    with wave.open(path, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(24000)
        out.writeframes((sound * 32767).astype("<i2").tobytes())
    print("ok", flush=True)
