//! Joining: makes the rights in a member, a token, and the kubeconfig, and tries it before it is put into its place.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use super::entry::{Entry, write};
use super::error::{JoinError, refused, said};
use super::file::{Draft, failed, kubeconfig_file, look_at_folder};
use super::manifest::{Manifest, Namespace, Object, Right};
use super::steps::{Deed, Step};
pub use super::token::Granted;
use super::token::{filled, requested};
use crate::model::ClusterId;
use crate::source::kubernetes::members::{Connection, FaultKind, Verb};
use crate::source::kubernetes::rules::{Access, Trust};

/// How long a server may take to know of rights that were given just now.
const SETTLING: Duration = Duration::from_secs(5);
/// Files of a folder that are looked through for the same server.
const MAX_FILES: usize = 1_000;
/// From try to try.
const EVERY: Duration = Duration::from_millis(100);

/// Where the kubeconfig goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Into a folder, by the cluster's name.
    Folder(PathBuf),
    /// Into a file.
    File(PathBuf),
    /// To whoever called.
    Caller,
}

/// What is wanted.
#[derive(Clone, Debug)]
pub struct Wish {
    /// The kubeconfig and context of somebody who may give rights.
    pub access: Access,
    /// The cluster's name.
    pub name: ClusterId,
    /// The namespace of the service account.
    pub namespace: Namespace,
    /// How long the token holds; `None`: it has no end.
    pub expires: Option<Duration>,
    /// Where the kubeconfig goes.
    pub place: Place,
    /// The rights to write Events come on top.
    pub writes_back: bool,
    /// Nothing is changed: the server only says what would be.
    pub dry_run: bool,
}

/// What was done.
#[derive(Clone, Debug)]
pub struct Joined {
    /// The server that nodes will ask.
    pub server: String,
    /// The objects, in their order.
    pub steps: Vec<Step>,
    /// The file, and what became of it.
    pub file: Option<(PathBuf, Deed)>,
    /// The kubeconfig, where it goes to the caller.
    pub entry: Option<Entry>,
    /// How long the token holds; `None`: it has no end.
    pub granted: Option<Granted>,
    /// What to know of the connection.
    pub warnings: Vec<String>,
}

/// Said of servers on this machine.
const LOOPBACK: &str = "the server is a loopback address: only nodes on this machine reach it";

/// Joins a cluster. What waits is told by `tell`, line by line. It may be said again: what is there stays.
///
/// # Errors
/// In one sentence: what the server, the kubeconfig or the file's place does not allow. What was made until then stays.
pub async fn join(wish: &Wish, mut tell: impl FnMut(&str)) -> Result<Joined, JoinError> {
    let admin = connect(&wish.access).await?;
    let spot = Spot::find(wish, &admin.endpoint().url).await?;
    let manifest = Manifest::of(&wish.namespace, wish.writes_back);
    let mut joined = Joined {
        server: admin.endpoint().url.clone(),
        steps: Vec::new(),
        file: None,
        entry: None,
        granted: None,
        warnings: warnings(&admin),
    };
    joined
        .warnings
        .extend(spot.doubles(wish, &joined.server).await);
    joined.steps = make(&admin, &manifest, wish).await?;
    if wish.dry_run {
        let deed = spot.deed();
        joined.file = spot.file.map(|file| (file, deed));
        return Ok(joined);
    }
    let token = match wish.expires {
        None => filled(&admin, &manifest.secret(), &mut tell).await?,
        Some(span) => {
            let (token, granted) = requested(&admin, &manifest, span).await?;
            joined.granted = Some(granted);
            token
        }
    };
    let entry = write(&wish.name, admin.endpoint(), &token);
    let draft = Draft::write(&spot.tried(&wish.name), &entry)?;
    check(draft.path(), &manifest).await?;
    match spot.file {
        None => joined.entry = Some(entry),
        Some(file) if spot.known.as_deref() == Some(entry.expose()) => {
            joined.file = Some((file, Deed::Unchanged));
        }
        Some(ref file) => {
            draft.keep(file)?;
            joined.file = Some((file.clone(), spot.deed()));
        }
    }
    Ok(joined)
}

/// Where the kubeconfig goes, and what is there.
struct Spot {
    /// The file; `None`: it goes to the caller.
    file: Option<PathBuf>,
    /// What the file holds; `None`: it is not there.
    known: Option<String>,
}

impl Spot {
    /// Finds it, and looks whether it may be used.
    async fn find(wish: &Wish, url: &str) -> Result<Self, JoinError> {
        let file = match &wish.place {
            Place::Folder(folder) => {
                look_at_folder(folder)?;
                Some(kubeconfig_file(folder, &wish.name))
            }
            Place::File(file) => Some(file.clone()),
            Place::Caller => None,
        };
        let known = match &file {
            Some(file) => look_at_file(file, url).await?,
            None => None,
        };
        Ok(Self { file, known })
    }

    /// What becomes of the file when it is written.
    fn deed(&self) -> Deed {
        if self.known.is_some() {
            Deed::Changed
        } else {
            Deed::Created
        }
    }

    /// The place beside which a draft is tried. It is a file in any case, to be read as a node reads it.
    fn tried(&self, name: &ClusterId) -> PathBuf {
        let elsewhere = || std::env::temp_dir().join(format!("meridian-{name}.yaml"));
        self.file.clone().unwrap_or_else(elsewhere)
    }

    /// Warns of files beside it, which lead to the same server by another name.
    async fn doubles(&self, wish: &Wish, url: &str) -> Vec<String> {
        let (Place::Folder(folder), Some(own)) = (&wish.place, &self.file) else {
            return Vec::new();
        };
        let entries = std::fs::read_dir(folder).into_iter().flatten();
        let others: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path != own && path.extension().is_some_and(|end| end == "yaml"))
            .take(MAX_FILES)
            .collect();
        let mut warnings = Vec::new();
        for path in others {
            let file = path.display().to_string();
            let access = Access::Kubeconfig {
                file: path,
                context: None,
                trust: Trust::Whole,
            };
            let leads_to = Connection::leads_to(&access).await;
            if leads_to.is_ok_and(|endpoint| endpoint.url == url) {
                warnings.push(format!(
                    "{file} leads to the same server: nodes that follow both answer with it twice, as two clusters"
                ));
            }
        }
        warnings
    }
}

/// Makes the objects, or asks what would become of them.
async fn make(
    admin: &Connection,
    manifest: &Manifest,
    wish: &Wish,
) -> Result<Vec<Step>, JoinError> {
    let secret = wish.expires.is_none().then(|| manifest.secret());
    let mut steps = Vec::new();
    let mut lacks_namespace = false;
    for object in manifest.objects.iter().chain(&secret) {
        let deed = if lacks_namespace && object.namespace.is_some() {
            // In a dry run the server has no place for it.
            Deed::Created
        } else {
            apply(admin, object, wish.dry_run).await?
        };
        lacks_namespace |=
            wish.dry_run && deed == Deed::Created && object.resource.kind == "Namespace";
        steps.push(Step::new(object, deed));
    }
    Ok(steps)
}

/// Makes the connection with which rights are given or taken.
pub(super) async fn connect(access: &Access) -> Result<Connection, JoinError> {
    let opened = Connection::open(access).await;
    opened.map_err(|fault| JoinError::Kubeconfig(fault.text))
}

/// Says what to know of a connection that nodes will have.
fn warnings(admin: &Connection) -> Vec<String> {
    let said = admin.warnings().iter().copied();
    let here = is_loopback(&admin.endpoint().url).then_some(LOOPBACK);
    said.chain(here).map(str::to_owned).collect()
}

/// Tells whether a URL of a server names this machine.
fn is_loopback(url: &str) -> bool {
    let authority = url.split("://").nth(1).unwrap_or_default();
    let authority = authority.split('/').next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    match host.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => host.eq_ignore_ascii_case("localhost"),
    }
}

/// Looks at what is in the file's place; gives its text. Another cluster's is left alone.
async fn look_at_file(file: &Path, url: &str) -> Result<Option<String>, JoinError> {
    if !file.exists() {
        return Ok(None);
    }
    let foreign = |why: &str| {
        failed(
            file,
            &format!("{why}; it is left alone: choose another --name, or move it away"),
        )
    };
    let access = Access::Kubeconfig {
        file: file.to_owned(),
        context: None,
        trust: Trust::Whole,
    };
    let leads_to = Connection::leads_to(&access).await;
    let leads_to =
        leads_to.map_err(|_| foreign("is there, and is no kubeconfig that can be read"))?;
    if leads_to.url != url {
        let why = format!("is there for another server, {}", leads_to.url);
        return Err(foreign(&why));
    }
    Ok(Some(std::fs::read_to_string(file).unwrap_or_default()))
}

/// Makes an object so, on the server's side; tells what became of it.
async fn apply(admin: &Connection, object: &Object, dry_run: bool) -> Result<Deed, JoinError> {
    let url = &admin.endpoint().url;
    let path = object.path();
    let found = match admin.ask(Verb::Get, &path, None).await {
        Ok(found) => Some(found),
        Err(fault) if fault.kind == FaultKind::Missing => None,
        Err(fault) => return Err(refused(url, Verb::Get, object, &fault)),
    };
    if object.resource.kind == "Namespace" && found.is_some() {
        // It is somebody's already, and nothing in it is ours.
        return Ok(Deed::Unchanged);
    }
    let dry = if dry_run { "&dryRun=All" } else { "" };
    let query = format!("{path}?fieldManager=meridian&fieldValidation=Strict{dry}");
    let made = admin.ask(Verb::Apply, &query, Some(&object.value)).await;
    let made = made.map_err(|fault| refused(url, Verb::Apply, object, &fault))?;
    Ok(match found.map(said_of) {
        None => Deed::Created,
        Some(found) if found == said_of(made) => Deed::Unchanged,
        Some(_) => Deed::Changed,
    })
}

/// Leaves out of an object what the server notes of changes.
fn said_of(mut object: Value) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for key in ["managedFields", "resourceVersion", "generation"] {
            metadata.remove(key);
        }
    }
    object
}

/// Tries a kubeconfig: whether it leads to the server, and whether all rights are there.
async fn check(file: &Path, manifest: &Manifest) -> Result<(), JoinError> {
    let access = Access::Kubeconfig {
        file: file.to_owned(),
        context: None,
        trust: Trust::Whole,
    };
    let reader = connect(&access).await?;
    let mut tries = 0;
    loop {
        let why = match try_once(&reader, manifest).await {
            Ok(()) => return Ok(()),
            Err(why) => why,
        };
        if tries * EVERY >= SETTLING {
            let server = reader.endpoint().url.clone();
            return Err(JoinError::Check { server, why });
        }
        tries += 1;
        sleep(EVERY).await;
    }
}

/// Tries it once; gives what does not do.
async fn try_once(reader: &Connection, manifest: &Manifest) -> Result<(), String> {
    let listed = reader
        .ask(Verb::Get, "/api/v1/services?limit=1", None)
        .await;
    listed.map_err(|fault| said("it cannot list Services", "list services", &fault))?;
    let missing = |right: &Right| format!("it has no right to {right}");
    // Who may list and watch may do all that a node does.
    let rights = manifest.rights().into_iter();
    for right in rights.filter(|right| right.verb != "get") {
        let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {
                "group": right.group,
                "resource": right.resource,
                "verb": right.verb,
                "namespace": right.namespace.as_deref().unwrap_or_default(),
                "name": right.name.as_deref().unwrap_or_default(),
            }},
        });
        let answer = reader.ask(Verb::Create, path, Some(&review)).await;
        let answer = answer.map_err(|fault| said(&missing(&right), &right.to_string(), &fault))?;
        if answer.pointer("/status/allowed") != Some(&json!(true)) {
            return Err(missing(&right));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_on_this_machine_are_known() {
        for (url, is_here) in [
            ("https://127.0.0.1:6443", true),
            ("https://[::1]:6443/k8s", true),
            ("https://localhost", true),
            ("https://192.0.2.1:6443", false),
            ("https://[2001:db8::1]", false),
            ("https://localhost.example", false),
            ("", false),
        ] {
            assert_eq!(is_loopback(url), is_here, "{url}");
        }
    }

    #[test]
    fn what_a_server_notes_of_changes_is_no_difference() {
        let at = |version: &str, rules: &str| json!({"metadata": {"name": "a", "resourceVersion": version, "managedFields": [version]}, "rules": rules});
        assert_eq!(said_of(at("1", "a")), said_of(at("2", "a")));
        assert_ne!(said_of(at("1", "a")), said_of(at("1", "b")));
    }
}
