//! A request as a command line for curl.

use utoipa::openapi::path::{Parameter, ParameterIn};
use utoipa::openapi::{RefOr, Schema};

use crate::ui::frame::encoded;

/// A request to show.
pub(super) struct Call<'a> {
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    pub(super) parameters: &'a [&'a Parameter],
    /// JSON.
    pub(super) body: Option<&'a SentBody>,
    pub(super) host: &'a str,
    /// Whether it needs a key.
    pub(super) sends_key: bool,
    /// Whether the reply comes bit by bit.
    pub(super) is_stream: bool,
}

/// The body of a call.
pub(super) struct SentBody {
    /// Its media type.
    pub(super) kind: String,
    pub(super) text: String,
}

/// The command line. Parameters are those that have an example.
pub(super) fn curl(call: &Call<'_>) -> String {
    let mut words = vec!["curl".to_owned(), if call.is_stream { "-sN" } else { "-s" }.to_owned()];
    let implied = if call.body.is_some() { "POST" } else { "GET" };
    if call.method != implied {
        words.extend(["-X".to_owned(), call.method.to_owned()]);
    }
    if call.sends_key {
        words.extend(["-H".to_owned(), quoted("Authorization: Bearer tlk_…")]);
    }
    if let Some(body) = call.body {
        let kind = quoted(&format!("Content-Type: {}", body.kind));
        // `-d` leaves line breaks out.
        let data = if body.text.contains('\n') { "--data-binary" } else { "-d" };
        words.extend(["-H".to_owned(), kind, data.to_owned(), quoted(&body.text)]);
    }
    words.push(quoted(&address(call)));
    words.join(" ")
}

fn address(call: &Call<'_>) -> String {
    let mut path = call.path.to_owned();
    let mut query = String::new();
    for parameter in call.parameters {
        let Some(example) = example_of(parameter) else { continue };
        if parameter.parameter_in == ParameterIn::Path {
            path = path.replace(&format!("{{{}}}", parameter.name), &encoded(&example));
        } else if parameter.parameter_in == ParameterIn::Query {
            let sign = if query.is_empty() { '?' } else { '&' };
            query.push_str(&format!("{sign}{}={}", parameter.name, encoded(&example)));
        }
    }
    format!("http://{}{path}{query}", call.host)
}

fn example_of(parameter: &Parameter) -> Option<String> {
    let Some(RefOr::T(Schema::Object(schema))) = &parameter.schema else { return None };
    Some(schema.example.as_ref()?.as_str()?.to_owned())
}

/// A word as a shell takes it: in quotes where it holds something that a shell reads.
fn quoted(word: &str) -> String {
    let is_plain =
        word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/:.-_".contains(&byte));
    if is_plain { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(method: &str, path: &str, json: Option<&str>, sends_key: bool, expect: &str) {
        let body = json.map(|text| SentBody { kind: "application/json".into(), text: text.into() });
        let body = body.as_ref();
        let (parameters, is_stream) = (&[][..], false);
        let host = "127.0.0.1:8088";
        let call = Call { method, path, parameters, body, host, sends_key, is_stream };
        assert_eq!(curl(&call), expect);
    }

    #[test]
    fn commands_hold_what_they_need_and_quote_it() {
        check("GET", "/a", None, false, "curl -s http://127.0.0.1:8088/a");
        check("DELETE", "/a", None, false, "curl -s -X DELETE http://127.0.0.1:8088/a");
        check("POST", "/a", None, false, "curl -s -X POST http://127.0.0.1:8088/a");
        check(
            "POST",
            "/a",
            Some("{\"a\":\"it's\"}"),
            true,
            "curl -s -H 'Authorization: Bearer tlk_…' -H 'Content-Type: application/json' \
             -d '{\"a\":\"it'\\''s\"}' http://127.0.0.1:8088/a",
        );
        check(
            "PATCH",
            "/a",
            Some("{}"),
            false,
            "curl -s -X PATCH -H 'Content-Type: application/json' -d '{}' http://127.0.0.1:8088/a",
        );
    }
}
