//! The networks beside the recogniser, on recorded speech: the judge of ends of turns and the second opinion on voice.
//!
//! The numbers were made once with the models' own reference code (features in numpy, network in another runtime).

use std::path::{Path, PathBuf};

use voxgate::listen::silero::{Silero, SileroModel, WINDOW};
use voxgate::listen::smart_turn::SmartTurn;
use voxgate::media::wav;
use voxgate::models::Store;

/// Recorded clips that the Debian package pocketsphinx-testdata brings, 16 kHz.
const CLIPS: &str = "/usr/share/pocketsphinx/test/data";

fn models_dir() -> PathBuf {
    let folder = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    folder("VOXGATE_MODELS").unwrap_or_else(|| {
        let cache = folder("XDG_CACHE_HOME").or_else(|| folder("HOME").map(|home| home.join(".cache")));
        cache.expect("HOME is set").join("voxgate/models")
    })
}

/// A model's checked bytes; a missing one fails the test with the command that brings it.
pub fn model(id: &str) -> Vec<u8> {
    let store = Store::new(models_dir()).unwrap();
    let file = store.manifest().model(id).unwrap().main_file().unwrap().to_owned();
    store.read(id, &file).unwrap_or_else(|error| panic!("{error}"))
}

fn clip(name: &str) -> Vec<i16> {
    let path = Path::new(CLIPS).join(name);
    let bytes = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}; bring it with: apt-get install pocketsphinx-testdata", path.display()));
    match path.extension().is_some_and(|e| e == "raw") {
        true => bytes.as_chunks().0.iter().map(|pair| i16::from_le_bytes(*pair)).collect(),
        false => wav::parse(&bytes).unwrap_or_else(|e| panic!("{}: {e}", path.display())).samples,
    }
}

fn read(sentence: &str) -> String { format!("librivox/sense_and_sensibility_01_austen_64kb-{sentence}.wav") }

#[test]
fn the_judge_of_turns_says_what_its_reference_says() {
    let mut judge = SmartTurn::from_bytes(model("smart-turn")).unwrap_or_else(|e| panic!("{e}"));
    // Some tenths of a clip from its beginning, with 0.2 s of silence after it, and what the reference says. The reference ran
    // the network as it is written: another runtime's rewriting of it moves single answers by up to 0.9.
    let table: [(String, usize, f32); 10] = [
        ("goforward.raw".into(), 10, 0.9885),
        ("goforward.raw".into(), 4, 0.9619),
        ("numbers.raw".into(), 10, 0.0860),
        ("numbers.raw".into(), 5, 0.0206),
        ("something.raw".into(), 10, 0.9880),
        ("something.raw".into(), 6, 0.0717),
        (read("0870"), 10, 0.9865),
        (read("0870"), 6, 0.0115),
        (read("0880"), 8, 0.0232),
        (read("0920"), 8, 0.9816),
    ];
    let mut seen = Vec::new();
    for (name, tenths, wanted) in &table {
        let sound = clip(name);
        let mut cut = sound[..sound.len() * tenths / 10].to_vec();
        cut.extend([0; 3_200]);
        let said = judge.complete(&cut);
        if (said - wanted).abs() > 0.1 {
            seen.push(format!("{name} {tenths}/10: {said:.4} wanted {wanted:.4}"));
        }
    }
    // The network is 8 bit: its answers come in steps, and the last bit of a feature moves one by a step (0.05 near the ends).
    assert!(seen.is_empty(), "{}", seen.join("\n"));
}

#[test]
fn the_second_opinion_says_what_its_reference_says() {
    let model = SileroModel::from_bytes(model("silero")).unwrap_or_else(|e| panic!("{e}"));
    // Windows, mean, last, and how many of them over one half.
    let table: [(String, usize, f32, f32, usize); 4] = [
        ("goforward.raw".into(), 87, 0.61559, 0.03460, 54),
        ("numbers.raw".into(), 125, 0.71418, 0.01607, 89),
        ("something.raw".into(), 93, 0.58273, 0.00236, 54),
        (read("0870"), 221, 0.92609, 0.01775, 204),
    ];
    for (name, windows, mean, last, voiced) in table {
        let mut ear = Silero::new(model.clone());
        let said: Vec<f32> = clip(&name).as_chunks::<WINDOW>().0.iter().map(|w| ear.push(w).unwrap()).collect();
        let found = said.iter().sum::<f32>() / said.len() as f32;
        assert_eq!(said.len(), windows, "{name}");
        assert!((found - mean).abs() < 1e-3 && (said[windows - 1] - last).abs() < 1e-3, "{name}: mean {found}, last {}", said[windows - 1]);
        assert_eq!(said.iter().filter(|p| **p > 0.5).count(), voiced, "{name}");
    }
}
