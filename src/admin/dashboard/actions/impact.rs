//! Whom a drain or a force touches, in words, before it is done.

use super::Deed;
use crate::admin::dashboard::words;
use crate::admin::dto::{HealthState, ServiceDto, ServiceRowDto, ShareDto, TargetDto, TargetKind};
use crate::admin::view::{ServiceQuery, View, ViewError};

/// Services looked at a page.
const PAGE: u32 = 500;
/// Pages looked at: beyond so many services the words say that there are more.
const PAGES: usize = 4;
/// Names written out.
const NAMED: usize = 10;

/// Whom it touches.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::admin::dashboard) struct Impact {
    /// One sentence each.
    pub(in crate::admin::dashboard) sentences: Vec<String>,
    /// What should make one think twice, one sentence each.
    pub(in crate::admin::dashboard) warnings: Vec<String>,
    /// Services touched, the first few.
    pub(in crate::admin::dashboard) services: Vec<String>,
    /// Services touched.
    pub(in crate::admin::dashboard) total: u64,
}

impl Impact {
    /// Finds out whom it touches.
    ///
    /// # Errors
    /// When there is no such thing.
    pub(super) async fn of(view: &View, deed: Deed, target: &TargetDto) -> Result<Self, ViewError> {
        match (&target.service, &target.cluster) {
            (Some(key), _) => Ok(Self::on_service(&view.service(key).await?, deed, target)),
            (None, Some(cluster)) => {
                // Says that there is none of this name.
                view.cluster(cluster).await?;
                let mut query = ServiceQuery {
                    cluster: Some(cluster.clone()),
                    limit: Some(PAGE),
                    ..ServiceQuery::default()
                };
                let (mut rows, mut total) = (Vec::new(), 0);
                for _ in 0..PAGES {
                    let page = view.services(&query).await?;
                    rows.extend(page.items);
                    total = page.total;
                    query.cursor = page.next;
                    if query.cursor.is_none() {
                        break;
                    }
                }
                Ok(Self::on_cluster(cluster, &rows, total, deed))
            }
            (None, None) => Ok(Self::default()),
        }
    }

    /// Says what it does to the services of a cluster. `rows` may be the first of `total`.
    pub(in crate::admin::dashboard) fn on_cluster(
        cluster: &str,
        rows: &[ServiceRowDto],
        total: u64,
        deed: Deed,
    ) -> Self {
        let held: Vec<&ServiceRowDto> = rows
            .iter()
            .filter(|row| !has_another(&row.clusters, cluster))
            .collect();
        let mut impact = Self {
            services: rows.iter().take(NAMED).map(|row| row.key.clone()).collect(),
            total,
            ..Self::default()
        };
        let touched = words::count(&total, "service");
        impact.sentences = match deed {
            Deed::Drain => vec![
                format!("It touches {touched} with endpoints in {cluster}."),
                "New answers no longer name its endpoints; clients that hold an answer go on until its TTL is over.".to_owned(),
                "Nothing is stopped by this: the page of the drain shows when it is safe to.".to_owned(),
            ],
            Deed::Force => vec![
                format!("It touches {touched} with endpoints in {cluster}."),
                "Forced up, its endpoints are answered whatever monitors say; forced down, they are used after everything else.".to_owned(),
            ],
            Deed::Undrain | Deed::Unforce => vec![
                format!("It touches {touched} with endpoints in {cluster}."),
                "What monitors say counts again, at once: new answers may name its endpoints.".to_owned(),
            ],
        };
        if !held.is_empty() && matches!(deed, Deed::Drain | Deed::Force) {
            let hostnames: Vec<&str> = held
                .iter()
                .map(|row| row.hostnames.first().unwrap_or(&row.key).as_str())
                .collect();
            let more = if (rows.len() as u64) < total {
                "At least "
            } else {
                ""
            };
            impact.warnings.push(format!(
                "{more}{} nothing else that is up: {}. {}",
                have(held.len()),
                listed(&hostnames),
                fate(deed, held.len() == 1),
            ));
        }
        impact
    }

    /// Says what it does to a service, or to a part of it.
    pub(in crate::admin::dashboard) fn on_service(
        service: &ServiceDto,
        deed: Deed,
        target: &TargetDto,
    ) -> Self {
        let names: Vec<&str> = service.hostnames.iter().map(String::as_str).collect();
        let what = match target.kind {
            TargetKind::Endpoint => "one of its endpoints",
            _ if target.cluster.is_some() => "its endpoints there",
            _ => "all its endpoints",
        };
        let touched = format!(
            "It touches {what}, for {}: {}.",
            words::count(&(names.len() as u64), "name"),
            listed(&names)
        );
        let then = match deed {
            Deed::Drain => {
                "New answers no longer name them; clients that hold an answer go on until its TTL is over."
            }
            Deed::Force => {
                "Forced up, they are answered whatever monitors say; forced down, they are used after everything else."
            }
            Deed::Undrain | Deed::Unforce => "What monitors say counts again, at once.",
        };
        let mut impact = Self {
            sentences: vec![touched, then.to_owned()],
            services: vec![service.key.clone()],
            total: 1,
            ..Self::default()
        };
        let is_left = service.endpoints.iter().any(|endpoint| {
            let is_target = target
                .cluster
                .as_ref()
                .is_none_or(|cluster| *cluster == endpoint.cluster)
                && target
                    .address
                    .as_ref()
                    .is_none_or(|address| *address == endpoint.address);
            !is_target
                && !endpoint.drained
                && !endpoint.withdrawn
                && !matches!(endpoint.state, HealthState::Unready | HealthState::Down)
        });
        if !is_left && matches!(deed, Deed::Drain | Deed::Force) {
            let fate = fate(deed, true);
            impact
                .warnings
                .push(format!("Nothing else of this service is up. {fate}"));
        }
        impact
    }
}

/// Tells whether a service has another cluster that is up and undrained.
fn has_another(clusters: &[ShareDto], cluster: &str) -> bool {
    clusters.iter().any(|share| {
        share.cluster != cluster && !matches!(share.state, HealthState::Down | HealthState::Drained)
    })
}

/// Says what becomes of services that have nothing else that is up.
fn fate(deed: Deed, is_one: bool) -> &'static str {
    match (deed, is_one) {
        (Deed::Force, true) => {
            "Forced down, it is answered from here all the same, as a last resort."
        }
        (Deed::Force, false) => {
            "Forced down, they are answered from here all the same, as a last resort."
        }
        (_, true) => "It stays served from here (held), and it is never safe to stop.",
        (_, false) => "They stay served from here (held), and it is never safe to stop.",
    }
}

/// Says how many have.
fn have(services: usize) -> String {
    let verb = if services == 1 { "has" } else { "have" };
    format!("{} {verb}", words::count(&(services as u64), "service"))
}

/// Lists the first few names.
fn listed(names: &[&str]) -> String {
    let shown = names.iter().take(NAMED).copied().collect::<Vec<_>>();
    let more = names.len().saturating_sub(NAMED);
    match (shown.is_empty(), more) {
        (true, _) => "none".to_owned(),
        (false, 0) => shown.join(", "),
        (false, more) => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::dashboard::samples;

    #[test]
    fn a_cluster_that_is_the_last_of_a_service_says_so() {
        let mut rows = vec![
            samples::service_row("shop/web"),
            samples::service_row("shop/alone"),
        ];
        rows[1].clusters.truncate(1);
        let cluster = rows[1].clusters[0].cluster.clone();
        let impact = Impact::on_cluster(&cluster, &rows, 2, Deed::Drain);
        assert_eq!(
            impact.sentences[0],
            format!("It touches 2 services with endpoints in {cluster}.")
        );
        assert_eq!(impact.warnings.len(), 1);
        let warning = &impact.warnings[0];
        assert!(
            warning.starts_with("1 service has nothing else that is up: alone."),
            "{warning}"
        );
        // Another cluster that is down is none.
        for share in &mut rows[0].clusters {
            if share.cluster != cluster {
                share.state = HealthState::Down;
            }
        }
        let impact = Impact::on_cluster(&cluster, &rows, 4000, Deed::Drain);
        assert!(
            impact.warnings[0].starts_with("At least 2 services have"),
            "{:?}",
            impact.warnings
        );
        let end = Impact::on_cluster(&cluster, &rows, 2, Deed::Undrain);
        assert_eq!(end.warnings, Vec::<String>::new());
    }

    #[test]
    fn the_last_endpoint_of_a_service_says_so() {
        let mut service = samples::service();
        service.endpoints[1].drained = false;
        let target = TargetDto {
            kind: TargetKind::Endpoint,
            cluster: Some(service.endpoints[0].cluster.clone()),
            service: Some(service.key.clone()),
            address: Some(service.endpoints[0].address.clone()),
        };
        assert_eq!(
            Impact::on_service(&service, Deed::Drain, &target)
                .warnings
                .len(),
            0
        );
        for endpoint in service.endpoints.iter_mut().skip(1) {
            endpoint.state = HealthState::Down;
        }
        for (deed, words) in [
            (Deed::Drain, "it is never safe to stop"),
            (Deed::Force, "answered from here all the same"),
        ] {
            let impact = Impact::on_service(&service, deed, &target);
            assert!(impact.warnings[0].contains(words), "{impact:?}");
            assert_eq!(impact.warnings.len(), 1);
        }
    }
}
