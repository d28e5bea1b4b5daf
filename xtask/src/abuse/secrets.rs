//! Secrets of the operator in the settings of a service: they go to the origin that they name, and
//! to nobody else, whoever asks for whatever.

use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use serde_json::json;
use telusur_testkit::BadServer;
use telusur_testkit::bad_server::Step;

use super::table::Table;
use super::{Field, Target, until_idle};
use crate::service::Service;

const NAME: &str = "secrets";
const SECRET: &str = "s3cret-of-the-operator";

pub(super) async fn attack(field: &Field, table: &mut Table) -> anyhow::Result<()> {
    let unbound = format!("[fetch]\nheaders = [\"Authorization: Bearer {SECRET}\"]\n");
    let refused = refuses(field, &unbound)?;
    table.at_least(NAME, "a header without an origin is refused at the start", refused, 1.0);

    let (own, stranger) = (site().await?, site().await?);
    let settings = format!(
        "[fetch]\nheaders = [\"{}=Authorization: Bearer {SECRET}\"]\n",
        own.url("").trim_end_matches('/')
    );
    let target = serve_with(field, "bound", &settings)?;
    for site in [&own, &stranger] {
        for path in ["/api/v1/fetch", "/api/v1/map"] {
            target.post(path, &json!({ "url": site.url("/") })).await?;
        }
        let body = json!({ "urls": [site.url("/")], "limits": { "max_pages": 1 } });
        target.post("/api/v1/crawls", &body).await?;
    }
    until_idle(&target).await?;
    let holds_secret = |request: &&String| request.contains(SECRET);
    let at_home = own.requests().iter().filter(holds_secret).count();
    let abroad = stranger.requests().iter().filter(holds_secret).count();
    table.told(NAME, "requests to the stranger", stranger.requests().len() as f64);
    table.at_least(NAME, "requests with the secret to its own origin", at_home as f64, 3.0);
    table.at_most(NAME, "requests with the secret to the stranger", abroad as f64, 0.0);
    Ok(())
}

/// A site of one page, on a port of its own.
async fn site() -> anyhow::Result<BadServer> {
    let page = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n\
                content-length: 9\r\n\r\n<p>page.\r\n";
    BadServer::start(vec![Step::ReadRequest, Step::send(page)]).await.context("serve a site")
}

/// Whether a service does not start with these settings, and names the header: 1 or 0.
fn refuses(field: &Field, settings: &str) -> anyhow::Result<f64> {
    let file = field.dir.join("refused.toml");
    std::fs::write(&file, settings).context("write the settings")?;
    let output = Command::new(&field.program)
        .arg("--config")
        .arg(&file)
        .arg("--data")
        .arg(field.dir.join("refused"))
        .args(["serve", "--listen", "127.0.0.1:0"])
        .stdin(Stdio::null())
        .output()
        .context("start the program")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(!said.contains(SECRET), "the message shows the secret: {said}");
    let is_refused = output.status.code() == Some(2) && said.contains("Authorization");
    Ok(f64::from(u8::from(is_refused)))
}

fn serve_with(field: &Field, name: &str, settings: &str) -> anyhow::Result<Target> {
    let file = field.dir.join(format!("{name}.toml"));
    std::fs::write(&file, settings).context("write the settings")?;
    let data = field.dir.join(name);
    let flags = ["--min-free-disk", "0B", "--allow-private", "127.0.0.0/8", "--delay", "0s"];
    let service = Service::start_with(&field.program, &file, &data, &flags)?;
    Ok(Target { service, data })
}
