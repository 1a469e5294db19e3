//! The JSON Schema of the configuration, out of the same table that the reader obeys.

use serde_json::{Map, Value, json};

use super::shape::{Form, Shape, State};
use super::v1;

/// Gives the JSON Schema (draft 2020-12) of the configuration file: what works, and nothing else.
#[must_use]
pub fn schema() -> Value {
    let mut schema = Map::new();
    schema.insert(
        "$schema".to_owned(),
        json!("https://json-schema.org/draft/2020-12/schema"),
    );
    schema.insert("title".to_owned(), json!("Configuration of Meridian"));
    if let Value::Object(file) = of_shape(&v1::FILE) {
        schema.extend(file);
    }
    Value::Object(schema)
}

/// Describes a map.
fn of_shape(shape: &Shape) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for key in shape.keys {
        // What must be empty until it is built is no key to offer.
        let Some(form) = key.form().filter(|form| !matches!(form, Form::Nothing)) else {
            continue;
        };
        let mut value = of_form(form);
        if let Value::Object(fields) = &mut value {
            fields.insert("description".to_owned(), json!(key.about));
            if shape.may_be_blank && matches!(key.state, State::Optional(_)) {
                or_null(fields);
            }
        }
        properties.insert(key.name.to_owned(), value);
        if matches!(key.state, State::Required(_)) {
            required.push(key.name);
        }
    }
    let mut map =
        json!({"type": "object", "properties": properties, "additionalProperties": false});
    if let (Value::Object(fields), false) = (&mut map, required.is_empty()) {
        fields.insert("required".to_owned(), json!(required));
    }
    map
}

/// Lets a value be left blank.
fn or_null(fields: &mut Map<String, Value>) {
    if let Some(kind) = fields.get("type").cloned() {
        fields.insert("type".to_owned(), json!([kind, "null"]));
    }
}

/// Describes a value. Numbers may stand where text is wanted: YAML writes both without quotes.
fn of_form(form: Form) -> Value {
    match form {
        Form::Text => json!({"type": ["string", "number", "boolean"]}),
        Form::Word(words) => json!({"enum": words}),
        Form::Boolean => json!({"type": "boolean"}),
        Form::Integer(least, most) if least == most => json!({"const": least}),
        Form::Integer(least, most) => json!({"type": "integer", "minimum": least, "maximum": most}),
        Form::Number(least, most) => json!({"type": "number", "minimum": least, "maximum": most}),
        Form::Duration => json!({"anyOf": [
            {"type": "integer", "minimum": 0},
            {"type": "string", "pattern": "^([0-9]+|([0-9]+(w|d|h|ms|m|s))+)$"},
        ]}),
        Form::Name => json!({"type": "string", "format": "hostname"}),
        Form::Address => {
            json!({"type": "string", "anyOf": [{"format": "ipv4"}, {"format": "ipv6"}]})
        }
        Form::Socket => {
            json!({"type": "string", "pattern": "^([0-9.]+|\\[[0-9A-Fa-f:.]+\\]):[0-9]{1,5}$"})
        }
        Form::Prefix => json!({"type": "string", "pattern": "^[0-9A-Fa-f:.]+/[0-9]{1,3}$"}),
        Form::List(item) => json!({"type": "array", "items": of_form(*item)}),
        Form::Nothing => json!({"type": "array", "maxItems": 0}),
        Form::Map(shape) => of_shape(shape),
        Form::ByName(value) => json!({"type": "object", "additionalProperties": of_form(*value)}),
        Form::Any(forms) => {
            json!({"anyOf": forms.iter().copied().map(of_form).collect::<Vec<_>>()})
        }
    }
}
