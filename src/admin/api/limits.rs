//! What the document says of sizes, ranges and patterns, held against what a request has: one source for both.

use serde_json::Value;

/// Words of a person: some, and no control character.
pub(super) const WORDS: &str = r"^[^\u0000-\u001f\u007f-\u009f]*[^\s\u0000-\u001f\u007f-\u009f][^\u0000-\u001f\u007f-\u009f]*$";

/// Where a value breaks its schema, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Breach {
    /// The path of the member; empty for the value itself.
    pub(super) field: String,
    /// What it must be, beginning with `must`.
    pub(super) why: String,
}

/// Finds the first breach of a schema. `named` gives the schemas that `$ref` names, by their last word.
///
/// Types and unknown members are the reader's to refuse; this looks at sizes, ranges and patterns, members and theirs.
pub(super) fn breach<'a>(
    schema: &'a Value,
    named: &impl Fn(&str) -> Option<&'a Value>,
    value: &Value,
) -> Option<Breach> {
    if let Some(place) = schema.get("$ref").and_then(Value::as_str) {
        let name = place.rsplit('/').next().unwrap_or(place);
        return breach(named(name)?, named, value);
    }
    // A member that may be null, or one of another shape.
    if let Some(shapes) = schema.get("oneOf").and_then(Value::as_array) {
        let shape = shapes.iter().find(|shape| shape.get("$ref").is_some())?;
        return (!value.is_null())
            .then(|| breach(shape, named, value))
            .flatten();
    }
    let own = match value {
        Value::String(text) => of_text(schema, text),
        Value::Number(number) => number.as_f64().and_then(|number| of_number(schema, number)),
        _ => None,
    };
    if let Some(why) = own {
        return Some(Breach {
            field: String::new(),
            why,
        });
    }
    let properties = schema.get("properties").and_then(Value::as_object)?;
    properties.iter().find_map(|(name, schema)| {
        let found = breach(schema, named, value.get(name)?)?;
        let field = match found.field.as_str() {
            "" => name.clone(),
            inner => format!("{name}.{inner}"),
        };
        Some(Breach { field, ..found })
    })
}

/// Holds a text against its schema. Lengths are in characters, as JSON Schema has them.
fn of_text(schema: &Value, text: &str) -> Option<String> {
    let length = u64::try_from(text.chars().count()).unwrap_or(u64::MAX);
    let least = schema
        .get("minLength")
        .and_then(Value::as_u64)
        .unwrap_or_default();
    let most = schema.get("maxLength").and_then(Value::as_u64);
    if length < least || most.is_some_and(|most| length > most) {
        return Some(match most {
            Some(most) => format!("must have {least} to {most} characters; this has {length}"),
            None => format!("must have at least {least} characters"),
        });
    }
    match schema.get("pattern").and_then(Value::as_str) {
        Some(WORDS) if text.chars().any(char::is_control) => {
            Some("must have no control character, line breaks included".to_owned())
        }
        Some(WORDS) if text.chars().all(char::is_whitespace) => {
            Some("must have more than spaces".to_owned())
        }
        Some(pattern)
            if !choices(pattern).is_none_or(|mut words| words.any(|word| word == text)) =>
        {
            let words: Vec<&str> = choices(pattern).into_iter().flatten().collect();
            Some(format!("must be one of {}", words.join(", ")))
        }
        _ => None,
    }
}

/// Lists the words of a pattern that is nothing but a choice of words: `^(a|b)$`.
pub(super) fn choices(pattern: &str) -> Option<impl Iterator<Item = &str>> {
    let words = pattern.strip_prefix("^(")?.strip_suffix(")$")?;
    Some(words.split('|'))
}

/// Holds a number against its schema.
fn of_number(schema: &Value, number: f64) -> Option<String> {
    let least = schema.get("minimum").and_then(Value::as_f64);
    let most = schema.get("maximum").and_then(Value::as_f64);
    let is_within =
        least.is_none_or(|least| number >= least) && most.is_none_or(|most| number <= most);
    match (is_within, least, most) {
        (true, ..) | (_, None, None) => None,
        (_, Some(least), Some(most)) => Some(format!("must be {least} to {most}")),
        (_, Some(least), None) => Some(format!("must be at least {least}")),
        (_, None, Some(most)) => Some(format!("must be at most {most}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn breaches_are_found_with_their_place() {
        let inner = json!({"type": "object", "properties": {"name": {"maxLength": 3}}});
        let named = |name: &str| (name == "Inner").then_some(&inner);
        let schema = json!({"type": "object", "properties": {
            "count": {"minimum": 1, "maximum": 5},
            "most": {"maximum": 5},
            "least": {"minimum": 1},
            "reason": {"minLength": 1, "maxLength": 4, "pattern": WORDS},
            "word": {"pattern": "^(up|down)$"},
            "inner": {"$ref": "#/components/schemas/Inner"},
            "perhaps": {"oneOf": [{"type": "null"}, {"$ref": "#/components/schemas/Inner"}]},
        }});
        for (value, found) in [
            (json!({}), None),
            (json!({"count": 1, "most": 5, "least": 1}), None),
            (json!({"count": 0}), Some("count must be 1 to 5")),
            (json!({"count": 6}), Some("count must be 1 to 5")),
            (json!({"word": "down"}), None),
            (
                json!({"word": "up|down"}),
                Some("word must be one of up, down"),
            ),
            (json!({"most": 6}), Some("most must be at most 5")),
            (json!({"least": 0}), Some("least must be at least 1")),
            (json!({"reason": "äöüß"}), None),
            (
                json!({"reason": "äöüßx"}),
                Some("reason must have 1 to 4 characters; this has 5"),
            ),
            (
                json!({"reason": ""}),
                Some("reason must have 1 to 4 characters; this has 0"),
            ),
            (
                json!({"reason": "a\nb"}),
                Some("reason must have no control character, line breaks included"),
            ),
            (
                json!({"reason": "a\u{9b}"}),
                Some("reason must have no control character, line breaks included"),
            ),
            (
                json!({"reason": " \u{2003}"}),
                Some("reason must have more than spaces"),
            ),
            (
                json!({"inner": {"name": "long"}}),
                Some("inner.name must have 0 to 3 characters; this has 4"),
            ),
            (
                json!({"perhaps": {"name": "long"}}),
                Some("perhaps.name must have 0 to 3 characters; this has 4"),
            ),
            (json!({"perhaps": null, "inner": {"name": "abc"}}), None),
        ] {
            let breach = breach(&schema, &named, &value);
            let words = breach.map(|breach| format!("{} {}", breach.field, breach.why));
            assert_eq!(words.as_deref(), found, "{value}");
        }
    }
}
