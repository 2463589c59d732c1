//! The chain of checksums: what stands before each record, made and checked.
//!
//! Format 2, which is written: `LLLLLLLL H...H JSON\n`, the length of the JSON in bytes as eight hex digits, and the first 16 bytes
//! of SHA-256 over the link before, the length's text and the JSON as 32. So a record that was changed, taken out, put in or moved
//! breaks every link behind it, and the last link names the whole file. It holds no key: who may write the file can also write
//! another one; whoever noted a link knows.
//!
//! Format 1, which is still read and gone on with: `LLLLLLLL CCCCCCCC JSON\n`, CRC-32 over length and JSON, each record for itself.

use sha2::{Digest, Sha256};

use super::{FORMAT, LINE_MAX};

/// Bytes before the JSON in either format.
const PREFIX: usize = 42;
const PREFIX_1: usize = 18;
/// Longest line, its end included.
pub(super) const LINE_BYTES: u64 = (PREFIX + LINE_MAX + 1) as u64;

/// Where a chain stands: what the next record is bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Chain {
    /// Nothing of the file is read or written; its first line says which format it has.
    Start,
    /// A file of format 1: nothing is carried over.
    Single,
    /// The link of the last record.
    Link([u8; 16]),
}

/// What a line turned out to be.
pub(super) enum Line {
    /// A whole record.
    Json(String),
    /// A whole record whose line end alone is missing.
    Unended(String),
    /// The beginning of a record, cut by the end of the file; what is there of its JSON.
    Torn(String),
    /// Anything else.
    Corrupt,
}

impl Chain {
    /// The format of the file, as its header says it.
    pub(super) fn format(self) -> u64 { if self == Chain::Single { 1 } else { FORMAT } }

    /// The last link in hex; empty for a file without links.
    pub(super) fn head(self) -> String {
        match self { Chain::Link(link) => hex(&link), Chain::Start | Chain::Single => String::new() }
    }

    /// One framed line with its end; the next one is bound to it.
    pub(super) fn framed(&mut self, json: &str) -> String {
        let length = format!("{:08x}", json.len());
        if *self == Chain::Single {
            return format!("{length} {:08x} {json}\n", checksum(&length, json.as_bytes()));
        }
        let link = self.next(&length, json.as_bytes());
        *self = Chain::Link(link);
        format!("{length} {} {json}\n", hex(&link))
    }

    /// Judges a line (without its end). A whole one moves the chain on.
    pub(super) fn judge(&mut self, line: &[u8], ended: bool) -> Line {
        if *self == Chain::Start && is_format_1(line) {
            *self = Chain::Single;
        }
        let prefix_bytes = if *self == Chain::Single { PREFIX_1 } else { PREFIX };
        let Some(prefix) = line.get(..prefix_bytes) else { return if ended { Line::Corrupt } else { Line::Torn(String::new()) } };
        let Some(length) = read_prefix(prefix) else { return Line::Corrupt };
        let json = &line[prefix_bytes..];
        if json.len() < length && !ended {
            return Line::Torn(String::from_utf8_lossy(json).into_owned());
        }
        let (Ok(head), Ok(text)) = (std::str::from_utf8(prefix), std::str::from_utf8(json)) else { return Line::Corrupt };
        let (length_text, sum) = (&head[..8], &head[9..prefix_bytes - 1]);
        if json.len() != length {
            return Line::Corrupt;
        }
        if *self == Chain::Single {
            if sum != format!("{:08x}", checksum(length_text, json)) { return Line::Corrupt }
        } else {
            let link = self.next(length_text, json);
            if sum != hex(&link) { return Line::Corrupt }
            *self = Chain::Link(link);
        }
        if ended { Line::Json(text.to_string()) } else { Line::Unended(text.to_string()) }
    }

    fn next(self, length: &str, json: &[u8]) -> [u8; 16] {
        let before = match self { Chain::Link(link) => link, Chain::Start | Chain::Single => [0; 16] };
        let digest = Sha256::new().chain_update(before).chain_update(length.as_bytes()).chain_update(json).finalize();
        let mut link = [0; 16];
        link.copy_from_slice(&digest[..16]);
        link
    }
}

/// True for a first line that has the shape of format 1.
fn is_format_1(line: &[u8]) -> bool { line.get(..PREFIX_1).is_some_and(|prefix| read_prefix(prefix).is_some()) }

/// True for a first line that has the shape of a format that is read here, whatever its checksum says.
pub(super) fn is_known_shape(line: &[u8]) -> bool { is_format_1(line) || line.get(..PREFIX).is_some_and(|prefix| read_prefix(prefix).is_some()) }

/// Length of the JSON; `None` unless it is eight lower-case hex digits, a space, more of them, a space.
fn read_prefix(prefix: &[u8]) -> Option<usize> {
    let is_hex = |part: &[u8]| part.iter().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let last = prefix.len() - 1;
    if !(is_hex(&prefix[..8]) && prefix[8] == b' ' && is_hex(&prefix[9..last]) && prefix[last] == b' ') {
        return None;
    }
    let length = usize::from_str_radix(std::str::from_utf8(&prefix[..8]).ok()?, 16).ok()?;
    (length <= LINE_MAX).then_some(length)
}

fn checksum(length: &str, json: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(length.as_bytes());
    hasher.update(json);
    hasher.finalize()
}

fn hex(bytes: &[u8]) -> String { bytes.iter().map(|b| format!("{b:02x}")).collect() }
