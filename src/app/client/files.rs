//! Small files: tokens and certificates.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::bail;

/// Reads a file of bounded size.
///
/// # Errors
///
/// When it cannot be read or is larger.
pub(super) fn read_small(file: &Path, most: u64) -> anyhow::Result<Vec<u8>> {
    let mut octets = Vec::new();
    File::open(file)?.take(most + 1).read_to_end(&mut octets)?;
    if octets.len() as u64 > most {
        bail!("it is larger than {most} octets");
    }
    Ok(octets)
}
