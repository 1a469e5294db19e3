//! A challenge for the tests of pages, with what hostile clients and nodes may say.

use super::hostile::HOSTILE;
use crate::admin::dto::{ChallengeDto, ChallengeState, ChangeDto, NodeChallengeDto};

/// A challenge that one of two nodes answers with.
pub(super) fn challenge() -> ChallengeDto {
    let node = |node: &str, serves: bool| NodeChallengeDto {
        node: node.to_owned(),
        own: serves,
        serves,
        heard_ms_ago: serves.then_some(0),
        error: (!serves).then(|| HOSTILE.to_owned()),
    };
    ChallengeDto {
        id: "c1".to_owned(),
        name: "www.svc.example.com".to_owned(),
        owner: "_acme-challenge.www.svc.example.com".to_owned(),
        token: "DGyRejmCefe7v4NfDGDKfA".to_owned(),
        state: ChallengeState::Partial,
        created: ChangeDto {
            time: "2026-11-21T02:57:00Z".to_owned(),
            actor: "certbot".to_owned(),
            reason: HOSTILE.to_owned(),
        },
        expires: Some("2026-11-21T03:57:00Z".to_owned()),
        ended: None,
        acknowledged: 1,
        expected: 2,
        missing: vec![HOSTILE.to_owned()],
        nodes: vec![node("fra-1", true), node(HOSTILE, false)],
    }
}
