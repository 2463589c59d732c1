//! THE PAGE'S WAY IN: codes of one use that a page trades for a token. Owns both, in memory only, so that they end with
//! the process. `serve` and `voxgate link` ask for codes; `POST /api/link` trades them. Never writes either anywhere.
//!
//! Both hold 128 and 256 random bits; what is kept is their SHA-256, so that a look-up takes the same time for all of them.
#![allow(clippy::disallowed_methods, reason = "codes of one use expire by the wall")]

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use subtle::ConstantTimeEq;

use super::auth::{Digest, digest};

/// How long a code can be traded.
pub const CODE_LIFE: Duration = Duration::from_secs(60);
/// Codes that wait at one time; a newer one pushes the oldest out.
pub const CODES_MAX: usize = 16;
/// Pages that hold a token at one time; a newer one pushes the oldest out.
pub const TOKENS_MAX: usize = 64;

/// No randomness could be had from the system, so nothing secret can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the system gives no random numbers")]
pub struct NoRandomness;

/// See the file's head.
#[derive(Default)]
pub struct LinkCodes {
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    codes: VecDeque<(Digest, Instant)>,
    tokens: VecDeque<Digest>,
}

impl LinkCodes {
    /// A new code: 22 characters of base64url, good once and for 60 s.
    ///
    /// # Errors
    /// [`NoRandomness`].
    pub fn issue(&self) -> Result<String, NoRandomness> { self.issue_at(Instant::now()) }

    fn issue_at(&self, now: Instant) -> Result<String, NoRandomness> {
        let code = random_text::<16>()?;
        let mut held = self.lock();
        held.codes.push_back((digest(code.as_bytes()), now + CODE_LIFE));
        if held.codes.len() > CODES_MAX {
            held.codes.pop_front();
        }
        Ok(code)
    }

    /// Uses a code up. `Some` is a new token of the operator's grade: 43 characters of base64url.
    ///
    /// # Errors
    /// [`NoRandomness`].
    pub fn trade(&self, code: &str) -> Result<Option<String>, NoRandomness> { self.trade_at(code, Instant::now()) }

    fn trade_at(&self, code: &str, now: Instant) -> Result<Option<String>, NoRandomness> {
        let wanted = digest(code.as_bytes());
        let mut held = self.lock();
        held.codes.retain(|(_, until)| *until > now);
        let Some(place) = held.codes.iter().position(|(known, _)| bool::from(known.ct_eq(&wanted))) else { return Ok(None) };
        held.codes.remove(place);
        let token = random_text::<32>()?;
        held.tokens.push_back(digest(token.as_bytes()));
        if held.tokens.len() > TOKENS_MAX {
            held.tokens.pop_front();
        }
        Ok(Some(token))
    }

    /// True for a token that a page got here.
    pub fn holds(&self, presented: &[u8]) -> bool {
        let wanted = digest(presented);
        self.lock().tokens.iter().fold(false, |found, known| found | bool::from(known.ct_eq(&wanted)))
    }

    /// Both lists are whole after every statement, so a panic elsewhere does not spoil them.
    fn lock(&self) -> MutexGuard<'_, Held> { self.held.lock().unwrap_or_else(PoisonError::into_inner) }
}

/// So many random bytes as base64url.
pub(super) fn random_text<const BYTES: usize>() -> Result<String, NoRandomness> {
    let mut bytes = [0u8; BYTES];
    getrandom::fill(&mut bytes).map_err(|_| NoRandomness)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_good_once() {
        let links = LinkCodes::default();
        let code = links.issue().unwrap();
        let token = links.trade(&code).unwrap().unwrap();
        assert!(links.holds(token.as_bytes()));
        assert!(!links.holds(code.as_bytes()));
        assert_eq!(links.trade(&code), Ok(None));
        assert_eq!(links.trade(""), Ok(None));
    }

    #[test]
    fn a_code_is_good_for_a_minute() {
        let (links, start) = (LinkCodes::default(), Instant::now());
        let (early, late) = (links.issue_at(start).unwrap(), links.issue_at(start).unwrap());
        assert!(links.trade_at(&early, start + Duration::from_secs(59)).unwrap().is_some());
        assert_eq!(links.trade_at(&late, start + CODE_LIFE), Ok(None));
    }

    #[test]
    fn both_lists_are_bounded() {
        let links = LinkCodes::default();
        let first = links.issue().unwrap();
        for _ in 0..CODES_MAX { links.issue().unwrap(); }
        assert_eq!(links.trade(&first), Ok(None), "pushed out");
        let mut tokens = Vec::new();
        for _ in 0..=TOKENS_MAX { tokens.push(links.trade(&links.issue().unwrap()).unwrap().unwrap()); }
        assert!(!links.holds(tokens[0].as_bytes()) && links.holds(tokens[TOKENS_MAX].as_bytes()));
    }
}
