//! `meridian cluster join`.

use std::path::Path;
use std::process::ExitCode;

use anyhow::bail;
use serde::Serialize;

use super::{StepDto, access, dtos};
use crate::app::args::{JoinArgs, OutputArg, misuse};
use crate::app::client::runtime;
use crate::app::output::{json, line, note, yaml};
use crate::app::words::{clean, span};
use crate::model::ClusterId;
use crate::source::kubernetes::{self, Deed, Joined, Place, Wish};

/// Seconds of the shortest token that API servers give.
const SHORTEST: u32 = 600;

/// What was done, for machines.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct JoinedDto {
    /// The cluster's name.
    cluster: String,
    /// Its server.
    server: String,
    /// Nothing was changed.
    dry_run: bool,
    /// The objects.
    objects: Vec<StepDto>,
    /// The kubeconfig.
    file: Option<StepDto>,
    /// When the token ends; absent: it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<String>,
    /// What to know of the connection.
    warnings: Vec<String>,
}

/// Joins a cluster.
pub(super) fn join(args: &JoinArgs) -> anyhow::Result<ExitCode> {
    if args.expires.is_some_and(|span| span.seconds() < SHORTEST) {
        return misuse(
            "cluster",
            "--expires: API servers give no token for less than 10m",
        );
    }
    let place = match (&args.directory, &args.file) {
        (Some(folder), _) => Place::Folder(folder.clone()),
        (None, Some(file)) if file == Path::new("-") => Place::Caller,
        (None, file) => Place::File(file.clone().unwrap_or_default()),
    };
    if place == Place::Caller && args.output != OutputArg::Table {
        return misuse(
            "cluster",
            "--file - writes the kubeconfig to standard output, and nothing else: leave --output out",
        );
    }
    let (context, access) = access(&args.kubeconfig, args.member.context.as_deref())?;
    let wish = Wish {
        access,
        name: name(args, &context.name)?,
        namespace: args.member.namespace.clone(),
        expires: args.expires.map(|span| span.0),
        place,
        writes_back: args.write_back,
        dry_run: args.dry_run,
    };
    let joined = runtime()?.block_on(kubernetes::join(&wish, note))?;
    match args.output {
        OutputArg::Table => told(&wish, &joined)?,
        OutputArg::Json => json(&dto(&wish, &joined))?,
        OutputArg::Yaml => yaml(&dto(&wish, &joined))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Gives the cluster's name: the one asked for, else the context's.
fn name(args: &JoinArgs, context: &str) -> anyhow::Result<ClusterId> {
    if let Some(name) = &args.name {
        return Ok(name.clone());
    }
    match context.parse() {
        Ok(name) => Ok(name),
        Err(_) => bail!(
            "the context's name `{}` is no name of a cluster; give one with --name, such as aws-use1",
            clean(context)
        ),
    }
}

/// Says it in words. Where the kubeconfig goes to standard output, they go beside it.
fn told(wish: &Wish, joined: &Joined) -> anyhow::Result<()> {
    let mut words = words(wish, joined);
    let Some(entry) = &joined.entry else {
        words.iter().try_for_each(line)?;
        return Ok(());
    };
    words.retain(|words| !words.is_empty());
    for words in words {
        note(&words);
    }
    Ok(line(entry.expose().trim_end())?)
}

/// Puts it into words, line by line.
fn words(wish: &Wish, joined: &Joined) -> Vec<String> {
    let name = &wish.name;
    let would = |deed: Deed| match (wish.dry_run, deed) {
        (false, _) | (true, Deed::Unchanged) => deed.word().to_owned(),
        (true, _) => format!("would be {}", deed.word()),
    };
    let mut lines = vec![format!("{name}: {}", clean(&joined.server))];
    for warning in &joined.warnings {
        lines.push(format!("  warning: {}", clean(warning)));
    }
    for step in &joined.steps {
        lines.push(format!("  {}: {}", clean(&step.what), would(step.deed)));
    }
    if let Some(granted) = &joined.granted {
        let asked = wish.expires.unwrap_or_default();
        let shorter = if granted.span < asked {
            format!(", shorter than the {} asked for", span(asked.as_secs()))
        } else {
            String::new()
        };
        lines.push(format!(
            "  token: holds for {}{shorter}, until {}; join again before that",
            span(granted.span.as_secs()),
            clean(&granted.until)
        ));
    } else if let (true, Some(asked)) = (wish.dry_run, wish.expires) {
        let asked = span(asked.as_secs());
        lines.push(format!("  token: would be asked for, for {asked}"));
    }
    if let Some((file, deed)) = &joined.file {
        lines.push(format!("  {}: {}", file.display(), would(*deed)));
    }
    if wish.dry_run {
        lines.push("nothing was changed".to_owned());
        return lines;
    }
    lines.push("checked: the new kubeconfig lists Services, and all rights are there".to_owned());
    lines.push(next(wish, joined));
    lines
}

/// Says what comes next.
fn next(wish: &Wish, joined: &Joined) -> String {
    let name = &wish.name;
    let named = |file: &str| {
        format!(
            "add {{name: {name}, kubeconfig: {{file: {file}}}}} to `clusters` of each node, and reload"
        )
    };
    match (&wish.place, &joined.file) {
        (Place::Folder(folder), Some((file, _))) => format!(
            "next: nodes that watch {} (`clustersFrom`) take it up by themselves; for others {}",
            folder.display(),
            named(&file.display().to_string())
        ),
        (_, Some((file, _))) => format!("next: {}", named(&file.display().to_string())),
        (_, None) => format!(
            "next: keep it as a file that only nodes can read, and {}",
            named("FILE")
        ),
    }
}

/// Puts it into a shape for machines.
fn dto(wish: &Wish, joined: &Joined) -> JoinedDto {
    let file = joined.file.as_ref().map(|(file, deed)| StepDto {
        what: file.display().to_string(),
        deed: deed.word(),
    });
    JoinedDto {
        cluster: wish.name.to_string(),
        server: joined.server.clone(),
        dry_run: wish.dry_run,
        objects: dtos(&joined.steps),
        file,
        expires: joined.granted.as_ref().map(|granted| clean(&granted.until)),
        warnings: joined.warnings.clone(),
    }
}
