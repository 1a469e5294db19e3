//! Where objects of a watch go, and what is known of them by then.

use tokio::sync::mpsc;

use super::kinds::{Resource, Subject};
use super::known::Known;
use super::member::Member;
use super::raw::{Item, Named, Raw, key_of};
use super::secrets::SecretList;
use crate::source::kubernetes::object::{Object, Schema};
use crate::source::kubernetes::read::read;
use crate::source::kubernetes::records::{Event, GATEWAYS, Key, Watched};

/// Where objects go.
#[derive(Debug)]
pub(super) enum Sink {
    /// To the world of the cluster.
    Kind {
        /// Their kind.
        watched: Watched,
        /// Those that are known.
        known: Known,
        /// The way there.
        events: mpsc::Sender<(Watched, Event)>,
    },
    /// Nowhere: definitions of the Gateway API wake up the discovery.
    Definitions,
    /// To who looks for clusters.
    Secrets(SecretList),
}

impl Sink {
    pub(super) fn subject(&self) -> Subject {
        match self {
            Self::Kind { watched, .. } => Subject::Kind(*watched),
            Self::Definitions => Subject::Definitions,
            Self::Secrets(_) => Subject::Secrets,
        }
    }

    /// Gives the path of the objects, and the selector of their labels where there is one.
    pub(super) fn scope(&self, resource: Resource) -> (String, Option<&str>) {
        match self {
            Self::Secrets(list) => {
                let (path, selector) = list.scope();
                (path, Some(selector))
            }
            _ => (resource.path(), None),
        }
    }

    /// Tells how its objects are written in protobuf; `None`: they are asked for as JSON.
    pub(super) fn schema(&self, resource: Resource) -> Option<Schema> {
        match self {
            Self::Kind { watched, .. } => Schema::of(*watched, resource.version),
            Self::Definitions | Self::Secrets(_) => None,
        }
    }

    /// Turns an object into what is to be handed on, beside its version.
    pub(super) fn put(
        &mut self,
        raw: Raw<'_>,
        member: &Member,
        (schema, is_listing): (Option<Schema>, bool),
    ) -> (Option<Event>, Option<Box<str>>) {
        match self {
            Self::Kind { watched, known, .. } => {
                let item = raw.object(schema);
                let version = match &item {
                    Item::Read(object) => Some((*object.meta.version).into()),
                    _ => None,
                };
                (put(item, (*watched, known), is_listing), version)
            }
            Self::Definitions => {
                let mut named = raw.named();
                let is_ours = named
                    .as_ref()
                    .is_some_and(|named| is_of_gateways(named.name()));
                if is_ours && !is_listing {
                    member.look.notify_one();
                }
                (None, named.as_mut().and_then(Named::version))
            }
            Self::Secrets(list) => {
                list.put(&raw.value());
                (None, raw.named().as_mut().and_then(Named::version))
            }
        }
    }

    pub(super) fn delete(&mut self, key: Key, member: &Member) -> Option<Event> {
        match self {
            Self::Kind { known, .. } => {
                // One that was left out may be known from before the start.
                let may_be_known = known.over() > 0;
                (known.remove(&key) || may_be_known).then_some(Event::Gone(key))
            }
            Self::Definitions => {
                if is_of_gateways(&key.name) {
                    member.look.notify_one();
                }
                None
            }
            Self::Secrets(list) => {
                list.delete(&key);
                None
            }
        }
    }

    /// Hands events on; waits while those before them are not taken.
    pub(super) async fn hand_on(&self, handed: impl IntoIterator<Item = Event>) {
        if let Self::Kind {
            watched, events, ..
        } = self
        {
            for event in handed {
                // Nobody is there to take it only when all is about to end.
                let _ = events.send((*watched, event)).await;
            }
        }
    }

    /// The server has no such kind any more.
    pub(super) async fn unserved(&mut self) {
        if let Self::Kind { known, .. } = self {
            known.clear();
        }
        self.hand_on([Event::Unserved]).await;
    }

    pub(super) async fn begin_list(&mut self) {
        match self {
            Self::Kind { known, .. } => known.begin_list(),
            Self::Secrets(list) => list.begin_list(),
            Self::Definitions => {}
        }
        self.hand_on([Event::Listing]).await;
    }

    pub(super) async fn end_list(&mut self) {
        let known = match self {
            Self::Kind { known, .. } => known,
            Self::Secrets(list) => return list.end_list(),
            Self::Definitions => return,
        };
        let gone = known.end_list();
        if known.over() == 0 {
            self.hand_on([Event::Listed]).await;
        } else {
            self.hand_on(gone.into_iter().map(Event::Gone)).await;
            self.hand_on([Event::LeftOut]).await;
        }
    }

    /// Gives how many objects are known, and how many were left out.
    pub(super) fn counts(&self) -> (usize, usize) {
        match self {
            Self::Kind { known, .. } => (known.len(), known.over()),
            Self::Definitions => (0, 0),
            Self::Secrets(list) => list.counts(),
        }
    }
}

/// Turns an object of a kind into what is to be handed on.
fn put(
    item: Item<Object<'_>>,
    (watched, known): (Watched, &mut Known),
    is_listing: bool,
) -> Option<Event> {
    let key = match &item {
        Item::Read(object) => key_of(&object.meta)?,
        Item::Unreadable(key, _) => key.clone(),
        Item::Nobody => return None,
    };
    if !known.admits(&key) {
        // At the end of a list it is said in any case.
        let is_first = known.over() == 1 && !is_listing;
        return is_first.then_some(Event::LeftOut);
    }
    let event = match item {
        Item::Read(object) => read(watched, &object),
        Item::Unreadable(key, why) => Some(Event::Unreadable(key, why)),
        Item::Nobody => None,
    };
    match event {
        Some(event) => {
            known.insert(key_in(&event).unwrap_or(&key).clone());
            Some(event)
        }
        // It is nobody's here, and may have been somebody's.
        None => known.remove(&key).then_some(Event::Gone(key)),
    }
}

fn key_in(event: &Event) -> Option<&Key> {
    match event {
        Event::Applied(key, _) | Event::Unreadable(key, _) => Some(key),
        _ => None,
    }
}

fn is_of_gateways(name: &str) -> bool {
    let rest = name.strip_suffix(GATEWAYS);
    rest.is_some_and(|rest| rest.ends_with('.'))
}
