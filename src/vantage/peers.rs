//! The exchange with every peer, and what each said last.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::book::Book;
use super::client::https_client;
use super::config::{Config, Peer};
use super::dto::{EXCHANGE_LIMIT, EXCHANGE_PATH, ExchangeDto, RecordDto, VERSION, apart, plain};
use super::exchange::{DrainWord, OwnWords, Serves};
use super::intake::{Intake, News, OnNews};
use super::news::{Listener, PeerNews};
use super::word::PeerWord;
use crate::lifecycle::Supervisor;
use crate::model::{Intent, MAX_RECORDS, OperatorRecords, OperatorTarget};
use crate::telemetry::wall_time;

/// From exchange to exchange with one peer.
const PERIOD: Duration = Duration::from_secs(1);
/// An exchange that takes longer has failed.
const WHOLE: Duration = Duration::from_secs(4);
/// How long a start waits for the records of the others, before its first answer: who is away must not hold it up.
const START: Duration = Duration::from_millis(500);
/// Largest token file read, octets.
const MAX_TOKEN: u64 = 4096;
/// Longest name of a peer that is shown, characters.
const MAX_NAME: usize = 253;
/// Longest error that is shown, characters: it may quote what a peer sent.
const MAX_ERROR: usize = 300;

/// What is held of one peer.
#[derive(Debug, Default)]
struct Held {
    word: PeerWord,
    at: Option<Instant>,
    /// The digest of its records.
    digest: String,
    /// The client, and the certificates it trusts: with its connections it serves many exchanges.
    client: Option<(Option<Vec<u8>>, reqwest::Client)>,
}

impl Held {
    /// Says what became of it.
    fn news(&self) -> PeerNews {
        PeerNews {
            url: self.word.url.clone(),
            name: self.word.name.clone(),
            error: self.word.error.clone(),
        }
    }
}

/// This node among the others. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Vantage {
    book: Book,
    intake: Intake,
    on_news: OnNews,
    node: Arc<str>,
    instance: Arc<str>,
    own: OwnWords,
    serves: Serves,
    listener: Listener,
    peers: Arc<[Peer]>,
    held: Arc<Mutex<Vec<Held>>>,
}

impl Vantage {
    /// Makes this node's part. `instance` differs between any two runs of any two nodes.
    #[must_use]
    pub fn new(config: &Config, book: Book, own: OwnWords, on_news: OnNews, instance: u64) -> Self {
        let held = config.peers.iter().map(|peer| Held {
            word: PeerWord {
                url: peer.url.clone(),
                ..PeerWord::default()
            },
            ..Held::default()
        });
        Self {
            intake: Intake::of(book.clone()),
            book,
            on_news,
            node: config.node.as_str().into(),
            instance: format!("{instance:016x}").into(),
            own,
            serves: Serves::default(),
            listener: Listener::default(),
            peers: config.peers.as_slice().into(),
            held: Arc::new(Mutex::new(held.collect())),
        }
    }

    /// Tells a listener of peers that are lost, and of those that are back.
    #[must_use]
    pub fn telling(self, listener: Listener) -> Self {
        Self { listener, ..self }
    }

    /// Lets it tell peers which challenges it answers with.
    #[must_use]
    pub fn serving(self, serves: Serves) -> Self {
        Self { serves, ..self }
    }

    /// Tells whether this node answers with a challenge.
    #[must_use]
    pub fn serves(&self, target: &OperatorTarget) -> bool {
        (self.serves.0)(target)
    }

    /// Gives the records.
    #[must_use]
    pub fn book(&self) -> &Book {
        &self.book
    }

    /// Gives this node's name.
    #[must_use]
    pub fn node(&self) -> &str {
        &self.node
    }

    /// Tells how far the drains are on this node.
    #[must_use]
    pub fn own_words(&self) -> Vec<DrainWord> {
        (self.own.0)()
    }

    /// Gives what every peer said last, in the order of the configuration.
    #[must_use]
    pub fn peers(&self) -> Vec<PeerWord> {
        let held = self.lock();
        held.iter()
            .map(|held| PeerWord {
                heard: held.at.map(|at| at.elapsed()),
                ..held.word.clone()
            })
            .collect()
    }

    /// Asks every peer for its records, and waits half a second: who cannot be reached by then is heard of later.
    pub async fn fetch(&self) {
        let mut asking = tokio::task::JoinSet::new();
        for at in 0..self.peers.len() {
            let vantage = self.clone();
            asking.spawn(async move { vantage.exchange_with(at).await });
        }
        let all = async { while asking.join_next().await.is_some() {} };
        if tokio::time::timeout(START, all).await.is_err() {
            let missing: Vec<String> = self
                .peers()
                .iter()
                .filter(|peer| peer.heard.is_none())
                .map(|peer| peer.url.clone())
                .collect();
            let missing = missing.join(", ");
            warn!(%missing, "Not every peer could be asked for drains and forces; going on with those known here");
        }
    }

    /// Exchanges with every peer from now on.
    pub fn spawn(&self, supervisor: &mut Supervisor) {
        for at in 0..self.peers.len() {
            let (vantage, token) = (self.clone(), supervisor.token());
            supervisor.spawn("vantage", vantage.keep_in_touch(at, token));
        }
        let (book, token) = (self.book.clone(), supervisor.token());
        supervisor.spawn("records", tidy(book, token));
    }

    /// Answers a peer: takes its records in, and gives back what it may lack, and what of its records was news. Blocks on the
    /// disk where there is some.
    ///
    /// # Errors
    /// When it speaks another version, sends more records than there can be, or only such as no node makes.
    pub fn answer(&self, theirs: ExchangeDto) -> Result<(ExchangeDto, Vec<News>), String> {
        check(&theirs)?;
        let taken = self
            .intake
            .take(all_of(theirs.records, theirs.challenges).unwrap_or_default());
        match taken.refused {
            // Where some can be taken they are, whatever the others are: one bad record must not part two nodes.
            Some(error) if taken.sound == 0 => Err(format!("no record can be taken: {error}")),
            _ => Ok((self.say(&theirs.digest), taken.news)),
        }
    }

    /// Exchanges with one peer until the token falls: every second, and at once when records change.
    async fn keep_in_touch(self, at: usize, token: CancellationToken) {
        let mut changes = self.book.watch();
        loop {
            // Cancel-safe: an exchange that is cut off is made again at the next start.
            tokio::select! {
                () = token.cancelled() => return,
                () = self.exchange_with(at) => {}
            }
            tokio::select! {
                () = token.cancelled() => return,
                () = tokio::time::sleep(PERIOD) => {}
                changed = changes.changed() => if changed.is_err() {
                    return;
                }
            }
        }
    }

    /// Exchanges with one peer once, and notes how it went.
    async fn exchange_with(&self, at: usize) {
        let Some(peer) = self.peers.get(at) else {
            return;
        };
        let result = self.exchange(peer, at).await;
        let news = match result {
            Ok(theirs) => self.heard(at, theirs),
            Err(error) => {
                self.missed(at, &error);
                None
            }
        };
        if let Some(records) = news {
            let (vantage, url) = (self.clone(), peer.url.clone());
            // It only fails by a panic or at the end.
            let _ = tokio::task::spawn_blocking(move || vantage.take(&url, records)).await;
        }
    }

    /// Asks one peer.
    async fn exchange(&self, peer: &Peer, at: usize) -> Result<ExchangeDto, String> {
        let ca = read_file(peer.ca.as_deref(), u64::from(u16::MAX) * 16).await?;
        let client = self.client(at, ca)?;
        let known = {
            let held = self.lock();
            held.get(at)
                .map_or_else(String::new, |held| held.digest.clone())
        };
        let url = format!("{}{EXCHANGE_PATH}", peer.url.trim_end_matches('/'));
        let mut request = client.post(url).json(&self.say(&known));
        if let Some(token) = read_file(peer.token_file.as_deref(), MAX_TOKEN).await? {
            let token = String::from_utf8_lossy(&token);
            request = request.bearer_auth(token.trim());
        }
        let mut response = request.send().await.map_err(|error| cause(&error))?;
        let status = response.status();
        if !status.is_success() {
            return Err(match status.as_u16() {
                401 => "it does not know our token (401)".to_owned(),
                403 => "our token has no role `peer` there (403)".to_owned(),
                400 => "it takes no record of ours, or speaks another version (400)".to_owned(),
                404 => "it has no exchange: an older version, or no Meridian (404)".to_owned(),
                code => format!("it answered with HTTP status {code}"),
            });
        }
        let mut octets = Vec::new();
        let broken = |error: reqwest::Error| format!("its answer broke off: {}", cause(&error));
        while let Some(chunk) = response.chunk().await.map_err(broken)? {
            if octets.len() + chunk.len() > EXCHANGE_LIMIT {
                return Err("its answer is too large".to_owned());
            }
            octets.extend_from_slice(&chunk);
        }
        let theirs: ExchangeDto =
            serde_json::from_slice(&octets).map_err(|error| format!("its answer: {error}"))?;
        check(&theirs)?;
        Ok(theirs)
    }

    /// Gives the client for one peer, made anew where other certificates are to be trusted.
    fn client(&self, at: usize, ca: Option<Vec<u8>>) -> Result<reqwest::Client, String> {
        if let Some(held) = self.lock().get(at)
            && let Some((trusted, client)) = &held.client
            && *trusted == ca
        {
            return Ok(client.clone());
        }
        let client = https_client(ca.as_deref(), WHOLE).map_err(|error| in_one(&error))?;
        if let Some(held) = self.lock().get_mut(at) {
            held.client = Some((ca, client.clone()));
        }
        Ok(client)
    }

    /// Notes what a peer said. Gives its records, if it sent any.
    fn heard(&self, at: usize, theirs: ExchangeDto) -> Option<Vec<RecordDto>> {
        let digest = digest(&self.book.records());
        let mut all = self.lock();
        let held = all.get_mut(at)?;
        let was_away = held.word.error.take().is_some();
        let name: String = theirs
            .node
            .chars()
            .filter(|c| !c.is_control())
            .take(MAX_NAME)
            .collect();
        if was_away && held.at.is_some() {
            info!(peer = %held.word.url, %name, "Peer is heard of again");
        }
        held.at = Some(Instant::now());
        held.word.heard_at = Some(wall_time());
        held.word.own = *theirs.instance == *self.instance;
        held.word.name = Some(name);
        held.word.in_step = theirs.digest == digest;
        held.word.standing = theirs
            .standing
            .iter()
            .filter_map(|id| id.parse().ok())
            .collect();
        held.word.serving = theirs
            .serving
            .iter()
            .filter_map(|id| id.parse().ok())
            .collect();
        let drains = theirs
            .drains
            .into_iter()
            .filter_map(super::dto::DrainDto::read);
        held.word.drains = drains.map(|word| (word.id.clone(), word)).collect();
        held.digest = theirs.digest;
        let news = was_away.then(|| held.news());
        drop(all);
        news.into_iter().for_each(&*self.listener.0);
        all_of(theirs.records, theirs.challenges)
    }

    /// Notes that a peer could not be asked.
    fn missed(&self, at: usize, error: &str) {
        let error = plain(error, MAX_ERROR);
        let mut all = self.lock();
        let Some(held) = all.get_mut(at) else {
            return;
        };
        let is_news = held.word.error.is_none();
        if is_news {
            warn!(peer = %held.word.url, %error, "Peer cannot be reached; answers go on, `safe to stop` waits for it");
        }
        held.word.error = Some(error);
        held.word.in_step = false;
        // It may have been started anew: it is sent everything then.
        held.digest.clear();
        let news = is_news.then(|| held.news());
        drop(all);
        news.into_iter().for_each(&*self.listener.0);
    }

    /// Takes in what was fetched from a URL, and tells what was new.
    fn take(&self, url: &str, records: Vec<RecordDto>) {
        let news = self.intake.take(records).news;
        if !news.is_empty() {
            (self.on_news.0)(url, &news);
        }
    }

    /// Says what this node knows, with all records where `theirs` is not the digest of them.
    fn say(&self, theirs: &str) -> ExchangeDto {
        let records = self.book.records();
        let digest = digest(&records);
        let all = (digest != theirs).then(|| apart(&records));
        let (others, challenges) = all.unzip();
        let serving = records.standing(wall_time());
        let serving = serving
            .filter(|record| record.intent == Intent::Challenge && self.serves(&record.target));
        ExchangeDto {
            version: VERSION,
            node: self.node.to_string(),
            instance: self.instance.to_string(),
            standing: records
                .standing(wall_time())
                .map(|record| record.id.to_string())
                .collect(),
            records: others,
            challenges,
            serving: serving.map(|record| record.id.to_string()).collect(),
            digest,
            drains: self.own_words().iter().map(Into::into).collect(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Held>> {
        // Each note is whole or was not begun.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps the records on disk, and forgets the old ones.
async fn tidy(book: Book, token: CancellationToken) {
    loop {
        // Cancel-safe: both arms only wait.
        tokio::select! {
            () = token.cancelled() => return,
            () = tokio::time::sleep(Duration::from_secs(5)) => {}
        }
        let book = book.clone();
        // It only fails by a panic or at the end.
        let _ = tokio::task::spawn_blocking(move || book.tidy()).await;
    }
}

/// Refuses another version, and more records than there can be.
fn check(theirs: &ExchangeDto) -> Result<(), String> {
    let version = theirs.version;
    let count = theirs.records.as_ref().map_or(0, Vec::len);
    let count = count + theirs.challenges.as_ref().map_or(0, Vec::len);
    if version != VERSION {
        Err(format!(
            "it speaks version {version} of the exchange, this node {VERSION}"
        ))
    } else if count > MAX_RECORDS {
        Err(format!("{count} records; there can be {MAX_RECORDS}"))
    } else {
        Ok(())
    }
}

/// Puts the records of an exchange together; `None` where it has none.
fn all_of(
    records: Option<Vec<RecordDto>>,
    challenges: Option<Vec<RecordDto>>,
) -> Option<Vec<RecordDto>> {
    match (records, challenges) {
        (Some(mut records), Some(mut challenges)) => {
            records.append(&mut challenges);
            Some(records)
        }
        (records, challenges) => records.or(challenges),
    }
}

/// Gives the digest of all records.
fn digest(records: &OperatorRecords) -> String {
    let mut context = ring::digest::Context::new(&ring::digest::SHA256);
    for record in records.iter() {
        let dto: RecordDto = (&**record).into();
        // Writing to a Vec cannot fail, and a record has only texts and numbers.
        let octets = serde_json::to_vec(&dto).unwrap_or_default();
        context.update(&octets);
    }
    let hash = context.finish();
    let words = hash.as_ref().iter().take(16);
    words.map(|octet| format!("{octet:02x}")).collect()
}

/// Reads a small file, if one is named.
async fn read_file(path: Option<&std::path::Path>, limit: u64) -> Result<Option<Vec<u8>>, String> {
    use tokio::io::AsyncReadExt as _;
    let Some(path) = path else {
        return Ok(None);
    };
    let name = path.display();
    let file = tokio::fs::File::open(path).await;
    let file = file.map_err(|error| format!("{name}: {error}"))?;
    let mut octets = Vec::new();
    let read = file.take(limit).read_to_end(&mut octets).await;
    read.map_err(|error| format!("{name}: {error}"))?;
    Ok(Some(octets))
}

/// Shows an error with its causes.
fn in_one(error: &(dyn std::error::Error + 'static)) -> String {
    let chain = std::iter::successors(Some(error), |error| error.source());
    let texts: Vec<String> = chain.map(ToString::to_string).collect();
    texts.join(": ")
}

/// Says why nobody answered: the last cause, for those before it only say which layer passed it on.
fn cause(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        let phase = if error.is_connect() {
            "connection"
        } else {
            "answer"
        };
        return format!("no {phase} in time");
    }
    let first: &(dyn std::error::Error + 'static) = error;
    let last = std::iter::successors(Some(first), |error| error.source()).last();
    let last = last.unwrap_or(first);
    match last.downcast_ref::<std::io::Error>() {
        Some(io) if io.raw_os_error().is_some() => io.kind().to_string(),
        _ => last.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::book::NewRecord;
    use super::*;

    fn node(name: &str, instance: u64) -> Vantage {
        let config = Config {
            node: name.to_owned(),
            peers: vec![Peer {
                url: "https://other.example".to_owned(),
                token_file: None,
                ca: None,
            }],
        };
        let own = OwnWords(Arc::new(Vec::new));
        let on_news = OnNews(Arc::new(|_, _| ()));
        Vantage::new(&config, Book::open(None), own, on_news, instance)
    }

    fn drain(cluster: &str) -> NewRecord {
        NewRecord {
            target: OperatorTarget::Cluster(cluster.parse().unwrap()),
            intent: Intent::Drain,
            actor: "ann".to_owned(),
            reason: "upgrade".to_owned(),
            in_seconds: 0,
            for_seconds: None,
        }
    }

    /// One exchange of `one` with `two`, as over the wire. Counts what was news to `two`.
    fn exchange(one: &Vantage, two: &Vantage) -> usize {
        let known = one.lock()[0].digest.clone();
        let asked = serde_json::to_vec(&one.say(&known)).unwrap();
        let asked = serde_json::from_slice(&asked).unwrap();
        let (answer, brought) = two.answer(asked).unwrap();
        let answer = serde_json::to_vec(&answer).unwrap();
        let news = one.heard(0, serde_json::from_slice(&answer).unwrap());
        one.take("https://other.example", news.unwrap_or_default());
        brought.len()
    }

    #[test]
    fn one_exchange_passes_records_both_ways_and_the_next_only_a_digest() {
        let (one, two) = (node("one", 1), node("two", 2));
        let first = one.book().add(&drain("a")).unwrap().record;
        two.book().add(&drain("b")).unwrap();
        assert_eq!(exchange(&one, &two), 1);
        assert_eq!(one.book().records(), two.book().records());
        assert_eq!(one.book().records().len(), 2);
        assert_eq!(exchange(&one, &two), 0);
        let peer = &one.peers()[0];
        assert!(peer.in_step && peer.is_fresh() && !peer.own);
        assert_eq!(peer.shown(), "two");
        assert!(peer.heard_at.is_some());
        assert!(peer.standing.contains(&first.id));
        let known = one.lock()[0].digest.clone();
        assert!(one.say(&known).records.is_none());
        one.book().end(&first.id, ("ann", "done")).unwrap();
        assert_eq!(exchange(&one, &two), 1);
        assert!(two.book().records().get(&first.id).unwrap().ended.is_some());
        one.missed(0, "gone\nlevel=error");
        assert_eq!(one.peers()[0].error.as_deref(), Some("gone\\nlevel=error"));
        let peer = &one.peers()[0];
        assert!(!peer.in_step && peer.error.is_some());
    }

    #[test]
    fn a_lost_and_a_returning_peer_are_told_of_once_each() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&told);
        let listener = Listener(Arc::new(move |news| heard.lock().unwrap().push(news)));
        let (one, two) = (node("one", 1).telling(listener), node("two", 2));
        exchange(&one, &two);
        assert!(told.lock().unwrap().is_empty());
        for error in ["refused", "refused", "no answer in time"] {
            one.missed(0, error);
        }
        exchange(&one, &two);
        exchange(&one, &two);
        let news = |error: Option<&str>| PeerNews {
            url: "https://other.example".to_owned(),
            name: Some("two".to_owned()),
            error: error.map(str::to_owned),
        };
        assert_eq!(*told.lock().unwrap(), [news(Some("refused")), news(None)]);
    }

    #[test]
    fn a_node_knows_itself_and_refuses_other_versions() {
        let one = node("one", 7);
        let twin = node("one", 7);
        exchange(&one, &twin);
        assert!(one.peers()[0].own);
        let mut foreign = one.say("");
        foreign.version = 2;
        assert!(twin.answer(foreign).unwrap_err().contains("version 2"));
        one.book().add(&drain("a")).unwrap();
        let mut many = one.say("");
        let record = many.records.as_ref().unwrap()[0].clone();
        many.records = Some(vec![record; MAX_RECORDS + 1]);
        let refused = twin.answer(many).unwrap_err();
        assert!(refused.contains("10001 records"), "{refused}");
        assert!(twin.book().records().is_empty());
    }
}
