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

    /// Checks one request.
    ///
    /// # Errors
    /// 403 with `host_refused` or `origin_refused`.
    pub fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
        self.check_host(uri, headers)?;
        self.check_origin(headers)
    }

    fn check_host(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
        let named = only(headers, HOST).is_some_and(|host| has(&self.hosts, host));
        let asked = uri.authority().is_none_or(|authority| has(&self.hosts, authority.as_str()));
        if named && asked {
            return Ok(());
        }
        Err(Problem::new(StatusCode::FORBIDDEN, "host_refused",
            "this gateway does not answer to the name in the Host header; use the address that `voxgate serve` printed, or add the name to server.hosts"))
    }

    fn check_origin(&self, headers: &HeaderMap) -> Result<(), Problem> {
        if !headers.contains_key(ORIGIN) || only(headers, ORIGIN).is_some_and(|origin| has(&self.origins, origin)) {
            return Ok(());
        }
        Err(Problem::new(StatusCode::FORBIDDEN, "origin_refused",
            "a page of this origin may not use this gateway; add the origin to server.origins if it is yours"))
    }
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
        allowed.check(&uri.parse().unwrap(), &headers).err().map(|problem| problem.code)
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
    fn any_address_is_no_name() {
        let allowed = Allowed::new("0.0.0.0:80".parse().unwrap(), &[], &[]);
        assert!(!has(&allowed.hosts, "0.0.0.0:80"));
        assert!(has(&allowed.hosts, "localhost"));
    }
}
