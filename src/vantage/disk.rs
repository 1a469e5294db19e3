//! The file of records: written whole, read at start.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::dto::{EXCHANGE_LIMIT, RecordDto, VERSION, apart};
use crate::disk::{Unread, read_bounded, write_whole};
use crate::model::{OperatorRecord, OperatorRecords, WallTime};

/// The file on disk.
#[derive(Debug, Serialize, Deserialize)]
struct FileDto {
    version: u32,
    records: Vec<RecordDto>,
    /// Challenges of certificate authorities.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    challenges: Vec<RecordDto>,
}

/// Most octets of the file: the limit of an exchange, which has all records too.
const MAX_OCTETS: u64 = EXCHANGE_LIMIT as u64;

/// Where records are kept.
#[derive(Clone, Debug)]
pub struct RecordFile {
    path: PathBuf,
    unread: Unread,
}

impl RecordFile {
    /// Names the file in a node's state directory.
    #[must_use]
    pub fn in_folder(folder: &Path) -> Self {
        Self {
            path: folder.join("operators.json"),
            unread: Unread::default(),
        }
    }

    /// Has it noted there if it cannot be read whole.
    #[must_use]
    pub fn noted_in(self, unread: &Unread) -> Self {
        Self {
            unread: unread.clone(),
            ..self
        }
    }

    /// Gives its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the records; none when there is no file. What is not a record any more is left out and listed. What cannot be read
    /// whole is put aside before it is written over.
    ///
    /// # Errors
    /// When the file cannot be read, or is none of ours.
    pub fn read(&self, now: WallTime) -> io::Result<(OperatorRecords, Vec<String>)> {
        let file = match self.read_whole() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(<_>::default()),
            read => read.inspect_err(|error| self.unread.note(&self.path, &error.to_string()))?,
        };
        let (mut records, mut refused) = (OperatorRecords::default(), Vec::new());
        for dto in file.records.into_iter().chain(file.challenges) {
            match OperatorRecord::try_from(dto) {
                Ok(record) => {
                    records.merge(record, now);
                }
                Err(error) => refused.push(error.to_string()),
            }
        }
        if !refused.is_empty() {
            let reason = format!("{} of its records cannot be read", refused.len());
            self.unread.note(&self.path, &reason);
        }
        Ok((records, refused))
    }

    fn read_whole(&self) -> io::Result<FileDto> {
        let octets = read_bounded(&self.path, MAX_OCTETS)?;
        let file: FileDto = serde_json::from_slice(&octets)?;
        if file.version == VERSION {
            return Ok(file);
        }
        let reason = format!("version {} is not ours ({VERSION})", file.version);
        Err(io::Error::new(io::ErrorKind::InvalidData, reason))
    }

    /// Writes all records, whole or not at all.
    ///
    /// # Errors
    /// When the disk is full or read-only, the next start could not read it, or what nobody has read cannot be put aside: the
    /// former file stays.
    pub fn write(&self, records: &OperatorRecords) -> io::Result<()> {
        let (others, challenges) = apart(records);
        let file = FileDto {
            version: VERSION,
            records: others,
            challenges,
        };
        let octets = serde_json::to_vec(&file).map_err(io::Error::other)?;
        if octets.len() > EXCHANGE_LIMIT {
            let reason = format!(
                "{} octets are more than the {EXCHANGE_LIMIT} that the next start would read",
                octets.len()
            );
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, reason));
        }
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        self.unread.spare(&self.path)?;
        write_whole(&self.path, &[&octets])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Intent, OperatorTarget, Said, ServiceKey};

    fn said(reason: &str) -> Said {
        Said {
            time: WallTime(7),
            actor: "ann".into(),
            reason: reason.into(),
        }
    }

    #[test]
    fn records_are_read_as_they_were_written() {
        let folder = tempfile::tempdir().unwrap();
        let file = RecordFile::in_folder(folder.path());
        let now = WallTime(100);
        assert!(file.read(now).unwrap().0.is_empty());
        let a = "a".parse().unwrap();
        let service = ServiceKey::new("shop", "web").unwrap();
        let targets = [
            OperatorTarget::Cluster("a".parse().unwrap()),
            OperatorTarget::Service {
                service: service.clone(),
                cluster: None,
            },
            OperatorTarget::Endpoint {
                cluster: a,
                address: "2001:db8::1".parse().unwrap(),
                service: Some(service),
            },
        ];
        let mut records = OperatorRecords::default();
        for (number, target) in (0_u8..).zip(targets) {
            let record = OperatorRecord {
                id: format!("r-{number}").parse().unwrap(),
                target,
                intent: Intent::ForceDown,
                created: said("quoted \" and ü"),
                starts: WallTime(7),
                expires: Some(WallTime(900)),
                ended: (number == 1).then(|| said("over")),
            };
            records.merge(record, now);
        }
        file.write(&records).unwrap();
        assert_eq!(file.read(now).unwrap(), (records, Vec::new()));
        fs::write(file.path(), "{\"version\": 9, \"records\": []}").unwrap();
        // It stays until there is something to write, and is kept then.
        for _ in 0..2 {
            assert!(file.read(now).is_err());
        }
        file.write(&OperatorRecords::default()).unwrap();
        let aside = fs::read_to_string(folder.path().join("operators.json.unusable")).unwrap();
        assert!(aside.contains("9"), "{aside}");
        assert!(file.read(now).unwrap().0.is_empty());
    }

    #[test]
    fn one_bad_record_costs_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let file = RecordFile::in_folder(folder.path());
        let body = |id: &str, more: &str| {
            format!(
                "{{\"id\": \"{id}\", \"intent\": \"drain\", {more} \"created\": {{\"time\": 1, \"actor\": \"a\", \"reason\": \"b\"}}, \"starts\": 1}}"
            )
        };
        let all = [
            body("good", "\"cluster\": \"a\","),
            body("BAD", "\"cluster\": \"a\","),
            body("none", ""),
            body("far", "\"address\": \"192.0.2.1\","),
            body("lines", "\"cluster\": \"a\",").replace("\"b\"", "\"b\\nc\""),
            body("mute", "\"cluster\": \"a\",").replace("\"b\"", "\"\""),
        ];
        let text = format!("{{\"version\": 1, \"records\": [{}]}}", all.join(", "));
        fs::write(file.path(), text).unwrap();
        let (records, refused) = file.read(WallTime(5)).unwrap();
        assert_eq!(records.len(), 1);
        assert_eq!(refused.len(), 5, "{refused:?}");
        // A newer version may know what they are.
        file.write(&records).unwrap();
        let aside = fs::read_to_string(folder.path().join("operators.json.unusable")).unwrap();
        assert!(aside.contains("\"far\""), "{aside}");
        assert_eq!(file.read(WallTime(5)).unwrap().0, records);
    }
}
