//! The files that pages are made of besides their text. They are part of the program; their addresses
//! carry a digest of their content, so that a browser may keep them for ever.

use std::sync::LazyLock;

use axum::body::Body;
use axum::extract::Path;
use axum::response::Response;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};

use crate::problem::{Code, Problem};

struct Asset {
    name: &'static str,
    kind: &'static str,
    bytes: &'static [u8],
}

const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

macro_rules! asset {
    ($name:literal, $kind:expr, $path:literal) => {
        Asset { name: $name, kind: $kind, bytes: include_bytes!(concat!("../../assets/", $path)) }
    };
}

static ASSETS: [Asset; 7] = [
    asset!("telusur.css", STYLE, "telusur.css"),
    asset!("keys.js", SCRIPT, "keys.js"),
    asset!("live.js", SCRIPT, "live.js"),
    asset!("mark.svg", "image/svg+xml", "mark.svg"),
    asset!("htmx.js", SCRIPT, "vendor/htmx.min.js"),
    asset!("uplot.js", SCRIPT, "vendor/uplot.min.js"),
    asset!("uplot.css", STYLE, "vendor/uplot.min.css"),
];

/// The digest in the addresses: one for all files, which change together with the program.
pub(crate) static DIGEST: LazyLock<String> = LazyLock::new(|| {
    let mut hasher = blake3::Hasher::new();
    for asset in &ASSETS {
        hasher.update(asset.bytes);
    }
    hasher.finalize().to_hex()[..12].to_owned()
});

/// One of the files.
pub(crate) async fn asset(Path(name): Path<String>) -> Result<Response, Problem> {
    let none = || Problem::new(Code::NotFound, "there is no such file");
    let asset = ASSETS.iter().find(|asset| asset.name == name).ok_or_else(none)?;
    let mut response = Response::new(Body::from(asset.bytes));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(asset.kind));
    let forever = HeaderValue::from_static("public, max-age=31536000, immutable");
    headers.insert(CACHE_CONTROL, forever);
    Ok(response)
}
