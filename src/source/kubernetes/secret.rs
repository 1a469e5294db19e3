//! Kubeconfigs that stand in Secrets: kept in memory, followed as they change, and never shown.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A text that is not shown.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretText(Arc<str>);

impl SecretText {
    /// Gives it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<String> for SecretText {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// A kubeconfig of a Secret, as it is now. Whoever follows the cluster looks at it as at a file: a token that is replaced is taken
/// up, and what cannot be used costs no connection that works.
pub struct HeldKubeconfig {
    name: Box<str>,
    /// With the number of times that it was replaced.
    text: Mutex<(u64, SecretText)>,
}

impl HeldKubeconfig {
    /// Begins with a text; `name` says where it stands.
    #[must_use]
    pub fn new(name: &str, text: SecretText) -> Arc<Self> {
        Arc::new(Self {
            name: name.into(),
            text: Mutex::new((0, text)),
        })
    }

    /// Says where it stands.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Takes what stands there now.
    pub fn replace(&self, text: &SecretText) {
        let mut held = self.held();
        if held.1 != *text {
            *held = (held.0.wrapping_add(1), text.clone());
        }
    }

    /// Gives the text, and its version.
    pub(super) fn text(&self) -> (u64, SecretText) {
        self.held().clone()
    }

    /// Gives the version.
    pub(super) fn version(&self) -> u64 {
        self.held().0
    }

    fn held(&self) -> MutexGuard<'_, (u64, SecretText)> {
        // What it guards is replaced whole.
        self.text.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for HeldKubeconfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HeldKubeconfig({})", self.name)
    }
}

/// One is another one, whatever stands in it.
impl PartialEq for HeldKubeconfig {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for HeldKubeconfig {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_has_a_version_and_is_not_shown() {
        let text = |text: &str| SecretText::from(text.to_owned());
        let held = HeldKubeconfig::new("Secret a/b", text("canary"));
        held.replace(&text("canary"));
        assert_eq!(held.version(), 0);
        held.replace(&text("canary-2"));
        let (version, now) = held.text();
        assert_eq!((version, now.expose()), (1, "canary-2"));
        let shown = format!("{held:?} {now:?}");
        assert_eq!(shown, "HeldKubeconfig(Secret a/b) ***");
        assert_ne!(held, HeldKubeconfig::new("Secret a/b", text("canary-2")));
    }
}
