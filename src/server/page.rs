//! THE PAGE'S FILES, compiled in, and the headers that keep a page in its place. Owns the table of files and the content
//! policy; the router serves from it. Holds nothing of a conversation: the page asks for that with its own token.

use axum::extract::Path;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use super::problem::Problem;

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const PICTURE: &str = "image/svg+xml";

struct File {
    name: &'static str,
    kind: &'static str,
    bytes: &'static [u8],
}

macro_rules! files {
    ($($name:literal $kind:ident,)*) => {
        &[$(File { name: $name, kind: $kind, bytes: include_bytes!(concat!("page/", $name)) }),*]
    };
}

const FILES: &[File] = files! {
    "index.html" HTML,
    "style.css" STYLE,
    "icon.svg" PICTURE,
    "app.js" SCRIPT,
    "link.js" SCRIPT,
    "mirror.js" SCRIPT,
    "resample.js" SCRIPT,
    "state.js" SCRIPT,
    "tones.js" SCRIPT,
    "view.js" SCRIPT,
    "voice.js" SCRIPT,
    "worklet.js" SCRIPT,
};

/// Scripts, styles, pictures and worklets from here only; sockets to here (older browsers do not count them as 'self');
/// nothing inline, no frames around it, no forms, no base.
const POLICY: &str = "default-src 'self'; connect-src 'self' ws: wss:; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// `GET /`.
pub async fn index() -> Response { serve("index.html") }

/// `GET /{file}`.
pub async fn file(Path(name): Path<String>) -> Response { serve(&name) }

fn serve(name: &str) -> Response {
    match FILES.iter().find(|file| file.name == name) {
        Some(file) => ([(CONTENT_TYPE, file.kind)], file.bytes).into_response(),
        None => Problem::new(StatusCode::NOT_FOUND, "not_found", "nothing is served at this path").into_response(),
    }
}

/// Headers that every answer carries. The link code stands in the page's address, so no address is handed on.
pub fn harden(headers: &mut HeaderMap) {
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("permissions-policy"), "microphone=(self), camera=(), geolocation=()"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_folder_is_in_the_table() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/server/page");
        let mut there: Vec<String> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        there.sort();
        let mut listed: Vec<&str> = FILES.iter().map(|file| file.name).collect();
        listed.sort_unstable();
        assert_eq!(there, listed);
    }

    #[test]
    fn a_name_says_its_kind() {
        for file in FILES {
            let kind = match file.name.rsplit('.').next() {
                Some("js") => SCRIPT,
                Some("css") => STYLE,
                Some("svg") => PICTURE,
                _ => HTML,
            };
            assert_eq!(file.kind, kind, "{}", file.name);
        }
    }
}
