//! A name and a time for a frame this room makes itself (a snapshot, an `ack`). Owns nothing; the mirror and REST call it.
#![allow(clippy::disallowed_methods, reason = "names are made from the time, as UUID version 7 says")]

use std::time::{SystemTime, UNIX_EPOCH};

use crate::dialect::feral::Head;

/// What stands on the outside of one frame.
pub struct Fresh {
    /// A random uuid4.
    pub msg_id: String,
    at_ms: u64,
}

impl Fresh {
    /// For a frame that is made now.
    pub fn new() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { msg_id: uuid4(), at_ms: u64::try_from(since.as_millis()).unwrap_or(u64::MAX) }
    }

    /// The head of that frame.
    pub fn head<'a>(&'a self, session_id: &'a str) -> Head<'a> { Head { session_id, msg_id: &self.msg_id, at_ms: self.at_ms } }
}

/// RFC 9562, version 4. Without randomness from the system it is the nil form with the version's marks: it names a frame
/// and guards nothing.
fn uuid4() -> String {
    let mut bytes = [0u8; 16];
    let _ = getrandom::fill(&mut bytes);
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_is_a_version_4() {
        let id = super::uuid4();
        assert_eq!((id.len(), &id[14..15]), (36, "4"));
        assert!("89ab".contains(&id[19..20]));
        assert_ne!(id, super::uuid4());
    }
}
