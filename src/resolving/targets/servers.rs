//! Asking resolvers for addresses, and following aliases: the only file that knows hickory-resolver.
//!
//! Each resolver has a pool of its own, so that we say who is asked next: hickory's pool of several takes the first SERVFAIL for
//! the last word. Nothing is cached here, and no name is completed: names are absolute.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hickory_proto::op::{DnsRequestOptions, DnsResponse, Query, ResponseCode};
use hickory_proto::rr::{Name, RData, Record, RecordType};
use hickory_proto::serialize::binary::BinDecodable;
use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolverOpts};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::xfer::{DnsHandle, FirstAnswer};
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::{NameServerPool, PoolContext, TlsConfig};

use super::known::{Family, Outcome};
use super::own::OwnZones;
use crate::model::{LowerName, Ttl};
use crate::resolving::ask::mnemonic;
use crate::resolving::delegation::lower;

/// A resolver that has not answered by then is not waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// A truncated reply is asked for again over TCP: connection and talk have a patience each.
const PATIENCE_WITH_TCP: Duration = Duration::from_secs(6);

/// Tries of one exchange; with more resolvers each gets one.
const TRIES: usize = 2;

/// Most aliases on the way to an address.
const MAX_ALIASES: usize = 8;

/// Time for all exchanges of one question.
const WHOLE: Duration = Duration::from_secs(20);

/// Largest reply over UDP in octets: above it, TCP.
const MAX_DATAGRAM: u16 = 1232;

/// The resolvers.
#[derive(Default)]
pub(super) struct Servers {
    servers: Vec<Server>,
    /// The one that answered last is asked first.
    preferred: AtomicUsize,
}

impl std::fmt::Debug for Servers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let addresses = self.servers.iter().map(|server| server.address);
        f.debug_set().entries(addresses).finish()
    }
}

/// One resolver.
struct Server {
    address: SocketAddr,
    pool: NameServerPool<TokioRuntimeProvider>,
}

impl Servers {
    /// Takes resolvers, in order. Nobody is asked yet.
    pub(super) fn new(addresses: &[SocketAddr]) -> Self {
        let mut options = ResolverOpts::default();
        options.timeout = PATIENCE;
        let Ok(tls) = TlsConfig::new() else {
            return Self::default();
        };
        let context = Arc::new(PoolContext::new(options, tls));
        let server = |address: &SocketAddr| {
            let (mut udp, mut tcp) = (ConnectionConfig::udp(), ConnectionConfig::tcp());
            (udp.port, tcp.port) = (address.port(), address.port());
            let config = NameServerConfig::new(address.ip(), true, vec![udp, tcp]);
            Server {
                address: *address,
                pool: NameServerPool::from_config(
                    [config],
                    Arc::clone(&context),
                    TokioRuntimeProvider::new(),
                ),
            }
        };
        Self {
            servers: addresses.iter().map(server).collect(),
            preferred: AtomicUsize::new(0),
        }
    }

    /// Finds the addresses of one family. An alias that leads into a zone of ours is refused.
    pub(super) async fn look_up(
        &self,
        target: &LowerName,
        family: Family,
        own: &OwnZones,
    ) -> Outcome {
        let looking = self.follow(target, family, own);
        match tokio::time::timeout(WHOLE, looking).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(reason)) => Outcome::Failed(reason.into()),
            Err(_) => Outcome::Failed(format!("no answer within {WHOLE:?}").into()),
        }
    }

    /// Asks, and asks again for the end of a chain of aliases that a server did not follow itself.
    async fn follow(
        &self,
        target: &LowerName,
        family: Family,
        own: &OwnZones,
    ) -> Result<Outcome, String> {
        let mut name = Name::from_bytes(target.as_wire()).map_err(|error| error.to_string())?;
        let (mut ttl, mut aliases) = (Ttl::MAX, 0);
        loop {
            let reply = self.exchange(&name, family).await?;
            let before = aliases;
            while let Some((alias, alias_ttl)) = reply.alias(&name) {
                aliases += 1;
                if aliases > MAX_ALIASES {
                    let why = format!("more than {MAX_ALIASES} aliases, or a circle of them");
                    return Ok(Outcome::Circle(why.into()));
                }
                if let Some(why) = refuse_own(&alias, own)? {
                    return Ok(Outcome::Circle(why.into()));
                }
                ttl = ttl.min(alias_ttl);
                name = alias;
            }
            let (addresses, lowest) = reply.addresses(&name, family);
            if !addresses.is_empty() {
                let ttl = ttl.min(lowest);
                return Ok(Outcome::Addresses { addresses, ttl });
            }
            // The RCODE is that of the chain's end (RFC 6604 section 3).
            if reply.is_nxdomain {
                return Ok(Outcome::NxDomain { ttl: reply.holds });
            }
            // With the SOA record the server says that there is nothing at the end (RFC 2308 section 2.2).
            if aliases > before && reply.holds.is_none() {
                continue;
            }
            if reply.is_referral {
                return Err("the resolver names other servers instead of asking them".to_owned());
            }
            return Ok(Outcome::NoData { ttl: reply.holds });
        }
    }

    /// Asks the resolvers in turn until one answers.
    async fn exchange(&self, name: &Name, family: Family) -> Result<Reply, String> {
        let first = self.preferred.load(Ordering::Relaxed);
        let tries = self.servers.len().max(TRIES);
        let mut reason = "no resolver is known: name one in `resolver.nameservers`".to_owned();
        let turns = self.servers.iter().enumerate().cycle();
        for (at, server) in turns.skip(first).take(tries) {
            match server.ask(name, family).await {
                Ok(reply) => {
                    self.preferred.store(at, Ordering::Relaxed);
                    return Ok(reply);
                }
                Err(why) => reason = why,
            }
        }
        Err(reason)
    }
}

impl Server {
    /// Asks this resolver once.
    async fn ask(&self, name: &Name, family: Family) -> Result<Reply, String> {
        let address = self.address;
        let mut options = DnsRequestOptions::default();
        options.edns_payload_len = MAX_DATAGRAM;
        let record_type = wire_type(family);
        let query = Query::query(name.clone(), record_type);
        let asking = self.pool.lookup(query, options).first_answer();
        match tokio::time::timeout(PATIENCE_WITH_TCP, asking).await {
            Err(_) | Ok(Err(NetError::Timeout)) => {
                Err(format!("{address} did not answer within {PATIENCE:?}"))
            }
            Ok(Ok(response)) => Reply::of(response, address),
            Ok(Err(NetError::Dns(DnsError::NoRecordsFound(none)))) => Ok(Reply {
                answers: Vec::new(),
                is_nxdomain: none.response_code == ResponseCode::NXDomain,
                is_referral: none.ns.is_some() && none.soa.is_none(),
                holds: none.negative_ttl.map(Ttl::from_wire),
            }),
            Ok(Err(NetError::Dns(DnsError::ResponseCode(code)))) => {
                Err(format!("{address} answers {}", mnemonic(code)))
            }
            Ok(Err(error)) => Err(format!("{address} cannot be asked: {error}")),
        }
    }
}

/// A reply that says something of the name, as far as we look.
struct Reply {
    answers: Vec<Record>,
    is_nxdomain: bool,
    /// Other servers are named, and that is all.
    is_referral: bool,
    /// How long a denial holds; `None` without a SOA record.
    holds: Option<Ttl>,
}

impl Reply {
    /// Reads a message.
    fn of(response: DnsResponse, server: SocketAddr) -> Result<Self, String> {
        let is_nxdomain = match response.metadata.response_code {
            ResponseCode::NoError => false,
            ResponseCode::NXDomain => true,
            code => return Err(format!("{server} answers {}", mnemonic(code))),
        };
        let holds = response.negative_ttl().map(Ttl::from_wire);
        let names_servers =
            |record: &Record| matches!(record.data, RData::NS(_)) && holds.is_none();
        let is_referral =
            response.answers.is_empty() && response.authorities.iter().any(names_servers);
        Ok(Self {
            answers: response.into_message().answers,
            is_nxdomain,
            is_referral,
            holds,
        })
    }

    /// Gives what a name is an alias of, and the TTL of that.
    fn alias(&self, name: &Name) -> Option<(Name, Ttl)> {
        let of_name = self.answers.iter().filter(|record| record.name == *name);
        of_name
            .filter_map(|record| match &record.data {
                RData::CNAME(alias) => Some((alias.0.clone(), Ttl::from_wire(record.ttl))),
                _ => None,
            })
            .next()
    }

    /// Gives the addresses of a name, and the lowest TTL.
    fn addresses(&self, name: &Name, family: Family) -> (Vec<IpAddr>, Ttl) {
        let wanted = wire_type(family);
        let records = self
            .answers
            .iter()
            .filter(|record| record.name == *name && record.record_type() == wanted);
        let lowest = records.clone().map(|record| Ttl::from_wire(record.ttl));
        let ttl = lowest.min().unwrap_or(Ttl::MAX);
        let addresses = records.filter_map(|record| record.data.ip_addr());
        (addresses.collect(), ttl)
    }
}

/// Gives the record type of a family.
fn wire_type(family: Family) -> RecordType {
    match family {
        Family::V4 => RecordType::A,
        Family::V6 => RecordType::AAAA,
    }
}

/// Says why an alias is refused that leads into a zone of ours: to ask for it would be a question to ourselves.
fn refuse_own(alias: &Name, own: &OwnZones) -> Result<Option<String>, String> {
    let name = lower(alias).ok_or("an alias is no name")?;
    let zone = own.zone_of(&name);
    Ok(zone.map(|zone| {
        format!("its alias {name} leads back into our own zone {zone}, which is refused as a loop")
    }))
}
