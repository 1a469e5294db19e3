//! One request to one node: bounded in time and size, followed nowhere, and no secret in the clear.

use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, LOCATION, RETRY_AFTER};
use reqwest::{Method, Response, StatusCode, Url};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::ask::Ask;
use super::fault::{Fault, FaultKind, of_request};
use super::files::read_small;
use crate::app::words::clean;

/// Longest wait for a connection.
const CONNECT: Duration = Duration::from_secs(3);
/// Longest wait for the whole answer.
const WHOLE: Duration = Duration::from_secs(10);
/// Largest answer in octets: a page of 500 services of the largest kind is a tenth of it.
const MAX_ANSWER: usize = 32 << 20;
/// Largest token file in octets: OIDC tokens are the longest, and headers of 16 KiB are refused.
const MAX_TOKEN: u64 = 16 << 10;
/// Longest words taken over from a node's refusal, in characters.
const MAX_WORDS: usize = 1_000;

/// Speaks to one node.
#[derive(Clone, Debug)]
pub(in crate::app) struct Client {
    http: reqwest::Client,
    server: Url,
    token: Option<HeaderValue>,
}

/// What came of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::app) struct Made<T> {
    /// It is new; otherwise it was so already.
    pub(in crate::app) new: bool,
    /// What is in force now.
    pub(in crate::app) value: T,
}

/// What RFC 9457 problems say, as far as it is read here.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Problem {
    title: String,
    detail: Option<String>,
}

impl Client {
    /// Makes a client of a node. `http` may be shared by several.
    ///
    /// # Errors
    ///
    /// When the token would travel where others can read it.
    pub(super) fn new(
        http: reqwest::Client,
        server: Url,
        token: Option<HeaderValue>,
    ) -> anyhow::Result<Self> {
        if token.is_some() && server.scheme() != "https" && !is_loopback(&server) {
            bail!(
                "{}: a token is not sent over plain http to another machine; use https://, or a tunnel to a loopback address",
                shown(&server)
            );
        }
        Ok(Self {
            http,
            server,
            token,
        })
    }

    /// Gives the node's URL.
    pub(in crate::app) fn server(&self) -> String {
        shown(&self.server)
    }

    /// Reads something.
    ///
    /// # Errors
    ///
    /// Everything that [`FaultKind`] lists.
    pub(in crate::app) async fn get<T: DeserializeOwned>(&self, ask: &Ask) -> Result<T, Fault> {
        let made = self.send(Method::GET, ask, None).await;
        made.map(|made| made.value).map_err(|kind| self.fault(kind))
    }

    /// Makes something.
    ///
    /// # Errors
    ///
    /// Everything that [`FaultKind`] lists.
    pub(in crate::app) async fn post<T: DeserializeOwned>(
        &self,
        ask: &Ask,
        body: &impl Serialize,
    ) -> Result<Made<T>, Fault> {
        let body = serde_json::to_vec(body).expect("our shapes are JSON");
        let made = self.send(Method::POST, ask, Some(body)).await;
        made.map_err(|kind| self.fault(kind))
    }

    /// Ends something.
    ///
    /// # Errors
    ///
    /// Everything that [`FaultKind`] lists.
    pub(in crate::app) async fn delete<T: DeserializeOwned>(&self, ask: &Ask) -> Result<T, Fault> {
        let made = self.send(Method::DELETE, ask, None).await;
        made.map(|made| made.value).map_err(|kind| self.fault(kind))
    }

    /// Puts the node's URL in front.
    fn fault(&self, kind: FaultKind) -> Fault {
        Fault {
            server: self.server(),
            kind,
        }
    }

    /// Sends one request and reads its answer.
    async fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        ask: &Ask,
        body: Option<Vec<u8>>,
    ) -> Result<Made<T>, FaultKind> {
        let changes = method != Method::GET;
        let mut request = self.http.request(method, ask.at(&self.server));
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, token.clone());
        }
        if let Some(body) = body {
            request = request.header(CONTENT_TYPE, "application/json").body(body);
        }
        let response = request.send().await.map_err(|error| of_request(&error))?;
        let status = response.status();
        if !status.is_success() {
            return Err(self.refusal(response, changes).await);
        }
        if !is_json(&response) {
            return Err(not_meridian(&response));
        }
        let octets = read(response).await?;
        let value = serde_json::from_slice(&octets)
            .map_err(|error| FaultKind::Garbage(cut(&error.to_string())))?;
        Ok(Made {
            new: status == StatusCode::CREATED,
            value,
        })
    }

    /// Says what an answer other than success means.
    async fn refusal(&self, response: Response, changes: bool) -> FaultKind {
        let status = response.status();
        if status.is_redirection() {
            let to = response.headers().get(LOCATION);
            let to = to.and_then(|to| to.to_str().ok()).unwrap_or("somewhere");
            return FaultKind::Redirect(cut(to));
        }
        // What stands before a node, a proxy say, may refuse in HTML.
        let json = is_json(&response);
        let strange = not_meridian(&response);
        let retry_after = response.headers().get(RETRY_AFTER);
        let retry_after = retry_after.and_then(|text| text.to_str().ok()?.parse().ok());
        let problem: Problem = match read(response).await {
            Ok(octets) if json => serde_json::from_slice(&octets).unwrap_or_default(),
            _ => Problem::default(),
        };
        let title = if problem.title.is_empty() {
            status.canonical_reason().unwrap_or("refused").to_owned()
        } else {
            problem.title
        };
        let detail = problem.detail.unwrap_or_default();
        let words = cut(if detail.is_empty() { &title } else { &detail });
        match status {
            StatusCode::UNAUTHORIZED => FaultKind::Unauthorized {
                had_token: self.token.is_some(),
                changes,
            },
            StatusCode::FORBIDDEN => FaultKind::Forbidden {
                detail: cut(&detail),
                changes,
            },
            StatusCode::TOO_MANY_REQUESTS => FaultKind::Busy { retry_after },
            _ if status.is_server_error() => FaultKind::Failing {
                status: status.as_u16(),
                detail: words,
            },
            _ if !json => strange,
            StatusCode::NOT_FOUND => FaultKind::NotFound(words),
            _ => FaultKind::Refusal(words),
        }
    }
}

/// Makes what requests go through. Proxies of the environment are not used: nodes are asked directly.
///
/// # Errors
///
/// When TLS is asked for and nobody could be trusted.
pub(super) fn transport(ca: Option<&Path>, tls: bool) -> anyhow::Result<reqwest::Client> {
    let mut builder = reqwest::Client::builder()
        .connect_timeout(CONNECT)
        .timeout(WHOLE)
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .user_agent(concat!("meridian/", env!("CARGO_PKG_VERSION")));
    // Without https among the nodes nobody's certificates are read, unless a file is named: it may be misspelled.
    if tls || ca.is_some() {
        builder = builder.tls_backend_preconfigured(super::tls::config(ca)?);
    } else {
        builder = builder.tls_backend_preconfigured(super::tls::nobody());
    }
    builder.build().context("cannot make an HTTP client")
}

/// Reads a token into a header that is never shown.
///
/// # Errors
///
/// When the file cannot be read, or holds no single token. What it holds is not said.
pub(super) fn token(file: &Path) -> anyhow::Result<HeaderValue> {
    let place = || format!("token file {}", file.display());
    let octets = read_small(file, MAX_TOKEN).with_context(place)?;
    let text = std::str::from_utf8(&octets).unwrap_or_default().trim();
    if text.is_empty() || !text.bytes().all(|octet| octet.is_ascii_graphic()) {
        bail!("{}: one token is wanted, in one line", place());
    }
    let mut header = HeaderValue::from_str(&format!("Bearer {text}"))
        .with_context(|| format!("{}: no header can carry it", place()))?;
    header.set_sensitive(true);
    Ok(header)
}

/// Reads a body of bounded size.
async fn read(mut response: Response) -> Result<Vec<u8>, FaultKind> {
    let mut octets = Vec::new();
    while let Some(part) = response
        .chunk()
        .await
        .map_err(|error| match of_request(&error) {
            FaultKind::NoAnswer => FaultKind::NoAnswer,
            _ => FaultKind::Cut,
        })?
    {
        if octets.len() + part.len() > MAX_ANSWER {
            return Err(FaultKind::TooLarge);
        }
        octets.extend_from_slice(&part);
    }
    Ok(octets)
}

/// Tells whether an answer is JSON: `application/json` or `application/problem+json`.
fn is_json(response: &Response) -> bool {
    let kind = content_type(response);
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json")
        || kind.eq_ignore_ascii_case("application/problem+json")
}

/// Gives the content type in words.
fn content_type(response: &Response) -> String {
    let kind = response.headers().get(CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok());
    kind.unwrap_or("no content type").to_owned()
}

/// Says that something else answers.
fn not_meridian(response: &Response) -> FaultKind {
    FaultKind::NotMeridian {
        status: response.status().as_u16(),
        content_type: cut(&content_type(response)),
    }
}

/// Makes foreign words fit for a terminal, in length too.
fn cut(words: &str) -> String {
    clean(words).chars().take(MAX_WORDS).collect()
}

/// Tells whether a URL names this machine.
fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    match address.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => host.eq_ignore_ascii_case("localhost"),
    }
}

/// Shows a URL as it was given: without the slash that parsing adds.
fn shown(url: &Url) -> String {
    url.as_str().trim_end_matches('/').to_owned()
}
