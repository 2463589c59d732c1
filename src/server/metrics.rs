//! FIGURES OF THE DOORS: their names and the helpers that count. Owns `voxgate_http_*`, `voxgate_connections*`,
//! `voxgate_mirrors*`, `voxgate_auth_refused_total`; the other files of this room call it. What conversations count is
//! named where it is counted. Labels come from fixed lists only, never from what somebody sent.

use metrics::{counter, gauge};

/// Requests answered, by `route` (as the table has it) and `status`.
pub const HTTP_REQUESTS: &str = "voxgate_http_requests_total";
/// Connections open now, upgraded sockets not counted.
pub const CONNECTIONS: &str = "voxgate_connections";
/// Connections turned away because all places were taken.
pub const CONNECTIONS_REFUSED: &str = "voxgate_connections_refused_total";
/// Connections to the port with TLS that did not get through its handshake.
pub const HANDSHAKES_FAILED: &str = "voxgate_tls_handshakes_failed_total";
/// Requests refused before their handler, by `reason`.
pub const AUTH_REFUSED: &str = "voxgate_auth_refused_total";
/// Mirrors attached now.
pub const MIRRORS: &str = "voxgate_mirrors";
/// Mirrors let go, by `reason`: `slow`, `dead`, `oversize`.
pub const MIRRORS_EVICTED: &str = "voxgate_mirrors_evicted_total";
/// Realtime sockets open now.
pub const REALTIME_SOCKETS: &str = "voxgate_realtime_sockets";

/// Counts one answered request. `route` is a path of the table, or `other`.
pub fn answered(route: &str, status: u16) {
    counter!(HTTP_REQUESTS, "route" => route.to_string(), "status" => status.to_string()).increment(1);
}

/// Counts a request that was refused before its handler.
pub fn refused(reason: &'static str) { counter!(AUTH_REFUSED, "reason" => reason).increment(1); }

/// Counts a connection that found no place.
pub fn connection_refused() { counter!(CONNECTIONS_REFUSED).increment(1); }

/// Counts a connection that was no TLS, or not in time.
pub fn handshake_failed() { counter!(HANDSHAKES_FAILED).increment(1); }

/// Counts a mirror that was let go.
pub fn mirror_evicted(reason: &'static str) { counter!(MIRRORS_EVICTED, "reason" => reason).increment(1); }

/// One more in a gauge, until dropped.
#[must_use]
pub struct OneMore(&'static str);

impl OneMore {
    fn of(name: &'static str) -> Self {
        gauge!(name).increment(1.0);
        Self(name)
    }
}

impl Drop for OneMore {
    fn drop(&mut self) { gauge!(self.0).decrement(1.0); }
}

/// A connection is open.
pub fn connection() -> OneMore { OneMore::of(CONNECTIONS) }
/// A mirror is attached.
pub fn mirror() -> OneMore { OneMore::of(MIRRORS) }
/// A realtime socket is open.
pub fn realtime_socket() -> OneMore { OneMore::of(REALTIME_SOCKETS) }
