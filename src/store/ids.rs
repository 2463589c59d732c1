//! Names that are new in the world: conversations and messages. Randomness is the machine's, the time is handed in.

/// Longest conversation id, in characters. Chosen: a ULID has 26.
pub const SESSION_ID_MAX: usize = 64;

/// The machine gave no randomness.
#[derive(Debug, thiserror::Error)]
#[error("this machine gives no random numbers: {0}")]
pub struct NoRandomness(getrandom::Error);

fn random<const N: usize>() -> Result<[u8; N], NoRandomness> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(NoRandomness)?;
    Ok(bytes)
}

/// A conversation's id: a ULID in lower case, 26 letters and digits, sorted by time of birth (`now_ms`, Unix milliseconds).
///
/// # Errors
/// [`NoRandomness`].
pub fn session_id(now_ms: u64) -> Result<String, NoRandomness> {
    let random = u128::from_be_bytes(random::<16>()?) >> 48;
    Ok(ulid::Ulid((u128::from(now_ms) << 80) | random).to_string().to_ascii_lowercase())
}

/// A message's id: a version 4 UUID.
///
/// # Errors
/// [`NoRandomness`].
pub fn message_id() -> Result<String, NoRandomness> {
    let mut bytes = random::<16>()?;
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let hex: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
    Ok(format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]))
}

/// 32 random bytes as 43 characters that need no escaping in a URL or a header.
///
/// # Errors
/// [`NoRandomness`].
pub fn token() -> Result<String, NoRandomness> {
    use base64::Engine;
    Ok(base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(random::<32>()?))
}

/// True for text that may be a conversation's id and part of a file's name: 1 to 64 lower-case letters, digits, `-`, `_`.
pub fn is_session_id(text: &str) -> bool {
    (1..=SESSION_ID_MAX).contains(&text.len()) && text.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_sort_by_birth_and_are_file_names() -> Result<(), NoRandomness> {
        let ids = [session_id(1_700_000_000_000)?, session_id(1_700_000_000_001)?, session_id(1_900_000_000_000)?];
        assert!(ids.is_sorted() && ids.iter().all(|id| is_session_id(id) && id.len() == 26), "{ids:?}");
        assert_ne!(session_id(5)?, session_id(5)?);
        for bad in ["", "..", "a/b", "A", "a.b", "é", &"a".repeat(65)] {
            assert!(!is_session_id(bad), "{bad}");
        }
        Ok(())
    }

    #[test]
    fn message_ids_are_version_4() -> Result<(), NoRandomness> {
        let id = message_id()?;
        assert_eq!((id.len(), id.as_bytes()[14], id.matches('-').count()), (36, b'4', 4));
        assert!(matches!(id.as_bytes()[19], b'8' | b'9' | b'a' | b'b'));
        assert_eq!(token()?.len(), 43);
        Ok(())
    }
}
