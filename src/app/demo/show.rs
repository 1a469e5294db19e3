//! What the demo prints, and how it asks.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::time::Instant;

use super::NAME;
use super::backends::{Backends, CLUSTERS, Cluster};
use crate::answer::explain;
use crate::app::output::{Style, line};
use crate::model::{ClientSubnet, PrefixLen, RecordType};
use crate::resolving::{Asked, Question, ask};
use crate::snapshot::SnapshotCell;

/// How long anything in the demo may take before it is called a failure.
const PATIENCE: Duration = Duration::from_secs(20);
/// Time between two questions while waiting for a move.
const PACE: Duration = Duration::from_millis(10);
/// The cluster that is stopped: its position in the table.
const FALLEN: usize = 1;
/// That cluster.
const FALLEN_CLUSTER: Cluster = CLUSTERS[FALLEN];

/// A city that asks: a network whose country is well known, as its resolver's ECS option would show it.
struct City {
    name: &'static str,
    network: &'static str,
}

impl City {
    /// Gives its network, as ECS says it.
    fn subnet(&self) -> anyhow::Result<ClientSubnet> {
        let network: ipnet::IpNet = self
            .network
            .parse()
            .context("a network of the demo's table")?;
        Ok(ClientSubnet {
            address: network.network(),
            source: PrefixLen(network.prefix_len()),
        })
    }
}

/// The city that the cluster to be stopped is nearest to.
const FRANKFURT: City = City {
    name: "Frankfurt",
    network: "46.114.0.0/16",
};
/// A city far from it.
const TOKYO: City = City {
    name: "Tokyo",
    network: "126.0.0.0/16",
};

/// Ten cities.
const CITIES: [City; 10] = [
    City {
        name: "New York",
        network: "3.80.0.0/16",
    },
    City {
        name: "Toronto",
        network: "99.224.0.0/16",
    },
    City {
        name: "São Paulo",
        network: "200.147.0.0/16",
    },
    City {
        name: "London",
        network: "81.2.69.0/24",
    },
    FRANKFURT,
    City {
        name: "Johannesburg",
        network: "105.224.0.0/16",
    },
    City {
        name: "Nairobi",
        network: "105.160.0.0/16",
    },
    City {
        name: "Mumbai",
        network: "49.36.0.0/16",
    },
    TOKYO,
    City {
        name: "Sydney",
        network: "1.128.0.0/16",
    },
];

/// Where everything is.
pub(super) struct Stage {
    /// The DNS server.
    pub(super) server: SocketAddr,
    /// Dashboard, API, metrics.
    pub(super) http: SocketAddr,
    /// The configuration file.
    pub(super) configuration: PathBuf,
    /// Lets its bearer drain and force.
    pub(super) token: String,
    /// The snapshot in force: what it decides is explained beside each answer.
    pub(super) cell: Arc<SnapshotCell>,
}

impl Stage {
    /// Says what runs where.
    pub(super) fn introduce(&self) -> io::Result<()> {
        let style = Style::of(&io::stdout());
        line(
            style.bold("Meridian demo: one name, five clusters, the nearest healthy one answers"),
        )?;
        line("")?;
        for cluster in CLUSTERS {
            line(format_args!(
                "  {:<10} {:<13} {:<10} {}",
                cluster.name, cluster.region, cluster.place, cluster.address
            ))?;
        }
        line("")?;
        line(format_args!("  DNS            {}", self.server))?;
        line(format_args!(
            "  dashboard      http://{}/  (to drain a cluster, sign in with {})",
            self.http, self.token
        ))?;
        line(format_args!(
            "  configuration  {}",
            self.configuration.display()
        ))?;
        line("")
    }

    /// Says in a few words why a city is told a cluster: its distance, out of the explanation of the same decision.
    fn why(&self, city: &City, cluster: &str) -> anyhow::Result<String> {
        let name = NAME.parse().context("the demo's name")?;
        let snapshot = self.cell.reader().load_owned();
        let explained = explain(&snapshot, &name, RecordType::A, city.subnet()?);
        let find = |start: &str| {
            let steps = explained.steps.iter();
            steps.filter_map(|step| step.strip_prefix(start)).next()
        };
        let distance = find(&format!("Cluster {cluster}: "))
            .and_then(|step| step.split(',').next())
            .unwrap_or_default();
        let is_second = find("Why: ").is_some_and(|why| why.contains("passed over"));
        let order = if is_second {
            "nearest that is up"
        } else {
            "nearest"
        };
        Ok(format!("{order}, {distance}"))
    }

    /// Asks as a city would.
    async fn ask(&self, city: &City) -> anyhow::Result<Asked> {
        let subnet = city.subnet()?;
        let name = NAME.parse().context("the demo's name")?;
        let question = Question {
            name,
            record_type: RecordType::A,
            subnet: Some(subnet),
            recursion: false,
        };
        Ok(ask(self.server, &question).await?)
    }

    /// Waits until every cluster is known to be up: until then all are answered alike.
    pub(super) async fn wait_until_up(&self) -> anyhow::Result<()> {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            let answered = self.ask(&FRANKFURT).await?.addresses();
            if answered == [IpAddr::V4(FALLEN_CLUSTER.address)] {
                return Ok(());
            }
            tokio::time::sleep(PACE).await;
        }
        bail!("the demo's clusters did not come up within {PATIENCE:?}")
    }

    /// Shows what ten cities are told.
    pub(super) async fn table(&self) -> anyhow::Result<()> {
        let style = Style::of(&io::stdout());
        line(style.bold(&format!(
            "  {:<13} {:<16} {:<10} {:<10} {:<12} {:<5} why",
            "client in", "network (ECS)", "cluster", "at", "answer", "scope"
        )))?;
        for city in &CITIES {
            let asked = self.ask(city).await?;
            let addresses = asked.addresses();
            let Some(address) = addresses.first() else {
                bail!("{} got {} and no address", city.name, asked.rcode())
            };
            let (cluster, place) = place_of(*address);
            let scope = asked
                .scope()
                .map_or_else(String::new, |scope| format!("/{scope}"));
            line(format_args!(
                "  {:<13} {:<16} {} {:<10} {:<12} {scope:<5} {}",
                city.name,
                city.network,
                style.green(&format!("{cluster:<10}")),
                place,
                address.to_string(),
                self.why(city, cluster)?,
            ))?;
        }
        line("")?;
        Ok(())
    }

    /// Shows how to ask by hand.
    pub(super) fn dig_lines(&self) -> io::Result<()> {
        let (address, port) = (self.server.ip(), self.server.port());
        line("Try it yourself, from another terminal:")?;
        for network in [FRANKFURT.network, TOKYO.network] {
            line(format_args!(
                "  dig @{address} -p {port} {NAME} A +norec +subnet={network}"
            ))?;
        }
        line(format_args!(
            "  meridian explain {NAME} --client {} --server http://{}",
            FRANKFURT.network, self.http
        ))?;
        line("")
    }

    /// Prints a prompt and waits for a key: false when the user wants to end.
    pub(super) async fn key<F: Future<Output = bool>>(
        &self,
        prompt: &str,
        key: impl Fn() -> F,
    ) -> io::Result<bool> {
        line(Style::of(&io::stdout()).bold(prompt))?;
        Ok(key().await)
    }

    /// Stops the cluster nearest to Frankfurt and measures the move.
    pub(super) async fn failover(&self, backends: &mut Backends) -> anyhow::Result<()> {
        let style = Style::of(&io::stdout());
        let fallen = FALLEN_CLUSTER;
        line(style.red(&format!("Stopping {} in {} …", fallen.name, fallen.place)))?;
        backends.kill(FALLEN).await;
        let took = self
            .wait_for_move(|address| address != IpAddr::V4(fallen.address))
            .await?;
        let (to, place) = place_of(took.1);
        line(format_args!(
            "Frankfurt's answer moved to {} in {place} after {} ms.",
            style.green(to),
            took.0.as_millis()
        ))?;
        line("Caches follow within the TTL of 5 s.")?;
        line("")?;
        self.table().await
    }

    /// Starts it again and measures the way back.
    pub(super) async fn recovery(&self, backends: &mut Backends) -> anyhow::Result<()> {
        let style = Style::of(&io::stdout());
        let fallen = FALLEN_CLUSTER;
        backends.revive(FALLEN).await?;
        let took = self
            .wait_for_move(|address| address == IpAddr::V4(fallen.address))
            .await?;
        line(format_args!(
            "Frankfurt is back at {} after {} ms.",
            style.green(fallen.name),
            took.0.as_millis()
        ))?;
        line("")?;
        Ok(())
    }

    /// Asks until the answer is as wished.
    async fn wait_for_move(
        &self,
        arrived: impl Fn(IpAddr) -> bool,
    ) -> anyhow::Result<(Duration, IpAddr)> {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            let addresses = self.ask(&FRANKFURT).await?.addresses();
            if let Some(address) = addresses
                .first()
                .copied()
                .filter(|address| arrived(*address))
            {
                return Ok((begun.elapsed(), address));
            }
            tokio::time::sleep(PACE).await;
        }
        bail!("the answer did not move within {PATIENCE:?}")
    }

    /// Ends the scripted demo.
    pub(super) fn farewell(&self) -> anyhow::Result<()> {
        line(
            "That was the demo. `meridian check --config FILE` is the next step; config/ has samples.",
        )?;
        Ok(())
    }
}

/// Names the cluster behind an address.
fn place_of(address: IpAddr) -> (&'static str, &'static str) {
    let found = CLUSTERS
        .iter()
        .find(|cluster| IpAddr::V4(cluster.address) == address);
    found.map_or(("?", "?"), |cluster| (cluster.name, cluster.place))
}
