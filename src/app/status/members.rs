//! Member clusters: how each is connected, and the objects that services are made of.

use crate::admin::dto::{KindStateDto, LinkDto, MemberDto, ObjectDto};
use crate::app::table::{Cell, Column, Screen, Table};
use crate::app::words::{Tone, clean, count, join, or_dash, span, when};

use Column::{Left, Right};

/// Says how a member cluster is connected: `synced, 2 s ago`, and whether it was not seen for too long.
pub(super) fn link(member: &MemberDto) -> Cell {
    let age = member.age_seconds;
    let age = age.map_or_else(String::new, |age| format!(", {} ago", span(age)));
    let held = member.held.as_ref();
    let held = held.map_or_else(String::new, |held| format!(", {} held", count(held.count)));
    let old = match &member.unconfirmed_since {
        Some(_) => ", unconfirmed for long",
        None => "",
    };
    let tone = match (member.link, &member.held) {
        (LinkDto::Synced, None) => Tone::Good,
        (LinkDto::Synced, Some(_)) | (LinkDto::Stale, _) => Tone::Doubtful,
        (LinkDto::Never, _) => Tone::Plain,
    };
    Cell::toned(format!("{}{age}{held}{old}", member.link.as_str()), tone)
}

/// Objects that a service is made of.
pub(super) fn objects(objects: &[ObjectDto], screen: &Screen) -> String {
    let mut table = Table::new(
        screen,
        &[
            Left("CLUSTER"),
            Left("OBJECT"),
            Left("STATE"),
            Left("ADDRESSES"),
            Right("READY"),
            Left("WHY"),
        ],
        &[Right("WEIGHT"), Left("REFUSED")],
    );
    for object in objects {
        let (word, tone) = match (object.served, object.ready, object.drained) {
            (false, ..) => ("not served", Tone::Doubtful),
            (true, _, true) => ("drained", Tone::Doubtful),
            (true, true, false) => ("ready", Tone::Good),
            (true, false, false) => ("unready", Tone::Bad),
        };
        let backing = object.backing.as_ref();
        let ready = backing.map(|backing| {
            // An older node does not count them all.
            let total = backing.total.max(backing.ready);
            format!("{}/{total}", backing.ready)
        });
        let entries = [&object.addresses[..], &object.targets[..]].concat();
        table.row(
            [
                (&object.cluster).into(),
                format!("{} {}/{}", object.kind, object.namespace, object.name).into(),
                Cell::toned(word, tone),
                join(&entries).into(),
                ready.unwrap_or_else(|| "-".to_owned()).into(),
                or_dash(object.reason.as_deref()).into(),
            ],
            || {
                let refused = object.refused.iter();
                let refused: Vec<String> = refused
                    .map(|part| format!("{}: {}", part.what, part.reason))
                    .collect();
                [object.weight.to_string().into(), join(&refused).into()]
            },
        );
    }
    table.draw("no objects")
}

/// How a member cluster is connected, and what is refused of it.
pub(super) fn connection(member: &MemberDto, screen: &Screen) -> Vec<(&'static str, String)> {
    let tone = match member.link {
        LinkDto::Synced => Tone::Good,
        LinkDto::Stale => Tone::Doubtful,
        LinkDto::Never => Tone::Plain,
    };
    let since = member.since.as_deref();
    let since = since.map_or_else(String::new, |since| {
        format!(", seen whole last {}", when(screen.now, since))
    });
    let age = member.age_seconds;
    let age = age.map_or_else(String::new, |age| format!(", answered {} ago", span(age)));
    let link = screen.paint(member.link.as_str(), tone);
    let mut pairs = vec![("API server", format!("{link}{since}{age}"))];
    pairs.extend(
        member
            .version
            .as_deref()
            .map(|version| ("Version", clean(version))),
    );
    let error = member.last_error.as_deref();
    pairs.extend(error.map(|error| ("Error", screen.paint(&clean(error), Tone::Bad))));
    let warnings = member.warnings.iter();
    pairs.extend(warnings.map(|warning| ("Warning", clean(warning))));
    pairs.push(("Objects", format!("{} served", count(member.shards))));
    if let Some(since) = &member.unconfirmed_since {
        let words = format!(
            "since {}: addresses that no probe confirms are used after all others",
            when(screen.now, since)
        );
        pairs.push(("Unconfirmed", screen.paint(&words, Tone::Doubtful)));
    }
    if let Some(held) = &member.held {
        let words = format!(
            "{} since {}, let go {}",
            count(held.count),
            when(screen.now, &held.since),
            when(screen.now, &held.until)
        );
        pairs.push(("Deletions held", screen.paint(&words, Tone::Doubtful)));
    }
    let refused = member.refused.iter();
    pairs.extend(refused.map(|refusal| {
        let words = format!("{}: {}", refusal.place, refusal.reason);
        ("Refused", screen.paint(&clean(&words), Tone::Bad))
    }));
    pairs
}

/// The kinds that are read of a member cluster.
pub(super) fn kinds(member: &MemberDto, screen: &Screen) -> String {
    let mut table = Table::new(
        screen,
        &[
            Left("KIND"),
            Left("VERSION"),
            Left("STATE"),
            Right("OBJECTS"),
            Left("WHY"),
        ],
        &[],
    );
    for kind in &member.kinds {
        let tone = match kind.state {
            KindStateDto::Watching if member.link == LinkDto::Synced => Tone::Good,
            KindStateDto::Watching | KindStateDto::Waiting => Tone::Doubtful,
            KindStateDto::Refused => Tone::Bad,
            KindStateDto::Listing | KindStateDto::Unserved => Tone::Plain,
        };
        table.row(
            [
                (&kind.kind).into(),
                or_dash(kind.version.as_deref()).into(),
                Cell::toned(kind.state.as_str(), tone),
                count(kind.objects).into(),
                or_dash(kind.reason.as_deref()).into(),
            ],
            || [],
        );
    }
    table.draw("no kinds are read")
}
