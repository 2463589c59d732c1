//! A string that will not print itself: keys and tokens. Owns nothing else; used by `config`, `store/keys` and whoever sends a
//! key upstream.

use subtle::ConstantTimeEq;

/// A key or a token. `Debug` and `Display` show `***`; compare it with [`Secret::is`].
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// Wraps it.
    pub fn new(text: impl Into<String>) -> Self { Self(text.into()) }

    /// The text itself, for the one place that sends or writes it.
    pub fn expose(&self) -> &str { &self.0 }

    /// True when nothing is in it.
    pub fn is_empty(&self) -> bool { self.0.is_empty() }

    /// True when `given` is the same text, in a time that does not tell how much of it is right.
    pub fn is(&self, given: &str) -> bool {
        use sha2::{Digest, Sha256};
        let [ours, theirs] = [&self.0, given].map(|text| -> [u8; 32] { Sha256::digest(text.as_bytes()).into() });
        ours.ct_eq(&theirs).into()
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.write_str("***") }
}

impl std::fmt::Display for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.write_str("***") }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool { self.is(&other.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_never_prints_itself() {
        let secret = Secret::new("canary");
        assert_eq!(format!("{secret} {secret:?} {:?}", Some(&secret)), "*** *** Some(***)");
        assert!(secret.is("canary") && !secret.is("canar") && !secret.is("") && secret == Secret::new("canary"));
    }
}
