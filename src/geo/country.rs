//! The embedded country database: the only file that knows tor-geoip-db.

use super::compiled::Compiled;

/// Why there is no embedded database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum EmbeddedError {
    /// The feature is off. Name an MMDB file.
    #[cfg(not(feature = "embedded-geoip"))]
    #[error(
        "this binary was built without the embedded country database (feature `embedded-geoip`); name an MMDB file"
    )]
    NotBuiltIn,
}

/// Says that it was not built in.
#[cfg(not(feature = "embedded-geoip"))]
pub(super) fn compile(_name: &str) -> Result<Compiled, EmbeddedError> {
    Err(EmbeddedError::NotBuiltIn)
}

#[cfg(feature = "embedded-geoip")]
pub(super) use embedded::compile;

#[cfg(feature = "embedded-geoip")]
mod embedded {
    use std::collections::HashMap;
    use std::num::NonZeroU16;

    use super::{Compiled, EmbeddedError};
    use crate::geo::DatabaseInfo;
    use crate::geo::places::{Places, UnknownCodes};
    use crate::prefix::Table;

    /// When the data of tor-geoip-db 0.1.1 was generated, as its documentation states: Wed, 23 Sep 2026 04:35:31 GMT.
    /// A test fails when the crate comes with other data, so that this is not forgotten.
    const BUILD_EPOCH: u64 = 1_790_138_131;

    /// Compiles the embedded database: lists of starts and codes by family, in order.
    pub(in crate::geo) fn compile(name: &str) -> Result<Compiled, EmbeddedError> {
        let mut table = Table::builder(0);
        let mut codes = Codes::default();
        for (&start, &code) in tor_geoip_db::ipv4s().iter().zip(tor_geoip_db::ipv4c()) {
            table.v4(start, codes.place(code));
        }
        for (&start, &code) in tor_geoip_db::ipv6s().iter().zip(tor_geoip_db::ipv6c()) {
            table.v6(start, codes.place(code));
        }
        Ok(Compiled {
            table: table.build(),
            places: codes.places.into_list(),
            info: DatabaseInfo {
                name: name.to_owned(),
                database_type: "IPFire Location Database (country)".to_owned(),
                build_epoch: BUILD_EPOCH,
                networks: codes.networks,
                unknown_codes: codes.unknown.into_list(),
            },
        })
    }

    /// Codes of the data and the numbers of their places.
    struct Codes {
        places: Places,
        by_code: HashMap<NonZeroU16, u32>,
        unknown: UnknownCodes,
        networks: u64,
    }

    impl Default for Codes {
        fn default() -> Self {
            Self {
                places: Places::new(),
                by_code: HashMap::new(),
                unknown: UnknownCodes::default(),
                networks: 0,
            }
        }
    }

    impl Codes {
        /// Gives the number of a code's place; a range without a code is unknown.
        fn place(&mut self, code: Option<NonZeroU16>) -> u32 {
            let Some(code) = code else { return 0 };
            self.networks += 1;
            *self.by_code.entry(code).or_insert_with(|| {
                // The crate reads two letters as one number in the machine's own order of octets.
                let letters = code.get().to_ne_bytes();
                let text = String::from_utf8_lossy(&letters);
                self.places.number(self.unknown.read(&text))
            })
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn the_data_is_the_one_whose_date_is_noted_and_is_in_order() {
            let (v4, v6) = (tor_geoip_db::ipv4s(), tor_geoip_db::ipv6s());
            assert_eq!((v4.len(), v6.len()), (400_210, 305_266), "look up its date");
            assert!(v4.is_sorted_by(|a, b| a < b) && v6.is_sorted_by(|a, b| a < b));
            assert_eq!(v4.len(), tor_geoip_db::ipv4c().len());
            assert_eq!(v6.len(), tor_geoip_db::ipv6c().len());
        }

        #[test]
        fn every_code_has_a_place_or_is_listed() {
            let compiled = compile("embedded").unwrap();
            assert_eq!(
                compiled.info.unknown_codes,
                ["AB", "CS", "NT", "OS", "SU", "ZZ"]
            );
            let all = tor_geoip_db::ipv4c().iter().chain(tor_geoip_db::ipv6c());
            let coded = all.filter(|code| code.is_some()).count() as u64;
            assert_eq!(compiled.info.networks, coded);
            assert!(compiled.places.len() > 240, "{}", compiled.places.len());
        }
    }
}
