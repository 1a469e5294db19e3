//! Names that answer nobody: services without any address.

use super::objects::Provenance;
use super::status::few;
use super::{View, catalog, number};
use crate::admin::dto::{ProblemDto, Severity};
use crate::inventory::{Inventory, Service};

/// Services listed one by one.
const LISTED: usize = 10;

impl View {
    /// Names services that have no address: every answer of their names is empty.
    pub(super) async fn empty_problems(
        &self,
        look: &catalog::Look,
        problems: &mut Vec<ProblemDto>,
    ) {
        let empty = &look.standing.empty;
        let first = empty.iter().take(LISTED);
        let first = first.filter_map(|at| look.catalog.services.get(*at));
        let first: Vec<_> = first.map(|listed| listed.index).collect();
        if first.is_empty() {
            return;
        }
        let read = self.controller().read(move |inventory| {
            let services = first.iter().filter_map(|index| inventory.service(*index));
            services
                .map(|service| problem(inventory, service))
                .collect::<Vec<_>>()
        });
        let told = read.await.unwrap_or_default();
        let more = number(empty.len()).saturating_sub(number(told.len()));
        problems.extend(told);
        if more > 0 {
            problems.push(ProblemDto {
                severity: Severity::Warning,
                title: match more {
                    1 => "1 more service has no address".to_owned(),
                    more => format!("{more} more services have no address"),
                },
                text: "Every answer of their names is empty (NODATA).".to_owned(),
                link: "/services?state=unknown".to_owned(),
                since: None,
            });
        }
    }
}

/// Says that a service has no address, and why.
fn problem(inventory: &Inventory, service: &Service) -> ProblemDto {
    let names: Vec<String> = service.names.iter().map(|name| name.to_string()).collect();
    let why = Provenance::of(inventory, service).lacking();
    ProblemDto {
        severity: Severity::Warning,
        title: format!("{} has no address", service.key),
        text: format!("{}: every answer is empty (NODATA). {why}", few(&names)),
        link: format!("/services/{}", service.key),
        since: None,
    }
}
