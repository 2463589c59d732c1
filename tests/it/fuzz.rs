//! Fuzz targets as plain functions, and what runs them here: the corpus, random bytes by a seed, and every cut of real packets.
//!
//! A target takes any bytes and asserts what must always hold. A fuzzer can call the same functions; what it finds goes into
//! `tests/corpus/TARGET/` and is replayed from then on.

use std::path::Path;

use serde_json::Value;
use voxgate::codec::{self, Decode, EncoderSettings, FRAME, PACKET_SAMPLES_MAX};
use voxgate::dialect::openai_beta::{self, Told};
use voxgate::dialect::openai_realtime::client;
use voxgate::media::jitter::{Due, HELD_MAX, Jitter};
use voxgate::media::level::rms_dbfs;

/// Random packets of one run. A long run sets `VOXGATE_FUZZ_PACKETS`.
const PACKETS: usize = 20_000;
/// What a packet may sound like at most: held there by the decoder.
const LOUDEST_DBFS: f32 = -8.9;

/// One packet for a decoder that has a history. Answers with its level.
pub fn opus_packet(decoder: &mut dyn Decode, bytes: &[u8]) -> f32 {
    let mut out = Vec::new();
    let whole = codec::packet::look(bytes);
    let done = decoder.decode(bytes, &mut out);
    assert!(!out.is_empty() && out.len() <= PACKET_SAMPLES_MAX && out.len() % 120 == 0, "{} samples", out.len());
    match whole {
        Ok(Some(packet)) => assert_eq!(out.len(), packet.samples()),
        Ok(None) => assert_eq!(done, Ok(())),
        Err(error) => assert_eq!(done, Err(error)),
    }
    let level = rms_dbfs(&out);
    assert!(level <= LOUDEST_DBFS, "{level} dBFS");
    level
}

/// A stream of packets, each a length byte and so many bytes; every seventh is lost. The decoder's copy of what was lost is
/// asked for as well.
pub fn opus_stream(bytes: &[u8]) {
    let mut decoder = codec::decoder().unwrap();
    let mut rest = bytes;
    let mut out = Vec::new();
    for n in 0.. {
        let Some((&length, after)) = rest.split_first() else { break };
        let (packet, after) = after.split_at(after.len().min(usize::from(length)));
        rest = after;
        if n % 7 == 3 {
            out.clear();
            decoder.conceal(Some(packet), &mut out);
            assert!(!out.is_empty() && out.len() <= PACKET_SAMPLES_MAX && rms_dbfs(&out) <= LOUDEST_DBFS);
        }
        opus_packet(&mut *decoder, packet);
    }
}

/// Steps of three bytes: how far the number moves, how long it takes, what else happens.
pub fn jitter(bytes: &[u8]) {
    let mut jitter = Jitter::new();
    let (mut now, mut number) = (0u64, 1_000u64);
    for step in bytes.chunks_exact(3) {
        now += u64::from(step[1]);
        number = match step[0] {
            255 => u64::MAX - u64::from(step[1]),
            254 => u64::from(step[1]),
            moved => number.wrapping_add_signed(i64::from(moved) - 100),
        };
        jitter.push(now, number, ());
        match step[2] % 16 { 0 => jitter.flush(), 1 => jitter.clear(), _ => {} }
        let mut due = 0;
        while let Some(out) = jitter.pop(now) {
            due += 1;
            assert!(due <= 2 * HELD_MAX + 256, "{out:?}");
            if let Due::Frame(..) = out { assert!(jitter.following().is_none() || jitter.waiting() > 0) }
        }
        assert!(jitter.waiting() < HELD_MAX);
    }
    let c = jitter.counts();
    assert!(c.played + c.duplicates + c.late <= c.received);
}

/// An event of either side, through the translation of the beta's clients: what is JSON stays JSON with the same id, what is not goes on
/// as it came, and what GA would not read is not made readable by naming it twice.
pub fn beta(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let before: Option<Value> = serde_json::from_str(text).ok();
    let id = |v: &Value| v.get("event_id").cloned();
    if let Some(ga) = openai_beta::from_client(text) {
        let ga: Value = serde_json::from_str(&ga).expect("JSON");
        assert_eq!(before.as_ref().map(id), Some(id(&ga)));
        let _ = client::parse(&ga.to_string());
    }
    if let Told::Text(told) = openai_beta::to_client(text) {
        // A flat event that is no JSON is changed where it lies, by its name alone.
        if let Some(before) = &before { assert_eq!(id(before), id(&serde_json::from_str(&told).expect("JSON"))) }
    }
}

struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn bytes(&mut self, n: usize) -> Vec<u8> { (0..n).map(|_| self.next() as u8).collect() }
}

fn replay(target: &str, run: impl Fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(target);
    let files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path()).collect();
    assert!(!files.is_empty(), "{} is empty", folder.display());
    for file in files {
        println!("{}", file.display());
        run(&std::fs::read(file).unwrap());
    }
}

#[test]
fn the_corpus_holds() {
    replay("opus", opus_stream);
    replay("jitter", jitter);
    replay("beta", beta);
}

#[test]
fn random_packets_never_panic_and_are_never_noise_at_full_scale() {
    let packets = std::env::var("VOXGATE_FUZZ_PACKETS").ok().and_then(|n| n.parse().ok()).unwrap_or(PACKETS);
    let (mut dice, mut decoder, mut loud, mut loudest) = (Dice(7), codec::decoder().unwrap(), 0, f32::MIN);
    for n in 0..packets {
        // A fresh history now and then; lengths up to more than a frame may have.
        if n % 1_000 == 0 { decoder = codec::decoder().unwrap() }
        let length = match dice.next() % 16 { 0 => dice.next() as usize % 1_400, 1 => dice.next() as usize % 4, _ => dice.next() as usize % 120 };
        let packet = dice.bytes(length);
        let level = opus_packet(&mut *decoder, &packet);
        loud += usize::from(level > -12.0);
        loudest = loudest.max(level);
    }
    println!("{packets} random packets: the loudest at {loudest:.1} dBFS, {loud} above -12 dBFS");
}

#[test]
fn mutated_events_of_the_beta_break_nothing() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/beta");
    let seeds: Vec<Vec<u8>> = std::fs::read_dir(folder).unwrap().map(|e| std::fs::read(e.unwrap().path()).unwrap()).collect();
    let words: [&[u8]; 12] = [b"null", b"[]", b"{}", b"\"", b"\\", b"{\"type\":1}", b"true", b"-1e9", b",", b":", b"\"audio\"", b"\"session\""];
    let mut dice = Dice(11);
    for n in 0..20_000 {
        let mut bytes = seeds[n % seeds.len()].clone();
        for _ in 0..=dice.next() % 4 {
            let at = dice.next() as usize % bytes.len();
            let to = (at + dice.next() as usize % 12).min(bytes.len());
            let word = words[dice.next() as usize % words.len()];
            bytes.splice(at..to, word.iter().copied());
        }
        beta(&bytes);
    }
}

#[test]
fn every_cut_of_real_packets_fills_its_place() {
    let mut encoder = codec::encoder(EncoderSettings { bitrate: 16_000, ..EncoderSettings::default() }).unwrap();
    let sound: Vec<i16> = (0..500 * FRAME).map(|n| {
        let t = n as f64 / 48_000.0;
        (4_000.0 * ((880.0 * t).sin() + (1_500.0 * t).sin() * (9.0 * t).sin() + (5_000.0 * t).sin() * 0.2)) as i16
    }).collect();
    let mut decoder = codec::decoder().unwrap();
    let mut cuts = 0;
    for frame in sound.chunks_exact(FRAME) {
        let packet = encoder.encode(frame).unwrap();
        for end in 0..=packet.len() { opus_packet(&mut *decoder, &packet[..end]); }
        cuts += packet.len() + 1;
    }
    println!("{cuts} cuts of 500 packets");
}

#[test]
fn random_steps_never_overfill_the_jitter_buffer() {
    let mut dice = Dice(3);
    for _ in 0..300 {
        let steps = dice.next() as usize % 900;
        jitter(&dice.bytes(steps));
    }
}
