//! EVERY ROUTE ON ONE SCREEN, with the grade it asks for. Owns the table and the order of the checks around it. `serve`
//! builds the router from it; a test walks it with every kind of caller.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};

use super::auth::{Grade, guard};
use super::problem::{Problem, dress};
use super::serve::Knock;
use super::{Shared, ephemeral, metrics, mirror, page, plans, rest, sessions, sockets};

/// One line of the table.
pub struct Route {
    /// HTTP method; sockets are opened by GET.
    pub method: &'static str,
    /// Path, with `{names}` for what varies.
    pub path: &'static str,
    /// What it asks of its caller.
    pub grade: Grade,
    /// It is a WebSocket.
    pub socket: bool,
    handler: fn() -> MethodRouter<Arc<Shared>>,
}

macro_rules! routes {
    ($($method:ident $path:literal $grade:ident $kind:ident $handler:path;)*) => {
        &[$(Route {
            method: stringify!($method), path: $path, grade: Grade::$grade, socket: routes!(@ $kind),
            handler: || routes!(@ $method $handler),
        }),*]
    };
    (@ plain) => { false };
    (@ socket) => { true };
    (@ GET $handler:path) => { get($handler) };
    (@ POST $handler:path) => { post($handler) };
}

/// The table.
#[rustfmt::skip]
pub const ROUTES: &[Route] = routes! {
    GET  "/"                                  Open     plain  page::index;
    GET  "/{file}"                            Open     plain  page::file;
    GET  "/healthz"                           Open     plain  sessions::healthz;
    GET  "/readyz"                            Open     plain  sessions::readyz;
    GET  "/metrics"                           Local    plain  sessions::metrics;

    POST "/api/link"                          Open     plain  rest::trade_link;
    POST "/api/link/new"                      Operator plain  rest::new_link;
    GET  "/api/sessions/{id}/plan_mode"       Operator plain  rest::plan_mode;
    POST "/api/sessions/{id}/plan_mode"       Operator plain  rest::set_plan_mode;
    GET  "/api/sessions/{id}/mode"            Operator plain  plans::modes;
    POST "/api/sessions/{id}/mode"            Operator plain  plans::set_mode;
    GET  "/api/sessions/{id}/plans"           Operator plain  plans::list;
    POST "/api/sessions/{id}/plans"           Operator plain  plans::decide;
    GET  "/api/sessions/{id}/plans/difference" Operator plain plans::difference;
    POST "/api/sessions/{id}/comments"        Operator plain  plans::comment;
    GET  "/api/autonomy"                      Operator plain  rest::autonomy;
    POST "/api/autonomy"                      Operator plain  rest::set_autonomy;
    GET  "/api/approvals"                     Operator plain  rest::approvals;
    POST "/api/approvals/{request}/{verdict}" Operator plain  rest::decide_approval;

    GET  "/v1/models"                         Client   plain  sessions::models;
    GET  "/v1/sessions"                       Operator plain  sessions::list;
    POST "/v1/sessions"                       Operator plain  sessions::create;
    GET  "/v1/sessions/{id}"                  Operator plain  sessions::one;
    GET  "/v1/sessions/{id}/events"           Operator socket mirror::upgrade;

    GET  "/v1/realtime"                       Client   socket sockets::upgrade;
    GET  "/realtime"                          Client   socket sockets::upgrade;
    GET  "/openai/v1/realtime"                Client   socket sockets::upgrade;
    GET  "/openai/realtime"                   Client   socket sockets::upgrade;
    POST "/v1/realtime/client_secrets"        Client   plain  ephemeral::create;
    POST "/realtime/client_secrets"           Client   plain  ephemeral::create;
    POST "/openai/v1/realtime/client_secrets" Client   plain  ephemeral::create;
    POST "/openai/realtime/client_secrets"    Client   plain  ephemeral::create;
    POST "/v1/realtime/sessions"              Client   plain  ephemeral::create;
    POST "/realtime/sessions"                 Client   plain  ephemeral::create;
    POST "/openai/v1/realtime/sessions"       Client   plain  ephemeral::create;
    POST "/openai/realtime/sessions"          Client   plain  ephemeral::create;
};

/// The table as a router. Around each route stands its guard, around all of them Host and Origin.
pub(super) fn router(shared: &Arc<Shared>) -> Router {
    let routes = ROUTES.iter().fold(Router::new(), |router, route| {
        router.route(route.path, (route.handler)().route_layer(from_fn_with_state((Arc::clone(shared), route), guard)))
    });
    routes.fallback(nothing_here).layer(from_fn_with_state(Arc::clone(shared), threshold)).with_state(Arc::clone(shared))
}

/// First in, last out: Host and Origin before anything, the body of a refusal and the headers of every answer after.
async fn threshold(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let path = request.uri().path().to_string();
    let response = match shared.allowed.check(request.uri(), request.headers(), request.extensions().get::<Knock>().and_then(|knock| knock.secure)) {
        Ok(()) => next.run(request).await,
        Err(problem) => {
            metrics::refused(problem.code);
            problem.into_response()
        }
    };
    let delay = response.extensions().get::<Problem>().map_or(Duration::ZERO, |problem| problem.delay);
    if !delay.is_zero() { tokio::time::sleep(delay).await }
    let route = response.extensions().get::<&'static Route>().map_or("other", |route| route.path);
    let mut response = dress(&path, response);
    page::harden(response.headers_mut());
    metrics::answered(route, response.status().as_u16());
    response
}

async fn nothing_here() -> Problem {
    Problem::new(axum::http::StatusCode::NOT_FOUND, "not_found", "nothing is served at this path")
}
