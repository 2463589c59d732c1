//! Turns a CTranslate2 Whisper model into the ggml file that whisper.cpp loads.
//!
//! Owns the order and names of the tensors and the file's head. Called by the store after the sources were checked. Pure: bytes
//! in, bytes out; the same input gives the same output, but for the last bit of the mel table where a maths library differs.

use super::ct2::{Ct2, Ct2Error, Tensor};
use crate::media::mel;

/// How matrices are stored in the written file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
pub enum Encoding {
    /// 16-bit floats.
    #[serde(rename = "f16")]
    F16,
    /// Blocks of 32 signed bytes with one f16 scale: half the size, the fastest on a CPU with AVX2.
    #[serde(rename = "q8_0")]
    Q8_0,
}

/// Why a conversion stopped.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    /// The weights cannot be read.
    #[error("the weights: {0}")]
    Weights(#[from] Ct2Error),
    /// The vocabulary cannot be read.
    #[error("the vocabulary: {0}")]
    Vocabulary(String),
    /// The weights are not those of a Whisper model.
    #[error("not a Whisper model: {0}")]
    Shape(String),
}

/// First word of a ggml file.
pub(super) const MAGIC: u32 = 0x6767_6d6c;
/// Type numbers of tensors in the file (ggml.h, `enum ggml_type`).
pub(super) const TYPE_F32: i32 = 0;
pub(super) const TYPE_F16: i32 = 1;
pub(super) const TYPE_Q8_0: i32 = 8;
/// Values that share one scale in q8_0.
const BLOCK: usize = 32;
/// Width of one attention head in every Whisper model.
const HEAD: usize = 64;
/// Frames of sound that the encoder sees at once (30 s).
const AUDIO_CTX: usize = 1500;

/// Stored as f32 although they have two dimensions: whisper.cpp asks for it.
const KEPT_WIDE: [&str; 4] =
    ["encoder.conv1.bias", "encoder.conv2.bias", "encoder.positional_embedding", "decoder.positional_embedding"];

/// Converts a whole model. `tokenizer` is the text of its `tokenizer.json`.
///
/// # Errors
/// [`ConvertError`] when either input is not what a Whisper model looks like.
pub fn to_ggml(weights: &[u8], tokenizer: &str, encoding: Encoding) -> Result<Vec<u8>, ConvertError> {
    let tensors = Collector::new(Ct2::open(weights)?).collect()?;
    let head = Head::of(&tensors)?;
    let mut out = Vec::with_capacity(weights.len());
    head.write(&mut out, encoding);
    write_vocabulary(&mut out, &vocabulary(tokenizer, head.tokens())?);
    for (name, tensor) in &tensors.list {
        write_tensor(&mut out, name, tensor, encoding)?;
    }
    Ok(out)
}

/// The tensors under whisper.cpp's names, in the order they are written.
struct Collected {
    list: Vec<(String, Tensor)>,
    encoder_layers: usize,
    decoder_layers: usize,
}

impl Collected {
    fn size(&self, name: &str, axis: usize) -> Result<usize, ConvertError> {
        let found = self.list.iter().find(|(each, _)| each == name).and_then(|(_, tensor)| tensor.shape.get(axis));
        found.copied().ok_or_else(|| ConvertError::Shape(format!("{name} has no axis {axis}")))
    }
}

struct Collector<'a> {
    source: Ct2<'a>,
    list: Vec<(String, Tensor)>,
}

impl<'a> Collector<'a> {
    fn new(source: Ct2<'a>) -> Self {
        Self { source, list: Vec::new() }
    }

    fn collect(mut self) -> Result<Collected, ConvertError> {
        let (encoder_layers, decoder_layers) = (self.layers("encoder"), self.layers("decoder"));
        for conv in ["conv1", "conv2"] {
            self.copy(&format!("encoder.{conv}.weight"), &format!("encoder/{conv}/weight"))?;
            let mut bias = self.source.tensor(&format!("encoder/{conv}/bias"))?;
            bias.shape.push(1);
            self.list.push((format!("encoder.{conv}.bias"), bias));
        }
        self.positions()?;
        self.copy("decoder.positional_embedding", "decoder/position_encodings/encodings")?;
        self.copy("decoder.token_embedding.weight", "decoder/embeddings/weight")?;
        self.norm("encoder.ln_post", "encoder/layer_norm")?;
        self.norm("decoder.ln", "decoder/layer_norm")?;
        for (side, count) in [("encoder", encoder_layers), ("decoder", decoder_layers)] {
            for layer in 0..count {
                self.block(side, layer)?;
            }
        }
        Ok(Collected { list: self.list, encoder_layers, decoder_layers })
    }

    fn layers(&self, side: &str) -> usize {
        (0..).take_while(|n| self.source.has(&format!("{side}/layer_{n}/ffn/linear_0/weight"))).count()
    }

    fn block(&mut self, side: &str, layer: usize) -> Result<(), ConvertError> {
        let (to, from) = (format!("{side}.blocks.{layer}"), format!("{side}/layer_{layer}"));
        self.self_attention(&format!("{to}.attn"), &format!("{from}/self_attention"))?;
        self.norm(&format!("{to}.attn_ln"), &format!("{from}/self_attention/layer_norm"))?;
        if side == "decoder" {
            self.cross_attention(&to, &from)?;
        }
        self.linear(&format!("{to}.mlp.0"), &format!("{from}/ffn/linear_0"))?;
        self.linear(&format!("{to}.mlp.2"), &format!("{from}/ffn/linear_1"))?;
        self.norm(&format!("{to}.mlp_ln"), &format!("{from}/ffn/layer_norm"))
    }

    /// CTranslate2 keeps query, key and value in one matrix, one below the other.
    fn self_attention(&mut self, to: &str, from: &str) -> Result<(), ConvertError> {
        self.split(to, &format!("{from}/linear_0"), &["query", "key", "value"])?;
        self.linear(&format!("{to}.out"), &format!("{from}/linear_1"))
    }

    fn cross_attention(&mut self, to: &str, from: &str) -> Result<(), ConvertError> {
        let cross = format!("{to}.cross_attn");
        self.linear(&format!("{cross}.query"), &format!("{from}/attention/linear_0"))?;
        self.split(&cross, &format!("{from}/attention/linear_1"), &["key", "value"])?;
        self.linear(&format!("{cross}.out"), &format!("{from}/attention/linear_2"))?;
        self.norm(&format!("{to}.cross_attn_ln"), &format!("{from}/attention/layer_norm"))
    }

    /// Cuts a stacked matrix and its bias into `names`. Whisper's keys have no bias, so that part must be zero and is left out.
    fn split(&mut self, to: &str, from: &str, names: &[&str]) -> Result<(), ConvertError> {
        let weight = self.source.tensor(&format!("{from}/weight"))?;
        let bias = self.source.tensor(&format!("{from}/bias"))?;
        let [rows, width] = weight.shape[..] else {
            return Err(ConvertError::Shape(format!("{from} is not a matrix")));
        };
        if rows != names.len() * width || bias.values.len() != rows {
            return Err(ConvertError::Shape(format!("{from} is {rows} x {width}, not {} stacked squares", names.len())));
        }
        for (index, name) in names.iter().enumerate() {
            let part = |all: &[f32], one: usize| all[index * one..(index + 1) * one].to_vec();
            let values = part(&weight.values, width * width);
            self.list.push((format!("{to}.{name}.weight"), Tensor { shape: vec![width, width], values }));
            let values = part(&bias.values, width);
            if *name != "key" {
                self.list.push((format!("{to}.{name}.bias"), Tensor { shape: vec![width], values }));
            } else if values.iter().any(|value| *value != 0.0) {
                return Err(ConvertError::Shape(format!("the keys of {from} have a bias")));
            }
        }
        Ok(())
    }

    fn positions(&mut self) -> Result<(), ConvertError> {
        const NAME: &str = "encoder/position_encodings/encodings";
        let tensor = if self.source.has(NAME) {
            self.source.tensor(NAME)?
        } else {
            let width = self.source.tensor("encoder/conv1/weight")?.shape.first().copied().unwrap_or(0);
            sinusoids(AUDIO_CTX, width)
        };
        self.list.push(("encoder.positional_embedding".to_owned(), tensor));
        Ok(())
    }

    fn copy(&mut self, to: &str, from: &str) -> Result<(), ConvertError> {
        let tensor = self.source.tensor(from)?;
        self.list.push((to.to_owned(), tensor));
        Ok(())
    }

    fn norm(&mut self, to: &str, from: &str) -> Result<(), ConvertError> {
        self.copy(&format!("{to}.weight"), &format!("{from}/gamma"))?;
        self.copy(&format!("{to}.bias"), &format!("{from}/beta"))
    }

    fn linear(&mut self, to: &str, from: &str) -> Result<(), ConvertError> {
        self.copy(&format!("{to}.weight"), &format!("{from}/weight"))?;
        self.copy(&format!("{to}.bias"), &format!("{from}/bias"))
    }
}

/// Whisper's fixed encoder positions: sines in the left half, cosines in the right, periods from 2 pi to 20,000 pi.
fn sinusoids(length: usize, width: usize) -> Tensor {
    let half = (width / 2).max(2);
    let step = 10_000_f64.ln() / (half - 1) as f64;
    let mut values = Vec::with_capacity(length * half * 2);
    for at in 0..length {
        let angle = |n: usize| at as f64 * (-step * n as f64).exp();
        values.extend((0..half).map(|n| angle(n).sin() as f32));
        values.extend((0..half).map(|n| angle(n).cos() as f32));
    }
    Tensor { shape: vec![length, half * 2], values }
}

/// The numbers at the head of the file.
struct Head {
    vocabulary: usize,
    audio_ctx: usize,
    text_ctx: usize,
    state: usize,
    encoder_layers: usize,
    decoder_layers: usize,
    mels: usize,
}

impl Head {
    fn of(tensors: &Collected) -> Result<Self, ConvertError> {
        let head = Self {
            vocabulary: tensors.size("decoder.token_embedding.weight", 0)?,
            audio_ctx: tensors.size("encoder.positional_embedding", 0)?,
            text_ctx: tensors.size("decoder.positional_embedding", 0)?,
            state: tensors.size("encoder.conv1.weight", 0)?,
            encoder_layers: tensors.encoder_layers,
            decoder_layers: tensors.decoder_layers,
            mels: tensors.size("encoder.conv1.weight", 1)?,
        };
        if head.state == 0 || !head.state.is_multiple_of(HEAD) || head.mels == 0 || head.mels > 512 {
            return Err(ConvertError::Shape(format!("{} wide with {} mel bands", head.state, head.mels)));
        }
        Ok(head)
    }

    /// How many of the vocabulary are text; the rest are marks that whisper.cpp names itself. Multilingual models have one more.
    fn tokens(&self) -> usize {
        if self.vocabulary >= 51_865 { 50_257 } else { 50_256 }
    }

    fn write(&self, out: &mut Vec<u8>, encoding: Encoding) {
        let file_type = match encoding {
            Encoding::F16 => 1,
            // 7 is q8_0; 2000 times the version of the quantised formats is added.
            Encoding::Q8_0 => 2007,
        };
        let heads = self.state / HEAD;
        out.extend(MAGIC.to_le_bytes());
        for number in [
            self.vocabulary, self.audio_ctx, self.state, heads, self.encoder_layers, self.text_ctx, self.state, heads,
            self.decoder_layers, self.mels, file_type, self.mels, mel::BINS,
        ] {
            put(out, number);
        }
        for value in mel::filters(self.mels) {
            out.extend(value.to_le_bytes());
        }
    }
}

fn put(out: &mut Vec<u8>, number: usize) {
    out.extend((number as i32).to_le_bytes());
}

/// The byte strings of the first `count` tokens, out of a `tokenizer.json`.
fn vocabulary(tokenizer: &str, count: usize) -> Result<Vec<Vec<u8>>, ConvertError> {
    let broken = |why: &str| ConvertError::Vocabulary(why.to_owned());
    let json: serde_json::Value = serde_json::from_str(tokenizer).map_err(|error| broken(&error.to_string()))?;
    let table = json["model"]["vocab"].as_object().ok_or_else(|| broken("no model.vocab"))?;
    let bytes_of = printable_bytes();
    let mut tokens = vec![Vec::new(); count];
    for (text, id) in table {
        let id = id.as_u64().ok_or_else(|| broken("a token without a number"))?;
        let Some(slot) = usize::try_from(id).ok().and_then(|id| tokens.get_mut(id)) else { continue };
        if text != "<|endoftext|>" {
            let bytes = text.chars().map(|c| bytes_of.get(&c).copied()).collect::<Option<Vec<u8>>>();
            *slot = bytes.ok_or_else(|| broken(&format!("token {id} is not in the byte alphabet")))?;
        }
    }
    Ok(tokens)
}

/// GPT-2's alphabet: every byte has one printable character; those that print already stand for themselves.
fn printable_bytes() -> std::collections::HashMap<char, u8> {
    let prints = |byte: &u8| matches!(byte, 33..=126 | 161..=172 | 174..=255);
    let hidden = (0..=255_u8).filter(|byte| !prints(byte)).zip(256_u32..);
    let hidden = hidden.filter_map(|(byte, code)| char::from_u32(code).map(|c| (c, byte)));
    (0..=255_u8).filter(prints).map(|byte| (char::from(byte), byte)).chain(hidden).collect()
}

fn write_vocabulary(out: &mut Vec<u8>, tokens: &[Vec<u8>]) {
    put(out, tokens.len());
    for token in tokens {
        put(out, token.len());
        out.extend(token);
    }
}

fn write_tensor(out: &mut Vec<u8>, name: &str, tensor: &Tensor, encoding: Encoding) -> Result<(), ConvertError> {
    let wide = tensor.shape.len() < 2 || KEPT_WIDE.contains(&name);
    let kind = match encoding {
        _ if wide => TYPE_F32,
        Encoding::Q8_0 if tensor.shape.len() == 2 => TYPE_Q8_0,
        _ => TYPE_F16,
    };
    if kind == TYPE_Q8_0 && !tensor.shape[1].is_multiple_of(BLOCK) {
        return Err(ConvertError::Shape(format!("{name}'s rows are not a multiple of {BLOCK}")));
    }
    put(out, tensor.shape.len());
    put(out, name.len());
    out.extend(kind.to_le_bytes());
    tensor.shape.iter().rev().for_each(|size| put(out, *size));
    out.extend(name.as_bytes());
    match kind {
        TYPE_F32 => tensor.values.iter().for_each(|value| out.extend(value.to_le_bytes())),
        TYPE_F16 => tensor.values.iter().for_each(|value| out.extend(half::f16::from_f32(*value).to_le_bytes())),
        _ => tensor.values.chunks(BLOCK).for_each(|block| quantise(out, block)),
    }
    Ok(())
}

/// One q8_0 block: the scale as f16, then each value divided by the (unrounded) scale, ties to even.
fn quantise(out: &mut Vec<u8>, block: &[f32]) {
    let scale = block.iter().fold(0.0_f32, |most, value| most.max(value.abs())) / 127.0;
    let inverse = if scale > 0.0 { 1.0 / scale } else { 0.0 };
    out.extend(half::f16::from_f32(scale).to_le_bytes());
    out.extend(block.iter().map(|value| ((value * inverse).round_ties_even() as i8).cast_unsigned()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_keeps_its_values_within_half_a_step() {
        let block: Vec<f32> = (0..32).map(|n| (n as f32 - 16.0) * 0.031).collect();
        let mut out = Vec::new();
        quantise(&mut out, &block);
        assert_eq!(out.len(), 34);
        let scale = half::f16::from_le_bytes([out[0], out[1]]).to_f32();
        for (value, byte) in block.iter().zip(&out[2..]) {
            assert!((f32::from(byte.cast_signed()) * scale - value).abs() <= scale * 0.6, "{value}");
        }
        out.clear();
        quantise(&mut out, &[0.0; 32]);
        assert!(out.iter().all(|byte| *byte == 0));
    }

    #[test]
    fn the_byte_alphabet_is_complete() {
        let alphabet = printable_bytes();
        assert_eq!(alphabet.len(), 256);
        assert_eq!(alphabet[&'Ġ'], b' ');
        assert_eq!(alphabet[&'a'], b'a');
    }

    #[test]
    fn tokens_become_bytes_and_the_rest_is_left_out() {
        let json = r#"{"model":{"vocab":{"Ġhi":1,"a":0,"<|endoftext|>":2,"far":99}}}"#;
        assert_eq!(vocabulary(json, 3).unwrap(), vec![b"a".to_vec(), b" hi".to_vec(), vec![]]);
        assert!(vocabulary("{}", 3).is_err());
        assert!(vocabulary(r#"{"model":{"vocab":{"日":0}}}"#, 3).is_err());
    }

    /// A Whisper of one layer, 64 wide, with the right names and shapes.
    pub(crate) fn tiny_whisper() -> Vec<u8> {
        let w = 64;
        let mut list: Vec<(String, Vec<usize>, Vec<f32>)> = Vec::new();
        let mut add = |name: String, shape: Vec<usize>| {
            let count = shape.iter().product();
            list.push((name, shape, (0..count).map(|n| (n % 13) as f32 * 0.1).collect()));
        };
        for (conv, inner) in [("conv1", 80), ("conv2", w)] {
            add(format!("encoder/{conv}/weight"), vec![w, inner, 3]);
            add(format!("encoder/{conv}/bias"), vec![w]);
        }
        add("decoder/position_encodings/encodings".into(), vec![448, w]);
        add("decoder/embeddings/weight".into(), vec![51_864, w]);
        for side in ["encoder", "decoder"] {
            let mut norm = |name: String| {
                add(format!("{name}/gamma"), vec![w]);
                add(format!("{name}/beta"), vec![w]);
            };
            norm(format!("{side}/layer_norm"));
            norm(format!("{side}/layer_0/self_attention/layer_norm"));
            norm(format!("{side}/layer_0/ffn/layer_norm"));
            norm(format!("{side}/layer_0/attention/layer_norm"));
            let mut linear = |name: &str, rows: usize, columns: usize| {
                add(format!("{side}/layer_0/{name}/weight"), vec![rows, columns]);
                add(format!("{side}/layer_0/{name}/bias"), vec![rows]);
            };
            linear("self_attention/linear_0", 3 * w, w);
            linear("self_attention/linear_1", w, w);
            linear("attention/linear_0", w, w);
            linear("attention/linear_1", 2 * w, w);
            linear("attention/linear_2", w, w);
            linear("ffn/linear_0", 4 * w, w);
            linear("ffn/linear_1", w, 4 * w);
        }
        for (name, _, values) in &mut list {
            if name.ends_with("self_attention/linear_0/bias") {
                values[w..2 * w].fill(0.0);
            } else if name.ends_with("/attention/linear_1/bias") {
                values[..w].fill(0.0);
            }
        }
        crate::models::ct2::tests::file(&list, &[])
    }

    #[test]
    fn a_small_model_converts_to_a_file_that_the_header_check_accepts() {
        let json = r#"{"model":{"vocab":{"a":0}}}"#;
        for encoding in [Encoding::F16, Encoding::Q8_0] {
            let mut out = to_ggml(&tiny_whisper(), json, encoding).unwrap();
            let head = crate::models::header::check(&out).unwrap();
            assert_eq!((head.state, head.text_layers, head.tensors), (64, 1, 11 + 15 + 24));
            out.pop();
            assert!(crate::models::header::check(&out).is_err());
        }
    }

    #[test]
    fn keys_with_a_bias_are_refused() {
        let mut list = vec![("x/weight".to_owned(), vec![4, 2], vec![0.0; 8])];
        list.push(("x/bias".to_owned(), vec![4], vec![1.0, 0.0, 0.0, 0.0]));
        let bytes = crate::models::ct2::tests::file(&list, &[]);
        let mut collector = Collector::new(Ct2::open(&bytes).unwrap());
        assert!(matches!(collector.split("x", "x", &["key", "value"]), Err(ConvertError::Shape(_))));
        assert!(matches!(collector.split("x", "x", &["value", "other"]), Ok(())));
    }
}
