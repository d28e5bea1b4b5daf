//! [`Bodies`]: request bodies that are made up from an OpenAPI description. Each value is plain, at a
//! limit, beyond it, or of the wrong kind; strings hold what is known to be costly.

use anyhow::Context;
use serde_json::{Map, Value, json};
use telusur_testkit::Dice;

/// Most bytes of a body that the service takes; what is larger is refused before it is read.
pub(super) const BODY_BYTES_MAX: usize = 1 << 20;
/// Deepest nesting that is made up.
const DEPTH_MAX: usize = 6;

/// Where bodies are sent.
#[derive(Clone, Copy)]
pub(super) struct Route {
    pub(super) method: &'static str,
    pub(super) path: &'static str,
}

/// What takes a body and may be costly.
const ROUTES: [Route; 5] = [
    Route { method: "POST", path: "/api/v1/crawls" },
    Route { method: "POST", path: "/crawl" },
    Route { method: "POST", path: "/api/v1/search" },
    Route { method: "POST", path: "/api/v1/fetch" },
    Route { method: "POST", path: "/api/v1/map" },
];

/// Bodies that cost much once, or look as if they did.
pub(super) fn known_costly() -> Vec<Value> {
    let urls = |count: usize| -> Vec<String> {
        (0..count).map(|number| format!("http://127.9.0.1:9999/some/page/{number}")).collect()
    };
    let folded = |count: usize| -> Vec<String> {
        (0..count).map(|number| format!("(?i){}{number}", r"\w".repeat(199))).collect()
    };
    let wide: Vec<String> = ('a'..='z').map(|letter| format!("[!-~]{{99}}{letter}")).collect();
    let templates: Vec<String> =
        (0..1_000).map(|number| format!("http://127.9.0.1:9999/{number}/{{id}}")).collect();
    let ids: String = (0..100_000).map(|id| format!("{}\n", id * 3)).collect();
    vec![
        json!({ "urls": urls(1), "scope": { "include": folded(100), "exclude": folded(100) } }),
        json!({ "urls": urls(10_000), "scope": { "exclude": ["http", wide.join("|")] } }),
        json!({ "urls": urls(10_000), "scope": { "exclude": [wide.join("|")] } }),
        json!({ "urls": urls(1), "scope": { "exclude": vec![r"\w{200}"; 90] } }),
        json!({ "urls": urls(1), "scope": { "exclude": [r"[\p{L}\p{N}]{1000}"] } }),
        json!({ "linear": { "templates": templates, "ids": ids } }),
        json!({ "linear": {
            "template": "http://127.9.0.1:9999/{id}", "from": 1, "to": 9,
            "missing": (0..20_000).map(|it| format!("RX:\"w{it}\"")).collect::<Vec<_>>().join(","),
        } }),
        json!({ "linear": {
            "template": "http://127.9.0.1:9999/{id}", "from": 1, "to": 9,
            "missing": format!("RX:\"{}\"", folded(1)[0]),
        } }),
    ]
}

/// The description that bodies are made up from.
pub(super) struct Bodies {
    description: Value,
    schemas: Vec<(Route, Value)>,
}

impl Bodies {
    pub(super) fn of(description: Value) -> anyhow::Result<Self> {
        let mut schemas = Vec::new();
        for route in ROUTES {
            let method = route.method.to_ascii_lowercase();
            let body = &description["paths"][route.path][method]["requestBody"]["content"];
            if let Some(schema) = body.get("application/json").and_then(|it| it.get("schema")) {
                schemas.push((route, schema.clone()));
            }
        }
        schemas.first().context("the description has no bodies")?;
        Ok(Self { description, schemas })
    }

    /// A body for one of the routes. Most are for crawls, which have most fields. Every second one keeps
    /// to what is allowed in all its fields, and has few of them.
    pub(super) fn make_up(&self, number: u64, dice: &mut Dice) -> (Route, Value) {
        let index = if number.is_multiple_of(5) { dice.index(self.schemas.len()) } else { 0 };
        let (route, schema) = &self.schemas[index];
        let is_bold = dice.chance(0.5);
        let mut maker = Maker { bodies: self, dice, bytes_left: BODY_BYTES_MAX * 9 / 10, is_bold };
        let mut value = maker.value(schema, "", 0);
        // Without a start nothing else of a crawl is looked at.
        if let Value::Object(fields) = &mut value
            && (!is_bold || dice.chance(0.8))
        {
            match route.path {
                "/api/v1/crawls" if !fields.contains_key("linear") => {
                    fields.insert("urls".to_owned(), json!(["http://127.9.0.1:9999/"]));
                }
                "/crawl" | "/api/v1/fetch" | "/api/v1/map" => {
                    fields.insert("url".to_owned(), json!("http://127.9.0.1:9999/"));
                }
                _ => {}
            }
        }
        (*route, value)
    }

    fn resolved<'a>(&'a self, schema: &'a Value) -> &'a Value {
        match schema["$ref"].as_str().and_then(|it| it.strip_prefix('#')) {
            Some(pointer) => self.description.pointer(pointer).unwrap_or(schema),
            None => schema,
        }
    }
}

/// Makes up one body.
struct Maker<'a> {
    bodies: &'a Bodies,
    dice: &'a mut Dice,
    bytes_left: usize,
    /// Whether values may be of the wrong kind, or beyond their limits.
    is_bold: bool,
}

impl Maker<'_> {
    fn value(&mut self, schema: &Value, name: &str, depth: usize) -> Value {
        let bodies = self.bodies;
        let schema = bodies.resolved(schema);
        if depth > DEPTH_MAX || self.bytes_left == 0 {
            return Value::Null;
        }
        if self.is_bold && self.dice.chance(0.02) {
            return wrong(self.dice);
        }
        for choice in ["oneOf", "anyOf", "allOf"] {
            if let Some(choices) = schema[choice].as_array().filter(|it| !it.is_empty()) {
                let pick = &choices[self.dice.index(choices.len())];
                return self.value(pick, name, depth);
            }
        }
        match kind(schema) {
            "object" => self.object(schema, depth),
            "array" => self.array(schema, name, depth),
            "integer" | "number" => self.number(schema),
            "boolean" => json!(name != "dry_run" && self.dice.chance(0.5)),
            "string" => self.string(name),
            _ => Value::Null,
        }
    }

    fn object(&mut self, schema: &Value, depth: usize) -> Value {
        let share = if self.is_bold || depth > 0 { 0.4 } else { 0.2 };
        let mut fields = Map::new();
        if let Some(properties) = schema["properties"].as_object() {
            for (name, property) in properties {
                if self.dice.chance(share) {
                    fields.insert(name.clone(), self.value(property, name, depth + 1));
                }
            }
        }
        if schema["additionalProperties"].is_object() {
            let most = if self.is_bold { 2_000 } else { 20 };
            for number in 0..count(self.dice, most) {
                fields.insert(format!("name-{number}"), self.string(""));
            }
        }
        Value::Object(fields)
    }

    fn array(&mut self, schema: &Value, name: &str, depth: usize) -> Value {
        // All items alike: what costs much once costs most when repeated.
        let item = self.value(&schema["items"], name, depth + 1);
        let bytes = item.to_string().len() + 1;
        let items = count(self.dice, 20_000).min(self.bytes_left / bytes);
        self.bytes_left -= items * bytes;
        let numbered = |number: usize| match &item {
            Value::String(text) => json!(text.replace("{n}", &number.to_string())),
            other => other.clone(),
        };
        Value::Array((0..items).map(numbered).collect())
    }

    fn number(&mut self, schema: &Value) -> Value {
        let least = schema["minimum"].as_i64().unwrap_or(0);
        let most = schema["maximum"].as_u64();
        let allowed = [json!(least), json!(1), json!(100), json!(most.unwrap_or(1_000_000))];
        let beyond = [
            json!(most.map_or(u64::MAX, |most| most.saturating_add(1))),
            json!(least - 1),
            json!(0.5),
        ];
        let choices = if self.is_bold { [&allowed[..], &beyond].concat() } else { allowed.into() };
        choices[self.dice.index(choices.len())].clone()
    }

    fn string(&mut self, name: &str) -> Value {
        let choices = texts(name);
        // The first one is what people write.
        let index =
            if self.is_bold || self.dice.chance(0.5) { self.dice.index(choices.len()) } else { 0 };
        let text = choices[index].clone();
        let value = Value::String(text);
        match self.bytes_left.checked_sub(value.to_string().len()) {
            Some(left) => self.bytes_left = left,
            None => return json!("z"),
        }
        value
    }
}

fn kind(schema: &Value) -> &str {
    match &schema["type"] {
        Value::String(kind) => kind,
        Value::Array(kinds) => {
            kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null").unwrap_or("null")
        }
        _ if schema["properties"].is_object() => "object",
        _ => "null",
    }
}

fn wrong(dice: &mut Dice) -> Value {
    let values = [json!(null), json!([[]]), json!({}), json!(-1), json!("no"), json!(1e300)];
    values[dice.index(values.len())].clone()
}

/// Few, some, or as many as go in.
fn count(dice: &mut Dice, most: usize) -> usize {
    [1, 3, 90, most][dice.index(4)]
}

/// What a field of this name may hold: at first what people write, then what is costly.
fn texts(name: &str) -> Vec<String> {
    match name {
        "kind" => ["page", "prefix", "host", "domain", "any"].map(str::to_owned).into(),
        "keep" => ["none", "text", "html", "raw"].map(str::to_owned).into(),
        "include" | "exclude" => patterns(),
        "template" | "templates" => vec![
            "http://127.9.0.1:9999/{n}/{id}".into(),
            "http://127.9.0.1:9999/item/{id:08}".into(),
            format!("http://127.9.0.1:9999/{}/{{id}}", "a".repeat(3_000)),
        ],
        "ids" => vec![
            "1-100\n7".into(),
            (0..120_000).map(|id| format!("{}\n", id * 3)).collect(),
            (0..60_000).map(|id| format!("{}-{}\n", id * 9, id * 9 + 4)).collect(),
            "0-18446744073709551615".into(),
        ],
        "missing" => vec![
            "404,410,empty".into(),
            vec!["404"; 100_000].join(","),
            (0..20_000).map(|it| format!("RX:\"word{it}\"")).collect::<Vec<_>>().join(","),
            (0..90).map(|_| "RX:\"\\w{200}\"".to_owned()).collect::<Vec<_>>().join(","),
        ],
        "direction" => vec!["ascending".into(), "descending".into()],
        "follow" => vec!["host".into(), "any".into()],
        "url" | "urls" | "sitemaps" => vec![
            "http://127.9.0.1:9999/{n}".into(),
            format!("http://127.9.0.1:9999/{}", "%41".repeat(1_300)),
            format!("http://{}/", "a.".repeat(2_000)),
        ],
        "q" => vec![
            "river".into(),
            "(".repeat(10_000),
            "word* ".repeat(10_000),
            format!("\"{}", "a b ".repeat(20_000)),
            "a~99 OR ".repeat(5_000),
            "site:x -y ".repeat(5_000),
        ],
        _ => {
            vec!["word".into(), "x".repeat(100), "é\u{202e}\u{0}".repeat(300), "y".repeat(100_000)]
        }
    }
}

/// Patterns that are short to write and large when compiled.
fn patterns() -> Vec<String> {
    vec![
        "/archive/{n}".into(),
        r"\w{200}".into(),
        r"(\w{50}){20}".into(),
        r"(a{1000}){1000}".into(),
        r"[\p{L}\p{N}]{100}{n}".into(),
        "(a+)+$".into(),
        format!("({})", (0..5_000).map(|it| format!("word{it}")).collect::<Vec<_>>().join("|")),
        r"(?i)\pL{90}".into(),
    ]
}
