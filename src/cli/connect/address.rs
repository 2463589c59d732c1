//! Where the gateway is: what `--connect` takes, what it refuses and why.
//!
//! Owns the reading of the address and the way to a socket of this machine. Never resolves a name beyond this machine.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio_tungstenite::tungstenite::http::Uri;

/// The gateway's own port, where an address names none.
const PORT: u16 = 8710;
/// The path of the protocol, where an address names none.
const PATH: &str = "/v1/realtime";

/// A gateway that can be reached without anybody else hearing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    host: String,
    port: u16,
    path: String,
    query: Vec<String>,
}

impl Address {
    /// Reads `ws://HOST[:PORT][/PATH][?QUERY]` (or `http://`, or no scheme).
    ///
    /// # Errors
    /// A sentence: not an address, TLS, or a host that is not this machine.
    pub fn read(text: &str) -> Result<Self, String> {
        let (scheme, rest) = text.split_once("://").unwrap_or(("ws", text));
        match scheme {
            "ws" | "http" => {}
            "wss" | "https" => return Err(format!("{text}: there is no TLS yet; open a tunnel (ssh -L {PORT}:127.0.0.1:{PORT} HOST) and connect to ws://127.0.0.1:{PORT}")),
            other => return Err(format!("{text}: an address begins with ws://, not {other}://")),
        }
        let uri: Uri = format!("ws://{rest}").parse().map_err(|error| format!("{text} is no address: {error}"))?;
        // A port beyond 65535 is read as none.
        let strange = rest.contains('@') || uri.port_u16().is_none() && uri.authority().map(|a| a.as_str()) != uri.host();
        let (Some(host), false) = (uri.host(), strange) else {
            return Err(format!("{text} is no address; say ws://127.0.0.1:{PORT}"));
        };
        let host = host.trim_matches(['[', ']']).to_ascii_lowercase();
        let here = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
        if !here {
            return Err(format!(
                "{host} is another machine, and over ws:// anybody on the way can hear what is said and take the key. There is no TLS yet: open a tunnel \
                 (ssh -L {PORT}:127.0.0.1:{PORT} {host}) and connect to ws://127.0.0.1:{PORT}"
            ));
        }
        // A number that is no port would else be taken for none.
        let written = uri.authority().map_or("", |a| a.as_str()).rsplit(']').next().unwrap_or("").contains(':');
        if written && uri.port_u16().is_none() {
            return Err(format!("{text} names a port that there is not; ports go from 1 to 65535"));
        }
        let path = match uri.path() { "" | "/" => PATH, path => path };
        let query = uri.query().into_iter().flat_map(|q| q.split('&')).filter(|q| !q.is_empty()).map(str::to_string).collect();
        Ok(Self { host, port: uri.port_u16().unwrap_or(PORT), path: path.to_string(), query })
    }

    /// Names the conversation, unless the address itself does. One that is already named by `join` is replaced.
    pub fn join(&mut self, conversation: &str, instead: bool) {
        let named = |q: &String| q.starts_with("conversation=");
        if instead { self.query.retain(|q| !named(q)) }
        if !self.query.iter().any(named) { self.query.push(format!("conversation={conversation}")) }
    }

    /// As a request names it.
    pub fn url(&self) -> String {
        let mut query = self.query.clone();
        if !query.iter().any(|q| q.starts_with("model=")) { query.insert(0, "model=voxgate".into()) }
        format!("ws://{}{}?{}", self.authority(), self.path, query.join("&"))
    }

    /// Host and port, for people and for the `Host` header.
    pub fn authority(&self) -> String {
        if self.host.contains(':') { format!("[{}]:{}", self.host, self.port) } else { format!("{}:{}", self.host, self.port) }
    }

    /// The addresses of this machine that it may mean.
    pub fn sockets(&self) -> Vec<SocketAddr> {
        match self.host.parse::<IpAddr>() {
            Ok(ip) => vec![SocketAddr::new(ip, self.port)],
            Err(_) => [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)].map(|ip| SocketAddr::new(ip, self.port)).to_vec(),
        }
    }

    /// True when a gateway that says it is at this address (`http://127.0.0.1:8710`) is this one.
    pub fn is(&self, said: &str) -> bool {
        let socket = said.trim_start_matches("http://").trim_end_matches('/').parse::<SocketAddr>();
        socket.is_ok_and(|socket| self.sockets().contains(&socket))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_reached_and_no_other() {
        for (text, url) in [
            ("ws://127.0.0.1:9000", "ws://127.0.0.1:9000/v1/realtime?model=voxgate&conversation=last"),
            ("localhost", "ws://localhost:8710/v1/realtime?model=voxgate&conversation=last"),
            ("http://[::1]:9/x?conversation=a", "ws://[::1]:9/x?model=voxgate&conversation=a"),
            ("ws://127.9.9.9/?model=m", "ws://127.9.9.9:8710/v1/realtime?model=m&conversation=last"),
        ] {
            let mut address = Address::read(text).unwrap();
            address.join("last", false);
            assert_eq!(address.url(), url);
        }
        let refused = |text: &str| Address::read(text).unwrap_err();
        for far in ["ws://192.168.1.5:8710", "ws://example.org", "http://localhost.example.org", "ws://10.0.0.1", "ws://0.0.0.0:1", "ws://[::]:1"] {
            assert!(refused(far).contains("another machine") && refused(far).contains("ssh -L"), "{}", refused(far));
        }
        assert!(refused("wss://127.0.0.1").contains("no TLS yet"));
        assert!(refused("ftp://127.0.0.1").contains("ws://"));
        for bad in ["ws://", "ws://a b", "ws://user:word@127.0.0.1", "", "ws://127.0.0.1:99999"] { refused(bad); }
    }

    #[test]
    fn a_gateway_of_this_home_is_known_by_its_address() {
        let at = |text: &str| Address::read(text).unwrap();
        assert!(at("localhost:9").is("http://127.0.0.1:9") && at("127.0.0.1:9").is("http://127.0.0.1:9"));
        assert!(!at("localhost:9").is("http://127.0.0.1:8") && !at("localhost:9").is(""));
    }

    #[test]
    fn a_conversation_that_was_joined_is_joined_again() {
        let mut address = Address::read("127.0.0.1").unwrap();
        address.join("new", false);
        address.join("abc", true);
        address.join("abc", true);
        assert!(address.url().ends_with("?model=voxgate&conversation=abc"));
    }
}
