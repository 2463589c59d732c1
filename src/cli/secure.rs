//! The second listener: its certificate found or made, its names, its address.

use std::net::{IpAddr, UdpSocket};
use std::path::Path;

use super::setup::{Place, Trouble, bind, socket_address};
use crate::server::tls::{self, Secure, TlsError};
use crate::session::clock::unix_ms;
use crate::store::certificate;

/// Opens the listener that speaks TLS; `None` where it is not wanted.
///
/// # Errors
/// [`Trouble`] that names the setting and what mends it.
pub async fn open(place: &Place) -> Result<Option<Secure>, Trouble> {
    let server = &place.config.server;
    if !server.tls { return Ok(None) }
    let names = names(&server.tls_names, &server.tls_address);
    let settings = match (&server.tls_certificate, &server.tls_key) {
        (Some(certificate), Some(key)) => given(certificate, key)?,
        _ => {
            let own = certificate::load_or_make(&place.home, &names, unix_ms() / 1_000).map_err(|e| Trouble::failed(format!("server.tls: {e}")))?;
            if own.new { eprintln!("voxgate: made a certificate for {}; clients that shall trust it are given {}", names.join(", "), own.path.display()) }
            tls::settings(own.certificate.as_bytes(), own.key.expose().as_bytes()).map_err(|e| Trouble::failed(format!("{} {e}; delete it and a new one is made", own.path.display())))?
        }
    };
    let address = socket_address("server.tls_address", &server.tls_address, server.tls_port)?;
    let listener = bind(address, "choose another as server.tls_port, or 0 for any free one").await?;
    let port = listener.local_addr().map_err(Trouble::failed)?.port();
    let name = shown(&server.tls_names, address.ip());
    Ok(Some(Secure { listener, settings, names, url: if port == 443 { format!("https://{name}") } else { format!("https://{name}:{port}") } }))
}

/// The operator's files.
fn given(certificate: &Path, key: &Path) -> Result<std::sync::Arc<rustls::ServerConfig>, Trouble> {
    let read = |setting: &str, path: &Path| std::fs::read(path).map_err(|e| Trouble::wrong(format!("{setting}: {} cannot be read: {e}", path.display())));
    let (chain, secret) = (read("server.tls_certificate", certificate)?, read("server.tls_key", key)?);
    tls::settings(&chain, &secret).map_err(|error: TlsError| {
        let (setting, path) = if error.is_certificate() { ("server.tls_certificate", certificate) } else { ("server.tls_key", key) };
        Trouble::wrong(format!("{setting}: {} {error}", path.display()))
    })
}

/// What the gateway's own certificate is for.
fn names(configured: &[String], address: &str) -> Vec<String> {
    let mut all: Vec<String> = ["localhost", "127.0.0.1", "::1"].map(String::from).to_vec();
    all.extend(configured.iter().map(|name| name.to_ascii_lowercase()));
    all.extend(host_name());
    all.extend(address.parse::<IpAddr>().ok().filter(|ip| !ip.is_unspecified()).map(|ip| ip.to_string()));
    if address.parse::<IpAddr>().is_ok_and(|ip| ip.is_unspecified()) { all.extend(in_the_network().map(|ip| ip.to_string())) }
    let mut seen = Vec::new();
    all.retain(|name| !seen.contains(name) && { seen.push(name.clone()); true });
    all
}

/// What stands in links: the operator's word, else an address that others reach.
fn shown(configured: &[String], address: IpAddr) -> String {
    let ip = if address.is_unspecified() { in_the_network().unwrap_or(IpAddr::from([127, 0, 0, 1])) } else { address };
    match configured.first().map_or_else(|| ip.to_string(), String::clone) {
        name if name.contains(':') => format!("[{name}]"),
        name => name,
    }
}

/// This machine's name, where the system keeps it in a file and it is fit for a certificate.
fn host_name() -> Option<String> {
    let name = ["/proc/sys/kernel/hostname", "/etc/hostname"].iter().find_map(|path| std::fs::read_to_string(path).ok())?.trim().to_ascii_lowercase();
    (!name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-.".contains(&b))).then_some(name)
}

/// The address by which this machine would reach others. Choosing one sends nothing; 192.0.2.0/24 is nobody's (RFC 5737).
fn in_the_network() -> Option<IpAddr> {
    let socket = UdpSocket::bind(("0.0.0.0", 0)).ok()?;
    socket.connect(("192.0.2.1", 9)).ok()?;
    socket.local_addr().ok().map(|at| at.ip()).filter(|ip| !ip.is_loopback() && !ip.is_unspecified())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_once_and_links_name_what_others_reach() {
        let names = names(&["Gate.lan".into(), "localhost".into()], "10.0.0.7");
        assert_eq!(names.iter().filter(|n| *n == "localhost").count(), 1);
        assert!(["127.0.0.1", "::1", "gate.lan", "10.0.0.7"].iter().all(|n| names.contains(&n.to_string())), "{names:?}");
        let shown = |configured: &[&str], ip: &str| shown(&configured.iter().map(ToString::to_string).collect::<Vec<_>>(), ip.parse().unwrap());
        assert_eq!((shown(&["gate.lan"], "0.0.0.0").as_str(), shown(&[], "10.0.0.7").as_str(), shown(&[], "::1").as_str()), ("gate.lan", "10.0.0.7", "[::1]"));
        assert_ne!(shown(&[], "0.0.0.0"), "0.0.0.0");
    }
}
