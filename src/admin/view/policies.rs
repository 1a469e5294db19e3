//! Policies in words.

use std::fmt::Display;

use crate::model::{FallbackSpec, FenceRule, PolicySpec, Steer};

/// Writes a policy: one sentence a step, in the order of the steps.
pub(super) fn in_words(policy: &PolicySpec) -> Vec<String> {
    let mut all = Vec::new();
    for fence in &policy.fences {
        let rules: Vec<String> = fence.iter().map(rule).collect();
        all.push(format!(
            "Fence, the first match counts: {}.",
            rules.join("; ")
        ));
    }
    if let Some(answer) = &policy.fence_answer {
        all.push(format!(
            "Clients whom a fence leaves nothing get {}.",
            fallback(answer)
        ));
    } else if !policy.fences.is_empty() {
        all.push(
            "Clients whom a fence leaves nothing get no address, and are told why.".to_owned(),
        );
    }
    for entry in &policy.maps {
        let clients = if entry.clients.is_empty() {
            "all others".to_owned()
        } else {
            list(&entry.clients)
        };
        all.push(format!(
            "Map: {clients} get {}, in this order.",
            list(&entry.clusters)
        ));
    }
    if !policy.tiers.is_empty() {
        let tiers: Vec<String> = policy.tiers.iter().map(|tier| list(tier)).collect();
        all.push(format!(
            "Tiers, the first with anything usable: {}.",
            tiers.join("; then ")
        ));
    }
    all.push(match policy.steer {
        Steer::Proximity => "The nearest cluster answers.".to_owned(),
        Steer::Weighted => "A cluster is drawn by weight for each query.".to_owned(),
        Steer::RoundRobin => "The clusters answer in turn.".to_owned(),
        Steer::All => "Every usable endpoint is answered.".to_owned(),
    });
    if !policy.weights.is_empty() {
        let weights = policy.weights.iter();
        let weights: Vec<String> = weights
            .map(|(who, weight)| format!("{who} {}", weight.0))
            .collect();
        all.push(format!(
            "Weights: {}; clusters not listed have 0.",
            weights.join(", ")
        ));
    }
    if !policy.bias.is_empty() {
        let bias = policy.bias.iter();
        let bias: Vec<String> = bias.map(|(who, bias)| format!("{who} {bias:+}")).collect();
        all.push(format!("Bias of distance: {}.", bias.join(", ")));
    }
    if policy.panic > 0.0 {
        let share = policy.panic * 100.0;
        all.push(format!(
            "With less than {share:.0} % of its endpoints up, health is ignored."
        ));
    }
    if let Some(spec) = &policy.fallback {
        all.push(format!(
            "When nothing is up, {} is answered.",
            fallback(spec)
        ));
    }
    all.push(format!(
        "At most {} addresses of each family are answered.",
        policy.max_answers()
    ));
    all
}

/// Writes one rule of a fence.
fn rule(rule: &FenceRule) -> String {
    let clusters = if rule.clusters.is_empty() {
        "nothing".to_owned()
    } else {
        list(&rule.clusters)
    };
    format!("{} may have {clusters}", list(&rule.clients))
}

/// Writes what is answered in place of endpoints.
fn fallback(spec: &FallbackSpec) -> String {
    match spec {
        FallbackSpec::Addresses(addresses) => list(addresses),
        FallbackSpec::Hostname(name) => format!("the name {name}"),
    }
}

/// Joins items with commas.
fn list<T: Display>(items: &[T]) -> String {
    let items: Vec<String> = items.iter().map(ToString::to_string).collect();
    items.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_told_in_the_order_of_its_steps() {
        let policy = PolicySpec {
            fences: vec![vec![FenceRule {
                clients: vec!["group:EU-27".parse().unwrap()],
                clusters: vec!["region:eu-west-1".parse().unwrap()],
            }]],
            tiers: vec![vec!["a".parse().unwrap()], vec!["b".parse().unwrap()]],
            panic: 0.25,
            ..PolicySpec::default()
        };
        assert_eq!(
            in_words(&policy),
            [
                "Fence, the first match counts: group:EU-27 may have region:eu-west-1.",
                "Clients whom a fence leaves nothing get no address, and are told why.",
                "Tiers, the first with anything usable: a; then b.",
                "The nearest cluster answers.",
                "With less than 25 % of its endpoints up, health is ignored.",
                "At most 8 addresses of each family are answered.",
            ]
        );
    }
}
