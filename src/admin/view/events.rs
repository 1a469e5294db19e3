//! Events.

use std::sync::Arc;

use tokio::sync::broadcast;

use super::{EventQuery, View, ViewError, words};
use crate::admin::dto::{EventDto, Page};
use crate::controller::{Event, Journal};

impl View {
    /// Lists events, newest first. The cursor is the id of the last one of the page before.
    ///
    /// # Errors
    /// When the cursor is none.
    pub fn events(&self, query: &EventQuery) -> Result<Page<EventDto>, ViewError> {
        let paging = query.paging();
        let before = paging.cursor.as_deref().map(str::parse::<u64>).transpose();
        let before = before.map_err(|_| super::bad_cursor())?;
        let wanted = Wanted::of(query);
        let all = self.controller().journal().all();
        let found: Vec<&Arc<Event>> = all.iter().rev().filter(|event| wanted.has(event)).collect();
        let rest = found
            .iter()
            .filter(|event| before.is_none_or(|before| event.id < before));
        let page: Vec<&&Arc<Event>> = rest.clone().take(paging.limit()).collect();
        let more = rest.count() > page.len();
        Ok(Page {
            next: page
                .last()
                .filter(|_| more)
                .map(|event| event.id.to_string()),
            items: page.iter().map(|event| words::event(event)).collect(),
            total: super::number(found.len()),
        })
    }

    /// Lists what happened after an event, oldest first: for who was away for a while.
    #[must_use]
    pub fn events_after(&self, id: u64) -> Vec<EventDto> {
        let all = self.controller().journal().after(id);
        all.iter().map(|event| words::event(event)).collect()
    }

    /// Gives the ring itself, for streams that go through what they missed and then follow.
    pub(in crate::admin) fn journal(&self) -> &Journal {
        self.controller().journal()
    }

    /// Listens to events from now on.
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<EventDto> {
        self.0.live.subscribe()
    }
}

/// What a query wants, ready to be held against one event after the other.
#[derive(Clone, Debug)]
pub(in crate::admin) struct Wanted {
    query: EventQuery,
    /// In lower case.
    search: Option<String>,
}

impl Wanted {
    /// Makes it of a query; its page does not matter.
    pub(in crate::admin) fn of(query: &EventQuery) -> Self {
        Self {
            query: query.clone(),
            search: query.search.as_deref().map(str::to_ascii_lowercase),
        }
    }

    /// Tells whether an event is wanted.
    pub(in crate::admin) fn has(&self, event: &Event) -> bool {
        let Self { query, search } = self;
        query
            .kind
            .is_none_or(|wanted| words::kind(event.kind) == wanted)
            && query
                .severity
                .is_none_or(|wanted| words::severity(event.weight) >= wanted)
            && has(query.cluster.as_deref(), &event.clusters)
            && has(query.service.as_deref(), &event.services)
            && search.as_deref().is_none_or(|text| has_text(event, text))
    }
}

/// Says an event as the API does.
pub(in crate::admin) fn said(event: &Event) -> EventDto {
    words::event(event)
}

/// Tells whether what is wanted is in a list.
fn has(wanted: Option<&str>, list: &[String]) -> bool {
    wanted.is_none_or(|wanted| list.iter().any(|one| one == wanted))
}

/// Tells whether a text, in lower case, is in an event.
fn has_text(event: &Event, text: &str) -> bool {
    let mut texts = event
        .clusters
        .iter()
        .chain(&event.services)
        .chain(&event.target)
        .chain(std::iter::once(&event.text));
    texts.any(|one| one.to_ascii_lowercase().contains(text))
}
