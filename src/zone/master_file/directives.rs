//! `$ORIGIN`, `$TTL`, `$INCLUDE` and `$GENERATE`.

use super::fault::{Fault, Report};
use super::lexer::{Head, Lexer, Token};
use super::{Reader, Scope, field, generate, include};

impl Reader<'_> {
    /// Obeys one directive.
    pub(super) fn directive(
        &mut self,
        head: Head,
        tokens: &[Token<'_>],
        scope: &mut Scope,
    ) -> Result<(), Fault> {
        let Some((directive, arguments)) = tokens.split_first() else {
            return Ok(());
        };
        let is = |text: &str| directive.raw.eq_ignore_ascii_case(text.as_bytes());
        if head.blank {
            return Err(Fault::new(format!(
                "{} must stand at the beginning of the line; for a name that begins with a dollar sign write `\\$`",
                directive.shown()
            )));
        }
        if is("$ORIGIN") {
            let [name] = arguments else {
                return Err(Fault::new("$ORIGIN is written `$ORIGIN example.com.`"));
            };
            scope.origin = field::name(name, scope.origin.as_ref())?;
        } else if is("$TTL") {
            let [ttl] = arguments else {
                return Err(Fault::new("$TTL is written `$TTL 1h`"));
            };
            scope.default_ttl = Some(field::ttl(ttl)?);
        } else if is("$INCLUDE") {
            self.include(arguments, scope)?;
        } else if is("$GENERATE") {
            self.generate(head, arguments, scope)?;
        } else {
            return Err(Fault::new(format!(
                "{} is no directive; there are $ORIGIN, $TTL, $INCLUDE and $GENERATE; for a name that begins with a dollar \
                 sign write `\\$`",
                directive.shown()
            )));
        }
        Ok(())
    }

    /// Reads the records of another file: `$INCLUDE file [origin]`.
    fn include(&mut self, arguments: &[Token<'_>], scope: &Scope) -> Result<(), Fault> {
        let (file, origin) = match arguments {
            [file] => (file, scope.origin.clone()),
            [file, origin] => (file, field::name(origin, scope.origin.as_ref())?),
            _ => return Err(Fault::new("$INCLUDE is written `$INCLUDE file [origin]`")),
        };
        let path = self.folder.join(include::path(file)?);
        if self.including.contains(&path) {
            return Err(Fault::new(format!("{} includes itself", path.display())));
        }
        if self.including.len() >= include::MAX_DEPTH {
            return Err(Fault::new(format!(
                "files are included {} deep at most",
                include::MAX_DEPTH
            )));
        }
        if self.included >= include::MAX_FILES {
            return Err(Fault::new(format!(
                "a zone includes {} files at most",
                include::MAX_FILES
            )));
        }
        let text = *self.texts.get(path.as_path()).ok_or_else(|| {
            Fault::new(format!(
                "{} cannot be read; it must be a file below the zone file's folder",
                path.display()
            ))
        })?;
        let inner = Scope {
            file: self.report.add_file(path.display().to_string()),
            origin,
            ..scope.clone()
        };
        self.included += 1;
        self.including.push(path);
        self.text(text, inner);
        self.including.pop();
        Ok(())
    }

    /// Makes records out of one line: `$GENERATE range owner [TTL] [class] type data`.
    fn generate(
        &mut self,
        head: Head,
        arguments: &[Token<'_>],
        scope: &mut Scope,
    ) -> Result<(), Fault> {
        let [range, template @ ..] = arguments else {
            return Err(usage());
        };
        let range = generate::Range::read(range)?;
        let template = line_of(template).ok_or_else(usage)?;
        // Neither the owner nor the TTL of generated records is handed on.
        let mut inner = scope.clone();
        let mut line = Vec::new();
        let known = self.report.count();
        for number in range.numbers() {
            generate::expand(&template, number, &mut line)?;
            if !self.take_octets(line.len(), Report::place(scope.file, head.line)) {
                return Ok(());
            }
            self.generated(&line, head.line, &mut inner);
            // What is wrong with one is most often wrong with all.
            if self.report.count() > known {
                break;
            }
        }
        Ok(())
    }

    /// Reads one generated line.
    fn generated(&mut self, line: &[u8], number: u32, scope: &mut Scope) {
        let mut tokens = Vec::new();
        match Lexer::new(line).at_line(number).next_line(&mut tokens) {
            Some(Ok(head)) => self.record(head, &tokens, scope),
            Some(Err((line, fault))) => self.report.add(Report::place(scope.file, line), fault),
            None => {}
        }
    }
}

/// Says how `$GENERATE` is written.
fn usage() -> Fault {
    Fault::new(
        "$GENERATE is written `$GENERATE 1-10 host$ [TTL] [class] A 192.0.2.$`; data of several fields may stand in quotes",
    )
}

/// Makes one line of text out of the fields of a template. Data that is one quoted field is taken without its quotes, as
/// BIND does. `None` when fields are missing or one would end the line.
fn line_of(fields: &[Token<'_>]) -> Option<Vec<u8>> {
    let quoted = fields.iter().filter(|field| field.quoted).count();
    let (last, rest) = fields.split_last()?;
    let is_quoted_data = last.quoted && quoted == 1 && rest.len() >= 2;
    let mut line = Vec::new();
    for (position, field) in fields.iter().enumerate() {
        if field.raw.contains(&b'\n') || fields.len() < 3 {
            return None;
        }
        if position > 0 && !field.glued {
            line.push(b' ');
        }
        if field.quoted && is_quoted_data {
            // Inside the quotes `\"` was a quote.
            let mut raw = field.raw;
            while let Some((octet, tail)) = raw.split_first() {
                if !(*octet == b'\\' && tail.first() == Some(&b'"')) {
                    line.push(*octet);
                }
                match (octet, tail) {
                    (b'\\', [b'\\', more @ ..]) => {
                        line.push(b'\\');
                        raw = more;
                    }
                    _ => raw = tail,
                }
            }
        } else if field.quoted {
            line.push(b'"');
            line.extend_from_slice(field.raw);
            line.push(b'"');
        } else {
            line.extend_from_slice(field.raw);
        }
    }
    Some(line)
}
