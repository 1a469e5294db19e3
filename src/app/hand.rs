//! Wiring of the operator's hand: records between disk, peers and controller.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::news;
use crate::admin::{Audit, note_fetched};
use crate::answer::has_challenge;
use crate::config::Config;
use crate::controller::{Command, Controller, ControllerHandle, OwnDrains};
use crate::disk::Unread;
use crate::lifecycle::Supervisor;
use crate::model::{LowerName, OperatorRecords, Token};
use crate::snapshot::SnapshotReader;
use crate::telemetry::wall_time;
use crate::vantage::{Book, DrainWord, Listener, OnNews, OwnWords, RecordFile, Serves, Vantage};
use crate::zone::challenge_owner;

/// Opens the records of a node. What cannot be read of them is noted.
pub(super) fn open_book(config: &Config, unread: &Unread) -> Book {
    let folder = config.node.state_directory.as_deref();
    Book::open(folder.map(|folder| RecordFile::in_folder(folder).noted_in(unread)))
}

/// Makes this node's part among its peers; what it fetches from them goes into the audit log. `instance` differs between any
/// two starts.
pub(super) fn join(
    config: &crate::vantage::Config,
    book: Book,
    controller: &ControllerHandle,
    (audit, answers): (Audit, SnapshotReader),
    instance: u64,
) -> Vantage {
    let handle = controller.clone();
    let own = OwnWords(Arc::new(move || words(&handle.drains())));
    let journal = controller.journal().clone();
    let listener = Listener(Arc::new(move |peer| {
        journal.record(news::of_peer(&peer), wall_time());
    }));
    let on_news = OnNews(Arc::new(move |url, news| note_fetched(&audit, url, news)));
    let serves = Serves(Arc::new(move |target| {
        let challenge = target.challenge();
        let of_owner = |(name, token): (&LowerName, &Token)| {
            let owner = challenge_owner(name.as_ref())?;
            Some(has_challenge(&answers.load(), &owner, token.as_str()))
        };
        challenge.and_then(of_owner).unwrap_or(false)
    }));
    Vantage::new(config, book, own, on_news, instance)
        .telling(listener)
        .serving(serves)
}

/// Asks the peers for their records, and lets the controller begin with all that are known then: no answer goes out before they
/// are in force. Gives what sees each change from then on.
pub(super) async fn begin(
    controller: Controller,
    vantage: &Vantage,
) -> (Controller, watch::Receiver<OperatorRecords>) {
    vantage.fetch().await;
    let mut changes = vantage.book().watch();
    let records = changes.borrow_and_update().clone();
    (controller.with_operators(records), changes)
}

/// Keeps the records of this node, its peers and its controller in step from now on.
pub(super) fn keep_in_step(
    vantage: &Vantage,
    changes: watch::Receiver<OperatorRecords>,
    controller: &ControllerHandle,
    supervisor: &mut Supervisor,
) {
    vantage.spawn(supervisor);
    let (handle, token) = (controller.clone(), supervisor.token());
    supervisor.spawn("operators", pass_on(changes, handle, token));
}

/// Hands each change of the records to the controller.
async fn pass_on(
    mut changes: watch::Receiver<OperatorRecords>,
    controller: ControllerHandle,
    token: CancellationToken,
) {
    loop {
        // Cancel-safe: both arms only wait.
        tokio::select! {
            () = token.cancelled() => return,
            changed = changes.changed() => if changed.is_err() {
                return;
            }
        }
        let records = changes.borrow_and_update().clone();
        if !controller.send(Command::Operators(records)).await {
            warn!("Controller is gone; drains and forces stay as they are");
            return;
        }
    }
}

/// Puts what the controller knows of drains into what peers are told.
fn words(drains: &OwnDrains) -> Vec<DrainWord> {
    let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
    drains
        .iter()
        .map(|(id, own)| DrainWord {
            id: id.clone(),
            in_force: own.in_force,
            held: count(own.held),
            held_services: own.held_services.clone(),
            last_given: own.last_given.map(|at| at.elapsed().max(Duration::ZERO)),
            ttl: own.ttl,
        })
        .collect()
}
