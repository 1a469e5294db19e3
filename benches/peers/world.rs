//! What every server is to serve, and what it is asked: names, clusters, clients, and the answer that each client must get.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hickory_proto::op::Message;
use ipnet::Ipv4Net;
use meridian::model::Continent;

use crate::database::Networks;
use crate::wire::queries::{Queries, packet, random};

/// The zone of all names.
pub(crate) const ZONE: &str = "svc.example";
/// Most names: their numbers have six digits, and the clusters' networks have room for as many.
pub(crate) const MAX_NAMES: usize = 1_000_000;
/// TTL of every answer, seconds.
pub(crate) const TTL: u32 = 60;

/// A cluster that every name is in.
pub(crate) struct Cluster {
    /// Its name in every configuration.
    pub(crate) name: &'static str,
    /// Its region at the provider `aws`, for Meridian.
    pub(crate) region: &'static str,
    /// Whose clients it serves first, and then the other clusters, by index.
    pub(crate) continents: &'static [Continent],
    pub(crate) then: [usize; 3],
}

/// All clusters. Together their continents are the whole map, the same for each server.
pub(crate) const CLUSTERS: [Cluster; 4] = [
    Cluster {
        name: "virginia",
        region: "us-east-1",
        continents: &[Continent::NorthAmerica],
        then: [1, 3, 2],
    },
    Cluster {
        name: "ireland",
        region: "eu-west-1",
        continents: &[Continent::Europe, Continent::Africa],
        then: [0, 2, 3],
    },
    Cluster {
        name: "singapore",
        region: "ap-southeast-1",
        continents: &[Continent::Asia, Continent::Oceania],
        then: [1, 0, 3],
    },
    Cluster {
        name: "saopaulo",
        region: "sa-east-1",
        continents: &[Continent::SouthAmerica, Continent::Antarctica],
        then: [0, 1, 2],
    },
];

/// The order of clusters for the clients of one of them.
pub(crate) fn order(cluster: usize) -> [usize; 4] {
    let [second, third, fourth] = CLUSTERS[cluster].then;
    [cluster, second, third, fourth]
}

/// The cluster that serves a continent.
fn home(continent: Continent) -> usize {
    CLUSTERS
        .iter()
        .position(|cluster| cluster.continents.contains(&continent))
        .expect("every continent has a cluster")
}

/// Gives the first label of a name.
pub(crate) fn label(number: usize) -> String {
    format!("s{number:06}")
}

/// Gives a name's IPv4 address in a cluster.
pub(crate) fn v4(cluster: usize, number: usize) -> Ipv4Addr {
    Ipv4Addr::from(0x0a00_0000 + ((cluster as u32) << 20) + number as u32)
}

/// Gives a name's IPv6 address in a cluster.
pub(crate) fn v6(cluster: usize, number: usize) -> Ipv6Addr {
    let bits = (0x2001_0db8_u128 << 96) + ((cluster as u128) << 64) + number as u128 + 1;
    Ipv6Addr::from(bits)
}

/// Writes the zone that servers without steering serve: each name with its addresses in the first cluster.
pub(crate) fn static_zone(names: usize) -> String {
    let mut text = format!(
        "$ORIGIN {ZONE}.\n$TTL {TTL}\n@ SOA ns1 hostmaster 1 7200 900 1209600 60\n@ NS ns1\nns1 A 127.0.0.1\n"
    );
    for number in 0..names {
        let (name, v4, v6) = (label(number), v4(0, number), v6(0, number));
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name} A {v4}\n{name} AAAA {v6}");
    }
    text
}

/// What one query asks, to know the answer.
#[derive(Clone, Copy)]
struct Asked {
    name: u32,
    cluster: u8,
    rtype: u8,
}

/// Queries and their answers.
pub(crate) struct Questions {
    pub(crate) queries: Queries,
    asked: Vec<Asked>,
}

impl Questions {
    /// Draws queries: any name, 80 % A and 20 % AAAA, the /24 of a client drawn by address from the networks of the database.
    pub(crate) fn draw(count: usize, names: usize, networks: &Networks) -> Self {
        let clients = Clients::new(networks);
        let asked = (0..count).map(|seed| {
            let draw = random(3 * seed);
            let (client, continent) = clients.draw(random(3 * seed + 1));
            let asked = Asked {
                name: (draw % names as u64) as u32,
                cluster: home(continent) as u8,
                rtype: if (draw >> 40).is_multiple_of(5) {
                    28
                } else {
                    1
                },
            };
            (asked, client)
        });
        let asked: Vec<(Asked, Ipv4Addr)> = asked.collect();
        let packets = asked.iter().map(|(asked, client)| {
            let name = format!("{}.{ZONE}", label(asked.name as usize));
            let name = name.parse().expect("a good name");
            packet(&name, asked.rtype, *client)
        });
        Self {
            queries: Queries::new(packets),
            asked: asked.iter().map(|(asked, _)| *asked).collect(),
        }
    }

    /// Gives a judge of replies that holds no borrow of the queries.
    pub(crate) fn judge(&self) -> impl Fn(usize, &[u8]) -> bool + use<> {
        let asked = self.asked.clone();
        move |query, reply| {
            asked
                .get(query)
                .is_some_and(|asked| is_right(*asked, reply))
        }
    }
}

/// Tells whether a reply answers what was asked, with the addresses of the right cluster and no others.
fn is_right(asked: Asked, reply: &[u8]) -> bool {
    let (name, cluster) = (asked.name as usize, usize::from(asked.cluster));
    let expected: IpAddr = match asked.rtype {
        28 => v6(cluster, name).into(),
        _ => v4(cluster, name).into(),
    };
    let Ok(message) = Message::from_vec(reply) else {
        return false;
    };
    let host = format!("{}.{ZONE}.", label(name));
    let question = |query: &hickory_proto::op::Query| query.name().to_string() == host;
    message.queries.iter().all(question)
        && !message.answers.is_empty()
        && message
            .answers
            .iter()
            .all(|record| record.data.ip_addr() == Some(expected))
}

/// Networks that clients are drawn from.
struct Clients<'a> {
    /// Of at least a /24 each, on a known continent.
    networks: Vec<&'a (Ipv4Net, Continent)>,
    /// How many /24 networks there are up to each, itself included.
    sums: Vec<u64>,
}

impl<'a> Clients<'a> {
    /// Takes the networks that are whole /24 networks: then every server locates the client alike.
    fn new(all: &'a Networks) -> Self {
        let networks: Vec<_> = all
            .v4
            .iter()
            .filter(|(network, _)| network.prefix_len() <= 24)
            .collect();
        let mut sum = 0;
        let sums = networks.iter().map(|(network, _)| {
            sum += 1_u64 << (24 - network.prefix_len());
            sum
        });
        Self {
            sums: sums.collect(),
            networks,
        }
    }

    /// Draws a /24 network.
    fn draw(&self, draw: u64) -> (Ipv4Addr, Continent) {
        let number = draw % self.sums.last().expect("the database has networks");
        let at = self.sums.partition_point(|&sum| sum <= number);
        let (network, continent) = self.networks[at];
        let first = network.network().to_bits();
        let within = (number - at.checked_sub(1).map_or(0, |before| self.sums[before])) as u32;
        (Ipv4Addr::from(first + (within << 8)), *continent)
    }
}
