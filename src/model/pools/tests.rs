//! Packing and reading back.

use super::*;

#[test]
fn pools_give_back_what_was_put_in() {
    let mut builder = PoolsBuilder::default();
    let all: [IpAddr; 3] =
        ["192.0.2.1", "2001:db8::1", "::ffff:192.0.2.2"].map(|text| text.parse().unwrap());
    builder
        .addresses(ClusterIndex(7), Weight(3), None, &all)
        .unwrap();
    builder
        .addresses(ClusterIndex(2), Weight(1), Some(0), &all[..1])
        .unwrap();
    builder
        .hostname(ClusterIndex(7), Weight(0), None, 4)
        .unwrap();
    let mut pools = builder.build().unwrap();
    assert_eq!(
        pools.clusters().collect::<Vec<_>>(),
        [ClusterIndex(2), ClusterIndex(7)]
    );
    let of_seven: Vec<_> = pools.of(1).collect();
    assert_eq!(of_seven.len(), 2);
    assert_eq!(
        of_seven[0]
            .v4()
            .map(|e| e.address.to_string())
            .collect::<Vec<_>>(),
        ["192.0.2.1", "192.0.2.2"]
    );
    assert_eq!(
        of_seven[0]
            .v6()
            .map(|e| e.address.to_string())
            .collect::<Vec<_>>(),
        ["2001:db8::1"]
    );
    assert_eq!(
        (of_seven[1].hostname(), of_seven[1].weight()),
        (Some(4), Weight(0))
    );
    assert_eq!(pools.of(0).next().unwrap().clients(), Some(0));
    for pool in pools.iter() {
        let again = pools.at(pool.position()).unwrap();
        assert_eq!(format!("{again:?}"), format!("{pool:?}"));
        let by_position: Vec<_> = (0..9)
            .filter_map(|at| pool.v4_at(at))
            .chain((0..9).filter_map(|at| pool.v6_at(at)))
            .collect();
        assert_eq!(by_position, pool.v4().chain(pool.v6()).collect::<Vec<_>>());
    }
    assert_eq!(pools.endpoint_count(), 4);
    let mut next = 10;
    pools.assign_states(|_, _| {
        next += 1;
        EndpointIndex(next)
    });
    let states: Vec<u32> = pools
        .iter()
        .flat_map(|pool| pool.v4().chain(pool.v6()).collect::<Vec<_>>())
        .map(|e| e.state.0)
        .collect();
    assert_eq!(states, [11, 12, 13, 14]);
    let all: Vec<u32> = pools
        .iter()
        .flat_map(|pool| pool.states())
        .map(|state| state.0)
        .collect();
    assert_eq!(all, [11, 12, 13, 14, 15], "the host name is last");
    assert_eq!(
        pools.of(1).last().unwrap().host_state(),
        Some(EndpointIndex(15))
    );
}

#[test]
fn long_lists_are_split_and_nothing_is_lost() {
    let many: Vec<IpAddr> = (0..600_u32)
        .map(|n| IpAddr::V4(Ipv4Addr::from(n)))
        .collect();
    let mut builder = PoolsBuilder::default();
    builder
        .addresses(ClusterIndex(0), Weight(1), None, &many)
        .unwrap();
    let pools = builder.build().unwrap();
    let back: Vec<IpAddr> = pools
        .iter()
        .flat_map(|pool| pool.v4().collect::<Vec<_>>())
        .map(|e| e.address)
        .collect();
    assert_eq!(back, many);
    assert_eq!(Pools::default().iter().count(), 0);
}
