//! Any order of changes ends as a fresh start.

use proptest::prelude::*;

use super::*;

fn change() -> impl Strategy<Value = (u16, ShardChange)> {
    let kinds = prop::sample::select(vec![ObjectKind::Service, ObjectKind::Ingress]);
    let namespaces = prop::sample::select(vec!["one", "two"]);
    let objects = (kinds, namespaces, prop::sample::select(vec!["x", "y"]))
        .prop_map(|(kind, namespace, name)| object(kind, namespace, name));
    let hosts = prop::sample::subsequence(
        vec![
            "h.g.example",
            "*.g.example",
            "a.b.g.example",
            "*.b.g.example",
            "*.a.b.g.example",
            "i.g.example",
        ],
        0..4,
    );
    let upsert = (objects.clone(), hosts, 1..9_u8).prop_map(|(object, hosts, last)| {
        let shard = shard(object, &hosts, &[&format!("192.0.2.{last}")]);
        ShardChange::Upsert(Box::new(shard))
    });
    let change = prop_oneof![
        5 => upsert,
        2 => objects.prop_map(ShardChange::Remove),
        1 => Just(ShardChange::Clear),
    ];
    (0..3_u16, change)
}

proptest! {
    #[test]
    fn any_changes_end_as_a_fresh_start_with_the_same_owners(changes in prop::collection::vec(change(), 0..40)) {
        let mut inventory = inventory();
        let mut last: BTreeMap<(u16, ObjectRef), Shard> = BTreeMap::new();
        for (cluster, change) in changes {
            match &change {
                ShardChange::Upsert(shard) => {
                    last.insert((cluster, shard.object.clone()), (**shard).clone());
                }
                ShardChange::Remove(object) => {
                    last.remove(&(cluster, object.clone()));
                }
                ShardChange::Clear => last.retain(|(held, _), _| *held != cluster),
            }
            inventory.apply(Change::Shards(ClusterIndex(cluster), vec![change]));
            inventory.settle();
        }
        let mut fresh = self::inventory();
        fresh.apply(Change::Owners(inventory.federation().owners()));
        // All at once, as after a restart: order must not matter.
        let mut by_cluster: BTreeMap<u16, Vec<ShardChange>> = BTreeMap::new();
        for ((cluster, _), shard) in last.into_iter().rev() {
            by_cluster.entry(cluster).or_default().push(ShardChange::Upsert(Box::new(shard)));
        }
        for (cluster, changes) in by_cluster {
            fresh.apply(Change::Shards(ClusterIndex(cluster), changes));
        }
        prop_assert_eq!(answers(&inventory), answers(&fresh));
        fresh.apply(Change::Owners(Vec::new()));
        prop_assert_eq!(inventory.federation().owners(), fresh.federation().owners());
    }
}
