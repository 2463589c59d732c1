//! THE LOCK ON THE DOOR: TLS around a connection before anything of it is read. Owns the settings of TLS and the handshake's limits;
//! `serve` greets the connections of its second listener with it. It makes no certificates and opens no files.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// First byte of TLS: a record that holds a handshake (RFC 8446, 5.1).
const HANDSHAKE: u8 = 0x16;
/// What somebody gets who speaks HTTP without TLS here.
const WRONG_DOOR: &[u8] = b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: 66\r\n\r\nThis port speaks TLS. Use https:// or wss:// with the same address";

/// Why a certificate cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum TlsError {
    /// The first file.
    #[error("holds no certificate in PEM form (a block that begins with -----BEGIN CERTIFICATE-----)")]
    NoCertificate,
    /// The second file.
    #[error("holds no private key in PEM form (a block that begins with -----BEGIN PRIVATE KEY-----)")]
    NoKey,
    /// A key behind a password.
    #[error("holds a key that is locked with a password; write it without one: openssl pkey -in FILE -out OPEN.pem")]
    LockedKey,
    /// The two do not belong together, or TLS does not know their kind.
    #[error("cannot be used with this certificate: {0}")]
    Unfit(String),
}

impl TlsError {
    /// It is the certificate's fault, not the key's.
    pub fn is_certificate(&self) -> bool { *self == TlsError::NoCertificate }
}

/// The settings of TLS for a certificate (with those above it) and its key, both PEM.
///
/// # Errors
/// [`TlsError`], worded to stand behind the name of a file.
pub fn settings(certificate: &[u8], key: &[u8]) -> Result<Arc<ServerConfig>, TlsError> {
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(certificate).collect::<Result<_, _>>().map_err(|_| TlsError::NoCertificate)?;
    if chain.is_empty() { return Err(TlsError::NoCertificate) }
    let locked = || if key.windows(9).any(|word| word == b"ENCRYPTED") { TlsError::LockedKey } else { TlsError::NoKey };
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| locked())?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let unfit = |error: rustls::Error| match error {
        rustls::Error::InconsistentKeys(_) => TlsError::Unfit("it is the key of another one".into()),
        other => TlsError::Unfit(other.to_string()),
    };
    let versions = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().map_err(unfit)?;
    let mut config = versions.with_no_client_auth().with_single_cert(chain, key).map_err(unfit)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// The second listener.
pub struct Secure {
    /// Where it listens.
    pub listener: TcpListener,
    /// From [`settings`].
    pub settings: Arc<ServerConfig>,
    /// Names and addresses its certificate is for, without ports.
    pub names: Vec<String>,
    /// Its address as people open it: `https://NAME:PORT`.
    pub url: String,
}

/// The part of [`Secure`] that greets.
#[derive(Clone)]
pub(super) struct Greeter {
    acceptor: TlsAcceptor,
    patience: Duration,
}

impl Greeter {
    pub(super) fn new(settings: Arc<ServerConfig>, patience: Duration) -> Self {
        Self { acceptor: TlsAcceptor::from(settings), patience }
    }

    /// The handshake, within its time. `None`: this is no TLS, or not in time. How many there are at once is the count of places for
    /// connections: a smaller one for handshakes would let a few silent peers shut everybody out.
    pub(super) async fn greet(&self, mut stream: TcpStream, peer: SocketAddr) -> Option<TlsStream<TcpStream>> {
        let handshake = async {
            let mut first = [0u8; 1];
            if stream.peek(&mut first).await.ok()? == 0 { return None }
            if first[0] != HANDSHAKE {
                turn_away(&mut stream, first[0]).await;
                return None;
            }
            self.acceptor.accept(stream).await.inspect_err(|error| tracing::debug!(%peer, %error, "a handshake failed")).ok()
        };
        tokio::time::timeout(self.patience, handshake).await.ok().flatten()
    }
}

/// Words for somebody who speaks HTTP, nothing for anybody else.
async fn turn_away(stream: &mut TcpStream, first: u8) {
    if !first.is_ascii_uppercase() { return }
    // What is left unread would take the answer back with it.
    let _ = stream.try_read(&mut [0u8; 8 * 1024]);
    let _ = stream.write_all(WRONG_DOOR).await;
    let _ = stream.shutdown().await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_something_else_are_named() {
        let made = |name: &str| {
            let key = rcgen::KeyPair::generate().unwrap();
            let pem = rcgen::CertificateParams::new(vec![name.to_string()]).unwrap().self_signed(&key).unwrap().pem();
            (pem, key.serialize_pem())
        };
        let ((certificate, key), (_, other)) = (made("localhost"), made("localhost"));
        assert!(settings(certificate.as_bytes(), key.as_bytes()).is_ok());
        let why = |certificate: &str, key: &str| settings(certificate.as_bytes(), key.as_bytes()).unwrap_err();
        assert_eq!(why("", &key), TlsError::NoCertificate);
        assert_eq!(why(&key, &key), TlsError::NoCertificate);
        assert_eq!(why(&certificate, &certificate), TlsError::NoKey);
        assert_eq!(why(&certificate, "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n"), TlsError::LockedKey);
        assert_eq!(why(&certificate, &other).to_string(), "cannot be used with this certificate: it is the key of another one");
    }

    #[test]
    fn the_wrong_doors_answer_says_its_length() {
        let text = std::str::from_utf8(WRONG_DOOR).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.ends_with(&format!("content-length: {}", body.len())), "{}", body.len());
    }
}
