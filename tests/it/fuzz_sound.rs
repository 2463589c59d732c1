//! Bytes from anywhere, at the resampler, the WAV reader and the check of a model's head: plain functions that must not panic, run
//! on every file of `tests/corpus/sound` and on some thousand seeded changes of them. A crash that is found becomes a file there.

use std::path::{Path, PathBuf};

use voxgate::media::resample::{Resampler, resample_all};
use voxgate::media::wav;
use voxgate::models::check_header;

/// Changes tried on each file.
const ROUNDS: usize = 400;

/// Eight bytes of settings (two rates, flags, length of a piece, trim), then samples.
fn resampler(bytes: &[u8]) {
    let Some((head, rest)) = bytes.split_first_chunk::<8>() else { return };
    let rate = |a: u8, b: u8| 8_000 + (u64::from(u16::from_le_bytes([a, b])) * 88_000 / 65_535) as u32;
    let (from, to) = (rate(head[0], head[1]), rate(head[2], head[3]));
    let samples: Vec<i16> = rest.as_chunks::<2>().0.iter().map(|b| i16::from_le_bytes(*b)).take(2_000).collect();
    let mut r = if head[4] & 1 == 0 { Resampler::new(from, to) } else { Resampler::adjustable(from, to) };
    let mut out = Vec::new();
    for chunk in samples.chunks(usize::from(head[5]).max(1)) {
        r.trim(i32::from(i16::from_le_bytes([head[6], head[7]])));
        r.push(chunk, &mut out);
    }
    let most = samples.len() as u64 * u64::from(to) / u64::from(from);
    assert!(out.len() as u64 <= most + most / 50 + 2, "{from}->{to}: {} for {}", out.len(), samples.len());
    r.flush(&mut out);
    if head[4] & 2 != 0 { assert_eq!(resample_all(&samples, from, to).len() as u64, most) }
}

fn wav_reader(bytes: &[u8]) {
    if let Ok(read) = wav::parse(bytes) {
        assert!(!read.samples.is_empty() && read.samples.len() <= bytes.len());
        assert!((wav::MIN_RATE_HZ..=wav::MAX_RATE_HZ).contains(&read.rate_hz));
    }
}

fn model_head(bytes: &[u8]) {
    if let Ok(head) = check_header(bytes) {
        assert!((51_864..=51_866).contains(&head.vocabulary) && head.tensors > 0 && head.mels <= 128);
    }
}

struct Chance(u64);

impl Chance {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n.max(1)
    }
}

/// One to four changes: a bit, a number that is known to hurt, a cut, a part twice, a part of another file.
fn changed(bytes: &[u8], others: &[Vec<u8>], chance: &mut Chance) -> Vec<u8> {
    const NUMBERS: [u32; 12] = [0, 1, 2, 4, 255, 0x7fff, 0xffff, 0x10000, 0x7fff_ffff, 0x8000_0000, 0xffff_fffe, 0xffff_ffff];
    let mut out = bytes.to_vec();
    for _ in 0..=chance.below(4) {
        // Most of what is read lies at the front.
        let at = if chance.below(3) == 0 { chance.below(out.len() + 1) } else { chance.below(out.len().min(96) + 1) };
        match chance.below(6) {
            0 | 1 => if let Some(byte) = out.get_mut(at) { *byte ^= 1 << chance.below(8) },
            2 => { let number = NUMBERS[chance.below(NUMBERS.len())].to_le_bytes(); for (slot, byte) in out.iter_mut().skip(at).zip(number) { *slot = byte } }
            3 => out.truncate(at),
            4 => { let end = (at + chance.below(64)).min(out.len()); let part = out[at.min(end)..end].to_vec(); out.splice(at..at, part); }
            _ => { let other = &others[chance.below(others.len())]; let end = chance.below(other.len().min(128) + 1); out.truncate(at); out.extend_from_slice(&other[..end]) }
        }
    }
    out
}

fn corpus(kind: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/sound").join(kind);
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())).map(|f| f.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 5, "{} holds a corpus", folder.display());
    files.into_iter().map(|path| { let bytes = std::fs::read(&path).unwrap(); (path, bytes) }).collect()
}

fn fuzz(kind: &str, target: fn(&[u8])) {
    let files = corpus(kind);
    let all: Vec<Vec<u8>> = files.iter().map(|f| f.1.clone()).collect();
    let mut chance = Chance(20_261_130);
    let mut tried = 0;
    for (path, bytes) in &files {
        for round in 0..=ROUNDS {
            let input = if round == 0 { bytes.clone() } else { changed(bytes, &all, &mut chance) };
            let held = std::panic::catch_unwind(|| target(&input));
            assert!(held.is_ok(), "{kind}: round {round} of {} ({} bytes): {:02x?}", path.display(), input.len(), &input[..input.len().min(256)]);
            tried += 1;
        }
    }
    println!("{kind}: {tried} inputs from {} files", files.len());
}

#[test]
fn the_resampler_holds() { fuzz("resampler", resampler) }

#[test]
fn the_wav_reader_holds() { fuzz("wav", wav_reader) }

#[test]
fn the_check_of_a_models_head_holds() { fuzz("model", model_head) }
