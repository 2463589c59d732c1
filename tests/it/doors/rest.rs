//! REST control: the shapes of wire.md A1.2 and A1.8, and what bad input gets.

use serde_json::json;
use voxgate::engine::authority::Surface;

use super::fake::{OPERATOR, World};
use super::http::{ask, bearer, host, raw};

#[tokio::test]
async fn plan_mode_in_and_out() {
    let world = World::start().await;
    let (a, path) = (world.address, "/api/sessions/s1/plan_mode");
    let before = ask(a, "GET", path, "").await.json();
    assert_eq!((before["session_id"].as_str(), before["plan_mode"].as_bool(), before["plan_count"].as_u64()), (Some("s1"), Some(false), Some(2)));
    assert!(before["entered_at"].is_null() && before["latest_plan"]["version"] == 2, "{before}");
    let on = ask(a, "POST", path, r#"{"enabled": true, "reason": "look first"}"#).await.json();
    assert_eq!((on["plan_mode"].as_bool(), on["reason"].as_str(), on["entered_by"].as_str()), (Some(true), Some("look first"), Some("user")));
    assert!(on["entered_at"].as_f64().is_some() && on.get("approved").is_none());
    let which = ask(a, "POST", path, r#"{"enabled": false, "approved": true}"#).await;
    assert_eq!((which.status, which.json()["error_code"].as_str().map(String::from)), (409, Some("which_version".into())));
    let changed = ask(a, "POST", path, r#"{"enabled": false, "approved": true, "version": 2, "hash": "no"}"#).await;
    assert_eq!((changed.status, changed.json()["error_code"].as_str().map(String::from)), (409, Some("plan_changed".into())));
    let off = ask(a, "POST", path, r#"{"enabled": false, "approved": true, "version": 2, "hash": "0000000000000002"}"#).await.json();
    assert_eq!((off["plan_mode"].as_bool(), off["approved"].as_bool()), (Some(false), Some(true)));
    assert_eq!(off["latest_plan"]["status"], "waiting", "as it stood before the exit: {off}");
    ask(a, "POST", path, r#"{"enabled": true}"#).await;
    let left = ask(a, "POST", path, r#"{"enabled": false}"#).await.json();
    assert_eq!((left["plan_mode"].as_bool(), left["approved"].as_bool()), (Some(false), Some(false)));
    assert!(world.seen().iter().all(|(surface, _)| *surface == Surface::Rest));
    world.stop().await;
}

#[tokio::test]
async fn bad_bodies_name_the_field() {
    let world = World::start().await;
    let (a, path) = (world.address, "/api/sessions/s1/plan_mode");
    for (body, field) in [
        ("", "enabled"), ("{}", "enabled"), (r#"{"enabled": "yes"}"#, "enabled"), (r#"{"enabled": 1}"#, "enabled"), (r#"{"enabled": null}"#, "enabled"),
        (r#"{"enabled": true, "reason": 5}"#, "reason"), (r#"{"enabled": false, "approved": "y"}"#, "approved"),
        (r#"{"enabled": false, "approved": true, "version": -1}"#, "version"), ("{", "body"), ("[]", "body"), ("\u{feff}", "body"),
    ] {
        let answer = ask(a, "POST", path, body).await;
        assert_eq!((answer.status, answer.json()["field"].as_str().map(String::from)), (400, Some(field.into())), "{body}: {}", answer.body);
    }
    let mode = ask(a, "POST", "/api/autonomy", r#"{"mode": "reckless"}"#).await;
    assert_eq!((mode.status, mode.json()["field"].as_str().map(String::from)), (400, Some("mode".into())));
    assert_eq!(ask(a, "POST", "/api/sessions/zzz/plan_mode", r#"{"enabled": true}"#).await.status, 404);
    assert!(world.seen().is_empty(), "nothing bad reached a conversation");
    world.stop().await;
}

#[tokio::test]
async fn autonomy_and_approvals() {
    let world = World::start().await;
    let a = world.address;
    assert_eq!(ask(a, "GET", "/api/autonomy", "").await.json()["mode"], "hybrid");
    let set = ask(a, "POST", "/api/autonomy", r#"{"mode": "strict"}"#).await.json();
    assert_eq!(set, json!({"success": true, "mode": "strict", "persisted": false}));
    assert_eq!(ask(a, "GET", "/api/autonomy", "").await.json()["mode"], "strict");
    let list = ask(a, "GET", "/api/approvals", "").await.json();
    assert_eq!((list["count"].as_u64(), list["approvals"][0]["request_id"].as_str(), list["approvals"][0]["status"].as_str()), (Some(1), Some("q1"), Some("pending")));
    assert_eq!(list["approvals"][0]["args"]["text"], "milk");
    assert_eq!(ask(a, "GET", "/api/approvals?session_id=s2", "").await.json()["count"], 0);
    for limit in ["0", "501", "x", "-1"] { assert_eq!(ask(a, "GET", &format!("/api/approvals?limit={limit}"), "").await.status, 400, "{limit}") }
    let mismatch = ask(a, "POST", "/api/approvals/q1/approve", r#"{"session_id": "s2"}"#).await;
    assert_eq!((mismatch.status, mismatch.json()["error_code"].as_str().map(String::from)), (409, Some("session_mismatch".into())));
    assert_eq!(ask(a, "POST", "/api/approvals/q1/burn", "").await.status, 404);
    assert_eq!(ask(a, "POST", "/api/approvals/q9/approve", "").await.status, 404);
    let done = ask(a, "POST", "/api/approvals/q1/reject", "").await.json();
    assert_eq!((done["success"].as_bool(), done["status"].as_str(), done["session_id"].as_str(), done["tool_name"].as_str()), (Some(true), Some("rejected"), Some("s1"), Some("notes__add")));
    assert_eq!(ask(a, "POST", "/api/approvals/q1/approve", "").await.status, 404, "it is decided once");
    world.stop().await;
}

#[tokio::test]
async fn sessions_models_and_health() {
    let world = World::with(|doors| doors.ready = std::sync::Arc::new(|| Err("the recogniser is starting".into()))).await;
    let a = world.address;
    let list = ask(a, "GET", "/v1/sessions", "").await.json();
    assert_eq!((list["count"].as_u64(), list["sessions"][0]["id"].as_str()), (Some(2), Some("s2")));
    let one = ask(a, "GET", "/v1/sessions/s1", "").await.json();
    assert_eq!((one["type"].as_str(), one["payload"]["plans"].as_array().map(Vec::len)), (Some("snapshot"), Some(2)));
    assert_eq!(ask(a, "GET", "/v1/sessions/last", "").await.json()["session_id"], "s2");
    let new = ask(a, "POST", "/v1/sessions", "").await;
    assert_eq!((new.status, new.json()["id"].as_str().map(String::from)), (201, Some("n2".into())));
    for _ in 0..40 { ask(a, "POST", "/v1/sessions", "").await; }
    let full = ask(a, "POST", "/v1/sessions", "").await;
    assert_eq!((full.status, full.header("retry-after")), (503, Some("30")));
    assert_eq!(ask(a, "GET", "/v1/models", "").await.json()["data"][0]["id"], "voxgate");
    assert_eq!(ask(a, "GET", "/healthz", "").await.json()["status"], "ok");
    let ready = ask(a, "GET", "/readyz", "").await;
    assert_eq!((ready.status, ready.json()["missing"].as_str().map(String::from)), (503, Some("the recogniser is starting".into())));
    assert_eq!(ask(a, "GET", "/metrics", "").await.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    let proxied = raw(a, "GET", "/metrics", &[host(a), "x-forwarded-for: 10.0.0.9".into(), "connection: close".into()], "").await;
    assert_eq!(proxied.status, 401, "a proxy's callers are not this machine");
    world.stop().await;
}

#[tokio::test]
async fn a_link_is_good_once_and_makes_an_operator() {
    let world = World::start().await;
    let a = world.address;
    let post = async |path: &str, headers: Vec<String>, body: String| raw(a, "POST", path, &headers, &body).await;
    let plain = || vec![host(a), "connection: close".to_string()];
    let code = world.links.issue().unwrap();
    let body = json!({"code": code}).to_string();
    let token = post("/api/link", plain(), body.clone()).await.json()["token"].as_str().unwrap().to_string();
    assert_eq!(post("/api/link", plain(), body).await.status, 401);
    assert_eq!(post("/api/link", plain(), "{}".into()).await.json()["field"], "code");
    let mut headers = plain();
    headers.push(bearer(&token));
    assert_eq!(raw(a, "GET", "/api/autonomy", &headers, "").await.status, 200);
    let another = ask(a, "POST", "/api/link/new", "").await.json();
    assert_eq!(another["url"], format!("http://{a}/#code={}", another["code"].as_str().unwrap()));
    let traded = post("/api/link", plain(), json!({"code": another["code"]}).to_string()).await;
    assert_eq!(traded.status, 200);
    assert!(!traded.head.contains(OPERATOR) && !traded.body.contains(OPERATOR));
    world.stop().await;
}

#[tokio::test]
async fn the_page_keeps_to_itself() {
    let world = World::start().await;
    let a = world.address;
    for (path, kind) in [("/", "text/html; charset=utf-8"), ("/app.js", "text/javascript; charset=utf-8"), ("/style.css", "text/css; charset=utf-8"), ("/icon.svg", "image/svg+xml")] {
        let answer = raw(a, "GET", path, &[host(a), "connection: close".into()], "").await;
        assert_eq!((answer.status, answer.header("content-type")), (200, Some(kind)), "{path}");
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'self'; connect-src 'self' ws: wss:;") && policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"));
        assert_eq!((answer.header("x-content-type-options"), answer.header("referrer-policy")), (Some("nosniff"), Some("no-referrer")));
        assert!(!answer.body.is_empty());
    }
    for path in ["/nothing.js", "/..%2fmod.rs", "/page"] {
        assert_eq!(raw(a, "GET", path, &[host(a), "connection: close".into()], "").await.status, 404, "{path}");
    }
    world.stop().await;
}
