//! Meridian: an authoritative Geo-DNS load balancer. One name, the nearest healthy cluster.
//!
//! # The map
//!
//! Four storeys; a room imports only rooms above it, and only those that `tests/architecture.rs` names.
//!
//! | Storey | Rooms |
//! |---|---|
//! | vocabulary: nouns | [`model`], [`lifecycle`], [`telemetry`], [`disk`] |
//! | core: pure decisions, no socket, task, clock or log | [`prefix`], [`inventory`], [`geo`], [`steering`], [`zone`], [`health`], [`snapshot`], [`answer`] |
//! | shell: the outside world | [`resolving`], [`source`], [`prober`], [`vantage`], [`controller`], [`transport`], [`admin`] |
//! | root: wiring | [`config`], [`app`] |
//!
//! One immutable [`snapshot::Snapshot`] in one [`snapshot::SnapshotCell`] lies between those who change the world and those
//! who answer from it.
//!
//! # The journey of a query
//!
//! 1. A worker of `transport::udp` receives a batch of datagrams.
//! 2. It loads the snapshot once for the batch.
//! 3. [`answer::Query::parse`] reads each packet; [`answer::Lookup`] goes on in stages, so that cache misses overlap.
//! 4. The table of names ([`snapshot::NameTable`]) finds the owner name; none of ours is REFUSED.
//! 5. [`zone::lookup`] says RRset, CNAME, referral, NODATA, NXDOMAIN, or *steered*.
//! 6. Only if steered: [`steering::Classes::locate`] turns the client's network into a class of places, and
//!    [`steering::Policy::select`] decides. The [`steering::Decision`] carries its reason.
//! 7. `answer`'s sections fill the reply with TTL and ECS scope.
//! 8. The encoder writes it into the worker's buffer.
//! 9. The batch is sent; the worker's counters are bumped.
//!
//! TCP joins at 2 through `transport::stream` and leaves with the same octets: one parser, one decision, one encoder.
//! Opcodes other than QUERY go to `transport::rare`.
//!
//! # The journey of a flip
//!
//! 1. [`prober`] runs the probe that [`health::Fleet`] asked for and hands back an observation.
//! 2. [`health::Fleet::observe`] says whether the verdict flipped.
//! 3. The flip goes to the [`controller`], the single writer, over a bounded channel.
//! 4. The controller waits its turn: the first change at once, then at most one publish per 5 ms.
//! 5. [`snapshot::build`] makes the next snapshot: a flip copies one chunk of endpoint states and nothing else.
//! 6. [`snapshot::SnapshotCell::publish`] puts it in force; the next batch sees it.
//!
//! A reload, a changed zone file, a new GeoIP database and what operators say enter at 3. There is no other way in.
//!
//! # The journey of a Kubernetes event
//!
//! 1. A watch of `source::kubernetes` reads it; one file a kind turns the object into a record, and what is wrong with it into a
//!    refusal.
//! 2. The cluster's world puts records together: a Service with its EndpointSlices, a Route with its Gateway. What changed for
//!    those who ask for names leaves it as shards.
//! 3. They go to the controller as [`inventory::Change::Shards`].
//! 4. [`inventory::Federation`] says who has which name, and makes one service of the shards of many clusters; the inventory says
//!    what became dirty.
//! 5. New endpoints go to the prober, and the rest is the journey of a flip, from 4 on.
//!
//! A cluster that is not seen sends nothing, and so changes nothing.
//!
//! # The journey of a drain
//!
//! 1. `admin::access` says who asks; the handler asks [`admin::View`], which knows what there is to drain.
//! 2. [`vantage::Book`] makes a record, writes it to disk, and tells who listens: the exchange with each peer, and the controller.
//! 3. The controller lays it over what monitors say ([`model::EndpointState`]), tells entries apart that others share, and publishes.
//! 4. It watches until no worker reads an older snapshot, and whether a last resort still gave the endpoint out.
//! 5. Each exchange tells the peers how far that is; the view puts all words together: `safe to stop` needs every one of them.

pub mod model;

pub mod lifecycle;

pub mod telemetry;

pub mod disk;

pub mod prefix;

pub mod inventory;

pub mod geo;

pub mod steering;

pub mod zone;

pub mod health;

pub mod snapshot;

pub mod answer;

pub mod resolving;

pub mod source;

pub mod prober;

pub mod vantage;

pub mod controller;

pub mod transport;

pub mod admin;

pub mod config;

pub mod app;
