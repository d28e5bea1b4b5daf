//! Operations run by a service on another machine: the lines of the control socket, over HTTP.

use std::sync::mpsc::sync_channel;

use serde_json::Value;
use telusur_engine::control::{Each, Operation, ReplyLine};
use telusur_fetch::{ServiceClient, ServiceClientError};
use telusur_model::Secret;

use crate::backend::{NoReply, error_message};
use crate::message::{Code, Message, shown};

/// Lines that wait for this side.
const LINES_MAX: usize = 256;

/// The client of a service that the user names.
pub fn client(address: &str, key: Option<&str>) -> Result<ServiceClient, Message> {
    ServiceClient::new(address, key.map(Secret::new)).map_err(|error| {
        Message::new(Code::BadArgument, format!("--server: {}", shown(&error.to_string())))
            .hint("Write it like http://127.0.0.1:8088")
    })
}

/// Has the service run an operation, and calls `each` with every item until it returns false.
pub fn ask<O: Operation>(
    client: &ServiceClient,
    operation: &O,
    each: Each<'_, O::Item>,
) -> Result<Option<O::Reply>, NoReply> {
    let lost = |what: String| {
        NoReply::Lost(Message::new(
            Code::ServerUnreachable,
            format!("{}: {}", client.url(), shown(&what)),
        ))
    };
    let request = serde_json::to_vec(operation).map_err(|error| lost(error.to_string()))?;
    let path = format!("/api/v1/operations/{}", O::KIND.word());
    let (lines, read) = sync_channel::<Vec<u8>>(LINES_MAX);
    let asking = {
        let client = client.clone();
        // The connection has a thread of its own: items are taken on this one.
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime =
                runtime.map_err(|error| ServiceClientError::Unusable(error.to_string()))?;
            runtime.block_on(async {
                // Nothing else runs on this thread: a full channel slows the service down.
                let mut pass_on = |line: &[u8]| lines.send(line.to_vec()).is_ok();
                client.post(&path, request, &mut pass_on).await
            })
        })
    };
    let mut reply = None;
    while let Ok(line) = read.recv() {
        let line = serde_json::from_slice::<ReplyLine<O::Item, O::Reply>>(&line);
        match line.map_err(|error| lost(format!("its answer cannot be read: {error}")))? {
            ReplyLine::Item(item) => {
                if !each(item) {
                    return Ok(None);
                }
            }
            ReplyLine::Reply(last) => reply = Some(last),
            ReplyLine::Error(error) => return Err(NoReply::Refused(error_message(error))),
        }
    }
    let asked = asking.join().map_err(|_| lost("the connection failed".to_owned()))?;
    match (asked, reply) {
        (_, Some(reply)) => Ok(Some(reply)),
        (Ok(()), None) => Err(lost("it ended in the middle of its reply".to_owned())),
        (Err(ServiceClientError::Refused { status, body }), None) => {
            Err(NoReply::Refused(refused(client, status, &body)))
        }
        (Err(error), None) => Err(lost(error.to_string())),
    }
}

/// A problem (RFC 9457) as a message.
fn refused(client: &ServiceClient, status: u16, body: &[u8]) -> Message {
    let problem: Value = serde_json::from_slice(body).unwrap_or_default();
    let text = |field: &str| problem[field].as_str().map(shown);
    let what = text("detail").unwrap_or_else(|| format!("status {status}"));
    let code = match status {
        401 | 403 => Code::ServerRefused,
        409 => Code::WrongState,
        400 | 404 | 413 | 422 => Code::BadArgument,
        507 => Code::DiskFull,
        _ => Code::ServerUnreachable,
    };
    let message = Message::new(code, format!("{}: {what}", client.url()));
    match (text("hint"), status) {
        (Some(hint), _) => message.hint(hint),
        (None, 401 | 403) => message.hint("Name a key that allows it: TELUSUR_KEY=tlk_… or --key"),
        (None, _) => message,
    }
}
