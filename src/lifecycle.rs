//! Named tasks, one token for shutdown, readiness.
//!
//! Every task of the process is spawned here, so that each has a name in the log, ends when the token falls, and takes the
//! process down when it is critical and ends early. This room knows nothing of what the tasks do.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, error, info_span, warn};

/// Spawns and awaits tasks.
#[derive(Debug, Default)]
pub struct Supervisor {
    tasks: JoinSet<(&'static str, bool)>,
    token: CancellationToken,
}

impl Supervisor {
    /// Makes one for tasks that also end when `parent` falls: a tree of its own below another's.
    #[must_use]
    pub fn under(parent: &CancellationToken) -> Self {
        Self {
            tasks: JoinSet::new(),
            token: parent.child_token(),
        }
    }

    /// Gives the token that falls at shutdown.
    #[must_use]
    pub fn token(&self) -> CancellationToken {
        self.token.clone()
    }

    /// Spawns a critical task: when it ends before shutdown, the process goes down with it rather than half-dead.
    pub fn spawn(&mut self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(
            async move {
                task.await;
                (name, true)
            }
            .instrument(info_span!("task", name)),
        );
    }

    /// Spawns a task that may end early.
    pub fn spawn_finite(
        &mut self,
        name: &'static str,
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        self.tasks.spawn(
            async move {
                task.await;
                (name, false)
            }
            .instrument(info_span!("task", name)),
        );
    }

    /// Waits until the token falls, or a critical task ended or panicked. Tells whether all was well.
    pub async fn run(&mut self) -> bool {
        loop {
            // Cancel-safe: both arms only wait.
            tokio::select! {
                () = self.token.cancelled() => return true,
                Some(ended) = self.tasks.join_next() => match ended {
                    Ok((_, false)) => {}
                    Ok((name, true)) if !self.token.is_cancelled() => {
                        error!(task = name, "Critical task ended; shutting down");
                        return false;
                    }
                    Ok(_) => {}
                    Err(error) => {
                        error!(%error, "Task failed; shutting down");
                        return false;
                    }
                },
            }
        }
    }

    /// Lets the token fall and waits at most `deadline` for every task.
    pub async fn shut_down(mut self, deadline: Duration) {
        self.token.cancel();
        let all = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(deadline, all).await.is_err() {
            warn!("Tasks did not end in time; leaving them");
        }
    }
}

/// Counts what must have happened before the node is ready.
#[derive(Clone, Debug, Default)]
pub struct Ready {
    inner: Arc<ReadyState>,
}

#[derive(Debug, Default)]
struct ReadyState {
    missing: AtomicU32,
    stopping: AtomicBool,
}

impl Ready {
    /// Adds one condition; it is met when [`Condition::meet`] is called.
    pub fn condition(&self) -> Condition {
        self.inner.missing.fetch_add(1, Ordering::AcqRel);
        Condition {
            ready: self.clone(),
        }
    }

    /// Says that the node is going down: not ready from now on.
    pub fn stop(&self) {
        self.inner.stopping.store(true, Ordering::Release);
    }

    /// Tells whether every condition is met and the node is not going down.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.inner.missing.load(Ordering::Acquire) == 0
            && !self.inner.stopping.load(Ordering::Acquire)
    }
}

/// One condition of readiness. Dropped without being met, it is never met.
#[derive(Debug)]
#[must_use]
pub struct Condition {
    ready: Ready,
}

impl Condition {
    /// Meets the condition.
    pub fn meet(self) {
        self.ready.inner.missing.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_when_all_conditions_are_met() {
        let ready = Ready::default();
        let (first, second) = (ready.condition(), ready.condition());
        assert!(!ready.is_ready());
        first.meet();
        assert!(!ready.is_ready());
        second.meet();
        assert!(ready.is_ready());
        ready.stop();
        assert!(!ready.is_ready());
    }

    #[tokio::test]
    async fn a_critical_task_that_ends_is_noticed() {
        let mut supervisor = Supervisor::default();
        supervisor.spawn_finite("brief", async {});
        supervisor.spawn("critical", async {});
        assert!(!supervisor.run().await);
        supervisor.shut_down(Duration::from_secs(1)).await;
    }

    #[tokio::test]
    async fn a_tree_below_another_ends_alone_or_with_it() {
        let parent = CancellationToken::new();
        let mut first = Supervisor::under(&parent);
        let mut second = Supervisor::under(&parent);
        let token = first.token();
        first.spawn("waiting", async move { token.cancelled().await });
        first.shut_down(Duration::from_secs(1)).await;
        assert!(!parent.is_cancelled());
        assert!(!second.token().is_cancelled());
        parent.cancel();
        assert!(second.run().await);
    }

    #[tokio::test]
    async fn the_token_ends_the_wait() {
        let mut supervisor = Supervisor::default();
        let token = supervisor.token();
        let held = token.clone();
        supervisor.spawn("waiting", async move { held.cancelled().await });
        token.cancel();
        assert!(supervisor.run().await);
        supervisor.shut_down(Duration::from_secs(1)).await;
    }
}
