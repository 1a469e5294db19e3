//! Explanations of the answers given now.

use std::net::IpAddr;

use ipnet::IpNet;

use super::services::service_at;
use super::{ExplainQuery, View, ViewError, words};
use crate::admin::dto::{ExplanationDto, StepDto};
use crate::answer::{self, Asker};
use crate::model::{ClientSubnet, LowerName, PrefixLen, RecordType, ServiceIndex};

/// Sentences about what is left out, at most.
const LEFT_OUT: usize = 8;

impl View {
    /// Explains what somebody would be told now: the answering path itself, before a witness. Then what of the objects behind the
    /// name is not answered.
    ///
    /// # Errors
    /// When the question makes no sense.
    pub async fn explain(&self, query: &ExplainQuery) -> Result<ExplanationDto, ViewError> {
        let invalid = |what: &str, text: &str, why: String| {
            ViewError::Invalid(format!("{what}: `{}`: {why}", words::shorten(text)))
        };
        let text = query.name.trim();
        let bare = if text == "." {
            text
        } else {
            text.trim_end_matches('.')
        };
        let name: LowerName = bare
            .parse()
            .map_err(|error| invalid("name", text, format!("{error}")))?;
        let asked = query.r#type.as_deref().unwrap_or("A");
        let qtype: RecordType = asked
            .trim()
            .to_ascii_uppercase()
            .parse()
            .map_err(|error| invalid("type", asked, error))?;
        let given = |text: &Option<String>| {
            let text = text.as_deref().map(str::trim);
            text.filter(|text| !text.is_empty()).map(ToOwned::to_owned)
        };
        let asker = match (given(&query.client), given(&query.resolver)) {
            (Some(client), None) => {
                let prefix = read_prefix(&client).ok_or_else(|| {
                    let why = "an address or a prefix such as 192.0.2.0/24 is wanted";
                    invalid("client", &client, why.to_owned())
                })?;
                Asker::Client(ClientSubnet {
                    address: prefix.network(),
                    source: PrefixLen(prefix.prefix_len()),
                })
            }
            (None, Some(resolver)) => {
                let address = resolver.parse::<IpAddr>();
                Asker::Resolver(address.map_err(|_| {
                    invalid("resolver", &resolver, "an address is wanted".to_owned())
                })?)
            }
            _ => {
                return Err(ViewError::Invalid(
                    "give either `client`, a network, or `resolver`, an address".to_owned(),
                ));
            }
        };
        let snapshot = self.snapshot();
        let told = answer::explain(&snapshot, &name, qtype, asker);
        let left_out = self.left_out(service_at(&snapshot, &name)).await;
        let client = match asker {
            Asker::Client(client) => client.to_string(),
            Asker::Resolver(address) => address.to_string(),
        };
        Ok(ExplanationDto {
            name: name.to_string(),
            r#type: qtype.to_string(),
            client,
            rcode: told.rcode,
            cluster: told.cluster,
            ttl: told.ttl,
            scope: told.scope,
            answer: told.answer,
            steps: (1..)
                .zip(told.steps.into_iter().chain(left_out))
                .map(|(number, text)| StepDto { number, text })
                .collect(),
        })
    }
}

impl View {
    /// Says what of the objects behind a service is not answered: the first of it.
    async fn left_out(&self, service: Option<ServiceIndex>) -> Vec<String> {
        let Some(index) = service else {
            return Vec::new();
        };
        let read = self.controller().read(move |inventory| {
            let service = inventory.service(index)?;
            let (federation, key) = inventory.federation_of(service);
            Some(federation.left_out(&key))
        });
        let mut all = read.await.flatten().unwrap_or_default();
        if let Some(more) = all.len().checked_sub(LEFT_OUT).filter(|more| *more > 0) {
            all.truncate(LEFT_OUT);
            all.push(format!("Left out besides: {more} more"));
        }
        all
    }
}

/// Reads a prefix, or an address as its host prefix.
fn read_prefix(text: &str) -> Option<IpNet> {
    let address = || text.parse::<IpAddr>().ok().map(IpNet::from);
    text.parse()
        .ok()
        .or_else(address)
        .map(|net: IpNet| net.trunc())
}
