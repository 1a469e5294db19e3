//! The senders of the last minutes, and what it means that most look translated.

use super::{View, number};
use crate::admin::dto::{ProblemDto, SendersDto, Severity, TranslatedDto};
use crate::admin::senders::{SendersView, Translated};

impl View {
    /// Shows the senders of the last minutes; `None`: none was sampled.
    pub(super) fn senders(&self) -> Option<SendersDto> {
        show(&self.sources_of_node().senders.view())
    }

    /// Says that most senders look translated, where they do.
    pub(super) fn sender_problems(&self, problems: &mut Vec<ProblemDto>) {
        problems.extend(problem(&self.sources_of_node().senders.view()));
    }
}

/// Shows what is known of them.
fn show(view: &SendersView) -> Option<SendersDto> {
    (view.sampled > 0).then(|| SendersDto {
        sampled: number(view.sampled),
        addresses: number(view.addresses),
        private_share: rounded(view.share(view.private)),
        subnet_share: rounded(view.share(view.with_subnet)),
        busiest_share: rounded(view.share(view.busiest)),
        busiest_network: view.busiest_network.map(|network| network.to_string()),
        translated: view.translated.map(|why| match why {
            Translated::OneAddress => TranslatedDto::OneAddress,
            Translated::FewPrivate => TranslatedDto::FewPrivate,
        }),
    })
}

/// Rounds a share to three digits behind the point.
fn rounded(share: f64) -> f64 {
    (share * 1000.0).round() / 1000.0
}

/// Says that most look translated: by what, what it does, and what helps.
fn problem(view: &SendersView) -> Option<ProblemDto> {
    let percent = |count: usize| format!("{:.0} %", view.share(count) * 100.0);
    let sampled = view.sampled;
    let said = match (view.translated?, view.busiest_network) {
        (Translated::OneAddress, Some(network)) => {
            let kind = if view.busiest_is_private {
                "private"
            } else {
                "public"
            };
            format!(
                "{} of {sampled} sampled queries of the last 5 minutes came from one {kind} address in {network}",
                percent(view.busiest)
            )
        }
        _ => format!(
            "{} of {sampled} sampled queries of the last 5 minutes came from private addresses, nearly all from a few ({} in all)",
            percent(view.private),
            view.addresses
        ),
    };
    let lost = match view.sampled.saturating_sub(view.with_subnet) {
        0 => "All of them had a Client Subnet, so places are right as long as it is".to_owned(),
        without => format!(
            "{} had no Client Subnet: they are answered for the place of what stands in front",
            percent(without)
        ),
    };
    Some(ProblemDto {
        severity: Severity::Warning,
        title: "Most senders look translated".to_owned(),
        text: format!(
            "{said}. {lost}. Keep the addresses of clients, or hand them on (`dns.proxyProtocol`); where these are private addresses of your own resolvers, say in `geoip.overrides` where they are."
        ),
        link: "/explain".to_owned(),
        since: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(translated: Option<Translated>) -> SendersView {
        SendersView {
            sampled: 400,
            addresses: 3,
            private: 390,
            with_subnet: 100,
            busiest: 350,
            busiest_network: "10.1.2.0/24".parse().ok(),
            busiest_is_private: true,
            placed_answers: 400,
            translated,
        }
    }

    #[test]
    fn it_is_said_which_of_the_two_it_is_with_the_numbers() {
        assert_eq!(problem(&view(None)), None);
        let text = |view: &SendersView| problem(view).unwrap().text;
        let one = text(&view(Some(Translated::OneAddress)));
        for words in [
            "88 % of 400 sampled queries",
            "one private address in 10.1.2.0/24",
            "75 % had no Client Subnet",
            "`dns.proxyProtocol`",
        ] {
            assert!(one.contains(words), "{one}");
        }
        let few = text(&view(Some(Translated::FewPrivate)));
        assert!(few.contains("98 % of 400 sampled"), "{few}");
        assert!(few.contains("a few (3 in all)"), "{few}");
        let subnets = SendersView {
            with_subnet: 400,
            busiest_is_private: false,
            ..view(Some(Translated::OneAddress))
        };
        let subnets = text(&subnets);
        assert!(
            subnets.contains("All of them had a Client Subnet"),
            "{subnets}"
        );
        assert!(subnets.contains("one public address"), "{subnets}");
    }

    #[test]
    fn shares_are_shown_with_three_digits_and_nothing_of_nobody() {
        assert_eq!(show(&SendersView::default()), None);
        let dto = show(&view(Some(Translated::FewPrivate))).unwrap();
        assert_eq!((dto.sampled, dto.addresses), (400, 3));
        let shares = [dto.private_share, dto.subnet_share, dto.busiest_share];
        assert_eq!(
            shares.map(|share| share.to_string()),
            ["0.975", "0.25", "0.875"]
        );
        assert_eq!(dto.busiest_network.as_deref(), Some("10.1.2.0/24"));
        assert_eq!(dto.translated, Some(TranslatedDto::FewPrivate));
    }
}
