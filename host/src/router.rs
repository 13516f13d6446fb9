//! Every route.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Version, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::Response;
use futures_util::FutureExt as _;
use nudge_apps::cors;
use nudge_http::request::{self, Around};
use nudge_http::{ApiError, Code, admission};
use utoipa::OpenApi as _;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::services::Shared;
use crate::{book, console, dead_letters, jobs, openapi, operations, shop, stats, web_sdk};

/// The API with its documentation. Each feature lists its own routes, which makes their code its package's own too: what a change
/// to a package compiles again is that package, and little here.
pub fn api(services: &Shared) -> (Router<Shared>, OpenApi) {
    let (sdk, sdk_document) = sdk(services).split_for_parts();
    // A fallback that is set later would be outside of the layer, which answers browsers' OPTIONS.
    let sdk = sdk
        .method_not_allowed_fallback(method_not_allowed)
        .layer(from_fn_with_state(services.clone(), around_sdk));
    let (management, mut document) = OpenApiRouter::with_openapi(openapi::Document::openapi())
        .merge(management(services))
        .split_for_parts();
    document.merge(sdk_document);
    let management = management.layer(from_fn_with_state(services.clone(), around_management));
    (management.merge(sdk), document)
}

// What is around routes is one layer for each, as each adds two boxes to every request.

async fn around_sdk(State(services): State<Shared>, request: Request, next: Next) -> Response {
    // Outside, so that pages may read that they are to come back.
    let answer = |request| admission::around(&services.admission, request, next);
    cors::around(&services, request, answer).await
}

async fn around_management(
    State(services): State<Shared>,
    request: Request,
    next: Next,
) -> Response {
    admission::around(&services.admission, request, next).await
}

/// For SDKs and customers' servers.
fn sdk(services: &Shared) -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .merge(nudge_people::router::sdk().with_state(Arc::clone(services.pipeline())))
        .merge(nudge_ingest::router::sdk().with_state(Arc::clone(&services.ingest)))
        .merge(nudge_surveys::router::sdk().with_state(Arc::clone(services.pipeline())))
        .merge(nudge_push::router::sdk().with_state(Arc::clone(&services.push)))
}

/// What people and tools manage apps with.
fn management(services: &Shared) -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .merge(nudge_apps::router::management().with_state(Arc::clone(services.apps())))
        .merge(nudge_people::router::management().with_state(Arc::clone(services.records())))
        .merge(nudge_people::router::segments().with_state(Arc::clone(services.pipeline())))
        .merge(nudge_pipeline::router::management().with_state(Arc::clone(services.pipeline())))
        .merge(nudge_ingest::router::management().with_state(Arc::clone(&services.ingest)))
        .merge(nudge_surveys::router::management().with_state(Arc::clone(services.pipeline())))
        .merge(nudge_push::router::management().with_state(Arc::clone(&services.push)))
        .merge(own())
}

/// What is about several packages.
fn own() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .merge(jobs::http::routes())
        .merge(dead_letters::http::routes())
        .merge(stats::http::routes())
        .routes(routes!(openapi::list_errors))
}

/// The whole main listener. `with_operations` adds the operators' routes (embedded mode).
pub fn router(services: Shared, with_operations: bool) -> serde_json::Result<Router> {
    let (api, _) = api(&services);
    // Everybody may read them, so that they take places as all other requests do.
    let mut pages = openapi::routes(&services)?.merge(web_sdk::routes());
    pages = pages
        .merge(book::routes())
        .merge(console::routes())
        .merge(nudge_apps::router::console().with_state(Arc::clone(services.apps())))
        .merge(console::home(with_operations));
    if with_operations {
        pages = pages.merge(shop::routes());
    }
    let pages = pages.layer(from_fn_with_state(services.clone(), around_management));
    let mut router = api.merge(pages);
    if with_operations {
        router = router.merge(operations::http::routes());
    }
    let around = Around {
        traces: services.traces.clone(),
        trusted_proxies: services.config.server.trusted_proxies,
        ..Around::untraced(&services.clock)
    };
    let draining = services.draining.clone();
    let around = from_fn(move |request: Request, next| {
        let may_stay = request.version() >= Version::HTTP_2;
        let draining = draining.clone();
        let answered = request::layer(around.clone(), request, next);
        // A connection that is left open would be cut off when the server stops, perhaps as the next request is sent on it.
        answered.map(move |response| {
            if draining.is_cancelled() && !may_stay {
                close(response)
            } else {
                guard(response)
            }
        })
    });
    Ok(router
        .fallback(|| async { ApiError::new(Code::NotFound) })
        .method_not_allowed_fallback(method_not_allowed)
        .layer(around)
        .with_state(services))
}

fn guard(mut response: Response) -> Response {
    openapi::add_security_headers(&mut response);
    response
}

async fn method_not_allowed() -> ApiError {
    ApiError::new(Code::MethodNotAllowed)
}

/// What connections get for which there is no room: the operators' routes where they are, and refusals.
pub fn full_router(services: Shared, with_operations: bool) -> Router {
    let router = if with_operations {
        operations::http::routes()
    } else {
        Router::new()
    };
    let around = Around::untraced(&services.clock);
    let around =
        from_fn(move |request, next| request::layer(around.clone(), request, next).map(close));
    router
        .fallback(|| async { ApiError::new(Code::Unavailable) })
        .layer(around)
        .with_state(services)
}

/// Has the connection closed after a response; HTTP/2 has no such header.
fn close(response: Response) -> Response {
    let mut response = guard(response);
    if response.version() < Version::HTTP_2 {
        let headers = response.headers_mut();
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// The operators' listener.
pub fn operations_router(services: Shared) -> Router {
    let around = Around::untraced(&services.clock);
    let around =
        from_fn(move |request, next| request::layer(around.clone(), request, next).map(guard));
    // Alerts lead to the runbook there.
    operations::http::routes()
        .merge(book::routes())
        .fallback(|| async { ApiError::new(Code::NotFound) })
        .method_not_allowed_fallback(method_not_allowed)
        .layer(around)
        .with_state(services)
}
