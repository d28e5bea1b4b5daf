//! Schemas as fields: what an object holds, and of which kind each of it is.

use std::collections::BTreeMap;

use utoipa::openapi::schema::{AdditionalProperties, ArrayItems, Object, SchemaType, Type};
use utoipa::openapi::{RefOr, Schema};

use super::text::{Span, spans};
use crate::openapi::{name_in, resolved};

type Schemas = BTreeMap<String, RefOr<Schema>>;

/// Objects inside of objects that are shown with the outer one.
const DEPTH_MAX: usize = 3;

/// A field of an object, or a parameter.
pub(super) struct Field {
    pub(super) name: String,
    /// Where it is sent, if it is a parameter.
    pub(super) place: &'static str,
    pub(super) kind: Kind,
    pub(super) is_required: bool,
    pub(super) about: Vec<Span>,
}

/// Of which kind something is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Kind {
    /// In words: `array of `, `string`.
    pub(super) text: String,
    /// The type that the words end with.
    pub(super) name: Option<String>,
    /// `, 1 to 1000`, `, or null`.
    pub(super) rest: String,
}

impl Kind {
    fn words(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// The same in something else.
    fn within(self, outer: &str) -> Self {
        Self { text: format!("{outer}{}", self.text), ..self }
    }
}

/// What a schema says of itself.
pub(super) fn about(schema: &RefOr<Schema>) -> &str {
    let text = match schema {
        RefOr::Ref(to) => return &to.description,
        RefOr::T(Schema::Object(object)) => &object.description,
        RefOr::T(Schema::Array(array)) => &array.description,
        RefOr::T(Schema::OneOf(choice)) => &choice.description,
        RefOr::T(Schema::AllOf(parts)) => &parts.description,
        RefOr::T(Schema::AnyOf(choice)) => &choice.description,
        RefOr::T(_) => return "",
    };
    text.as_deref().unwrap_or_default()
}

/// The kind of a schema.
pub(super) fn kind_of(schema: &RefOr<Schema>) -> Kind {
    match schema {
        RefOr::Ref(to) => {
            Kind { name: Some(name_in(&to.ref_location).to_owned()), ..Kind::default() }
        }
        RefOr::T(Schema::Object(object)) => kind_of_object(object),
        RefOr::T(Schema::Array(array)) => {
            let items = match &array.items {
                ArrayItems::RefOrSchema(items) => kind_of(items),
                ArrayItems::False => Kind::words("value"),
            };
            let is_optional = matches!(&array.schema_type, SchemaType::Array(types) if types.contains(&Type::Null));
            or_null(items.within("array of "), is_optional)
        }
        RefOr::T(Schema::OneOf(choice)) => kind_of_choice(&choice.items),
        RefOr::T(Schema::AnyOf(choice)) => kind_of_choice(&choice.items),
        RefOr::T(_) => Kind::words("object"),
    }
}

fn kind_of_object(object: &Object) -> Kind {
    let (types, is_optional) = match &object.schema_type {
        SchemaType::Type(only) => (vec![only.clone()], false),
        SchemaType::Array(types) => {
            let others = types.iter().filter(|it| **it != Type::Null).cloned().collect();
            (others, types.contains(&Type::Null))
        }
        SchemaType::AnyValue => (Vec::new(), false),
    };
    let words: Vec<&str> = types.iter().map(word_of).collect();
    let mut kind = match object.additional_properties.as_deref() {
        Some(AdditionalProperties::RefOr(values)) => kind_of(values).within("map of "),
        _ if words.is_empty() => Kind::words("anything"),
        _ => Kind::words(words.join(" or ")),
    };
    if let (Some(least), Some(most)) = (&object.minimum, &object.maximum) {
        let number = |it: &utoipa::Number| serde_json::to_value(it).unwrap_or_default().to_string();
        let whole = |it| number(it).trim_end_matches(".0").to_owned();
        kind.rest = format!(", {} to {}", whole(least), whole(most));
    }
    or_null(kind, is_optional)
}

fn kind_of_choice(choices: &[RefOr<Schema>]) -> Kind {
    let kinds: Vec<Kind> = choices.iter().map(kind_of).collect();
    let is_optional = kinds.iter().any(|kind| kind.text == "null");
    let mut others = kinds.into_iter().filter(|kind| kind.text != "null");
    match (others.next(), others.next()) {
        (Some(only), None) => or_null(only, is_optional),
        _ => Kind::words("one of several"),
    }
}

fn or_null(kind: Kind, is_optional: bool) -> Kind {
    let rest = if is_optional { format!("{}, or null", kind.rest) } else { kind.rest };
    Kind { rest, ..kind }
}

fn word_of(kind: &Type) -> &'static str {
    match kind {
        Type::Object => "object",
        Type::String => "string",
        Type::Integer => "integer",
        Type::Number => "number",
        Type::Boolean => "boolean",
        Type::Array => "array",
        Type::Null => "null",
    }
}

/// The fields of an object.
pub(super) fn fields(schema: &RefOr<Schema>, schemas: &Schemas) -> Vec<Field> {
    let mut found = Vec::new();
    collect(schema, schemas, "", 1, &mut found);
    found
}

/// The fields of an object, and of the objects in it.
pub(super) fn fields_within(schema: &RefOr<Schema>, schemas: &Schemas) -> Vec<Field> {
    let mut found = Vec::new();
    collect(schema, schemas, "", DEPTH_MAX, &mut found);
    found
}

fn collect(
    schema: &RefOr<Schema>,
    schemas: &Schemas,
    before: &str,
    depth: usize,
    found: &mut Vec<Field>,
) {
    let Some(depth) = depth.checked_sub(1) else { return };
    match resolved(schema, schemas) {
        Some(Schema::Object(object)) => {
            for (name, of_field) in &object.properties {
                let name_within = format!("{before}{name}");
                let own = about(of_field);
                let text = if own.is_empty() { about_type(of_field, schemas) } else { own };
                found.push(Field {
                    name: name_within.clone(),
                    place: "",
                    kind: kind_of(of_field),
                    is_required: object.required.contains(name),
                    about: spans(text),
                });
                if let Some(inner) = object_in(of_field) {
                    collect(inner, schemas, &format!("{name_within}."), depth, found);
                }
            }
        }
        Some(Schema::AllOf(parts)) => {
            for part in &parts.items {
                collect(part, schemas, before, depth + 1, found);
            }
        }
        _ => {}
    }
}

/// What the type of a field says of itself.
fn about_type<'a>(schema: &'a RefOr<Schema>, schemas: &'a Schemas) -> &'a str {
    match object_in(schema) {
        Some(RefOr::Ref(to)) => schemas.get(name_in(&to.ref_location)).map_or("", about),
        Some(RefOr::T(_)) | None => "",
    }
}

/// The type that a field holds, or may hold.
fn object_in(schema: &RefOr<Schema>) -> Option<&RefOr<Schema>> {
    match schema {
        RefOr::Ref(_) => Some(schema),
        RefOr::T(Schema::OneOf(choice)) => {
            choice.items.iter().find(|it| matches!(it, RefOr::Ref(_)))
        }
        RefOr::T(_) => None,
    }
}
