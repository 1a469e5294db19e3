//! The real program beside clusters.

use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::client::{Ask, Reply};
use crate::harness::door::plain;
use crate::harness::node::Node;
use crate::harness::raw_http::Web;
use crate::harness::wait_for;

/// A cluster on a continent, and clients there.
#[derive(Clone, Copy, Debug)]
pub struct Continent {
    /// The cluster's name.
    pub cluster: &'static str,
    /// Its region of the provider `aws`.
    pub region: &'static str,
    /// A network of clients on the same continent, stable for decades.
    pub clients: &'static str,
}

/// Germany, the United States, Japan.
pub const CONTINENTS: [Continent; 3] = [
    Continent {
        cluster: "europe",
        region: "eu-central-1",
        clients: "46.114.0.0/24",
    },
    Continent {
        cluster: "america",
        region: "us-east-1",
        clients: "3.80.0.0/24",
    },
    Continent {
        cluster: "asia",
        region: "ap-northeast-1",
        clients: "126.0.0.0/24",
    },
];

/// A cluster as a node is told of it.
#[derive(Clone, Copy, Debug)]
pub struct Member<'a> {
    pub name: &'a str,
    /// Its region of the provider `aws`.
    pub region: &'a str,
    /// The kubeconfig file and the context that lead to it; `None` for a cluster that nobody watches.
    pub kubeconfig: Option<(&'a Path, &'a str)>,
}

impl Member<'_> {
    /// Makes its item of `clusters`.
    pub fn item(&self) -> Value {
        let mut item = json!({"name": self.name, "provider": "aws", "region": self.region});
        if let Some((file, context)) = self.kubeconfig {
            item["kubeconfig"] = json!({"file": file, "context": context});
        }
        item
    }
}

/// A running node.
pub struct Meridian {
    node: Node,
}

impl Meridian {
    /// Starts it and waits until it is ready. `rest` is the configuration but for node, dns, admin and clusters.
    pub fn start(members: &[Member<'_>], rest: &str) -> Self {
        let clusters: Value = members.iter().map(Member::item).collect();
        // JSON is YAML.
        let node = Node::start(&format!("clusters: {clusters}\n{rest}"));
        Self { node }
    }

    /// As above, with a section `admin` of the test's; `prepare` may write files into its folder first.
    pub fn start_with_admin(
        members: &[Member<'_>],
        (admin, rest): (&str, &str),
        prepare: impl FnOnce(&Path),
    ) -> Self {
        let clusters: Value = members.iter().map(Member::item).collect();
        let rest = format!("clusters: {clusters}\n{rest}");
        let node = Node::start_with_admin(plain, admin, &rest, prepare);
        Self { node }
    }

    /// The node, for what is done with any.
    pub fn node(&mut self) -> &mut Node {
        &mut self.node
    }

    /// Asks for the A records of a name, with a client's network in the ECS option.
    pub fn ask(&self, name: &str, client: &str) -> Reply {
        Ask::a(name).from(client).udp(self.node.dns())
    }

    /// Asks until the answer has just these addresses, in any order; panics when it does not in time.
    pub fn wait_answer(&self, name: &str, client: &str, addresses: &[&str], patience: Duration) {
        let mut wanted: Vec<IpAddr> = addresses
            .iter()
            .map(|address| address.parse().unwrap())
            .collect();
        wanted.sort();
        let what = format!("{name} for {client} to be {addresses:?}");
        wait_for(&what, patience, || {
            (self.ask(name, client).addresses() == wanted).then_some(())
        });
    }

    /// Reads from the admin API; it must have it.
    pub fn api(&self, path: &str) -> Value {
        let answer = Web::get(self.node.http(), path).send();
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        answer.json()
    }

    /// What it has written so far, to both outputs.
    pub fn log(&mut self) -> String {
        self.node.process().log()
    }
}
