//! What each object has of what it asks for.

use super::*;

/// An object of a cluster, its names, and what it was refused.
type Row = (String, Vec<String>, Vec<String>);

fn rows(inventory: &Inventory, after: Option<&ObjectRef>) -> Vec<Row> {
    let federation = inventory.federation();
    let claims = federation.claims(after).flat_map(|(_, claims)| claims);
    let row = |claim: Claim<'_>| {
        let names = claim.names.iter();
        let refused = claim.refused.iter();
        (
            format!("{} in {}", claim.object, claim.cluster.0),
            names.map(|(name, _)| name.to_string()).collect(),
            refused
                .map(|(name, why)| format!("{name}: {why}"))
                .collect(),
        )
    };
    claims.map(row).collect()
}

fn row(object: &str, names: &[&str], refused: &[&str]) -> Row {
    let texts = |all: &[&str]| all.iter().map(ToString::to_string).collect();
    (object.to_owned(), texts(names), texts(refused))
}

#[test]
fn every_name_is_had_or_refused_with_a_reason_in_each_cluster() {
    let grants = vec![
        grant(None, &["*.g.example"]),
        grant(Some(&["shop"]), &["g.example"]),
    ];
    let mut inventory = with(grants);
    let wild = shard(
        object(ObjectKind::Ingress, "wide", "w"),
        &["*.w.g.example"],
        &["192.0.2.9"],
    );
    offer(&mut inventory, 0, wild);
    let hosts = ["www.g.example", "g.example", "elsewhere.example"];
    offer(&mut inventory, 0, web(&hosts, &["192.0.2.1"]));
    offer(&mut inventory, 1, web(&["www.g.example"], &["192.0.2.2"]));
    let thief = ["www.g.example", "g.example", "x.w.g.example"];
    let ingress = object(ObjectKind::Ingress, "attic", "x");
    offer(
        &mut inventory,
        2,
        shard(ingress.clone(), &thief, &["192.0.2.66"]),
    );
    let all = rows(&inventory, None);
    let expected = [
        row(
            "Service shop/web in 0",
            &["g.example", "web.shop.g.example", "www.g.example"],
            &[],
        ),
        row(
            "Service shop/web in 1",
            &["web.shop.g.example", "www.g.example"],
            &[],
        ),
        row(
            "Ingress attic/x in 2",
            &[],
            &[
                "g.example: no grant of the zone gives it to this namespace of this cluster",
                "x.w.g.example: it would hide *.w.g.example, which namespace wide has",
                "www.g.example: namespace shop has this name",
            ],
        ),
        row("Ingress wide/w in 0", &["*.w.g.example"], &[]),
    ];
    assert_eq!(all, expected);
    // What comes behind an object, and nothing of it.
    assert_eq!(rows(&inventory, Some(&ingress)), all[3..]);
}
