//! Reads a CTranslate2 `model.bin`: named tensors in a little-endian file.
//!
//! Owns the byte format (binary versions 3 to 6). Called by the converter. Pure: bytes in, borrowed tensors out; every length
//! is checked before it is used, because the file came over a network.

use std::collections::HashMap;

/// What is wrong with the bytes of a model file.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Ct2Error {
    /// The file ends inside a field.
    #[error("the file ends early, at byte {0}")]
    Short(usize),
    /// A version this reader does not know.
    #[error("binary version {0} is not one of 3 to 6")]
    Version(u32),
    /// A name or alias is not text.
    #[error("a name at byte {0} is not UTF-8")]
    Name(usize),
    /// The bytes of a tensor do not match its shape.
    #[error("tensor {name} has {bytes} bytes, its shape needs {needed}")]
    Size {
        /// The tensor.
        name: String,
        /// Bytes in the file.
        bytes: usize,
        /// Bytes its shape asks for.
        needed: usize,
    },
    /// An element type other than f32 and f16.
    #[error("tensor {name} has element type {kind}; only f32 (0) and f16 (4) are read")]
    Kind {
        /// The tensor.
        name: String,
        /// CTranslate2's number of the type.
        kind: u8,
    },
    /// A tensor that the conversion needs is not there.
    #[error("the file has no tensor {0}")]
    Missing(String),
}

/// A tensor as numbers, rows first.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Sizes, outermost first.
    pub shape: Vec<usize>,
    /// The values; f16 is widened exactly.
    pub values: Vec<f32>,
}

struct Entry<'a> {
    shape: Vec<usize>,
    kind: u8,
    bytes: &'a [u8],
}

/// An opened model file.
pub struct Ct2<'a> {
    entries: HashMap<String, Entry<'a>>,
    aliases: HashMap<String, String>,
}

/// Elements of one tensor are never this many (Whisper large has 66 million in its biggest).
const MAX_ELEMENTS: usize = 1 << 28;

const F32: u8 = 0;
const F16: u8 = 4;

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Ct2Error> {
        let end = self.at.checked_add(count).filter(|end| *end <= self.bytes.len()).ok_or(Ct2Error::Short(self.at))?;
        let slice = &self.bytes[self.at..end];
        self.at = end;
        Ok(slice)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Ct2Error> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N)?);
        Ok(out)
    }

    fn u8(&mut self) -> Result<u8, Ct2Error> {
        Ok(self.array::<1>()?[0])
    }

    fn u32(&mut self) -> Result<u32, Ct2Error> {
        self.array().map(u32::from_le_bytes)
    }

    /// A string: u16 length that counts a closing zero byte.
    fn string(&mut self) -> Result<String, Ct2Error> {
        let start = self.at;
        let length = u16::from_le_bytes(self.array()?);
        let bytes = self.take(length.into())?;
        let bytes = bytes.strip_suffix(&[0]).unwrap_or(bytes);
        std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| Ct2Error::Name(start))
    }
}

impl<'a> Ct2<'a> {
    /// Finds every tensor in the file without copying it.
    ///
    /// # Errors
    /// [`Ct2Error`] for anything that is not a complete file of a known version.
    pub fn open(bytes: &'a [u8]) -> Result<Self, Ct2Error> {
        let mut cursor = Cursor { bytes, at: 0 };
        let version = cursor.u32()?;
        if !(3..=6).contains(&version) {
            return Err(Ct2Error::Version(version));
        }
        let _spec = cursor.string()?;
        let _revision = cursor.u32()?;
        let mut entries = HashMap::new();
        for _ in 0..cursor.u32()? {
            let (name, entry) = read_entry(&mut cursor, version)?;
            entries.insert(name, entry);
        }
        let mut aliases = HashMap::new();
        for _ in 0..cursor.u32()? {
            let alias = cursor.string()?;
            aliases.insert(alias, cursor.string()?);
        }
        Ok(Self { entries, aliases })
    }

    /// True when a tensor of that name, or an alias of one, is there.
    pub fn has(&self, name: &str) -> bool {
        self.entry(name).is_some()
    }

    fn entry(&self, name: &str) -> Option<&Entry<'a>> {
        let name = self.aliases.get(name).map_or(name, String::as_str);
        self.entries.get(name)
    }

    /// The tensor as f32.
    ///
    /// # Errors
    /// [`Ct2Error::Missing`], [`Ct2Error::Kind`] or [`Ct2Error::Size`].
    pub fn tensor(&self, name: &str) -> Result<Tensor, Ct2Error> {
        let entry = self.entry(name).ok_or_else(|| Ct2Error::Missing(name.to_owned()))?;
        let width = match entry.kind {
            F32 => 4,
            F16 => 2,
            kind => return Err(Ct2Error::Kind { name: name.to_owned(), kind }),
        };
        let size_error = |needed| Ct2Error::Size { name: name.to_owned(), bytes: entry.bytes.len(), needed };
        let elements = entry.shape.iter().try_fold(1_usize, |all, one| all.checked_mul(*one));
        let elements = elements.filter(|count| *count <= MAX_ELEMENTS).ok_or_else(|| size_error(usize::MAX))?;
        if entry.bytes.len() != elements * width {
            return Err(size_error(elements * width));
        }
        let values = if width == 4 {
            entry.bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
        } else {
            entry.bytes.as_chunks().0.iter().map(|b| half::f16::from_le_bytes(*b).to_f32()).collect()
        };
        Ok(Tensor { shape: entry.shape.clone(), values })
    }
}

fn read_entry<'a>(cursor: &mut Cursor<'a>, version: u32) -> Result<(String, Entry<'a>), Ct2Error> {
    let name = cursor.string()?;
    let rank = cursor.u8()?;
    let shape = (0..rank).map(|_| cursor.u32().map(|size| size as usize)).collect::<Result<Vec<_>, _>>()?;
    let (kind, length) = if version >= 4 {
        (cursor.u8()?, cursor.u32()? as usize)
    } else {
        // Version 3 gives the width of an element instead of its type.
        let width = cursor.u8()?;
        let count = cursor.u32()? as usize;
        (if width == 4 { F32 } else { u8::MAX }, count.saturating_mul(width.into()))
    };
    Ok((name, Entry { shape, kind, bytes: cursor.take(length)? }))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    fn string(out: &mut Vec<u8>, text: &str) {
        out.extend((text.len() as u16 + 1).to_le_bytes());
        out.extend(text.as_bytes());
        out.push(0);
    }

    /// Writes a version 6 file of f16 tensors, the way the real ones are.
    pub fn file(tensors: &[(String, Vec<usize>, Vec<f32>)], aliases: &[(&str, &str)]) -> Vec<u8> {
        let mut out = 6_u32.to_le_bytes().to_vec();
        string(&mut out, "WhisperSpec");
        out.extend(3_u32.to_le_bytes());
        out.extend((tensors.len() as u32).to_le_bytes());
        for (name, shape, values) in tensors {
            string(&mut out, name);
            out.push(shape.len() as u8);
            shape.iter().for_each(|size| out.extend((*size as u32).to_le_bytes()));
            out.push(F16);
            out.extend((values.len() as u32 * 2).to_le_bytes());
            values.iter().for_each(|value| out.extend(half::f16::from_f32(*value).to_le_bytes()));
        }
        out.extend((aliases.len() as u32).to_le_bytes());
        for (alias, name) in aliases {
            string(&mut out, alias);
            string(&mut out, name);
        }
        out
    }

    fn small() -> Vec<u8> {
        file(&[("a/weight".into(), vec![2, 2], vec![1.0, -2.0, 0.5, 0.0])], &[("b/weight", "a/weight")])
    }

    #[test]
    fn tensors_and_aliases_are_found() {
        let bytes = small();
        let model = Ct2::open(&bytes).unwrap();
        let wanted = Tensor { shape: vec![2, 2], values: vec![1.0, -2.0, 0.5, 0.0] };
        assert_eq!(model.tensor("a/weight").unwrap(), wanted);
        assert_eq!(model.tensor("b/weight").unwrap(), wanted);
        assert!(!model.has("c"));
        assert_eq!(model.tensor("c"), Err(Ct2Error::Missing("c".into())));
    }

    #[test]
    fn every_cut_of_a_file_is_an_error_and_never_a_panic() {
        let bytes = small();
        for length in 0..bytes.len() {
            assert!(Ct2::open(&bytes[..length]).is_err(), "{length} of {} bytes", bytes.len());
        }
    }

    #[test]
    fn a_shape_that_does_not_fit_its_bytes_is_refused() {
        let bytes = file(&[("a".into(), vec![3, 3], vec![0.0; 4])], &[]);
        let error = Ct2::open(&bytes).unwrap().tensor("a").unwrap_err();
        assert!(matches!(error, Ct2Error::Size { bytes: 8, needed: 18, .. }), "{error}");
    }
}
