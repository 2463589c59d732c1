//! WHO MAY EVEN KNOCK: the Host and Origin rules. Owns the list of names this gateway answers to; the router asks it
//! before any key is looked at. Reads headers only and keeps nothing.
//!
//! Host goes first: a page whose name was rebound to this machine sends its own name in Host, and a same-origin GET of
//! such a page carries no Origin at all. Origin goes second: a browser page of another site may not open our sockets.

use std::net::SocketAddr;

use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName, StatusCode, Uri};

use super::problem::Problem;

/// The names and origins that are let in.
#[derive(Clone, Debug)]
pub struct Allowed {
    hosts: Vec<String>,
    origins: Vec<String>,
}

impl Allowed {
    /// `127.0.0.1:PORT`, `localhost:PORT`, `[::1]:PORT`, the bound address unless it is "any", and the configured `hosts`
    /// (`name` or `name:port`, as a browser writes Host) and `origins` (`scheme://name[:port]`).
    /// Pages of every allowed host are allowed origins over plain HTTP.
    pub fn new(local: SocketAddr, hosts: &[String], origins: &[String]) -> Self {
        let port = local.port();
        let mut all: Vec<String> = ["127.0.0.1", "localhost", "[::1]"].iter().map(|name| format!("{name}:{port}")).collect();
        if !local.ip().is_unspecified() {
            all.push(local.to_string());
        }
        all.extend(hosts.iter().map(|host| host.to_ascii_lowercase()));
        if port == 80 {
            let bare: Vec<String> = all.iter().filter_map(|host| host.strip_suffix(":80").map(str::to_string)).collect();
            all.extend(bare);
        }
        let mut allowed: Vec<String> = all.iter().map(|host| format!("http://{host}")).collect();
        allowed.extend(origins.iter().map(|origin| origin.to_ascii_lowercase()));
        Self { hosts: all, origins: allowed }
    }

    /// Adds the listener with TLS: the names of its certificate at its port, and pages over HTTPS of those and of the configured `hosts`.
    pub fn secured(&mut self, port: u16, names: &[String], hosts: &[String]) {
        let own = ["127.0.0.1", "localhost", "::1"].into_iter().chain(names.iter().map(String::as_str));
        let mut all: Vec<String> = own.map(|name| at_port(name, port)).collect();
        if port == 443 {
            let bare: Vec<String> = all.iter().filter_map(|host| host.strip_suffix(":443").map(str::to_string)).collect();
            all.extend(bare);
        }
        let configured = hosts.iter().map(|host| host.to_ascii_lowercase());
        self.origins.extend(all.iter().cloned().chain(configured).map(|host| format!("https://{host}")));
        self.hosts.extend(all);
    }

    /// Checks one request. `here` is our own end of a connection with TLS: an IP address as Host needs no name, and whoever asks for
    /// the very address that the connection came to was led there by no name that somebody else can turn to it.
    ///
    /// # Errors
    /// 403 with `host_refused` or `origin_refused`.
    pub fn check(&self, uri: &Uri, headers: &HeaderMap, here: Option<SocketAddr>) -> Result<(), Problem> {
        let here = here.map(|at| at_port(&at.ip().to_canonical().to_string(), at.port()));
        self.check_host(uri, headers, here.as_deref())?;
        self.check_origin(headers, here.as_deref())
    }

    fn check_host(&self, uri: &Uri, headers: &HeaderMap, here: Option<&str>) -> Result<(), Problem> {
        let known = |host: &str| has(&self.hosts, host) || here.is_some_and(|here| here.strip_suffix(":443").unwrap_or(here) == host || here == host);
        let named = only(headers, HOST).is_some_and(known);
        let asked = uri.authority().is_none_or(|authority| known(authority.as_str()));
        if named && asked {
            return Ok(());
        }
        Err(Problem::new(StatusCode::FORBIDDEN, "host_refused",
            "this gateway does not answer to the name in the Host header; use the address that `voxgate serve` printed, or add the name to server.hosts"))
    }

    fn check_origin(&self, headers: &HeaderMap, here: Option<&str>) -> Result<(), Problem> {
        let is_here = |origin: &str| here.zip(origin.strip_prefix("https://")).is_some_and(|(here, host)| here.strip_suffix(":443").unwrap_or(here) == host || here == host);
        if !headers.contains_key(ORIGIN) || only(headers, ORIGIN).is_some_and(|origin| has(&self.origins, origin) || is_here(origin)) {
            return Ok(());
        }
        Err(Problem::new(StatusCode::FORBIDDEN, "origin_refused",
            "a page of this origin may not use this gateway; add the origin to server.origins if it is yours"))
    }
}

/// `name:port` as a browser writes it.
fn at_port(name: &str, port: u16) -> String {
    let name = name.to_ascii_lowercase();
    if name.contains(':') { format!("[{name}]:{port}") } else { format!("{name}:{port}") }
}

fn has(list: &[String], given: &str) -> bool { list.iter().any(|known| known.eq_ignore_ascii_case(given)) }

/// The header's text if it is there exactly once.
fn only(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let mut all = headers.get_all(name).iter();
    let first = all.next()?;
    if all.next().is_some() { None } else { first.to_str().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn verdict(hosts: &[&str], origins: &[&str], uri: &str) -> Option<&'static str> {
        let allowed = Allowed::new("127.0.0.1:8710".parse().unwrap(), &["gate.lan".into()], &["https://desk.example".into()]);
        let mut headers = HeaderMap::new();
        for host in hosts { headers.append(HOST, HeaderValue::from_str(host).unwrap()); }
        for origin in origins { headers.append(ORIGIN, HeaderValue::from_str(origin).unwrap()); }
        allowed.check(&uri.parse().unwrap(), &headers, None).err().map(|problem| problem.code)
    }

    #[test]
    fn hosts() {
        for good in ["127.0.0.1:8710", "localhost:8710", "LOCALHOST:8710", "[::1]:8710", "gate.lan"] {
            assert_eq!(verdict(&[good], &[], "/"), None, "{good}");
        }
        for bad in ["evil.example", "127.0.0.1", "127.0.0.1:8711", "localhost.:8710", "localhost:8710.evil.example", "gate.lan:1", ""] {
            assert_eq!(verdict(&[bad], &[], "/"), Some("host_refused"), "{bad}");
        }
        assert_eq!(verdict(&[], &[], "/"), Some("host_refused"), "none");
        assert_eq!(verdict(&["localhost:8710", "localhost:8710"], &[], "/"), Some("host_refused"), "two");
        assert_eq!(verdict(&["localhost:8710"], &[], "http://evil.example/"), Some("host_refused"), "absolute form");
    }

    #[test]
    fn origins() {
        let host = ["localhost:8710"];
        for good in ["http://localhost:8710", "http://127.0.0.1:8710", "https://desk.example"] {
            assert_eq!(verdict(&host, &[good], "/"), None, "{good}");
        }
        for bad in ["null", "http://evil.example", "http://evil.localhost:8710", "https://localhost:8710", "http://localhost:8711", "http://desk.example", "", "http://localhost:8710/"] {
            assert_eq!(verdict(&host, &[bad], "/"), Some("origin_refused"), "{bad}");
        }
        assert_eq!(verdict(&host, &["http://localhost:8710", "http://localhost:8710"], "/"), Some("origin_refused"), "two");
    }

    #[test]
    fn https_has_its_own_port_and_the_address_that_was_reached() {
        let mut allowed = Allowed::new("127.0.0.1:8710".parse().unwrap(), &["gate.lan".into()], &[]);
        allowed.secured(8711, &["desk.lan".into(), "192.168.1.4".into()], &["gate.lan".into()]);
        let code = |host: &str, origin: &str, here: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.append(HOST, HeaderValue::from_str(host).unwrap());
            if !origin.is_empty() { headers.append(ORIGIN, HeaderValue::from_str(origin).unwrap()); }
            allowed.check(&"/".parse().unwrap(), &headers, here.map(|h| h.parse().unwrap())).err().map(|p| p.code)
        };
        for host in ["localhost:8711", "desk.lan:8711", "192.168.1.4:8711", "[::1]:8711", "gate.lan", "localhost:8710"] {
            assert_eq!(code(host, "", None), None, "{host}");
        }
        for origin in ["https://localhost:8711", "https://desk.lan:8711", "https://[::1]:8711", "https://gate.lan", "http://localhost:8710"] {
            assert_eq!(code("localhost:8711", origin, None), None, "{origin}");
        }
        for origin in ["https://localhost:8710", "http://localhost:8711", "http://desk.lan:8711", "https://evil.example", "null"] {
            assert_eq!(code("localhost:8711", origin, None), Some("origin_refused"), "{origin}");
        }
        assert_eq!(code("10.0.0.7:8711", "", None), Some("host_refused"));
        assert_eq!(code("10.0.0.7:8711", "https://10.0.0.7:8711", Some("[::ffff:10.0.0.7]:8711")), None);
        assert_eq!(code("10.0.0.7:8711", "http://10.0.0.7:8711", Some("10.0.0.7:8711")), Some("origin_refused"));
        assert_eq!(code("10.0.0.8:8711", "", Some("10.0.0.7:8711")), Some("host_refused"));
        assert_eq!(code("[fe80::1]", "https://[fe80::1]", Some("[fe80::1]:443")), None);
        assert_eq!(code("desk.lan:8710", "", None), Some("host_refused"), "a name of the certificate is none of the plain port's");
    }

    #[test]
    fn any_address_is_no_name() {
        let allowed = Allowed::new("0.0.0.0:80".parse().unwrap(), &[], &[]);
        assert!(!has(&allowed.hosts, "0.0.0.0:80"));
        assert!(has(&allowed.hosts, "localhost"));
    }
}
