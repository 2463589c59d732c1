//! Looks through a ggml Whisper file before native code may read it.
//!
//! Owns the check of magic, sizes and every tensor's extent: the native loader trusts the number of dimensions and the lengths
//! it reads. Called before each load. Pure; says what the file is, or what is wrong with it.

use super::convert::{MAGIC, TYPE_F16, TYPE_F32, TYPE_Q8_0};

/// What a well-formed file says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Size of the vocabulary: 51864 English only, 51865 many languages, 51866 large-v3.
    pub vocabulary: i32,
    /// Width of the model.
    pub state: i32,
    /// Encoder layers (4 tiny, 6 base, 12 small, 24 medium, 32 large).
    pub audio_layers: i32,
    /// Decoder layers.
    pub text_layers: i32,
    /// Mel bands, 80 or 128.
    pub mels: i32,
    /// Tensors in the file.
    pub tensors: usize,
}

/// What is wrong with a file that claims to be a Whisper model.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// Not a ggml file at all.
    #[error("it does not begin like a ggml file")]
    Magic,
    /// Cut off, or a length points past the end.
    #[error("it ends inside {0}")]
    Short(&'static str),
    /// A number outside of what Whisper models have.
    #[error("{what} is {value}")]
    Number {
        /// The field.
        what: &'static str,
        /// What it holds.
        value: i64,
    },
}

struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn skip(&mut self, count: u64, what: &'static str) -> Result<&'a [u8], HeaderError> {
        let count = usize::try_from(count).map_err(|_| HeaderError::Short(what))?;
        let (taken, rest) = self.0.split_at_checked(count).ok_or(HeaderError::Short(what))?;
        self.0 = rest;
        Ok(taken)
    }

    fn number(&mut self, what: &'static str) -> Result<i32, HeaderError> {
        let bytes = self.skip(4, what)?;
        Ok(i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    fn within(&mut self, what: &'static str, range: std::ops::RangeInclusive<i32>) -> Result<i32, HeaderError> {
        let value = self.number(what)?;
        if range.contains(&value) { Ok(value) } else { Err(HeaderError::Number { what, value: value.into() }) }
    }
}

/// The longest token of Whisper's vocabularies has 128 bytes; names of tensors stay under 64.
const MAX_NAME: i32 = 256;

/// Reads the whole structure of the file without looking at weights.
///
/// # Errors
/// [`HeaderError`] names the first thing that is not as it must be.
pub fn check(bytes: &[u8]) -> Result<Head, HeaderError> {
    let mut cursor = Cursor(bytes);
    if cursor.number("the head").map_err(|_| HeaderError::Magic)? != MAGIC as i32 {
        return Err(HeaderError::Magic);
    }
    let vocabulary = cursor.within("n_vocab", 51_864..=51_866)?;
    cursor.within("n_audio_ctx", 1_500..=1_500)?;
    let state = cursor.within("n_audio_state", 64..=2_048)?;
    cursor.within("n_audio_head", 1..=64)?;
    let audio_layers = cursor.within("n_audio_layer", 1..=64)?;
    cursor.within("n_text_ctx", 448..=448)?;
    cursor.within("n_text_state", state..=state)?;
    cursor.within("n_text_head", 1..=64)?;
    let text_layers = cursor.within("n_text_layer", 1..=64)?;
    let mels = cursor.within("n_mels", 80..=128)?;
    cursor.within("ftype", 0..=4_000)?;
    cursor.within("the mel table's height", mels..=mels)?;
    let bins = cursor.within("the mel table's width", 201..=201)?;
    cursor.skip(mels as u64 * bins as u64 * 4, "the mel table")?;
    let tokens = cursor.within("the vocabulary's length", 1..=vocabulary)?;
    for _ in 0..tokens {
        let length = cursor.within("a token's length", 0..=MAX_NAME)?;
        cursor.skip(length as u64, "the vocabulary")?;
    }
    let tensors = walk_tensors(&mut cursor, audio_layers, text_layers)?;
    Ok(Head { vocabulary, state, audio_layers, text_layers, mels, tensors })
}

fn walk_tensors(cursor: &mut Cursor, audio_layers: i32, text_layers: i32) -> Result<usize, HeaderError> {
    // What one model of that depth has at most; a file with more is not one.
    let most = 25 + 15 * audio_layers as usize + 24 * text_layers as usize;
    let mut count = 0;
    while !cursor.0.is_empty() {
        let dimensions = cursor.within("n_dims", 1..=4)?;
        let name = cursor.within("a name's length", 1..=MAX_NAME)?;
        let kind = cursor.number("a tensor's type")?;
        let mut elements = 1_i64;
        for _ in 0..dimensions {
            elements *= i64::from(cursor.within("a tensor's size", 1..=1 << 20)?);
            // The native loader multiplies in 32 bits.
            if elements > i64::from(i32::MAX) {
                return Err(HeaderError::Number { what: "a tensor's element count", value: elements });
            }
        }
        cursor.skip(name as u64, "a tensor's name")?;
        cursor.skip(bytes_of(kind, elements)?, "a tensor")?;
        count += 1;
        if count > most {
            return Err(HeaderError::Number { what: "the number of tensors", value: count as i64 });
        }
    }
    if count == 0 { Err(HeaderError::Short("the tensors")) } else { Ok(count) }
}

/// Bytes of that many elements, by ggml's block sizes.
fn bytes_of(kind: i32, elements: i64) -> Result<u64, HeaderError> {
    // (values in a block, bytes of a block) for the types that Whisper files are published in.
    let (block, size) = match kind {
        TYPE_F32 => (1, 4),
        TYPE_F16 => (1, 2),
        2 => (32, 18),
        3 => (32, 20),
        6 => (32, 22),
        7 => (32, 24),
        TYPE_Q8_0 => (32, 34),
        value => return Err(HeaderError::Number { what: "a tensor's type", value: value.into() }),
    };
    if elements % block != 0 {
        return Err(HeaderError::Number { what: "the element count of a quantised tensor", value: elements });
    }
    Ok((elements / block * size) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with the head of tiny.en, a vocabulary of one token and one tensor of `dimensions` ones.
    fn file(vocabulary: i32, dimensions: i32) -> Vec<u8> {
        let mut out = MAGIC.to_le_bytes().to_vec();
        let put = |out: &mut Vec<u8>, numbers: &[i32]| numbers.iter().for_each(|n| out.extend(n.to_le_bytes()));
        put(&mut out, &[vocabulary, 1500, 384, 6, 4, 448, 384, 6, 4, 80, 1, 80, 201]);
        out.extend(vec![0; 80 * 201 * 4]);
        put(&mut out, &[1, 1]);
        out.push(b'a');
        put(&mut out, &[dimensions, 1, TYPE_F32]);
        put(&mut out, &vec![1; dimensions.clamp(0, 64) as usize]);
        out.push(b'x');
        out.extend([0; 4]);
        out
    }

    #[test]
    fn a_good_file_passes_and_every_cut_of_it_fails() {
        let good = file(51_864, 2);
        assert_eq!(check(&good).unwrap().tensors, 1);
        for length in (0..64).chain(good.len() - 40..good.len()) {
            assert!(check(&good[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn dimensions_that_would_overrun_the_loader_are_refused() {
        for dimensions in [-1, 0, 5, 64] {
            let error = check(&file(51_864, dimensions)).unwrap_err();
            assert_eq!(error, HeaderError::Number { what: "n_dims", value: dimensions.into() });
        }
    }

    #[test]
    fn other_vocabularies_and_other_files_are_refused() {
        assert!(matches!(check(&file(51_867, 1)), Err(HeaderError::Number { what: "n_vocab", .. })));
        assert_eq!(check(b"RIFF...."), Err(HeaderError::Magic));
        assert_eq!(check(b""), Err(HeaderError::Magic));
    }
}
