//! Every key of the table is read, and every key that is read is in the table.
//!
//! The readers ask the table for each key (a debug assertion refuses a name that is not in it). The other way round, each
//! built key is given a value of a kind that it cannot take: a reader that does not look would let it pass.

use super::parse;
use crate::config::spec::shape_of_tests::{Form, Shape};
use crate::config::spec::v1;

/// What stands around a value, as flow YAML with `@` for it, down to one shape.
fn wrong(form: Form) -> &'static str {
    match form {
        // A map is never right where one value, a list or a number is wanted.
        Form::Text
        | Form::Word(_)
        | Form::Boolean
        | Form::Integer(..)
        | Form::Number(..)
        | Form::Duration
        | Form::Name
        | Form::Address
        | Form::Socket
        | Form::Prefix => "{wrong: value}",
        Form::List(_) | Form::Nothing => "{wrong: value}",
        Form::Map(_) | Form::ByName(_) => "[wrong, value]",
        Form::Any(_) => "{wrong: value}",
    }
}

/// Walks the table; `around` is the YAML with `@` where the shape's map goes, `path` the path that faults must have.
fn walk(shape: &Shape, around: &str, path: &str, tried: &mut usize) {
    for key in shape.keys {
        let here = if path.is_empty() {
            key.name.to_owned()
        } else {
            format!("{path}.{}", key.name)
        };
        let Some(form) = key.form() else {
            // Refused whatever it says.
            refuses(
                &around.replace('@', &format!("{{{}: x}}", key.name)),
                &here,
                "not supported yet",
            );
            *tried += 1;
            continue;
        };
        let text = around.replace('@', &format!("{{{}: {}}}", key.name, wrong(form)));
        refuses(&text, &here, "");
        *tried += 1;
        descend(
            form,
            &around.replace('@', &format!("{{{}: @}}", key.name)),
            &here,
            tried,
        );
    }
    let text = around.replace('@', "{zzzzzzzzz: 1}");
    refuses(
        &text,
        &format!("{path}{}zzzzzzzzz", if path.is_empty() { "" } else { "." }),
        "unknown key",
    );
}

/// Walks into what a key takes.
fn descend(form: Form, around: &str, path: &str, tried: &mut usize) {
    match form {
        Form::Map(shape) => walk(shape, around, path, tried),
        Form::List(item) => {
            if !matches!(item, Form::Map(_) | Form::List(_)) {
                refuses(
                    &around.replace('@', &format!("[{}]", wrong(*item))),
                    &format!("{path}[0]"),
                    "",
                );
                *tried += 1;
            }
            descend(
                *item,
                &around.replace('@', "[@]"),
                &format!("{path}[0]"),
                tried,
            );
        }
        Form::Any(forms) => forms
            .iter()
            .for_each(|form| descend(*form, around, path, tried)),
        _ => {}
    }
}

/// Checks that there is a fault at a path, or below it.
fn refuses(value: &str, path: &str, part: &str) {
    // The file's own map is in block style; below it flow style will do.
    let inner = value
        .strip_prefix('{')
        .and_then(|value| value.strip_suffix('}'))
        .expect("a map");
    let text = if inner.starts_with("version") {
        format!("{inner}\n")
    } else {
        format!("version: 1\n{inner}\n")
    };
    let faults = parse(&text).err().unwrap_or_default();
    let found = faults
        .iter()
        .any(|fault| fault.path.starts_with(path) && fault.message.contains(part));
    assert!(found, "{text} has no fault at {path}: {faults:#?}");
}

#[test]
fn every_key_of_the_table_is_read() {
    let mut tried = 0;
    walk(&v1::FILE, "@", "", &mut tried);
    assert!(tried > 150, "only {tried} keys were tried");
}
