//! Several nodes: who is asked, in which order, and how lists are gathered.

use std::fmt;

use anyhow::bail;
use futures_util::future::join_all;
use serde::de::DeserializeOwned;

use super::ask::Ask;
use super::fault::Fault;
use super::http::{Client, token, transport};
use crate::admin::dto::Page;
use crate::app::args::{AccessArgs, ServerArg};

/// Most nodes a command talks to.
const MAX_NODES: usize = 64;
/// Most items of one page.
const PAGE: u32 = 500;

/// The nodes of a command, in the order given, without doubles.
#[derive(Debug)]
pub(in crate::app) struct Nodes {
    clients: Vec<Client>,
}

/// What somebody answered, and who was asked in vain before.
#[derive(Debug)]
pub(in crate::app) struct Found<'n, T> {
    /// The answer.
    pub(in crate::app) value: T,
    /// Who answered.
    pub(in crate::app) client: &'n Client,
    /// Those before it in the order given.
    pub(in crate::app) vain: Vec<Fault>,
}

impl<T> Found<'_, T> {
    /// Says who answered, when it was not the first; one line.
    pub(in crate::app) fn note(&self) -> Option<String> {
        if self.vain.is_empty() {
            return None;
        }
        let vain: Vec<String> = self.vain.iter().map(ToString::to_string).collect();
        Some(format!(
            "answered by {}; before it: {}",
            self.client.server(),
            vain.join(" · ")
        ))
    }
}

/// Nobody did what was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::app) struct Unusable(pub(in crate::app) Vec<Fault>);

impl Unusable {
    /// Gives the last word: a definite one ends the search.
    pub(in crate::app) fn last(&self) -> Option<&Fault> {
        self.0.last()
    }
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, fault) in self.0.iter().enumerate() {
            let gap = if number == 0 { "" } else { "\n       " };
            write!(f, "{gap}{fault}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Unusable {}

impl Nodes {
    /// Makes clients of all nodes.
    ///
    /// # Errors
    ///
    /// When a URL, the token or the certificates cannot be used.
    pub(in crate::app) fn new(servers: &[ServerArg], access: &AccessArgs) -> anyhow::Result<Self> {
        let mut urls: Vec<&ServerArg> = Vec::new();
        for server in servers {
            if let Some(flaw) = server.flaw() {
                bail!("--server: {flaw}");
            }
            if !urls.contains(&server) {
                urls.push(server);
            }
        }
        if urls.len() > MAX_NODES {
            bail!("--server: {} nodes, at most {MAX_NODES}", urls.len());
        }
        let tls = urls.iter().any(|url| url.0.scheme() == "https");
        let http = transport(access.ca.as_deref(), tls)?;
        let token = access.token_file.as_deref().map(token).transpose()?;
        let client =
            |server: &ServerArg| Client::new(http.clone(), server.0.clone(), token.clone());
        Ok(Self {
            clients: urls.into_iter().map(client).collect::<Result<_, _>>()?,
        })
    }

    /// Gives each node.
    pub(in crate::app) fn each(&self) -> &[Client] {
        &self.clients
    }

    /// Asks all nodes at once; one result for each, in the order given.
    pub(in crate::app) async fn all<T: DeserializeOwned>(
        &self,
        ask: &Ask,
    ) -> Vec<(&Client, Result<T, Fault>)> {
        let asked = self
            .clients
            .iter()
            .map(async |client| (client, client.get(ask).await));
        join_all(asked).await
    }
}

/// Does something with the first node that answers, in the order given. A definite answer ends the search, whatever it is.
///
/// # Errors
///
/// Every node's fault, when none did it.
pub(in crate::app) async fn first<T>(
    nodes: &Nodes,
    act: impl AsyncFn(&Client) -> Result<T, Fault>,
) -> Result<Found<'_, T>, Unusable> {
    let mut vain = Vec::new();
    for client in nodes.each() {
        match act(client).await {
            Ok(value) => {
                return Ok(Found {
                    value,
                    client,
                    vain,
                });
            }
            Err(fault) => {
                let definite = fault.kind.is_definite();
                vain.push(fault);
                if definite {
                    break;
                }
            }
        }
    }
    Err(Unusable(vain))
}

/// How much of a list is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::app) enum Much {
    /// It comes on one page, and takes no parameters that say otherwise.
    Whole,
    /// Up to so many items, page by page.
    UpTo(u32),
}

/// Gathers a list of one node.
///
/// # Errors
///
/// The first fault.
pub(in crate::app) async fn list<T: DeserializeOwned>(
    client: &Client,
    ask: &Ask,
    much: Much,
) -> Result<Page<T>, Fault> {
    let Much::UpTo(limit) = much else {
        return client.get(ask).await;
    };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut gathered = Page {
        items: Vec::new(),
        total: 0,
        next: None,
    };
    loop {
        let left = u32::try_from(limit - gathered.items.len()).unwrap_or(PAGE);
        let page = ask
            .clone()
            .with("limit", left.min(PAGE))
            .maybe("cursor", gathered.next.take());
        let mut page: Page<T> = client.get(&page).await?;
        page.items.truncate(limit - gathered.items.len());
        // A node that gives empty pages for ever is not asked for ever.
        let ended = page.items.is_empty();
        gathered.items.append(&mut page.items);
        gathered.total = page.total;
        gathered.next = page.next;
        if ended || gathered.items.len() >= limit || gathered.next.is_none() {
            return Ok(gathered);
        }
    }
}
