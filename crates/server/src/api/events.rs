//! What happens to a crawl, as server-sent events.

use std::convert::Infallible;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::extract::{Extension, Path, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt, stream};
use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::access::Pass;
use crate::door::Params;
use crate::json::EventBody;
use crate::problem::{Code, Problem};
use crate::service::{EventKinds, EventReader, Service};

/// How long a reader waits before it comes back.
const RETRY: Duration = Duration::from_millis(2000);
/// How often a silent stream shows that it lives.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Which events.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct EventParams {
    /// `stats`, `page`, `state`, with commas between them; everything if it is not said.
    types: Option<String>,
}

/// Watch a crawl
///
/// The first event is `snapshot`; then `stats` once a second, `page` and `state` as they happen, and `done`
/// at the end. A reader that comes back with `Last-Event-ID` gets the pages that it missed; one that is too
/// slow gets a new `snapshot`. The schema is that of one event; a comment every 15 seconds shows that a
/// silent stream lives.
#[utoipa::path(get, path = "/api/v1/crawls/{id}/events", tag = "crawls", operation_id = "watch_crawl",
    params(("id" = String, Path, description = "The id, or crawl_N"),
           ("Last-Event-ID" = Option<String>, Header, description = "The last event that came"),
           EventParams),
    responses((status = 200, body = EventBody, content_type = "text/event-stream",
                  description = "Server-sent events, one after the other, until the crawl ends."),
              (status = 204, description = "The crawl is over, and its last event was sent."),
              (status = 429)))]
pub(super) async fn events(
    State(service): State<Service>,
    Extension(pass): Extension<Pass>,
    Path(id): Path<String>,
    headers: HeaderMap,
    Params(params): Params<EventParams>,
) -> Result<Response, Problem> {
    let no = service.crawl_no(&id)?;
    let kinds = EventKinds::read(params.types.as_deref())?;
    let last_id = headers.get("last-event-id").and_then(|value| value.to_str().ok()?.parse().ok());
    let place = Place::take(&service)?;
    let Some(reader) = service.events(no, kinds, last_id).await? else {
        return Ok(StatusCode::NO_CONTENT.into_response());
    };
    let reading = Reading { reader, place, pass, is_first: true };
    let events = stream::unfold(reading, next).fuse();
    let mut response = Sse::new(events)
        .keep_alive(KeepAlive::new().interval(HEARTBEAT).text("still here"))
        .into_response();
    let unbuffered = HeaderName::from_static("x-accel-buffering");
    response.headers_mut().insert(unbuffered, HeaderValue::from_static("no"));
    Ok(response)
}

/// Somebody who reads events.
struct Reading {
    reader: EventReader,
    place: Place,
    pass: Pass,
    is_first: bool,
}

async fn next(mut reading: Reading) -> Option<(Result<Event, Infallible>, Reading)> {
    let service = &reading.place.service;
    let told = tokio::select! {
        biased;
        () = service.no_longer_holds(&reading.pass) => return None,
        told = reading.reader.next() => told?,
    };
    let event = Event::default().event(told.kind.word()).id(told.id.to_string()).data(&told.data);
    let event = if reading.is_first { event.retry(RETRY) } else { event };
    reading.is_first = false;
    Some((Ok(event), reading))
}

/// A place among the readers of events, given back when it is dropped.
struct Place {
    service: Service,
}

impl Place {
    fn take(service: &Service) -> Result<Self, Problem> {
        let readers = &service.inner().metrics.event_readers;
        let place = Self { service: service.clone() };
        let before = readers.fetch_add(1, Ordering::Relaxed);
        if before >= service.settings().bounds.event_readers_max as u64 {
            return Err(
                Problem::new(Code::TooManyRequests, "too many readers of events").retry_after_s(10)
            );
        }
        Ok(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.service.inner().metrics.event_readers.fetch_sub(1, Ordering::Relaxed);
    }
}
