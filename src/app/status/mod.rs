//! `meridian status`: what nodes know.
//!
//! `summary` is what is shown without a word; `lists` has a table for each kind of thing, `details` everything about one; `watch`
//! shows any of them again and again. Each makes a [`Frame`]: the result in the form asked for.

mod challenges;
mod details;
mod lists;
mod members;
mod summary;
#[cfg(test)]
mod tests;
mod watch;

use std::io::Write;
use std::process::ExitCode;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::args::{ListOutputArg, OneArgs, RecordArgs, ServiceArgs, StatusArgs, StatusOf};
use super::client::{Ask, Client, Fault, FaultKind, Found, Much, Nodes, Unusable, first, list};
use super::output::note;
use super::table::Screen;
use crate::admin::dto::{
    AuditDto, ClusterDto, DrainDto, DrainState, EventDto, ForceDto, MonitorDto, Page, PeerDto,
    ServiceDto, ServiceRowDto, SourceDto, ZoneDto,
};
use crate::config::nearest;

/// Services that are compared with a name that there is not.
const COMPARED: Much = Much::UpTo(2_000);

/// Shows what nodes know, once or until Ctrl-C.
pub(super) fn status(args: &StatusArgs) -> anyhow::Result<ExitCode> {
    let nodes = Nodes::new(&args.nodes.servers, &args.nodes.access)?;
    let runtime = super::client::runtime()?;
    runtime.block_on(async {
        if let Some(every) = args.how.watch {
            return watch::watch(args, &nodes, every.0).await;
        }
        let form = Form::of(args, false);
        let frame = frame(args, &nodes, &form).await?;
        for words in &frame.notes {
            note(words);
        }
        std::io::stdout().write_all(frame.text.as_bytes())?;
        Ok(if frame.failed {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        })
    })
}

/// A result, ready to be written.
#[derive(Debug, Default)]
pub(super) struct Frame {
    /// The result in the form asked for; ends with a line's end.
    text: String,
    /// What is to be said beside it.
    notes: Vec<String>,
    /// Something is critical or out of reach.
    failed: bool,
    /// The number of the newest event shown.
    newest: Option<u64>,
}

/// In which form results are written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form {
    output: ListOutputArg,
    screen: Screen,
    /// One of many: JSON in one line each, YAML in documents.
    repeated: bool,
    /// Only events after this one: those before were shown.
    after: Option<u64>,
}

impl Form {
    /// Reads it out of the arguments, and looks at the terminal and the clock.
    fn of(args: &StatusArgs, repeated: bool) -> Self {
        Self {
            output: args.how.output,
            screen: Screen::of_output(args.how.output == ListOutputArg::Wide),
            repeated,
            after: None,
        }
    }

    /// Writes a result.
    ///
    /// # Errors
    ///
    /// When it cannot be written as YAML, which our shapes can.
    fn write(
        &self,
        value: &impl Serialize,
        draw: impl FnOnce(&Screen) -> String,
    ) -> anyhow::Result<String> {
        Ok(match self.output {
            ListOutputArg::Table | ListOutputArg::Wide => draw(&self.screen),
            ListOutputArg::Json if self.repeated => format!("{}\n", serde_json::to_string(value)?),
            ListOutputArg::Json => format!("{}\n", serde_json::to_string_pretty(value)?),
            ListOutputArg::Yaml => {
                let mark = if self.repeated { "---\n" } else { "" };
                format!("{mark}{}\n", serde_saphyr::to_string(value)?.trim_end())
            }
        })
    }
}

/// A list for machines.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ListDto<'l, T> {
    items: &'l [T],
    total: u64,
}

/// Asks what was asked for and writes it.
async fn frame(args: &StatusArgs, nodes: &Nodes, form: &Form) -> anyhow::Result<Frame> {
    let Some(of) = &args.of else {
        return summary::frame(nodes, form).await;
    };
    match of {
        StatusOf::Clusters(one) => clusters(one, nodes, form).await,
        StatusOf::Services(services_args) => services(services_args, nodes, form).await,
        StatusOf::Monitors(args) => {
            let never = args.never_succeeded.then_some(true);
            let ask = Ask::of(["monitors"])
                .maybe("search", args.search.as_ref())
                .maybe("verdict", args.verdict.as_ref())
                .maybe("cluster", args.cluster.as_ref())
                .maybe("neverSucceeded", never);
            let draw = |page: &Page<MonitorDto>, screen: &Screen| lists::monitors(page, screen);
            paged(nodes, form, (&ask, Much::UpTo(args.list.limit)), draw).await
        }
        StatusOf::Events(_) => events(of, nodes, form).await,
        StatusOf::Drains(record) => drains(record, nodes, form).await,
        StatusOf::Forces(record) => forces(record, nodes, form).await,
        StatusOf::Challenges(record) => challenges::frame(record, nodes, form).await,
        StatusOf::Peers => {
            let draw = |page: &Page<PeerDto>, screen: &Screen| lists::peers(&page.items, screen);
            paged(nodes, form, (&Ask::of(["vantage"]), Much::Whole), draw).await
        }
        StatusOf::Zones(OneArgs { name: Some(name) }) => {
            let ask = Ask::of(["zones", name]);
            let found = one(nodes, &ask, async |client| {
                names(client, "zones", |zone: ZoneDto| zone.name, name).await
            });
            let found = found.await?;
            drawn(form, &found, |screen| details::zone(&found.value, screen))
        }
        StatusOf::Zones(OneArgs { name: None }) => {
            let draw = |page: &Page<ZoneDto>, screen: &Screen| lists::zones(page, screen);
            paged(nodes, form, (&Ask::of(["zones"]), Much::Whole), draw).await
        }
        StatusOf::Sources => {
            let draw = |page: &Page<SourceDto>, screen: &Screen| lists::sources(page, screen);
            paged(nodes, form, (&Ask::of(["sources"]), Much::Whole), draw).await
        }
        StatusOf::Audit(args) => {
            let draw = |page: &Page<AuditDto>, screen: &Screen| lists::audit(page, screen);
            paged(
                nodes,
                form,
                (&Ask::of(["audit"]), Much::UpTo(args.list.limit)),
                draw,
            )
            .await
        }
    }
}

/// Clusters, or one.
async fn clusters(args: &OneArgs, nodes: &Nodes, form: &Form) -> anyhow::Result<Frame> {
    let Some(name) = &args.name else {
        let draw = |page: &Page<ClusterDto>, screen: &Screen| lists::clusters(page, screen);
        return paged(nodes, form, (&Ask::of(["clusters"]), Much::Whole), draw).await;
    };
    let ask = Ask::of(["clusters", name]);
    let found = one(nodes, &ask, async |client| near_cluster(client, name).await).await?;
    drawn(form, &found, |screen| {
        details::cluster(&found.value, screen)
    })
}

/// Services, or one by its key or a name in the DNS.
async fn services(args: &ServiceArgs, nodes: &Nodes, form: &Form) -> anyhow::Result<Frame> {
    let Some(name) = &args.name else {
        let ask = Ask::of(["services"])
            .maybe("search", args.search.as_ref())
            .maybe("namespace", args.namespace.as_ref())
            .maybe("cluster", args.cluster.as_ref())
            .maybe("state", args.state.as_ref());
        let draw = |page: &Page<ServiceRowDto>, screen: &Screen| lists::services(page, screen);
        return paged(nodes, form, (&ask, Much::UpTo(args.list.limit)), draw).await;
    };
    let ask = match name.split_once('/') {
        Some((namespace, name)) => Ask::of(["services", namespace, name]),
        None => Ask::of(["names", name]),
    };
    let near = async |client: &Client| near_service(client, name).await;
    let found: Found<'_, ServiceDto> = one(nodes, &ask, near).await?;
    drawn(form, &found, |screen| {
        details::service(&found.value, screen)
    })
}

/// Events, newest first; where only new ones are wanted, oldest first.
async fn events(of: &StatusOf, nodes: &Nodes, form: &Form) -> anyhow::Result<Frame> {
    let StatusOf::Events(args) = of else {
        return Ok(Frame::default());
    };
    let ask = Ask::of(["events"])
        .maybe("search", args.search.as_ref())
        .maybe("kind", args.kind.as_ref())
        .maybe("severity", args.severity.as_ref())
        .maybe("cluster", args.cluster.as_ref())
        .maybe("service", args.service.as_ref());
    let read =
        async |client: &Client| list::<EventDto>(client, &ask, Much::UpTo(args.list.limit)).await;
    let mut found = first(nodes, read).await?;
    let newest = found.value.items.iter().map(|event| event.id).max();
    if let Some(after) = form.after {
        // A node that was started again counts anew.
        if newest.is_some_and(|newest| newest >= after) {
            found.value.items.retain(|event| event.id > after);
        }
        found.value.items.reverse();
        let mut frame = listed(form, &found, |page, screen| {
            let table = lists::events(page, screen);
            table
                .lines()
                .skip(1)
                .map(|line| format!("{line}\n"))
                .collect()
        })?;
        if found.value.items.is_empty() {
            frame.text.clear();
        }
        frame.newest = newest;
        return Ok(frame);
    }
    let mut frame = listed(form, &found, lists::events)?;
    frame.newest = newest;
    Ok(frame)
}

/// Drains, or one.
async fn drains(args: &RecordArgs, nodes: &Nodes, form: &Form) -> anyhow::Result<Frame> {
    if let Some(id) = &args.id {
        let found = one(nodes, &Ask::of(["drains", id]), async |_| None).await?;
        return drawn(form, &found, |screen| details::drain(&found.value, screen));
    }
    let read = async |client: &Client| {
        let mut page: Page<DrainDto> =
            list(client, &Ask::of(["drains"]), Much::UpTo(args.list.limit)).await?;
        if !args.all {
            page.items.retain(|drain| drain.state != DrainState::Ended);
            page.total = page.items.len() as u64;
        }
        Ok(page)
    };
    listed(form, &first(nodes, read).await?, lists::drains)
}

/// Forces, or one.
async fn forces(args: &RecordArgs, nodes: &Nodes, form: &Form) -> anyhow::Result<Frame> {
    if let Some(id) = &args.id {
        let found = one(nodes, &Ask::of(["forces", id]), async |_| None).await?;
        return drawn(form, &found, |screen| details::force(&found.value, screen));
    }
    let read = async |client: &Client| {
        let mut page: Page<ForceDto> =
            list(client, &Ask::of(["forces"]), Much::UpTo(args.list.limit)).await?;
        if !args.all {
            page.items.retain(|force| force.active);
            page.total = page.items.len() as u64;
        }
        Ok(page)
    };
    listed(form, &first(nodes, read).await?, lists::forces)
}

/// Reads a list up to a limit and writes it.
async fn paged<T: Serialize + DeserializeOwned>(
    nodes: &Nodes,
    form: &Form,
    (ask, much): (&Ask, Much),
    draw: impl FnOnce(&Page<T>, &Screen) -> String,
) -> anyhow::Result<Frame> {
    let read = async |client: &Client| list(client, ask, much).await;
    listed(form, &first(nodes, read).await?, draw)
}

/// Writes a list.
fn listed<T: Serialize>(
    form: &Form,
    found: &Found<'_, Page<T>>,
    draw: impl FnOnce(&Page<T>, &Screen) -> String,
) -> anyhow::Result<Frame> {
    let page = &found.value;
    let dto = ListDto {
        items: &page.items,
        total: page.total,
    };
    let mut notes: Vec<String> = found.note().into_iter().collect();
    let shown = page.items.len() as u64;
    if shown < page.total && form.after.is_none() {
        notes.push(format!(
            "{} of {} shown; --limit NUMBER shows more, filters less",
            super::words::count(shown),
            super::words::count(page.total)
        ));
    }
    Ok(Frame {
        text: form.write(&dto, |screen| draw(page, screen))?,
        notes,
        ..Frame::default()
    })
}

/// Writes one thing.
fn drawn<T: Serialize>(
    form: &Form,
    found: &Found<'_, T>,
    draw: impl FnOnce(&Screen) -> String,
) -> anyhow::Result<Frame> {
    Ok(Frame {
        text: form.write(&found.value, draw)?,
        notes: found.note().into_iter().collect(),
        ..Frame::default()
    })
}

/// Reads one thing; when there is none of this name, `near` may know one that was meant.
///
/// # Errors
///
/// When no node answers, or there is none of this name.
async fn one<'n, T: DeserializeOwned>(
    nodes: &'n Nodes,
    ask: &Ask,
    near: impl AsyncFn(&Client) -> Option<String>,
) -> anyhow::Result<Found<'n, T>> {
    let read = async |client: &Client| match client.get(ask).await {
        Err(Fault {
            server,
            kind: FaultKind::NotFound(words),
        }) => {
            let words = match near(client).await {
                Some(near) => format!("{words}; {near}"),
                None => words,
            };
            Err(Fault {
                server,
                kind: FaultKind::NotFound(words),
            })
        }
        other => other,
    };
    Ok(first(nodes, read).await?)
}

/// Says which cluster may have been meant.
pub(super) async fn near_cluster(client: &Client, name: &str) -> Option<String> {
    names(client, "clusters", |cluster: ClusterDto| cluster.name, name).await
}

/// Says which service may have been meant, by key or by name in the DNS.
pub(super) async fn near_service(client: &Client, name: &str) -> Option<String> {
    let page = list::<ServiceRowDto>(client, &Ask::of(["services"]), COMPARED).await;
    let rows = page.ok()?.items;
    if name.contains('/') {
        return meant(name, rows.into_iter().map(|row| row.key).collect());
    }
    let hostnames = rows.into_iter().flat_map(|row| row.hostnames);
    meant(name, hostnames.collect())
}

/// Says which name of a list may have been meant.
async fn names<T: DeserializeOwned>(
    client: &Client,
    path: &str,
    name_of: impl Fn(T) -> String,
    name: &str,
) -> Option<String> {
    let page = list::<T>(client, &Ask::of([path]), Much::Whole)
        .await
        .ok()?;
    meant(name, page.items.into_iter().map(name_of).collect())
}

/// Says which name may have been meant, or which there are when they are few.
fn meant(name: &str, known: Vec<String>) -> Option<String> {
    if let Some(near) = nearest(name, known.iter().map(String::as_str)) {
        return Some(format!("did you mean `{}`?", super::words::clean(near)));
    }
    (1..=10)
        .contains(&known.len())
        .then(|| format!("there are {}", super::words::join(&known)))
}

/// Gives an error's first definite word, for those who go on without an answer.
fn last_word(error: &anyhow::Error) -> Option<&Fault> {
    error.downcast_ref::<Unusable>().and_then(Unusable::last)
}
