//! [`Bodies`]: request bodies that are made up from an OpenAPI description. Each value is plain, at a
//! limit, beyond it, or of the wrong kind; strings hold what is known to be costly.

use anyhow::Context;
use serde_json::{Map, Value, json};
use telusur_testkit::Dice;

/// Most bytes of a body that the service takes; what is larger is refused before it is read.
const BODY_BYTES_MAX: usize = 1 << 20;
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

    /// A body for one of the routes. Most are for crawls, which have most fields.
    pub(super) fn make_up(&self, number: u64, dice: &mut Dice) -> (Route, Value) {
        let index = if number.is_multiple_of(5) { dice.index(self.schemas.len()) } else { 0 };
        let (route, schema) = &self.schemas[index];
        let mut bytes_left = BODY_BYTES_MAX * 9 / 10;
        let mut value = self.value(schema, "", 0, &mut bytes_left, dice);
        // Without a start nothing else of a crawl is looked at.
        if let Value::Object(fields) = &mut value
            && dice.chance(0.8)
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

    fn value(
        &self,
        schema: &Value,
        name: &str,
        depth: usize,
        bytes_left: &mut usize,
        dice: &mut Dice,
    ) -> Value {
        let schema = self.resolved(schema);
        if depth > DEPTH_MAX || *bytes_left == 0 {
            return Value::Null;
        }
        if dice.chance(0.02) {
            return wrong(dice);
        }
        for choice in ["oneOf", "anyOf", "allOf"] {
            if let Some(choices) = schema[choice].as_array().filter(|it| !it.is_empty()) {
                let pick = &choices[dice.index(choices.len())];
                return self.value(pick, name, depth, bytes_left, dice);
            }
        }
        match kind(schema) {
            "object" => self.object(schema, depth, bytes_left, dice),
            "array" => self.array(schema, name, depth, bytes_left, dice),
            "integer" | "number" => number(schema, dice),
            "boolean" => json!(name != "dry_run" && dice.chance(0.5)),
            "string" => string(name, bytes_left, dice),
            _ => Value::Null,
        }
    }

    fn resolved<'a>(&'a self, schema: &'a Value) -> &'a Value {
        match schema["$ref"].as_str().and_then(|it| it.strip_prefix('#')) {
            Some(pointer) => self.description.pointer(pointer).unwrap_or(schema),
            None => schema,
        }
    }

    fn object(
        &self,
        schema: &Value,
        depth: usize,
        bytes_left: &mut usize,
        dice: &mut Dice,
    ) -> Value {
        let mut fields = Map::new();
        if let Some(properties) = schema["properties"].as_object() {
            for (name, property) in properties {
                if dice.chance(0.4) {
                    let value = self.value(property, name, depth + 1, bytes_left, dice);
                    fields.insert(name.clone(), value);
                }
            }
        }
        if schema["additionalProperties"].is_object() {
            for number in 0..count(dice, 2_000) {
                let value = string("", bytes_left, dice);
                fields.insert(format!("name-{number}"), value);
            }
        }
        Value::Object(fields)
    }

    fn array(
        &self,
        schema: &Value,
        name: &str,
        depth: usize,
        bytes_left: &mut usize,
        dice: &mut Dice,
    ) -> Value {
        // All items alike: what costs much once costs most when repeated.
        let item = self.value(&schema["items"], name, depth + 1, bytes_left, dice);
        let bytes = item.to_string().len() + 1;
        let items = count(dice, 20_000).min(*bytes_left / bytes);
        *bytes_left -= items * bytes;
        let spread = |number: usize| match &item {
            Value::String(text) if name != "ids" => json!(text.replace("{n}", &number.to_string())),
            other => other.clone(),
        };
        Value::Array((0..items).map(spread).collect())
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

fn number(schema: &Value, dice: &mut Dice) -> Value {
    let least = schema["minimum"].as_i64().unwrap_or(0);
    let most = schema["maximum"].as_u64();
    let values = [
        json!(least),
        json!(1),
        json!(100),
        json!(most.unwrap_or(1_000_000)),
        json!(most.map_or(u64::MAX, |most| most.saturating_add(1))),
        json!(least - 1),
        json!(0.5),
    ];
    values[dice.index(values.len())].clone()
}

fn string(name: &str, bytes_left: &mut usize, dice: &mut Dice) -> Value {
    let choices: Vec<String> = match name {
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
    };
    let text = choices[dice.index(choices.len())].clone();
    if text.len() > *bytes_left {
        return json!("z");
    }
    *bytes_left -= text.len();
    Value::String(text)
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
