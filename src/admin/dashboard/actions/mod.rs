//! Drain, undrain, force, unforce by plain forms: a page that says whom it touches and asks why, and the deed.

mod impact;

use askama::Template;
use axum::Form;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;

use super::pages::fields;
use super::shell::Dashboard;
use super::shell::{Asked, Shell, html, text};
use super::words;
use crate::admin::access::Operator;
use crate::admin::dto::{ForcedVerdict, NewDrain, NewForce, TargetDto, TargetKind};
use crate::admin::view::{Actor, ViewError};

pub(super) use impact::Impact;

/// When a drain may begin, seconds and words.
const BEGINS: &[(&str, &str)] = &[
    ("0", "now"),
    ("60", "in 1 minute"),
    ("300", "in 5 minutes"),
    ("1800", "in 30 minutes"),
    ("3600", "in 1 hour"),
];

/// When a drain or a force may end by itself, seconds and words.
const ENDS: &[(&str, &str)] = &[
    ("", "when somebody ends it"),
    ("900", "after 15 minutes"),
    ("3600", "after 1 hour"),
    ("14400", "after 4 hours"),
    ("86400", "after 1 day"),
    ("604800", "after 1 week"),
];

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    Drain,
    Undrain,
    Force,
    Unforce,
}

impl Deed {
    /// Gives its word.
    const fn word(self) -> &'static str {
        match self {
            Self::Drain => "Drain",
            Self::Undrain => "End the drain of",
            Self::Force => "Force",
            Self::Unforce => "End the force of",
        }
    }
}

/// What a form says; fields not in it are empty.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Fields {
    reason: String,
    begin: String,
    end: String,
    verdict: String,
    cluster: String,
    address: String,
}

impl Fields {
    /// Reads a number of seconds; `None` where there is none.
    fn seconds(text: &str) -> Result<Option<u32>, ViewError> {
        if text.is_empty() {
            return Ok(None);
        }
        let invalid = |_| ViewError::Invalid(format!("`{text}` is no number of seconds"));
        text.parse().map(Some).map_err(invalid)
    }

    /// Reads the verdict.
    fn verdict(&self) -> Result<ForcedVerdict, ViewError> {
        match self.verdict.as_str() {
            "up" => Ok(ForcedVerdict::Up),
            "down" => Ok(ForcedVerdict::Down),
            _ => Err(ViewError::Invalid(
                "choose what to force it to: up or down".to_owned(),
            )),
        }
    }

    /// Makes the target of a form of a service: itself, its part in a cluster, or one address.
    fn target(&self, service: String) -> TargetDto {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let (cluster, address) = (some(&self.cluster), some(&self.address));
        TargetDto {
            kind: if address.is_some() {
                TargetKind::Endpoint
            } else {
                TargetKind::Service
            },
            cluster,
            service: Some(service),
            address,
        }
    }
}

/// The page that asks.
#[derive(Template)]
#[template(config = "src/admin/dashboard/askama.toml", path = "confirm.html")]
pub(super) struct Confirm {
    pub(super) shell: Shell,
    pub(super) deed: Deed,
    pub(super) impact: Impact,
    /// What was filled in before.
    pub(super) fields: Fields,
    /// Why it was not done.
    pub(super) fault: Option<String>,
    /// Where the form goes.
    pub(super) action: String,
    /// Where to go back to.
    pub(super) back: String,
}

impl Confirm {
    /// Lists the choices of a field: value, words, and whether it is chosen.
    fn choices<'a>(
        all: &'static [(&'static str, &'static str)],
        chosen: &'a str,
    ) -> impl Iterator<Item = (&'static str, &'static str, bool)> + 'a {
        all.iter()
            .map(move |&(value, words)| (value, words, value == chosen))
    }

    /// Lists when it may begin.
    fn begins(&self) -> impl Iterator<Item = (&'static str, &'static str, bool)> + '_ {
        Self::choices(BEGINS, &self.fields.begin)
    }

    /// Lists when it may end.
    fn ends(&self) -> impl Iterator<Item = (&'static str, &'static str, bool)> + '_ {
        Self::choices(ENDS, &self.fields.end)
    }
}

/// What one page asks, or one form does.
struct Job<'a> {
    dashboard: &'a Dashboard,
    asked: &'a Asked,
    deed: Deed,
    fields: Fields,
}

impl<'a> Job<'a> {
    fn new(dashboard: &'a Dashboard, asked: &'a Asked, deed: Deed, fields: Fields) -> Self {
        Self {
            dashboard,
            asked,
            deed,
            fields,
        }
    }

    /// Shows what would be touched, and asks; `fault` says why it was not done.
    async fn ask(self, target: TargetDto, fault: Option<ViewError>) -> Response {
        let view = &self.dashboard.view;
        let impact = match Impact::of(view, self.deed, &target).await {
            Ok(impact) => impact,
            Err(error) => return self.dashboard.refuse(self.asked, &error),
        };
        let title = format!("{} {}", self.deed.word(), words::target(&target));
        let status = match &fault {
            None => StatusCode::OK,
            Some(ViewError::Conflict(_)) => StatusCode::CONFLICT,
            Some(_) => StatusCode::BAD_REQUEST,
        };
        let path = self.asked.url.split('?').next().unwrap_or("/");
        let back = match &target.service {
            Some(service) => words::service_path(service),
            None => words::cluster_path(target.cluster.as_deref().unwrap_or_default()),
        };
        let page = Confirm {
            shell: self.dashboard.shell(self.asked, title).still(),
            deed: self.deed,
            impact,
            fields: self.fields,
            fault: fault.map(|fault| words::capital(&fault.to_string())),
            action: path.to_owned(),
            back,
        };
        html(status, Bytes::from(text(page.render())))
    }

    /// Starts a drain or a force; shows it, or asks again.
    async fn start(self, target: TargetDto, operator: &Operator) -> Response {
        let done = match self.deed {
            Deed::Force => self.force(&target, operator).await,
            _ => self.drain(&target, operator).await,
        };
        match done {
            Ok(place) => Redirect::to(&place).into_response(),
            Err(fault @ (ViewError::Invalid(_) | ViewError::Conflict(_))) => {
                self.ask(target, Some(fault)).await
            }
            Err(error) => self.dashboard.refuse(self.asked, &error),
        }
    }

    /// Starts a drain; gives its page.
    async fn drain(&self, target: &TargetDto, operator: &Operator) -> Result<String, ViewError> {
        let new = NewDrain {
            target: target.clone(),
            reason: self.fields.reason.clone(),
            in_seconds: Fields::seconds(&self.fields.begin)?.unwrap_or(0),
            for_seconds: Fields::seconds(&self.fields.end)?,
        };
        let view = &self.dashboard.view;
        let (drain, _) = view.start_drain(new, &Actor::from(&operator.0)).await?;
        Ok(format!("/drains/{}", words::encode(&drain.id)))
    }

    /// Starts a force; gives the page that lists it.
    async fn force(&self, target: &TargetDto, operator: &Operator) -> Result<String, ViewError> {
        let new = NewForce {
            target: target.clone(),
            verdict: self.fields.verdict()?,
            reason: self.fields.reason.clone(),
            for_seconds: Fields::seconds(&self.fields.end)?,
        };
        let view = &self.dashboard.view;
        let (force, _) = view.start_force(new, &Actor::from(&operator.0)).await?;
        Ok(format!("/drains#force-{}", words::encode(&force.id)))
    }
}

/// Makes the target of a cluster.
fn whole_cluster(name: String) -> TargetDto {
    TargetDto {
        kind: TargetKind::Cluster,
        cluster: Some(name),
        service: None,
        address: None,
    }
}

// === Clusters ===

/// Asks whether to drain a cluster.
pub(super) async fn confirm_cluster_drain(
    asked: Asked,
    Path(name): Path<String>,
    State(dashboard): State<Dashboard>,
) -> Response {
    let job = Job::new(&dashboard, &asked, Deed::Drain, Fields::default());
    job.ask(whole_cluster(name), None).await
}

/// Drains a cluster.
pub(super) async fn drain_cluster(
    operator: Operator,
    asked: Asked,
    Path(name): Path<String>,
    State(dashboard): State<Dashboard>,
    Form(fields): Form<Fields>,
) -> Response {
    let job = Job::new(&dashboard, &asked, Deed::Drain, fields);
    job.start(whole_cluster(name), &operator).await
}

/// Asks whether to force a cluster.
pub(super) async fn confirm_cluster_force(
    asked: Asked,
    Path(name): Path<String>,
    State(dashboard): State<Dashboard>,
) -> Response {
    let job = Job::new(&dashboard, &asked, Deed::Force, Fields::default());
    job.ask(whole_cluster(name), None).await
}

/// Forces a cluster.
pub(super) async fn force_cluster(
    operator: Operator,
    asked: Asked,
    Path(name): Path<String>,
    State(dashboard): State<Dashboard>,
    Form(fields): Form<Fields>,
) -> Response {
    let job = Job::new(&dashboard, &asked, Deed::Force, fields);
    job.start(whole_cluster(name), &operator).await
}

// === Services ===

/// Asks whether to do something to a service, or to a part of it.
async fn confirm_service(
    dashboard: &Dashboard,
    asked: &Asked,
    deed: Deed,
    (namespace, name): (String, String),
) -> Response {
    match fields::<Fields>(asked) {
        Ok(fields) => {
            let target = fields.target(format!("{namespace}/{name}"));
            Job::new(dashboard, asked, deed, fields)
                .ask(target, None)
                .await
        }
        Err(error) => dashboard.refuse(asked, &error),
    }
}

/// Asks whether to drain a service, its part in a cluster, or one of its endpoints.
pub(super) async fn confirm_service_drain(
    asked: Asked,
    Path(key): Path<(String, String)>,
    State(dashboard): State<Dashboard>,
) -> Response {
    confirm_service(&dashboard, &asked, Deed::Drain, key).await
}

/// Drains it.
pub(super) async fn drain_service(
    operator: Operator,
    asked: Asked,
    Path((namespace, name)): Path<(String, String)>,
    State(dashboard): State<Dashboard>,
    Form(fields): Form<Fields>,
) -> Response {
    let target = fields.target(format!("{namespace}/{name}"));
    let job = Job::new(&dashboard, &asked, Deed::Drain, fields);
    job.start(target, &operator).await
}

/// Asks whether to force a service, its part in a cluster, or one of its endpoints.
pub(super) async fn confirm_service_force(
    asked: Asked,
    Path(key): Path<(String, String)>,
    State(dashboard): State<Dashboard>,
) -> Response {
    confirm_service(&dashboard, &asked, Deed::Force, key).await
}

/// Forces it.
pub(super) async fn force_service(
    operator: Operator,
    asked: Asked,
    Path((namespace, name)): Path<(String, String)>,
    State(dashboard): State<Dashboard>,
    Form(fields): Form<Fields>,
) -> Response {
    let target = fields.target(format!("{namespace}/{name}"));
    let job = Job::new(&dashboard, &asked, Deed::Force, fields);
    job.start(target, &operator).await
}

// === Ends ===

/// Asks whether to end a drain.
pub(super) async fn confirm_undrain(
    asked: Asked,
    Path(id): Path<String>,
    State(dashboard): State<Dashboard>,
) -> Response {
    match dashboard.view.drain(&id).await {
        Ok(drain) => {
            let job = Job::new(&dashboard, &asked, Deed::Undrain, Fields::default());
            job.ask(drain.target, None).await
        }
        Err(error) => dashboard.refuse(&asked, &error),
    }
}

/// Ends a drain.
pub(super) async fn undrain(
    Operator(identity): Operator,
    asked: Asked,
    Path(id): Path<String>,
    State(dashboard): State<Dashboard>,
    Form(fields): Form<Fields>,
) -> Response {
    let who = Actor::from(&identity);
    let ended = dashboard.view.end_drain(&id, &fields.reason, &who).await;
    match ended {
        Ok(drain) => Redirect::to(&format!("/drains/{}", words::encode(&drain.id))).into_response(),
        Err(fault @ ViewError::Invalid(_)) => match dashboard.view.drain(&id).await {
            Ok(drain) => {
                let job = Job::new(&dashboard, &asked, Deed::Undrain, fields);
                job.ask(drain.target, Some(fault)).await
            }
            Err(error) => dashboard.refuse(&asked, &error),
        },
        Err(error) => dashboard.refuse(&asked, &error),
    }
}

/// Asks whether to end a force.
pub(super) async fn confirm_unforce(
    asked: Asked,
    Path(id): Path<String>,
    State(dashboard): State<Dashboard>,
) -> Response {
    match dashboard.view.force(&id).await {
        Ok(force) => {
            let job = Job::new(&dashboard, &asked, Deed::Unforce, Fields::default());
            job.ask(force.target, None).await
        }
        Err(error) => dashboard.refuse(&asked, &error),
    }
}

/// Ends a force.
pub(super) async fn unforce(
    Operator(identity): Operator,
    asked: Asked,
    Path(id): Path<String>,
    State(dashboard): State<Dashboard>,
    Form(fields): Form<Fields>,
) -> Response {
    let who = Actor::from(&identity);
    let ended = dashboard.view.end_force(&id, &fields.reason, &who).await;
    match ended {
        Ok(_) => Redirect::to("/drains#forces").into_response(),
        Err(fault @ ViewError::Invalid(_)) => match dashboard.view.force(&id).await {
            Ok(force) => {
                let job = Job::new(&dashboard, &asked, Deed::Unforce, fields);
                job.ask(force.target, Some(fault)).await
            }
            Err(error) => dashboard.refuse(&asked, &error),
        },
        Err(error) => dashboard.refuse(&asked, &error),
    }
}
