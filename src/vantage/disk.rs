//! The file of records: written whole, read at start.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::dto::{EXCHANGE_LIMIT, RecordDto, VERSION, apart};
use crate::model::{OperatorRecord, OperatorRecords, WallTime};

/// The file on disk.
#[derive(Debug, Serialize, Deserialize)]
struct FileDto {
    version: u32,
    records: Vec<RecordDto>,
    /// Proofs for certificates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    proofs: Vec<RecordDto>,
}

/// Where records are kept.
#[derive(Clone, Debug)]
pub struct RecordFile(PathBuf);

impl RecordFile {
    /// Names the file in a node's state directory.
    #[must_use]
    pub fn in_folder(folder: &Path) -> Self {
        Self(folder.join("operators.json"))
    }

    /// Gives its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Reads the records; none when there is no file. What is not a record any more is left out and listed.
    ///
    /// # Errors
    /// When the file cannot be read, or is none of ours: it is moved aside, so that nothing is lost.
    pub fn read(&self, now: WallTime) -> io::Result<(OperatorRecords, Vec<String>)> {
        let limit = u64::try_from(EXCHANGE_LIMIT).unwrap_or(u64::MAX);
        let mut octets = Vec::new();
        match File::open(&self.0) {
            Ok(file) => file.take(limit + 1).read_to_end(&mut octets)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(<_>::default());
            }
            Err(error) => return Err(error),
        };
        let read: Result<FileDto, _> = serde_json::from_slice(&octets);
        let file = match read {
            Ok(file) if file.version == VERSION => file,
            other => {
                let reason = match other {
                    Ok(file) => format!("version {} is not ours", file.version),
                    Err(error) => error.to_string(),
                };
                fs::rename(&self.0, self.0.with_extension("broken"))?;
                return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
            }
        };
        let (mut records, mut refused) = (OperatorRecords::default(), Vec::new());
        for dto in file.records.into_iter().chain(file.proofs) {
            match OperatorRecord::try_from(dto) {
                Ok(record) => {
                    records.merge(record, now);
                }
                Err(error) => refused.push(error.to_string()),
            }
        }
        Ok((records, refused))
    }

    /// Writes all records: temporary file, fsync, rename, fsync of the folder.
    ///
    /// # Errors
    /// When the disk is full or read-only: the former file stays.
    pub fn write(&self, records: &OperatorRecords) -> io::Result<()> {
        let (others, proofs) = apart(records);
        let file = FileDto {
            version: VERSION,
            records: others,
            proofs,
        };
        let octets = serde_json::to_vec_pretty(&file).map_err(io::Error::other)?;
        let folder = self.0.parent().unwrap_or_else(|| Path::new("."));
        fs::create_dir_all(folder)?;
        let temporary = self.0.with_extension("tmp");
        let mut out = File::create(&temporary)?;
        out.write_all(&octets)?;
        out.sync_all()?;
        fs::rename(&temporary, &self.0)?;
        File::open(folder)?.sync_all()
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
        assert!(file.read(now).is_err());
        assert!(file.path().with_extension("broken").exists());
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
    }
}
