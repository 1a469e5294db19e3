//! Zones.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{View, ViewError, words};
use crate::admin::dto::{DelegationDto, DelegationServerDto, ZoneDto};
use crate::model::LowerName;
use crate::resolving::{Checked, check_delegation, system_resolver};
use crate::telemetry::wall_time;
use crate::zone::Zone;

/// A delegation is looked up again after so long.
const KEPT: Duration = Duration::from_secs(60);
/// Longest time that a page waits for a lookup.
const WAIT: Duration = Duration::from_secs(3);
/// Delegations kept.
const MAX_KEPT: usize = 1000;

impl View {
    /// Lists the zones, by name, without their delegations.
    pub async fn zones(&self) -> Vec<ZoneDto> {
        let snapshot = self.snapshot();
        let mut zones: Vec<ZoneDto> = snapshot.zones().iter().map(|(_, zone)| dto(zone)).collect();
        zones.sort_by(|a, b| a.name.cmp(&b.name));
        zones
    }

    /// Shows one zone, with its delegation as the parent shows it: looked up now, or less than a minute ago.
    ///
    /// # Errors
    /// When there is none of this name.
    pub async fn zone(&self, name: &str) -> Result<ZoneDto, ViewError> {
        let missing = || ViewError::NotFound(format!("zone {}", words::shorten(name)));
        let bare = name.trim_end_matches('.');
        let wanted: LowerName = bare.parse().map_err(|_| missing())?;
        let zone = {
            let snapshot = self.snapshot();
            let mut zones = snapshot.zones().iter();
            let found = zones.find(|(_, zone)| *zone.apex() == wanted);
            Arc::clone(found.ok_or_else(missing)?.1)
        };
        let mut shown = dto(&zone);
        shown.delegation = self.delegation(&zone).await;
        Ok(shown)
    }

    /// Gives a zone's delegation; `None` when it cannot be looked up in time.
    async fn delegation(&self, zone: &Zone) -> Option<DelegationDto> {
        let apex = zone.apex();
        {
            let kept = self.delegations().lock().await;
            if let Some((at, dto)) = kept.get(apex)
                && at.elapsed() < KEPT
            {
                return Some(dto.clone());
            }
        }
        let resolver = system_resolver()?;
        let wanted = zone.delegation();
        let checking = check_delegation(apex, &wanted, resolver);
        let checked = tokio::time::timeout(WAIT, checking).await.ok()?;
        let dto = delegation(zone, &checked);
        let mut kept = self.delegations().lock().await;
        if kept.len() >= MAX_KEPT {
            kept.retain(|_, (at, _)| at.elapsed() < KEPT);
        }
        if kept.len() < MAX_KEPT {
            kept.insert(apex.clone(), (Instant::now(), dto.clone()));
        }
        Some(dto)
    }
}

/// Shows what is served of a zone.
fn dto(zone: &Zone) -> ZoneDto {
    let delegation = zone.delegation();
    ZoneDto {
        name: zone.apex().to_string(),
        serial: zone.serial(),
        nameservers: delegation
            .nameservers
            .iter()
            .map(ToString::to_string)
            .collect(),
        ttl: zone.ttl().seconds(),
        negative_ttl: zone.negative_ttl().seconds(),
        names: super::number(zone.names().count()),
        delegation: None,
    }
}

/// Shows what was found.
fn delegation(zone: &Zone, checked: &Checked) -> DelegationDto {
    let found = checked.parent.iter().flat_map(|parent| {
        let names = parent.nameservers.iter().map(ToString::to_string);
        let glue = parent
            .glue
            .iter()
            .map(|(name, address)| format!("{name} {address}"));
        names.chain(glue)
    });
    DelegationDto {
        checked: words::time(wall_time()),
        ok: checked.problems.is_empty(),
        faults: checked.problems.clone(),
        wanted: zone.delegation_records(),
        found: found.collect(),
        servers: checked
            .servers
            .iter()
            .map(|server| DelegationServerDto {
                name: server.name.to_string(),
                address: server.address.to_string(),
                serial: server.serial,
                fault: server.problem.clone(),
            })
            .collect(),
    }
}
