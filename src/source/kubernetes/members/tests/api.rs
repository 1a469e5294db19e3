//! An API server on a loopback port, gone when dropped: honest but for what a script says, and not much of one.

use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;

/// A request.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) at: Instant,
    pub(super) path: String,
    pub(super) query: String,
    pub(super) head: String,
}

impl Asked {
    pub(super) fn is_watch(&self) -> bool {
        self.query.contains("watch=true")
    }

    pub(super) fn is_stream(&self) -> bool {
        self.query.contains("sendInitialEvents=true")
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    fn parameter(&self, name: &str) -> &str {
        let mut pairs = self
            .query
            .split('&')
            .filter_map(|pair| pair.split_once('='));
        pairs
            .find(|(found, _)| *found == name)
            .map_or("", |(_, value)| value)
    }
}

/// What is answered in place of what is right.
#[derive(Clone, Debug)]
pub(super) enum Script {
    /// A status, a content type and a body.
    Answer(u16, &'static str, String),
    /// An answer of JSON whose body ends before it should.
    Cut(String),
    /// A watch that sends this, and whose connection ends then.
    Lines(String),
    /// A watch that sends one event that never ends; octets are counted in `flooded`.
    Flood,
}

type Matcher = Box<dyn Fn(&Asked) -> bool + Send>;

/// What the server has.
#[derive(Default)]
pub(super) struct State {
    /// Objects by the plural of their kind, then by name.
    objects: BTreeMap<String, BTreeMap<String, Value>>,
    /// Versions, the plural of a kind, and an event.
    history: Vec<(u64, String, Value)>,
    version: u64,
    /// Versions up to here are forgotten.
    compacted: u64,
    /// What is forgotten is told as a status of HTTP.
    pub(super) gone_as_status: bool,
    /// Plurals by group and version.
    pub(super) served: BTreeMap<(&'static str, &'static str), Vec<&'static str>>,
    pub(super) minor: u32,
    /// The one token that is accepted; `None`: anybody is.
    pub(super) token: Option<String>,
    /// Requests are taken, and never answered.
    stalled: bool,
    cuts: u64,
    scripts: VecDeque<(Matcher, Script)>,
    pub(super) asked: Vec<Asked>,
    pub(super) flooded: u64,
}

struct Shared {
    state: Mutex<State>,
    changed: watch::Sender<u64>,
}

impl Shared {
    fn edit<T>(&self, edit: impl FnOnce(&mut State) -> T) -> T {
        let edited = edit(&mut self.state.lock().unwrap());
        self.changed.send_modify(|times| *times += 1);
        edited
    }

    async fn unstalled(&self) {
        let mut changed = self.changed.subscribe();
        while self.state.lock().unwrap().stalled {
            changed.changed().await.unwrap();
        }
    }
}

/// A running server.
pub(super) struct Api {
    pub(super) address: SocketAddr,
    shared: Arc<Shared>,
    _tasks: JoinSet<()>,
}

impl Api {
    /// Starts one with the built-in kinds, of the version 1.`minor`.
    pub(super) async fn start(minor: u32) -> Self {
        Self::start_with(minor, None).await
    }

    /// Starts one that speaks TLS.
    pub(super) async fn start_tls(minor: u32, acceptor: TlsAcceptor) -> Self {
        Self::start_with(minor, Some(acceptor)).await
    }

    async fn start_with(minor: u32, acceptor: Option<TlsAcceptor>) -> Self {
        let served = BTreeMap::from([
            (("", "v1"), vec!["services", "nodes"]),
            (("discovery.k8s.io", "v1"), vec!["endpointslices"]),
            (("networking.k8s.io", "v1"), vec!["ingresses"]),
            (
                ("apiextensions.k8s.io", "v1"),
                vec!["customresourcedefinitions"],
            ),
        ]);
        let state = State {
            served,
            minor,
            version: 100,
            ..State::default()
        };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            changed: watch::Sender::new(0),
        });
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut tasks = JoinSet::new();
        let serving = shared.clone();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (shared, acceptor) = (serving.clone(), acceptor.clone());
                connections.spawn(async move {
                    match acceptor {
                        None => serve(stream, &shared).await,
                        Some(acceptor) => {
                            if let Ok(stream) = acceptor.accept(stream).await {
                                serve(stream, &shared).await;
                            }
                        }
                    }
                });
                while connections.try_join_next().is_some() {}
            }
        });
        Self {
            address,
            shared,
            _tasks: tasks,
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap()
    }

    /// Requests of one path so far.
    pub(super) fn asked(&self, path: &str) -> Vec<Asked> {
        let state = self.state();
        let asked = state.asked.iter().filter(|asked| asked.path == path);
        asked.cloned().collect()
    }

    /// Makes or changes an object.
    pub(super) fn put(&self, plural: &str, name: &str) {
        self.shared.edit(|state| {
            state.version += 1;
            let object = object(plural, name, state.version);
            let objects = state.objects.entry(plural.to_owned()).or_default();
            let before = objects.insert(name.to_owned(), object.clone());
            let kind = if before.is_some() {
                "MODIFIED"
            } else {
                "ADDED"
            };
            let event = json!({"type": kind, "object": object});
            state
                .history
                .push((state.version, plural.to_owned(), event));
        });
    }

    /// Deletes an object.
    pub(super) fn delete(&self, plural: &str, name: &str) {
        self.shared.edit(|state| {
            state.version += 1;
            let mut object = state.objects.get_mut(plural).unwrap().remove(name).unwrap();
            object["metadata"]["resourceVersion"] = state.version.to_string().into();
            let event = json!({"type": "DELETED", "object": object});
            state
                .history
                .push((state.version, plural.to_owned(), event));
        });
    }

    /// Ends all watches, as a server does whose time for them is over.
    pub(super) fn cut(&self) {
        self.shared.edit(|state| state.cuts += 1);
    }

    /// Forgets all versions up to a new one.
    pub(super) fn compact(&self) {
        self.shared.edit(|state| {
            state.version += 1;
            state.compacted = state.version;
        });
    }

    pub(super) fn stall(&self, stalled: bool) {
        self.shared.edit(|state| state.stalled = stalled);
    }

    /// Answers the next request that matches in another way.
    pub(super) fn script(&self, matches: impl Fn(&Asked) -> bool + Send + 'static, script: Script) {
        let script = (Box::new(matches) as Matcher, script);
        self.state().scripts.push_back(script);
    }
}

/// An object as readers like it.
pub(super) fn object(plural: &str, name: &str, version: u64) -> Value {
    let (api, kind) = match plural {
        "services" => ("v1", "Service"),
        "endpointslices" => ("discovery.k8s.io/v1", "EndpointSlice"),
        "gateways" => ("gateway.networking.k8s.io/v1", "Gateway"),
        "secrets" => ("v1", "Secret"),
        _ => ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    };
    let mut object = json!({
        "apiVersion": api,
        "kind": kind,
        "metadata": {
            "name": name,
            "resourceVersion": version.to_string(),
            "labels": {"kubernetes.io/service-name": name},
            "annotations": {"meridian-dns.io/enabled": "true"},
            "managedFields": [{"manager": "test"}],
        },
    });
    if plural != "customresourcedefinitions" {
        object["metadata"]["namespace"] = "shop".into();
    }
    let more = match plural {
        "services" => json!({
            "spec": {"type": "LoadBalancer", "ports": [{"port": 80, "protocol": "TCP"}]},
            "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}},
        }),
        "endpointslices" => json!({"addressType": "IPv4", "endpoints": [], "ports": []}),
        "gateways" => json!({"spec": {"gatewayClassName": "c", "listeners": []}, "status": {}}),
        "secrets" => json!({"data": {"kubeconfig": "Y2FuYXJ5"}}),
        _ => json!({}),
    };
    let fields = more.as_object().unwrap().clone();
    object.as_object_mut().unwrap().extend(fields);
    object
}

/// Reads a head; `None` at the end of the connection.
async fn head(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    String::from_utf8(head).ok()
}

/// Serves a connection, request by request.
async fn serve(mut stream: impl AsyncRead + AsyncWrite + Unpin, shared: &Shared) {
    while let Some(head) = head(&mut stream).await {
        let target = head.split_whitespace().nth(1).unwrap();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let asked = Asked {
            at: Instant::now(),
            path: path.to_owned(),
            query: query.to_owned(),
            head: head.clone(),
        };
        shared.state.lock().unwrap().asked.push(asked.clone());
        shared.unstalled().await;
        if answer(&mut stream, shared, &asked).await.is_none() {
            return;
        }
    }
}

/// Answers; `None`: the connection ends.
async fn answer(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    shared: &Shared,
    asked: &Asked,
) -> Option<()> {
    let script = {
        let mut state = shared.state.lock().unwrap();
        let at = state.scripts.iter().position(|(matches, _)| matches(asked));
        at.and_then(|at| state.scripts.remove(at))
    };
    match script {
        Some((_, Script::Answer(status, kind, body))) => {
            send(stream, status, kind, &body).await?;
            return Some(());
        }
        Some((_, Script::Cut(body))) => {
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                body.len() + 100
            );
            stream
                .write_all(format!("{head}{body}").as_bytes())
                .await
                .ok()?;
            let _ = stream.shutdown().await;
            return None;
        }
        Some((_, Script::Lines(lines))) => {
            begin_stream(stream).await?;
            chunk(stream, lines.as_bytes()).await?;
            let _ = stream.shutdown().await;
            return None;
        }
        Some((_, Script::Flood)) => {
            flood(stream, shared).await;
            return None;
        }
        None => {}
    }
    let is_allowed = match &shared.state.lock().unwrap().token {
        Some(token) => asked.header("authorization") == Some(&format!("Bearer {token}")),
        None => true,
    };
    if !is_allowed {
        // A server that gives back what it should not.
        let sent = asked.header("authorization").unwrap_or("nothing");
        return refuse(stream, 401, &format!("you sent {sent}")).await;
    }
    if asked.path == "/livez" {
        return send(stream, 200, "text/plain", "ok").await;
    }
    let told = discovery(&shared.state.lock().unwrap(), &asked.path);
    if let Some(told) = told {
        return send(stream, 200, "application/json", &told.to_string()).await;
    }
    let (version, plural) = asked.path.rsplit_once('/').unwrap();
    // Of one namespace: all objects are in it.
    let version = version.split("/namespaces/").next().unwrap();
    let is_served = {
        let state = shared.state.lock().unwrap();
        state.served.iter().any(|((group, served), plurals)| {
            super::super::kinds::version_path(group, served) == version && plurals.contains(&plural)
        })
    };
    match is_served {
        false => refuse(stream, 404, "no such thing").await,
        true if asked.is_watch() => watch(stream, shared, asked, plural).await,
        true => {
            let list = list(&shared.state.lock().unwrap(), asked, plural);
            send(stream, 200, "application/json", &list.to_string()).await
        }
    }
}

fn discovery(state: &State, path: &str) -> Option<Value> {
    if path == "/version" {
        let minor = state.minor;
        return Some(json!({
            "major": "1",
            "minor": minor.to_string(),
            "gitVersion": format!("v1.{minor}.0"),
        }));
    }
    if path == "/apis" {
        let mut groups: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
        for (group, version) in state.served.keys().filter(|(group, _)| !group.is_empty()) {
            groups
                .entry(group)
                .or_default()
                .push(json!({"version": version}));
        }
        let groups: Vec<_> = groups
            .into_iter()
            .map(|(name, versions)| json!({"name": name, "versions": versions}))
            .collect();
        return Some(json!({"kind": "APIGroupList", "groups": groups}));
    }
    state.served.iter().find_map(|((group, version), plurals)| {
        let is_asked = super::super::kinds::version_path(group, version) == path;
        let entry = |name: &&str| json!({"name": name, "verbs": ["list", "watch"]});
        let entries: Vec<_> = plurals.iter().map(entry).collect();
        is_asked.then(|| json!({"kind": "APIResourceList", "resources": entries}))
    })
}

/// A page: `continue` is the number of objects before it.
fn list(state: &State, asked: &Asked, plural: &str) -> Value {
    let objects: Vec<_> = state.objects.get(plural).into_iter().flatten().collect();
    let limit: usize = asked.parameter("limit").parse().unwrap_or(usize::MAX);
    let from: usize = asked.parameter("continue").parse().unwrap_or(0);
    let page: Vec<_> = objects
        .iter()
        .skip(from)
        .take(limit)
        .map(|(_, object)| object)
        .collect();
    let next = from + page.len();
    let rest = if next < objects.len() {
        next.to_string()
    } else {
        String::new()
    };
    json!({
        "kind": "TestList",
        "metadata": {"resourceVersion": state.version.to_string(), "continue": rest},
        "items": page,
    })
}

async fn watch(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    shared: &Shared,
    asked: &Asked,
    plural: &str,
) -> Option<()> {
    let mut changed = shared.changed.subscribe();
    let cuts = shared.state.lock().unwrap().cuts;
    let mut at: u64 = asked.parameter("resourceVersion").parse().unwrap_or(0);
    let (gone, as_status) = {
        let state = shared.state.lock().unwrap();
        (
            !asked.is_stream() && at < state.compacted,
            state.gone_as_status,
        )
    };
    if gone && as_status {
        return refuse(stream, 410, "too old resource version").await;
    }
    begin_stream(stream).await?;
    if gone {
        let status = json!({"kind": "Status", "code": 410, "message": "too old resource version"});
        let event = json!({"type": "ERROR", "object": status});
        chunk(stream, format!("{event}\n").as_bytes()).await?;
        stream.write_all(b"0\r\n\r\n").await.ok()?;
        return Some(());
    }
    if asked.is_stream() {
        let lines = {
            let state = shared.state.lock().unwrap();
            at = state.version;
            let objects = state
                .objects
                .get(plural)
                .into_iter()
                .flat_map(BTreeMap::values);
            let mut lines: String = objects
                .map(|object| format!("{}\n", json!({"type": "ADDED", "object": object})))
                .collect();
            let metadata = json!({
                "resourceVersion": at.to_string(),
                "annotations": {"k8s.io/initial-events-end": "true"},
            });
            let bookmark = json!({"type": "BOOKMARK", "object": {"metadata": metadata}});
            lines.push_str(&format!("{bookmark}\n"));
            lines
        };
        chunk(stream, lines.as_bytes()).await?;
    }
    loop {
        shared.unstalled().await;
        let (lines, ends) = {
            let state = shared.state.lock().unwrap();
            let news = state.history.iter();
            let news = news.filter(|(version, kind, _)| *version > at && kind == plural);
            let lines: String = news.map(|(_, _, event)| format!("{event}\n")).collect();
            at = state.version;
            (lines, state.cuts > cuts)
        };
        if !lines.is_empty() {
            chunk(stream, lines.as_bytes()).await?;
        }
        if ends {
            stream.write_all(b"0\r\n\r\n").await.ok()?;
            return Some(());
        }
        // The other side may be gone: then the wait ends too.
        tokio::select! {
            _ = changed.changed() => {}
            _ = stream.read_u8() => return None,
        }
    }
}

/// Sends one event without an end, until nobody takes it any more.
async fn flood(stream: &mut (impl AsyncWrite + Unpin), shared: &Shared) {
    let part = vec![b'x'; 1 << 20];
    if begin_stream(stream).await.is_none() {
        return;
    }
    for _ in 0..200 {
        if chunk(stream, &part).await.is_none() {
            return;
        }
        shared.state.lock().unwrap().flooded += part.len() as u64;
    }
}

async fn begin_stream(stream: &mut (impl AsyncWrite + Unpin)) -> Option<()> {
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).await.ok()?;
    stream.flush().await.ok()
}

async fn chunk(stream: &mut (impl AsyncWrite + Unpin), octets: &[u8]) -> Option<()> {
    let head = format!("{:x}\r\n", octets.len());
    stream.write_all(head.as_bytes()).await.ok()?;
    stream.write_all(octets).await.ok()?;
    stream.write_all(b"\r\n").await.ok()?;
    stream.flush().await.ok()
}

async fn refuse(stream: &mut (impl AsyncWrite + Unpin), status: u16, message: &str) -> Option<()> {
    let body = json!({"kind": "Status", "code": status, "message": message}).to_string();
    send(stream, status, "application/json", &body).await
}

async fn send(
    stream: &mut (impl AsyncWrite + Unpin),
    status: u16,
    kind: &str,
    body: &str,
) -> Option<()> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} Text\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n"
    );
    stream
        .write_all(format!("{head}{body}").as_bytes())
        .await
        .ok()?;
    stream.flush().await.ok()
}
