//! What objects are not answered with, and what of it counts all the same.

use super::*;

#[test]
fn the_fence_of_an_object_that_is_not_served_holds_for_its_names() {
    let fence = vec![FenceRule {
        clients: vec!["country:DE".parse().unwrap()],
        clusters: vec!["country:DE".parse().unwrap()],
    }];
    let fenced = |unserved: Option<&str>| Shard {
        keys: Arc::new(NameKeys {
            fence: Some(fence.clone()),
            ..NameKeys::default()
        }),
        unserved: unserved.map(Into::into),
        ..web(&[], &["192.0.2.1"])
    };
    let mut inventory = inventory();
    offer(&mut inventory, 0, fenced(None));
    offer(&mut inventory, 1, web(&[], &["192.0.2.2"]));
    offer(&mut inventory, 2, web(&[], &["192.0.2.3"]));
    let fences = |inventory: &Inventory| {
        let (_, service) = inventory.services().next().unwrap();
        service.policy.fences.clone()
    };
    assert_eq!(fences(&inventory), [fence.clone()]);
    // It cannot be read any more: nobody is sent there, and the name is as closed as before.
    offer(&mut inventory, 0, fenced(Some("its fence was refused")));
    assert_eq!(
        at(&inventory, "web.shop.g.example"),
        found("shop/web", &["1 192.0.2.2", "2 192.0.2.3"])
    );
    assert_eq!(fences(&inventory), [fence.clone()]);
    let (_, service) = inventory.services().next().unwrap();
    assert_eq!(
        inventory.federation().left_out(&service.key),
        ["Service shop/web in a is not served: its fence was refused"]
    );
}
