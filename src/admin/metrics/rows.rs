//! Rows by member cluster: so many one by one, and those behind them under one name.

use super::OTHERS;
use crate::source::kubernetes::MemberStatus;

/// Member clusters shown one by one.
pub(super) const MEMBERS: usize = 32;

/// Gives each row its name and its members: of all but the last it is one.
pub(super) fn by_member(members: &[MemberStatus]) -> Vec<(&str, &[MemberStatus])> {
    let (shown, rest) = members.split_at(members.len().min(MEMBERS));
    let rows = shown
        .iter()
        .map(|member| (member.id.as_str(), std::slice::from_ref(member)));
    let rest = (!rest.is_empty()).then_some((OTHERS, rest));
    rows.chain(rest).collect()
}
