//! The gateway's own certificate, for an operator who has none: made here, signed by itself, kept under `keys/tls/`.
//!
//! Two files, 0600: `key.pem` and `certificate.pem`, whose first line says for which names, until when and for which key it is, so that
//! a certificate that runs out, is for other names or lost its key is made anew. Clients may be given `certificate.pem` to trust.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, date_time_ymd};
use sha2::{Digest, Sha256};

use super::{files, home::Home};
use crate::secret::Secret;

/// How long a certificate is good, in seconds: 397 days, the longest that browsers take from public authorities.
const GOOD_S: u64 = 397 * DAY_S;
/// One that ends sooner than this is made anew, in seconds: 30 days.
const MARGIN_S: u64 = 30 * DAY_S;
const DAY_S: u64 = 86_400;
/// Largest file that is read, in bytes.
const FILE_MAX: u64 = 64 * 1024;

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file cannot be read or made.
    #[error("{path}: {source}")]
    Io {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It cannot be for these names, or nothing random could be had.
    #[error("no certificate can be made for {names}: {source}")]
    Make {
        /// The names, with commas.
        names: String,
        /// What was wrong.
        source: rcgen::Error,
    },
}

/// A certificate and its key, both in PEM form.
#[derive(Debug)]
pub struct OwnCertificate {
    /// Where the certificate lies.
    pub path: PathBuf,
    /// The certificate.
    pub certificate: String,
    /// Its key.
    pub key: Secret,
    /// It was made just now: whoever trusted the last one has to be given this.
    pub new: bool,
}

/// Reads the certificate for these names (host names and IP addresses), or makes one. `now_s` is Unix seconds.
///
/// # Errors
/// [`CertificateError`].
pub fn load_or_make(home: &Home, names: &[String], now_s: u64) -> Result<OwnCertificate, CertificateError> {
    let folder = home.keys_dir().join("tls");
    files::private_dir(&folder).map_err(at(&folder))?;
    let (path, key_path) = (folder.join("certificate.pem"), folder.join("key.pem"));
    if let (Some(certificate), Some(key)) = (read(&path)?, read(&key_path)?)
        && good(&certificate, &key, names, now_s)
    {
        if files::tighten(&key_path, false).map_err(at(&key_path))? {
            tracing::warn!(path = %key_path.display(), "others could read this key; they no longer can, but they may have read it");
        }
        return Ok(OwnCertificate { path, certificate, key: Secret::new(key), new: false });
    }
    let (certificate, key) = make(names, now_s).map_err(|source| CertificateError::Make { names: names.join(", "), source })?;
    // The key first: a certificate that does not name it is not used.
    files::write_whole(&key_path, key.as_bytes()).map_err(at(&key_path))?;
    files::write_whole(&path, certificate.as_bytes()).map_err(at(&path))?;
    Ok(OwnCertificate { path, certificate, key: Secret::new(key), new: true })
}

fn make(names: &[String], now_s: u64) -> Result<(String, String), rcgen::Error> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(names.to_vec())?;
    params.distinguished_name.push(DnType::CommonName, "voxgate");
    // No key usages beside this: an authority's would make it sign others, and without one it can still be trusted by itself.
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.is_ca = IsCa::ExplicitNoCa;
    let epoch = date_time_ymd(1970, 1, 1);
    // A day back, for a client whose clock is behind.
    params.not_before = epoch + Duration::from_secs(now_s.saturating_sub(DAY_S));
    params.not_after = epoch + Duration::from_secs(now_s + GOOD_S);
    let pem = params.self_signed(&key)?.pem();
    let key = key.serialize_pem();
    Ok((format!("{}\n{pem}", note(names, now_s + GOOD_S, &key)), key))
}

/// The first line of a certificate's file.
fn note(names: &[String], until_s: u64, key: &str) -> String { format!("voxgate until={until_s} key={} names={}", fingerprint(key), names.join(",")) }

fn fingerprint(key: &str) -> String { Sha256::digest(key.as_bytes()).iter().take(8).map(|byte| format!("{byte:02x}")).collect() }

fn good(certificate: &str, key: &str, names: &[String], now_s: u64) -> bool {
    let first = certificate.lines().next().unwrap_or_default();
    let until = first.split_whitespace().find_map(|word| word.strip_prefix("until=")).and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
    first == note(names, until, key) && until > now_s.saturating_add(MARGIN_S) && until <= now_s.saturating_add(GOOD_S)
}

fn read(path: &Path) -> Result<Option<String>, CertificateError> {
    let bytes = files::read_some(path, FILE_MAX).map_err(at(path))?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> CertificateError + use<> {
    let path = path.to_path_buf();
    move |source| CertificateError::Io { path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_800_000_000;

    fn names(list: &[&str]) -> Vec<String> { list.iter().map(ToString::to_string).collect() }

    #[test]
    fn it_is_kept_until_it_runs_out_or_names_change_or_its_key_does() -> Result<(), Box<dyn std::error::Error>> {
        let dir = tempfile::tempdir()?;
        let home = Home::under(dir.path());
        home.create()?;
        let here = names(&["localhost", "127.0.0.1", "::1"]);
        let first = load_or_make(&home, &here, NOW)?;
        let again = |names: &[String], now| load_or_make(&home, names, now).map(|own| (own.new, own.certificate));
        assert!(first.new && again(&here, NOW + 366 * DAY_S)? == (false, first.certificate.clone()));
        let (new, second) = again(&here, NOW + 367 * DAY_S)?;
        assert!(new && second != first.certificate, "30 days before its end");
        assert!(again(&here, NOW)?.0, "a clock that was far ahead has made it too long");
        assert!(!again(&here, NOW)?.0 && again(&names(&["localhost", "gate.lan"]), NOW)?.0, "other names");
        std::fs::write(home.keys_dir().join("tls/key.pem"), "")?;
        assert!(again(&names(&["localhost", "gate.lan"]), NOW)?.0, "another key");
        assert!(load_or_make(&home, &names(&["h\u{e4}user"]), NOW).is_err_and(|e| e.to_string().contains("h\u{e4}user")));
        Ok(())
    }

    #[cfg(unix)]
    #[test]
    fn its_key_is_for_the_owner_alone() -> Result<(), Box<dyn std::error::Error>> {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir()?;
        let home = Home::under(dir.path());
        home.create()?;
        let own = load_or_make(&home, &names(&["localhost"]), NOW)?;
        let key = home.keys_dir().join("tls/key.pem");
        let mode = || std::fs::metadata(&key).map(|m| m.permissions().mode() & 0o777);
        assert_eq!(mode()?, 0o600);
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644))?;
        assert!(!load_or_make(&home, &names(&["localhost"]), NOW)?.new);
        assert_eq!(mode()?, 0o600);
        assert!(!format!("{own:?}").contains("PRIVATE KEY"));
        Ok(())
    }
}
