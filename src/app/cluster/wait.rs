//! Waiting until nodes have left a cluster: every node given is asked, and each must say that it has none of this name.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use crate::admin::dto::{ClusterDto, LeavingDto, ServiceRowDto};
use crate::app::client::{Ask, Client, Fault, FaultKind, Much, Nodes, list};
use crate::app::output::note;
use crate::app::words::{clean, join, plural};
use crate::model::ClusterId;

/// From question to question.
const EVERY: Duration = Duration::from_secs(1);
/// The same words are said again after so long, so that a log shows that somebody still waits.
const AGAIN: Duration = Duration::from_secs(10);
/// Services of a cluster that are looked through for those that hold it.
const MAX_SERVICES: Much = Much::UpTo(10_000);
/// Services that are named.
const NAMED: usize = 5;
/// Why a cluster is dropped, for the audit.
const REASON: &str = "meridian cluster leave --force";

/// How it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// No node has it.
    Everywhere,
    /// In time not all have left: why, in words.
    Not(Vec<String>),
}

/// Waits for nodes to have left, at most `patience`. With `force` each drops the cluster as soon as it is leaving there.
///
/// # Errors
/// When a node does not let us ask, or does not drop it. Nodes out of reach are waited for.
pub(super) async fn until_left(
    nodes: &Nodes,
    name: &ClusterId,
    (patience, force): (Duration, bool),
) -> Result<Left, Fault> {
    let begun = Instant::now();
    let mut said: Option<(Vec<String>, Instant)> = None;
    loop {
        let held = judge(ask(nodes, name, force).await)?;
        if held.is_empty() {
            return Ok(Left::Everywhere);
        }
        let now = Instant::now();
        if now + EVERY > begun + patience {
            return Ok(Left::Not(held));
        }
        let is_known = said
            .as_ref()
            .is_some_and(|(words, at)| *words == held && now < *at + AGAIN);
        if !is_known {
            note(&format!("waiting: {}", held.join("; ")));
            said = Some((held, now));
        }
        tokio::time::sleep(EVERY).await;
    }
}

/// What a node says: what holds the cluster there; `None`: nothing does, it has none of this name, or follows it no longer.
type Said = (String, Result<Option<String>, Fault>);

/// Asks every node, and has it drop the cluster where that is wanted and it is leaving.
async fn ask(nodes: &Nodes, name: &ClusterId, force: bool) -> Vec<Said> {
    let ask = Ask::of(["clusters", name.as_str()]);
    let mut said = Vec::new();
    for (client, found) in nodes.all::<ClusterDto>(&ask).await {
        let held = match found {
            // It may stand in the node's configuration: then it is there for ever, and no member any more.
            Ok(cluster) if cluster.leaving.is_none() && cluster.kubernetes.is_none() => Ok(None),
            Ok(cluster) if cluster.leaving.is_some() && force => drop_at(client, name).await,
            Ok(cluster) => match cluster.leaving {
                Some(leaving) => Ok(Some(in_words(&leaving))),
                None => match held(client, name).await {
                    // Meanwhile it is gone.
                    Err(fault) if matches!(fault.kind, FaultKind::NotFound(_)) => Ok(None),
                    held => held.map(Some),
                },
            },
            Err(fault) if matches!(fault.kind, FaultKind::NotFound(_)) => Ok(None),
            Err(fault) => Err(fault),
        };
        said.push((client.server(), held));
    }
    said
}

/// Has a node drop a cluster that is leaving there.
async fn drop_at(client: &Client, name: &ClusterId) -> Result<Option<String>, Fault> {
    let ask = Ask::of(["clusters", name.as_str()]).with("reason", REASON);
    match client.delete::<Value>(&ask).await {
        // Meanwhile it is gone.
        Err(fault) if !matches!(fault.kind, FaultKind::NotFound(_)) => Err(fault),
        _ => Ok(None),
    }
}

/// Says how far a node is that lets go of a cluster.
fn in_words(leaving: &LeavingDto) -> String {
    if leaving.held > 0 {
        let total = usize::try_from(leaving.held).unwrap_or(usize::MAX);
        let names = leaving.held_services.iter().map(|name| clean(name));
        let names = first_of(names, total);
        return format!("holds it, for services that have nothing else: {names}");
    }
    match leaving.remaining_seconds {
        Some(seconds) => format!("lets go of it, {seconds:.0} s more"),
        None => "lets go of it".to_owned(),
    }
}

/// Joins the first few of so many names, and counts the others.
fn first_of(names: impl Iterator<Item = String>, total: usize) -> String {
    let mut names: Vec<String> = names.take(NAMED).collect();
    let more = total.saturating_sub(names.len());
    if more > 0 {
        names.push(format!("{more} more"));
    }
    join(&names)
}

/// Says what holds a cluster at a node that has it.
async fn held(client: &Client, name: &ClusterId) -> Result<String, Fault> {
    let ask = Ask::of(["services"]).with("cluster", name.as_str());
    let services = list::<ServiceRowDto>(client, &ask, MAX_SERVICES).await?;
    Ok(reason(&services.items, name))
}

/// Says why a cluster stays, by the services that have an endpoint in it.
fn reason(services: &[ServiceRowDto], name: &ClusterId) -> String {
    let has_no_other = |service: &&ServiceRowDto| {
        let mut clusters = service.clusters.iter();
        clusters.all(|share| share.cluster == name.as_str())
    };
    let alone: Vec<&ServiceRowDto> = services.iter().filter(has_no_other).collect();
    if alone.is_empty() {
        let count = services.len();
        return format!(
            "still has it, with {}; if it stands in `clusters` of its configuration, take it out there and reload",
            plural(
                u64::try_from(count).unwrap_or(u64::MAX),
                "service",
                "services"
            )
        );
    }
    let name_of = |service: &&ServiceRowDto| {
        let name = service.hostnames.first().unwrap_or(&service.key);
        clean(name)
    };
    let names = first_of(alone.iter().map(name_of), alone.len());
    format!("still has it, for names that have no other cluster: {names}")
}

/// Puts together what nodes say: why each that has not left has not. The same words of several stand once.
fn judge(said: Vec<Said>) -> Result<Vec<String>, Fault> {
    let mut held: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (server, said) in said {
        let why = match said {
            Ok(None) => continue,
            Ok(Some(why)) => why,
            Err(fault) if fault.kind.is_definite() => return Err(fault),
            Err(fault) => format!("does not say: {}", fault.kind),
        };
        held.entry(why).or_default().push(server);
    }
    let words = held
        .into_iter()
        .map(|(why, servers)| format!("{} {why}", join(&servers)));
    Ok(words.collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn service(name: &str, clusters: &[&str]) -> ServiceRowDto {
        let shares: Vec<Value> = clusters
            .iter()
            .map(|cluster| json!({"cluster": cluster, "state": "up"}))
            .collect();
        let row = json!({
            "key": format!("shop/{name}"), "namespace": "shop", "name": name, "hostnames": [format!("{name}.example")],
            "state": "up", "steer": "proximity", "clusters": shares,
            "endpoints": {"up": 1, "unknown": 0, "drained": 0, "degraded": 0, "down": 0},
        });
        serde_json::from_value(row).unwrap()
    }

    #[test]
    fn names_without_another_cluster_are_told() {
        let a: ClusterId = "a".parse().unwrap();
        let rows = |names: &[&str], clusters: &[&str]| -> Vec<ServiceRowDto> {
            names.iter().map(|name| service(name, clusters)).collect()
        };
        for (services, wanted) in [
            (
                rows(&["web"], &["a", "b"]),
                "still has it, with 1 service; if it stands in `clusters` of its configuration, take it out there and reload",
            ),
            (
                [rows(&["web"], &["a", "b"]), rows(&["api"], &["a"])].concat(),
                "still has it, for names that have no other cluster: api.example",
            ),
            (
                rows(&["s", "t", "u", "v", "w", "x", "y"], &["a"]),
                "still has it, for names that have no other cluster: s.example, t.example, u.example, v.example, w.example, 2 more",
            ),
        ] {
            assert_eq!(reason(&services, &a), wanted);
        }
    }

    #[test]
    fn a_node_that_lets_go_says_how_far_it_is() {
        let leaving = |held: u64, remaining_seconds| LeavingDto {
            since: "2026-03-01T03:00:00Z".to_owned(),
            why: "its kubeconfig is gone".to_owned(),
            held,
            held_services: (0..held.min(20)).map(|at| format!("shop/s{at}")).collect(),
            remaining_seconds,
        };
        for (leaving, wanted) in [
            (leaving(0, None), "lets go of it"),
            (leaving(0, Some(12.4)), "lets go of it, 12 s more"),
            (
                leaving(2, None),
                "holds it, for services that have nothing else: shop/s0, shop/s1",
            ),
            (
                leaving(30, None),
                "holds it, for services that have nothing else: shop/s0, shop/s1, shop/s2, shop/s3, shop/s4, 25 more",
            ),
        ] {
            assert_eq!(in_words(&leaving), wanted);
        }
    }

    #[test]
    fn every_node_must_have_left() {
        let fault = |kind: FaultKind| Fault {
            server: "c".to_owned(),
            kind,
        };
        let of = |server: &str, said: Result<Option<&str>, Fault>| -> Said {
            (server.to_owned(), said.map(|why| why.map(str::to_owned)))
        };
        let judged = judge(vec![of("a", Ok(None)), of("b", Ok(None))]);
        assert_eq!(judged, Ok(Vec::new()));
        let judged = judge(vec![
            of("a", Ok(Some("has it"))),
            of("b", Ok(Some("has it"))),
            of("c", Err(fault(FaultKind::NoAnswer))),
            of("d", Ok(None)),
        ])
        .unwrap();
        assert_eq!(judged.len(), 2);
        assert_eq!(judged[1], "a, b has it");
        assert!(
            judged[0].starts_with("c does not say: connected, but"),
            "{judged:?}"
        );
        // Without the right to look, waiting makes no sense.
        let forbidden = FaultKind::Unauthorized {
            had_token: false,
            changes: false,
        };
        assert!(judge(vec![of("c", Err(fault(forbidden)))]).is_err());
    }
}
