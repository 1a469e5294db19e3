//! The file of a kubeconfig in a folder: written whole or not at all, and never over another cluster's.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use super::entry::Entry;
use super::error::JoinError;
use crate::model::ClusterId;

/// Gives the file of a cluster in a folder of kubeconfigs.
#[must_use]
pub fn kubeconfig_file(folder: &Path, name: &ClusterId) -> PathBuf {
    folder.join(format!("{name}.yaml"))
}

/// Removes a cluster's file; tells whether it was there.
///
/// # Errors
/// In words with the file, when it is there and cannot be removed.
pub fn remove_file(file: &Path) -> Result<bool, JoinError> {
    match fs::remove_file(file) {
        Ok(()) => {
            sync_folder(file);
            Ok(true)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(failed(file, &format!("cannot be removed: {error}"))),
    }
}

/// A file that is written beside its place, where nobody looks for it. It falls with this unless it is put there.
#[derive(Debug)]
pub(super) struct Draft {
    path: PathBuf,
    /// It has been put into its place.
    is_kept: bool,
}

impl Draft {
    /// Writes a draft for a place, readable by its owner alone. Where a file is there already, the draft gets its owner and its
    /// group: nodes may run as another user than the one who joins.
    pub(super) fn write(place: &Path, entry: &Entry) -> Result<Self, JoinError> {
        let name = place.file_name().unwrap_or_default().to_string_lossy();
        // Those who watch a folder look for .yaml.
        let path = place.with_file_name(format!(".{name}.{}.new", std::process::id()));
        // Left behind by a process of the same number that ended badly.
        let _ = fs::remove_file(&path);
        let written = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .and_then(|mut file| {
                if let Ok(former) = fs::metadata(place) {
                    keep_owner(&file, &former);
                }
                file.write_all(entry.expose().as_bytes())?;
                file.sync_all()
            });
        let draft = Self {
            path,
            is_kept: false,
        };
        let cannot = |error| failed(place, &format!("cannot be written: {error}"));
        written.map(|()| draft).map_err(cannot)
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Puts it into its place, at once for whoever reads there.
    pub(super) fn keep(mut self, place: &Path) -> Result<(), JoinError> {
        fs::rename(&self.path, place)
            .map_err(|error| failed(place, &format!("cannot be written: {error}")))?;
        self.is_kept = true;
        sync_folder(place);
        Ok(())
    }
}

/// Gives a file the owner and the group that another had, and the group's right to read, if there was one. Who may not do that
/// keeps the file for themselves.
fn keep_owner(file: &File, former: &fs::Metadata) {
    let (owner, group) = (former.uid(), former.gid());
    if fchown(file, Some(owner), Some(group)).is_ok() {
        let mode = 0o600 | former.mode() & 0o040;
        let _ = file.set_permissions(fs::Permissions::from_mode(mode));
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Has the folder of a file on disk. That this fails loses nothing that was promised.
fn sync_folder(file: &Path) {
    let folder = file.parent().filter(|folder| *folder != Path::new(""));
    let opened = File::open(folder.unwrap_or_else(|| Path::new(".")));
    let _ = opened.and_then(|folder| folder.sync_all());
}

/// Checks that a folder is there.
pub(super) fn look_at_folder(folder: &Path) -> Result<(), JoinError> {
    let why = match fs::metadata(folder) {
        Ok(metadata) if metadata.is_dir() => return Ok(()),
        Ok(_) => "is no directory".to_owned(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            "there is no such directory; make it first, readable by the nodes alone".to_owned()
        }
        Err(error) => format!("cannot be looked at: {error}"),
    };
    Err(JoinError::Folder {
        path: folder.to_owned(),
        why,
    })
}

/// Says what is wrong with a file.
pub(super) fn failed(file: &Path, why: &str) -> JoinError {
    JoinError::File {
        path: file.to_owned(),
        why: why.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::entry::{Token, write};
    use super::*;
    use crate::source::kubernetes::members::Endpoint;

    fn entry(url: &str) -> Entry {
        let endpoint = Endpoint {
            url: url.to_owned(),
            ..Endpoint::default()
        };
        write(
            &"a".parse().unwrap(),
            &endpoint,
            &Token::new("canary").unwrap(),
        )
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name();
        entries
            .map(|entry| name(entry).into_string().unwrap())
            .collect()
    }

    #[test]
    fn a_draft_is_seen_only_when_it_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let place = kubeconfig_file(folder.path(), &"a".parse().unwrap());
        let first = entry("https://192.0.2.1");
        let draft = Draft::write(&place, &first).unwrap();
        assert!(
            names(folder.path())
                .iter()
                .all(|name| !name.ends_with(".yaml"))
        );
        let mode = fs::metadata(draft.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        drop(draft);
        assert!(names(folder.path()).is_empty());
        for url in ["https://192.0.2.1", "https://192.0.2.2"] {
            let entry = entry(url);
            Draft::write(&place, &entry).unwrap().keep(&place).unwrap();
            assert_eq!(names(folder.path()), ["a.yaml"]);
            assert_eq!(fs::read_to_string(&place).unwrap(), entry.expose());
            let mode = fs::metadata(&place).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        // Given to a group, it stays with it; the world gets nothing.
        let shared = fs::Permissions::from_mode(0o644);
        fs::set_permissions(&place, shared).unwrap();
        let second = entry("https://192.0.2.3");
        Draft::write(&place, &second).unwrap().keep(&place).unwrap();
        let metadata = fs::metadata(&place).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o777, 0o640);
        assert!(remove_file(&place).unwrap());
        assert!(!remove_file(&place).unwrap());
    }

    #[test]
    fn folders_that_are_not_there_are_told() {
        let folder = tempfile::tempdir().unwrap();
        assert!(look_at_folder(folder.path()).is_ok());
        let missing = folder.path().join("missing");
        let told = look_at_folder(&missing).unwrap_err().to_string();
        assert!(
            told.ends_with(
                "missing: there is no such directory; make it first, readable by the nodes alone"
            ),
            "{told}"
        );
        fs::write(&missing, "").unwrap();
        let told = look_at_folder(&missing).unwrap_err().to_string();
        assert!(told.ends_with("is no directory"), "{told}");
        let place = kubeconfig_file(&missing, &"a".parse().unwrap());
        let told = Draft::write(&place, &entry("https://a")).unwrap_err();
        assert!(
            told.to_string().contains("a.yaml: cannot be written"),
            "{told}"
        );
    }
}
