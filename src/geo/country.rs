//! The embedded country database: the only file that knows tor-geoip-db.
