//! The samples in `config/` are accepted as they are.

use super::accept;

#[test]
fn samples_load() {
    for (name, text, services) in [
        (
            "minimal.yaml",
            include_str!("../../../../config/minimal.yaml"),
            1,
        ),
        (
            "meridian.yaml",
            include_str!("../../../../config/meridian.yaml"),
            3,
        ),
        (
            "plain-machines.yaml",
            include_str!("../../../../config/plain-machines.yaml"),
            2,
        ),
        (
            "residency.yaml",
            include_str!("../../../../config/residency.yaml"),
            2,
        ),
        (
            "kubernetes.yaml",
            include_str!("../../../../config/kubernetes.yaml"),
            0,
        ),
    ] {
        let (config, warnings) = accept(text);
        assert_eq!(config.services.len(), services, "{name}");
        assert!(warnings.is_empty(), "{name}: {warnings:?}");
        let members = config.kubernetes.members.len();
        assert_eq!(members, if services == 0 { 2 } else { 0 }, "{name}");
    }
}
