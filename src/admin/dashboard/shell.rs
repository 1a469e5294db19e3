//! What surrounds every page: who asks, where they are, what is wrong; and the pages of failure and of signing in.

use std::sync::Arc;

use askama::Template;
use axum::body::{Bytes, to_bytes};
use axum::extract::{FromRequestParts, OriginalUri, Request};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{Html, IntoResponse, Response};
use jiff::Timestamp;
use serde::Deserialize;

use super::assets;
use super::parts;
use super::words;
use crate::admin::access::{Viewer, accepts_html};
use crate::admin::identity::{How, Identity, Role};
use crate::admin::problem;
use crate::admin::view::{View, ViewError};

// === Asked ===

/// Who asks for what.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    /// Who.
    pub(super) identity: Identity,
    /// Path and query.
    pub(super) url: String,
    /// Only the live part of the page is asked for.
    pub(super) part: bool,
}

impl<S: Sync> FromRequestParts<S> for Asked {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let viewer = Viewer::from_request_parts(parts, state).await;
        let Viewer(identity) = viewer.map_err(IntoResponse::into_response)?;
        let original = parts.extensions.get::<OriginalUri>();
        let uri = original.map_or(&parts.uri, |original| &original.0);
        let url = uri.path_and_query().map_or("/", |path| path.as_str());
        Ok(Self {
            identity,
            url: url.to_owned(),
            part: parts.headers.contains_key("hx-request"),
        })
    }
}

impl Asked {
    /// Gives the query of the URL, empty where there is none.
    pub(super) fn query(&self) -> &str {
        self.url.split_once('?').map_or("", |(_, query)| query)
    }

    /// Tells whether who asks may change things.
    pub(super) fn is_operator(&self) -> bool {
        self.identity.role.includes(Role::Operator)
    }
}

// === Shell ===

/// What every template reads beside its own.
#[derive(Clone, Debug)]
pub(super) struct Shell {
    /// The page's title.
    pub(super) title: String,
    /// Path and query of this page.
    pub(super) url: String,
    /// Who is signed in; `None`: nobody.
    pub(super) who: Option<String>,
    /// They may change things.
    pub(super) operator: bool,
    /// The time of rendering.
    pub(super) now: Timestamp,
    /// The node's name; empty on pages for those who are told nothing.
    pub(super) node: String,
    /// Its live part is fetched again when something happens; a form stays as it is.
    pub(super) is_live: bool,
}

/// Where the menu leads.
const MENU: &[(&str, &str)] = &[
    ("/", "Overview"),
    ("/clusters", "Clusters"),
    ("/services", "Services"),
    ("/monitors", "Monitors"),
    ("/events", "Events"),
    ("/drains", "Drains"),
    ("/explain", "Explain"),
    ("/zones", "Zones"),
    ("/sources", "Sources"),
    ("/audit", "Audit"),
];

impl Shell {
    /// Makes the shell of a page.
    pub(super) fn new(asked: &Asked, title: impl Into<String>, node: &str) -> Self {
        let is_known = asked.identity.how != How::Anonymous;
        Self {
            title: title.into(),
            url: asked.url.clone(),
            who: is_known.then(|| asked.identity.name.to_string()),
            operator: asked.is_operator(),
            now: Timestamp::now(),
            node: node.to_owned(),
            is_live: true,
        }
    }

    /// Makes the shell of a page for those of whom nothing is known, and who are told nothing.
    fn bare(title: &str) -> Self {
        Self {
            title: title.to_owned(),
            url: "/".to_owned(),
            who: None,
            operator: false,
            now: Timestamp::now(),
            node: String::new(),
            is_live: false,
        }
    }

    /// Makes it the shell of a page that stays as it is.
    pub(super) fn still(self) -> Self {
        Self {
            is_live: false,
            ..self
        }
    }

    /// Lists the menu: path, word, and whether this page is below it. The audit log is for operators.
    pub(super) fn menu(&self) -> impl Iterator<Item = (&'static str, &'static str, bool)> {
        let path = self.url.split('?').next().unwrap_or("/");
        let is_for = |place: &str| self.operator || place != "/audit";
        let places = MENU.iter().filter(move |(place, _)| is_for(place));
        places.map(move |&(place, word)| {
            let below = path
                .strip_prefix(place)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
            (place, word, if place == "/" { path == "/" } else { below })
        })
    }

    /// Gives the URL of a file.
    pub(super) fn asset(&self, name: &str) -> String {
        assets::url(name)
    }

    /// Gives the link that signs in and comes back here.
    pub(super) fn login(&self) -> String {
        format!("/login?next={}", words::encode(&self.url))
    }

    /// Gives the version.
    pub(super) fn version(&self) -> &'static str {
        env!("CARGO_PKG_VERSION")
    }

    /// Tells whether the embedded database, whose license wants its name shown, is in this binary.
    pub(super) fn has_embedded_database(&self) -> bool {
        cfg!(feature = "embedded-geoip")
    }
}

// === Pages ===

/// A page with a part that is fetched again while it is looked at.
pub(super) trait Page: Template {
    /// Renders that part alone.
    ///
    /// # Errors
    /// When the template fails, which none of ours does.
    fn live(&self) -> askama::Result<String>;
}

/// Says which block of a template is its live part.
macro_rules! page {
    ($($name:ty),*) => { $(
        impl $crate::admin::dashboard::shell::Page for $name {
            fn live(&self) -> askama::Result<String> {
                askama::Template::render(&self.as_live())
            }
        }
    )* };
}
pub(super) use page;

/// What handlers share.
#[derive(Clone, Debug)]
pub(super) struct Dashboard {
    pub(super) view: View,
    parts: Arc<parts::Parts>,
}

impl Dashboard {
    /// Begins with nothing rendered.
    pub(super) fn new(view: View) -> Self {
        Self {
            view,
            parts: Arc::default(),
        }
    }

    /// Makes the shell of a page.
    pub(super) fn shell(&self, asked: &Asked, title: impl Into<String>) -> Shell {
        Shell::new(asked, title, self.view.vantage().node())
    }

    /// Answers with a page, or with its live part, which all who look at the same share.
    pub(super) async fn serve<P: Page>(
        &self,
        asked: &Asked,
        make: impl Future<Output = Result<P, ViewError>>,
    ) -> Response {
        let answer = if asked.part {
            let key = format!("{} {}", asked.is_operator(), asked.url);
            let live = async { Ok(Bytes::from(text(make.await?.live()))) };
            self.parts.part(key, live).await
        } else {
            make.await.map(|page| Bytes::from(text(page.render())))
        };
        match answer {
            Ok(body) => html(StatusCode::OK, body),
            Err(error) => self.refuse(asked, &error),
        }
    }

    /// Keeps data for a moment, as [`Dashboard::serve`] does parts.
    pub(super) async fn shared(&self, asked: &Asked, make: impl FnOnce() -> Vec<u8>) -> Bytes {
        let make = async { Ok::<_, std::convert::Infallible>(Bytes::from(make())) };
        let Ok(body) = self.parts.part(asked.url.clone(), make).await;
        body
    }

    /// Answers that something is for operators.
    pub(super) fn deny(&self, asked: &Asked) -> Response {
        let page = Message {
            shell: self.shell(asked, "For operators").still(),
            status: StatusCode::FORBIDDEN.as_u16(),
            detail: "This needs role operator: sign in with an operator’s token.".to_owned(),
        };
        html(StatusCode::FORBIDDEN, Bytes::from(text(page.render())))
    }

    /// Answers with what is wrong with a request.
    pub(super) fn refuse(&self, asked: &Asked, error: &ViewError) -> Response {
        let (status, title) = match error {
            ViewError::NotFound(_) => (StatusCode::NOT_FOUND, "Not found"),
            ViewError::Invalid(_) => (StatusCode::BAD_REQUEST, "This makes no sense"),
            ViewError::Conflict(_) => (StatusCode::CONFLICT, "This collides with what is there"),
            ViewError::Gone => (StatusCode::SERVICE_UNAVAILABLE, "Going down"),
        };
        let page = Message {
            shell: self.shell(asked, title).still(),
            status: status.as_u16(),
            detail: words::capital(&error.to_string()),
        };
        html(status, Bytes::from(text(page.render())))
    }
}

/// Answers with HTML that nobody keeps: it is of this moment, and of this person.
pub(super) fn html(status: StatusCode, body: Bytes) -> Response {
    let kept = [
        (header::CACHE_CONTROL, "no-store"),
        (header::VARY, "HX-Request"),
    ];
    (status, kept, Html(body)).into_response()
}

/// Takes what a template rendered. It fails only when a `Display` of ours does, which is a bug; the page then says so.
pub(super) fn text(rendered: askama::Result<String>) -> String {
    rendered.unwrap_or_else(|error| {
        tracing::error!(%error, "Page could not be rendered");
        "This page could not be rendered.".to_owned()
    })
}

/// A page that says what went wrong.
#[derive(Template)]
#[template(config = "src/admin/dashboard/askama.toml", path = "message.html")]
pub(super) struct Message {
    pub(super) shell: Shell,
    pub(super) status: u16,
    pub(super) detail: String,
}

/// The page to sign in.
#[derive(Template)]
#[template(config = "src/admin/dashboard/askama.toml", path = "login.html")]
struct Login {
    shell: Shell,
    next: String,
    fault: Option<String>,
    who: Option<String>,
}

/// Largest failure that is made into a page, octets.
const MAX_FAILURE: usize = 16 << 10;

/// Makes pages of failures, for browsers: what guard, router and extractors say is for programs. Status and headers stay.
pub(in crate::admin) async fn as_pages(request: Request, next: Next) -> Response {
    let is_browser = accepts_html(request.headers()) && !request.uri().path().starts_with("/api/");
    let response = next.run(request).await;
    let status = response.status();
    let kind = response.headers().get(header::CONTENT_TYPE);
    let is_problem = kind.is_some_and(|kind| kind == problem::MEDIA_TYPE);
    if !is_browser || !is_problem {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let body = to_bytes(body, MAX_FAILURE).await.unwrap_or_default();
    let told: Told = serde_json::from_slice(&body).unwrap_or_default();
    let page = Message {
        shell: Shell::bare(status.canonical_reason().unwrap_or("Error")),
        status: status.as_u16(),
        detail: words::capital(&told.detail),
    };
    parts.headers.remove(header::CONTENT_LENGTH);
    let html = HeaderValue::from_static("text/html; charset=utf-8");
    parts.headers.insert(header::CONTENT_TYPE, html);
    Response::from_parts(parts, text(page.render()).into())
}

/// What is read of a problem.
#[derive(Default, Deserialize)]
struct Told {
    #[serde(default)]
    detail: String,
}

/// Renders the page to sign in: a form that posts `token` and `next`, a path of ours, to `/login`; for those signed in one that
/// posts to `/logout` as well. `fault` says why the last try failed.
pub(in crate::admin) fn login_page(
    next: &str,
    who: Option<&Identity>,
    fault: Option<&str>,
) -> String {
    let page = Login {
        shell: Shell::bare("Sign in"),
        next: words::local(next).to_owned(),
        fault: fault.map(words::capital),
        who: who.map(|who| format!("{}, role {}", who.name, who.role)),
    };
    text(page.render())
}
