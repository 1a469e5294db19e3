//! What nodes tell each other: the records of operators, and how far each drain is.
//!
//! There is no leader. Every node keeps all records, on disk too, and exchanges with every node in `peers` once a second and
//! at once after a change; records merge in any order to one result. A peer that cannot be reached is named, and changes no
//! answer. This room knows no snapshot: how far drains are here is told to it, and what becomes of peers it tells a listener. Called by `app` (wiring), `admin` (the other end of
//! the exchange, and what operators ask for).

mod book;
mod client;
mod config;
mod disk;
mod dto;
mod exchange;
mod intake;
mod news;
mod peers;
mod word;

pub use book::{Added, Book, BookError, NewRecord};
pub use client::{ClientError, https_client};
pub use config::{Config, Peer};
pub use disk::RecordFile;
pub use dto::{EXCHANGE_LIMIT, EXCHANGE_PATH, ExchangeDto};
pub use exchange::{DrainWord, OwnWords, Serves, safe_after};
pub use intake::{News, OnNews};
pub use news::{Listener, PeerNews};
pub use peers::Vantage;
pub use word::PeerWord;
