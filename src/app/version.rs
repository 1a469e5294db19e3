//! `meridian --version`.

use std::process::ExitCode;
use std::sync::Arc;

use super::output::line;
use crate::geo::{GeoDb, Source, SourceKind};

/// Prints the version; when verbose, what is built in.
pub(super) fn print(verbose: bool) -> anyhow::Result<ExitCode> {
    line(format_args!("meridian {}", env!("CARGO_PKG_VERSION")))?;
    if !verbose {
        return Ok(ExitCode::SUCCESS);
    }
    let source = Source {
        name: "embedded".to_owned(),
        kind: SourceKind::EmbeddedCountry,
        bytes: Arc::default(),
    };
    let (geo, _) = GeoDb::compile(&[source], &[]);
    match geo.databases().first() {
        Some(info) => {
            line(format_args!(
                "embedded GeoIP database: {}, {} networks, CC BY-SA 4.0, https://location.ipfire.org/",
                info.database_type, info.networks
            ))?;
            if !info.unknown_codes.is_empty() {
                line(format_args!(
                    "codes without a place: {}",
                    info.unknown_codes.join(", ")
                ))?;
            }
        }
        None => line("embedded GeoIP database: none (built without the feature embedded-geoip)")?,
    }
    line("cryptography: ring")?;
    Ok(ExitCode::SUCCESS)
}
