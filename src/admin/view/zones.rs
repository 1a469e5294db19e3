//! Zones.

use std::sync::Arc;
use std::time::Duration;

use super::{View, ViewError, words};
use crate::admin::dto::{DelegationDto, DelegationServerDto, ZoneDto};
use crate::inventory::FederationRules;
use crate::model::LowerName;
use crate::resolving::{Checked, check_delegation, system_resolver};
use crate::telemetry::wall_time;
use crate::zone::Zone;

impl View {
    /// Lists the zones, by name, without their delegations.
    pub async fn zones(&self) -> Vec<ZoneDto> {
        let rules = self.name_rules().await;
        let snapshot = self.snapshot();
        let zones = snapshot.zones().iter();
        let mut zones: Vec<ZoneDto> = zones.map(|(_, zone)| dto(zone, &rules)).collect();
        zones.sort_by(|a, b| a.name.cmp(&b.name));
        zones
    }

    /// Shows one zone, with its delegation as the parent shows it: looked up now, or less than a minute ago. Nobody waits longer
    /// for the lookup than `patience`; what it finds is there for whoever asks next.
    ///
    /// # Errors
    /// When there is none of this name.
    pub async fn zone(&self, name: &str, patience: Duration) -> Result<ZoneDto, ViewError> {
        let missing = || ViewError::NotFound(format!("zone {}", words::shorten(name)));
        let bare = name.trim_end_matches('.');
        let wanted: LowerName = bare.parse().map_err(|_| missing())?;
        let zone = {
            let snapshot = self.snapshot();
            let mut zones = snapshot.zones().iter();
            let found = zones.find(|(_, zone)| *zone.apex() == wanted);
            Arc::clone(found.ok_or_else(missing)?.1)
        };
        let rules = self.name_rules().await;
        let mut shown = dto(&zone, &rules);
        shown.delegation = self.delegation(zone, patience).await;
        Ok(shown)
    }

    /// Gives how zones make names of services; nothing when the controller is gone.
    async fn name_rules(&self) -> Arc<FederationRules> {
        let rules = self
            .controller()
            .read(|inventory| Arc::clone(inventory.federation().rules()));
        rules.await.unwrap_or_default()
    }

    /// Gives a zone's delegation; `None` while it is not known.
    async fn delegation(&self, zone: Arc<Zone>, patience: Duration) -> Option<DelegationDto> {
        let resolver = system_resolver()?;
        let apex = zone.apex().clone();
        let lookup = async move {
            let checked = check_delegation(zone.apex(), &zone.delegation(), resolver).await;
            delegation(&zone, &checked)
        };
        self.0.delegations.get(&apex, patience, lookup).await
    }
}

/// Shows what is served of a zone.
fn dto(zone: &Zone, rules: &FederationRules) -> ZoneDto {
    let delegation = zone.delegation();
    let mut rules = rules.zones.iter();
    let rules = rules.find(|rules| rules.apex == *zone.apex());
    let forms = rules.into_iter().flat_map(|rules| &rules.forms);
    let federation = rules.and_then(|rules| rules.federation.as_ref());
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
        name_forms: forms.map(|form| form.word().to_owned()).collect(),
        federation_name: federation.map(ToString::to_string),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inventory::{NameForm, PrivateAddresses, ZoneRules};
    use crate::model::Ttl;
    use crate::zone::testing::zone;

    #[test]
    fn a_zone_shows_which_names_it_makes_of_services() {
        let rules = |apex: &str, forms: &[NameForm], federation: Option<&str>| ZoneRules {
            apex: apex.parse().unwrap(),
            forms: forms.to_vec(),
            federation: federation.map(|name| name.parse().unwrap()),
            grants: Vec::new(),
            private: PrivateAddresses::Clients,
            ttl: Ttl::from_wire(30),
        };
        let all = [
            NameForm::ServiceNamespace,
            NameForm::KubeFed,
            NameForm::ClusterSet,
        ];
        let rules = FederationRules {
            zones: vec![
                rules("a.example", &all, Some("prod")),
                rules("b.example", &[], None),
            ],
            ..FederationRules::default()
        };
        let all: &[&str] = &["{service}.{namespace}", "kubefed", "clusterset"];
        for (apex, forms, federation) in [
            ("a.example", all, Some("prod")),
            ("b.example", &[], None),
            ("c.example", &[], None),
        ] {
            let shown = dto(&zone(apex, ""), &rules);
            assert_eq!(shown.name_forms, forms, "{apex}");
            assert_eq!(shown.federation_name.as_deref(), federation, "{apex}");
        }
    }
}
