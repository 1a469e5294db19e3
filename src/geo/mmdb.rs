//! MMDB files: the only file that knows maxminddb.
