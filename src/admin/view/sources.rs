//! Where what is served comes from.

use std::sync::atomic::Ordering;

use super::{View, words};
use crate::admin::dto::{RefusalDto, SourceDto, SourceKind, SourceState};
use crate::admin::sources::{SourceFile, SourceKind as FileKind};
use crate::model::{Rejection, WallTime, counted};
use crate::telemetry::wall_time;

/// Refusals listed of one source.
const LISTED: usize = 100;

impl View {
    /// Lists the sources: the configuration, zone files, databases, token files with faults, the last good state, member
    /// clusters, peers.
    pub async fn sources(&self) -> Vec<SourceDto> {
        let now = wall_time();
        let events = &self.sources_of_node().events;
        let status = self.controller().status();
        let world = &status.world;
        let load = |cell: &std::sync::atomic::AtomicU64| cell.load(Ordering::Relaxed);
        let mut all = Vec::new();
        let failing = load(&events.reload_failing) > 0;
        let mut configuration = source(SourceKind::Configuration, self.configuration_path());
        let refused = events.configuration();
        configuration.state = match (refused.is_empty(), failing) {
            (false, _) => SourceState::Refused,
            (true, true) => SourceState::Stale,
            (true, false) => SourceState::Ok,
        };
        aged(&mut configuration, load(&events.last_load), now);
        configuration.details.push(format!(
            "{} put in force, {} refused",
            counted(
                usize::try_from(load(&events.reloads)).unwrap_or(usize::MAX),
                "reload"
            ),
            load(&events.reload_failures)
        ));
        refuse(&mut configuration, refused.kept(), refused.count());
        let claims = world.rejected.saturating_sub(world.rejected_objects);
        refuse(&mut configuration, &world.rejections, claims);
        all.push(configuration);
        let files = events.files();
        all.extend(files.iter().map(|file| of_file(file, now)));
        for database in &world.databases {
            let known = all.iter().position(|dto: &SourceDto| {
                dto.kind == SourceKind::Database && dto.name == database.name
            });
            let at = known.unwrap_or_else(|| {
                all.push(source(SourceKind::Database, database.name.clone()));
                all.len() - 1
            });
            let Some(dto) = all.get_mut(at) else {
                continue;
            };
            dto.details.push(database.database_type.clone());
            dto.details.push(format!("{} networks", database.networks));
            if database.build_epoch > 0 {
                dto.details
                    .push(format!("built {}", words::unix_time(database.build_epoch)));
                // How old it is, whenever it was put there.
                dto.age_seconds = Some((now.0 / 1000).saturating_sub(database.build_epoch));
            }
            if !database.unknown_codes.is_empty() {
                let codes = database.unknown_codes.join(", ");
                dto.details
                    .push(format!("country codes without a place: {codes}"));
            }
        }
        all.extend(refused_tokens(&self.sources_of_node().access.rejections()));
        all.push(self.last_good_state(now));
        all.extend(self.members_as_sources(now));
        all.extend(self.peers_as_sources());
        all
    }

    /// Shows the last good state on disk.
    fn last_good_state(&self, now: WallTime) -> SourceDto {
        let events = &self.sources_of_node().events;
        let mut state = source(
            SourceKind::LastGoodState,
            "last good state on disk".to_owned(),
        );
        let failures = events.last_good_failures.load(Ordering::Relaxed);
        if failures > 0 {
            state.state = SourceState::Stale;
            let count = usize::try_from(failures).unwrap_or(usize::MAX);
            let detail = format!("{} failed in a row", counted(count, "write"));
            state
                .details
                .push(because(detail, events.last_good_fault.why()));
        }
        if events.offers_failures.load(Ordering::Relaxed) > 0 {
            state.state = SourceState::Stale;
            let detail = "what member clusters offer cannot be written".to_owned();
            state
                .details
                .push(because(detail, events.offers_fault.why()));
        }
        if let Some(why) = self.vantage().book().unwritten() {
            state.state = SourceState::Stale;
            let detail = "drains and forces cannot be written".to_owned();
            state.details.push(because(detail, Some(why)));
        }
        let unread = events.unread.list().into_iter();
        state.details.extend(unread.map(|file| file.to_string()));
        aged(
            &mut state,
            events.last_good_written.load(Ordering::Relaxed),
            now,
        );
        state
    }

    /// Shows the other nodes as sources of drains and forces.
    fn peers_as_sources(&self) -> Vec<SourceDto> {
        let peers = self.vantage().peers();
        let shown = peers.iter().map(|peer| {
            let mut dto = source(SourceKind::Peer, peer.url.clone());
            if peer.error.is_some() || !peer.is_fresh() {
                dto.state = SourceState::Stale;
            }
            dto.age_seconds = peer.heard.map(|heard| heard.as_secs());
            dto.details.extend(peer.name.clone());
            if peer.own {
                dto.details.push("this node itself".to_owned());
            }
            dto.details.extend(peer.error.clone());
            dto
        });
        shown.collect()
    }
}

/// Adds why something is so, where that is known.
fn because(what: String, why: Option<String>) -> String {
    why.map_or_else(|| what.clone(), |why| format!("{what}: {why}"))
}

/// Shows a file, a directory or Secrets that the node reads.
fn of_file(file: &SourceFile, now: WallTime) -> SourceDto {
    let kind = match file.kind {
        FileKind::Database => SourceKind::Database,
        FileKind::Zone => SourceKind::ZoneFile,
        FileKind::Directory => SourceKind::Directory,
        FileKind::Secrets => SourceKind::Secrets,
    };
    let mut dto = source(kind, file.name.clone());
    // A bad annotation beside a kubeconfig costs its key alone.
    let refused = file.refused.kept();
    let is_refused = match file.kind {
        FileKind::Secrets => refused.iter().any(|one| one.place.is_empty()),
        _ => !refused.is_empty(),
    };
    dto.state = match (is_refused, file.modified) {
        (true, _) => SourceState::Refused,
        (false, 0) => SourceState::Stale,
        (false, _) => SourceState::Ok,
    };
    refuse(&mut dto, refused, file.refused.count());
    if file.kind != FileKind::Secrets {
        aged(&mut dto, file.modified, now);
    }
    dto
}

/// Lists the token files that something was refused from.
fn refused_tokens(rejections: &[Rejection]) -> Vec<SourceDto> {
    let of_file = rejections.chunk_by(|a, b| a.source == b.source);
    let shown = of_file.map(|refused| {
        let name = refused.first().map(|one| one.source.clone());
        let mut dto = source(SourceKind::TokenFile, name.unwrap_or_default());
        dto.state = SourceState::Refused;
        refuse(&mut dto, refused, refused.len());
        dto
    });
    shown.collect()
}

/// Begins a source that is in order.
fn source(kind: SourceKind, name: String) -> SourceDto {
    SourceDto {
        kind,
        name,
        state: SourceState::Ok,
        loaded: None,
        age_seconds: None,
        details: Vec::new(),
        refused: Vec::new(),
        refused_count: 0,
    }
}

/// Fills in a time; 0 is none.
fn aged(dto: &mut SourceDto, unix: u64, now: WallTime) {
    if unix > 0 {
        dto.loaded = Some(words::unix_time(unix));
        dto.age_seconds = Some((now.0 / 1000).saturating_sub(unix));
    }
}

/// Adds to what was refused.
fn refuse(dto: &mut SourceDto, rejections: &[Rejection], count: usize) {
    let room = LISTED.saturating_sub(dto.refused.len());
    let has_many = matches!(dto.kind, SourceKind::Directory | SourceKind::Secrets);
    let place = |one: &Rejection| match one.line() {
        // Which Secret it is stands with what is wrong in it.
        None if has_many && !one.place.is_empty() => format!("{}: {}", one.source, one.place),
        _ => one.spot(),
    };
    let listed = rejections.iter().take(room).map(|one| RefusalDto {
        source: one.source.clone(),
        place: place(one),
        reason: one.reason.clone(),
    });
    dto.refused.extend(listed);
    dto.refused_count += super::number(count);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_listed_with_their_places_up_to_a_bound_and_counted() {
        let of = |place: String| Rejection {
            source: "m.yaml".to_owned(),
            place,
            reason: "wrong".to_owned(),
        };
        let faults: Vec<_> = (1..=50).map(|line| of(format!("line {line}"))).collect();
        let claims = vec![of("www.svc.mesh".to_owned()); 60];
        let mut dto = source(SourceKind::Configuration, "m.yaml".to_owned());
        refuse(&mut dto, &faults, 70);
        assert_eq!((dto.refused.len(), dto.refused_count), (50, 70));
        refuse(&mut dto, &claims, 80);
        assert_eq!((dto.refused.len(), dto.refused_count), (LISTED, 150));
        assert_eq!(dto.refused[0].place, "m.yaml:1");
        assert_eq!(dto.refused[99].place, "www.svc.mesh");
    }

    #[test]
    fn what_is_wrong_with_a_secret_names_it() {
        let one = |source: &str, place: &str| Rejection {
            source: source.to_owned(),
            place: place.to_owned(),
            reason: "wrong".to_owned(),
        };
        let secret = "Secret m/a, key kubeconfig";
        let mut dto = source(SourceKind::Secrets, "Secrets of m".to_owned());
        let all = [one(secret, ""), one(secret, "meridian-dns.io/weight")];
        refuse(&mut dto, &all, 2);
        let places: Vec<&str> = dto.refused.iter().map(|one| &*one.place).collect();
        let weight = "Secret m/a, key kubeconfig: meridian-dns.io/weight";
        assert_eq!(places, [secret, weight]);
    }

    #[test]
    fn token_files_are_listed_where_they_have_faults() {
        let of = |source: &str, line: u32| Rejection {
            source: source.to_owned(),
            place: format!("line {line}"),
            reason: "it is no hash".to_owned(),
        };
        assert_eq!(refused_tokens(&[]), []);
        let shown = refused_tokens(&[of("a", 1), of("a", 3), of("b", 2)]);
        let told: Vec<_> = shown
            .iter()
            .map(|dto| (dto.name.as_str(), dto.state, dto.refused_count))
            .collect();
        let refused = SourceState::Refused;
        assert_eq!(told, [("a", refused, 2), ("b", refused, 1)]);
        assert_eq!(shown[0].refused[1].place, "a:3");
    }
}
