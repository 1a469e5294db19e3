//! `meridian token`.

use std::process::ExitCode;

use anyhow::Context;
use serde::Serialize;

use super::args::{OutputArg, TokenArgs};
use super::output::{Style, json, line, yaml};
use crate::admin::FreshToken;

/// A fresh token, as `--output json` shows it.
#[derive(Serialize)]
struct TokenDto {
    token: String,
    line: String,
}

/// Makes a token, and the line for the file that `admin.tokens` names. Nothing is kept of it.
pub(super) fn token(args: &TokenArgs) -> anyhow::Result<ExitCode> {
    let FreshToken {
        token,
        line: in_file,
    } = FreshToken::make().context("the system gives no random numbers")?;
    if args.output != OutputArg::Table {
        let dto = TokenDto {
            token,
            line: in_file,
        };
        match args.output {
            OutputArg::Yaml => yaml(&dto)?,
            OutputArg::Json | OutputArg::Table => json(&dto)?,
        }
        return Ok(ExitCode::SUCCESS);
    }
    let style = Style::of(&std::io::stdout());
    line(style.bold("For the one who will use it, and nobody else; it is not shown again:"))?;
    line(format_args!("  {token}"))?;
    line("")?;
    line(style.bold("For the file that `admin.tokens` names, one line a token:"))?;
    line(format_args!("  {in_file}"))?;
    Ok(ExitCode::SUCCESS)
}
