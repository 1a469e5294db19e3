//! Requests to an API server: what an administrator, a load balancer's controller and kubelets do.

use std::fmt;
use std::path::Path;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use futures_util::stream::{self, BoxStream, StreamExt, TryStreamExt};
use http_body_util::BodyExt;
use hyper::Request;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, ListParams, ObjectList, Patch, PatchParams,
    PostParams, VersionMatch, WatchEvent, WatchParams,
};
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::{GroupVersionKind, Status};
use kube::{Client, Config};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::time::timeout;

use crate::kinds::{Kind, SERVICE};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// How many requests of a crowd are under way at once.
const IN_FLIGHT: usize = 32;
/// How long the deletion of a crowd may take.
const CLEARED: Duration = Duration::from_secs(120);
/// Who owns the fields of applied objects.
const MANAGER: &str = "meridian-tests";

/// What all requests of these tests run on.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
});

/// Why a request came to nothing.
#[derive(Debug)]
pub enum Failure {
    /// The server said no.
    Refused(Box<Status>),
    /// Nothing came in time.
    Silent,
    /// There is no server, or it broke off.
    Broken(String),
}

impl Failure {
    /// The HTTP status, when there was one.
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Refused(status) => Some(status.code),
            Self::Silent | Self::Broken(_) => None,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(status) => write!(f, "refused with {}: {}", status.code, status.message),
            Self::Silent => f.write_str("nothing came in time"),
            Self::Broken(why) => f.write_str(why),
        }
    }
}

impl From<kube::Error> for Failure {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::Refused(status),
            other => Self::Broken(format!("{other:?}")),
        }
    }
}

/// A client of one user at one API server. A namespace that is empty is none: of cluster-wide kinds, or all namespaces.
#[derive(Clone)]
pub struct Admin {
    client: Client,
    patience: Duration,
}

impl Admin {
    /// Makes a client of a context of a kubeconfig file.
    pub fn new(kubeconfig: &Path, context: &str) -> Self {
        // Another client of this program may have said so already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let file = Kubeconfig::read_from(kubeconfig).unwrap();
        let options = KubeConfigOptions {
            context: Some(context.to_owned()),
            ..KubeConfigOptions::default()
        };
        let client = RUNTIME.block_on(async {
            let mut config = Config::from_custom_kubeconfig(file, &options)
                .await
                .unwrap();
            // A refusal is told, not tried again; and nothing on loopback goes through a proxy.
            config.default_retry = false;
            config.proxy_url = None;
            Client::try_from(config).unwrap()
        });
        Self {
            client,
            patience: PATIENCE,
        }
    }

    /// The same with other patience.
    pub fn within(&self, patience: Duration) -> Self {
        Self {
            client: self.client.clone(),
            patience,
        }
    }

    /// Tells whether the server is ready, its first Service included: before that it may have no cluster IPs to give.
    pub fn is_ready(&self) -> bool {
        let asker = self.within(Duration::from_secs(1));
        let request = Request::get("/readyz").body(Vec::new()).unwrap();
        let ready = asker.run(asker.client.request_text(request));
        ready.is_ok_and(|text| text == "ok") && asker.get(SERVICE, "default", "kubernetes").is_ok()
    }

    /// Makes an object. A `status` in it is set too, through the subresource, as its controller would.
    pub fn create(&self, object: Value) -> Result<DynamicObject, Failure> {
        RUNTIME.block_on(self.put(object))
    }

    /// Makes many objects, the same way and at once; gives how long it took.
    pub fn create_all(&self, objects: impl IntoIterator<Item = Value>) -> Duration {
        let begun = Instant::now();
        let made = stream::iter(objects)
            .map(|object| self.put(object))
            .buffer_unordered(IN_FLIGHT)
            .try_for_each(|_| std::future::ready(Ok(())));
        RUNTIME.block_on(made).unwrap();
        begun.elapsed()
    }

    /// Reads an object.
    pub fn get(
        &self,
        kind: Kind<'_>,
        namespace: &str,
        name: &str,
    ) -> Result<DynamicObject, Failure> {
        self.run(self.api(kind, namespace).get(name))
    }

    /// Reads all objects of a namespace, or of all namespaces.
    pub fn list(
        &self,
        kind: Kind<'_>,
        namespace: &str,
    ) -> Result<ObjectList<DynamicObject>, Failure> {
        self.run(self.api(kind, namespace).list(&ListParams::default()))
    }

    /// Reads all objects as they were at a resource version, and no other.
    pub fn list_exactly(
        &self,
        kind: Kind<'_>,
        namespace: &str,
        version: &str,
    ) -> Result<ObjectList<DynamicObject>, Failure> {
        let params = ListParams::default()
            .at(version)
            .matching(VersionMatch::Exact);
        self.run(self.api(kind, namespace).list(&params))
    }

    /// Asks for a path in a form, and gives the answer's octets.
    pub fn octets(&self, path: &str, accept: &str) -> Vec<u8> {
        let request = Request::get(path).header("accept", accept);
        let request = request.body(Body::empty()).unwrap();
        self.run(async {
            let reply = self.client.send(request).await?;
            Ok(reply.into_body().collect().await?.to_bytes().to_vec())
        })
        .unwrap()
    }

    /// Counts the objects of a namespace, or of all namespaces, without reading them.
    pub fn count(&self, kind: Kind<'_>, namespace: &str) -> Result<usize, Failure> {
        let params = ListParams::default().limit(1);
        let list = self.run(self.api(kind, namespace).list(&params))?;
        let rest = list.metadata.remaining_item_count.unwrap_or_default();
        Ok(list.items.len() + usize::try_from(rest).unwrap())
    }

    /// Changes an object by a merge patch (RFC 7396).
    pub fn patch(
        &self,
        kind: Kind<'_>,
        (namespace, name): (&str, &str),
        patch: &Value,
    ) -> Result<DynamicObject, Failure> {
        let api = self.api(kind, namespace);
        self.run(api.patch(name, &PatchParams::default(), &Patch::Merge(patch)))
    }

    /// Changes the status of an object, as its controller does; `status` is merged into it.
    pub fn patch_status(
        &self,
        kind: Kind<'_>,
        (namespace, name): (&str, &str),
        status: &Value,
    ) -> Result<DynamicObject, Failure> {
        let api = self.api(kind, namespace);
        let patch = Patch::Merge(json!({"status": status}));
        self.run(api.patch_status(name, &PatchParams::default(), &patch))
    }

    /// Applies an object on the server's side: makes it, or makes it so.
    pub fn apply(&self, object: &Value) -> Result<DynamicObject, Failure> {
        let name = object["metadata"]["name"].as_str().expect("a name");
        let params = PatchParams::apply(MANAGER).force();
        self.run(
            self.home(object)
                .patch(name, &params, &Patch::Apply(object)),
        )
    }

    /// The same as its owner does who writes no field that the server does not know.
    pub fn apply_strictly(&self, object: &Value) -> Result<DynamicObject, Failure> {
        let name = object["metadata"]["name"].as_str().expect("a name");
        let params = PatchParams::apply(MANAGER).validation_strict();
        self.run(
            self.home(object)
                .patch(name, &params, &Patch::Apply(object)),
        )
    }

    /// Asks for a token of a service account, which holds for an hour.
    pub fn token(&self, namespace: &str, account: &str) -> Result<String, Failure> {
        let api = self.api(("v1", "ServiceAccount"), namespace);
        let request = json!({
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": 3600},
        });
        let params = PostParams::default();
        let answer: Value =
            self.run(api.create_subresource("token", account, &params, &request))?;
        Ok(answer["status"]["token"]
            .as_str()
            .expect("a token")
            .to_owned())
    }

    /// Deletes an object.
    pub fn delete(&self, kind: Kind<'_>, namespace: &str, name: &str) -> Result<(), Failure> {
        let api = self.api(kind, namespace);
        self.run(api.delete(name, &DeleteParams::default()))
            .map(|_| ())
    }

    /// Deletes all objects of a namespace.
    pub fn delete_all(&self, kind: Kind<'_>, namespace: &str) -> Result<(), Failure> {
        assert!(!namespace.is_empty(), "others may have some too");
        let api = self.api(kind, namespace);
        let (how, all) = (DeleteParams::default(), ListParams::default());
        let cleared = api.delete_collection(&how, &all);
        self.within(CLEARED).run(cleared).map(|_| ())
    }

    /// Follows what happens after a resource version.
    pub fn watch(&self, kind: Kind<'_>, namespace: &str, version: &str) -> Result<Watch, Failure> {
        let api = self.api(kind, namespace);
        let params = WatchParams::default();
        let stream = self.run(api.watch(&params, version))?;
        Ok(Watch {
            stream: stream.boxed(),
        })
    }

    /// Makes an object and sets its status.
    async fn put(&self, mut object: Value) -> Result<DynamicObject, Failure> {
        let api = self.home(&object);
        let status = object.as_object_mut().and_then(|all| all.remove("status"));
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        let params = PostParams::default();
        let mut made = self.bounded(api.create(&params, &object)).await?;
        let Some(status) = status else {
            return Ok(made);
        };
        made.data["status"] = status;
        let name = made.metadata.name.clone().expect("a name");
        self.bounded(api.replace_status(&name, &params, &made))
            .await
    }

    /// Where objects of a kind are.
    fn api(&self, (api_version, kind): Kind<'_>, namespace: &str) -> Api<DynamicObject> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        if namespace.is_empty() {
            Api::all_with(self.client.clone(), &resource)
        } else {
            Api::namespaced_with(self.client.clone(), namespace, &resource)
        }
    }

    /// Where an object belongs by what it says itself.
    fn home(&self, object: &Value) -> Api<DynamicObject> {
        let text = |at: &Value| at.as_str().unwrap_or_default().to_owned();
        let (api_version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
        self.api(
            (&api_version, &kind),
            &text(&object["metadata"]["namespace"]),
        )
    }

    /// Waits for an answer within the patience.
    fn run<T>(&self, job: impl Future<Output = kube::Result<T>>) -> Result<T, Failure> {
        RUNTIME.block_on(self.bounded(job))
    }

    async fn bounded<T>(&self, job: impl Future<Output = kube::Result<T>>) -> Result<T, Failure> {
        match timeout(self.patience, job).await {
            Ok(answer) => Ok(answer?),
            Err(_) => Err(Failure::Silent),
        }
    }
}

/// An open watch.
pub struct Watch {
    stream: BoxStream<'static, kube::Result<WatchEvent<DynamicObject>>>,
}

impl Watch {
    /// Waits for the next event; bookmarks are passed over. An event that is an error is a refusal.
    pub fn next(&mut self, patience: Duration) -> Result<WatchEvent<DynamicObject>, Failure> {
        let next = async {
            loop {
                match self.stream.next().await {
                    Some(Ok(WatchEvent::Bookmark(_))) => {}
                    Some(Ok(WatchEvent::Error(status))) => return Err(Failure::Refused(status)),
                    Some(event) => return Ok(event?),
                    None => return Err(Failure::Broken("the stream ended".to_owned())),
                }
            }
        };
        RUNTIME
            .block_on(async { timeout(patience, next).await })
            .unwrap_or(Err(Failure::Silent))
    }
}
