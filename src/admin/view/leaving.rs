//! Clusters that are leaving: how far that is, and dropping one at once.

use super::{Actor, View, ViewError, words};
use crate::admin::audit::Outcome;
use crate::admin::dto::{ClusterDto, LeavingDto, ProblemDto, Severity};
use crate::admin::sources::LeavingCluster;
use crate::model::counted;

impl View {
    /// Drops a cluster that is leaving, or kept because nobody knows where its kubeconfig stands, whoever may still be sent there.
    /// Gives what it was.
    ///
    /// # Errors
    /// When there is none of this name, it is neither, or no reason is given.
    pub async fn drop_cluster(
        &self,
        name: &str,
        why: &str,
        actor: &Actor,
    ) -> Result<ClusterDto, ViewError> {
        let why = super::operate::reason(why)?;
        let was = self.cluster(name).await?;
        let id = was.name.parse();
        let id = id.map_err(|_| ViewError::NotFound(words::shorten(name)))?;
        let exits = &self.sources_of_node().exits;
        let dropped = exits.drop(id).await.ok_or(ViewError::Gone)?;
        let target = format!("cluster {}", was.name);
        if dropped {
            let before = serde_json::to_value(&was.leaving).ok();
            self.note(actor, ("drop", target, why), (Outcome::Done, before, None));
            return Ok(was);
        }
        self.note(actor, ("drop", target, why), (Outcome::Failed, None, None));
        Err(ViewError::Conflict(format!(
            "cluster {} is there, and not leaving: take its kubeconfig away first, or the cluster out of the configuration",
            was.name
        )))
    }

    /// Names the clusters that are leaving.
    pub(super) fn leaving_problems(&self, problems: &mut Vec<ProblemDto>) {
        let leaving = self.sources_of_node().events.leaving();
        problems.extend(leaving.iter().map(problem));
    }
}

/// Says that a cluster is leaving, and what it waits for.
fn problem(leaving: &LeavingCluster) -> ProblemDto {
    let text = match leaving.held {
        0 => format!(
            "{}. It gets no new answers, and goes when nobody is sent there any more.",
            words::sentence(&leaving.why)
        ),
        held => format!(
            "{}, and {} nothing else: it stays until they have, or an operator drops it.",
            words::sentence(&leaving.why),
            match held {
                1 => "1 service has".to_owned(),
                more => format!("{} have", counted(more, "service")),
            }
        ),
    };
    let word = if leaving.held > 0 { "held" } else { "leaving" };
    ProblemDto {
        severity: Severity::Warning,
        title: format!("Cluster {} is {word}", leaving.id),
        text,
        link: format!("/clusters/{}", leaving.id),
        since: Some(words::time(leaving.since)),
    }
}

/// Shows how far the leaving of a cluster is.
pub(super) fn show(leaving: &LeavingCluster) -> LeavingDto {
    let remaining = leaving.remaining;
    LeavingDto {
        since: words::time(leaving.since),
        why: leaving.why.clone(),
        held: super::number(leaving.held),
        held_services: leaving.held_services.clone(),
        remaining_seconds: remaining.map(|left| words::precise_millis(left) / 1000.0),
    }
}
