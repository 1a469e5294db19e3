//! One probe: connect and talk, in time.

use std::time::Duration;

use tokio::time::Instant;

use super::tls::Tls;
use super::{http, tcp};
use crate::health::ProbeError;
use crate::model::{Check, Target};

/// A failure that is noticed so long after the deadline says that this node stood still (a pause, no processor time): what
/// came meanwhile may lie unread, or the target lost its patience with us. Such a probe is no evidence.
const STALLED: Duration = Duration::from_millis(250);

/// Probes a target once, within its timeout: connection, TLS and talk together. Gives the time it took.
///
/// # Errors
///
/// Says why it failed; [`ProbeError::Local`] when this node could not try.
pub(super) async fn probe(target: &Target, tls: &Tls) -> Result<Duration, ProbeError> {
    let started = Instant::now();
    let deadline = started + target.spec.timeout;
    let attempt = async {
        match &target.spec.check {
            Check::Http(check) => http::probe(target.address, check, tls, deadline).await,
            Check::Tcp(check) => tcp::probe(target.address, check).await,
        }
    };
    match tokio::time::timeout_at(deadline, attempt).await {
        Ok(Ok(ended)) => Ok(ended.duration_since(started)),
        Ok(Err(_)) | Err(_) if deadline.elapsed() >= STALLED => Err(ProbeError::Local),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(ProbeError::Timeout),
    }
}
