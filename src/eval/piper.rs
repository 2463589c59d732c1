//! Piper: phonemes of espeak-ng through the model's own table, then one pass of the network on rten.
//!
//! Called by `eval::voices` and by tests. A second neural speaker for measurements, never a voice of the product.

use std::path::Path;
use std::process::{Command, Stdio};

use rten::{Model, NodeId, Value};

/// What stands between and around phonemes.
const PAD: &str = "_";
const BEGIN: &str = "^";
const END: &str = "$";

/// A loaded speaker.
pub struct Piper {
    network: Model,
    inputs: [NodeId; 3],
    output: NodeId,
    table: serde_json::Value,
    rate_hz: u32,
}

impl Piper {
    /// Loads `path` and the table `path.json` beside it.
    ///
    /// # Errors
    /// A sentence that names the file and the command that brings it.
    pub fn load(path: &Path) -> Result<Self, String> {
        let told = |e: String| format!("{}: {e}; bring it with: voxgate models get piper-joe", path.display());
        let text = std::fs::read_to_string(format!("{}.json", path.display())).map_err(|e| told(e.to_string()))?;
        let config: serde_json::Value = serde_json::from_str(&text).map_err(|e| told(e.to_string()))?;
        let network = Model::load_file(path).map_err(|e| told(e.to_string()))?;
        let node = |name: &str| network.node_id(name).map_err(|e| told(e.to_string()));
        let inputs = [node("input")?, node("input_lengths")?, node("scales")?];
        let output = *network.output_ids().first().ok_or_else(|| told("it has no output".into()))?;
        let rate_hz = config["audio"]["sample_rate"].as_u64().and_then(|r| u32::try_from(r).ok()).ok_or_else(|| told("it names no rate".into()))?;
        Ok(Self { inputs, output, table: config["phoneme_id_map"].clone(), rate_hz, network })
    }

    /// A text as mono i16 at the rate that is given with it; `stretch`: 1 is the voice's own pace, 2 is half as fast. No randomness: the same text is the same sound on every machine.
    ///
    /// # Errors
    /// A sentence.
    pub fn speak(&self, text: &str, stretch: f32) -> Result<(Vec<i16>, u32), String> {
        let ids = self.ids(&phonemes(text)?)?;
        let length = ids.len();
        let tensor = |shape: &[usize], data: Vec<i32>| Value::from_shape(shape, data).map_err(|e| e.to_string());
        let scales = Value::from_shape(&[3], vec![0.0f32, stretch, 0.0]).map_err(|e| e.to_string())?;
        let inputs = vec![
            (self.inputs[0], tensor(&[1, length], ids)?.into()), (self.inputs[1], tensor(&[1], vec![length as i32])?.into()), (self.inputs[2], scales.into()),
        ];
        let outputs = self.network.run(inputs, &[self.output], None).map_err(|e| e.to_string())?;
        let sound = outputs.into_iter().next().and_then(|o| o.into_tensor::<f32>()).ok_or("the network gave no sound")?.into_data();
        let peak = sound.iter().fold(1e-6f32, |p, s| p.max(s.abs()));
        Ok((sound.iter().map(|s| (s / peak * 16_000.0) as i16).collect(), self.rate_hz))
    }

    fn ids(&self, phonemes: &str) -> Result<Vec<i32>, String> {
        let id = |symbol: &str| self.table[symbol][0].as_i64().and_then(|n| i32::try_from(n).ok());
        let (Some(pad), Some(begin), Some(end)) = (id(PAD), id(BEGIN), id(END)) else { return Err("the voice's table has no marks".into()) };
        let mut ids = vec![begin, pad];
        // What the table does not know (ties between letters) is left out, as Piper does.
        for known in phonemes.chars().filter_map(|c| id(&c.to_string())) {
            ids.extend([known, pad]);
        }
        ids.push(end);
        Ok(ids)
    }
}

/// Clause by clause, because espeak-ng drops the marks that the network reads its tune from.
fn phonemes(text: &str) -> Result<String, String> {
    let mut all = String::new();
    let mut clause = String::new();
    for c in text.chars().chain(['\n']) {
        if !matches!(c, ',' | '.' | '?' | '!' | ';' | ':' | '\n') {
            clause.push(c);
            continue;
        }
        if !clause.trim().is_empty() {
            let told = |e: String| format!("espeak-ng cannot be run ({e}); bring it with: apt-get install espeak-ng");
            let output = Command::new("espeak-ng").args(["-v", "en-us", "-q", "--ipa", "--", clause.trim()]).stderr(Stdio::null()).output().map_err(|e| told(e.to_string()))?;
            if !output.status.success() { return Err(told(output.status.to_string())) }
            if !all.is_empty() { all.push(' ') }
            all.push_str(String::from_utf8_lossy(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ").as_str());
            if c != '\n' { all.push(c) }
        }
        clause.clear();
    }
    Ok(all)
}
