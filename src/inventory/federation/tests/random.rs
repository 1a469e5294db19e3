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
    fn any_changes_end_as_a_fresh_start_with_the_same_owners(
        batches in prop::collection::vec(prop::collection::vec(change(), 1..6), 0..20),
        is_at_once in any::<bool>(),
    ) {
        let mut inventory = inventory();
        let mut last: BTreeMap<(u16, ObjectRef), Shard> = BTreeMap::new();
        for batch in batches {
            for (cluster, change) in &batch {
                match change {
                    ShardChange::Upsert(shard) => {
                        last.insert((*cluster, shard.object.clone()), (**shard).clone());
                    }
                    ShardChange::Remove(object) => {
                        last.remove(&(*cluster, object.clone()));
                    }
                    ShardChange::Clear => last.retain(|(held, _), _| held != cluster),
                }
            }
            let batch = batch.into_iter();
            let batch = batch.map(|(cluster, change)| (ClusterIndex(cluster), vec![change]));
            inventory.apply(Change::Shards(batch.collect()));
            inventory.settle();
        }
        let mut fresh = self::inventory();
        fresh.apply(Change::Owners(inventory.federation().owners()));
        // All at once, as after a restart: order must not matter.
        let mut by_cluster: BTreeMap<ClusterIndex, Vec<ShardChange>> = BTreeMap::new();
        for ((cluster, _), shard) in last.into_iter().rev() {
            by_cluster.entry(ClusterIndex(cluster)).or_default().push(ShardChange::Upsert(Box::new(shard)));
        }
        if is_at_once {
            fresh.apply(Change::Shards(by_cluster.into_iter().collect()));
        } else {
            for (cluster, changes) in by_cluster {
                fresh.apply(Change::of_cluster(cluster, changes));
            }
        }
        prop_assert_eq!(answers(&inventory), answers(&fresh));
        fresh.apply(Change::Owners(Vec::new()));
        prop_assert_eq!(inventory.federation().owners(), fresh.federation().owners());
    }
}
